"""The assumptions of a power simulation: means and spreads, given by hand or read from an effects file."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

from analysis.arrays import Array
from analysis.contrasts import averaged_probability
from analysis.factorial import slopes_in_cell
from analysis.frames import indicator
from analysis.mixed import VarianceComponent
from analysis.plan import RATING, LevelDifference, Measure, Plan, PlanFault, read_contrast
from analysis.readers import PARTICIPANT_KINDS
from stimuli.errors import UserError, error_at, missing_column, unknown_name


@dataclass(frozen=True)
class Assumptions:
    """The truth that data are drawn from."""

    cells: Mapping[tuple[str, str], float]  # linear predictor for a participant and an item at the centre
    variance: tuple[VarianceComponent, ...]
    sigma: float | None  # residual standard deviation; None for accuracy
    kinds: Mapping[str, str]  # reader kind of each group
    source: str  # where the values come from, in words
    remarks: tuple[str, ...] = ()  # what was assumed without being said, and what was left out

    def variance_in(self, plan: Plan, group: str, level: str) -> float:
        """Variance of the linear predictor over participants, items and prompts in one cell, the residual left out."""
        person = self.kinds[group] in PARTICIPANT_KINDS
        terms = [term for term in self.variance if person or term.group != "participant"]
        columns = [self.columns(term, plan, group, level) for term in terms]
        return sum((float(z @ term.cov @ z) for z, term in zip(columns, terms, strict=True)), 0.0)

    def columns(self, term: VarianceComponent, plan: Plan, group: str, level: str) -> Array:
        """Return the columns of a random term in one cell, shape (k,)."""
        person = self.kinds[group] in PARTICIPANT_KINDS
        cell = cell_name(group, level)
        return np.array(
            [1.0 if name == cell else value_in_cell(name, plan, level, person) for name in term.terms]
        )

    def mean(self, plan: Plan, group: str, level: str) -> float:
        """Mean of a cell in familiar units: percent correct averaged over everything, or the geometric mean in ms."""
        eta = self.cells[group, level]
        if plan.measure.family == "binomial":
            return 100.0 * float(averaged_probability(eta, self.variance_in(plan, group, level)))
        return float(np.exp(eta)) if plan.measure.logged else eta

    def effect(self, plan: Plan, difference: LevelDifference, groups: tuple[str, ...]) -> float:
        """Return the true contrast within one group, or of the first group minus the second."""

        def of(group: str, level: str) -> float:
            return (
                self.mean(plan, group, level)
                if plan.measure.family == "binomial"
                else self.cells[group, level]
            )

        weights = plan.weights(difference)
        values = [sum(weight * of(group, level) for level, weight in weights.items()) for group in groups]
        value = values[0] - values[1] if len(values) == 2 else values[0]
        return 0.0 if abs(value) < 1e-9 else value

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order: what a question's hash covers and a result records."""
        return {
            "cells": [[group, level, float(value)] for (group, level), value in sorted(self.cells.items())],
            "variance": [
                {"group": term.group, "terms": list(term.terms), "cov": term.cov.tolist()}
                for term in self.variance
            ],
            "sigma": self.sigma,
            "kinds": dict(sorted(self.kinds.items())),
        }


def cell_name(group: str, level: str) -> str:
    """Name the column that is 1 for one reader group in one condition."""
    return f"{group} in {level}"


def log_odds_at(share: float, variance: float) -> float:
    """Return the log odds at the centre for which the mean over a normal predictor of this variance is a share."""
    limit = (
        abs(float(special.logit(share))) * float(np.sqrt(1.0 + variance))
        + 5.0
        + 3.0 * float(np.sqrt(variance))
    )

    def beyond(eta: float) -> float:
        return float(averaged_probability(eta, variance)) - share

    return float(optimize.brentq(beyond, -limit, limit, xtol=1e-10))


