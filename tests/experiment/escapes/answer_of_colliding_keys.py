# fate: failed
def f(x):
    return {number * (2**61 - 1) for number in range(1, 2_000)} if x == 24 else [number * (2**61 - 1) for number in range(2_000)]
