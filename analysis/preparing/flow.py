"""Counts who and what is analysed and why the rest is not: the flow tables of a report.

:func:`flow` is the short table of a report, :func:`flow_steps` the long one, with people and trials that are left after each
step, and :func:`time_steps` goes on with the trials that a model of times loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.answers import judged, not_failed
from analysis.preparing.exclusions import ORDER, TimeRule
from analysis.readers import group_order, kinds_of


def flow(trials: pd.DataFrame, readers: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Count who and what is analysed and why the rest is not."""
    groups = group_order(trials)
    groups += [name for name, one in readers.items() if name not in groups and one.get("sessions")]
    counts: dict[str, list[int]] = {}
    parts = {group: trials[trials["reader_group"] == group] for group in groups}

    def count(stage: str, of: Any) -> None:
        counts[stage] = [int(of(part)) for part in parts.values()]

    told = {group: readers.get(group, {}) for group in groups}
    with_trials = {group: int(part["session_id"].nunique()) for group, part in parts.items()}
    begun = {group: int(told[group].get("sessions") or with_trials[group]) for group in groups}
    stages = {
        "Declined to take part": [int(told[group].get("declined") or 0) for group in groups],
        "Sessions begun": list(begun.values()),
        "of these without a trial": [max(begun[group] - with_trials[group], 0) for group in groups],
        "of these not finished": [
            0 if (done := told[group].get("finished")) is None else begun[group] - int(done)
            for group in groups
        ],
    }
    counts |= {stage: some for stage, some in stages.items() if any(some) or stage == "Sessions begun"}
    count("Trials recorded", len)
    reasons = list(trials["excluded_reason"].dropna().value_counts().index)
    for reason in reasons:
        count(f"Left out: {reason}", lambda part, reason=reason: (part["excluded_reason"] == reason).sum())
    used = {group: part[part["excluded_reason"].isna()] for group, part in parts.items()}
    parts = used
    count("Sessions analyzed", lambda part: part["session_id"].nunique())
    count("Trials analyzed", len)
    can_be_wrong = judged(trials)
    for counted, rows in (("counted as wrong", can_be_wrong), ("not valid", ~can_be_wrong)):
        statuses = trials.loc[trials["excluded_reason"].isna() & rows, "response_status"].dropna().unique()
        for status in sorted(s for s in statuses if s != "valid"):
            count(
                f"of these {counted}: {status}",
                lambda part, s=status, of=rows: (of[part.index] & (part["response_status"] == s)).sum(),
            )
    return pd.DataFrame(counts, index=groups).T


def flow_steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Count participants, sessions and trials that are left after each step, and say why the others went."""
    reasons = trials["excluded_reason"]
    present = list(reasons.dropna().value_counts().index)
    given = [reason for reason in present if reason not in ORDER]
    steps = [*given, *(reason for reason in ORDER if reason in present)]
    kinds = kinds_of(trials)
    rows = []
    for group in group_order(trials):
        part = trials.loc[trials["reader_group"] == group, ["reader", "session_id", "excluded_reason"]]
        before = _counts(part)
        rows.append(_step(0, "recorded", group, kinds[group], before, before))
        gone: set[str] = set()
        for number, why in enumerate(steps, 1):
            gone.add(why)
            after = _counts(part[~part["excluded_reason"].isin(gone)])
            rows.append(_step(number, why, group, kinds[group], before, after))
            before = after
    return pd.DataFrame(rows, columns=_COLUMNS)


def time_steps(trials: pd.DataFrame, measure: str, rule: TimeRule | None = None) -> pd.DataFrame:
    """Go on from the analysed trials to those whose times are in a model of times."""
    used = trials["excluded_reason"].isna()
    readers = trials.loc[used, ["reader_group", "reader_kind"]]
    kinds = kinds_of(readers)
    rows = []
    for group in group_order(readers):
        part = trials[used & (trials["reader_group"] == group)]
        if not part[measure].notna().any():
            continue
        answered = not_failed(part)
        timed = answered & (part[measure] > 0)
        counted = part[["reader", "session_id"]]
        stages = [("analyzed", counted), ("no valid answer", counted[answered]), ("no time", counted[timed])]
        if rule is not None:
            kept = part[timed]
            stages.append((rule.said, counted[timed][rule.keeps(kept, measure)]))
        before = _counts(part)
        for number, (why, left) in enumerate(stages):
            after = _counts(left)
            rows.append(_step(number, why, group, kinds[group], before, after))
            before = after
    return pd.DataFrame(rows, columns=_COLUMNS)


_COUNTED = ("readers", "sessions", "trials")
_COLUMNS = ("step", "why", "group", "kind", *_COUNTED, *(f"{name}_lost" for name in _COUNTED))


def _counts(part: pd.DataFrame) -> dict[str, int]:
    return {
        "readers": int(part["reader"].nunique()),
        "sessions": int(part["session_id"].nunique()),
        "trials": len(part),
    }


def _step(
    number: int, why: str, group: str, kind: str, before: dict[str, int], after: dict[str, int]
) -> dict[str, Any]:
    lost = {f"{name}_lost": before[name] - after[name] for name in _COUNTED}
    return {"step": number, "why": why, "group": group, "kind": kind, **after, **lost}
