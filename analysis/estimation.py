"""Fits one model by our own engine, reduces its random structure by the stated rule, and keeps every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import apa
from analysis.cluster_sampling import draw, shares
from analysis.contrasts import all_untested, contrasts_of
from analysis.frames import CENTRED, ModelData
from analysis.mixed import Fit, VarianceComponent, fit, sketch
from analysis.mixed.formula import read_formula
from analysis.names import upper_first
from analysis.plan import Plan, Remark, planned_differences
from analysis.random_structure import (
    MOST_COLUMNS_BESIDE,
    RandomTerm,
    Step,
    begun_uncorrelated,
    formula,
    justified,
    on_models_in_general,
    reduced,
)
from analysis.results import Analysis, FittedModelResult
from stimuli.errors import UserError

ZERO = 1e-3
"""A standard deviation below this (relative to the residual one, or to 1 on the logit scale) counts as zero."""


def analyse(
    plan: Plan,
    data: ModelData,
    *,
    engine: Callable[..., Fit] = sketch,
    reduce: bool = True,
    most_columns: int | None = None,
) -> Analysis:
    """Fit what a plan asks for to its data and test its contrasts."""
    analysis = _analysed(plan, data, engine, reduce, most_columns)
    if analysis.model is None:
        reason = _nothing_varies(plan, data) or "no model could be fitted"
        analysis = replace(analysis, contrasts=all_untested(plan, data, reason))
    return analysis


def _nothing_varies(plan: Plan, data: ModelData) -> str:
    """Return why there is nothing to model where all values are the same; empty where they differ."""
    is_alike = plan.measure.response in data.rows and data.rows[plan.measure.response].nunique() == 1
    return f"all values of {plan.measure.noun} are the same" if is_alike else ""


def _analysed(
    plan: Plan, data: ModelData, engine: Callable[..., Fit], reduce: bool, most_columns: int | None
) -> Analysis:
    unfitted = Analysis(plan, None, data.groups, data.levels, (), data.remarks)
    if not data.can_be_fitted:
        return replace(
            unfitted, remarks=data.remarks or ("No model could be fitted: there is nothing to compare.",)
        )
    if why := _nothing_varies(plan, data):
        return replace(
            unfitted, remarks=(*data.remarks, f"{upper_first(why)}, so there is nothing to compare.")
        )
    data, thinning = thinned(plan, data)
    terms, remarks = justified(data, plan.factor)
    if most_columns is None and not plan.planned:
        most_columns = MOST_COLUMNS_BESIDE
    if most_columns is not None:
        terms, notes = begun_uncorrelated(terms, most_columns)
        remarks = [*remarks, *notes]
    all_remarks = (*plan.remarks, *data.remarks, *thinning, *remarks)
    if not terms:
        remark = "With one answer to each item and no second participant no mixed model can be fitted."
        return replace(unfitted, remarks=(*all_remarks, remark))
    try:
        model = None
        if plan.formula is not None:
            model, departures = fitted_as_written(plan, data, engine=engine)
            all_remarks = (*all_remarks, *departures)
        if model is None:
            model = fitted(plan, data, terms, engine=engine, reduce=reduce)
    except UserError as error:
        return replace(unfitted, remarks=(*all_remarks, f"The model could not be fitted: {error.message}."))
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return replace(unfitted, remarks=(*all_remarks, f"The model could not be fitted ({error})."))
    left_out = [
        contrast.label for contrast in plan.contrasts if not set(plan.weights(contrast)) <= set(data.levels)
    ]
    if left_out and not plan.planned:
        all_remarks = (
            *all_remarks,
            # what a model of people checks is tested without it
            f"Not tested, since a condition is not in the model: {apa.few_named(left_out, 'contrast')}.",
        )
    contrasts = contrasts_of(plan, data, model)
    if scope := on_models_in_general(data.rows):
        all_remarks = (*all_remarks, scope)
    return replace(unfitted, model=model, contrasts=contrasts, remarks=all_remarks, rows=data.analysed_rows)


def fitted(
    plan: Plan,
    data: ModelData,
    terms: list[RandomTerm],
    *,
    engine: Callable[..., Fit] = sketch,
    reduce: bool = True,
) -> FittedModelResult:
    """Fit, reduce where the fit is singular or does not converge, and fit again until it stands or nothing is left."""
    settings = settings_of(plan, data)
    fixed = plan.factor if plan.crossing is None else " * ".join(plan.crossing.factors)
    fixed = f"reader_group * {fixed}" if len(data.groups) > 1 else fixed
    fixed = " + ".join([fixed, *(f"{name}{CENTRED}" for name in plan.covariates)])
    steps: list[Step] = []
    while True:
        text = formula(plan.measure.response, fixed, terms)
        source = engine(text, data.rows, **settings)
        model = FittedModelResult(source, settings, source.groups)
        at_zero, doubtful = _doubts(model, terms)
        simpler, change = terms, ""
        if reduce and (model.singular or not model.converged):
            simpler, change = reduced(terms, at_zero, doubtful, model.converged)
        if not change:
            model = model.completed()
        steps.append(Step(text, model.singular, model.converged, model.loglik, _verdict(model, change)))
        if not change:
            return replace(model, steps=tuple(steps), units=_units(model, terms, data))
        terms = simpler


def _units(model: FittedModelResult, terms: list[RandomTerm], data: ModelData) -> dict[str, int]:
    """Count the levels of each grouping column; of a term that is confined to people or models, theirs alone."""
    counts = dict(model.units)
    for term in terms:
        if term.intercept != "1" and term.group in counts:
            rows = data.rows[(data.rows[[term.intercept, *term.columns]] != 0).any(axis="columns")]
            counts[term.group] = int(rows[term.group].nunique())
    return counts


def settings_of(plan: Plan, data: ModelData) -> dict[str, Any]:
    """Return how the engine is called for a plan's data: family, link, levels of factors with the reference first."""
    by_factor = {plan.factor: data.levels} if data.crossing is None else data.crossing.by_factor
    levels = {name: list(level_names) for name, level_names in by_factor.items()}
    if len(data.groups) > 1:
        levels["reader_group"] = list(data.groups)
    link = {} if plan.measure.link is None else {"link": plan.measure.link}
    contrasts = {
        name: coding_columns(plan, coding, names)
        for name, names in levels.items()
        if name != "reader_group" and (coding := plan.coding_of(name, plan.compared)) != "treatment"
    }
    coded = {"contrasts": contrasts} if contrasts else {}
    return {"family": plan.measure.family, "levels": levels, **link, **coded}


