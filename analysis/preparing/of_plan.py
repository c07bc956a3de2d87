"""What a single planned analysis leaves out beyond the study's own exclusions, and how many trials that are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.answers import is_valid
from analysis.preparing.bounds import Bounds, time_bounds
from analysis.preparing.signs import sessions_against_rules
from stimuli.errors import UserError


def left_out_by_plan(
    rows: pd.DataFrame, trials: pd.DataFrame, exclude: Mapping[str, Any]
) -> tuple[pd.Series[bool], list[str]]:
    """Mark the rows that a plan leaves out, and say why and how many."""
    left_out = pd.Series(False, index=rows.index)
    told = []
    for said, applies in _rules(rows, trials, exclude):
        now = applies & ~left_out
        told.append(f"{int(now.sum()):,} ({said})")
        left_out |= applies
    if not told:
        return left_out, []
    return left_out, [f"Left out as planned for this analysis, of {len(rows):,} trials: {', '.join(told)}."]


def own_bounds(study: Mapping[str, Any], plan: Mapping[str, Any], measure: str) -> Bounds | None:
    """Return an analysis' time bounds: the study's and the plan's, the narrower on either side."""
    of_plan = time_bounds(dict(plan), measure)
    of_study = time_bounds(dict(study), measure)
    return of_study if of_plan is None else of_plan.within(of_study)


def keeps_right_answers_alone(exclude: Mapping[str, Any]) -> bool:
    """Whether a plan leaves out valid wrong answers."""
    return exclude.get("answers") == "wrong"


def without_choices(exclude: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """Return a plan's exclusions without its bounds of a time and its choice of answers, which a multiverse varies."""
    others = {name: rule for name, rule in (exclude.get("trials") or {}).items() if name != measure}
    return {kind: rules for kind, rules in {**exclude, "trials": others, "answers": None}.items() if rules}


def _rules(
    rows: pd.DataFrame, trials: pd.DataFrame, exclude: Mapping[str, Any]
) -> Iterator[tuple[str, pd.Series[bool]]]:
    for sign, rule in (exclude.get("sessions") or {}).items():
        against = sessions_against_rules(trials, {"sessions": {sign: rule}})
        meets = against.loc[against["meets"].fillna(False).astype(bool), "session_id"]
        yield f"of sessions with {sign} {rule}", rows["session_id"].isin(meets)
    for column in exclude.get("trials") or {}:
        bounds = time_bounds(dict(exclude), str(column))
        if column not in rows or bounds is None:
            raise UserError(f"analysis.planned: exclude.trials.{column} is no column of times")
        yield f"{column} {exclude['trials'][column]}", rows[column].notna() & ~bounds.holds(rows[column])
    if keeps_right_answers_alone(exclude):
        yield "answered wrong", is_valid(rows) & (rows["correct"] == 0)
