# fate: ended
def f(x):
    made = []
    for _ in range(60):
        made = [made, made]
    return made
