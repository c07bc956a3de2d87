"""Fit a model: formula and data in, estimates, inference and warnings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import pandas as pd
from scipy import linalg
from threadpoolctl import ThreadpoolController

from analysis.arrays import Array
from analysis.mixed.blocks import EffectsLayout
from analysis.mixed.degrees_of_freedom import RESIDUAL, Satterthwaite
from analysis.mixed.deviance import LinearDeviance, ModeNotFound, in_units_of_residuals
from analysis.mixed.families import BOUNDED_LINKS, Family, choose_family
from analysis.mixed.formula import APPROXIMATE, Note, read_formula
from analysis.mixed.inference import coefficient_table, laplace_vcov
from analysis.mixed.matrices import Frame, Matrices, make_frame, make_matrices
from analysis.mixed.matrices import Vector as Column
from analysis.mixed.objective import choose_criterion, make_objective
from analysis.mixed.optimise import Optimum, finish, minimise
from analysis.mixed.responses import OrderedResponse, ProfiledResponse, Shape, Thresholds, TimeResponse
from analysis.mixed.result import Fit, Model, VarianceComponent
from analysis.mixed.variables import Factor, Given
from stimuli.errors import UserError, unknown_name

HUGE_SE = 10.0
"""Standard error, for a column of unit size, that points to separation on a logit, probit or log scale."""

POISSON_LIKE = 1e4
"""Theta beyond which a negative binomial is as good as Poisson."""


def singular_terms(matrices: Matrices, theta: Array) -> list[Note]:
    """Describe the random terms whose covariance is singular, each with the next simpler term to try."""
    notes = []
    for label, term in zip(matrices.labels, matrices.covariance.terms, strict=True):
        if not term.is_singular(theta):
            continue
        if term.width == 1:
            notes.append(Note("singular_variance", columns=term.names, group=label))
        else:
            lost = "; ".join(term.lost(theta)) or "a variance near zero, or a correlation near 1 or -1"
            notes.append(Note("singular_covariance", columns=term.names, group=label, lost=lost))
    return notes


def convergence_note(optimum: Optimum) -> list[Note]:
    """Explain why the search did not converge; empty if it did."""
    if optimum.converged:
        return []
    reason = (
        f"a Newton step would still change the deviance by about {optimum.decrement:.1e}; "
        "do not trust the last digits"
    )
    if not np.isfinite(optimum.value):
        reason = "the likelihood could not be computed; do not use these estimates"
    elif optimum.lowest <= -1e-4:
        reason = (
            "the likelihood still rises in some direction "
            f"(smallest curvature {optimum.lowest:.1e} of the largest); do not use these estimates"
        )
    return [Note("not_converged", why=reason)]


def criterion_notes(model: Model, dispersion: float) -> list[Note]:
    """Report what a reader of the numbers must know about how they were computed."""
    notes = []
    family, criterion = model.family, model.criterion
    if criterion.penalty is not None:
        notes.append(Note("penalised", penalty=criterion.penalty))
    if criterion.dispersion == "glmer":
        notes.append(Note("glmer_dispersion"))
    elif family.dispersion == "phi":
        elsewhere = "R's glm takes it from Pearson's statistic"
        if model.formula.random:
            elsewhere = (
                f"lme4's glmer gives other numbers for {family.name}, since its criterion is not a likelihood"
            )
            elsewhere += " (dispersion = 'glmer' shows them)" if family.positive else ""
        notes.append(Note("phi", elsewhere=elsewhere))
    simpler = {"theta": ("theta", "Poisson"), "precision": ("the precision", "binomial")}
    if family.dispersion in simpler and dispersion > POISSON_LIKE:
        parameter, limit = simpler[family.dispersion]
        notes.append(
            Note("simpler_counts", parameter=parameter, value=dispersion, family=limit, lower=limit.lower())
        )
    guess = model.link.guess
    mean = float(np.average(model.frame.y, weights=model.frame.weights))
    if guess and mean <= guess:
        notes.append(Note("below_guessing", mean=mean, guess=guess))
    return notes


def separation_notes(model: Model, theta: Array, beta: Array, vcov: Array) -> list[Note]:
    """Report factor cells without variation and estimates that diverge."""
    matrices, family = model.matrices, model.family
    # Times and amounts do not separate; counts and answers do.
    if family.has_scale or family.dispersion in {"phi", "shape"}:
        return []
    notes = _uniform_cells(model.frame, matrices, family)
    for label, term in zip(matrices.labels, matrices.covariance.terms, strict=True):
        sizes = np.sqrt(np.sum(term.template(theta) ** 2, axis=1))
        wild = {name: float(sd) for name, sd in zip(term.names, sizes, strict=True) if sd > HUGE_SE}
        if wild:
            notes.append(Note("variance_runs_away", sds=wild, group=label))
    size, se = np.sqrt(np.mean(matrices.x**2, axis=0)), np.sqrt(np.diag(vcov))
    runaway = tuple(
        name
        for name, value, scale, error in zip(matrices.names, beta, size, se, strict=True)
        if not np.isfinite(error) or (error * scale > HUGE_SE and abs(value) < 2.0 * error)
    )
    return [*notes, Note("large_se", terms=runaway)] if runaway else notes


def _uniform_cells(frame: Frame, matrices: Matrices, family: Family) -> list[Note]:
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
        for index in np.flatnonzero((trials > 0) & ((success == 0) | full)):
            levels = zip(factors, np.unravel_index(index, shape), strict=True)
            cell_label = ", ".join(f"{f.label} = {f.levels[int(c)]}" for f, c in levels)
            value = f"a {ends[-1] if full[index] else ends[0]}" if bounded else "zero"
            value = value.removeprefix("a ") if frame.categories else value
            notes.append(Note("uniform_cell", cell=cell_label, value=value, n=trials[index]))
    return notes


MANY = 100_000
"""Rows of a generalised model from which second derivatives come from differences to one side, at half the cost.

