"""Tests of hypotheses: F tests of several fixed effects, the type III table, and likelihood-ratio tests of nested models.

Kenward and Roger's covariance is for linear models fitted by REML. With V = sum_r gamma_r G_r, linear in the variances and
covariances gamma, and Phi = (X' V^-1 X)^-1 (Kenward and Roger 1997; Halekoh and Højsgaard 2014, whose pbkrtest this equals
but for prior weights, which here enter the residual part):

    P_r = -X' V^-1 G_r V^-1 X,   Q_rs = X' V^-1 G_r V^-1 G_s V^-1 X,
    W^-1 = I_rs = [tr(V^-1 G_r V^-1 G_s) - 2 tr(Phi Q_rs) + tr(Phi P_r Phi P_s)] / 2,
    Phi_A = Phi + 2 Phi [sum_rs W_rs (Q_rs - P_r Phi P_s)] Phi.

No matrix of rows by rows is formed: with K = Z' V^-1 Z (q x q) and C = Z' V^-1 X every product is a sum over blocks of levels.

A variance cannot be negative, so the likelihood-ratio statistic of a zero variance follows a mixture of chi-squared
distributions (Self and Liang 1987): adding one random effect to a term that has q of them, with q covariances, gives half
chi-squared(q) and half chi-squared(q + 1) (Stram and Lee 1994). The plain p value is too large there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import linalg, sparse, stats

from analysis.arrays import Array, Index, Mask
from analysis.mixed.degrees_of_freedom import RESIDUAL, DegreesOfFreedom, FTest, KenwardRoger, f_tail
from analysis.mixed.inference import coefficient_table
from analysis.mixed.result import Fit
from analysis.mixed.variables import Coding, Factor, Variable
from stimuli.errors import UserError, unknown_name

LARGEST = 8000
"""Random effects for which the dense q x q products are formed at most (half a gigabyte each)."""


def kenward_roger(fit: Fit) -> KenwardRoger:
    """Compute Kenward and Roger's adjustment of a fitted model.

    Parameters
    ----------
    fit : Fit
        A linear mixed model fitted by REML.
    """
    if not fit.model.family.has_scale:
        raise UserError(
            f"Kenward-Roger degrees of freedom are for gaussian models; this one is {fit.family}",
            mend="Generalised models are tested by z, likelihood ratios or the parametric bootstrap.",
        )
    if not fit.variance:
        raise UserError(
            "the model has no random effects, so its degrees of freedom are exact: rows less coefficients",
            mend="Leave Kenward-Roger out.",
        )
    if fit.method != "REML":
        raise UserError(
            "Kenward-Roger's adjustment is derived for REML estimates; the model was fitted by ML",
            mend="Fit with reml=True (--reml).",
        )
    effects = fit.model.matrices.effects
    q = sum(e.n_levels * e.width for e in effects)
    if q > LARGEST:
        raise UserError(
            f"Kenward-Roger's products of {q} random effects do not fit; at most {LARGEST} do",
            mend="With so many levels Satterthwaite's degrees of freedom say the same.",
        )
    # Products with V^-1, in units where V is the covariance of y.
    matrices, weights = fit.model.matrices, fit.model.frame.weights / fit.sigma**2
    z = sparse.csr_array(sparse.hstack([e.matrix(e.columns) for e in effects], format="csr"))
    lambdas = zip(effects, matrices.covariance.lambdas(fit.theta), strict=True)
    relative = sparse.block_diag(
        [sparse.kron(sparse.identity(e.n_levels), lam) for e, lam in lambdas], format="csr"
    )
    factor = fit.sigma * relative
    wz = z.multiply(weights[:, None]).tocsr()
    a = (z.T @ wz).toarray()
    h = factor.T @ (factor.T @ a).T
    h.flat[:: len(h) + 1] += 1.0
    lower = linalg.cholesky(h, lower=True, overwrite_a=True, check_finite=False)
    # M = Lambda H^-1 Lambda', so M A = half' half with half on the columns of Lambda.
    half = linalg.solve_triangular(lower, factor.T.toarray(), lower=True, check_finite=False)
    m = half.T @ half
    ma = m @ a
    n = np.eye(len(a)) - ma
    k = a @ n
    k = (k + k.T) / 2.0
    x, kn = matrices.x, k @ n
    rest = x - z @ (m @ (wz.T @ x))
    c = wz.T @ rest
    nc = n.T @ c
    gram = rest.T @ (weights[:, None] * rest)

    # Per variance or covariance its Z_a Z_b' and, for a covariance, the transpose too.
    starts = np.cumsum([0, *(e.n_levels * e.width for e in effects)])
    orders = []
    for term in matrices.covariance.terms:
        effect = effects[term.factor]
        base = starts[term.factor] + np.arange(effect.n_levels) * effect.width + term.at
        for i, j in zip(*np.tril_indices(term.width), strict=True):
            pair = base + i, base + j
            orders.append([pair] if i == j else [pair, pair[::-1]])
    phi = fit.vcov.to_numpy()
    d, p = len(orders) + 1, len(phi)
    slopes, second, traces = np.empty((d, p, p)), np.empty((d, d, p, p)), np.empty((d, d))
    for r, pairs_r in enumerate(orders):
        slopes[r] = -sum(c[a].T @ c[b] for a, b in pairs_r)
        second[r, -1] = sum(c[a].T @ nc[b] for a, b in pairs_r)
        second[-1, r] = second[r, -1].T
        traces[r, -1] = traces[-1, r] = sum(float(kn[a, b].sum()) for a, b in pairs_r)
        for s, pairs_s in enumerate(orders[: r + 1]):
            pairs = [(*left, *right) for left in pairs_r for right in pairs_s]
            second[r, s] = sum(c[a].T @ k[np.ix_(b, e)] @ c[f] for a, b, e, f in pairs)
            second[s, r] = second[r, s].T
            traces[r, s] = sum(float(np.sum(k[np.ix_(f, a)] * k[np.ix_(e, b)])) for a, b, e, f in pairs)
            traces[s, r] = traces[r, s]
    slopes[-1], second[-1, -1] = -gram, gram - c.T @ m @ c
    traces[-1, -1] = len(x) - 2.0 * float(np.trace(ma)) + float(np.sum(ma * ma.T))
    phi_slopes = phi @ slopes
    information = (
        traces
        - 2.0 * np.einsum("ij,rsij->rs", phi, second)
        + np.einsum("rij,sji->rs", phi_slopes, phi_slopes)
    )
    size = np.sqrt(np.abs(np.diag(information)))
    size[size == 0] = 1.0
    covariance = 2.0 * np.linalg.pinv(information / np.outer(size, size), rcond=1e-10, hermitian=True)
    covariance /= np.outer(size, size)
    inner = np.einsum("rs,rsij->ij", covariance, second) - np.einsum(
        "rs,rij,jk,skl->il", covariance, slopes, phi, slopes, optimize=True
    )
    adjusted = phi + 2.0 * phi @ inner @ phi
    return KenwardRoger((adjusted + adjusted.T) / 2.0, phi, slopes, covariance)


METHODS = ("satterthwaite", "kenward-roger", "none")


def with_degrees(fit: Fit, method: str) -> Fit:
    """Give a linear mixed model's tests other degrees of freedom.

    Every table made from the result (fixed effects, contrasts, means, analysis of variance) uses them, and for
    ``kenward-roger`` the adjusted covariance of the fixed effects as well.

    Parameters
    ----------
    method : {'satterthwaite', 'kenward-roger', 'none'}
        ``none`` gives z tests.

    Returns
    -------
    Fit
        With ``fixed``, ``vcov`` and ``degrees`` replaced.
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
    rows : array_like, shape (r, p)
        The combinations; dependent ones are left out.

    Returns
    -------
    FTest
        F with the fit's degrees of freedom (Fai and Cornelius 1996 for Satterthwaite's); without any, Wald's chi-squared
        over its degrees of freedom.
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
    empty cell has no such hypothesis and is nan (SAS and lmerTest substitute another).

    Returns
    -------
    DataFrame
        term, numerator, denominator, statistic (F), p; denominator infinite where the fit has no degrees of freedom.
        ``attrs['untold']`` names the terms without a test.
    """
    matrices = fit.model.matrices
    design = matrices.design
    coded = replace(
        design,
        variables=tuple(
            replace(v, contrast=Coding("sum")) if isinstance(v, Factor) else v for v in design.variables
        ),
    )
    coded_x = coded.matrix(fit.model.frame.data)
    if coded_x.shape[1] != matrices.x.shape[1] + len(matrices.dropped):
        raise UserError(
            "type III tests need as many contrasts as a factor has levels less one",
            mend="Test the contrasts of the model with joint_test.",
        )
    # beta under sum coding = (X_sum^+ X) beta.
    to_sum = np.linalg.lstsq(coded_x, matrices.x, rcond=None)[0]
    _, sizes, axes = np.linalg.svd(np.linalg.qr(coded_x, mode="r"))
    untellable = axes[int(np.sum(sizes > 1e-9 * sizes[0])) :]
    rows: list[tuple[str, int, float, float, float]] = []
    untestable = []
    start = int(design.terms.intercept)
    for t, term in enumerate(design.terms.terms):
        basis: Array = np.ones((1, 1))
        for v in sorted(term):
            # The earlier variable's columns run fastest.
            basis = np.asarray(np.kron(_basis(design.variables[v], (t, v) in design.full), basis))
        width = len(basis)
        label = ":".join(design.variables[v].label for v in sorted(term))
        is_maximal = not any(term < other for other in design.terms.terms)
        testable = _tellable(basis, untellable[:, start : start + width], partly=is_maximal)
        if len(testable):
            test = joint_test(fit, testable @ to_sum[start : start + width])
            rows.append((label, test.numerator, test.denominator, test.statistic, test.p))
        else:
            untestable.append(label)
            rows.append((label, 0, np.nan, np.nan, np.nan))
        start += width
    table = pd.DataFrame(rows, columns=["term", "numerator", "denominator", "statistic", "p"])
    table.attrs["untold"] = untestable
    return table


def _tellable(basis: Array, untellable: Array, *, partly: bool) -> Array:
    """Keep the hypotheses (q, c) that do not change along directions (d, c) of which the data say nothing."""
    shift = basis @ untellable.T
    if np.abs(shift).max(initial=0.0) < 1e-8:
        return basis
    if not partly:
        return basis[:0]
    return np.asarray(linalg.null_space(shift.T, rcond=1e-8).T @ basis)


def _basis(variable: Variable, full: bool) -> Array:
    """Rows that take sum-coded coefficients to differences from the first level, as lmerTest's, on which its df depend."""
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


