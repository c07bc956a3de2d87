"""A square table of trainings by tests, and whether what lies on its diagonal differs from what lies off it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial, nan

import numpy as np
from numpy.typing import NDArray

from stimuli.seeds import stable_seed

EXACT_UP_TO = 7
"""Tasks whose orders are all gone through; of more, so many are drawn:"""
ORDERS = 9999


@dataclass(frozen=True)
class Diagonal:
    """What training gains on the task trained, beyond what it gains on other tasks."""

    tasks: int  # tasks that were both trained and tested
    within: float  # mean gain in the cells of the diagonal, and off it, as shares
    across: float
    difference: float
    low: float
    high: float
    p: float  # two-sided: differences as far from 0 when trainings are assigned to test tasks in other orders
    smallest_p: float  # the smallest that so many tasks allow


def diagonal(gains: NDArray[np.float64], seed: int = 0) -> Diagonal:
    """Test whether gains on the diagonal are others than off it."""
    n = len(gains)
    total, trace = float(gains.sum()), float(np.trace(gains))
    places = np.arange(n)
    orders: Iterator[Sequence[int]] | Iterator[NDArray[np.int64]]
    if n <= EXACT_UP_TO:
        orders, least = itertools.permutations(range(n)), 1.0 / factorial(n)
    else:
        rng = np.random.default_rng(stable_seed(seed, "orders of trainings"))
        orders, least = (rng.permutation(n) for _ in range(ORDERS)), 1.0 / (ORDERS + 1)
    sums = np.array([gains[places, list(order)].sum() for order in orders])
    # every cell stands on the diagonal of as many orders as every other: the mean over all orders is total / n
    far = np.abs(sums - total / n) >= abs(trace - total / n) - 1e-12
    p = float(far.mean()) if n <= EXACT_UP_TO else float((far.sum() + 1) / (ORDERS + 1))
    within, across = trace / n, (total - trace) / (n * n - n)
    return Diagonal(n, within, across, within - across, nan, nan, p, least)
