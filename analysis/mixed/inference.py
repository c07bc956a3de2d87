"""Standard errors, Wald tests and linear contrasts of the fixed effects.

Linear mixed models have the covariance of beta from the penalised least-squares problem and t tests with degrees of
freedom. Generalised ones have it from the Hessian over (theta, beta) jointly, which is lme4's default, and z tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import UserError

from .adjustments import Comparisons, adjusted_p, critical_values, suitable
from .degrees import DegreesOfFreedom, positive_inverse
from .result import Fit

Array = NDArray[np.float64]

NO_INFORMATION = 1e-10
"""Curvature in a direction of whitened beta (two where all is well) that says nothing about it."""


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
        One of ``adjustments.ADJUSTMENTS``. A single estimate is not adjusted.
    family : Comparisons, optional
        What ``tukey``, ``dunnett`` and ``mvt`` must know.
    null : float
        Value tested against.

    Returns
    -------
    DataFrame, shape (r, 7)
        estimate, se, df, statistic, p, ci_low, ci_high; ``attrs`` say the adjustment used and, where another was asked
        for, why.

    Raises
    ------
    UserError
        For an adjustment that does not exist or a level outside 0 to 1.
    """
    check_level(level)
    family = family or Comparisons()
    r = len(estimate)
    used, note = suitable(adjust, r, family)
    dof = np.full(r, np.inf) if df is None else df
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (estimate - null) / se
    half = critical_values(level, np.where(np.isfinite(se), dof, np.nan), used, family)
    table = pd.DataFrame(
        {
            "estimate": estimate,
            "se": se,
            "df": np.full(r, np.nan) if df is None else df,
            "statistic": statistic,
            "p": adjusted_p(np.asarray(statistic), dof, used, family),
            "ci_low": estimate - half * se,
            "ci_high": estimate + half * se,
        }
    )
    table.attrs["adjustment"] = note or ("dunnett" if adjust == "dunnett" and used == "mvt" else used)
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
    """Refuse a coverage that is none.

    Raises
    ------
    UserError
        If ``level`` does not lie between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise UserError(f"level is {level:g}; a coverage lies between 0 and 1", mend="For example 0.95.")


def correlation_of(rows: Array, vcov: Array) -> Array:
    """Correlation of ``rows @ beta``, shape (r, r); nan where a combination has no variance."""
    covariance = rows @ vcov @ rows.T
    size = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(covariance / np.outer(size, size))


def linear_contrasts(
    fit: Fit,
    rows: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    adjust: str = "none",
    level: float = 0.95,
    null: Array | float = 0.0,
    means: int | None = None,
    with_control: bool = False,
    known: Array | float = 0.0,
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
    adjust, level, null
        See ``wald_table``.
    means, with_control
        See ``Comparisons``.
    known : float or ndarray, shape (r,)
        Added to the estimates, such as an offset.

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
    family = Comparisons(correlation_of(matrix, vcov), means, with_control)
    table = wald_table(matrix @ beta + known, se, df, adjust=adjust, level=level, family=family, null=null)
    labels = list(names) if names is not None else [f"L{i + 1}" for i in range(len(matrix))]
    if len(labels) != len(matrix):
        raise UserError(f"{len(labels)} names for {len(matrix)} contrasts", mend="Give one name per row.")
    table.insert(0, "contrast", labels)
    return table
