"""The same comparison under every usual preparation of the data, to see whether the conclusion depends on a choice.

A universe is one set of choices: which sessions (as the study excluded them, with the excluded ones back, without those that
meet a declared rule), which rule for times or what becomes of missing answers, which answers, which scale. The study's own choices
are marked as primary; the others are no further tests but a view of how much the choice matters (Steegen, Tuerlinckx, Gelman &
Vanpaemel, 2016, Perspectives on Psychological Science 11, 702-712). Each universe has the differences of means over participants
(items, for a model) with Student's intervals, which cost nothing; ``fit=True`` adds the planned mixed model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import is_valid, judged, not_failed
from analysis.carrying_out import analyse_accuracy
from analysis.estimation import analyse
from analysis.frames import FAILURES, WRONG, analysed_as_planned, time_data
from analysis.intervals import reach
from analysis.measures.accuracy import with_chance
from analysis.plan import Plan
from analysis.preparing.exclusions import (
    Alternative,
    alternatives,
    keeps_right_answers_alone,
    of_flagged_sessions,
    sessions_against_rules,
    without_choices,
)
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import Analysis
from analysis.tables import Tables
from stimuli.errors import UserError

AS_EXCLUDED, BACK, STRICT = "as the study excluded", "excluded sessions back", "without all that meet a rule"
VALID, RIGHT = "all valid answers", "right answers only"
LOG, RAW, POINTS = "log", "ms", "points"
SAID = {"chance": "at chance"}


@dataclass(frozen=True)
class Universe:
    """One set of choices."""

    sessions: str  # in words; ``rule`` is the rule for times, or what becomes of missing answers
    rule: str
    answers: str
    scale: str
    is_primary: bool  # whether all choices are the study's own


def session_choices(tables: Tables) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the trials as the study excluded sessions, then the other choices as far as they differ, one at a time."""
    yield AS_EXCLUDED, tables.trials
    factors, collected = list(tables.dictionary["factors"]), tables.dictionary["collected_design_hash"]
    if tables.trials["flagged_reason"].notna().any():
        yield BACK, of_flagged_sessions(tables.trials, factors, collected, back=True)
    held = sessions_against_rules(tables.trials, tables.dictionary["exclude"])
    if len(held):
        meeting = held[held["meets"].fillna(False).astype(bool) & ~held["excluded"]]
        if len(meeting):
            out = set(meeting["session_id"])
            yield STRICT, of_flagged_sessions(tables.trials, factors, collected, back=False, out=out)


def time_multiverse(
    tables: Tables,
    plan: Plan,
    *,
    rules: Sequence[Alternative] | None = None,
    scales: Sequence[str] = (LOG, RAW),
    answers: Sequence[str] = (VALID, RIGHT),
    fit: bool = False,
) -> pd.DataFrame:
    """Compare times under every rule for times, scale and choice of answers and sessions."""
    if plan.measure.unit != "ms":
        raise UserError(f"{plan.measure.noun} is no time", mend="Give a plan of rt or reading_time.")
    for given, known in ((scales, (LOG, RAW)), (answers, (VALID, RIGHT))):
        wrong = [one for one in given if one not in known]
        if wrong:
            raise UserError(
                f"{wrong[0]!r} is no choice of a multiverse", mend=f"It is one of {', '.join(known)}."
            )
    rules = rules or alternatives(
        plan.measure.name, tables.dictionary["exclude"], [plan.factor], plan.exclude
    )
    own_answers = RIGHT if keeps_right_answers_alone(plan.exclude) else VALID
    plan = replace(plan, exclude=without_choices(plan.exclude, plan.measure.name))
    found: list[dict[str, Any]] = []
    for sessions, trials in session_choices(tables):
        for choice in answers:
            rows = _answering(trials, choice)
            times = _timed(rows, plan)
            for rule in rules:
                kept = rule.rule.keeps(times, plan.measure.name) if len(times) else times["item_id"].notna()
                for scale in scales:
                    own = sessions == AS_EXCLUDED and choice == own_answers and rule.is_own
                    primary = own and (scale == LOG) == plan.measure.logged
                    universe = Universe(sessions, rule.name, choice, scale, primary)
                    told = _times_in(universe, times, kept, plan)
                    if fit:
                        scaled = _scaled(plan, scale)
                        _add_models(told, analyse(scaled, time_data(rows, scaled, rule.rule)), scale)
                    found += told
    return pd.DataFrame(found)


def accuracy_multiverse(
    tables: Tables, plan: Plan, *, failures: Sequence[str] = FAILURES, fit: bool = False
) -> pd.DataFrame:
    """Compare accuracy with missing answers as wrong, left out and at chance, and under each choice of sessions."""
    if plan.measure.name != "correct":
        raise UserError(f"{plan.measure.noun} is no accuracy", mend="Give a plan of correct.")
    found: list[dict[str, Any]] = []
    for sessions, trials in session_choices(tables):
        if "chance" in failures:
            trials = with_chance(trials, tables.items, tables.factors)
        chosen = replace(tables, trials=trials)
        for way in failures:
            universe = Universe(
                sessions,
                f"failures {SAID.get(way, way)}",
                VALID,
                POINTS,
                sessions == AS_EXCLUDED and way == WRONG,
            )
            told = _shares_in(universe, trials, plan, way)
            if fit:
                _add_models(told, analyse_accuracy(plan, chosen, way, companion=False), POINTS)
            found += told
    return pd.DataFrame(found)


