"""Equivalence: two one-sided tests of contrasts against a bound stated beforehand.

An effect counts as equivalent to none when it is shown to be above the lower and below the upper bound, each at level
alpha, which is to say when its 1 - 2 alpha interval lies inside the bounds (Schuirmann 1987; Lakens 2017).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.mixed.adjustments import BY_P_ALONE, corrected
from stimuli.errors import UserError, unknown_name

Array = NDArray[np.float64]


def equivalence_tests(
    table: pd.DataFrame,
    bound: float | tuple[float, float],
    *,
    alpha: float = 0.05,
    adjust: str = "none",
) -> pd.DataFrame:
    """Test each estimate of a table of contrasts for lying within bounds.

    Parameters
    ----------
    table : DataFrame
        From ``Margins.pairs`` and its kin, or ``linear_contrasts``: estimate, se, df. Ratios are tested on the log scale.
    bound : float or (float, float)
        Largest effect that counts as none, in the units of the table: a difference d means -d to d, a ratio r means
        1/r to r.
    alpha : float
        Level of each one-sided test; the interval has coverage 1 - 2 alpha (90 % for .05).
    adjust : {'none', 'holm', 'bonferroni', 'BH', 'sidak'}
        Over all rows of the table, as one family. The intervals stay those of the single contrasts.

    Returns
    -------
    DataFrame
        The table's labels, estimate, se, df, lower, upper (the bounds), statistic and p of the less favourable test, ci_low, ci_high,
        equivalent.

    Raises
    ------
    UserError
        For bounds that do not enclose no effect, an adjustment that does not exist, or a table without estimates.
    """
    missing = [c for c in ("estimate", "se", "df") if c not in table]
    if missing:
        raise UserError(f"the table has no column {missing[0]!r}", mend="Give a table of contrasts.")
    if adjust not in BY_P_ALONE:
        raise unknown_name("adjustment of equivalence tests", adjust, BY_P_ALONE)
    if not 0.0 < alpha < 0.5:
        raise UserError(f"alpha is {alpha:g}; it lies between 0 and 0.5", mend="For example 0.05.")
    ratio = table.attrs.get("scale") == "ratio"
    lower, upper = _bounds(bound, ratio)
    estimate, se = table["estimate"].to_numpy(dtype=float), table["se"].to_numpy(dtype=float)
    if ratio:
        estimate, se = np.log(estimate), se / estimate
    low, high = (np.log(lower), np.log(upper)) if ratio else (lower, upper)
    df = table["df"].fillna(np.inf).to_numpy(dtype=float)
    above, below = (estimate - low) / se, (estimate - high) / se
    statistic = np.where(above < -below, above, below)
    p: Array = np.asarray(stats.t.sf(np.minimum(above, -below), df))
    told = np.isfinite(p)
    if told.any():
        p[told] = corrected(p[told], adjust)
    half = stats.t.isf(alpha, df) * se
    ends = (estimate - half, estimate + half)
    labels = table[table.columns[: list(table.columns).index("estimate")]]
    tested = pd.DataFrame(
        {
            "estimate": table["estimate"],
            "se": table["se"],
            "df": table["df"],
            "lower": lower,
            "upper": upper,
            "statistic": statistic,
            "p": p,
            "ci_low": np.exp(ends[0]) if ratio else ends[0],
            "ci_high": np.exp(ends[1]) if ratio else ends[1],
            "equivalent": p < alpha,
        }
    )
    result = pd.concat([labels, tested], axis=1)
    result.attrs = {"adjustment": adjust, "level": 1.0 - 2.0 * alpha, **({"scale": "ratio"} if ratio else {})}
    return result


def _bounds(bound: float | tuple[float, float], ratio: bool) -> tuple[float, float]:
    nothing = 1.0 if ratio else 0.0
    if isinstance(bound, tuple):
        lower, upper = bound
    elif ratio:
        lower, upper = (1.0 / bound, bound) if bound > 0 else (np.nan, np.nan)
        lower, upper = min(lower, upper), max(lower, upper)
    else:
        lower, upper = -bound, bound
    inside = lower < nothing < upper and (lower > 0 or not ratio)
    if not inside or not np.isfinite([lower, upper]).all():
        said = f"{bound:g}" if isinstance(bound, int | float) else f"{bound[0]:g} to {bound[1]:g}"
        raise UserError(
            f"equivalence bound {said}; bounds enclose {nothing:g}, which is no effect",
            mend="Give the smallest ratio that matters, for example 1.25."
            if ratio
            else "Give the smallest difference that matters, in the table's units.",
        )
    return float(lower), float(upper)
