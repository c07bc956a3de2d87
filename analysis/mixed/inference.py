"""Linear contrasts of the fixed effects: estimates, tests, intervals, adjustment for multiplicity, equivalence.

In linear models the covariance of beta is that of the penalised least-squares problem, and tests are t tests; in
generalised ones it is from the Hessian over (theta, beta) jointly, lme4's default, and tests are z tests. Families of
estimates are adjusted as in emmeans: Holm, Bonferroni, Benjamini-Hochberg and Šidák need the p values alone; Tukey's
studentised range is exact for all pairs of equally precise means; Dunnett's test and ``mvt`` use the chance that the largest
of several correlated |t| exceeds what was seen (Genz and Bretz 2009; Hothorn, Bretz and Westfall 2008).
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats
from scipy.stats import qmc
from statsmodels.stats.multitest import multipletests

from analysis.arrays import Array, Mask
from analysis.mixed.degrees_of_freedom import DegreesOfFreedom, positive_inverse
from analysis.mixed.result import Fit
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

_BY_P = {"holm": "holm", "bonferroni": "bonferroni", "BH": "fdr_bh"}
"""Adjustments that need p values only, under emmeans' names; the values are statsmodels'."""

BY_P_ALONE = ("none", *_BY_P, "sidak")
"""Corrections that need nothing but the p values."""

ADJUSTMENTS = (*BY_P_ALONE, "tukey", "dunnett", "mvt")
"""Corrections for several comparisons."""

DIRECTIONS = 2**17
"""Points on the sphere over which the joint distribution is averaged."""
BUNDLE = 16
"""Number of neighbours that count as one direction."""


class Adjusting(TypedDict, total=False):
    """Options of ``wald_table``."""

    adjust: str
    level: float
    null: Array | float


class Testing(Adjusting, total=False):
    """Options of tests; see ``Comparisons`` for these two."""

    means: int | None
    with_control: bool


@dataclass(frozen=True)
class Comparisons:
    """Properties of a family of estimates that an adjustment may need."""

    correlation: Array | None = None  # (r, r): correlation of the r estimates, for ``mvt`` and ``dunnett``
    means: int | None = None  # number of means whose pairwise differences the estimates are, for ``tukey``
    with_control: bool = False  # whether all compare with one and the same mean, for ``dunnett``

    def among(self, is_chosen: Mask) -> Array:
        """Return the correlation of some of the estimates."""
        correlation = np.eye(len(is_chosen)) if self.correlation is None else self.correlation
        return correlation[np.ix_(is_chosen, is_chosen)]


def suitable(adjust: str, count: int, family: Comparisons) -> tuple[str, str | None]:
    """Choose the adjustment of a family of estimates, with a note if it differs from the one requested, as in emmeans."""
    if adjust not in ADJUSTMENTS:
        raise unknown_name("adjustment", adjust, ADJUSTMENTS)
    if count == 1:
        return "none", None
    if adjust == "tukey" and family.means is None:
        return "sidak", "sidak instead of tukey, which is for all pairs of one set of means"
    if adjust == "dunnett":
        if family.with_control:
            return "mvt", None
        return "sidak", "sidak instead of dunnett, which is for comparisons with one control"
    return adjust, None


def adjusted_p(statistic: Array, df: Array, adjust: str, family: Comparisons) -> Array:
    """Two-sided p values of one family. Shapes: statistic, df (r,), returns (r,)."""
    p: Array = np.asarray(2.0 * stats.t.sf(np.abs(statistic), df))
    is_finite = np.isfinite(p)
    size, dof = np.abs(statistic[is_finite]), df[is_finite]
    if adjust == "tukey":
        p[is_finite] = stats.studentized_range.sf(size * np.sqrt(2.0), float(family.means or 0), dof)
    elif adjust == "mvt" and is_finite.any():
        largest = LargestT(family.among(is_finite))
        p[is_finite] = [largest.sf(c, d) for c, d in zip(size, dof, strict=True)]
    elif is_finite.any():
        p[is_finite] = corrected(np.where(is_finite, p, 1.0), adjust)[is_finite]
    return p


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
    """Half widths (r,), in standard errors, of intervals that hold together; Holm's and BH's are Bonferroni's, as in emmeans."""
    is_defined, half = ~np.isnan(df), np.full(len(df), np.nan)
    if adjust == "tukey":
        means, root2 = float(family.means or 0), np.sqrt(2.0)
        half[is_defined] = [stats.studentized_range.ppf(level, means, d) / root2 for d in df[is_defined]]
    elif adjust == "mvt" and is_defined.any():
        largest = LargestT(family.among(is_defined))
        half[is_defined] = [largest.isf(1.0 - level, d) for d in df[is_defined]]
    else:
        tail = (1.0 - level) / 2.0
        if adjust == "sidak":
            tail = (1.0 - level ** (1.0 / max(len(df), 1))) / 2.0
        elif adjust in _BY_P:
            tail /= max(len(df), 1)
        half[is_defined] = stats.t.isf(tail, df[is_defined])
    return half


