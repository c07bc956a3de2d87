"""What a Method section tells of the collection: dates, calls, tokens and cost of each model, what participants said of themselves.

Sums only: no answer of one person leaves the store this way, and texts that people wrote are not summed at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.describing.plain_english import tell
from experiment.exporting.participants import questions_of, read_answers
from experiment.store import queries
from experiment.store.tables import calls, sessions
from experiment.study import Study
from stimuli.errors import UserError

_SUMS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd")
_COUNTED = ("choice", "yes_no", "scale")


def told_of_calls(connection: Connection, study: str) -> dict[str, dict[str, Any]]:
    """Return, for each reader that made calls, when it was asked, how often, and what it took.

    Returns
    -------
    dict
        By reader: ``first_call`` and ``last_call`` (ISO 8601, UTC), ``calls`` (answers from the cache apart), sums of tokens
        and ``cost_usd`` (None where no call has one), ``dtype`` (list of texts). Pilots are in it: they were asked and paid for.
        ``imported_calls``: how many of the calls stand for answers that were imported, whose own dates are not known.
    """
    asked = calls.c.from_cache.is_not(True)
    sums = [func.sum(calls.c[name]).label(name) for name in _SUMS]
    first, last = func.min(calls.c.created_at), func.max(calls.c.created_at)
    of_study = select(sessions.c.reader).join(calls, calls.c.session_id == sessions.c.session_id)
    of_study = of_study.where(sessions.c.study == study, asked)
    query = of_study.add_columns(
        first.label("first_call"), last.label("last_call"), func.count().label("calls"), *sums
    ).group_by(sessions.c.reader)
    found = {str(row["reader"]): {**row} for row in connection.execute(query).mappings()}
    for entry in found.values():
        entry.pop("reader")
        entry["dtype"], entry["imported_calls"] = [], 0
    kinds = of_study.add_columns(calls.c.dtype).where(calls.c.dtype.is_not(None)).distinct()
    for reader, dtype in connection.execute(kinds.order_by(calls.c.dtype)):
        found[str(reader)]["dtype"].append(dtype)
    elsewhere = _imported(study, connection, "model")
    if elsewhere:
        by_session = of_study.add_columns(calls.c.session_id, func.count().label("many"))
        for row in connection.execute(by_session.group_by(sessions.c.reader, calls.c.session_id)):
            found[str(row.reader)]["imported_calls"] += row.many if row.session_id in elsewhere else 0
    return found


def told_of_people(study: Study, connection: Connection) -> dict[str, Any]:
    """Return how people were recruited, when they came, and sums of what they answered about themselves.

    Returns
    -------
    dict
        ``recruit``, ``eligible``: as the study says; ``first_session``, ``last_session``: ISO 8601, UTC, of sessions that were
        run here; ``imported``: number of sessions that were imported, with ``imported_trials``, the fewest and most of one;
        ``people``: number of persons whose session has a trial, is no pilot and is not excluded; ``answers``: of these
        persons, a list with ``name``, ``ask``, ``type``, ``n`` and either ``mean``, ``sd``, ``low``, ``high`` or ``counts``.
    """
    excluded = {
        flag["session_id"]
        for flag in queries.all_flags(connection, study.id)
        if flag["kind"] == "excluded" and flag["trial_index"] is None
    }
    came = [
        row
        for row in queries.sessions_overview(connection, study.id)
        if row["reader_kind"] == "human" and not row["is_pilot"]
    ]
    kept = [row["session_id"] for row in came if row["n_trials"] and row["session_id"] not in excluded]
    answers = read_answers(study, connection)
    own = [answers.by_session.get(session, {}) for session in kept]
    of_elsewhere = _imported(study.id, connection, "human")
    began = sorted(row["created_at"] for row in came if row["session_id"] not in of_elsewhere)
    many = [int(row["n_trials"]) for row in came if row["session_id"] in of_elsewhere]
    summed = [
        _summed(asked, [one.get(f"answer_{asked['name']}") for one in own]) for asked in questions_of(study)
    ]
    return {
        "recruit": study.get("participants", "recruit"),
        "eligible": study.get("participants", "eligible"),
        "first_session": began[0] if began else None,
        "last_session": began[-1] if began else None,
        "imported": len(many),
        "imported_trials": [min(many), max(many)] if many else None,
        "people": len(kept),
        "answers": [one for one in summed if one is not None],
    }


def _imported(study: str, connection: Connection, kind: str) -> set[str]:
    """Return the sessions of a kind of reader that were imported: their own dates are not known."""
    query = select(sessions.c.session_id, sessions.c.client).where(
        sessions.c.study == study, sessions.c.reader_kind == kind
    )
    return {row.session_id for row in connection.execute(query) if "imported" in (row.client or ())}


def _summed(asked: Mapping[str, Any], values: Iterable[Any]) -> dict[str, Any] | None:
    """Sum the answers to one question; None for texts, and where nobody answered."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    told: dict[str, Any] = {name: asked.get(name) for name in ("name", "ask", "type")} | {"n": len(given)}
    if asked["type"] == "number":
        mean = sum(given) / len(given)
        spread = sum((value - mean) ** 2 for value in given)
        sd = (spread / (len(given) - 1)) ** 0.5 if len(given) > 1 else None
        return told | {"mean": mean, "sd": sd, "low": min(given), "high": max(given)}
    if asked["type"] in _COUNTED:
        return told | {"counts": dict(Counter(map(str, given)).most_common())}
    return None


def told_of_procedure(study: Study) -> dict[str, Any]:
    """Return what a session is (fields of :class:`experiment.describing.sessions.SessionInWords`); none where nothing is built."""
    try:
        return asdict(tell(study, study.items).session)
    except UserError:
        return {}
