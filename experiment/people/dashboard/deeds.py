"""What experimenters do to sessions: functions of the writer's connection, each noted in the audit under their name.

Nothing is taken away: flags are added, and the newest decides. Who decides sees neither condition nor correctness. Each
gets the session's row, the reason and the account's name, and says whether it did anything.
"""

from __future__ import annotations

from sqlalchemy import Connection, update

from experiment.people.dashboard.reading import NOTE, PILOT, REAL
from experiment.people.recruitment import holding
from experiment.store.attendance import end_session
from experiment.store.exclusions import EXCLUDED, RESTORED
from experiment.store.queries import Row
from experiment.store.records import add_audit, add_event, add_flag
from experiment.store.tables import sessions

SUSPECT = "suspect"
ENDED = "ended"


def exclude(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Exclude a session from analysis; its place on its list is open again."""
    return _flag(connection, row, EXCLUDED, "excluded", reason, actor)


def restore(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Take an exclusion back."""
    return _flag(connection, row, RESTORED, "restored", reason, actor)


def turn_pilot(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Turn a session into a pilot, or a pilot into a real session; counts of lists and places follow."""
    was_pilot = bool(row["is_pilot"])
    changed = connection.execute(
        update(sessions)
        .where(sessions.c.session_id == row["session_id"], sessions.c.is_pilot == was_pilot)
        .values(is_pilot=not was_pilot)
        .returning(sessions.c.session_id)
    ).first()
    if changed is None:
        return False
    kind, action = (REAL, "made real") if was_pilot else (PILOT, "made a pilot")
    return _flag(connection, row, kind, action, reason, actor)


def add_note(connection: Connection, row: Row, words: str, actor: str) -> bool:
    """Keep a remark with a session."""
    return _flag(connection, row, NOTE, "noted", words, actor)


def suspect(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Mark a session as one to look at."""
    return _flag(connection, row, SUSPECT, "flagged", reason, actor)


def release(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Release a session held for review: its participant gets the code."""
    if not holding.release(connection, row["session_id"]):
        return False
    _note(connection, row, "released", reason, actor)
    return True


def keep(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """Keep a session held after its review: its participant gets no code."""
    if not holding.keep(connection, row["session_id"], reason):
        return False
    _note(connection, row, "kept held", reason, actor)
    return True


def end(connection: Connection, row: Row, reason: str, actor: str) -> bool:
    """End a session that is under way; what it has is kept."""
    session_id = row["session_id"]
    if not end_session(connection, session_id, ENDED, f"experimenter: {reason}"):
        return False
    add_event(connection, session_id, "ended_by_experimenter", {"reason": reason, "by": actor})
    _note(connection, row, "ended", reason, actor)
    return True


def _flag(connection: Connection, row: Row, kind: str, action: str, reason: str, actor: str) -> bool:
    add_flag(connection, row["session_id"], kind, reason, actor)
    _note(connection, row, action, reason, actor)
    return True


def _note(connection: Connection, row: Row, action: str, reason: str, actor: str) -> None:
    detail = {"reason": reason}
    add_audit(connection, actor, action, study=row["study"], session_id=row["session_id"], detail=detail)