Their error is the third derivative times half a thousandth of a standard error: SEs of 200,000 rows and 13 random-effect
parameters differ from those of central differences by a share of 2e-7, those of 2,400 rows by 2e-6.
"""

SKETCHED = Note("sketch")


class EngineOptions(TypedDict, total=False):
    """The rarer options of :func:`fit`."""

    reml: bool
    weights: Column | None
    offset: Column | None
    levels: Mapping[str, Sequence[str]] | None
    contrasts: Mapping[str, Given] | None
    nagq: int
    information: str | None
    dispersion: str
    penalty: str | None


def fit(
    formula: str,
    data: pd.DataFrame,
    family: str = "gaussian",
    link: str | None = None,
    **options: Unpack[EngineOptions],
) -> Fit:
    """Fit a linear, generalised linear or ordinal model, mixed as lme4 and clmm do at tight control, or of fixed effects alone.

    Parameters
    ----------
    formula : str
        In lme4's spelling: ``y ~ a * b + (1 + a | participant) + (1 | item)``, or ``y ~ a`` without random effects.
    data : DataFrame, shape (rows, columns)
        One row per observation. Rows with missing values in the columns used are dropped and reported.
    family : str
        Distribution of the response, one of ``families.FAMILIES``.
    link : str, optional
        Default: the family's first in ``families.FAMILIES``; for forced choice ``guess(0.5)`` or ``guess(1/3, probit)``.
    **options
        Those of ``wrods.fit`` (docs/mixed-models.md explains each): reml, weights, offset, levels, contrasts, nagq,
        information, dispersion, penalty.

    Raises
    ------
    UserError
        For what the user can correct: formula, columns, levels, response, grouping factors, options not available.
    """
    return fit_model(make_model(formula, data, family, link, **options))


def make_model(
    formula: str,
    data: pd.DataFrame,
    family: str = "gaussian",
    link: str | None = None,
    **options: Unpack[EngineOptions],
) -> Model:
    """Read the formula and make the matrices: all of :func:`fit`, whose arguments these are, but the search."""
    for name in options:
        if name not in EngineOptions.__annotations__:
            raise unknown_name("option of fit()", name, EngineOptions.__annotations__)
    chosen, chosen_link = choose_family(family, link)
    parsed = read_formula(formula, [str(c) for c in data] if isinstance(data, pd.DataFrame) else None)
    criterion = choose_criterion(
        chosen,
        options.get("nagq", 1),
        options.get("information"),
        options.get("dispersion", "ml"),
        options.get("penalty"),
        is_mixed=bool(parsed.random),
    )
    vectors = {"weights": options.get("weights"), "offset": options.get("offset")}
    levels, contrasts = options.get("levels"), options.get("contrasts")
    frame = make_frame(parsed, data, chosen, **vectors, levels=levels, contrasts=contrasts)
    matrices = in_units_of_residuals(make_matrices(parsed, frame, chosen), frame, chosen, chosen_link)
    texts = {name: value for name, value in vectors.items() if isinstance(value, str)}
    return Model(
        parsed,
        frame,
        matrices,
        chosen,
        chosen_link,
        options.get("reml", True) and chosen.has_scale,
        texts.get("weights"),
        texts.get("offset"),
        tuple(name for name, value in vectors.items() if value is not None and name not in texts),
        criterion,
    )


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    """Find the BLAS libraries, once: the search takes as long as some fits."""
    return ThreadpoolController()


def fit_model(model: Model, *, is_sketch: bool = False) -> Fit:
    """Fit a model whose matrices are made, or refit it to a simulated response; for ``is_sketch`` see :func:`sketch`."""
    categories = model.frame.categories
    if len(np.unique(model.frame.y)) < len(categories):
        raise UserError(
            f"the response lacks one of its categories ({', '.join(categories)})",
            mend="Simulate again, or merge rare categories.",
        )
    # The matrices are small: several BLAS threads wait for each other more than they help, above all on a busy machine.
    with _threads().limit(limits=1, user_api="blas"):
        return _fit_linear(model) if model.family.has_scale else _fit_generalised(model, is_sketch)


def sketch(
    formula: str,
    data: pd.DataFrame,
    family: str = "gaussian",
    link: str | None = None,
    **options: Unpack[EngineOptions],
) -> Fit:
    """Fit as :func:`fit` does, but without second derivatives where a model is singular and will be simplified for that.

    A singular generalised fit that has converged by the average information has its standard errors from there, and one of its
    warnings notes this. All else is as in ``fit``; :func:`completed` adds the second derivatives.
    """
    return fit_model(make_model(formula, data, family, link, **options), is_sketch=True)


def completed(sketched: Fit) -> Fit:
    """Give a sketch its second derivatives, from where its search ended; any other fit comes back as it is."""
    if not sketched.is_sketch:
        return sketched
    with _threads().limit(limits=1, user_api="blas"):
        return _fit_generalised(sketched.model, end=sketched.end)


def _fit_linear(model: Model) -> Fit:
    objective = LinearDeviance(model.frame, model.matrices, model.reml)
    optimum = minimise(objective, model.matrices.covariance.start(), is_rough=True)
    point = objective.at(optimum.x)
    beta = objective.coefficients(point)
    effects = objective.effects(point, optimum.x)
    degrees = RESIDUAL if model.reml and not len(optimum.x) else "Satterthwaite"
    return _assemble(
        model,
        Estimates(optimum, beta, objective.sigma(point) ** 2 * objective.variance(point), effects),
        unit=objective.sigma(point),
        sigma=objective.sigma(point),
        theta=optimum.x,
        eta=model.frame.offset + model.matrices.x @ beta + objective.layout.times(effects),
        degrees=Satterthwaite(objective, optimum.x, degrees),
    )


def _fit_generalised(model: Model, is_sketch: bool = False, end: Array | None = None) -> Fit:
    """Search for the estimates; ``end`` is where a search ended before."""
    criterion = model.criterion
    objective = make_objective(model.frame, model.matrices, model.family, model.link, criterion)
    is_rough = len(model.frame.y) >= MANY
    if end is None:
        ends = []
        for start in objective.starts:
            objective.modes.forget()
            ends.append(
                minimise(
                    objective,
                    start,
                    is_rough=is_rough,
                    may_be_sketched=lambda x: (
                        is_sketch and bool(singular_terms(model.matrices, objective.split(x)[0]))
                    ),
                )
            )
        optimum = min(ends, key=lambda end: end.value)
        if optimum is not ends[-1]:
            objective.modes.forget()
    else:
        optimum = finish(objective, end, is_rough=is_rough)
    if not np.isfinite(optimum.value):
        raise UserError(
            "the likelihood cannot be computed anywhere near the start",
            mend="Look for extreme values of the response, the offset or the covariates"
            + (", or choose the log link." if model.link.name in BOUNDED_LINKS else "."),
            exit_code=1,
        )
    theta, _, beta = objective.split(optimum.x)
    try:
        point = objective.at(optimum.x)
    except (ModeNotFound, np.linalg.LinAlgError):
        # a neighbour's mode can be too far to begin from
        objective.modes.forget()
        point = objective.at(optimum.x)
    response, cuts, shape = point.response, None, None
    n_theta, back = len(optimum.x) - objective.p, objective.back
    is_joint = isinstance(response, OrderedResponse | TimeResponse)
    if is_joint:
        n_theta, back = objective.covariance.size, linalg.block_diag(np.eye(objective.n_dispersion), back)
    vcov, exact = laplace_vcov(optimum.hessian, n_theta, back)
    if isinstance(response, OrderedResponse):
        intercept = float(objective.coefficients(beta)[0])
        tau = response.thresholds, response.slopes
        cuts = Thresholds(model.frame.categories, model.link, *tau, intercept, vcov)
    if isinstance(response, TimeResponse):
        shape = Shape(response, vcov)
    if is_joint:
        vcov = vcov[objective.n_dispersion :, objective.n_dispersion :]
    if not is_joint and not len(theta) and not objective.n_dispersion and criterion.penalty is None:
        # that of glm, from the expected information
        weighted = response.weight(point.eta)[:, None] * objective.x
        vcov = objective.back @ np.linalg.pinv(objective.x.T @ weighted, hermitian=True) @ objective.back.T
    sigma, dispersion = 1.0, np.nan if is_joint else response.dispersion
    if isinstance(response, ProfiledResponse):
        sigma = response.sigma(point.eta, float(point.u @ point.u))
        dispersion = sigma**2
    elif model.family.dispersion == "phi":
        sigma = float(np.sqrt(response.dispersion))
    elif shape is not None:
        sigma = shape.response.sigma
    notes = criterion_notes(model, 1.0 if is_joint else response.dispersion)
    notes += shape.response.notes() if shape else []
    notes += ([] if exact else [APPROXIMATE]) + ([SKETCHED] if optimum.is_sketch else [])
    return _assemble(
        model,
        Estimates(
            optimum,
            objective.coefficients(beta),
            vcov,
            objective.layout.scale(objective.covariance.lambdas(theta), point.u),
        ),
        unit=sigma if criterion.dispersion == "glmer" else 1.0,
        penalty=0.0 if objective.penalty is None else float(optimum.x @ objective.penalty @ optimum.x),
        notes=notes,
        sigma=sigma,
        dispersion=float(dispersion) if model.family.dispersion in {"phi", "theta", "precision"} else None,
        theta=theta,
        eta=point.eta,
        cuts=cuts,
        shape=shape,
        response=response,
    )


def _modes(matrices: Matrices, effects: Array) -> dict[str, pd.DataFrame]:
    """Put the random effects back on the user's columns; terms on one factor stand side by side, as in ``ranef``."""
    layout = EffectsLayout(matrices.effects)
    parts: dict[str, list[pd.DataFrame]] = {}
    for term in matrices.covariance.terms:
        grouping = matrices.groupings[term.factor]
        factor_effects = layout.part(effects, term.factor)
        raw = factor_effects[:, term.columns] @ term.transform.T
        table = pd.DataFrame(raw, index=list(grouping.levels), columns=list(term.names))
        parts.setdefault(grouping.name, []).append(table)
    return {name: pd.concat(tables, axis=1) if tables[1:] else tables[0] for name, tables in parts.items()}