def _answering(trials: pd.DataFrame, choice: str) -> pd.DataFrame:
    if choice == VALID:
        return trials
    return trials[trials["response_status"].isna() | (trials["correct"] == 1)]


def _timed(trials: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return the trials of participants with a valid answer and a time above 0."""
    rows = analysed_as_planned(trials, plan)[0]
    people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    return rows[not_failed(rows) & people & (rows[plan.measure.name] > 0)]


def _scaled(plan: Plan, scale: str) -> Plan:
    name = plan.measure.name
    logged = scale == LOG
    return replace(
        plan, measure=replace(plan.measure, logged=logged, response=f"log_{name}" if logged else name)
    )


def _times_in(
    universe: Universe, times: pd.DataFrame, kept: pd.Series[bool], plan: Plan
) -> list[dict[str, Any]]:
    value: pd.Series[Any] = times[plan.measure.name].astype(float)
    value = value.apply(np.log) if universe.scale == LOG else value
    parts: dict[str, Any] = {
        "unit": times["reader"],
        "value": value,
        "used": kept,
        "gone": (~kept).astype(float),
    }
    return _compared(universe, times[["reader_group", plan.factor]].assign(**parts), plan)


def _shares_in(universe: Universe, trials: pd.DataFrame, plan: Plan, way: str) -> list[dict[str, Any]]:
    rows = analysed_as_planned(trials, plan)[0]
    rows = rows[judged(rows)]
    valid, people = is_valid(rows), rows["reader_kind"].isin(PARTICIPANT_KINDS)
    stand_in = rows["chance"] if way == "chance" else float("nan") if way == "left out" else 0.0
    unit, value = rows["participant"].where(people, rows["item"]), rows["correct"].where(valid, stand_in)
    parts: dict[str, Any] = {"unit": unit, "value": value, "used": True, "gone": (~valid).astype(float)}
    return _compared(universe, rows[["reader_group", plan.factor]].assign(**parts), plan)


def _compared(universe: Universe, rows: pd.DataFrame, plan: Plan) -> list[dict[str, Any]]:
    """Compare each reader group's means over units: ``unit, value``, whether a row is ``used``, and ``gone`` (0 or 1)."""
    told, size = [], 100.0 if universe.scale == POINTS else 1.0
    for group, own in rows.groupby("reader_group", sort=False):
        used = own[own["used"]]
        if used.empty:
            continue
        means = used.groupby(["unit", plan.factor])["value"].mean().unstack()
        lost = own.groupby(plan.factor)["gone"].mean()
        for contrast in plan.contrasts:
            weights = plan.weights(contrast)
            if set(weights) <= set(means.columns):
                told.append(
                    {
                        **vars(universe), "group": group, "contrast": contrast.label, "trials": len(used),
                        "removed": float(own["gone"].mean()), **_lost(lost, weights),
                        **_paired(size * _weighted(means, weights), universe.scale),
                    }
                )  # fmt: skip
    return told


def _weighted(means: pd.DataFrame, weights: Mapping[str, float]) -> pd.Series[float]:
    """Return a contrast of each unit's means, shape (units,)."""
    return means[list(weights)].mul(list(weights.values())).sum(axis="columns", skipna=False)


def _lost(lost: pd.Series[float], weights: Mapping[str, float]) -> dict[str, float]:
    """Return what share is lost in the conditions of either side of a contrast, averaged over them."""
    sides = (("removed_first", 1.0), ("removed_second", -1.0))
    return {
        name: float(lost[[level for level, weight in weights.items() if weight * side > 0]].mean())
        for name, side in sides
    }


def _paired(differences: pd.Series[float], scale: str) -> dict[str, Any]:
    """Return mean difference, Student's 95% interval and test over units that have both levels."""
    values, nan = differences.dropna().to_numpy(dtype=float), float("nan")
    count = len(values)
    estimate = float(values.mean()) if count else nan
    se = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    df, t, half = (count - 1, estimate / se, reach(se, count - 1)) if se else (nan, nan, nan)
    ends = _in_unit((estimate, estimate - half, estimate + half), scale)
    p = float(2 * stats.t.sf(abs(t), df))
    return {
        "units": count,
        **dict(zip(("estimate", "low", "high"), ends, strict=True)),
        "t": t,
        "df": df,
        "p": p,
    }


def _in_unit(values: Iterable[float], scale: str) -> list[float]:
    """Return differences of logs in percent, others as they are."""
    return [100.0 * float(np.expm1(value)) if scale == LOG else value for value in values]


def _add_models(told: list[dict[str, Any]], analysis: Analysis, scale: str) -> None:
    """Put the mixed model's contrast of each row's reader group beside its means; nan where it has none."""
    known = {(one.groups, one.label): one for one in analysis.contrasts if not one.between and one.estimable}
    for row in told:
        one = known.get(((row["group"],), row["contrast"]))
        values = (
            (float("nan"),) * 4
            if one is None
            else (*_in_unit((one.estimate, one.low, one.high), scale), one.p)
        )
        row |= dict(zip(("model_estimate", "model_low", "model_high", "model_p"), values, strict=True))
