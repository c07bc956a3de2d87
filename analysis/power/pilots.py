"""Assumptions from a model that was fitted: to a pilot's tables, or by ``wrods fit --json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.contrasts import cell_means
from analysis.estimation import analyse
from analysis.frames import accuracy_data, indicator, time_data
from analysis.plan import Plan
from analysis.power.assumptions import Assumptions
from analysis.preparing import time_bounds
from analysis.preparing.exclusions import PILOT
from analysis.quantities import quantity_data
from analysis.readers import PARTICIPANT_KINDS, kinds_of
from analysis.results import VarianceTerm
from analysis.tables import Tables
from stimuli.errors import UserError

DRAWN = ("participant", "item", "item_condition", "item_reader", "item_cell", "prompt", "model_session")
"""Grouping columns of a fit whose effects can be drawn."""


def from_pilot(plan: Plan, tables: Tables, kinds: Mapping[str, str], name: str = "") -> Assumptions:
    """Fit a plan's model to a pilot's tables and take its estimates to be the truth.

    Sessions marked as pilots are taken where there are no others, which no other analysis does. Groups that the
    pilot lacks are left open.

    Parameters
    ----------
    plan : Plan
    tables : Tables
    kinds : mapping of str to str
        Reader kind of each group of the plan.
    name : str
        What the pilot is called; default its folder.

    Raises
    ------
    UserError
        Where no model could be fitted; says why.
    """
    trials, remarks = tables.trials, []
    if trials["excluded_reason"].notna().all() and (trials["excluded_reason"] == PILOT).any():
        trials = trials.assign(
            excluded_reason=trials["excluded_reason"].where(trials["excluded_reason"] != PILOT, None)
        )
        remarks.append("The pilot's sessions are marked as pilots; they are in no other analysis.")
    there = kinds_of(trials[trials["excluded_reason"].isna()])
    named = dict.fromkeys(plan.groups)
    if "human" in named and "human" not in there and "simulated" in there:
        named = {("simulated" if group == "human" else group): None for group in named}
        remarks.append("Simulated readers stand in for people: their effects were put in, not measured.")
    own = replace(plan, groups=tuple(group for group in named if group in there))
    if plan.measure.family == "binomial":
        data = accuracy_data(trials, own)
    elif plan.measure.of == "models":
        data = quantity_data(trials, own)
    else:
        data = time_data(trials, own, time_bounds(tables.dictionary["exclude"], plan.measure.name))
    analysis = analyse(own, data)
    model = analysis.model
    if model is None:
        why = " ".join(analysis.remarks) or "it has no trials of the plan's readers"
        raise UserError(f"the pilot gives no model for {plan.name}: {why}", exit_code=1)
    if not model.determined:
        raise UserError(
            f"the pilot does not determine the effects of {plan.name}",
            mend="Give means by hand, or run more pilot sessions.",
            exit_code=1,
        )
    as_planned = {"simulated": "human"} if "human" in plan.groups else {}
    cells = {
        (as_planned.get(group, group), level): float(cell.weights @ model.beta)
        for (group, level), cell in cell_means(plan.factor, data, model).items()
    }
    if model.singular or len(model.steps) > 1:
        remarks.append("The pilot's model was reduced or is singular: some of its variances count as zero.")
    people = analysis.groups and all(there[group] in PARTICIPANT_KINDS for group in analysis.groups)
    remarks += [
        f"Pilot: {model.rows:,} trials, "
        + ", ".join(f"{count} levels of {name}" for name, count in model.units.items())
        + ". Its estimates are taken as the truth; their own uncertainty is not in the power.",
        *analysis.remarks,
    ]
    if people and len({kinds[group] in PARTICIPANT_KINDS for group in plan.groups}) > 1:
        remarks.append("The pilot has no models: items are taken to differ in models as they do in people.")
    variance = tuple(_renamed(term, plan, kinds) for term in model.variance)
    sigma = model.sigma if plan.measure.family == "gaussian" else None
    return Assumptions(cells, variance, sigma, kinds, f"pilot {name or tables.folder}", tuple(remarks))


def _renamed(term: VarianceTerm, plan: Plan, kinds: Mapping[str, str]) -> VarianceTerm:
    """Confine a pilot's participant effects to people where the plan has models too."""
    mixed = len({kinds[group] in PARTICIPANT_KINDS for group in plan.groups}) > 1
    if not mixed or term.group != "participant":
        return term
    names = {"(Intercept)": "people"}
    if plan.crossing is not None:
        for name in plan.crossing.in_words():
            names[name] = f"people:{name}"
    for level in plan.levels:
        names[f"{plan.factor}{level}"] = names[indicator(plan.factor, level)] = indicator("people", level)
    return VarianceTerm(term.group, tuple(names.get(name, name) for name in term.terms), term.cov)


