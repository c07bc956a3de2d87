"""Conversations that have become longer than a model reads: they end where they are, and are not asked again.

Every later turn would be longer still, so that asking again would never bring an answer. What was answered stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from experiment.models.engine import UNFINISHED, Reply
from experiment.models.planning import ModelSession
from experiment.store.attendance import end_session
from experiment.store.tables import sessions

ENDED = "ended"
"""State of a session that is over without all of its trials."""
BEGINS = "the conversation became longer than the model reads"
_SAID = re.compile(
    r"the model reads at most|(?:context|prompt|input|sequence)[ _-]?(?:length|size|window)?\b[^.\n]{0,60}"
    r"(?:exceed|too long|too large|longer than|maximum|overflow)|(?:maximum|max|exceeds?)[^.\n]{0,40}context|too many tokens",
    re.IGNORECASE,
)


def reason_of(session: ModelSession, reply: Reply) -> str | None:
    """Return why a conversation ends with a reply: its next turn is longer than the model reads; None where it goes on."""
    if session.manner.context != "session" or reply.status not in UNFINISHED or reply.error is None:
        return None
    return f"{BEGINS}: {reply.error.splitlines()[0][:200]}" if _SAID.search(reply.error) else None


def end(connection: Connection, session_id: str, reason: str) -> None:
    """Note that a conversation has ended, and why."""
    end_session(connection, session_id, ENDED, reason)


def reasons_of(connection: Connection, session_ids: Iterable[str]) -> dict[str, int]:
    """Return why conversations that have ended did so, and how many of them each time."""
    found: dict[str, int] = {}
    for session_id in sorted(session_ids):
        query = select(sessions.c.ended_reason).where(sessions.c.session_id == session_id)
        reason = str(connection.scalar(query) or BEGINS)
        found[reason] = found.get(reason, 0) + 1
    return found


def ended_of(connection: Connection, study: str) -> dict[str, dict[str, Any]]:
    """Return of each reader whose conversations ended so how many did (``sessions``), and the ``reason`` of the first."""
    query = select(sessions.c.reader, sessions.c.ended_reason).where(
        sessions.c.study == study, sessions.c.state == ENDED, sessions.c.ended_reason.startswith(BEGINS)
    )
    found: dict[str, dict[str, Any]] = {}
    for row in connection.execute(query.order_by(sessions.c.created_at, sessions.c.session_id)):
        one = found.setdefault(str(row.reader), {"sessions": 0, "reason": row.ended_reason})
        one["sessions"] += 1
    return found
