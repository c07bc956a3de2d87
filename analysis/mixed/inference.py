"""Standard errors, degrees of freedom, tests and linear contrasts.

Linear mixed models: covariance of beta from the penalised least-squares problem, degrees of freedom by Satterthwaite as
Kuznetsova et al. (2017) compute them. Generalised ones: covariance from the Hessian over (theta, beta) jointly, which
is lme4's default, and z tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from stimuli.errors import UserError, unknown_name

from .linear import LinearDeviance
from .optimise import STEP, differences

if TYPE_CHECKING:
    from .result import Fit

Array = NDArray[np.float64]

NO_INFORMATION = 1e-10
"""Curvature in a direction of whitened beta (two where all is well) that says nothing about it."""

ADJUSTMENTS = {
    "none": None,
    "holm": "holm",
    "bonferroni": "bonferroni",
    "BH": "fdr_bh",
    "sidak": "sidak",
    "tukey": None,
}
"""Corrections for several comparisons, under emmeans' names; the values are statsmodels'."""


class DegreesOfFreedom(Protocol):
    """A way to give linear contrasts of the fixed effects their degrees of freedom."""

    @property
    def name(self) -> str:
        """Whose method it is, as tables say it."""

    def df(self, rows: Array, vcov: Array) -> Array:
        """Degrees of freedom of each row of an (r, p) contrast matrix, shape (r,)."""


@dataclass(frozen=True)
class Satterthwaite:
    """What degrees of freedom of a linear contrast need.

    Attributes
    ----------
    slopes : ndarray, shape (d, p, p)
        Derivatives of vcov(beta) with respect to (theta, log sigma^2).
    covariance : ndarray, shape (d, d)
        Asymptotic covariance of those parameters.
    """

    slopes: Array
    covariance: Array
    name: str = "Satterthwaite"

    def df(self, rows: Array, vcov: Array) -> Array:
        """Degrees of freedom of each row of an (r, p) contrast matrix, shape (r,)."""
        variance = np.einsum("ri,ij,rj->r", rows, vcov, rows)
        gradient = np.einsum("ri,dij,rj->rd", rows, self.slopes, rows)
        spread = np.einsum("rd,de,re->r", gradient, self.covariance, gradient)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2.0 * variance**2 / spread)


def satterthwaite(model: LinearDeviance, theta: Array) -> Satterthwaite:
    """Differentiate the unprofiled deviance and vcov(beta) at the optimum.

    Parameters
    ----------
    model : LinearDeviance
        The model.
    theta : ndarray, shape (k,)
        Estimated relative covariance parameters.
    """
    point = model.at(theta)
    scales = model.covariance.scales()
    sigma2 = point.rss / model.df
    vcov = model.sigma(point) ** 2 * model.variance(point)

    def both(at: Array) -> Array:
        there = model.at(at)
        slope = there.logdet_slope + there.rss_slope / sigma2
        return np.concatenate([slope, (model.sigma(point) ** 2 * model.variance(there)).ravel()])

    moved = differences(both, theta, STEP * scales)
    k, p = len(theta), model.p
    hessian = np.empty((k + 1, k + 1))
    hessian[:k, :k] = (moved[:, :k] + moved[:, :k].T) / 2.0
    hessian[:k, k] = hessian[k, :k] = -point.rss_slope / sigma2
    hessian[k, k] = model.df
    slopes = np.concatenate([moved[:, k:].reshape(k, p, p), vcov[None]])
    unit = np.append(scales, 1.0)
    scaled = _positive_inverse(hessian * np.outer(unit, unit))
    return Satterthwaite(slopes, 2.0 * scaled * np.outer(unit, unit))


def _positive_inverse(matrix: Array, share: float = 1e-8) -> Array:
    """Invert over the directions with positive curvature; a variance at zero leaves a flat one."""
    values, vectors = np.linalg.eigh(matrix)
    good = values > share * max(float(values[-1]), 0.0)
    return np.asarray((vectors[:, good] / values[good]) @ vectors[:, good].T)


def laplace_vcov(hessian: Array, n_theta: int, back: Array) -> tuple[Array, bool]:
    """Covariance of the fixed effects from the joint Hessian of the Laplace deviance.

    Parameters
    ----------
    hessian : ndarray, shape (k + p, k + p)
        Second derivatives with respect to (theta, whitened beta).
    n_theta : int
        k.
    back : ndarray, shape (p, p)
        Takes whitened coefficients to those of X.

    Returns
    -------
    vcov : ndarray, shape (p, p)
    exact : bool
        False when the joint Hessian was not positive definite and that of beta alone was used.
    """
    k = n_theta
    tt, tb, bb = hessian[:k, :k], hessian[:k, k:], hessian[k:, k:]
    size = np.sqrt(np.maximum(np.diag(tt), 1e-300))
    inverse = _positive_inverse(tt / np.outer(size, size), 1e-6) / np.outer(size, size)
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
    family_size: int | None = None,
    null: Array | float = 0.0,
) -> pd.DataFrame:
    """Test statistics, p values and intervals for estimates that form one family.

    Parameters
    ----------
    estimate, se : ndarray, shape (r,)
        On the scale tested.
    df : ndarray, shape (r,), or None
        None for z tests.
    level : float
        Coverage; intervals follow the adjustment as in emmeans (Bonferroni's for Holm and BH).
    adjust : str
        A key of ``ADJUSTMENTS``.
    family_size : int, optional
        Number of means compared, which ``tukey`` needs.
    null : float
        Value tested against.

    Returns
    -------
    DataFrame, shape (r, 7)
        estimate, se, df, statistic, p, ci_low, ci_high.
    """
    if adjust not in ADJUSTMENTS:
        raise unknown_name("adjustment", adjust, ADJUSTMENTS)
    r = len(estimate)
    dof = np.full(r, np.inf) if df is None else df
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (estimate - null) / se
    p: Array = np.asarray(2.0 * stats.t.sf(np.abs(statistic), dof))
    tail = (1.0 - level) / 2.0
    if adjust == "tukey":
        if family_size is None:
            raise UserError("adjustment 'tukey' is for all pairs of a set of means", mend="Use holm.")
        p = np.asarray(stats.studentized_range.sf(np.abs(statistic) * np.sqrt(2.0), family_size, dof))
        half = np.array([stats.studentized_range.ppf(level, family_size, d) for d in dof]) / np.sqrt(2.0)
    else:
        method = ADJUSTMENTS[adjust]
        finite = np.isfinite(p)
        if method is not None and finite.any():
            p = p.copy()
            p[finite] = multipletests(p[finite], method=method)[1]
        if adjust == "sidak":
            tail = (1.0 - level ** (1.0 / r)) / 2.0
        elif adjust != "none":
            tail /= r
        half = stats.t.isf(tail, dof)
    return pd.DataFrame(
        {
            "estimate": estimate,
            "se": se,
            "df": np.full(r, np.nan) if df is None else df,
            "statistic": statistic,
            "p": p,
            "ci_low": estimate - half * se,
            "ci_high": estimate + half * se,
        }
    )


def linear_contrasts(
    fit: Fit,
    rows: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    adjust: str = "none",
    level: float = 0.95,
    family_size: int | None = None,
) -> pd.DataFrame:
    """Estimate linear combinations L beta on the link scale.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    rows : array_like, shape (r, p)
        The combinations, in the order of ``fit.fixed``.
    names : sequence of str, optional
        One name per row, put first in the table.
    adjust, level, family_size
        See ``wald_table``.

    Returns
    -------
    DataFrame
        contrast, estimate, se, df, statistic, p, ci_low, ci_high. Intervals use the t distribution where there are
        degrees of freedom.

    Raises
    ------
    UserError
        If the rows have another width than the fixed effects.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=float))
    beta = fit.fixed["estimate"].to_numpy()
    if matrix.shape[1] != len(beta):
        raise UserError(
            f"the contrast has {matrix.shape[1]} weights; the model has {len(beta)} fixed effects "
            f"({', '.join(fit.fixed['term'])})"
        )
    vcov = fit.vcov.to_numpy()
    se = np.sqrt(np.einsum("ri,ij,rj->r", matrix, vcov, matrix))
    df = fit.degrees.df(matrix, vcov) if fit.degrees is not None else None
    table = wald_table(matrix @ beta, se, df, adjust=adjust, level=level, family_size=family_size)
    labels = list(names) if names is not None else [f"L{i + 1}" for i in range(len(matrix))]
    table.insert(0, "contrast", labels)
    return table