OUTSIDE = 1e-6
"""Part of a column, relative to its size, that may lie outside the larger model's columns."""

FALL = 1e-3
"""Fall of the deviance that is rounding where two models fit alike."""


@dataclass(frozen=True)
class LikelihoodRatio:
    """A comparison of two nested models."""

    statistic: float  # twice the difference in log-likelihood
    df: int  # difference in parameters
    p: float  # from the chi-squared distribution; what R's ``anova`` prints
    boundary: bool  # the models differ by a variance or more, so the true p is smaller
    mixture: tuple[int, int] | None = None  # df of both halves, where exactly one variance is new
    p_boundary: float | None = None  # p from that mixture

    def sentence(self) -> str:
        """Describe the test, and what its p value takes into account."""
        test = f"chi-squared({self.df}) = {self.statistic:.3f}, p = {self.p:.4g}"
        if not self.boundary:
            return test
        if self.mixture is None or self.p_boundary is None:
            return (
                f"{test}; variances are tested at zero, the edge of their range, where this p is too large "
                "(the test is conservative)"
            )
        low, high = self.mixture
        return (
            f"{test}; a variance is tested at zero, the edge of its range, so the statistic follows half "
            f"chi-squared({low}) and half chi-squared({high}): p = {self.p_boundary:.4g}"
        )


