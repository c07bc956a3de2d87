"""Families of estimates: p values and intervals that are adjusted together, so that they always agree.

Planned contrasts of one measure are adjusted by their largest absolute t (Hothorn, Bretz and Westfall, 2008), with correlations from
the same sums as the variances and the smallest degrees of freedom of the family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.estimate.crossed import Estimate
from analysis.mixed.adjustments import DIRECTIONS, LargestT


@dataclass(frozen=True)
class Adjusted:
    """The result of one test within its family.

    Attributes
    ----------
    p : float
        Adjusted; below alpha exactly when the interval excludes zero.
    low, high : float
        Simultaneous interval with coverage 1 - alpha; one end of a one-sided test's is the largest possible value.
    detectable : float
        The smallest difference found with 80% power at the family's level.
    family : int
        Number of tests in the family, those that could not be made included.
    """

    p: float
    low: float
    high: float
    detectable: float
    family: int


def adjust(
    family: Sequence[Estimate | None],
    sides: Sequence[int] | None = None,
    alpha: float = 0.05,
    points: int = DIRECTIONS,
) -> list[Adjusted | None]:
    """Adjust the tests of a family by the largest absolute t.

    Parameters
    ----------
    family : sequence of Estimate or None
        A test that could not be made is None. It keeps its place: the others are then adjusted by Bonferroni's rule for it.
    sides : sequence of {0, 1, -1}, optional
        One-sided tests; two-sided unless given.
    alpha : float
    points : int
        Of the net over which the joint distribution is averaged (:class:`analysis.mixed.adjustments.LargestT`).
    """
    sides = [0] * len(family) if sides is None else list(sides)
    made = [number for number, one in enumerate(family) if one is not None]
    found: list[Adjusted | None] = [None] * len(family)
    known = [number for number in made if family[number].se > 0]  # type: ignore[union-attr]
    if known:
        own = [one for number in known if (one := family[number]) is not None]
        signs = np.array([sides[number] for number in known])
        df = min(one.df for one in own)
        # each test that is missing is one more that could have rejected: its share of alpha is kept for it
        share = len(made) / len(family)
        largest = None if len(own) == 1 else LargestT(correlation(own), points, sides=signs)
        for number, one, side in zip(known, own, signs.tolist(), strict=True):
            t = abs(one.t) if side == 0 else side * one.t
            if largest is None:
                tail = stats.t.sf(t, df) * (2 if side == 0 else 1)
                quantile = float(stats.t.isf(alpha * share / (2 if side == 0 else 1), df))
            else:
                tail = largest.sf(t, df) if t > 0 else 1.0
                quantile = largest.isf(alpha * share, df)
            low, high = one.interval(side=side, quantile=quantile)
            p = min(1.0, float(tail) / share)
            found[number] = Adjusted(p, low, high, one.detectable(quantile), len(family))
    for number in set(made) - set(known):
        one = family[number]
        assert one is not None
        found[number] = Adjusted(float(one.value == 0), one.value, one.value, 0.0, len(family))
    return found


def correlation(family: Sequence[Estimate]) -> NDArray[np.float64]:
    """Return the correlations of estimates that share participants and items, shape (r, r); negative eigenvalues set to zero."""
    r = len(family)
    vectors = [
        np.array([one.weights.get(name, 0.0) for name in one.sums.layout.conditions]) for one in family
    ]
    cov = np.zeros((r, r))
    known: dict[tuple[int, int], NDArray[np.float64]] = {}
    for a in range(r):
        for b in range(a, r):
            key = (id(family[a].sums), id(family[b].sums))
            if key not in known:
                known[key] = family[a].sums.products(family[b].sums)
            cov[a, b] = cov[b, a] = vectors[a] @ known[key] @ vectors[b]
    size = np.sqrt(np.maximum(np.diag(cov), 1e-300))
    values, directions = np.linalg.eigh(cov / np.outer(size, size))
    root = directions * np.sqrt(np.maximum(values, 0.0))
    length = np.sqrt((root**2).sum(axis=1, keepdims=True))
    root = np.where(length > 0, root / np.maximum(length, 1e-300), 0.0)
    result = root @ root.T
    np.fill_diagonal(result, 1.0)
    return np.asarray(result)
