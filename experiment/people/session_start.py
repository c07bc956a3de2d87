"""Start of sessions, or the return of a person's existing one, in one transaction of the writer.

A browser that lost the reply repeats its request with the same ``client_uuid`` and gets the same session. In another browser, a
person continues an unfinished session only by a signed or personal link, an experimenter's PIN or an experimenter's link, if
the study's ``if_interrupted`` allows it; a number or platform id alone is not sufficient. Nobody begins a second session after
a finished one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection

from experiment.people.recruitment.admission import (
    INVITATION,
    RESUME,
    admit,
    coarse,
    group_is_full,
    note_network,
    place_refusal,
    spend_invitation,
)
from experiment.people.response_intake import Problem
from experiment.people.service import StudyService, session_token, token_hash, with_token
from experiment.store import records, session_activity
from experiment.store.assignment import (
    PILOT_PREFIX,
    PREFIXES,
    STARTED_RECENTLY,
    TYPED,
    PlacesOf,
    assign_list,
    free_order_row,
    next_reader,
    number_is_taken,
)
from experiment.store.database import RefusedOperation, lock_for_change
from experiment.store.erasure import asks_for_consent
from stimuli.seeds import generator

BEGIN_ANEW = ("declined", "interrupted")
"""Final states after which the same person may begin another session."""
RESTARTED = "interrupted, and begun again as a new session"
"""Reason of a session whose person began another one; a session that an experimenter ended frees its number."""
RESUMED = "resumed"
"""The event of a session that continues in another browser."""
ALWAYS_RESUMES: Mapping[str, Any] = {"then": "resume", "within_ms": None}


@dataclass(eq=False)
class AlreadyTookPart(Exception):
    """The participant's session has ended, and a second one is not allowed."""

    state: str


@dataclass(eq=False)
class OpenElsewhere(Exception):
    """Another tab or computer holds the session; ``may_take`` is whether it can be taken over from there."""

    may_take: bool


@dataclass(eq=False)
class NotResumed(RefusedOperation):
    """The study does not allow the session to continue; it ends in ``state`` for ``reason``."""

    session_id: str
    state: str
    reason: str

    def leave_trace(self, connection: Connection) -> None:
        """End the session and keep all of its data."""
        session_activity.end_session(connection, self.session_id, self.state, self.reason)


@dataclass(frozen=True)
class OpenedSession:
    """An opened session for its browser."""

    session_id: str
    token: str
    plan: Mapping[str, Any]
    is_new: bool
    done: list[tuple[int, int]] = field(default_factory=list)
    shown: list[tuple[int, int]] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    state: str = "started"
    participant: str | None = None


@dataclass(frozen=True)
class Arrival:
    """The person who asks for a session, with the evidence for their identity."""

    link: Mapping[str, str] = field(default_factory=dict)
    number: str | None = None
    is_pilot: bool = False
    is_simulated: bool = False
    is_shown: bool = False
    is_signed: bool = False
    resumes: Mapping[str, str] | None = None
    lease: str | None = None
    network: Mapping[str, str | None] = field(default_factory=dict)


def resume_link_spent(service: StudyService) -> Problem:
    """Return the problem for a resume link that was used or expired, or whose session is gone."""
    words = service.pack.texts
    title, text = words["resume_link_spent_title"], words["resume_link_spent"]
    return Problem(403, text, rule="a link to continue works once, for a day", title=title)


