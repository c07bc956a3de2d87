"""Reads which analyses a study planned, and which are run as exploratory where it planned none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from analysis.plan import (
    COVARIED,
    MEASURES,
    PLANNABLE,
    RATING,
    CrossedFactors,
    Plan,
    PlanContext,
    PlannedAnalysis,
    Rules,
    Within,
    compared_together,
    faults_of,
    own_measure,
    read_plan,
    usual_contrasts,
)
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order
from analysis.tables import Tables
from stimuli.errors import error_at, together


def plans(tables: Tables) -> list[Plan]:
    """Return the analyses to run: planned ones and accuracy of other readers, or accuracy and time by each factor as exploratory."""
    if tables.dictionary["planned"]:
        planned = [plan for analysis in planned_analyses(tables) for plan in _plans_of(analysis, tables)]
        return [*planned, *_left_out(planned, tables)]
    return _exploratory(tables)


def planned_analyses(tables: Tables) -> list[PlannedAnalysis]:
    """Return the planned analyses of a study as they are written."""
    own = {name: own_measure(**told) for name, told in (tables.dictionary.get("own_measures") or {}).items()}
    design = PlanContext(tables.factors, own=own)
    analyses, faults = [], []
    for name, spec in tables.dictionary["planned"].items():
        path = f"analysis.planned.{name}"
        problems = [error_at(f"{path}{fault.path}", *fault.args) for fault in faults_of(spec, design)]
        faults += problems
        if not problems:
            analyses.append(read_plan(str(name), spec, tables.factors, own))
    if faults:
        raise together(faults)
    return analyses


def _plans_of(analysis: PlannedAnalysis, tables: Tables) -> Iterator[Plan]:
    """Yield the plan of each measure of a planned analysis."""
    crossing = analysis.crossing
    levels = analysis.levels_of[analysis.factors[0]] if crossing is None else crossing.cells
    factors = {name: tuple(levels) for name, levels in {**tables.factors, **analysis.levels_of}.items()}
    for measure, readers in analysis.questions:
        plan = Plan(
            analysis.name if len(analysis.questions) == 1 else f"{analysis.name} ({measure.noun})",
            True,
            measure,
            analysis.factors[0] if crossing is None else crossing.name,
            levels,
            readers,
            analysis.contrasts,
            within=tuple(analysis.within.items()),
            key=analysis.name,
            factors=factors,
            crossing=crossing,
            **{rule.name: getattr(analysis, rule.name) for rule in fields(Rules)},
        )
        yield _with_stand_in(_in_its_columns(plan), tables.trials)


def _in_its_columns(plan: Plan) -> Plan:
    """Return a plan whose own formula names the response of its region, and whose covariates are of a measure that has them."""
    measure = plan.measure

    def of_region(formula: str | None) -> str | None:
        return formula and formula.replace(PLANNABLE.get(measure.kind, measure).response, measure.response, 1)

    return replace(
        plan,
        formula=of_region(plan.formula),
        fallback=of_region(plan.fallback),
        covariates=plan.covariates if measure.kind in COVARIED else (),
    )


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
    scored_groups = group_order(scored[scored["reader_kind"].isin(DATA_KINDS)])
    unplanned = [
        group
        for group in scored_groups
        if group not in named and scored.loc[scored["reader_group"] == group, "correct"].notna().any()
    ]
    present = set(scored["reader_group"])
    planned_groups = [group for plan in of_accuracy for group in plan.groups if group in present]
    first = "human" if "human" in scored_groups else next(iter(planned_groups), None)
    groups = tuple(dict.fromkeys([*([first] if first else []), *unplanned]))
    added = []
    crossings = {plan.factor: plan.crossing for plan in of_accuracy or planned}
    for factor, crossing in crossings.items():
        levels = tables.factors[factor] if crossing is None else list(crossing.cells)
        columns = [factor] if crossing is None else list(crossing.factors)
        of_missed = scored.loc[scored["reader_group"].isin(unplanned), columns]
        if len(levels) > 1 and of_missed.notna().all(axis=1).any():
            name = f"accuracy by {factor} (not planned)"
            contrasts = usual_contrasts({factor: levels} if crossing is None else crossing.by_factor)
            plan = Plan(name, False, MEASURES["correct"], factor, tuple(levels), groups, contrasts)
            added.append(replace(plan, factors=_all(tables), crossing=crossing))
    return added


def _exploratory(tables: Tables) -> list[Plan]:
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    groups = group_order(used[used["reader_kind"] != "baseline"])
    if "human" in groups and "simulated" in groups:
        groups.remove("simulated")
    people = tuple(group for group in groups if group in PARTICIPANT_KINDS)
    result = []
    for factor, levels, crossing in _unplanned(tables):
        compared = () if crossing is None else crossing.factors
        others = {name: names for name, names in tables.factors.items() if name not in compared}
        for measure in (*MEASURES.values(), *([RATING] if has_ratings(tables) else [])):
            readers = tuple(groups) if measure.of == "all" else people
            if not readers or not used.loc[used["reader_group"].isin(readers), measure.name].notna().any():
                continue
            for kind in kinds_of_trials(used, readers) if measure.name == "correct" else (None,):
                trials = used if kind is None else used[used["trial_type"] == kind]
                answered = trials[trials["reader_group"].isin(readers)]
                for within in parted_by_sessions(answered, factor, others):
                    base = Plan("", False, measure, factor, (), readers, (), trials=kind, within=within)
                    rows = trials[held_by(base, trials)] if base.subset else trials
                    # what such trials never show is no condition of them, nor their reference
                    is_part = base.subset or crossing is not None
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
                    plan = replace(base, name=name, levels=tuple(shown), contrasts=contrasts)
                    result.append(replace(plan, factors=_all(tables), crossing=part))
    return result


def has_ratings(tables: Tables) -> bool:
    """Whether trials have ratings, and not a factor with that name."""
    has_column = RATING.name in tables.trials and RATING.name not in tables.factors
    return has_column and bool(tables.trials[RATING.name].notna().any())


def scale_of_ratings(tables: Tables) -> dict[str, Any] | None:
    """Return the one scale on which all trials of a study are rated; None if it has none, or several."""
    scales = tables.dictionary.get("scales") or []
    return scales[0] if len(scales) == 1 else None


def _unplanned(tables: Tables) -> Iterator[tuple[str, list[str], CrossedFactors | None]]:
    """Yield the default comparisons, with their levels, of a study without a plan: each factor, then each two crossed factors."""
    factors = tables.factors
    for name, levels in factors.items():
        if len(levels) > 1:
            yield name, levels, None
    for first, second in compared_together({}, factors):
        crossing = CrossedFactors((first, second), (tuple(factors[first]), tuple(factors[second])))
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
    present = rows[rows[factor].notna()]
    separate = [name for name in factors if name != factor and _parts_sessions(present, name)]
    if not separate:
        return [()]
    counts = present.groupby(separate, sort=False, observed=True)[factor].nunique()
    shown = counts[counts > 1].index.to_frame().astype(str).itertuples(index=False, name=None)
    parts = [tuple(zip(separate, levels, strict=True)) for levels in shown]
    ranks = {name: {level: index for index, level in enumerate(map(str, factors[name]))} for name in separate}
    parts.sort(key=lambda within: [ranks[name].get(level, len(ranks[name])) for name, level in within])
    return parts or [()]


def _parts_sessions(rows: pd.DataFrame, name: str) -> bool:
    """Whether every session holds one level of a factor, and not all the same."""
    if name not in rows or rows[name].nunique() < 2 or rows[name].isna().any():
        return False
    return bool((rows.groupby("session_id")[name].nunique() == 1).all())


def shown(rows: pd.DataFrame, within: Within) -> pd.Series[bool]:
    """Mark the rows that show these levels."""
    is_shown = pd.Series(True, index=rows.index)
    for factor, level in within:
        is_shown &= rows[factor] == level
    return is_shown


def held_by(plan: Plan, trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials that are of a plan's kind and show its levels of other factors."""
    is_shown = shown(trials, plan.within)
    return is_shown if plan.trials is None else is_shown & (trials["trial_type"] == plan.trials)


def trials_named(kind: str) -> str:
    """Name the trials of a type by what they ask for."""
    return _TRIALS.get(kind, f"{kind} trials")


_TRIALS = {"choose": "choices", "rate": "ratings", "read": "texts read"}
_TRIALS |= {"answer": "typed answers", "type": "typed answers", "recover": "recovered texts"}


def of_trials(trials: str | None, within: Within) -> str:
    """Name the trials in parentheses, for use after a name: `` (choices, examples few-shot)``; empty for all."""
    parts = [*([trials_named(trials)] if trials else []), *(f"{factor} {level}" for factor, level in within)]
    return f" ({', '.join(parts)})" if parts else ""