def coding_columns(plan: Plan, coding: str, levels: Sequence[str]) -> str | dict[str, list[float]]:
    """Return the coding of a factor as the engine takes it: its name, or columns by the planned difference that each tests.

    Columns of planned contrasts are the generalized inverse of their weights. If a level is missing from the data, so that they make
    no coding, the factor is coded by sums.
    """
    if coding != "planned":
        return coding
    differences = planned_differences(plan.contrasts, levels)
    weights = np.array([[row.get(level, 0.0) for level in levels] for row in differences.values()])
    if len(differences) != len(levels) - 1 or np.linalg.matrix_rank(weights) < len(levels) - 1:
        return "sum"
    columns = np.round(np.linalg.pinv(weights), 12) + 0.0
    return dict(zip(differences, columns.T.tolist(), strict=True))


def fitted_as_written(
    plan: Plan, data: ModelData, *, engine: Callable[..., Fit] = sketch
) -> tuple[FittedModelResult | None, list[str]]:
    """Fit the model that a plan writes out, or its fallback where that one is singular or does not converge."""
    settings = settings_of(plan, data)
    for name, levels in plan.factors.items():
        if name in data.rows and name not in settings["levels"]:
            present = [level for level in levels if (data.rows[name] == level).any()]
            settings["levels"] |= {name: present} if present else {}
            if present and plan.coding.get(name, "treatment") != "treatment":
                columns = coding_columns(plan, plan.coding[name], present)
                settings["contrasts"] = settings.get("contrasts", {}) | {name: columns}
    steps: list[Step] = []
    remarks: list[str] = []
    result: FittedModelResult | None = None
    written = [text for text in (plan.formula, plan.fallback) if text is not None]

    def fit_one(text: str) -> FittedModelResult:
        source = engine(text, data.rows, **_named_in(text, settings))
        return FittedModelResult(source, settings, source.groups)

    for text, model, state in _tried(written, fit_one):
        noun = "planned model" if text == plan.formula else "planned fallback"
        if model is None:
            remarks.append(Remark(f"The {noun} could not be fitted: {state}.", "model"))
            continue
        next_step = ""
        if state != "converged" and text != written[-1]:
            next_step = "the planned fallback takes its place"
            remarks.append(Remark(f"The {noun} {_state(model)}; {next_step}.", "model"))
        else:
            model = model.completed()
        steps.append(Step(text, model.singular, model.converged, model.loglik, _verdict(model, next_step)))
        result = model
    if result is None:
        return None, [
            *remarks,
            Remark("The usual model takes the place of the planned one.", "replaced model"),
        ]
    return replace(result.completed(), steps=tuple(steps)), remarks


Tried = TypeVar("Tried", Fit, FittedModelResult)


def _tried(
    formulas: Iterable[str], fit_one: Callable[[str], Tried]
) -> Iterator[tuple[str, Tried | None, str]]:
    """Yield each formula with its fit and state, or why there is none, up to the first that converges and is not singular."""
    for text in formulas:
        try:
            model = fit_one(text)
        except UserError as error:
            yield text, None, error.message
            continue
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            yield text, None, str(error)
            continue
        state = _state(model).removeprefix("is ")
        yield text, model, state
        if state == "converged":
            return


