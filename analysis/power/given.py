"""Turns means, effects and spreads as people say them into assumptions on the scale of the model.

A table of the literature, a file by hand and options of the command line are all lists of these statements. Means are
averages over participants and items, as papers report them: a mean in percent becomes the log odds at the centre by
solving E[logit^-1(eta + b)] = mean for eta, with b the random effects of that cell; an arithmetic mean in milliseconds
loses half the variance of the logarithms. Bits and nats are modelled as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.frames import indicator
from analysis.plan import Difference, Fault, Measure, Plan, read_contrast
from analysis.power.assumptions import Assumptions, check, log_odds_at
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import VarianceTerm
from stimuli.errors import UserError, error_at, unknown_name

QUANTITIES = ("mean", "effect", "sd", "correlation")
SLOPES_TOGETHER = 0.5
"""Correlation of two slopes against the same reference where the conditions scatter alike."""


@dataclass(frozen=True)
class Given:
    """One statement."""

    quantity: str
    of: str  # A reader group; for spreads a component such as ``participant_slope`` or ``item``
    level: str  # the condition; empty for spreads
    value: float
    unit: str = ""  # empty for the first unit of the measure (`units_of`)
    source: str = ""  # where it comes from
    where: str = "value"  # place that an error names


@dataclass(frozen=True)
class Units:
    """Units in which means, effects and spreads of a measure can be given; the first is taken where none is said."""

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
    """Return the spreads taken where none is given: component → value (None where one has to be given) and note on its source."""
    name = "log_odds" if measure.family == "binomial" else "log" if measure.logged else "raw"
    text = resources.files(__package__).joinpath("spreads.json").read_text("utf-8")
    return dict(json.loads(text)[f"{name}_of_models" if measure.of == "models" else name])


def assumed(
    plan: Plan,
    kinds: Mapping[str, str],
    given: Sequence[Given],
    source: str,
    known: Assumptions | None = None,
) -> Assumptions:
    """Make assumptions of statements."""
    for one in given:
        _checked(one, plan, kinds)
    spreads = [one for one in given if one.quantity in ("sd", "correlation")]
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
        begun = Assumptions({}, variance, sigma, kinds, source, tuple(remarks))
    else:
        begun = replace(known, kinds=kinds)
        if given:
            begun = replace(begun, source=f"{known.source}; {source}")
    cells = dict(begun.cells)
    for one in given:
        if one.quantity == "mean":
            cells[one.of, one.level] = _centre(one, plan, begun)
    for one in given:
        if one.quantity == "effect":
            moved, level = _against_what(one, plan, replace(begun, cells=cells))
            cells[one.of, level] = _moved(moved, plan, replace(begun, cells=cells))
    return check(replace(begun, cells=cells), plan)


def _interaction(one: Given, plan: Plan) -> Difference | None:
    """Return the interaction of two factors that an effect is said to be the size of; None where it is of a condition."""
    if plan.crossing is None or not one.level.strip().startswith("("):
        return None
    try:
        found = read_contrast(one.level, plan.crossing.by_factor)
    except Fault as fault:
        raise error_at(one.where, *fault.args) from None
    return found if len(found.at) == 2 else None


def _against_what(one: Given, plan: Plan, begun: Assumptions) -> tuple[Given, str]:
    """Return an effect as one of a condition against the reference, and the condition."""
    found = _interaction(one, plan)
    if found is None or plan.crossing is None:
        return one, one.level
    weights = plan.weights(found)
    cell, *others = weights
    for other in others:
        if (one.of, other) not in begun.cells:
            raise UserError(
                f"{one.where}: the size of an interaction in {one.of}, but nothing says how {one.of} does in {other}",
                mend=f"Give the means of {', '.join(others)} too.",
            )
    unit = one.unit or units_of(plan.measure).effect[0]
    if unit not in ("points", "log_odds", "log", plan.measure.unit):
        raise UserError(
            f"{one.where}: an interaction in {unit}; a difference of differences is given in "
            f"{' or '.join(known for known in units_of(plan.measure).effect if known not in ('odds_ratio', 'ratio', 'percent'))}"
        )
    own = begun.mean if unit == "points" else None
    value = one.value - sum(
        weights[other] * (own(plan, one.of, other) if own else _on_scale(begun, plan, one.of, other, unit))
        for other in others
    )
    base = own(plan, one.of, plan.levels[0]) if own else _on_scale(begun, plan, one.of, plan.levels[0], unit)
    return replace(one, level=cell, value=value - base, unit=unit), cell


def _on_scale(begun: Assumptions, plan: Plan, group: str, level: str, unit: str) -> float:
    """Return a cell on the scale on which effects of a unit add: the modelled one, or an arithmetic mean in milliseconds or tokens."""
    eta = begun.cells[group, level]
    if not plan.measure.logged or unit == "log":
        return eta
    return float(np.exp(eta + (begun.variance_in(plan, group, level) + (begun.sigma or 0.0) ** 2) / 2.0))


def _checked(one: Given, plan: Plan, kinds: Mapping[str, str]) -> None:
    known_units = units_of(plan.measure)
    if one.quantity not in QUANTITIES:
        raise unknown_name(f"{one.where}: quantity", one.quantity, QUANTITIES)
    if not np.isfinite(one.value):
        raise UserError(f"{one.where}: {one.value} is no number")
    if one.quantity in ("mean", "effect"):
        if one.of not in kinds:
            raise unknown_name(f"{one.where}: reader", one.of, kinds)
        if one.level not in plan.levels and not (one.quantity == "effect" and _interaction(one, plan)):
            raise unknown_name(f"{one.where}: condition of {plan.factor}", one.level, plan.levels)
        units = known_units.mean if one.quantity == "mean" else known_units.effect
        if one.unit and one.unit not in units:
            raise unknown_name(f"{one.where}: unit", one.unit, units)
        if one.quantity == "effect" and one.level == plan.levels[0]:
            raise UserError(
                f"{one.where}: {one.level!r} is the reference of {plan.factor}, against which effects are counted",
                mend=f"Give the mean of {one.level!r}, and effects of the other conditions.",
            )
        return
    components = default_spreads(plan.measure)
    named = f"{one.of}_correlation" if one.quantity == "correlation" else one.of
    if named not in components or (one.quantity == "sd" and named.endswith("_correlation")):
        known = [
            name.removesuffix("_correlation")
            for name in components
            if name.endswith("_correlation") == (one.quantity == "correlation")
        ]
        raise unknown_name(f"{one.where}: {one.quantity} of", one.of, known)
    if one.unit and one.quantity == "sd" and one.unit != known_units.spread:
        raise unknown_name(f"{one.where}: unit", one.unit, (known_units.spread,))
    low, high = (-1.0, 1.0) if one.quantity == "correlation" else (0.0, np.inf)
    if not low <= one.value <= high:
        rule = "a correlation lies between -1 and 1" if high == 1.0 else "a standard deviation is 0 or more"
        raise UserError(f"{one.where}: {one.quantity} of {one.of} is {one.value:g}; {rule}")


def _components(
    spreads: Sequence[Given], kinds: Mapping[str, str], plan: Plan, remarks: list[str]
) -> dict[str, float]:
    defaults = default_spreads(plan.measure)
    said = {f"{one.of}_correlation" if one.quantity == "correlation" else one.of for one in spreads}
    people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
    machines = [group for group in plan.groups if kinds[group] not in PARTICIPANT_KINDS]
    concerned = {
        "participant": bool(people),
        "participant_slope": bool(people),
        "participant_correlation": bool(people),
        "item": bool(people),
        "item_slope": bool(people),
        "item_models": bool(machines),
        "item_slope_models": bool(machines),
        "item_correlation": bool(people and machines),
        "item_reader": len(machines) > 1,
        "item_cell": bool(machines),
        "prompt": bool(machines),
        "session": bool(machines),
    }
    if not people:
        # what is said of items is said of models' items where only models are compared
        said |= {f"{name}_models" for name in ("item", "item_slope") if name in said}
    open_ones = [
        name
        for name, entry in defaults.items()
        if name not in said and concerned.get(name, True) and entry["value"] is None
    ]
    if open_ones:
        short = [name.removesuffix("_models") for name in open_ones]
        raise UserError(
            f"nothing says how far {plan.measure.noun} scatters, in {plan.measure.unit}: {', '.join(short)}",
            mend=f"Give it, such as {' '.join(f'--sd {name}=1.5' for name in short)}, or take it from a pilot: --pilot FOLDER.",
        )
    taken = {name: float(entry["value"] or 0.0) for name, entry in defaults.items()}
    for name, entry in defaults.items():
        if name not in said and concerned.get(name, True):
            remarks.append(f"{name} was not given: {entry['value']:g} taken ({entry['note']}).")
    for one in spreads:
        taken[f"{one.of}_correlation" if one.quantity == "correlation" else one.of] = one.value
    given = {one.of for one in spreads}
    for name in ("item", "item_slope"):
        if not people and name in given and f"{name}_models" not in given:
            taken[f"{name}_models"] = taken[name]
    return taken


def _variance(sd: Mapping[str, float], plan: Plan, kinds: Mapping[str, str]) -> tuple[VarianceTerm, ...]:
    people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
    machines = [group for group in plan.groups if kinds[group] not in PARTICIPANT_KINDS]
    mixed = bool(people and machines)
    terms = []
    if people:
        first = "people" if mixed else "(Intercept)"
        names = (first, *(indicator("people" if mixed else plan.factor, level) for level in plan.levels[1:]))
        size = np.array([sd["participant"], *[sd["participant_slope"]] * (len(names) - 1)])
        together = np.full((len(names), len(names)), SLOPES_TOGETHER)
        together[0, :] = together[:, 0] = sd["participant_correlation"]
        np.fill_diagonal(together, 1.0)
        terms.append(VarianceTerm("participant", names, together * np.outer(size, size)))
    # two conditions of an item differ by two of its deviations, which are thus smaller than its slopes by the root of 2
    half = float(np.sqrt(0.5))
    for group, own, of_models, scale in (
        ("item", "item", "item_models", 1.0),
        ("item_condition", "item_slope", "item_slope_models", half),
    ):
        a, b = scale * sd[own], scale * sd.get(of_models, sd[own])
        if mixed:
            together = _by_kind(a, b, sd["item_correlation"])
            terms.append(VarianceTerm(group, ("(Intercept)", "model"), together))
        else:
            terms.append(VarianceTerm(group, ("(Intercept)",), np.array([[(a if people else b) ** 2]])))
    wanted: dict[str, tuple[str, bool]] = {
        "item_reader": ("item_reader", len(machines) > 1),
        "item_cell": ("item_cell", bool(machines)),
        "prompt": ("prompt", bool(machines)),
        "session": ("model_session", bool(machines)),
    }
    for name, (group, there) in wanted.items():
        if there and sd.get(name, 0.0) > 0:
            terms.append(VarianceTerm(group, ("model",), np.array([[sd[name] ** 2]])))
    return tuple(terms)


def _by_kind(a: float, b: float, correlation: float) -> NDArray[np.float64]:
    """Covariance of an item's deviation in people (SD a) and of what models (SD b) add to it, shape (2, 2)."""
    both = correlation * a * b
    return np.array([[a**2, both - a**2], [both - a**2, a**2 + b**2 - 2.0 * both]])


