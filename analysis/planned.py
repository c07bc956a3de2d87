"""Reads which analyses a study planned, and which are run as exploratory where it planned none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace

import pandas as pd

from analysis.plan import (
    MEASURES,
    RATING,
    CrossedFactors,
    Plan,
    PlanContext,
    PlannedAnalysis,
    Rules,
    Within,
    compared_together,
    faults_of,
    read_plan,
    usual_contrasts,
)
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import error_at, together


def plans(tables: Tables) -> list[Plan]:
    """Return the analyses to run: planned ones and accuracy of other readers, or accuracy and time by each factor as exploratory."""
    if tables.dictionary["planned"]:
        found = [plan for analysis in planned_analyses(tables) for plan in _plans_of(analysis, tables)]
        return [*found, *_left_out(found, tables)]
    return _exploratory(tables)


def planned_analyses(tables: Tables) -> list[PlannedAnalysis]:
    """Return the planned analyses of a study as they are written."""
    design = PlanContext(tables.factors)
    found, faults = [], []
    for name, spec in tables.dictionary["planned"].items():
        where = f"analysis.planned.{name}"
        wrong = [error_at(f"{where}{fault.path}", *fault.args) for fault in faults_of(spec, design)]
        faults += wrong
        if not wrong:
            found.append(read_plan(str(name), spec, tables.factors))
    if faults:
        raise together(faults)
    return found


def _plans_of(one: PlannedAnalysis, tables: Tables) -> Iterator[Plan]:
    """Yield the plan of each measure of a planned analysis."""
    crossing = one.crossing
    levels = one.levels_of[one.factors[0]] if crossing is None else crossing.cells
    factors = {name: tuple(own) for name, own in {**tables.factors, **one.levels_of}.items()}
    for measure, readers in one.by_measure.items():
        plan = Plan(
            one.name if len(one.by_measure) == 1 else f"{one.name} ({measure.noun})",
            True,
            measure,
            one.factors[0] if crossing is None else crossing.name,
            levels,
            readers,
            one.contrasts,
            within=tuple(one.within.items()),
            key=one.name,
            factors=factors,
            crossing=crossing,
            **{rule.name: getattr(one, rule.name) for rule in fields(Rules)},
        )
        yield _with_stand_in(plan, tables.trials)


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
        columns = [factor] if crossing is None else list(crossing.factors)
        of_missed = scored.loc[scored["reader_group"].isin(missed), columns]
        if len(levels) > 1 and of_missed.notna().all(axis=1).any():
            name = f"accuracy by {factor} with readers that no plan names"
            contrasts = usual_contrasts({factor: levels} if crossing is None else crossing.by_factor)
            plan = Plan(name, False, MEASURES["correct"], factor, tuple(levels), groups, contrasts)
            found.append(replace(plan, factors=_all(tables), crossing=crossing))
    return found


def _exploratory(tables: Tables) -> list[Plan]:
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    groups = group_order(used[used["reader_kind"] != "baseline"])
    if "human" in groups and "simulated" in groups:
        groups.remove("simulated")
    people = tuple(group for group in groups if group in PARTICIPANT_KINDS)
    found = []
    for factor, levels, crossing in _unplanned(tables):
        compared = () if crossing is None else crossing.factors
        others = {name: its for name, its in tables.factors.items() if name not in compared}
        for measure in (*MEASURES.values(), *([RATING] if has_ratings(tables) else [])):
            own = tuple(groups) if measure.of == "all" else people
            if not own or not used.loc[used["reader_group"].isin(own), measure.name].notna().any():
                continue
            for kind in kinds_of_trials(used, own) if measure.name == "correct" else (None,):
                seen = used if kind is None else used[used["trial_type"] == kind]
                asked = seen[seen["reader_group"].isin(own)]
                for within in parted_by_sessions(asked, factor, others):
                    whole = Plan("", False, measure, factor, (), own, (), trials=kind, within=within)
                    rows = seen[held_by(whole, seen)] if whole.subset else seen
                    # what such trials never show is no condition of them, nor their reference
                    is_part = whole.subset or crossing is not None
                    shown = (
                        [level for level in levels if (rows[factor] == level).any()] if is_part else levels
                    )
                    if len(shown) < 2:
                        continue
                    part = None if crossing is None else crossing.among(shown)
                    if part is not None and (min(map(len, part.levels)) < 2 or not part.is_filled(shown)):
                        continue
                    name = f"{measure.noun} by {factor}{of_trials(kind, within)}"
                    contrasts = usual_contrasts({factor: shown} if part is None else part.by_factor)
                    given = replace(whole, name=name, levels=tuple(shown), contrasts=contrasts)
                    found.append(replace(given, factors=_all(tables), crossing=part))
    return found


def has_ratings(tables: Tables) -> bool:
    """Whether trials have ratings, and not a factor with that name."""
    return RATING.name in tables.trials and RATING.name not in tables.factors


def _unplanned(tables: Tables) -> Iterator[tuple[str, list[str], CrossedFactors | None]]:
    """Yield the default comparisons, with their levels, of a study without a plan: each factor, then each two crossed factors."""
    factors = tables.factors
    for name, levels in factors.items():
        if len(levels) > 1:
            yield name, levels, None
    for one, other in compared_together({}, factors):
        crossing = CrossedFactors((one, other), (tuple(factors[one]), tuple(factors[other])))
        yield crossing.name, list(crossing.cells), crossing


def _all(tables: Tables) -> dict[str, tuple[str, ...]]:
    return {name: tuple(levels) for name, levels in tables.factors.items()}


def kinds_of_trials(used: pd.DataFrame, groups: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return the trial types whose answers are right or wrong, where there are several: they are no one measure."""
    rows = used[used["reader_group"].isin(groups) & used["correct"].notna()]
    kinds = [str(kind) for kind in pd.unique(rows["trial_type"].dropna())] if "trial_type" in rows else []
    return tuple(kinds) if len(kinds) > 1 else (None,)


