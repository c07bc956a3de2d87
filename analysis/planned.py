"""Reads which analyses a study planned, and which are run as exploratory where it planned none.

A planned analysis names a measure, the factor whose levels are compared, the reader groups and the contrasts.
Where people are named but only simulated readers have answered, the simulated ones stand in, marked, so that a
study can be rehearsed before it is run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.measures import MEASURES, Measure, measure_named
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import UserError, unknown_name


@dataclass(frozen=True)
class Difference:
    """A contrast between two levels of the compared factor: ``first`` minus ``second``."""

    first: str
    second: str

    @property
    def label(self) -> str:
        """The contrast in words, with a true minus."""
        return f"{self.first} − {self.second}"


@dataclass(frozen=True)
class Plan:
    """One analysis to run.

    Attributes
    ----------
    name : str
        The key in the study, or a name for an exploratory analysis.
    planned : bool
        Whether the study named it.
    measure : Measure
    factor : str
    levels : tuple of str
        Levels of the factor, reference first.
    groups : tuple of str
        Reader groups, in the order in which the study names them.
    contrasts : tuple of Difference
    stand_in : bool
        Whether simulated readers take the place of people.
    remarks : tuple of str
        What of the plan could not be taken as written.
    trials : str or None
        Only trials that end with this step (choose, recover …), where blocks answer in different ways.
    """

    name: str
    planned: bool
    measure: Measure
    factor: str
    levels: tuple[str, ...]
    groups: tuple[str, ...]
    contrasts: tuple[Difference, ...]
    stand_in: bool = False
    remarks: tuple[str, ...] = ()
    trials: str | None = None


def plans(tables: Tables) -> list[Plan]:
    """Return the analyses to run: the planned ones, or accuracy and time by each factor as exploratory.

    People and models that are in no planned analysis of accuracy get one exploratory comparison by each factor
    that the plan compares, together with the people (or the first planned readers).

    Raises
    ------
    UserError
        Where a plan names an unknown measure, factor or level. A reader that has not answered yet is no error.
    """
    planned = tables.dictionary["planned"]
    if planned:
        found = [plan for name, spec in planned.items() for plan in _planned(name, spec, tables)]
        return [*found, *_left_out(found, tables)]
    return _exploratory(tables)


def _planned(name: str, spec: dict[str, Any], tables: Tables) -> list[Plan]:
    where = f"analysis.planned.{name}"
    factors = tables.factors
    factor = str(spec["compare"])
    if factor not in factors:
        raise unknown_name(f"{where}.compare:", factor, factors)
    groups = [str(group) for group in spec.get("between") or ["human"]]
    levels = factors[factor]
    contrasts = tuple(read_contrast(text, levels, where) for text in spec.get("contrasts") or [])
    given = spec["measure"]
    by_group = given if isinstance(given, dict) else dict.fromkeys(groups, given)
    found = []
    for measure in dict.fromkeys(str(by_group[group]) for group in groups if group in by_group):
        own = [group for group in groups if by_group.get(group) == measure]
        label = name if len(set(by_group.values())) == 1 else f"{name} ({measure_named(measure).noun})"
        plan = Plan(
            label,
            True,
            measure_named(measure),
            factor,
            tuple(levels),
            tuple(own),
            contrasts or against_reference(levels),
            trials=spec.get("trials"),
        )
        found.append(_with_stand_in(plan, tables.trials))
    return found


def read_contrast(text: str, levels: list[str], where: str = "contrast") -> Difference:
    """Read ``initial - internal``; a UserError names the nearest level where one is misspelt."""
    sides = re.split(r"\s+[-−–]\s+", str(text).strip())
    if len(sides) != 2 or sides[0] == sides[1]:
        raise UserError(
            f"{where}.contrasts: {text!r} is not the difference of two levels", mend="Write: a - b."
        )
    for side in sides:
        if side not in levels:
            raise unknown_name(f"{where}.contrasts: level", side, levels)
    return Difference(sides[0], sides[1])


def against_reference(levels: list[str]) -> tuple[Difference, ...]:
    """Compare each level with the first, the reference."""
    return tuple(Difference(level, levels[0]) for level in levels[1:])


def _with_stand_in(plan: Plan, trials: pd.DataFrame) -> Plan:
    present = set(trials.loc[trials["excluded_reason"].isna(), "reader_group"])
    if "human" not in plan.groups or "human" in present or "simulated" not in present:
        return plan
    groups = tuple(
        "simulated" if group == "human" else group for group in plan.groups if group != "simulated"
    )
    return replace(plan, groups=groups, stand_in=True)


def _left_out(planned: list[Plan], tables: Tables) -> list[Plan]:
    """Compare the accuracy of readers that no plan of accuracy names with that of the people."""
    trials = tables.trials
    scored = trials[trials["excluded_reason"].isna() & trials["response_status"].notna()]
    of_accuracy = [plan for plan in planned if plan.measure.name == "correct"]
    named = {group for plan in of_accuracy for group in plan.groups}
    own = group_order(scored[scored["reader_kind"].isin(DATA_KINDS)])
    missed = [group for group in own if group not in named]
    present = set(scored["reader_group"])
    beside = [group for plan in of_accuracy for group in plan.groups if group in present]
    first = "human" if "human" in own else next(iter(beside), None)
    groups = tuple(dict.fromkeys([*([first] if first else []), *missed]))
    found = []
    for factor in dict.fromkeys(plan.factor for plan in of_accuracy or planned):
        levels = tables.factors[factor]
        if (
            missed
            and len(levels) > 1
            and scored.loc[scored["reader_group"].isin(missed), factor].notna().any()
        ):
            name = f"accuracy by {factor} with readers that no plan names"
            contrasts = against_reference(levels)
            found.append(Plan(name, False, MEASURES["correct"], factor, tuple(levels), groups, contrasts))
    return found


def _exploratory(tables: Tables) -> list[Plan]:
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    data_kinds = used[used["reader_kind"] != "baseline"]
    groups = group_order(data_kinds)
    if "human" in groups and "simulated" in groups:
        groups.remove("simulated")
    people = tuple(group for group in groups if group in PARTICIPANT_KINDS)
    found = []
    for factor, levels in tables.factors.items():
        if len(levels) < 2:
            continue
        contrasts = against_reference(levels)
        for measure in MEASURES.values():
            own = tuple(groups) if measure.name == "correct" else people
            if not own or not used.loc[used["reader_group"].isin(own), measure.name].notna().any():
                continue
            name = f"{measure.noun} by {factor}"
            found.append(Plan(name, False, measure, factor, tuple(levels), own, contrasts))
    return found