def _centre(one: Given, plan: Plan, begun: Assumptions) -> float:
    unit = one.unit or units_of(plan.measure).mean[0]
    if unit.startswith("log_") or plan.measure.scale == "raw":
        return one.value
    spread = begun.variance_in(plan, one.of, one.level)
    if unit == "percent":
        return _log_odds(one.value, spread, one)
    if not one.value > 0:
        raise UserError(f"{one.where}: a mean of {one.value:g} {unit}; {_plural(plan)} lie above 0")
    return float(np.log(one.value)) - (spread + (begun.sigma or 0.0) ** 2) / 2.0


def _plural(plan: Plan) -> str:
    return "times" if plan.measure.unit == "ms" else plan.measure.unit


def _log_odds(percent: float, spread: float, one: Given) -> float:
    if not 0.0 < percent < 100.0:
        raise UserError(
            f"{one.where}: {one.of} in {one.level} is at {percent:g} percent; a mean lies between 0 and 100, both excluded",
            mend="On the logit scale 0 and 100 percent are infinite; 99.5 is as good as always right.",
        )
    return log_odds_at(percent / 100.0, spread)


def _moved(one: Given, plan: Plan, begun: Assumptions) -> float:
    reference = plan.levels[0]
    if (one.of, reference) not in begun.cells:
        raise UserError(
            f"{one.where}: an effect of {one.level} in {one.of}, but nothing says how {one.of} does in {reference}",
            mend=f"Give the mean of {one.of} in {reference} too.",
        )
    base = begun.cells[one.of, reference]
    if plan.measure.scale == "raw":
        return base + one.value
    match one.unit or units_of(plan.measure).effect[0]:
        case "points":
            percent = begun.mean(plan, one.of, reference) + one.value
            return _log_odds(percent, begun.variance_in(plan, one.of, one.level), one)
        case "log_odds" | "log":
            return base + one.value
        case "odds_ratio" | "ratio" as unit:
            if not one.value > 0:
                raise UserError(
                    f"{one.where}: a {unit.replace('_', ' ')} of {one.value:g}; ratios lie above 0"
                )
            return base + float(np.log(one.value))
        case "percent":
            if not one.value > -100:
                raise UserError(
                    f"{one.where}: a change by {one.value:g} percent leaves no {plan.measure.noun}"
                )
            return base + float(np.log1p(one.value / 100.0))
    half = (begun.variance_in(plan, one.of, reference) + (begun.sigma or 0.0) ** 2) / 2.0
    own = (begun.variance_in(plan, one.of, one.level) + (begun.sigma or 0.0) ** 2) / 2.0
    mean = float(np.exp(base + half)) + one.value
    if not mean > 0:
        raise UserError(
            f"{one.where}: {one.of} would take {mean:.0f} {plan.measure.unit} in {one.level}; {_plural(plan)} lie above 0"
        )
    return float(np.log(mean)) - own
