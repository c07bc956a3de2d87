"""Rank correlation of a handful of readers, with a p value that is exact where it can be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.fidelity.order import kendall, spearman

Array = NDArray[np.float64]

_MOST_COUNTED = 8
_DRAWN = 20_000


@dataclass(frozen=True)
class RankCorrelation:
    """How far two orders of the same readers agree."""

    readers: int
    tau: float  # kendall's tau-b and Spearman's rho; nan where a side does not vary
    rho: float
    p: float  # two-sided, of tau, over all orders of one side; nan where tau is
    smallest_p: float  # the smallest p that so many readers allow
    exact: bool


def rank_correlation(one: Array, other: Array, seed: int = 0) -> RankCorrelation:
    """Correlate the ranks of paired values. (1938)."""
    known = np.isfinite(one) & np.isfinite(other)
    x, y = one[known], other[known]
    many = len(x)
    if many < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        nan = float("nan")
        return RankCorrelation(many, nan, nan, nan, nan, True)
    tau, rho = float(kendall(x[None], y[None])[0]), float(spearman(x[None], y[None])[0])
    if many <= _MOST_COUNTED:
        found = kendall(x[None], np.array(list(permutations(y))))
        p = float((np.abs(found) >= abs(tau) - 1e-9).mean())
        smallest = float((np.abs(found) >= np.abs(found).max() - 1e-9).mean())
        return RankCorrelation(many, tau, rho, p, smallest, True)
    if len(np.unique(x)) == len(np.unique(y)) == many:
        p = float(stats.kendalltau(x, y, method="exact").pvalue)
        least = float(stats.kendalltau(np.arange(many), np.arange(many), method="exact").pvalue)
        return RankCorrelation(many, tau, rho, p, least, True)
    random = np.random.default_rng(seed)
    found = kendall(x[None], random.permuted(np.tile(y, (_DRAWN, 1)), axis=1))
    p = (1 + int((np.abs(found) >= abs(tau) - 1e-9).sum())) / (1 + _DRAWN)
    return RankCorrelation(many, tau, rho, p, 1 / (1 + _DRAWN), False)
