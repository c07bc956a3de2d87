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
    """Return half widths (Cousineau, 2005; Morey, 2008) of means, shape (participants, conditions); nan without spread."""
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
    """Return Wilson's interval of a mean share of the effective number of answers (Korn & Graubard, 1998; Franco et al., 2019)."""
    items, mean = len(shares), float(shares.mean())
    independent = items**2 / float((1 / answers).sum())
    effective = float(items)
    if items > 1 and 0 < mean < 1:
        variance = float(shares.var(ddof=1)) / items
        effective = min(mean * (1 - mean) / variance, independent) if variance > 0 else independent
        freedoms = np.array([answers.sum() - 1, items - 1])
        t_answers, t_items = np.asarray(stats.t.ppf(0.5 + level / 2, freedoms)).tolist()
        effective = max(effective * float(t_answers / t_items) ** 2, float(items))
    return wilson(mean, effective, level)


def without_spread(
    value: NDArray[np.float64] | float,
    items: NDArray[Any] | float,
    least: float = -1.0,
    errors: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return an interval of a mean of values that are the same in every item, to which a standard error gives no width."""
    z = float(stats.norm.ppf(0.975)) if errors is None else errors
    others = z**2 / (np.asarray(items, dtype=float) + z**2)
    shrunk = (1.0 - others) * value
    return np.asarray(shrunk + others * least), np.asarray(shrunk + others)


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's (1927) score interval of a share among n (which may be an effective number)."""
    z = float(stats.norm.ppf(0.5 + level / 2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))