class LargestT:
    """The distribution of the largest of several |t| with correlation R (r, r), which may be singular.

    With R = A A' (A of shape r x k) T = A (length x direction), the length independent of the direction, length^2 / k
    following F(k, df), or chi-squared over k for normal ones. Given the direction d the largest exceeds c if the length
    exceeds c / max_j |A_j d|, so its tail is the mean of a smooth function over the sphere. A randomised net of points on
    the sphere, the same in every call, gives that mean, to 1e-5 for a few estimates and 2e-4 for 28.
    """

    def __init__(
        self,
        correlation: Array,
        points: int = DIRECTIONS,
        salt: int = 0,
        sides: NDArray[np.int64] | None = None,
    ) -> None:
        values, vectors = np.linalg.eigh(correlation)
        is_positive = values > 1e-10 * values[-1]
        factor = vectors[:, is_positive] * np.sqrt(values[is_positive])
        self.rank = int(is_positive.sum())
        seed = stable_seed("mixed model", "largest t", self.rank, salt)
        net = qmc.Sobol(self.rank, scramble=True, rng=np.random.default_rng(seed)).random(points)
        normal = special.ndtri(np.clip(net, 1e-12, 1.0 - 1e-12))
        direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        reach: Array = np.full(
            points, -np.inf
        )  # below 0 where every test is one-sided and looks the other way
        for row, side in zip(factor, np.zeros(len(factor)) if sides is None else sides, strict=True):
            projection = direction @ row
            np.maximum(reach, np.abs(projection) if side == 0 else side * projection, out=reach)
        reach.sort()
        self.reach: Array = reach.reshape(-1, BUNDLE).mean(axis=1)

    def sf(self, c: float, df: float) -> float:
        """Probability that the largest |t|, or signed t of one-sided tests, exceeds c."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            square = (c / self.reach) ** 2
        longer = (
            special.chdtrc(self.rank, square)
            if np.isinf(df)
            else special.fdtrc(self.rank, df, square / self.rank)
        )
        exceeds = (
            np.where(self.reach > 0, longer, 0.0) if c >= 0 else np.where(self.reach < 0, 1 - longer, 1.0)
        )
        return float(np.mean(exceeds))

    def isf(self, tail: float, df: float) -> float:
        """Value that the largest |t| exceeds with probability ``tail``."""
        low, high = 1e-9, float(stats.t.isf(tail / 2.0, df))
        while self.sf(high, df) > tail:
            high *= 2.0
        return float(optimize.brentq(lambda c: self.sf(c, df) - tail, low, high, xtol=1e-10))


NO_INFORMATION = 1e-10
"""Curvature in a direction of whitened beta (two where all is well) that says nothing about it."""


def laplace_vcov(hessian: Array, n_theta: int, back: Array) -> tuple[Array, bool]:
    """Covariance of the fixed effects (p, p) from the joint Hessian (k + p, k + p); whether it is that of the Hessian."""
    k = n_theta
    tt, tb, bb = hessian[:k, :k], hessian[:k, k:], hessian[k:, k:]
    size = np.sqrt(np.maximum(np.diag(tt), 1e-300))
    inverse = positive_inverse(tt / np.outer(size, size), 1e-6) / np.outer(size, size)
    schur = bb - tb.T @ inverse @ tb
    exact = bool(np.all(np.linalg.eigvalsh(schur) > NO_INFORMATION)) if len(schur) else True
    values, vectors = np.linalg.eigh(schur if exact else bb)
    # A direction without information (separation) has a huge variance, never none.
    spread = (vectors * (2.0 / np.maximum(values, NO_INFORMATION))) @ vectors.T
    return back @ spread @ back.T, exact


def wald_table(
    estimate: Array,
    se: Array,
    df: Array | None,
    *,
    level: float = 0.95,
    adjust: str = "none",
    family: Comparisons | None = None,
    null: Array | float = 0.0,
) -> pd.DataFrame:
    """Test statistics, p values and intervals (r, 7) for estimates that form one family; estimate, se and df are (r,)."""
    check_level(level)
    family = family or Comparisons()
    r = len(estimate)
    applied, note = suitable(adjust, r, family)
    dof = np.full(r, np.inf) if df is None else df
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (estimate - null) / se
    half = critical_values(level, np.where(np.isfinite(se), dof, np.nan), applied, family)
    table = pd.DataFrame(
        {
            "estimate": estimate,
            "se": se,
            "df": np.full(r, np.nan) if df is None else df,
            "statistic": statistic,
            "p": adjusted_p(np.asarray(statistic), dof, applied, family),
            "ci_low": estimate - half * se,
            "ci_high": estimate + half * se,
        }
    )
    table.attrs["adjustment"] = note or ("dunnett" if adjust == "dunnett" and applied == "mvt" else applied)
    return table


def coefficient_table(
    names: Sequence[str], beta: Array, vcov: Array, degrees: DegreesOfFreedom | None
) -> pd.DataFrame:
    """Table tests and 95 % intervals of the fixed effects, shape (p, 8): both from t where there are degrees of freedom."""
    df = degrees.df(np.eye(len(names)), vcov) if degrees is not None else None
    table = wald_table(beta, np.sqrt(np.diag(vcov)), df)
    table.insert(0, "term", list(names))
    return table[["term", "estimate", "se", "statistic", "df", "p", "ci_low", "ci_high"]]


def check_level(level: float) -> None:
    """Refuse a coverage that is none."""
    if not 0.0 < level < 1.0:
        raise UserError(f"level is {level:g}; a coverage lies between 0 and 1", mend="For example 0.95.")


def tested(
    degrees: DegreesOfFreedom | None,
    rows: Array,
    estimate: Array,
    vcov: Array,
    *,
    means: int | None = None,
    with_control: bool = False,
    **options: Unpack[Adjusting],
) -> pd.DataFrame:
    """Table (r, 7) of estimates whose derivatives by parameters of covariance ``vcov`` (p, p) are ``rows`` (r, p)."""
    covariance = rows @ vcov @ rows.T
    size = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        family = Comparisons(covariance / np.outer(size, size), means, with_control)
    se = np.sqrt(np.einsum("ri,ij,rj->r", rows, vcov, rows))
    df = degrees.df(rows, vcov) if degrees is not None else None
    return wald_table(estimate, se, df, family=family, **options)


def linear_contrasts(
    fit: Fit,
    rows: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    known: Array | float = 0.0,
    **options: Unpack[Testing],
) -> pd.DataFrame:
    """Estimate linear combinations L beta on the link scale.

    Parameters
    ----------
    rows : array_like, shape (r, p)
        The combinations, in the order of ``fit.fixed``.
    names : sequence of str, optional
        One name per row, put first in the table.
    known : float or ndarray, shape (r,)
        Added to the estimates, such as an offset.
    **options
        See ``Testing``: adjust, level, null, means, with_control.

    Returns
    -------
    DataFrame
        contrast, estimate, se, df, statistic, p, ci_low, ci_high. Intervals use the t distribution where there are
        degrees of freedom.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=float))
    beta = fit.fixed["estimate"].to_numpy()
    if matrix.shape[1] != len(beta):
        raise UserError(
            f"the contrast has {matrix.shape[1]} weights; the model has {len(beta)} fixed effects "
            f"({', '.join(fit.fixed['term'])})"
        )
    table = tested(fit.degrees, matrix, matrix @ beta + known, fit.vcov.to_numpy(), **options)
    labels = list(names) if names is not None else [f"L{i + 1}" for i in range(len(matrix))]
    if len(labels) != len(matrix):
        raise UserError(f"{len(labels)} names for {len(matrix)} contrasts", mend="Give one name per row.")
    table.insert(0, "contrast", labels)
    return table


