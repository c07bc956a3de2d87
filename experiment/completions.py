"""Cloze: the completions that people gave to each item in each condition, with the share of each and their entropy."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from experiment.parsing.free_answers import completion_of
from experiment.store.records import excluded_sessions
from experiment.store.tables import sessions, trials
from experiment.study import Study
from experiment.trials import answering_step

COMPLETION = "completion"
"""The way to read an answer that continues a text."""


class GivenCompletions(NamedTuple):
    """What people wrote in the trials of one item and condition: how often each continuation, and in which spelling most often."""

    condition: Mapping[str, str]
    counts: Counter[str]
    spellings: Mapping[str, str]


def asks_for_completions(study: Study) -> bool:
    """Return whether trials of a study ask for the continuation of a text."""
    steps = (
        answering_step(screen["block"]["trial"]) for screen in study.get("procedure") if "block" in screen
    )
    return any(step.get("answer", {}).get("read_as") == COMPLETION for step in steps)


def given_completions(connection: Connection, study: Study) -> dict[tuple[str, str], list[GivenCompletions]]:
    """Return the completions of people by set and item; those of simulated readers if nobody took part.

    First attempts of sessions that are neither pilots nor excluded count, and no practice.
    """
    columns = (trials.c.item_set, trials.c.item_id, trials.c.condition, trials.c.response_raw)
    query = (
        select(*columns, sessions.c.reader_kind)
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .where(
            sessions.c.study == study.id,
            sessions.c.reader_kind.in_(("human", "simulated")),
            sessions.c.is_pilot.is_(False),
            sessions.c.session_id.not_in(excluded_sessions()),
            trials.c.trial_type == "answer",
            trials.c.attempt == 1,
            trials.c.step_name.is_(None),
            trials.c.is_practice.is_(False),
            trials.c.is_attention_check.is_(False),
        )
    )
    rows = [row for row in connection.execute(query) if completion_of(row.response_raw or "")]
    kind = "human" if any(row.reader_kind == "human" for row in rows) else "simulated"
    written: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        if row.reader_kind == kind:
            key = (row.item_set, row.item_id, json.dumps(row.condition, sort_keys=True))
            written.setdefault(key, Counter())[row.response_raw.strip()] += 1
    given: dict[tuple[str, str], list[GivenCompletions]] = {}
    for (set_name, item_id, condition), spelt in written.items():
        counts: Counter[str] = Counter()
        spellings: dict[str, str] = {}
        for text, number in spelt.most_common():
            counts[completion_of(text)] += number
            spellings.setdefault(completion_of(text), text)
        given.setdefault((set_name, item_id), []).append(
            GivenCompletions(json.loads(condition), counts, spellings)
        )
    return given


def cloze_of(
    given: Sequence[GivenCompletions], condition: Mapping[str, str], accepted: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of an item in a condition: how many people continued it, and the share of each continuation."""
    counts: Counter[str] = Counter()
    for completions in given:
        if condition.items() <= completions.condition.items():
            counts.update(completions.counts)
    total = counts.total()
    if not total:
        return {"completions_n": 0, "completions": None, "completions_entropy": None, "cloze": None}
    shares = {text: number / total for text, number in counts.most_common()}
    right = {completion_of(answer) for answer in accepted}
    return {
        "completions_n": total,
        "completions": json.dumps(shares, ensure_ascii=False),
        "completions_entropy": -math.fsum(share * math.log2(share) for share in shares.values()) + 0.0,
        "cloze": math.fsum(share for text, share in shares.items() if text in right) if right else None,
    }