def likelihood_ratio_test(smaller: Fit, larger: Fit) -> LikelihoodRatio:
    """Compare two nested models fitted to the same rows."""
    if smaller.n_parameters > larger.n_parameters:
        smaller, larger = larger, smaller
    _refuse_different_data(smaller, larger)
    same_fixed = list(smaller.fixed["term"]) == list(larger.fixed["term"])
    if smaller.method == "REML" and not same_fixed:
        raise UserError(
            "REML likelihoods of models with different fixed effects cannot be compared",
            mend="Fit both by maximum likelihood (--ml; reml=False in Python).",
        )
    df = larger.n_parameters - smaller.n_parameters
    if df == 0:
        raise UserError(
            f"both models have {larger.n_parameters} parameters; one must be nested in the other",
            mend="Compare them by AIC or BIC.",
        )
    _refuse_unnested(smaller, larger)
    rise = 2.0 * (larger.loglik - smaller.loglik)
    if rise < -FALL:
        raise UserError(
            f"the larger model's log-likelihood is {-rise / 2:.4g} below the smaller one's: one of them has not converged",
            mend="Look at the warnings of both fits.",
            exit_code=1,
        )
    statistic = max(float(rise), 0.0)
    p = float(stats.chi2.sf(statistic, df))
    covariances = _covariances_of_one_new_variance(smaller, larger)
    if covariances is None:
        larger_count, smaller_count = (
            sum(t.width for t in f.model.matrices.covariance.terms) for f in (larger, smaller)
        )
        return LikelihoodRatio(statistic, df, p, larger_count != smaller_count)
    low = len(larger.fixed) - len(smaller.fixed) + covariances
    nothing = 1.0 if statistic == 0.0 else 0.0
    parts = [float(stats.chi2.sf(statistic, k)) if k else nothing for k in (low, low + 1)]
    return LikelihoodRatio(statistic, df, p, True, (low, low + 1), sum(parts) / 2.0)