def equivalence_tests(
    table: pd.DataFrame, bound: float | tuple[float, float], *, alpha: float = 0.05, adjust: str = "none"
) -> pd.DataFrame:
    """Test each estimate of a table of contrasts for lying within bounds.

    Parameters
    ----------
    table : DataFrame
        From ``Margins.pairs`` and its kin, or ``linear_contrasts``: estimate, se, df. Ratios are tested on the log scale.
    bound : float or (float, float)
        Largest negligible effect, in the units of the table: a difference d means -d to d, a ratio r means
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
    is_finite = np.isfinite(p)
    if is_finite.any():
        p[is_finite] = corrected(p[is_finite], adjust)
    half = stats.t.isf(alpha, df) * se
    ends = (estimate - half, estimate + half)
    labels = table[table.columns[: list(table.columns).index("estimate")]]
    tests = pd.DataFrame(
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
    result = pd.concat([labels, tests], axis=1)
    result.attrs = {"adjustment": adjust, "level": 1.0 - 2.0 * alpha, **({"scale": "ratio"} if ratio else {})}
    return result


def _bounds(bound: float | tuple[float, float], ratio: bool) -> tuple[float, float]:
    no_effect = 1.0 if ratio else 0.0
    if isinstance(bound, tuple):
        lower, upper = bound
    elif ratio:
        lower, upper = (1.0 / bound, bound) if bound > 0 else (np.nan, np.nan)
        lower, upper = min(lower, upper), max(lower, upper)
    else:
        lower, upper = -bound, bound
    inside = lower < no_effect < upper and (lower > 0 or not ratio)
    if not inside or not np.isfinite([lower, upper]).all():
        bound_text = f"{bound:g}" if isinstance(bound, int | float) else f"{bound[0]:g} to {bound[1]:g}"
        raise UserError(
            f"equivalence bound {bound_text}; bounds enclose {no_effect:g}, which is no effect",
            mend="Give the smallest ratio that matters, for example 1.25."
            if ratio
            else "Give the smallest difference that matters, in the table's units.",
        )
    return float(lower), float(upper)
