"""Begins sessions, or finds the one that a person has begun already; all of it in one transaction of the writer.

A browser that lost the reply asks again under the same ``client_uuid`` and gets the same session. A person known by
participant number or platform id goes on with an unfinished session, as far as the study's ``if_interrupted`` lets it,
and cannot begin a second one after a finished one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, update

from experiment.people.access import session_token, token_hash, with_token
from experiment.people.recruitment.admission import (
    admit,
    coarse,
    hold_place,
    invited_session,
    link_details,
    note_arrival,
    note_network,
)
from experiment.people.service import StudyService
from experiment.store import attendance, queries, records
from experiment.store.assignment import STARTED_RECENTLY, free_order_row
from experiment.store.database import lock_for_change
from experiment.store.declining import asks_for_consent
from experiment.store.errors import Refused
from experiment.store.tables import sessions

IDENTITIES = {
    "PROLIFIC_PID": "prolific",
    "workerId": "mturk",
    "survey_code": "sona",
    "id": "sona",
    "participant": "participant",
}
PREFIXES = {"human": "P", "simulated": "S"}
PILOT_PREFIX = "T"
BEGIN_ANEW = ("declined", "interrupted")
"""Ends after which the same person may begin another session."""
RESUME: Mapping[str, Any] = {"then": "resume", "within_ms": None}


class AlreadyTookPart(Exception):
    """The participant's session has ended; there is no second one."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class OpenElsewhere(Exception):
    """Another tab or computer holds the session; ``may_take`` says whether it can be taken over from there."""

    def __init__(self, *, may_take: bool) -> None:
        super().__init__("open elsewhere")
        self.may_take = may_take


class NotResumed(Refused):
    """The study does not let the session go on; it ends in ``state`` for ``reason``."""

    def __init__(self, session_id: str, state: str, reason: str) -> None:
        super().__init__(reason)
        self.session_id = session_id
        self.state = state
        self.reason = reason

    def leave_trace(self, connection: Connection) -> None:
        """End the session, which keeps all that it has."""
        attendance.end_session(connection, self.session_id, self.state, self.reason)


class PinNeeded(Exception):
    """The session goes on only where an experimenter lets it."""


class BelongsElsewhere(Exception):
    """The browser's token names a session of another study."""


@dataclass(frozen=True)
class Opened:
    """A session as its browser may have it."""

    session_id: str
    token: str
    plan: Mapping[str, Any]
    is_new: bool
    done: list[tuple[int, int]] = field(default_factory=list)
    shown: list[tuple[int, int]] = field(default_factory=list)
    state: str = "started"
    participant: str | None = None


