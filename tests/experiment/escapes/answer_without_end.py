# fate: failed
# why: longer
def f(x):
    return '9' * 2_000_000
