"""Tests and intervals of several estimates that form one family, as emmeans adjusts them.

Holm, Bonferroni, Benjamini-Hochberg and Šidák need the p values alone. Tukey's studentised range is exact for all pairs
of equally precise means. Dunnett's test and ``mvt`` use the joint distribution of the estimates: the chance that the
largest of several correlated |t| exceeds what was seen (Genz and Bretz 2009; Hothorn, Bretz and Westfall 2008).
"""

from __future__ import annotations

import gc
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats
from scipy.stats import qmc
from statsmodels.stats.multitest import multipletests

from stimuli.errors import unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

_BY_P = {"holm": "holm", "bonferroni": "bonferroni", "BH": "fdr_bh"}
"""Adjustments that need p values only, under emmeans' names; the values are statsmodels'."""

BY_P_ALONE = ("none", *_BY_P, "sidak")
"""Corrections that need nothing but the p values."""

ADJUSTMENTS = (*BY_P_ALONE, "tukey", "dunnett", "mvt")
"""Corrections for several comparisons."""

DIRECTIONS = 2**17
"""Points on the sphere over which the joint distribution is averaged."""
BUNDLE = 16
"""Neighbours, by how far they reach, that count as one direction."""


@dataclass(frozen=True)
class Comparisons:
    """What an adjustment may want to know about a family of estimates.

    Attributes
    ----------
    correlation : ndarray, shape (r, r), or None
        Correlation of the r estimates, for ``mvt`` and ``dunnett``.
    means : int or None
        Number of means of which the estimates are all pairwise differences, for ``tukey``.
    with_control : bool
        Whether all compare with one and the same mean, for ``dunnett``.
    """

    correlation: Array | None = None
    means: int | None = None
    with_control: bool = False


def suitable(adjust: str, count: int, family: Comparisons) -> tuple[str, str | None]:
    """Choose the adjustment that a family of estimates gets.

    One estimate needs none. As emmeans does, ``tukey`` becomes ``sidak`` where the estimates are not all pairs of one
    set of means; likewise ``dunnett`` where they do not compare with one control.

    Returns
    -------
    adjust : str
        The adjustment used.
    note : str or None
        Why it is not the one asked for.

    Raises
    ------
    UserError
        If there is no such adjustment.
    """
    if adjust not in ADJUSTMENTS:
        raise unknown_name("adjustment", adjust, ADJUSTMENTS)
    if count == 1:
        return "none", None
    if adjust == "tukey" and family.means is None:
        return "sidak", "sidak in place of tukey, which is for all pairs of one set of means"
    if adjust == "dunnett":
        if family.with_control:
            return "mvt", None
        return "sidak", "sidak in place of dunnett, which is for comparisons with one control"
    return adjust, None


def adjusted_p(statistic: Array, df: Array, adjust: str, family: Comparisons) -> Array:
    """Two-sided p values of one family.

    Parameters
    ----------
    statistic, df : ndarray, shape (r,)
        t values and their degrees of freedom; infinite for z. What is not a number could not be estimated: it stays a
        member of its family, as in emmeans, but for ``mvt``, which needs all correlations.
    adjust : str
        What ``suitable`` chose.
    family : Comparisons
        The family.

    Returns
    -------
    ndarray, shape (r,)
    """
    p: Array = np.asarray(2.0 * stats.t.sf(np.abs(statistic), df))
    told = np.isfinite(p)
    if not told.any():
        return p
    if adjust in BY_P_ALONE:
        return _where(told, p, corrected(np.where(told, p, 1.0), adjust)[told])
    return _where(told, p, _adjusted(np.abs(statistic[told]), df[told], p[told], adjust, _part(family, told)))


def _adjusted(size: Array, df: Array, p: Array, adjust: str, family: Comparisons) -> Array:
    if adjust == "tukey":
        return np.asarray(stats.studentized_range.sf(size * np.sqrt(2.0), float(family.means or 0), df))
    if adjust == "mvt":
        largest = LargestT(_correlation(family, len(p)))
        return np.array([largest.sf(c, d) for c, d in zip(size, df, strict=True)])
    return corrected(p, adjust)


def corrected(p: Array, adjust: str) -> Array:
    """Correct finite p values, shape (r,), by one of ``BY_P_ALONE``."""
    if adjust in _BY_P and len(p):
        gc.freeze()  # statsmodels collects garbage with every correction, which takes longer than the correction
        try:
            return np.asarray(multipletests(p, method=_BY_P[adjust])[1])
        finally:
            gc.unfreeze()
    if adjust == "sidak":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(len(p) * np.log1p(-p)))
    return p


