"""Activity of a session: the tab that holds it, its last contact, the trials shown, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, bindparam, case, select, update

from experiment.store.database import SessionGone
from experiment.store.statements import PreparedStatement
from experiment.store.tables import events, sessions, trials

LEASE = timedelta(seconds=30)
HEARD_AGAIN = timedelta(seconds=5)
"""Shortest time between two updates of a session's last activity: its row is large, and trials are many."""
SHOWN = "shown"
MAY_FINISH = ("started", "timed_out")
"""States from which a session can still finish when all its answers are stored."""


def stamp(moment: datetime) -> str:
    """Return a time in the store's format: ISO 8601, UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class SessionActivity:
    """The state of a session when its reader makes contact."""

    state: str
    is_elsewhere: bool


def holder(row: Mapping[str, Any], moment: datetime | None = None) -> str | None:
    """Return the tab that currently holds a session, or None.

    A lease that ends later than possible was made before the clock was set back; it is void.
    """
    until, now = row["lease_until"], moment or datetime.now(UTC)
    held = until is not None and stamp(now) < until <= stamp(now + 2 * LEASE)
    return row["lease"] if held else None


def hear(connection: Connection, session_id: str, lease: str | None = None) -> SessionActivity:
    """Record contact with a session and return its state; the tab that holds it continues to hold it."""
    moment = datetime.now(UTC)
    row = _LOOK.first(connection, {"session": session_id})
    if row is None:
        raise SessionGone(session_id)
    state, tab, until, seen = row
    lately = stamp(moment - HEARD_AGAIN)
    is_held = tab is not None and tab == lease
    if seen < lately or (is_held and (until is None or until < stamp(moment + LEASE - HEARD_AGAIN))):
        known = {"session": session_id, "tab": lease, "now": stamp(moment), "until": stamp(moment + LEASE)}
        _HEAR.put_off(connection, known)
        until = known["until"] if is_held else until
    held_by = holder({"lease": tab, "lease_until": until}, moment)
    return SessionActivity(state, lease is not None and held_by is not None and held_by != lease)


_HEAR = PreparedStatement(
    lambda _: (
        update(sessions)
        .where(sessions.c.session_id == bindparam("session", type_=Text))
        .values(
            last_seen_at=bindparam("now", type_=Text),
            lease_until=case(
                (sessions.c.lease == bindparam("tab", type_=Text), bindparam("until", type_=Text)),
                else_=sessions.c.lease_until,
            ),
        )
    )
)
_LOOK = PreparedStatement(
    lambda _: (
        select(sessions.c.state, sessions.c.lease, sessions.c.lease_until, sessions.c.last_seen_at)
        # SQLite would use the key, and read past the plan for the columns behind it
        .with_hint(sessions, "INDEXED BY ix_sessions_heard", "sqlite")
        .where(sessions.c.session_id == bindparam("session", type_=Text))
    )
)


def change_session(
    connection: Connection, session_id: str, *only_if: ColumnElement[bool], **values: Any
) -> bool:
    """Change columns of a session's row if conditions hold; return whether they did."""
    change = update(sessions).where(sessions.c.session_id == session_id, *only_if).values(**values)
    return connection.execute(change.returning(sessions.c.session_id)).first() is not None


def take_lease(connection: Connection, session_id: str, lease: str, *, by_force: bool = False) -> bool:
    """Let a tab hold a session for half a minute; return False if another tab holds it."""
    moment = datetime.now(UTC)
    query = select(sessions.c.lease, sessions.c.lease_until).filter_by(session_id=session_id)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise SessionGone(session_id)
    held_by = holder(dict(row), moment)
    if held_by is not None and held_by != lease and not by_force:
        return False
    times = {"lease_until": stamp(moment + LEASE), "last_seen_at": stamp(moment)}
    return change_session(connection, session_id, lease=lease, **times)


def let_go(connection: Connection, session_id: str, lease: str) -> None:
    """Release a session at once for the next tab.

    Requests that the abandoned tab sent may arrive later; they are stored, but do not hold the session again.
    """
    change_session(connection, session_id, sessions.c.lease == lease, lease=None, lease_until=None)


def end_session(connection: Connection, session_id: str, state: str, reason: str) -> bool:
    """End an active session; return whether this call ended it. An ended one is not changed."""
    values = {"state": state, "ended_reason": reason, "lease_until": None}
    return change_session(connection, session_id, sessions.c.state == "started", **values)


def complete_session(connection: Connection, session_id: str, held_reason: str | None) -> None:
    """Mark an active or timed-out session as finished; its page receives a code on request unless it is held."""
    values = {"state": "finished", "ended_reason": None, "held_reason": held_reason, "lease_until": None}
    moment = stamp(datetime.now(UTC))
    change_session(connection, session_id, sessions.c.state.in_(MAY_FINISH), finished_at=moment, **values)


def has_all(planned: Mapping[int, Mapping[str, Any]], done: Iterable[int]) -> bool:
    """Return whether a session has all its answers; practice beyond the criterion is never answered."""
    answered = set(done)
    return all(index in answered or bool(trial.get("is_practice")) for index, trial in planned.items())


def end_sessions_left(connection: Connection, study: str, within: timedelta, *, reader_kind: str) -> int:
    """End the sessions of a study that were inactive for longer than ``within``; return their number."""
    cutoff = stamp(datetime.now(UTC) - within)
    left = update(sessions).filter_by(study=study, reader_kind=reader_kind, state="started")
    ended = left.values(state="timed_out", ended_reason=left_for(within), lease_until=None)
    query = ended.where(sessions.c.last_seen_at < cutoff).returning(sessions.c.session_id)
    return len(connection.execute(query).all())


def left_for(within: timedelta) -> str:
    """Return the reason of a session that was left too long."""
    return f"left for more than {within.total_seconds() / 60:g} min"


def shown_keys(connection: Connection, session_id: str) -> list[tuple[int, int]]:
    """Return the (trial_index, attempt) pairs shown in a session, answered or not, in order."""
    details = connection.scalars(select(events.c.detail).filter_by(session_id=session_id, kind=SHOWN))
    pairs = {(detail["trial_index"], detail["attempt"]) for detail in details if _names_a_trial(detail)}
    return sorted(pairs)


def _names_a_trial(detail: Any) -> bool:
    return all(type(detail.get(name)) is int for name in ("trial_index", "attempt"))


def was_begun(connection: Connection, session_id: str) -> bool:
    """Return whether anything was recorded in a session, so that opening it now resumes it."""
    queries = (select(table.c.session_id).filter_by(session_id=session_id) for table in (events, trials))
    return any(connection.scalar(query.limit(1)) is not None for query in queries)


def has_met_a_trial(connection: Connection, session_id: str) -> bool:
    """Return whether a session was shown a practice or test trial, answered or not."""
    answered = select(trials.c.session_id).filter_by(session_id=session_id)
    shown = select(events.c.session_id).filter_by(session_id=session_id, kind=SHOWN)
    return any(connection.scalar(query.limit(1)) is not None for query in (answered, shown))
