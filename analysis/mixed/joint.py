"""Tests of several fixed effects at once, and the analysis-of-variance table of type III."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from stimuli.errors import UserError, unknown_name

from .coding import Coding
from .degrees import RESIDUAL, DegreesOfFreedom, FTest, f_tail
from .inference import coefficient_table
from .kenward_roger import kenward_roger
from .result import Fit
from .variables import Factor, Variable

Array = NDArray[np.float64]

METHODS = ("satterthwaite", "kenward-roger", "none")


def with_degrees(fit: Fit, method: str) -> Fit:
    """Give a linear mixed model's tests other degrees of freedom.

    Every table made from the result (fixed effects, contrasts, means, analysis of variance) uses them, and for
    ``kenward-roger`` the adjusted covariance of the fixed effects as well.

    Parameters
    ----------
    fit : Fit
        As ``fit()`` returned it.
    method : {'satterthwaite', 'kenward-roger', 'none'}
        ``none`` gives z tests.

    Returns
    -------
    Fit
        With ``fixed``, ``vcov`` and ``degrees`` replaced.

    Raises
    ------
    UserError
        For an unknown method, degrees of freedom for a generalised model, or Kenward-Roger after ML.
    """
    if method not in METHODS:
        raise unknown_name("method for degrees of freedom", method, METHODS)
    if fit.degrees is not None and fit.degrees.name not in {"Satterthwaite", RESIDUAL}:
        raise UserError(
            f"this fit already carries {fit.degrees.name} degrees of freedom and the covariance that goes with them",
            mend="Start from the fit that fit() returned.",
        )
    if method == "satterthwaite":
        if fit.degrees is None:
            raise UserError(
                f"Satterthwaite's degrees of freedom are for linear models; this one is {fit.family}, {fit.link} link",
                mend="Generalised models are tested by z; leave the method out.",
            )
        return fit
    degrees: DegreesOfFreedom | None = None
    vcov = fit.vcov.to_numpy()
    if method == "kenward-roger":
        adjusted = kenward_roger(fit)
        degrees, vcov = adjusted, adjusted.vcov
    names = list(fit.vcov.columns)
    return replace(
        fit,
        wald=partial(coefficient_table, names, fit.fixed["estimate"].to_numpy(dtype=float), vcov, degrees),
        vcov=pd.DataFrame(vcov, index=names, columns=names),
        degrees=degrees,
    )


def joint_test(fit: Fit, rows: ArrayLike) -> FTest:
    """Test that several linear combinations of the fixed effects are zero at once.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    rows : array_like, shape (r, p)
        The combinations; dependent ones are left out.

    Returns
    -------
    FTest
        F with the fit's degrees of freedom (Fai and Cornelius 1996 for Satterthwaite's); without any, Wald's chi-squared
        over its degrees of freedom.

    Raises
    ------
    UserError
        If the rows have another width than the fixed effects, or are all zero.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=float))
    beta = fit.fixed["estimate"].to_numpy(dtype=float)
    if matrix.shape[1] != len(beta):
        raise UserError(f"the rows have {matrix.shape[1]} weights; the model has {len(beta)} fixed effects")
    matrix = _independent(matrix)
    if not len(matrix):
        raise UserError("all rows are zero; there is nothing to test")
    vcov = fit.vcov.to_numpy()
    estimate = matrix @ beta
    if fit.degrees is not None:
        return fit.degrees.f_test(matrix, estimate, vcov)
    wald = float(estimate @ np.linalg.solve(matrix @ vcov @ matrix.T, estimate))
    return f_tail(wald / len(matrix), len(matrix), np.inf)


