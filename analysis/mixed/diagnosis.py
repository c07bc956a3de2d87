"""What a fit should confess: singular terms, no convergence, separation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .families import Family
from .frame import Frame
from .matrices import Matrices
from .optimise import Optimum
from .result import Model
from .variables import Factor

Array = NDArray[np.float64]

HUGE_SE = 10.0
"""Standard error, for a column of unit size, that points to separation on a logit, probit or log scale."""

POISSON_LIKE = 1e4
"""Theta beyond which a negative binomial is as good as Poisson."""

APPROXIMATE = "standard errors are approximate: the Hessian is not positive definite"
"""What a fit notes where its Hessian gives no covariance of the fixed effects."""


def singular_terms(matrices: Matrices, theta: Array) -> list[str]:
    """Describe the random terms whose covariance is singular, each with the next simpler term to try."""
    found = []
    for label, term in zip(matrices.labels, matrices.covariance.terms, strict=True):
        if not term.is_singular(theta):
            continue
        columns = ", ".join(term.names)
        if term.width == 1:
            found.append(
                f"boundary (singular) fit: the variance of {columns} by {label} is near zero; "
                "the model without this term fits as well"
            )
        else:
            lost = "; ".join(term.lost(theta)) or "a variance near zero, or a correlation near 1 or -1"
            found.append(
                f"boundary (singular) fit: the covariance of {columns} by {label} has lost a dimension ({lost}); "
                "consider the term without correlations (||) or with fewer slopes"
            )
    return found


def convergence_note(optimum: Optimum) -> str | None:
    """Say why an optimum is none, or None when it is one."""
    if optimum.converged:
        return None
    if not np.isfinite(optimum.value):
        return "failed to converge: the likelihood could not be computed; do not use these estimates"
    if optimum.lowest <= -1e-4:
        return (
            "failed to converge: the likelihood still rises in some direction "
            f"(smallest curvature {optimum.lowest:.1e} of the largest); do not use these estimates"
        )
    return (
        "failed to converge: a Newton step would still change the deviance by about "
        f"{optimum.decrement:.1e}; do not trust the last digits"
    )


def criterion_notes(model: Model, dispersion: float) -> list[str]:
    """Say what a reader of the numbers must know about how they were computed.

    Parameters
    ----------
    model : Model
        What was fitted.
    dispersion : float
        Estimated phi or theta.
    """
    notes = []
    family, criterion = model.family, model.criterion
    if criterion.penalty is not None:
        notes.append(
            f"penalised fit: {criterion.penalty}; the log-likelihood is that of the data alone, and likelihood-ratio tests "
            "and information criteria do not hold for it"
        )
    if criterion.dispersion == "glmer":
        notes.append(
            "dispersion as in lme4's glmer, whose criterion is no likelihood: it leaves phi out of the penalty on the random "
            "effects, so that variances and standard errors depend on the unit of the response; prefer dispersion = 'ml'"
        )
    elif family.dispersion == "phi":
        notes.append(
            f"phi is estimated by maximum likelihood, as in glmmTMB; lme4's glmer gives other numbers for {family.name}, "
            "since its criterion is no likelihood"
            + (" (dispersion = 'glmer' shows them)" if family.positive else "")
            if model.formula.random
            else "phi is estimated by maximum likelihood, as in glmmTMB; R's glm takes it from Pearson's statistic"
        )
    if family.dispersion == "theta" and dispersion > POISSON_LIKE:
        notes.append(
            f"theta is {dispersion:.2g}: the counts vary no more than Poisson counts; the poisson family fits as well"
        )
    if family.dispersion == "precision" and dispersion > POISSON_LIKE:
        notes.append(
            f"the precision is {dispersion:.2g}: the counts vary no more than binomial counts; the binomial family fits as well"
        )
    guess = model.link.guess
    mean = float(np.average(model.frame.y, weights=model.frame.weights))
    if guess and mean <= guess:
        notes.append(
            f"the mean response {mean:.3g} does not exceed the guess rate {guess:g}; the link can hardly place it, and its "
            "coefficients say little"
        )
    return notes


def separation_notes(
    frame: Frame,
    matrices: Matrices,
    family: Family,
    estimates: Array,
    se: Array,
    theta: Array,
) -> list[str]:
    """Point out factor cells without variation and estimates that run away.

    Parameters
    ----------
    estimates, se : ndarray, shape (p,)
        Fixed effects and their standard errors.
    theta : ndarray, shape (k,)
        Relative covariance parameters, for unit-size columns.
    """
    # Times and amounts do not separate; counts and answers do.
    if family.has_scale or family.dispersion in {"phi", "shape"}:
        return []
    spreads = [
        (label, term.names, np.sqrt(np.sum(term.template(theta) ** 2, axis=1)))
        for label, term in zip(matrices.labels, matrices.covariance.terms, strict=True)
    ]
    notes = _uniform_cells(frame, matrices, family)
    size = np.sqrt(np.mean(matrices.x**2, axis=0))
    for label, names, sizes in spreads:
        wild = [f"{name} ({sd:.3g})" for name, sd in zip(names, sizes, strict=True) if sd > HUGE_SE]
        if wild:
            notes.append(
                f"possible separation: the standard deviation of {', '.join(wild)} by {label} runs away"
            )
    runaway = [
        name
        for name, value, scale, error in zip(matrices.names, estimates, size, se, strict=True)
        if not np.isfinite(error) or (error * scale > HUGE_SE and abs(value) < 2.0 * error)
    ]
    if runaway:
        notes.append(
            f"possible separation: the standard error of {', '.join(runaway)} is so large that the estimate says nothing"
        )
    return notes


def _uniform_cells(frame: Frame, matrices: Matrices, family: Family) -> list[str]:
    design = matrices.design
    groups: list[tuple[int, ...]] = []
    for term in sorted(design.terms.terms, key=len, reverse=True):
        inside = tuple(sorted(v for v in term if isinstance(design.variables[v], Factor)))
        if inside and not any(set(inside) <= set(g) for g in groups):
            groups.append(inside)
    notes = []
    for group in groups:
        factors = [v for v in (design.variables[i] for i in group) if isinstance(v, Factor)]
        shape = tuple(len(f.levels) for f in factors)
        cell = np.ravel_multi_index(tuple(f.codes(frame.data) for f in factors), shape)
        trials = np.bincount(cell, frame.weights)
        success = np.bincount(cell, frame.weights * frame.y)
        ends = frame.categories or ("failure", "success")
        top = len(ends) - 1
        bounded = family.takes_trials or family.name == "ordinal"
        full = (success == top * trials) if bounded else np.zeros(len(trials), dtype=bool)
        for at in np.flatnonzero((trials > 0) & ((success == 0) | full)):
            levels = zip(factors, np.unravel_index(at, shape), strict=True)
            where = ", ".join(f"{f.label} = {f.levels[int(c)]}" for f, c in levels)
            value = f"a {ends[-1] if full[at] else ends[0]}" if bounded else "zero"
            value = value.removeprefix("a ") if frame.categories else value
            notes.append(f"possible separation: every response with {where} is {value} (n = {trials[at]:g})")
    return notes