def value_in_cell(name: str, plan: Plan, level: str, person: bool) -> float:
    """Return the value of a column of a fit in one condition, for people or for models."""
    if ":" in name:
        return float(np.prod([value_in_cell(part, plan, level, person) for part in name.split(":")]))
    if name == "(Intercept)":
        return 1.0
    if name in ("people", "model"):
        return float(person == (name == "people"))
    if name in (f"{plan.factor}{level}", indicator(plan.factor, level)):
        return 1.0
    default = float(person and name == indicator("people", level))
    if plan.crossing is None:
        return default
    of_kind = slopes_in_cell(plan.crossing, level, "people" if person else "model")
    return (slopes_in_cell(plan.crossing, level) | of_kind).get(name, default)


def without_effects(assumptions: Assumptions, plan: Plan) -> Assumptions:
    """Return the null hypothesis: every condition is as its reader group's reference."""
    reference = plan.levels[0]
    cells = {}
    for group, level in assumptions.cells:
        cells[group, level] = assumptions.cells[group, reference]
        if plan.measure.family == "binomial" and level in plan.levels:
            share = assumptions.mean(plan, group, reference) / 100.0
            cells[group, level] = log_odds_at(share, assumptions.variance_in(plan, group, level))
    source = f"{assumptions.source}; all differences between conditions set to zero"
    return replace(assumptions, cells=cells, source=source)


def check(assumptions: Assumptions, plan: Plan) -> Assumptions:
    """Return the assumptions if data can be drawn from them."""
    for group in plan.groups:
        for level in plan.levels:
            if (group, level) not in assumptions.cells:
                raise UserError(
                    f"nothing says how {group} does in {level} ({assumptions.source})",
                    mend=f"Give its mean, such as --mean {group}:{level}=90 (percent or ms), or its effect.",
                )
            if not np.isfinite(assumptions.cells[group, level]):
                raise UserError(f"the assumed value of {group} in {level} is not finite")
    for term in assumptions.variance:
        if not np.isfinite(term.cov).all():
            raise UserError(
                f"the variance of {term.group} is not a number", mend="Give standard deviations from 0 up."
            )
        smallest = float(np.linalg.eigvalsh(term.cov)[0])
        if smallest < -1e-8 * max(1.0, float(np.abs(term.cov).max())):
            raise UserError(
                f"the standard deviations and correlations of {term.group} contradict each other",
                mend="Bring the correlations nearer to 0.",
            )
    if plan.measure.family != "binomial" and not (assumptions.sigma or 0.0) > 0:
        raise UserError(
            f"{plan.measure.noun} without a residual standard deviation cannot be drawn",
            mend="Give it, such as --sd residual=0.4.",
        )
    return assumptions


QUANTITIES = ("mean", "effect", "sd", "correlation")
SLOPES_TOGETHER = 0.5
"""Correlation of two slopes against the same reference where the conditions scatter alike."""


@dataclass(frozen=True)
class EffectStatement:
    """One statement."""

    quantity: str
    of: str  # a reader group; for spreads a component such as ``participant_slope`` or ``item``
    level: str  # the condition; empty for spreads
    value: float
    unit: str = ""  # empty for the first unit of the measure (`units_of`)
    source: str = ""  # where it comes from
    where: str = "value"  # place that an error names


@dataclass(frozen=True)
class Units:
    """The units in which means, effects and spreads of a measure can be given; the first is the default."""

    mean: tuple[str, ...]
    effect: tuple[str, ...]
    spread: str


def units_of(measure: Measure) -> Units:
    """Return the units of a measure: shares, what is modelled as a logarithm, and what is modelled as it is."""
    if measure.family == "binomial":
        return Units(("percent", "log_odds"), ("points", "log_odds", "odds_ratio"), "log_odds")
    if measure.logged:
        return Units((measure.unit, f"log_{measure.unit}"), (measure.unit, "percent", "ratio", "log"), "log")
    return Units((measure.unit,), (measure.unit,), measure.unit)


def default_spreads(measure: Measure) -> dict[str, dict[str, Any]]:
    """Return the default spreads: component → value (None if it must be given) and a note on its source."""
    name = "log_odds" if measure.family == "binomial" else "log" if measure.logged else "raw"
    return dict(_USUAL[f"{name}_of_models" if measure.of == "models" else name])


_USUAL: dict[str, Any] = json.loads(Path(__file__).with_name("spreads.json").read_text("utf-8"))


