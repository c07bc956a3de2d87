"""Prompts that exceed a model's context: they can never be answered under the study's settings and are not sent again.

An independent prompt is one trial: a flag records that it cannot be answered, and why. In a conversation every later turn would
be longer still, so the conversation ends; earlier answers stay. Settings are part of a session's name, so with other settings
everything is sent again; if only the server's settings have changed, :func:`ask_again` removes the flags.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from experiment.models.api.retrying import without_texts
from experiment.models.engine import Reply, Request
from experiment.models.planning import ModelSession
from experiment.store import records
from experiment.store.queries import excluded_sessions
from experiment.store.session_activity import end_session
from experiment.store.tables import flags, sessions, trials

ENDED = "ended"
"""State of a session that ended without all of its trials."""
BEGINS = "the conversation became longer than the model reads"
REST = "the prompts that are left are longer than the model reads"
TOO_LONG, ASKED_AGAIN = "too_long", "asked_again"
"""Kinds of trial flags; the newest applies."""
BY = "wrods run"
_AT_ONCE = 400
_SAID = re.compile(
    r"the model (?:reads|writes) at most|(?:context|prompt|input|sequence)[ _-]?(?:length|size|window)?\b[^.\n]{0,60}"
    r"(?:exceed|too long|too large|longer than|maximum|overflow)|(?:maximum|max|exceeds?)[^.\n]{0,40}context|too many tokens"
    r"|inputs?`? (?:tokens )?[^.\n]{0,40}must (?:be|have) (?:<=?|less than|at most) ?\d+",
    re.IGNORECASE,
)


def is_too_long(request: Request, reply: Reply) -> bool:
    """Return whether a request was refused because it exceeds the model's context, by the error's text."""
    if reply.status != "error" or reply.error is None:
        return False
    return bool(_SAID.search(without_texts(reply.error, [message.content for message in request.messages])))


def reason_of(session: ModelSession, request: Request, reply: Reply) -> str | None:
    """Return why a conversation ends with a reply (its next turn exceeds the context); None if it continues."""
    manner = session.manner
    in_talk = manner.context == "session" or (
        manner.practice == "answered" and bool(session.trial_of(reply.work_key)["is_practice"])
    )
    if not in_talk or not is_too_long(request, reply):
        return None
    return f"{BEGINS}: {str(reply.error).splitlines()[0][:200]}"


def fault_of(session: ModelSession, request: Request, reply: Reply) -> str | None:
    """Return why a trial can never be answered (its prompt exceeds the context); None if it can."""
    if session.manner.context == "session" or not is_too_long(request, reply):
        return None
    trial = session.trial_of(reply.work_key)
    return f"item {trial['item_id']} (trial {trial['trial_index']}): {str(reply.error).splitlines()[0][:300]}"


def end(connection: Connection, session_id: str, reason: str) -> None:
    """Record that a conversation has ended, and why."""
    end_session(connection, session_id, ENDED, reason)


def flag(connection: Connection, session_id: str, trial_index: int, fault: str) -> None:
    """Record once that a trial can never be answered, and why."""
    if trial_index not in flagged(connection, [session_id]).get(session_id, {}):
        records.add_flag(connection, session_id, TOO_LONG, fault, BY, trial_index=trial_index, attempt=1)


def close(connection: Connection, session_id: str, planned: int) -> None:
    """End a session whose remaining trials can never be answered."""
    count = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    never = flagged(connection, [session_id]).get(session_id, {})
    if never and int(connection.scalar(count) or 0) + len(never) >= planned:
        end(connection, session_id, REST)


def flagged(connection: Connection, session_ids: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the trials of some sessions that can never be answered, with the reason, by session and trial index."""
    faults: dict[str, dict[int, str]] = defaultdict(dict)
    for start in range(0, len(session_ids), _AT_ONCE):
        chunk = session_ids[start : start + _AT_ONCE]
        for row in connection.execute(never_trials(flags.c.session_id.in_(chunk))):
            faults[row.session_id][int(row.trial_index)] = str(row.reason)
    return dict(faults)


