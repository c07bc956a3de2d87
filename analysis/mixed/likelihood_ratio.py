"""Likelihood-ratio tests of nested models, corrected where a variance is tested at the edge of its range.

A variance cannot be negative, so under the hypothesis that it is zero the statistic follows a mixture of chi-squared
distributions (Self and Liang 1987): adding one random effect to a term that has q of them, q covariances with it, gives
half chi-squared(q) and half chi-squared(q + 1) (Stram and Lee 1994). The plain p value is too large there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from stimuli.errors import UserError

from .result import Fit

OUTSIDE = 1e-6
"""Part of a column, relative to its size, that may lie outside the larger model's columns."""

FALL = 1e-3
"""Fall of the deviance that is rounding where two models fit alike."""

Block = tuple[str, frozenset[str]]


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
        From the chi-squared distribution; what R's ``anova`` prints.
    boundary : bool
        The models differ by a variance or more, so the true p is smaller.
    mixture : tuple of int, or None
        Degrees of freedom of the two chi-squared distributions that the statistic follows in equal parts, where the
        models differ by exactly one variance and its covariances.
    p_boundary : float or None
        p from that mixture.
    """

    statistic: float
    df: int
    p: float
    boundary: bool
    mixture: tuple[int, int] | None = None
    p_boundary: float | None = None

    def sentence(self) -> str:
        """Say the test, and what its p value takes into account."""
        said = f"chi-squared({self.df}) = {self.statistic:.3f}, p = {self.p:.4g}"
        if not self.boundary:
            return said
        if self.mixture is None or self.p_boundary is None:
            return (
                f"{said}; variances are tested at zero, the edge of their range, where this p is too large "
                "(the test is conservative)"
            )
        low, high = self.mixture
        return (
            f"{said}; a variance is tested at zero, the edge of its range, so the statistic follows half "
            f"chi-squared({low}) and half chi-squared({high}): p = {self.p_boundary:.4g}"
        )


def likelihood_ratio_test(smaller: Fit, larger: Fit) -> LikelihoodRatio:
    """Compare two nested models fitted to the same rows.

    Raises
    ------
    UserError
        If the models were not fitted to the same data and family or not by maximum likelihood, are not nested, have the
        same number of parameters, or are REML fits with different fixed effects, whose likelihoods cannot be compared.
    """
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
    _refuse_unnested_columns(smaller, larger)
    _refuse_unnested_terms(smaller, larger)
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
        return LikelihoodRatio(statistic, df, p, _variances(larger) != _variances(smaller))
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
    for one in (smaller, larger):
        if not one.model.maximises_likelihood:
            raise UserError(
                f"a fit by {one.method} did not maximise a likelihood, so no ratio can be tested",
                mend="Fit both without the penalty, by --dispersion ml (dispersion='ml' in Python).",
            )
    if smaller.method != larger.method:
        raise UserError(
            f"one model was fitted by {smaller.method}, the other by {larger.method}",
            mend="Fit both by maximum likelihood (--ml; reml=False in Python), with the same settings.",
        )


def _refuse_unnested_columns(smaller: Fit, larger: Fit) -> None:
    small, large = smaller.model.matrices, larger.model.matrices
    basis = np.linalg.qr(large.x)[0]
    rest = small.x - basis @ (basis.T @ small.x)
    outside = np.linalg.norm(rest, axis=0) > OUTSIDE * np.linalg.norm(small.x, axis=0)
    if outside.any():
        names = [name for name, out in zip(small.names, outside, strict=True) if out]
        raise UserError(
            f"the models are not nested: {', '.join(names)} of the smaller one is no part of the larger one",
            mend="Compare models of which one has all terms of the other.",
        )


def _refuse_unnested_terms(smaller: Fit, larger: Fit) -> None:
    """Refuse random terms whose columns no single term of the larger model holds: their covariances are none of its own."""
    for group, name, columns in _columns_by_term(smaller):
        spans = [other for held, _, other in _columns_by_term(larger) if _same_groups(held, group)]
        for span in spans:
            basis = np.linalg.qr(span)[0]
            rest = columns - basis @ (basis.T @ columns)
            if (np.linalg.norm(rest, axis=0) <= OUTSIDE * np.linalg.norm(columns, axis=0)).all():
                break
        else:
            raise UserError(
                f"the models are not nested: no random term of the larger one holds ({name}) of the smaller one",
                mend="Compare models of which one has all terms of the other, or compare them by AIC or BIC.",
            )


def _columns_by_term(fit: Fit) -> list[tuple[NDArray[np.intp], str, NDArray[np.float64]]]:
    """Per random term its levels by row (n,), what it is called, and its columns (n, k)."""
    matrices = fit.model.matrices
    return [
        (
            matrices.effects[term.factor].codes,
            f"{' + '.join(term.names)} | {matrices.groupings[term.factor].name}",
            matrices.effects[term.factor].columns[:, term.at : term.at + term.width],
        )
        for term in matrices.covariance.terms
    ]


def _same_groups(one: NDArray[np.intp], other: NDArray[np.intp]) -> bool:
    pairs = len(np.unique(one.astype(np.int64) * (int(other.max()) + 1) + other))
    return pairs == int(one.max()) + 1 == int(other.max()) + 1


def _blocks(fit: Fit) -> Counter[Block]:
    matrices = fit.model.matrices
    terms = matrices.covariance.terms
    return Counter((matrices.groupings[t.factor].name, frozenset(t.names)) for t in terms)


def _variances(fit: Fit) -> int:
    return sum(t.width for t in fit.model.matrices.covariance.terms)


def _covariances_of_one_new_variance(smaller: Fit, larger: Fit) -> int | None:
    """Count the covariances that come with one new random effect; None if the models differ in another way."""
    few, many = _blocks(smaller), _blocks(larger)
    gone, new = list((few - many).elements()), list((many - few).elements())
    if len(new) != 1 or len(gone) > 1:
        return None
    group, columns = new[0]
    if not gone:
        return 0 if len(columns) == 1 else None
    held_group, held = gone[0]
    return len(held) if group == held_group and held < columns and len(columns - held) == 1 else None