class Estimates(NamedTuple):
    """Where the search ended: fixed effects (p,) with their covariance (p, p), and random effects (q,)."""

    optimum: Optimum
    beta: Array
    vcov: Array
    effects: Array


def _assemble(
    model: Model,
    found: Estimates,
    *,
    unit: float,
    penalty: float = 0.0,
    notes: Sequence[Note] = (),
    degrees: Satterthwaite | None = None,
    **fields: Any,
) -> Fit:
    """Complete a fit; ``fields`` are its other fields, ``unit`` the standard deviation to which theta is relative."""
    matrices, frame, family, theta = model.matrices, model.frame, model.family, fields["theta"]
    optimum, beta, vcov = found.optimum, found.beta, found.vcov
    names = list(matrices.names)
    variance = tuple(
        VarianceComponent(label, t.names, unit**2 * t.relative_covariance(theta))
        for label, t in zip(matrices.labels, matrices.covariance.terms, strict=True)
    )
    n, deviance = len(frame.y), float(optimum.value - penalty)
    method = ("REML" if model.reml else "ML") if family.has_scale else model.criterion.method()
    if not variance:
        method = "least squares" if model.reml else method.partition(",")[0]
        if model.reml:
            deviance = LinearDeviance(frame, matrices, False)(theta)[0]
    n_dispersion = len(optimum.x) - matrices.covariance.size - len(names)
    n_parameters = (
        len(names)
        + matrices.covariance.size
        + (1 if family.dispersion == "phi" or family.has_scale else n_dispersion)
    )
    singular = singular_terms(matrices, theta)
    first = [*frame.notes, *matrices.notes, *singular, *convergence_note(optimum), *notes]
    return Fit(
        formula=model.formula.text,
        family=family.name,
        link=model.link.name,
        method=method,
        nobs=n,
        groups=matrices.groups,
        loglik=-deviance / 2.0,
        aic=deviance + 2.0 * n_parameters,
        bic=deviance + float(np.log(n)) * n_parameters,
        deviance=deviance,
        converged=optimum.converged,
        singular=bool(singular),
        warnings=(*first, *separation_notes(model, theta, beta, vcov)),
        wald=partial(coefficient_table, names, beta, vcov, degrees),
        vcov=pd.DataFrame(vcov, index=names, columns=names),
        variance=variance,
        n_parameters=n_parameters,
        ranef=partial(_modes, matrices, found.effects),
        rows=frame.rows,
        degrees=degrees,
        evaluations=optimum.evaluations,
        model=model,
        end=optimum.x,
        is_sketch=optimum.is_sketch,
        **fields,
    )