def _refuse_different_data(smaller: Fit, larger: Fit) -> None:
    same_rows = smaller.nobs == larger.nobs and np.array_equal(smaller.rows, larger.rows)
    ours, theirs = smaller.model.frame, larger.model.frame
    same_response = same_rows and all(
        np.allclose(a, b, rtol=1e-12, atol=0.0)
        for a, b in ((ours.y, theirs.y), (ours.weights, theirs.weights))
    )
    if same_response and not np.allclose(ours.offset, theirs.offset, rtol=1e-12, atol=1e-12):
        raise UserError(
            "the models have different offsets, and so neither is a part of the other",
            mend="Give both the same offset.",
        )
    if (smaller.family, smaller.link) != (larger.family, larger.link) or not same_response:
        raise UserError(
            f"the models were fitted to different data or families ({smaller.nobs} and {larger.nobs} rows)",
            mend="Leave out the rows that either drops, and fit both again.",
        )
    for fit in (smaller, larger):
        if not fit.model.maximises_likelihood:
            raise UserError(
                f"a fit by {fit.method} did not maximise a likelihood, so no ratio can be tested",
                mend="Fit both without the penalty, by --dispersion ml (dispersion='ml' in Python).",
            )
    if smaller.method != larger.method:
        raise UserError(
            f"one model was fitted by {smaller.method}, the other by {larger.method}",
            mend="Fit both by maximum likelihood (--ml; reml=False in Python), with the same settings.",
        )


def _outside(columns: Array, span: Array) -> Mask:
    """Return which columns (n, k) are no combinations of those of ``span`` (n, l)."""
    basis = np.linalg.qr(span)[0]
    rest = columns - basis @ (basis.T @ columns)
    return np.asarray(np.linalg.norm(rest, axis=0) > OUTSIDE * np.linalg.norm(columns, axis=0))


def _refuse_unnested(smaller: Fit, larger: Fit) -> None:
    """Refuse fixed columns that the larger model lacks, and random terms whose covariances no single term of it has."""
    small, large = smaller.model.matrices, larger.model.matrices
    outside = _outside(small.x, large.x)
    if outside.any():
        names = [name for name, is_outside in zip(small.names, outside, strict=True) if is_outside]
        raise UserError(
            f"the models are not nested: {', '.join(names)} of the smaller one is not part of the larger one",
            mend="Compare models of which one contains all terms of the other.",
        )
    larger_terms = [(large.effects[t.factor], t.columns) for t in large.covariance.terms]
    for term in small.covariance.terms:
        smaller_block = small.effects[term.factor]
        if not any(
            _same_groups(larger_block.codes, smaller_block.codes)
            and not _outside(smaller_block.columns[:, term.columns], larger_block.columns[:, columns]).any()
            for larger_block, columns in larger_terms
        ):
            name = f"{' + '.join(term.names)} | {small.groupings[term.factor].name}"
            raise UserError(
                f"the models are not nested: no random term of the larger one holds ({name}) of the smaller one",
                mend="Compare models of which one has all terms of the other, or compare them by AIC or BIC.",
            )


def _same_groups(index: Index, other: Index) -> bool:
    pairs = len(np.unique(index.astype(np.int64) * (int(other.max()) + 1) + other))
    return pairs == int(index.max()) + 1 == int(other.max()) + 1


def _blocks(fit: Fit) -> Counter[tuple[str, frozenset[str]]]:
    matrices = fit.model.matrices
    terms = matrices.covariance.terms
    return Counter((matrices.groupings[t.factor].name, frozenset(t.names)) for t in terms)


def _covariances_of_one_new_variance(smaller: Fit, larger: Fit) -> int | None:
    """Count the covariances that come with one new random effect; None if the models differ in another way."""
    smaller_blocks, larger_blocks = _blocks(smaller), _blocks(larger)
    removed, added = (
        list((smaller_blocks - larger_blocks).elements()),
        list((larger_blocks - smaller_blocks).elements()),
    )
    if len(added) != 1 or len(removed) > 1:
        return None
    group, columns = added[0]
    if not removed:
        return 0 if len(columns) == 1 else None
    old_group, old_columns = removed[0]
    return (
        len(old_columns)
        if group == old_group and old_columns < columns and len(columns - old_columns) == 1
        else None
    )