def never_trials(where: ColumnElement[bool]) -> Any:
    """Return the query for trials that can never be answered, in the order of their flags."""
    is_kind = flags.c.kind.in_((TOO_LONG, ASKED_AGAIN))
    newest = (
        select(func.max(flags.c.flag_id))
        .where(where, is_kind)
        .group_by(flags.c.session_id, flags.c.trial_index)
    )
    is_same_trial = and_(
        trials.c.session_id == flags.c.session_id, trials.c.trial_index == flags.c.trial_index
    )
    return (
        select(flags.c.session_id, flags.c.trial_index, flags.c.reason)
        .join(trials, is_same_trial, isouter=True)
        .where(flags.c.flag_id.in_(newest), flags.c.kind == TOO_LONG, trials.c.session_id.is_(None))
        .order_by(flags.c.flag_id)
    )


def ask_again(connection: Connection, study: str, reader: str) -> int:
    """Allow prompts that were too long to be sent again, for example after a server's context grew; return the number of sessions."""
    of_reader = and_(sessions.c.study == study, sessions.c.reader == reader)
    sessions_of_reader = select(sessions.c.session_id).where(of_reader)
    named: set[str] = set()
    for row in connection.execute(never_trials(flags.c.session_id.in_(sessions_of_reader))).all():
        records.add_flag(
            connection,
            row.session_id,
            ASKED_AGAIN,
            "wrods run --ask-again",
            BY,
            trial_index=row.trial_index,
            attempt=1,
        )
        named.add(row.session_id)
    ours = sessions.c.ended_reason.startswith(BEGINS) | (sessions.c.ended_reason == REST)
    opened = (
        update(sessions)
        .where(of_reader, sessions.c.state == ENDED, ours)
        .values(state="started", ended_reason=None)
        .returning(sessions.c.session_id)
    )
    return len(named | set(connection.scalars(opened)))


def reasons_of(connection: Connection, session_ids: Iterable[str]) -> dict[str, int]:
    """Return the number of ended conversations by reason."""
    counts: dict[str, int] = {}
    for session_id in sorted(session_ids):
        query = select(sessions.c.ended_reason).where(sessions.c.session_id == session_id)
        reason = str(connection.scalar(query) or BEGINS)
        if reason != REST:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def ended_of(connection: Connection, study: str) -> dict[str, dict[str, Any]]:
    """Return the sessions and trials that each reader can never answer."""
    by_reader: dict[str, dict[str, Any]] = {}

    def of(reader: object) -> dict[str, Any]:
        return by_reader.setdefault(str(reader), {"sessions": 0, "reason": None, "trials": 0, "faults": []})

    counted = and_(sessions.c.study == study, sessions.c.session_id.not_in(excluded_sessions()))
    query = select(sessions.c.reader, sessions.c.ended_reason).where(
        counted, sessions.c.state == ENDED, sessions.c.ended_reason.startswith(BEGINS)
    )
    for row in connection.execute(query.order_by(sessions.c.created_at, sessions.c.session_id)):
        entry = of(row.reader)
        entry["sessions"] += 1
        entry["reason"] = entry["reason"] or row.ended_reason
    flagged_sessions = select(flags.c.session_id).where(flags.c.kind == TOO_LONG)
    whose = select(sessions.c.session_id, sessions.c.reader).where(
        counted, sessions.c.session_id.in_(flagged_sessions)
    )
    readers = {row.session_id: row.reader for row in connection.execute(whose)}
    for row in connection.execute(
        never_trials(flags.c.session_id.in_(select(sessions.c.session_id).where(counted)))
    ):
        entry = of(readers[row.session_id])
        entry["trials"] += 1
        entry["faults"].append(row.reason)
    return by_reader