def from_fit_file(plan: Plan, file: Path, kinds: Mapping[str, str]) -> Assumptions:
    """Read what ``wrods fit --json`` printed.

    The fit names things as the study does: the factor by its name, readers in a column ``reader_group`` (or any other
    that is crossed with it), treatment coding with the study's references, ``participant`` and ``item`` as grouping columns.

    Raises
    ------
    UserError
        For a file that is none, another family than the plan's, and a term that is not of this form.
    """
    if plan.crossing is not None:
        raise UserError(
            f"{file}: {plan.name} compares {' and '.join(plan.crossing.factors)}, and a fit is read of one factor",
            mend="Give the mean of each cell by hand (--mean), or a pilot (--pilot).",
        )
    try:
        told = json.loads(file.read_text("utf-8"))
        fixed = {str(row["term"]): float(row["estimate"]) for row in told["fixed"]}
        family, variance = str(told["family"]), list(told["variance"])
        response = str(told["formula"]).split("~")[0].strip()
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{file} is not what `wrods fit --json` prints", mend="Make it with: wrods fit … --json > FILE."
        ) from error
    if family != plan.measure.family:
        raise UserError(
            f"{file} holds a {family} model; {plan.measure.noun} needs a {plan.measure.family} one"
        )
    if family == "binomial" and told.get("link", "logit") != "logit":
        raise UserError(f"{file} has the link {told['link']}; accuracy is planned with the logit")
    cells = {
        (group, level): _cell(fixed, group, level, plan, file)
        for group in plan.groups
        for level in plan.levels
    }
    terms = tuple(_term(one, plan, file) for one in variance)
    remarks = (f"The response of the fit is {response}.",)
    sigma = float(told["sigma"]) if family == "gaussian" else None
    known = Assumptions(cells, terms, sigma, kinds, f"fit {file.name}", remarks)
    return replace(known, variance=tuple(_renamed(term, plan, kinds) for term in terms))


def _cell(fixed: Mapping[str, float], group: str, level: str, plan: Plan, file: Path) -> float:
    """Add up the treatment-coded terms that hold in a cell."""
    total = 0.0
    for name, value in fixed.items():
        parts = [] if name == "(Intercept)" else name.split(":")
        total += value * all(_holds(part, group, level, plan, file) for part in parts)
    return total


def _holds(part: str, group: str, level: str, plan: Plan, file: Path) -> bool:
    for known in plan.levels[1:]:
        if part in (f"{plan.factor}{known}", indicator(plan.factor, known)):
            return known == level
    ends = [known for known in plan.groups if part.endswith(known) and part != known]
    if ends and not part.startswith(plan.factor):
        return max(ends, key=len) == group
    raise UserError(
        f"{file}: the term {part!r} is neither a level of {plan.factor} nor a reader of the plan",
        mend=f"Fit with --levels {plan.factor}={','.join(plan.levels)} and the plan's readers: {', '.join(plan.groups)}.",
    )


def _term(told: Any, plan: Plan, file: Path) -> VarianceTerm:
    group = str(told["group"]).split(".")[0]
    known = {"(Intercept)", "people", "model", *_indicators(plan)}
    names: Sequence[str] = [str(name) for name in told["terms"]]
    if group not in DRAWN:
        raise UserError(
            f"{file}: nothing is known of the grouping column {group!r}",
            mend="Name the columns participant and item, and leave others out.",
        )
    for name in names:
        if not set(name.split(":")) <= known:
            raise UserError(
                f"{file}: the random effect {name!r} by {group} cannot be drawn",
                mend=f"Random slopes are of {plan.factor}; leave others out.",
            )
    return VarianceTerm(group, tuple(names), np.array(told["cov"], dtype=float))


def _indicators(plan: Plan) -> list[str]:
    plain = [f"{plan.factor}{level}" for level in plan.levels[1:]]
    return [
        *plain,
        *(indicator(of, level) for of in (plan.factor, "people", "model") for level in plan.levels),
    ]