def open_session(
    connection: Connection, service: StudyService, body: Mapping[str, Any], arrival: Arrival, *, secret: bytes
) -> OpenedSession:
    """Begin or return the session that a browser asks for."""
    lock_for_change(connection)
    lease, take = arrival.lease, bool(body.get("take"))
    known = records.session_by_client(connection, body["client_uuid"])
    if known is not None:
        if known["study"] != service.study:
            raise Problem(409, "this token is taken", rule="client_uuid is new for each session")
        token = session_token(secret, str(known["session_id"]))
        return come_back(connection, known, token=token, lease=lease, take=take)
    if arrival.resumes is not None:
        return _continue(connection, service, body, arrival.resumes, lease)
    identities: dict[str, str] = {}
    person: Mapping[str, Any] | None = None
    if not (arrival.is_pilot or arrival.is_simulated):
        words = service.pack.texts
        identities, invited = admit(connection, service, arrival.link, is_signed=arrival.is_signed)
        if arrival.number is not None:
            identities[TYPED] = arrival.number
            if number_is_taken(connection, service.study, arrival.number):
                text = service.pack.fill("number_taken", participant=arrival.number)
                raise Problem(409, text, rule="a number is one person's", state="taken")
        theirs = [*records.sessions_of_person(connection, service.study, identities, pilots=True), *invited]
        person = next(iter(theirs), None)
        earlier = [row for row in theirs if not row["is_pilot"]]
        unfinished = next((row for row in earlier if row["state"] == "started"), None)
        ended = next((row for row in earlier if row["state"] not in ("started", *BEGIN_ANEW)), None)
        # a personal link identifies the owner of its session, a browser that of the session it left
        own_sessions = {
            row["session_id"] for row in (earlier if arrival.is_shown or arrival.is_signed else invited)
        }
        left = {row["person_key"] for row in earlier if row["client_uuid"] == body.get("previous")}
        others = [
            row for row in earlier if row["session_id"] not in own_sessions and row["person_key"] not in left
        ]
        if any(row["state"] not in BEGIN_ANEW or row["ended_reason"] == RESTARTED for row in others):
            # nobody else learns the session's state
            raise Problem(
                403,
                words["begun_elsewhere"],
                rule="a session continues in the browser that began it, or through a signed link or an experimenter's",
                mend=words["begun_elsewhere_mend"],
                title=words["begun_elsewhere_title"],
            )
        if ended is not None:
            raise AlreadyTookPart(str(ended["state"]))
        if unfinished is not None:
            token = session_token(secret, str(unfinished["session_id"]))
            try:
                opened = come_back(connection, unfinished, token=token, lease=lease, take=take)
            except NotResumed as refusal:
                if refusal.state != "interrupted":
                    raise
                refusal.leave_trace(connection)
            else:
                station = body.get("station")
                if station:
                    session_activity.change_session(connection, opened.session_id, station=station)
                by = {"by": sorted(identities), "station": station}
                records.add_event(connection, opened.session_id, RESUMED, by)
                return opened
    return _begin(connection, service, body, arrival, _Identified(identities, person), secret)


