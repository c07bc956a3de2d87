"""Counts who and what is analysed and why the rest is not: the flow tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.answers import judged, not_failed
from analysis.preprocessing.exclusions import CHECK, FILLER, ORDER, TimeRule
from analysis.readers import group_order, kinds_of

RULE = " rule"
"""How the item of a trial that asks for a rule ends, behind the name of its set."""
STATED = "statements of rules, analyzed separately"


def is_statement(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return which trials ask for the rule of a set of items."""
    return trials["is_filler"].astype(bool) & trials["item_id"].astype(str).str.endswith(RULE)


def reasons_named(trials: pd.DataFrame) -> pd.Series[str]:
    """Return why trials are excluded in words: statements of rules are fillers too, but are not called so."""
    reasons = trials["excluded_reason"].replace({FILLER: f"{FILLER} items", CHECK: f"{CHECK}s"})
    return reasons.mask((trials["excluded_reason"] == FILLER) & is_statement(trials), STATED)


def flow(trials: pd.DataFrame, readers: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Count who and what is analysed and why the rest is not."""
    groups = group_order(trials)
    groups += [name for name, spec in readers.items() if name not in groups and spec.get("sessions")]
    counts: dict[str, list[int]] = {}
    parts = {group: trials[trials["reader_group"] == group] for group in groups}

    def count(stage: str, measure: Any) -> None:
        counts[stage] = [int(measure(part)) for part in parts.values()]

    for group, part in parts.items():
        record, with_trials = readers.get(group, {}), int(part["session_id"].nunique())
        started, finished = int(record.get("sessions") or with_trials), record.get("finished")
        counts.setdefault("Declined to take part", []).append(int(record.get("declined") or 0))
        counts.setdefault("Sessions begun", []).append(started)
        counts.setdefault("of these without a trial", []).append(max(started - with_trials, 0))
        counts.setdefault("of these not finished", []).append(
            0 if finished is None else started - int(finished)
        )
    counts = {
        stage: numbers for stage, numbers in counts.items() if any(numbers) or stage == "Sessions begun"
    }
    count("Trials recorded", len)
    reasons = reasons_named(trials)
    for reason in reasons.value_counts().index:
        count(f"Excluded: {reason}", lambda part, reason=reason: (reasons[part.index] == reason).sum())
    parts = {group: part[part["excluded_reason"].isna()] for group, part in parts.items()}
    count("Sessions analyzed", lambda part: part["session_id"].nunique())
    count("Trials analyzed", len)
    can_be_wrong = judged(trials)
    for outcome, rows in (("counted as wrong", can_be_wrong), ("not valid", ~can_be_wrong)):
        statuses = trials.loc[trials["excluded_reason"].isna() & rows, "response_status"].dropna().unique()
        for status in sorted(s for s in statuses if s != "valid"):
            count(
                f"of these {outcome}: {status}",
                lambda part, s=status, marked=rows: (
                    marked[part.index] & (part["response_status"] == s)
                ).sum(),
            )
    return pd.DataFrame(counts, index=groups).T


def flow_steps(trials: pd.DataFrame) -> pd.DataFrame:
    """Count participants, sessions and trials that are left after each step, and say why the others went."""
    trials = trials.assign(excluded_reason=reasons_named(trials))
    present = list(trials["excluded_reason"].value_counts().index)
    fillers = [reason for reason in present if reason in (f"{FILLER} items", STATED)]
    details = {FILLER: fillers, CHECK: [f"{CHECK}s"]}
    order = [reason for stage in ORDER for reason in details.get(stage, [stage]) if reason in present]
    steps = [*(reason for reason in present if reason not in order), *order]
    kinds = kinds_of(trials)
    rows: list[dict[str, Any]] = []
    for group in group_order(trials):
        part = trials.loc[trials["reader_group"] == group, ["reader", "session_id", "excluded_reason"]]
        left = [part[~part["excluded_reason"].isin(steps[:number])] for number in range(len(steps) + 1)]
        rows += _steps(zip(["recorded", *steps], left, strict=True), group, kinds[group])
    return pd.DataFrame(rows, columns=_COLUMNS)


def time_steps(trials: pd.DataFrame, measure: str, rule: TimeRule | None = None) -> pd.DataFrame:
    """Go on from the analysed trials to those whose times are in a model of times."""
    used = trials["excluded_reason"].isna()
    readers = trials.loc[used, ["reader_group", "reader_kind"]]
    kinds = kinds_of(readers)
    rows: list[dict[str, Any]] = []
    for group in group_order(readers):
        part = trials[used & (trials["reader_group"] == group)]
        if not part[measure].notna().any():
            continue
        answered = not_failed(part)
        timed = answered & (part[measure] > 0)
        sessions = part[["reader", "session_id"]]
        stages = [
            ("analyzed", sessions),
            ("no valid answer", sessions[answered]),
            ("no time", sessions[timed]),
        ]
        if rule is not None:
            timed_rows = part[timed]
            stages.append((rule.said, sessions[timed][rule.keeps(timed_rows, measure)]))
        rows += _steps(stages, group, kinds[group])
    return pd.DataFrame(rows, columns=_COLUMNS)


_COUNTED = ("readers", "sessions", "trials")
_COLUMNS = ("step", "why", "group", "kind", *_COUNTED, *(f"{name}_lost" for name in _COUNTED))


def _steps(stages: Iterable[tuple[str, pd.DataFrame]], group: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield what is left after each stage, and what went with it."""
    previous: dict[str, int] = {}
    for number, (reason, left) in enumerate(stages):
        sizes = (int(left["reader"].nunique()), int(left["session_id"].nunique()), len(left))
        counts = dict(zip(_COUNTED, sizes, strict=True))
        losses = {f"{name}_lost": previous.get(name, size) - size for name, size in counts.items()}
        yield {"step": number, "why": reason, "group": group, "kind": kind, **counts, **losses}
        previous = counts
