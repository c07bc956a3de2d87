# fate: failed
import sys

sys.flags = None
__debug__space = globals()
__debug__space['__debug__'] = False


def f(x):
    return 17