def parted_by_sessions(rows: pd.DataFrame, factor: str, factors: Mapping[str, Sequence[str]]) -> list[Within]:
    """Return the parts of trials within which levels of a factor are compared."""
    seen = rows[rows[factor].notna()]
    apart = [name for name in factors if name != factor and _parts_sessions(seen, name)]
    if not apart:
        return [()]
    several = seen.groupby(apart, sort=False, observed=True)[factor].nunique()
    shown = several[several > 1].index.to_frame().astype(str).itertuples(index=False, name=None)
    found = [tuple(zip(apart, levels, strict=True)) for levels in shown]
    ranks = {name: {level: place for place, level in enumerate(map(str, factors[name]))} for name in apart}
    found.sort(key=lambda within: [ranks[name].get(level, len(ranks[name])) for name, level in within])
    return found or [()]


def _parts_sessions(rows: pd.DataFrame, name: str) -> bool:
    """Whether every session holds one level of a factor, and not all the same."""
    if name not in rows or rows[name].nunique() < 2 or rows[name].isna().any():
        return False
    return bool((rows.groupby("session_id")[name].nunique() == 1).all())


def shown(rows: pd.DataFrame, within: Within) -> pd.Series[bool]:
    """Mark the rows that show these levels."""
    kept = pd.Series(True, index=rows.index)
    for factor, level in within:
        kept &= rows[factor] == level
    return kept


def held_by(plan: Plan, trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials that are of a plan's kind and show its levels of other factors."""
    kept = shown(trials, plan.within)
    return kept if plan.trials is None else kept & (trials["trial_type"] == plan.trials)


def of_trials(trials: str | None, within: Within) -> str:
    """Name the trials in parentheses, for use after a name: `` (choose, examples few-shot)``; empty for all."""
    parts = [*([trials] if trials else []), *(f"{factor} {level}" for factor, level in within)]
    return f" ({', '.join(parts)})" if parts else ""
