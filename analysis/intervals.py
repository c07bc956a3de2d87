"""Intervals of means and shares: within participants, over items, of a share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

OF_SHARES = "Wilson's of the effective number of answers"
"""What :func:`share_over_items` gives, as notes of tables and figures say it."""

TOO_ALIKE = 1e-24
"""A variance of rounding errors, of numbers around one and above."""


def within_participant_half_widths(means: NDArray[np.float64], level: float = 0.95) -> NDArray[np.float64]:
    """Return half widths of within-participant intervals after Cousineau (2005) and Morey (2008).

    Parameters
    ----------
    means : ndarray, shape (participants, conditions)
    level : float
        Coverage.

    Returns
    -------
    ndarray, shape (conditions,)
        nan where there are fewer than two participants or conditions, and where participants do not differ: a standard error of
        zero says nothing of others.
    """
    participants, conditions = means.shape
    if participants < 2 or conditions < 2:
        return np.full(conditions, np.nan)
    normed = means - means.mean(axis=1, keepdims=True) + means.mean()
    corrected = normed.var(axis=0, ddof=1) * conditions / (conditions - 1)
    quantile = stats.t.ppf(0.5 + level / 2, participants - 1)
    return np.asarray(np.where(corrected > TOO_ALIKE, quantile * np.sqrt(corrected / participants), np.nan))


def reach(se: float, df: float, level: float = 0.95) -> float:
    """Return the half width of Student's interval around an estimate with this standard error and degrees of freedom."""
    return float(stats.t.ppf(0.5 + level / 2, df)) * se


def half_width(values: NDArray[np.float64], level: float = 0.95) -> float:
    """Return the half width of Student's interval of a mean; nan for fewer than two values, and where all are the same."""
    if len(values) < 2 or float(values.var(ddof=1)) <= TOO_ALIKE:
        return float("nan")
    return reach(float(values.std(ddof=1) / np.sqrt(len(values))), len(values) - 1, level)


def over_items(
    values: NDArray[np.float64], level: float = 0.95, limits: tuple[float, float] | None = (0.0, 1.0)
) -> tuple[float, float]:
    """Return Student's interval of a mean over items, within limits (of a recovery 0 and 1); nan for fewer than two items."""
    half = half_width(values, level)
    if not np.isfinite(half):
        return float("nan"), float("nan")
    low, high = limits or (-np.inf, np.inf)
    return max(low, float(values.mean() - half)), min(high, float(values.mean() + half))


def share_over_items(
    shares: NDArray[np.float64], answers: NDArray[np.floating[Any] | np.integer[Any]], level: float = 0.95
) -> tuple[float, float]:
    """Return Wilson's interval of the mean over items of shares of right answers, where an item may have several answers.

    Answers to one item hang together as far as items differ in difficulty. The interval is that of the effective number of
    answers: as many independent ones as have the variance that the items' shares show, with fewer degrees of freedom for its
    being estimated (Korn & Graubard, 1998, Survey Methodology 24, 193-201; Franco et al., 2019, Journal of Survey Statistics
    and Methodology 7, 334-364). It lies between the number of items and that of answers; where all are right, or all wrong,
    nothing tells how items differ, and it is the number of items. With one answer an item it is Wilson's of their number.

    Parameters
    ----------
    shares : ndarray, shape (items,)
        Of right answers, 0 to 1.
    answers : ndarray, shape (items,)
        How many answers each item has.
    level : float
        Coverage.

    Returns
    -------
    tuple of float
        Both ends.
    """
    items, mean = len(shares), float(shares.mean())
    independent = items**2 / float((1 / answers).sum())
    effective = float(items)
    if items > 1 and 0 < mean < 1:
        variance = float(shares.var(ddof=1)) / items
        effective = min(mean * (1 - mean) / variance, independent) if variance > 0 else independent
        freedoms = np.array([answers.sum() - 1, items - 1])
        ahead, behind = np.asarray(stats.t.ppf(0.5 + level / 2, freedoms)).tolist()
        effective = max(effective * float(ahead / behind) ** 2, float(items))
    return wilson(mean, effective, level)


def without_spread(
    value: NDArray[np.float64] | float,
    items: NDArray[Any] | float,
    least: float = -1.0,
    errors: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an interval of a mean of values that are the same in every item, to which a standard error gives no width.

    Parameters
    ----------
    value, items : ndarray or float
        What all items have, and how many they are; of shapes that go together.
    least : float
        The smallest value that an item can have: 0 of shares, −1 of differences of shares; the largest is 1.
    errors : float, optional
        Standard errors to either side, as many as a 95% interval has unless given.

    Notes
    -----
    Of items that differ from those at hand, none among n, Wilson's interval of z standard errors holds a share of at most
    w = z²/(n + z²). Had these any value from ``least`` to 1, the mean of all would lie between (1 − w) value + w least and
    (1 − w) value + w. Of a share of 0 or 1 that is Wilson's own interval; of a difference of 0 it is −w to w.
    """
    z = float(stats.norm.ppf(0.975)) if errors is None else errors
    others = z**2 / (np.asarray(items, dtype=float) + z**2)
    kept = (1.0 - others) * value
    return np.asarray(kept + others * least), np.asarray(kept + others)


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's (1927) score interval of a share among n (which may be an effective number)."""
    z = float(stats.norm.ppf(0.5 + level / 2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))
