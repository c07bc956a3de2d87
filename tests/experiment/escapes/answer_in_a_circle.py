# fate: failed
# why: AssertionError
def f(x):
    made = []
    made.append(made)
    return made
