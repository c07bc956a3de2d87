# fate: failed
# why: AssertionError
def f(x):
    made = []
    for _ in range(50_000):
        made = [made]
    return made