def _named_in(text: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the levels of the factors that a formula names."""
    columns = read_formula(text).columns()
    by_column = {
        key: {name: value for name, value in settings[key].items() if name in columns}
        for key in ("levels", "contrasts")
        if key in settings
    }
    return {**settings, **by_column}


def _state(model: FittedModelResult | Fit) -> str:
    return "did not converge" if not model.converged else "is singular" if model.singular else "converged"


def _verdict(model: FittedModelResult, change: str) -> str:
    state = _state(model).removeprefix("is ")
    if change:
        return f"{state}; {change}"
    return f"{state}; reported" + (" as it is: nothing is left to reduce" if state != "converged" else "")


def _doubts(model: FittedModelResult, terms: list[RandomTerm]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the components at zero, by grouping column, and the grouping columns that are singular."""
    scale = model.sigma if model.sigma else 1.0
    at_zero: dict[str, list[str]] = {}
    doubtful: set[str] = set()
    for term in model.variance:
        empty = [name for name, sd in zip(term.terms, term.sd, strict=True) if sd < ZERO * scale]
        at_zero.setdefault(term.group, []).extend(empty)
        if empty or _degenerate(term):
            doubtful.add(term.group)
    if not model.converged or not doubtful:
        doubtful = {term.group for term in terms}
    return at_zero, doubtful


def _degenerate(term: VarianceComponent) -> bool:
    sd = term.sd
    if len(sd) < 2 or (sd <= 0).any():
        return bool((sd <= 0).any())
    correlations = term.cov / np.outer(sd, sd)
    return float(np.linalg.eigvalsh(correlations)[0]) < 1e-5


@dataclass(frozen=True)
class SimplificationResult:
    """The model at which stepwise simplification ended."""

    fit: Fit | None  # None where not even the last model could be fitted
    formula: str  # of the fit; of the last attempt where there is none
    steps: tuple[str, ...]  # each formula and what became of it
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stands(self) -> bool:
        """Whether there is a fit that converged."""
        return self.fit is not None and self.fit.converged


def climb(fixed: str, random: Sequence[str], data: pd.DataFrame, **settings: Any) -> SimplificationResult:
    """Fit a model with the first of several random parts that is neither singular nor without convergence."""
    if not random:
        raise UserError("a ladder without random parts", mend="Give at least one, such as (1 | item).")
    steps: list[str] = []
    best: Fit | None = None
    formula, formulas = "", [f"{fixed} + {part}" for part in random]
    for text, current, state in _tried(formulas, lambda text: fit(text, data, **settings)):
        if current is None:
            steps.append(f"{text}: not fitted ({state})")
            formula = formula or text
            continue
        if best is None or current.converged or not best.converged:
            best, formula = current, text
        next_step = "the next one was tried"
        if state == "converged" or text == formulas[-1]:
            next_step = "reported" if best is current else "an earlier one is reported"
        steps.append(f"{text}: {state}; {next_step}")
    return SimplificationResult(best, formula, tuple(steps), settings)


def slopes(columns: Sequence[str], group: str, *, extra: str = "") -> list[str]:
    """Return the usual ladder of one grouping factor: correlated slopes, uncorrelated ones, intercepts alone."""
    tail = f" + {extra}" if extra else ""
    rungs = []
    if columns:
        joined = " + ".join(columns)
        rungs = [f"(1 + {joined} | {group}){tail}", f"(1 + {joined} || {group}){tail}"]
    return [*rungs, f"(1 | {group}){tail}"]


MOST_ROWS = 100_000
"""Rows of a generalised model that nobody planned, about."""
FEWEST = 10
"""People, or sessions, that each reader keeps at least, where it has them."""


def thinned(plan: Plan, data: ModelData) -> tuple[ModelData, list[str]]:
    """Keep the rows that a model is fitted to, and say which where that is not all."""
    rows = data.rows
    if plan.planned or plan.measure.family == "gaussian" or len(rows) <= MOST_ROWS:
        return data, []
    is_person = (rows["people"] == 1).to_numpy()
    units = rows["session_id"].where(~is_person, rows["participant"]).astype(str)
    is_kept = np.zeros(len(rows), dtype=bool)
    groups = rows["reader_group"].astype(str)
    chosen = draw(groups, units, shares(groups, MOST_ROWS), FEWEST).kept
    for group in data.groups:
        in_group = (groups == group).to_numpy()
        drawn = in_group & chosen
        is_kept |= drawn if _as_varied(rows, plan, in_group, drawn) else in_group
    if is_kept.all():
        return data, []
    parts = [
        f"{units[is_kept & kind].nunique():,} of {units[kind].nunique():,} {noun}"
        for kind, noun in ((is_person, "participants"), (~is_person, "sessions of models"))
        if kind.any()
    ]
    remark = (
        f"The model is fitted to {int(is_kept.sum()):,} of {len(rows):,} rows, of {' and '.join(parts)}, drawn at random within each "
        f"reader: models that were not planned are fitted to about {MOST_ROWS:,} rows, planned ones to all."
    )
    return replace(data, rows=rows[is_kept].reset_index(drop=True)), [Remark(remark, "model")]


def _as_varied(
    rows: pd.DataFrame, plan: Plan, of_reader: NDArray[np.bool_], drawn: NDArray[np.bool_]
) -> bool:
    """Whether the rows drawn hold every condition of a reader, each with more than one value of the response."""
    response = plan.measure.response

    def varied(part: NDArray[np.bool_]) -> int:
        return int((rows[part].groupby(plan.factor, observed=True)[response].nunique() > 1).sum())

    return varied(drawn) == varied(of_reader)