@dataclass(frozen=True)
class LikelihoodRatio:
    """A comparison of two nested models.

    Attributes
    ----------
    statistic : float
        Twice the difference in log-likelihood.
    df : int
        Difference in parameters.
    p : float
        From the chi-squared distribution.
    boundary : bool
        The models differ by random-effects parameters, so the true p is smaller; ``p_boundary`` halves it where they
        differ by exactly one variance.
    p_boundary : float or None
        p / 2 for one variance tested at zero (Self and Liang 1987), else None.
    """

    statistic: float
    df: int
    p: float
    boundary: bool
    p_boundary: float | None


def likelihood_ratio_test(smaller: Fit, larger: Fit) -> LikelihoodRatio:
    """Compare two nested models fitted to the same rows.

    Raises
    ------
    UserError
        If the models were not fitted to the same data and family, have the same number of parameters, or are REML fits
        with different fixed effects, whose likelihoods cannot be compared.
    """
    if smaller.n_parameters > larger.n_parameters:
        smaller, larger = larger, smaller
    same_rows = smaller.nobs == larger.nobs and np.array_equal(smaller.rows, larger.rows)
    same_response = same_rows and np.allclose(smaller.model.frame.y, larger.model.frame.y)
    if (smaller.family, smaller.link) != (larger.family, larger.link) or not same_response:
        raise UserError(
            f"the models were fitted to different data or families ({smaller.nobs} and {larger.nobs} rows)",
            mend="Leave out the rows that either drops, and fit both again.",
        )
    if smaller.method != larger.method:
        raise UserError(f"one model was fitted by {smaller.method}, the other by {larger.method}")
    same_fixed = list(smaller.fixed["term"]) == list(larger.fixed["term"])
    if smaller.method == "REML" and not same_fixed:
        raise UserError(
            "REML likelihoods of models with different fixed effects cannot be compared",
            mend="Fit both with reml=False.",
        )
    df = larger.n_parameters - smaller.n_parameters
    if df == 0:
        raise UserError(f"both models have {larger.n_parameters} parameters; one must be nested in the other")
    statistic = max(2.0 * (larger.loglik - smaller.loglik), 0.0)
    p = float(stats.chi2.sf(statistic, df))
    random = larger.n_parameters - len(larger.fixed) != smaller.n_parameters - len(smaller.fixed)
    return LikelihoodRatio(statistic, df, p, random, p / 2.0 if random and same_fixed and df == 1 else None)
