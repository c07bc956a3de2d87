"""Sessions that were faster than their plan allows: held for review, and paid only once somebody releases them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, update

from experiment.people.times import SUSPECT
from experiment.session_minutes import shortest_seconds
from experiment.store.records import add_audit, add_flag
from experiment.store.tables import sessions

if TYPE_CHECKING:
    from experiment.people.service import StudyService

KEPT = "not paid: "
"""How the reason begins of a session that stays held after its review."""
SERVER = "server"
REFERENCE_LENGTH = 12


def reason_to_hold(service: StudyService, row: Mapping[str, Any], answered: Collection[int]) -> str | None:
    """Return why a session that finishes now is to be looked at first; None where it was not too fast.

    Parameters
    ----------
    row : Mapping
        The session's row, with its plan. Pilots and simulated readers are never too fast.
    answered : collection of int
        ``trial_index`` of the stored trials.
    """
    if row["is_pilot"] or row["reader_kind"] != "human":
        return None
    took = (service.clock() - datetime.fromisoformat(row["created_at"])).total_seconds()
    shortest = shortest_seconds(row["plan"], answered)
    if took >= shortest:
        return None
    return f"finished in {took:.1f} s; the plan takes at least {shortest:.1f} s"


def hold(connection: Connection, service: StudyService, session_id: str, reason: str) -> str | None:
    """Note a session that was too fast; return the reason for which its code is held, None where no code pays.

    In a laboratory a code pays nobody, so the session is only flagged.
    """
    if service.recruitment is None or service.recruitment.platform is None:
        add_flag(connection, session_id, SUSPECT, reason, SERVER)
        return None
    detail = {"reason": reason}
    add_audit(
        connection, SERVER, "held for review", study=service.study, session_id=session_id, detail=detail
    )
    return reason


def awaits_review(row: Mapping[str, Any]) -> bool:
    """Return whether a session is held and nobody has decided on it yet."""
    reason = row["held_reason"]
    return reason is not None and not reason.startswith(KEPT)


def release(connection: Connection, session_id: str) -> bool:
    """Release a held session: its participant gets the code, and it fills a place. Say whether it was held."""
    released = connection.execute(
        update(sessions)
        .where(sessions.c.session_id == session_id, sessions.c.held_reason.is_not(None))
        .values(held_reason=None)
        .returning(sessions.c.session_id)
    )
    return released.first() is not None


def keep(connection: Connection, session_id: str, reason: str) -> bool:
    """Keep a session held after its review; say whether it awaited one."""
    kept = connection.execute(
        update(sessions)
        .where(
            sessions.c.session_id == session_id,
            sessions.c.held_reason.is_not(None),
            sessions.c.held_reason.not_like(f"{KEPT}%"),
        )
        .values(held_reason=KEPT + reason)
        .returning(sessions.c.session_id)
    )
    return kept.first() is not None


def reference_to(session_id: str) -> str:
    """Return the name by which a held session's participant and the dashboard call it."""
    return session_id[:REFERENCE_LENGTH]