def resume_pass(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the contents of the pass in a session's resume link; using it gives the session another token."""
    return {"session": str(row["session_id"]), "spent_with": token_hash(str(row["token_hash"]))[:16]}


def _continue(
    connection: Connection,
    service: StudyService,
    body: Mapping[str, Any],
    pass_contents: Mapping[str, str],
    lease: str | None,
) -> OpenedSession:
    row = records.session(connection, pass_contents["session"])
    if row is None or row["study"] != service.study or resume_pass(row) != pass_contents:
        raise resume_link_spent(service)
    opened = come_back(connection, row, token=secrets.token_urlsafe(32), lease=lease, take=True)
    # a browser that lost the reply repeats its request with its client_uuid
    session_activity.change_session(connection, opened.session_id, client_uuid=body["client_uuid"])
    records.add_event(connection, opened.session_id, RESUMED, {"by": ["resume link"], "station": None})
    return opened


def come_back(
    connection: Connection,
    row: Mapping[str, Any],
    *,
    token: str = "",
    lease: str | None = None,
    take: bool = False,
) -> OpenedSession:
    """Continue a stored session on a page, if it is not open elsewhere and the study allows it."""
    session_id = str(row["session_id"])
    policy = row["plan"].get("if_interrupted") or ALWAYS_RESUMES
    may_take = policy["then"] == "resume"
    if lease is not None and session_activity.holder(row) not in (None, lease) and not (take and may_take):
        raise OpenElsewhere(may_take)
    if row["state"] == "started":
        if session_activity.was_begun(connection, session_id):
            _check_policy(connection, row, policy)
        if lease is not None:
            session_activity.take_lease(connection, session_id, lease, by_force=True)
    elif row["state"] != "finished":
        raise NotResumed(session_id, str(row["state"]), str(row["ended_reason"]))
    values = {"token_hash": with_token(row["token_hash"], token)} if token else {}
    session_activity.change_session(connection, session_id, last_seen_at=records.now(), **values)
    return OpenedSession(
        session_id,
        token,
        row["plan"],
        is_new=False,
        done=records.done_keys(connection, session_id),
        shown=session_activity.shown_keys(connection, session_id),
        given=records.deciding_answers(connection, session_id, row["plan"]),
        state=str(row["state"]),
        participant=row["participant_id"],
    )


def _check_policy(connection: Connection, row: Mapping[str, Any], policy: Mapping[str, Any]) -> None:
    """Raise an error for a session that was left for longer than its study allows, or that may not continue at all."""
    session_id = str(row["session_id"])
    within_ms = policy.get("within_ms")
    if within_ms is not None:
        within = timedelta(milliseconds=within_ms)
        if datetime.now(UTC) - datetime.fromisoformat(row["last_seen_at"]) > within:
            raise NotResumed(session_id, "timed_out", session_activity.left_for(within))
    if policy["then"] == "block" and session_activity.has_met_a_trial(connection, session_id):
        raise NotResumed(session_id, "blocked", "interrupted, and the study allows no second try")
    if policy["then"] == "restart":
        raise NotResumed(session_id, "interrupted", RESTARTED)


class _Identified(NamedTuple):
    """By what a person is identified, and the row of an earlier session of theirs."""

    identities: Mapping[str, str]
    session: Mapping[str, Any] | None


def _begin(
    connection: Connection,
    service: StudyService,
    body: Mapping[str, Any],
    arrival: Arrival,
    person: _Identified,
    secret: bytes,
) -> OpenedSession:
    """Begin a session: of the same person if an earlier session of theirs is known, else of a new one."""
    identities, earlier = person.identities, person.session
    kind = "simulated" if arrival.is_simulated else "human"
    is_real = not (arrival.is_pilot or arrival.is_simulated)
    if service.left_within is not None:
        session_activity.end_sessions_left(connection, service.study, service.left_within, reader_kind=kind)
    if is_real and (refusal := place_refusal(connection, service)) is not None:
        raise refusal.as_problem()
    places = _places(service, kind, is_pilot=arrival.is_pilot)
    prefix = PILOT_PREFIX if arrival.is_pilot and not arrival.is_simulated else PREFIXES[kind]
    number = identities.get(TYPED) or (
        next_reader(connection, service.study, prefix) if earlier is None else str(earlier["reader"])
    )
    # orders are drawn by session: the same simulated readers get the same ones in every store
    draw = (
        generator("simulated session", service.study, number)
        if arrival.is_simulated
        else secrets.SystemRandom()
    )
    session_id = f"{draw.getrandbits(128):032x}"
    token = session_token(secret, session_id)
    plan: Mapping[str, Any] = (
        service.plan_session(None, session_id, 0)
        if service.groups
        else _plan_on(connection, service, places, service.list_ids, session_id)
    )
    records.create_session(
        connection,
        plan,
        session_id=session_id,
        reader_kind=kind,
        reader=number,
        participant_id=number,
        person_key=None if earlier is None else earlier["person_key"],
        client_uuid=body["client_uuid"],
        token_hash=token_hash(token),
        is_pilot=arrival.is_pilot,
        station=body.get("station"),
        client=coarse(body.get("client")),
    )
    if arrival.lease is not None:
        session_activity.take_lease(connection, session_id, arrival.lease)
    if is_real:
        if invitation := arrival.link.get(INVITATION):
            spend_invitation(connection, service.study, invitation, session_id)
        if not asks_for_consent(plan):
            note_network(connection, service, session_id, arrival.network)
    # the link parameters that may be stored with a platform id: no tokens
    details = {name: value for name, value in arrival.link.items() if name not in (RESUME, INVITATION)}
    for source, external_id in identities.items():
        records.add_person(connection, service.study, session_id, source, external_id, details)
    return OpenedSession(session_id, token, plan, is_new=True, participant=number)


def _places(service: StudyService, kind: str, *, is_pilot: bool) -> PlacesOf:
    recently = min(STARTED_RECENTLY, service.left_within or STARTED_RECENTLY)
    return PlacesOf(service.study, service.version, kind, is_pilot, recently)


def _plan_on(
    connection: Connection, service: StudyService, places: PlacesOf, lists: Sequence[int], session_id: str
) -> Mapping[str, Any]:
    """Return a session's plan on the list with the fewest readers."""
    list_id = assign_list(connection, places, lists, service.seed)
    return service.plan_session(list_id, session_id, free_order_row(connection, places, list_id))


def give_list(
    connection: Connection, service: StudyService, row: Mapping[str, Any], group: Mapping[str, str]
) -> bool:
    """Give a session whose reader's group is now known a list of the group; return False if the group is full.

    Groups have equal places. Call it in the transaction that stores the answers, so that no other decision intervenes.
    """
    lists = next(one.lists for one in service.groups if one.condition == group)
    is_real = row["reader_kind"] == "human" and not row["is_pilot"]
    if is_real and group_is_full(connection, service, lists):
        return False
    session_id = str(row["session_id"])
    places = _places(service, str(row["reader_kind"]), is_pilot=bool(row["is_pilot"]))
    plan = _plan_on(connection, service, places, lists, session_id)
    records.give_plan(connection, session_id, plan, str(row["reader_kind"]))
    return True
