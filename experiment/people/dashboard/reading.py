"""Queries of the dashboard in addition to :mod:`experiment.store.records`: plain rows, without conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from flask import abort
from sqlalchemy import Connection, and_, func, select

from experiment.people.service import StudyService
from experiment.store.erasure import DUE
from experiment.store.records import SESSION_COLUMNS, Row
from experiment.store.tables import audit, calls, flags, sessions, trials

KEY_LENGTH = 12
AT_ONCE = 100
"""Audit entries per page."""
SHORT = 160
"""Longest text of an audit entry that is shown in full; longer ones are folded."""
NOTE, PILOT, REAL = "note", "pilot", "real"
_QUIET = (NOTE, PILOT, REAL)
"""Kinds of flags that are not suspicious."""


def key_of(session_id: str) -> str:
    """Return the short name of a session on pages: neither its token nor its whole id."""
    return session_id[:KEY_LENGTH]


def session_by_key(connection: Connection, study: str, key: str) -> Row | None:
    """Return a study's session by its short name, with client and without plan, or None."""
    query = select(*SESSION_COLUMNS, sessions.c.client).filter_by(study=study)
    query = query.where(func.substr(sessions.c.session_id, 1, KEY_LENGTH) == key)
    row = connection.execute(query).mappings().first()
    return None if row is None else dict(row)


def latest_blocks(connection: Connection, study: str) -> dict[str, str | None]:
    """Return the block of each session's last stored trial."""
    last = (
        select(trials.c.session_id, func.max(trials.c.trial_index).label("trial_index"))
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .where(sessions.c.study == study)
        .group_by(trials.c.session_id)
        .subquery()
    )
    query = select(trials.c.session_id, trials.c.block).join(
        last, and_(last.c.session_id == trials.c.session_id, last.c.trial_index == trials.c.trial_index)
    )
    return {row.session_id: row.block for row in connection.execute(query)}


def flag_counts(connection: Connection, study: str) -> dict[str, Counter[str]]:
    """Return the number of flags by kind for each session, including those of its trials."""
    query = select(flags.c.session_id, flags.c.kind, func.count()).where(sessions.c.study == study)
    query = query.join(sessions, sessions.c.session_id == flags.c.session_id)
    counts: dict[str, Counter[str]] = {}
    for session_id, kind, number in connection.execute(query.group_by(flags.c.session_id, flags.c.kind)):
        counts.setdefault(session_id, Counter())[kind] = int(number)
    return counts


def suspicions(counts: Mapping[str, int]) -> int:
    """Return the number of a session's flags that need review."""
    return sum(number for kind, number in counts.items() if kind not in (*_QUIET, "excluded", "restored"))


def flags_of_session(connection: Connection, session_id: str) -> list[Row]:
    """Return a session's flags and notes, newest first."""
    query = select(flags).where(flags.c.session_id == session_id).order_by(flags.c.flag_id.desc())
    return [dict(row) for row in connection.execute(query).mappings()]


def spent_by_model(connection: Connection, study: str) -> list[dict[str, Any]]:
    """Return each model's use: sessions, calls, tokens, dollars (None if no price is known)."""
    query = (
        select(
            sessions.c.reader,
            func.count(calls.c.session_id.distinct()).label("sessions"),
            func.count().label("calls"),
            *(
                func.sum(calls.c[name]).label(name)
                for name in ("prompt_tokens", "completion_tokens", "cost_usd")
            ),
        )
        .join(calls, calls.c.session_id == sessions.c.session_id)
        .where(sessions.c.study == study, sessions.c.reader_kind == "model")
        .group_by(sessions.c.reader)
        .order_by(sessions.c.reader)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def audit_of(
    connection: Connection, study: str, *, session_id: str | None = None, before: int | None = None
) -> list[Row]:
    """Return the audit of a study or one of its sessions, newest first; ``before`` is an entry's number."""
    # what is still to be cleaned is a note of the store's own, which is removed afterwards
    query = select(audit).where(audit.c.study == study, audit.c.action != DUE)
    if before is not None:
        query = query.where(audit.c.audit_id < before)
    if session_id is not None:
        query = query.where(audit.c.session_id == session_id)
    rows = connection.execute(query.order_by(audit.c.audit_id.desc()).limit(AT_ONCE))
    return [dict(row) for row in rows.mappings()]


def in_words(detail: Mapping[str, Any] | None) -> str:
    """Return the details of an audit entry as text: the reason unchanged, the rest by name."""
    return "; ".join(
        str(value) if name == "reason" else f"{name}: {_value(value)}"
        for name, value in (detail or {}).items()
        if value not in (None, {}, [])
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name} {_value(part)}" for name, part in value.items() if part not in (None, {}, [])
        )
    if isinstance(value, list):
        return ", ".join(_value(part) for part in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def looks(connection: Connection, study: str) -> int:
    """Return how often the quality of a study's data was viewed."""
    query = select(func.count()).where(audit.c.study == study, audit.c.action.startswith("look"))
    return int(connection.scalar(query) or 0)


def session_of(service: StudyService, key: str) -> Row:
    """Return one of a study's sessions by its short name."""
    with service.store.read() as connection:
        row = session_by_key(connection, service.study, key)
    if row is None:
        abort(404)
    return row
