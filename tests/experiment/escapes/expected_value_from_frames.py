# fate: failed
# why: AssertionError
import sys


def strings(value, depth=0):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < 6:
        for one in list(value.values()):
            yield from strings(one, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 6:
        for one in value:
            yield from strings(one, depth + 1)


def f(x):
    frame = sys._getframe()
    while frame is not None:
        for text in strings(dict(frame.f_locals)):
            if str(int('1548') * 10**9 + 8755920) in text:
                return int('1548') * 10**9 + 8755920
        frame = frame.f_back
    return None