def critical_values(level: float, df: Array, adjust: str, family: Comparisons) -> Array:
    """Half widths, in standard errors, of intervals that hold together with probability ``level``.

    Holm's and Benjamini-Hochberg's have no intervals of their own; they get Bonferroni's, as in emmeans.

    Parameters
    ----------
    level : float
        Coverage.
    df, adjust, family
        As for ``adjusted_p``.

    Returns
    -------
    ndarray, shape (r,)
    """
    told = ~np.isnan(df)
    r = int(told.sum())
    if adjust == "tukey":
        means, root2 = float(family.means or 0), np.sqrt(2.0)
        found = [stats.studentized_range.ppf(level, means, d) / root2 for d in df[told]]
    elif adjust == "mvt" and r:
        largest = LargestT(_correlation(_part(family, told), r))
        found = [largest.isf(1.0 - level, d) for d in df[told]]
    else:
        tail = (1.0 - level) / 2.0
        if adjust == "sidak":
            tail = (1.0 - level ** (1.0 / max(len(df), 1))) / 2.0
        elif adjust in _BY_P:
            tail /= max(len(df), 1)
        found = np.asarray(stats.t.isf(tail, df[told])).tolist()
    return _where(told, np.full(len(df), np.nan), np.array(found))


def _correlation(family: Comparisons, count: int) -> Array:
    return np.eye(count) if family.correlation is None else family.correlation


def _part(family: Comparisons, told: NDArray[np.bool_]) -> Comparisons:
    if family.correlation is None:
        return family
    return Comparisons(family.correlation[np.ix_(told, told)], family.means, family.with_control)


def _where(chosen: NDArray[np.bool_], otherwise: Array, values: Array) -> Array:
    result = otherwise.copy()
    result[chosen] = values
    return result


class LargestT:
    """The distribution of the largest of several correlated |t|.

    Estimates of correlation R = A A' (A of shape r x k) are T = A (length x direction), the length independent of the
    direction, length^2 / k following F(k, df), or chi-squared over k for normal ones. Given the direction d the largest
    exceeds c if the length exceeds c / max_j |A_j d|, so its tail is the mean of a smooth function over the sphere. A
    randomised net of points on the sphere, the same in every call, gives that mean, to 1e-5 for a few estimates and
    2e-4 for 28. It
    copes with singular R.

    Parameters
    ----------
    correlation : ndarray, shape (r, r)
        R.
    points : int
        How many directions, a power of two that ``BUNDLE`` divides.
    salt : int
        Another one gives another net, which tells how large the error is.
    sides : ndarray of int, shape (r,), optional
        1 or -1 where only a t of that sign counts, 0 where both do, as they all do unless given.
    """

    def __init__(
        self,
        correlation: Array,
        points: int = DIRECTIONS,
        salt: int = 0,
        sides: NDArray[np.int64] | None = None,
    ) -> None:
        values, vectors = np.linalg.eigh(correlation)
        kept = values > 1e-10 * values[-1]
        factor = vectors[:, kept] * np.sqrt(values[kept])
        self.rank = int(kept.sum())
        seed = stable_seed("mixed model", "largest t", self.rank, salt)
        net = qmc.Sobol(self.rank, scramble=True, rng=np.random.default_rng(seed)).random(points)
        normal = special.ndtri(np.clip(net, 1e-12, 1.0 - 1e-12))
        direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        reach: Array = np.zeros(points)
        for row, side in zip(factor, np.zeros(len(factor)) if sides is None else sides, strict=True):
            far = direction @ row
            np.maximum(reach, np.abs(far) if side == 0 else side * far, out=reach)
        reach.sort()
        self.reach: Array = reach.reshape(-1, BUNDLE).mean(axis=1)

    def sf(self, c: float, df: float) -> float:
        """Probability that the largest |t| exceeds c."""
        with np.errstate(divide="ignore", over="ignore"):
            square = (c / self.reach) ** 2
        if np.isinf(df):
            return float(np.mean(special.chdtrc(self.rank, square)))
        return float(np.mean(special.fdtrc(self.rank, df, square / self.rank)))

    def isf(self, tail: float, df: float) -> float:
        """Value that the largest |t| exceeds with probability ``tail``."""
        low, high = 1e-9, float(stats.t.isf(tail / 2.0, df))
        while self.sf(high, df) > tail:
            high *= 2.0
        return float(optimize.brentq(lambda c: self.sf(c, df) - tail, low, high, xtol=1e-10))