def identities_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids by which a participant can be known again: source → id."""
    platform: Mapping[str, str] = body.get("platform") or {}
    found = {IDENTITIES[name]: platform[name].strip() for name in IDENTITIES if platform.get(name)}
    if body.get("participant"):
        found["participant"] = body["participant"].strip()
    return {source: external for source, external in found.items() if external}


def open_session(
    connection: Connection,
    service: StudyService,
    body: Mapping[str, Any],
    *,
    secret: bytes,
    is_pilot: bool,
    lease: str | None = None,
    network: Mapping[str, str | None] | None = None,
) -> Opened:
    """Begin or find the session that a browser asks for.

    Parameters
    ----------
    connection : Connection
        The writer's.
    body : Mapping
        A checked body of ``schemas/session.json``.
    secret : bytes
        The server's signing key.
    is_pilot : bool
        Whether a new session is a pilot.
    lease : str, optional
        The tab that asks.
    network : Mapping, optional
        ``ip_address`` and ``user_agent`` of the request, kept only where the study says so.

    Raises
    ------
    AlreadyTookPart
        The participant's session has ended.
    OpenElsewhere
        Another tab holds the participant's session.
    NotResumed
        The session was left, and the study does not let it go on.
    PinNeeded
        The participant's session goes on only with the experimenter's PIN (``may_go_on`` in the body is false).
    BelongsElsewhere
        The ``client_uuid`` is that of a session of another study.
    Hindered
        The link lets nobody in, or all places are taken.
    """
    lock_for_change(connection)
    take = bool(body.get("take"))
    known = queries.session_by_client(connection, body["client_uuid"])
    if known is not None:
        if known["study"] != service.study:
            raise BelongsElsewhere
        return come_back(connection, known, secret=secret, lease=lease, take=take)
    is_simulated = bool(body.get("simulated"))
    identities = {} if is_simulated else identities_of(body)
    if not (is_pilot or is_simulated):
        identities |= admit(connection, service, body.get("platform") or {})
    if not is_pilot:
        earlier = queries.sessions_of_person(connection, service.study, identities)
        if not is_simulated:
            earlier = [*earlier, *invited_session(connection, service, body.get("platform") or {})]
        unfinished = next((row for row in earlier if row["state"] == "started"), None)
        ended = next((row for row in earlier if row["state"] not in ("started", *BEGIN_ANEW)), None)
        if ended is not None:
            raise AlreadyTookPart(str(ended["state"]))
        if unfinished is not None:
            if not body.get("may_go_on", True):
                raise PinNeeded
            try:
                opened = come_back(connection, unfinished, secret=secret, lease=lease, take=take)
            except NotResumed as refusal:
                if refusal.state != "interrupted":
                    raise
                refusal.leave_trace(connection)
            else:
                by = {"by": sorted(identities), "station": body.get("station")}
                _move(connection, opened.session_id, body.get("station"))
                records.add_event(connection, unfinished["session_id"], "resumed", by)
                return opened
    return _begin(connection, service, body, identities, secret, is_pilot, is_simulated, lease, network)


def come_back(
    connection: Connection,
    row: Mapping[str, Any],
    *,
    secret: bytes | None = None,
    lease: str | None = None,
    take: bool = False,
) -> Opened:
    """Let a page go on with a stored session, if it is not open elsewhere and the study lets it go on.

    Parameters
    ----------
    row : Mapping
        The session's row with its plan.
    secret : bytes, optional
        The server's signing key, where the page has no token yet.
    take : bool
        Take the session over from the tab that holds it.

    Raises
    ------
    OpenElsewhere, NotResumed
        As for :func:`open_session`.
    """
    session_id = str(row["session_id"])
    policy = row["plan"].get("if_interrupted") or RESUME
    may_take = policy["then"] == "resume"
    held_by = attendance.holder(row)
    if lease is not None and held_by not in (None, lease) and not (take and may_take):
        raise OpenElsewhere(may_take=may_take)
    if row["state"] == "started":
        if attendance.was_begun(connection, session_id):
            _check_policy(connection, row, policy)
        if lease is not None:
            attendance.take_lease(connection, session_id, lease, by_force=True)
    elif row["state"] != "finished":
        raise NotResumed(session_id, str(row["state"]), str(row["ended_reason"]))
    token = ""
    values: dict[str, Any] = {"last_seen_at": records.now()}
    if secret is not None:
        token = session_token(secret, session_id)
        values["token_hash"] = with_token(row["token_hash"], token)
    connection.execute(update(sessions).where(sessions.c.session_id == session_id).values(**values))
    return Opened(
        session_id,
        token,
        row["plan"],
        is_new=False,
        done=queries.done_keys(connection, session_id),
        shown=attendance.shown_keys(connection, session_id),
        state=str(row["state"]),
        participant=row["participant_id"],
    )


def _check_policy(connection: Connection, row: Mapping[str, Any], policy: Mapping[str, Any]) -> None:
    session_id = str(row["session_id"])
    if policy.get("within_ms") is not None:
        within = timedelta(milliseconds=policy["within_ms"])
        if datetime.now(UTC) - datetime.fromisoformat(row["last_seen_at"]) > within:
            raise NotResumed(session_id, "timed_out", attendance.left_for(within))
    if policy["then"] == "block" and attendance.has_met_a_trial(connection, session_id):
        raise NotResumed(session_id, "blocked", "interrupted, and the study allows no second try")
    if policy["then"] == "restart":
        raise NotResumed(session_id, "interrupted", "interrupted, and begun again as a new session")


def _move(connection: Connection, session_id: str, station: str | None) -> None:
    if station:
        connection.execute(
            update(sessions).where(sessions.c.session_id == session_id).values(station=station)
        )


def _begin(
    connection: Connection,
    service: StudyService,
    body: Mapping[str, Any],
    identities: Mapping[str, str],
    secret: bytes,
    is_pilot: bool,
    is_simulated: bool,
    lease: str | None,
    network: Mapping[str, str | None] | None,
) -> Opened:
    kind = "simulated" if is_simulated else "human"
    recently = STARTED_RECENTLY
    if service.left_within is not None:
        attendance.end_sessions_left(connection, service.study, service.left_within, reader_kind=kind)
        recently = min(recently, service.left_within)
    if not (is_pilot or is_simulated):
        hold_place(connection, service)
    counted: dict[str, Any] = {"reader_kind": kind, "is_pilot": is_pilot, "started_within": recently}
    list_id = records.assign_list(
        connection, service.study, service.version, service.list_ids, service.seed, **counted
    )
    order_row = free_order_row(connection, service.study, service.version, list_id, **counted)
    session_id = secrets.token_hex(16)
    token = session_token(secret, session_id)
    plan = service.plan_session(list_id, session_id, order_row)
    prefix = PILOT_PREFIX if is_pilot and not is_simulated else PREFIXES[kind]
    reader = records.next_reader(connection, service.study, prefix)
    records.create_session(
        connection,
        plan,
        session_id=session_id,
        reader_kind=kind,
        reader=reader,
        participant_id=identities.get("participant") or reader,
        client_uuid=body["client_uuid"],
        token_hash=token_hash(token),
        is_pilot=is_pilot,
        station=body.get("station"),
        client=coarse(body.get("client")),
    )
    if lease is not None:
        attendance.take_lease(connection, session_id, lease)
    given = body.get("platform") or {}
    if not (is_pilot or is_simulated):
        note_arrival(connection, service, session_id, given)
        if not asks_for_consent(plan):
            note_network(connection, service, session_id, network or {})
    platform = link_details(given)
    for source, external_id in identities.items():
        records.add_person(connection, service.study, session_id, source, external_id, platform)
    number = identities.get("participant") or reader
    return Opened(session_id, token, plan, is_new=True, participant=number)
