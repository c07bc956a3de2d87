"""Cloze: the completions that people gave to each item in each condition, with the share of each and their entropy."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from experiment.lists import steps_of_blocks
from experiment.parsing.free_answers import completion_of
from experiment.procedure import trials_of
from experiment.store.records import excluded_sessions, with_latest_score
from experiment.store.tables import scores, sessions, trials, versions
from experiment.study import Study
from experiment.trials import NAME

COMPLETION = "completion"
"""The way to read an answer that continues a text."""


class GivenCompletions(NamedTuple):
    """The completions that people gave to one item in one condition: how often each, and its most frequent spelling."""

    condition: Mapping[str, str]
    counts: Counter[str]
    spellings: Mapping[str, str]


def asks_for_completions(study: Study) -> bool:
    """Return whether trials of a study ask for the continuation of a text."""
    steps = (settings for _, _, settings in steps_of_blocks(study))
    return any(settings.get("read_as") == COMPLETION and NAME not in settings for settings in steps)


def given_completions(connection: Connection, study: Study) -> dict[tuple[str, str], list[GivenCompletions]]:
    """Return the completions of people by set and item; those of simulated readers if nobody took part.

    Valid first attempts in sessions of the newest version that are neither pilots nor excluded count, and no practice.
    """
    newest = select(func.max(versions.c.version)).where(versions.c.study == study.id).scalar_subquery()
    of_readers = (
        sessions.c.study == study.id,
        sessions.c.version == newest,
        sessions.c.reader_kind.in_(("human", "simulated")),
        sessions.c.is_pilot.is_(False),
        sessions.c.session_id.not_in(excluded_sessions()),
    )
    plans = connection.execute(select(sessions.c.session_id, sessions.c.plan).where(*of_readers))
    asked = {
        (session_id, trial["trial_index"])
        for session_id, plan in plans
        for trial in (() if plan is None else trials_of(plan))
        if trial["steps"][-1].get("read_as") == COMPLETION
    }
    key = (trials.c.session_id, trials.c.trial_index)
    columns = (*key, trials.c.item_set, trials.c.item_id, trials.c.condition, trials.c.response_raw)
    query = with_latest_score((*columns, sessions.c.reader_kind)).where(
        *of_readers,
        trials.c.attempt == 1,
        trials.c.step_name.is_(None),
        trials.c.is_practice.is_(False),
        trials.c.is_attention_check.is_(False),
        scores.c.response_status == "valid",
    )
    rows = [row for row in connection.execute(query) if (row.session_id, row.trial_index) in asked]
    kind = "human" if any(row.reader_kind == "human" for row in rows) else "simulated"
    written: dict[tuple[str, str, str], Counter[tuple[str, str]]] = {}
    for row in rows:
        if row.reader_kind == kind:
            cell = (row.item_set, row.item_id, json.dumps(row.condition, sort_keys=True))
            spelling = _spelling(row.response_raw or "", row.response)
            written.setdefault(cell, Counter())[row.response, spelling] += 1
    given: dict[tuple[str, str], list[GivenCompletions]] = {}
    for (set_name, item_id, condition), spelt in written.items():
        counts: Counter[str] = Counter()
        spellings: dict[str, str] = {}
        for (completion, spelling), number in spelt.most_common():
            counts[completion] += number
            spellings.setdefault(completion, spelling)
        given.setdefault((set_name, item_id), []).append(
            GivenCompletions(json.loads(condition), counts, spellings)
        )
    return given


def _spelling(text: str, completion: str) -> str:
    """Return a completion as a reader spelt it, with their capitals."""
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    begin = max(plain.casefold().rfind(completion), 0)
    spelt = plain[begin : begin + len(completion)]
    return spelt if spelt.casefold() == completion else completion


def completions_in(given: Sequence[GivenCompletions], condition: Mapping[str, str]) -> GivenCompletions:
    """Return the completions in a condition together, over the levels of factors that it does not name, such as groups."""
    counts: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    for completions in given:
        if condition.items() <= completions.condition.items():
            counts.update(completions.counts)
            spellings = {**completions.spellings, **spellings}
    return GivenCompletions(condition, counts, spellings)


def cloze_of(
    given: Sequence[GivenCompletions], condition: Mapping[str, str], accepted: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of an item in a condition: how many people continued it, and the share of each continuation."""
    counts = completions_in(given, condition).counts
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
