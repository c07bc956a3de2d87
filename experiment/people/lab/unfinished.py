"""Sessions that were begun and not ended, as a start screen offers them: continue at a trial, or end with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, select

from experiment.people.departures import Departed, leave_unagreed
from experiment.store import attendance, queries, records
from experiment.store.assignment import number_is_taken
from experiment.store.tables import sessions

MOST = 20
ENDED = "ended"
BEFORE_FIRST = "interrupted"
"""State of a session that was ended before its first test trial: its number may begin anew."""
State = Literal["new", "unfinished", "finished", "ended", "taken"]


@dataclass(frozen=True)
class Unfinished:
    """A session that can go on."""

    participant: str
    next_trial: int
    trials: int
    last_seen_at: str
    station: str | None


def at_station(connection: Connection, study: str, station: str) -> list[Unfinished]:
    """Return the unfinished sessions of a station, the latest first."""
    query = (
        select(sessions)
        .where(
            sessions.c.study == study,
            sessions.c.station == station,
            sessions.c.state == "started",
            sessions.c.reader_kind == "human",
            sessions.c.is_pilot.is_(False),
        )
        .order_by(sessions.c.last_seen_at.desc())
        .limit(MOST)
    )
    return [_unfinished(connection, dict(row)) for row in connection.execute(query).mappings()]


def of_number(connection: Connection, study: str, participant: str) -> tuple[State, list[Unfinished]]:
    """Return how it stands with a participant's number, and its unfinished session if it has one."""
    if number_is_taken(connection, study, participant):
        return "taken", []
    rows = queries.sessions_of_person(connection, study, {"participant": participant})
    begun = next((row for row in rows if row["state"] == "started"), None)
    closed = next((row for row in rows if row["state"] not in ("started", "declined", BEFORE_FIRST)), None)
    if closed is not None:
        return ("finished" if closed["state"] == "finished" else "ended"), []
    return ("new", []) if begun is None else ("unfinished", [_unfinished(connection, begun)])


def end(
    connection: Connection, study: str, participant: str, reason: str, station: str | None
) -> tuple[Literal["ended", "same", "none"], Departed | None]:
    """End a participant's unfinished session with a reason; its place is open again.

    All that it has is kept, unless its reader had not agreed to take part: then it is erased.
    """
    rows = queries.sessions_of_person(connection, study, {"participant": participant})
    begun = next((row for row in rows if row["state"] == "started"), None)
    if begun is None:
        return ("same" if rows else "none"), None
    session_id = str(begun["session_id"])
    tests = _tests(begun["plan"])
    met = {index for index, _ in queries.done_keys(connection, session_id)}
    met |= {index for index, _ in attendance.shown_keys(connection, session_id)}
    state = ENDED if met & set(tests) else BEFORE_FIRST
    attendance.end_session(connection, session_id, state, f"experimenter: {reason}")
    detail = {"reason": reason, "station": station}
    records.add_event(connection, session_id, "ended_at_station", detail)
    records.add_audit(
        connection, "experimenter", "end session", study=study, session_id=session_id, detail=detail
    )
    return "ended", leave_unagreed(connection, session_id)


def _unfinished(connection: Connection, row: Mapping[str, Any]) -> Unfinished:
    tests = _tests(row["plan"])
    done = {index for index, _ in queries.done_keys(connection, str(row["session_id"]))}
    waiting = [place for place, index in enumerate(tests, start=1) if index not in done]
    return Unfinished(
        participant=str(row["participant_id"]),
        next_trial=waiting[0] if waiting else len(tests) + 1,
        trials=len(tests),
        last_seen_at=str(row["last_seen_at"]),
        station=row["station"],
    )


def _tests(plan: Mapping[str, Any]) -> list[int]:
    return [
        trial["trial_index"]
        for screen in plan["screens"]
        for trial in screen.get("trials", ())
        if not trial.get("is_practice")
    ]
