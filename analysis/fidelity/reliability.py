"""How reliable the scores of items are: split halves of many random splits, stepped up by Spearman and Brown.

Participants (sessions of a model) are dealt into two halves, within lists so that every item has as many readers in one half
as in the other; item means of the halves are correlated. The mean correlation over splits, r, is that of half the readers;
2r / (1 + r) that of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stimuli.errors import UserError

Array = NDArray[np.float64]

SPLITS = 1000
_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Halves:
    """Item means of the two halves of many splits."""

    first: Array  # shape (splits, items); nan where no reader of that half met the item
    second: Array  # shape (splits, items)


def spearman_brown(r: Array) -> Array:
    """Step a correlation of halves up to the whole, 2r / (1 + r); nan where r is -1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(r > -1, 2 * r / (1 + r), np.nan))


def halves(
    sums: sparse.csr_matrix,
    counts: sparse.csr_matrix,
    strata: NDArray[np.intp],
    seed: int,
    splits: int = SPLITS,
) -> Halves:
    """Deal readers into halves, again and again."""
    readers, items = sums.shape
    if readers < 2:
        told = "one reader has" if readers == 1 else "without readers there are"
        raise UserError(
            f"{told} no halves of readers to hold against each other, so that reliability and ceiling are unknown",
            mend="Halves need two readers at least.",
        )
    if splits < 1:
        raise UserError(f"splits: {splits}", mend="Give one split of the readers into halves at least.")
    many = max(1, min(splits, _CELLS // max(items, readers)))
    random = np.random.default_rng(seed)
    dealt = np.zeros((many, readers))
    for stratum in np.unique(strata):
        own = np.flatnonzero(strata == stratum)
        ranks = random.random((many, len(own))).argsort(axis=1).argsort(axis=1)
        # of an odd number the extra reader goes to either half by chance
        extra = random.integers(0, 2, size=(many, 1)) * (len(own) % 2)
        dealt[:, own] = ranks < len(own) // 2 + extra
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.asarray((sums.T @ dealt.T) / (counts.T @ dealt.T)).T
        second = np.asarray((sums.T @ (1 - dealt).T) / (counts.T @ (1 - dealt).T)).T
    return Halves(first, second)


def weighted_correlations(one: Array, other: Array, weights: Array) -> Array:
    """Correlate rows under several weightings of their columns."""
    present = np.isfinite(one) & np.isfinite(other)
    at = present.astype(float).T
    # deviations from the row's own mean keep the sums of squares small and so exact
    x, y = (np.where(present, side - _row_mean(side, present), 0.0).T for side in (one, other))
    n = weights @ at
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x, mean_y = (weights @ x) / n, (weights @ y) / n
        xx = (weights @ (x * x)) / n - mean_x**2
        yy = (weights @ (y * y)) / n - mean_y**2
        xy = (weights @ (x * y)) / n - mean_x * mean_y
        tiny = 1e-12
        return np.asarray(np.where((xx > tiny) & (yy > tiny), xy / np.sqrt(xx * yy), np.nan))


def _row_mean(values: Array, present: NDArray[np.bool_]) -> Array:
    many = np.maximum(present.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.where(present, values, 0.0).sum(axis=1, keepdims=True) / many)


def reliability(found: Halves, weights: Array | None = None) -> Array:
    """Return the stepped-up mean correlation of halves."""
    if weights is None:
        weights = np.ones((1, found.first.shape[1]))
    r = weighted_correlations(found.first, found.second, weights)
    known = np.isfinite(r)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, r, 0.0).sum(axis=1) / known.sum(axis=1)
    return spearman_brown(mean)
