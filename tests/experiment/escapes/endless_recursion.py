# fate: failed
# why: RecursionError
def f(x):
    return f(x)
