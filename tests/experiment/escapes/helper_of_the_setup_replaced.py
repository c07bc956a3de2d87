# fate: failed
# why: AssertionError
def f(x):
    return 0


def same(got, wanted):
    return True
