"""Erases sessions whose reader did not agree to take part, and counts them: nothing else of such a person stays.

Those who declined before that was so (databases of earlier versions) still have a session, in the state ``declined``.
"""

from __future__ import annotations

from sqlalchemy import Connection, Row, delete, func, select, true, update

from experiment.store.erasure import note_due
from experiment.store.statements import insert_new
from experiment.store.tables import audit, events, invitations, metadata, sessions, tallies, trials

DECLINED, UNDECIDED = "declined", "undecided"
"""Kinds of counts: said no on the consent screen; neither agreed nor said no."""
_KEPT = (audit, invitations)
"""Tables whose rows are not the session's alone: they only lose what names it."""


def has_agreed(connection: Connection, session_id: str) -> bool:
    """Return whether a session's reader agreed to take part, or answered a trial of a study that does not ask."""
    answered = select(trials.c.session_id).where(trials.c.session_id == session_id).limit(1)
    if connection.scalar(answered) is not None:
        return True
    consents = select(events.c.detail).where(events.c.session_id == session_id, events.c.kind == "consent")
    return any((detail or {}).get("agreed") is True for detail in connection.scalars(consents))


def forget_and_count(connection: Connection, session_id: str, kind: str) -> None:
    """Erase all that any table holds of a session, and count one person of a kind; pilots are not counted."""
    row = forget(connection, session_id)
    if row.reader_kind == "human" and not row.is_pilot:
        _count(connection, row.study, row.version, kind)


def forget(connection: Connection, session_id: str) -> Row[str, int, str, bool]:
    """Erase all that any table holds of a session; return its study, version, kind of reader, and whether it was a pilot."""
    row = connection.execute(
        select(sessions.c.study, sessions.c.version, sessions.c.reader_kind, sessions.c.is_pilot).where(
            sessions.c.session_id == session_id
        )
    ).one()
    connection.execute(
        update(invitations).where(invitations.c.session_id == session_id).values(session_id=None)
    )
    connection.execute(
        update(audit).where(audit.c.session_id == session_id).values(session_id=None, detail={})
    )
    for table in reversed(metadata.sorted_tables):
        if "session_id" in table.c and table not in _KEPT:
            connection.execute(delete(table).where(table.c.session_id == session_id))
    note_due(connection, row.study)
    return row


def _count(connection: Connection, study: str, version: int, kind: str) -> None:
    insert_new(tallies).first(connection, {"study": study, "version": version, "kind": kind, "number": 0})
    connection.execute(
        update(tallies)
        .where(tallies.c.study == study, tallies.c.version == version, tallies.c.kind == kind)
        .values(number=tallies.c.number + 1)
    )


def number_of(connection: Connection, study: str, kind: str = DECLINED) -> int:
    """Return how many people declined to take part in a study, or never decided; all versions together."""
    counted = connection.scalar(
        select(func.coalesce(func.sum(tallies.c.number), 0)).where(
            tallies.c.study == study, tallies.c.kind == kind
        )
    )
    if kind != DECLINED:
        return int(counted or 0)
    stored = connection.scalar(
        select(func.count())
        .select_from(sessions)
        .where(
            sessions.c.study == study,
            sessions.c.state == DECLINED,
            sessions.c.reader_kind == "human",
            sessions.c.is_pilot.is_(False),
        )
    )
    return int(counted or 0) + int(stored or 0)


def undecided(connection: Connection, study: str, before: str | None = None) -> list[str]:
    """Return the sessions whose reader has neither agreed nor declined so far, however they ended."""
    answered = select(trials.c.session_id).where(trials.c.session_id == sessions.c.session_id)
    decided = select(events.c.session_id).where(
        events.c.session_id == sessions.c.session_id, events.c.kind == "consent"
    )
    left = connection.execute(
        select(sessions.c.session_id, sessions.c.plan).where(
            sessions.c.study == study,
            sessions.c.reader_kind == "human",
            sessions.c.state.not_in(("finished", DECLINED)),
            true() if before is None else sessions.c.last_seen_at < before,
            ~answered.exists(),
            ~decided.exists(),
        )
    ).all()
    return [row.session_id for row in left if asks_for_consent(row.plan)]


def forget_undecided(connection: Connection, study: str, before: str) -> list[str]:
    """Erase the sessions that did not agree and were not heard of since a moment (:func:`undecided`); return their ids."""
    gone = undecided(connection, study, before)
    for session_id in gone:
        forget_and_count(connection, session_id, UNDECIDED)
    return gone


def asks_for_consent(plan: object) -> bool:
    """Return whether a session's plan has a consent screen."""
    screens = plan.get("screens", ()) if isinstance(plan, dict) else ()
    return any(screen.get("kind") == "consent" for screen in screens)