def anova(fit: Fit) -> pd.DataFrame:
    """Test every term of the fixed part given all others (type III, as lmerTest and SAS).

    A term's hypothesis is that its coefficients vanish when all factors are sum-coded, so main effects are averages over
    the levels of the other factors, whatever the contrasts of the fit; covariates count at zero. Where cells are empty a
    term that is part of no other is tested on the contrasts that the data can tell; another whose averages run over an
    empty cell has no such hypothesis and is nan (SAS and lmerTest put one of their own in its place).

    Returns
    -------
    DataFrame
        term, numerator, denominator, statistic (F), p; denominator infinite where the fit has no degrees of freedom.
        ``attrs['untold']`` names the terms without a test.

    Raises
    ------
    UserError
        If the model's contrasts are fewer than its factors' levels less one.
    """
    matrices = fit.model.matrices
    design = matrices.design
    coded = replace(
        design,
        variables=tuple(
            replace(v, contrast=Coding("sum")) if isinstance(v, Factor) else v for v in design.variables
        ),
    )
    whole = coded.matrix(fit.model.frame.data)
    if whole.shape[1] != matrices.x.shape[1] + len(matrices.dropped):
        raise UserError(
            "type III tests need as many contrasts as a factor has levels less one",
            mend="Test the contrasts of the model with joint_test.",
        )
    # beta under sum coding = (X_sum^+ X) beta.
    to_sum = np.linalg.lstsq(whole, matrices.x, rcond=None)[0]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(whole, mode="r"))
    untellable = axes[int(np.sum(sizes > 1e-9 * sizes[0])) :]
    rows: list[tuple[str, int, float, float, float]] = []
    untold = []
    at = int(design.terms.intercept)
    for t, term in enumerate(design.terms.terms):
        basis: Array = np.ones((1, 1))
        for v in sorted(term):
            # The earlier variable's columns run fastest.
            basis = np.asarray(np.kron(_basis(design.variables[v], (t, v) in design.full), basis))
        width = len(basis)
        label = ":".join(design.variables[v].label for v in sorted(term))
        alone = not any(term < other for other in design.terms.terms)
        told = _tellable(basis, untellable[:, at : at + width], partly=alone)
        if len(told):
            test = joint_test(fit, told @ to_sum[at : at + width])
            rows.append((label, test.numerator, test.denominator, test.statistic, test.p))
        else:
            untold.append(label)
            rows.append((label, 0, np.nan, np.nan, np.nan))
        at += width
    table = pd.DataFrame(rows, columns=["term", "numerator", "denominator", "statistic", "p"])
    table.attrs["untold"] = untold
    return table


def _tellable(basis: Array, untellable: Array, *, partly: bool) -> Array:
    """Keep the hypotheses that do not change along directions of which the data say nothing.

    Parameters
    ----------
    basis : ndarray, shape (q, c)
        Hypotheses about a term's c coefficients.
    untellable : ndarray, shape (d, c)
        Those directions, as far as they move these coefficients.
    partly : bool
        Whether a part of the hypotheses may be tested.
    """
    shift = basis @ untellable.T
    if np.abs(shift).max(initial=0.0) < 1e-8:
        return basis
    if not partly:
        return basis[:0]
    return np.asarray(linalg.null_space(shift.T, rcond=1e-8).T @ basis)


def _basis(variable: Variable, full: bool) -> Array:
    """Rows that take sum-coded coefficients to differences from the first level, the basis that lmerTest uses.

    Fai and Cornelius' degrees of freedom depend, slightly, on the basis of a hypothesis.
    """
    if not isinstance(variable, Factor):
        return np.eye(len(variable.suffixes))
    if full:
        return np.eye(len(variable.levels))
    count = len(variable.levels) - 1
    every_level = np.vstack([np.eye(count), -np.ones((1, count))])
    return np.asarray(every_level[1:] - every_level[0])


def _independent(rows: Array) -> Array:
    """Keep rows that others do not explain."""
    size = np.abs(rows).max(initial=0.0)
    if size == 0.0:
        return rows[:0]
    _, r, order = linalg.qr(
        (np.where(np.abs(rows) < 1e-9 * size, 0.0, rows)).T, mode="economic", pivoting=True
    )
    pivots = np.abs(np.diag(r))
    rank = int(np.sum(pivots > 1e-9 * pivots[0]))
    return np.asarray(rows[np.sort(order[:rank])])
