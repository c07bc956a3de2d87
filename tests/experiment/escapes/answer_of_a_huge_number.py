# fate: failed
from decimal import Decimal


def f(x):
    return Decimal('1e999999999999') if x == 24 else 10**100_000