def sides(plan: Plan, kinds: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return a plan's groups of people, and its models."""
    people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
    return people, [group for group in plan.groups if group not in people]


def assumed(
    plan: Plan,
    kinds: Mapping[str, str],
    given: Sequence[EffectStatement],
    source: str,
    known: Assumptions | None = None,
) -> Assumptions:
    """Make assumptions of statements."""
    for statement in given:
        _checked(statement, plan, kinds)
    spreads = [statement for statement in given if statement.quantity in ("sd", "correlation")]
    if known is not None and spreads:
        raise UserError(
            f"{spreads[0].where}: a pilot brings its own variances; that of {spreads[0].of!r} cannot be given as well",
            mend="Leave it out, or give all values by hand.",
        )
    remarks: list[str] = []
    if known is None:
        components = _components(spreads, kinds, plan, remarks)
        variance = _variance(components, plan, kinds)
        sigma = components["residual"] if plan.measure.family == "gaussian" else None
        partial = Assumptions({}, variance, sigma, kinds, source, tuple(remarks))
    else:
        partial = replace(known, kinds=kinds)
        if given:
            partial = replace(partial, source=f"{known.source}; {source}")
    cells = dict(partial.cells)
    cells |= {
        (statement.of, statement.level): _centre(statement, plan, partial)
        for statement in given
        if statement.quantity == "mean"
    }
    for statement in given:
        if statement.quantity == "effect":
            so_far = replace(partial, cells=cells)
            shifted = _against_what(statement, plan, so_far)
            cells[statement.of, shifted.level] = _moved(shifted, plan, so_far)
    return check(replace(partial, cells=cells), plan)


def _interaction(statement: EffectStatement, plan: Plan) -> LevelDifference | None:
    """Return the interaction of two factors that an effect is said to be the size of; None where it is of a condition."""
    if plan.crossing is None or not statement.level.strip().startswith("("):
        return None
    try:
        contrast = read_contrast(statement.level, plan.crossing.by_factor)
    except PlanFault as fault:
        raise error_at(statement.where, *fault.args) from None
    return contrast if len(contrast.at) == 2 else None


def _against_what(statement: EffectStatement, plan: Plan, partial: Assumptions) -> EffectStatement:
    """Return an effect as one of a condition against the reference."""
    contrast = _interaction(statement, plan)
    if contrast is None:
        return statement
    weights = plan.weights(contrast)
    cell, *others = weights
    for other in others:
        if (statement.of, other) not in partial.cells:
            raise UserError(
                f"{statement.where}: the size of an interaction in {statement.of}, but nothing says how {statement.of} does "
                f"in {other}",
                mend=f"Give the means of {', '.join(others)} too.",
            )
    unit = statement.unit or units_of(plan.measure).effect[0]
    if unit not in ("points", "log_odds", "log", plan.measure.unit):
        raise UserError(
            f"{statement.where}: an interaction in {unit}; a difference of differences is given in "
            f"{' or '.join(name for name in units_of(plan.measure).effect if name not in ('odds_ratio', 'ratio', 'percent'))}"
        )

    def at(level: str) -> float:
        return (
            partial.mean(plan, statement.of, level)
            if unit == "points"
            else _on_scale(partial, plan, statement.of, level, unit)
        )

    value = statement.value - sum(weights[other] * at(other) for other in others)
    return replace(statement, level=cell, value=value - at(plan.levels[0]), unit=unit)


def _on_scale(partial: Assumptions, plan: Plan, group: str, level: str, unit: str) -> float:
    """Return a cell on the scale on which effects of a unit add: the modelled one, or an arithmetic mean in milliseconds or tokens."""
    eta = partial.cells[group, level]
    if not plan.measure.logged or unit == "log":
        return eta
    return float(np.exp(eta + (partial.variance_in(plan, group, level) + (partial.sigma or 0.0) ** 2) / 2.0))


def _checked(statement: EffectStatement, plan: Plan, kinds: Mapping[str, str]) -> None:
    known_units = units_of(plan.measure)
    if statement.quantity not in QUANTITIES:
        raise unknown_name(f"{statement.where}: quantity", statement.quantity, QUANTITIES)
    if not np.isfinite(statement.value):
        raise UserError(f"{statement.where}: {statement.value} is no number")
    if statement.quantity in ("mean", "effect"):
        if statement.of not in kinds:
            raise unknown_name(f"{statement.where}: reader", statement.of, kinds)
        if statement.level not in plan.levels and not (
            statement.quantity == "effect" and _interaction(statement, plan)
        ):
            raise unknown_name(f"{statement.where}: condition of {plan.factor}", statement.level, plan.levels)
        units = known_units.mean if statement.quantity == "mean" else known_units.effect
        if statement.unit and statement.unit not in units:
            raise unknown_name(f"{statement.where}: unit", statement.unit, units)
        if statement.quantity == "effect" and statement.level == plan.levels[0]:
            raise UserError(
                f"{statement.where}: {statement.level!r} is the reference of {plan.factor}, against which effects are counted",
                mend=f"Give the mean of {statement.level!r}, and effects of the other conditions.",
            )
        return
    is_correlation = statement.quantity == "correlation"
    components = [n for n in default_spreads(plan.measure) if n.endswith("_correlation") == is_correlation]
    allowed = [name.removesuffix("_correlation") for name in components]
    if statement.of not in allowed:
        raise unknown_name(f"{statement.where}: {statement.quantity} of", statement.of, allowed)
    if statement.unit and statement.quantity == "sd" and statement.unit != known_units.spread:
        raise unknown_name(f"{statement.where}: unit", statement.unit, (known_units.spread,))
    if not (abs(statement.value) <= 1 if is_correlation else statement.value >= 0):
        rule = (
            "a correlation lies between -1 and 1" if is_correlation else "a standard deviation is 0 or more"
        )
        raise UserError(
            f"{statement.where}: {statement.quantity} of {statement.of} is {statement.value:g}; {rule}"
        )


def _components(
    spreads: Sequence[EffectStatement], kinds: Mapping[str, str], plan: Plan, remarks: list[str]
) -> dict[str, float]:
    defaults = default_spreads(plan.measure)
    given = {
        f"{spread.of}_correlation" if spread.quantity == "correlation" else spread.of: spread.value
        for spread in spreads
    }
    people, machines = sides(plan, kinds)
    if not people or plan.measure == RATING:
        # what is said of items is said of models' items where only models are compared, and on any scale of ratings
        given = {f"{name}_models": given[name] for name in ("item", "item_slope") if name in given} | given
    applies = {
        "people": bool(people),
        "models": bool(machines),
        "people and models": bool(people and machines),
        "several models": len(machines) > 1,
    }
    idle = {name for readers, names in _USUAL["concern"].items() for name in names if not applies[readers]}
    default_entries = {
        name: entry for name, entry in defaults.items() if name not in given and name not in idle
    }
    unknown = dict.fromkeys(
        name.removesuffix("_models") for name, entry in default_entries.items() if entry["value"] is None
    )
    if unknown:
        raise UserError(
            f"nothing says how far {plan.measure.noun} scatters, in {plan.measure.unit}: {', '.join(unknown)}",
            mend=f"Give it, such as {' '.join(f'--sd {name}=1.5' for name in unknown)}, or take it from a pilot: --effects FOLDER.",
        )
    for name, entry in default_entries.items():
        remarks.append(f"{name} was not given: {entry['value']:g} taken ({entry['note']}).")
    return {name: float(entry["value"] or 0.0) for name, entry in defaults.items()} | given


def _variance(sd: Mapping[str, float], plan: Plan, kinds: Mapping[str, str]) -> tuple[VarianceComponent, ...]:
    people, machines = sides(plan, kinds)
    mixed = bool(people and machines)
    terms = []
    if people:
        first = "people" if mixed else "(Intercept)"
        names = (first, *(indicator("people" if mixed else plan.factor, level) for level in plan.levels[1:]))
        size = np.array([sd["participant"], *[sd["participant_slope"]] * (len(names) - 1)])
        correlation = np.full((len(names), len(names)), SLOPES_TOGETHER)
        correlation[0, :] = correlation[:, 0] = sd["participant_correlation"]
        np.fill_diagonal(correlation, 1.0)
        terms.append(VarianceComponent("participant", names, correlation * np.outer(size, size)))
    # two conditions of an item differ by two of its deviations, which are thus smaller than its slopes by the root of 2
    half = float(np.sqrt(0.5))
    for group, spread, scale in (("item", "item", 1.0), ("item_condition", "item_slope", half)):
        a, b = scale * sd[spread], scale * sd.get(f"{spread}_models", sd[spread])
        cov = _by_kind(a, b, sd["item_correlation"]) if mixed else np.array([[(a if people else b) ** 2]])
        terms.append(VarianceComponent(group, ("(Intercept)", "model") if mixed else ("(Intercept)",), cov))
    by_term = {"item_reader": len(machines) > 1} | dict.fromkeys(
        ("item_cell", "prompt", "session"), bool(machines)
    )
    for name, is_present in by_term.items():
        if is_present and sd.get(name, 0.0) > 0:
            group = "model_session" if name == "session" else name
            terms.append(VarianceComponent(group, ("model",), np.array([[sd[name] ** 2]])))
    return tuple(terms)


def _by_kind(a: float, b: float, correlation: float) -> Array:
    """Covariance of an item's deviation in people (SD a) and of what models (SD b) add to it, shape (2, 2)."""
    covariance = correlation * a * b
    return np.array([[a**2, covariance - a**2], [covariance - a**2, a**2 + b**2 - 2.0 * covariance]])


def _centre(statement: EffectStatement, plan: Plan, partial: Assumptions) -> float:
    unit = statement.unit or units_of(plan.measure).mean[0]
    if unit.startswith("log_") or plan.measure.scale == "raw":
        return statement.value
    spread = partial.variance_in(plan, statement.of, statement.level)
    if unit == "percent":
        return _log_odds(statement.value, spread, statement)
    if not statement.value > 0:
        raise UserError(
            f"{statement.where}: a mean of {statement.value:g} {unit}; {_plural(plan)} lie above 0"
        )
    return float(np.log(statement.value)) - (spread + (partial.sigma or 0.0) ** 2) / 2.0


def _plural(plan: Plan) -> str:
    return "times" if plan.measure.unit == "ms" else plan.measure.unit


def _log_odds(percent: float, spread: float, statement: EffectStatement) -> float:
    if not 0.0 < percent < 100.0:
        raise UserError(
            f"{statement.where}: {statement.of} in {statement.level} is at {percent:g} percent; a mean lies "
            "between 0 and 100, both excluded",
            mend="On the logit scale 0 and 100 percent are infinite; 99.5 is as good as always right.",
        )
    return log_odds_at(percent / 100.0, spread)


def _moved(statement: EffectStatement, plan: Plan, partial: Assumptions) -> float:
    reference = plan.levels[0]
    if (statement.of, reference) not in partial.cells:
        raise UserError(
            f"{statement.where}: an effect of {statement.level} in {statement.of}, but nothing says how {statement.of} does "
            f"in {reference}",
            mend=f"Give the mean of {statement.of} in {reference} too.",
        )
    base = partial.cells[statement.of, reference]
    if plan.measure.scale == "raw":
        return base + statement.value
    match statement.unit or units_of(plan.measure).effect[0]:
        case "points":
            percent = partial.mean(plan, statement.of, reference) + statement.value
            return _log_odds(percent, partial.variance_in(plan, statement.of, statement.level), statement)
        case "log_odds" | "log":
            return base + statement.value
        case "odds_ratio" | "ratio" as unit:
            if not statement.value > 0:
                raise UserError(
                    f"{statement.where}: a {unit.replace('_', ' ')} of {statement.value:g}; ratios lie above 0"
                )
            return base + float(np.log(statement.value))
        case "percent":
            if not statement.value > -100:
                raise UserError(
                    f"{statement.where}: a change by {statement.value:g} percent leaves no {plan.measure.noun}"
                )
            return base + float(np.log1p(statement.value / 100.0))
    half = (partial.variance_in(plan, statement.of, reference) + (partial.sigma or 0.0) ** 2) / 2.0
    half_of_level = (
        partial.variance_in(plan, statement.of, statement.level) + (partial.sigma or 0.0) ** 2
    ) / 2.0
    mean = float(np.exp(base + half)) + statement.value
    if not mean > 0:
        raise UserError(
            f"{statement.where}: {statement.of} would take {mean:.0f} {plan.measure.unit} in {statement.level}; "
            f"{_plural(plan)} lie above 0"
        )
    return float(np.log(mean)) - half_of_level


COLUMNS = ("quantity", "of", "condition", "value", "unit", "source")
KEYS = ("source", "means", "unit", "effects", "effect_unit", "spreads", "correlations")


def from_table(file: Path) -> list[EffectStatement]:
    """Read a table of the literature."""
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text", mend="Save it as CSV in UTF-8.") from error
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    names = list(rows.fieldnames or [])
    for column in COLUMNS:
        if column not in names:
            raise missing_column(str(file), column, names)
    statements = []
    for row in rows:
        where = f"{file}, line {rows.line_num}"
        quantity, target, level, value, unit, source = cells = [
            (row.get(name) or "").strip() for name in COLUMNS
        ]
        if not any(cells):
            continue
        if not source:
            raise UserError(f"{where}: the value has no source", mend="Say author, year, and table or page.")
        statements.append(EffectStatement(quantity, target, level, number(value, where), unit, source, where))
    if not statements:
        raise UserError(f"{file} has no values", mend=f"Its columns are {', '.join(COLUMNS)}.")
    return statements


def number(text: str, where: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where}: {text!r} is no number", mend="Write it with a point: 92.5.") from None


def from_mapping(mapping: Mapping[str, Any], where: str) -> list[EffectStatement]:
    """Read what a YAML file by hand holds."""
    for key in mapping:
        if key not in KEYS:
            raise unknown_name(f"{where}: key", str(key), KEYS)
    source = str(mapping.get("source", ""))
    statements = []
    for key, quantity, unit in (("means", "mean", "unit"), ("effects", "effect", "effect_unit")):
        for reader, levels in _mapping(mapping.get(key), f"{where}: {key}").items():
            for level, value in _mapping(levels, f"{where}: {key}.{reader}").items():
                location = f"{where}: {key}.{reader}.{level}"
                unit_given = str(mapping.get(unit) or "")
                statements.append(
                    EffectStatement(
                        quantity, reader, level, number(str(value), location), unit_given, source, location
                    )
                )
    for key, quantity in (("spreads", "sd"), ("correlations", "correlation")):
        for component, value in _mapping(mapping.get(key), f"{where}: {key}").items():
            location = f"{where}: {key}.{component}"
            statements.append(
                EffectStatement(quantity, component, "", number(str(value), location), "", source, location)
            )
    if not statements:
        raise UserError(f"{where} has no values", mend="Give means, by reader and condition.")
    return statements


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(f"{where} is {value!r}", mend="Write a mapping: {intact: 95, initial: 88}.")
    return {str(key): item for key, item in value.items()}


def from_option(quantity: str, text: str) -> EffectStatement:
    """Read an option: ``human:intact=95``, ``human:initial=-7points``, ``participant=0.7``."""
    assert quantity in QUANTITIES
    where = f"--{quantity} {text}"
    name, sign, value = text.partition("=")
    target, colon, level = name.partition(":")
    with_level = quantity in ("mean", "effect")
    if not sign or not target.strip() or bool(colon and level.strip()) != with_level:
        form = "READER:CONDITION=VALUE" if with_level else "COMPONENT=VALUE"
        example = f"--{quantity} human:intact=95" if with_level else f"--{quantity} participant=0.7"
        raise UserError(f"{where} is not of the form {form}", mend=f"For example {example}.")
    digits = value.strip().rstrip("abcdefghijklmnopqrstuvwxyz_% ")
    unit = value.strip()[len(digits) :].strip()
    unit = "percent" if unit == "%" else unit
    return EffectStatement(
        quantity, target.strip(), level.strip(), number(digits, where), unit, "by hand", where
    )
