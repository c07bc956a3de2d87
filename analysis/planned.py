"""Reads which analyses a study planned, and which are run as exploratory where it planned none.

A planned analysis names a measure, the factor whose levels are compared, the reader groups and the contrasts.
Where people are named but only simulated readers have answered, the simulated ones stand in, marked, so that a
study can be rehearsed before it is run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.crossing import Crossing, compared_together, is_crossed
from analysis.measures import MEASURES, Measure, measure_named
from analysis.plan import (
    ALPHA,
    Bound,
    Difference,
    Plan,
    against_reference,
    interactions,
    read_bound,
    read_contrast,
)
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from analysis.within import Within, of_trials, parted_by_sessions
from stimuli.errors import UserError, unknown_name

__all__ = ["Bound", "Difference", "Plan", "against_reference", "plans", "read_contrast"]


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
    named = [str(one) for one in spec["compare"]] if is_crossed(spec) else [str(spec["compare"])]
    for factor in named:
        if factor not in factors:
            raise unknown_name(f"{where}.compare:", factor, factors)
    crossing = _crossed(spec, named, factors, where) if is_crossed(spec) else None
    groups = [str(group) for group in spec.get("between") or ["human"]]
    levels = list(crossing.cells) if crossing else _compared(spec.get("levels"), named[0], factors, where)
    own = dict(zip(crossing.factors, crossing.levels, strict=True)) if crossing else {named[0]: tuple(levels)}
    given = spec["measure"]
    by_group = {
        str(group): measure_named(str(one))
        for group, one in (given if isinstance(given, dict) else dict.fromkeys(groups, given)).items()
    }
    measures = list(dict.fromkeys(by_group[group] for group in groups if group in by_group))
    bound = _bound(spec.get("equivalence"), measures, where)
    found = []
    for measure in measures:
        plan = Plan(
            name if len(set(by_group.values())) == 1 else f"{name} ({measure.noun})",
            True,
            measure,
            crossing.name if crossing else named[0],
            tuple(levels),
            tuple(group for group in groups if by_group.get(group) == measure),
            _contrasts(spec, levels, crossing, where),
            trials=spec.get("trials"),
            within=_within(spec, named, factors, where),
            key=name,
            alpha=_alpha(spec.get("alpha", ALPHA), where),
            family=str(spec.get("family") or ""),
            equivalence=bound,
            formula=_text(spec.get("formula")),
            fallback=_text(spec.get("fallback")),
            exclude=dict(spec.get("exclude") or {}),
            stop=_text(spec.get("stop")),
            factors={name: tuple(one) for name, one in {**factors, **own}.items()},
            crossing=crossing,
        )
        found.append(_with_stand_in(plan, tables.trials))
    return found


def _crossed(
    spec: Mapping[str, Any], named: list[str], factors: Mapping[str, list[str]], where: str
) -> Crossing:
    """Read two factors that are compared together, each with all of its levels unless the plan names some."""
    if len(named) != 2 or named[0] == named[1]:
        raise UserError(
            f"{where}.compare is {named!r}; an interaction is of two factors",
            mend="Name two, such as [item_type, font].",
        )
    given = spec.get("levels") or {}
    if not isinstance(given, Mapping):
        raise UserError(
            f"{where}.levels is {given!r}; of two factors each has its own",
            mend=f"Write levels: {{{named[0]}: [{', '.join(factors[named[0]][:2])}]}}.",
        )
    for name in given:
        if name not in named:
            raise unknown_name(f"{where}.levels: factor", str(name), named)
    first, second = (tuple(_compared(given.get(name), name, factors, where)) for name in named)
    check_apart(first, second, named, where)
    return Crossing((named[0], named[1]), (first, second))


def check_apart(first: Sequence[str], second: Sequence[str], named: Sequence[str], where: str) -> None:
    """Refuse two factors of which a contrast could not say which is meant, or of which one has nothing to compare."""
    for name, own in zip(named, (first, second), strict=True):
        if len(own) < 2:
            raise UserError(
                f"{where}.compare: {name} has one level ({', '.join(own)}), and an interaction takes two",
                mend="Name another factor.",
            )
    both = [level for level in first if level in second]
    if both:
        raise UserError(
            f"{where}.compare: {' and '.join(named)} both have a level {both[0]!r}, so that a contrast could be of either",
            mend=f"Give it another name in one of them, such as {both[0]}_{named[1]}.",
        )


def _compared(given: Any, factor: str, factors: Mapping[str, list[str]], where: str) -> list[str]:
    """Return the levels that are compared, the reference first: all of the factor unless the plan names some."""
    if isinstance(given, Mapping):
        raise UserError(
            f"{where}.levels is {given!r}; one factor is compared", mend="Write a list of its levels."
        )
    named = [str(level) for level in given or factors[factor]]
    for level in named:
        if level not in factors[factor]:
            raise unknown_name(f"{where}.levels: level", level, factors[factor])
    return named


def _within(
    spec: Mapping[str, Any], compared: Sequence[str], factors: Mapping[str, list[str]], where: str
) -> Within:
    """Read the levels of other factors that its trials show."""
    found = []
    for name, level in (spec.get("within") or {}).items():
        if name not in factors or name in compared:
            others = [one for one in factors if one not in compared]
            raise unknown_name(f"{where}.within: factor", str(name), others)
        if str(level) not in factors[name]:
            raise unknown_name(f"{where}.within.{name}: level", str(level), factors[name])
        found.append((str(name), str(level)))
    return tuple(found)


def _contrasts(
    spec: Mapping[str, Any], levels: list[str], crossing: Crossing | None, where: str
) -> tuple[Difference, ...]:
    """Read the contrasts with the direction of each: one for all, or one by contrast."""
    usual = [f"{one} - {levels[0]}" for one in levels[1:]] if crossing is None else _as_written(crossing)
    said = [str(text) for text in spec.get("contrasts") or usual]
    given = spec.get("direction") or "two-sided"
    by_contrast = given if isinstance(given, dict) else dict.fromkeys(said, given)
    for text in by_contrast:
        if text not in said:
            raise unknown_name(f"{where}.direction: contrast", str(text), said)
    return tuple(
        read_contrast(text, levels, where, str(by_contrast.get(text, "two-sided")), crossing) for text in said
    )


def _as_written(crossing: Crossing) -> list[str]:
    """Write the interactions of two factors as a plan does."""
    return [f"({one.first} - {one.second}) x ({one.at[0]} - {one.at[1]})" for one in interactions(crossing)]


def _bound(said: Any, measures: list[Measure], where: str) -> Bound | None:
    """Read an equivalence bound, in the scale that all measures of the plan share."""
    if said is None:
        return None
    place = f"{where}.equivalence"
    if len({measure.scale for measure in measures}) > 1 or (len(measures) > 1 and measures[0].scale == "raw"):
        named = ", ".join(measure.name for measure in measures)
        raise UserError(
            f"{place} is {said!r}; differences in {named} have no scale in common",
            mend="Bound times and tokens, which are compared as ratios, or take the bound out.",
        )
    return read_bound(str(said), measures[0], place)


def _alpha(given: Any, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 0.5:
        raise UserError(f"{where}.alpha is {given!r}; it lies between 0 and 0.5", mend="For example 0.05.")
    return float(given)


def _text(given: Any) -> str | None:
    return None if given is None else str(given)


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
    by = {plan.factor: plan.crossing for plan in of_accuracy or planned}
    for factor, crossing in by.items():
        levels = tables.factors[factor] if crossing is None else list(crossing.cells)
        if (
            missed
            and len(levels) > 1
            and scored.loc[scored["reader_group"].isin(missed), factor].notna().any()
        ):
            name = f"accuracy by {factor} with readers that no plan names"
            contrasts = against_reference(levels) if crossing is None else interactions(crossing)
            found.append(
                Plan(
                    name,
                    False,
                    MEASURES["correct"],
                    factor,
                    tuple(levels),
                    groups,
                    contrasts,
                    factors=_all(tables),
                    crossing=crossing,
                )
            )
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
    for factor, levels, crossing in _unplanned(tables):
        others = {
            name: its
            for name, its in tables.factors.items()
            if crossing is None or name not in crossing.factors
        }
        for measure in MEASURES.values():
            own = tuple(groups) if measure.name == "correct" else people
            if not own or not used.loc[used["reader_group"].isin(own), measure.name].notna().any():
                continue
            for kind in kinds_of_trials(used, own) if measure.name == "correct" else (None,):
                seen = used if kind is None else used[used["trial_type"] == kind]
                asked = seen[seen["reader_group"].isin(own)]
                for within in parted_by_sessions(asked, factor, others):
                    whole = Plan("", False, measure, factor, (), own, (), trials=kind, within=within)
                    rows = seen[whole.holds(seen)] if whole.subset else seen
                    # what such trials never show is no condition of them, nor their reference
                    is_part = whole.subset or crossing is not None
                    shown = [one for one in levels if (rows[factor] == one).any()] if is_part else levels
                    if len(shown) < 2:
                        continue
                    within_it = None if crossing is None else crossing.among(shown)
                    if within_it is not None and not _can_interact(within_it, shown):
                        continue
                    found.append(
                        replace(
                            whole,
                            name=f"{measure.noun} by {factor}{of_trials(kind, within)}",
                            levels=tuple(shown),
                            contrasts=against_reference(shown)
                            if within_it is None
                            else interactions(within_it),
                            factors=_all(tables),
                            crossing=within_it,
                        )
                    )
    return found


def _unplanned(tables: Tables) -> Iterator[tuple[str, list[str], Crossing | None]]:
    """Yield what is compared where nothing is planned, with its levels: each factor, then each two factors that cross."""
    factors = tables.factors
    for name, levels in factors.items():
        if len(levels) > 1:
            yield name, levels, None
    for one, other in compared_together({}, factors):
        crossing = Crossing((one, other), (tuple(factors[one]), tuple(factors[other])))
        yield crossing.name, list(crossing.cells), crossing


def _can_interact(crossing: Crossing, shown: Collection[str]) -> bool:
    """Whether both factors vary and every cell of them has trials."""
    return min(len(own) for own in crossing.levels) > 1 and crossing.is_filled(shown)


def _all(tables: Tables) -> dict[str, tuple[str, ...]]:
    return {name: tuple(levels) for name, levels in tables.factors.items()}


def kinds_of_trials(used: pd.DataFrame, groups: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return the trial types whose answers are right or wrong, where there are several: they are no one measure.

    Parameters
    ----------
    used : pandas.DataFrame
        The analysed trials.
    groups : tuple of str
        Reader groups whose answers count here.

    Returns
    -------
    tuple
        ``(None,)``, all trials, where answers are given in one way.
    """
    rows = used[used["reader_group"].isin(groups) & used["correct"].notna()]
    kinds = [str(kind) for kind in pd.unique(rows["trial_type"].dropna())] if "trial_type" in rows else []
    return tuple(kinds) if len(kinds) > 1 else (None,)
