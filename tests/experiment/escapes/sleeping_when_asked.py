# fate: too_slow
import time


def f(x):
    time.sleep(1000)
