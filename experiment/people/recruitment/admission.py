"""Lets somebody in, inside the transaction that begins their session, or says why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from experiment.people.recruitment import invitations
from experiment.people.recruitment.arrivals import (
    Hindrance,
    already,
    hindrance_of_link,
    hindrance_of_token,
    identities,
)
from experiment.people.recruitment.places import place_for
from experiment.store import queries, records
from experiment.store.assignment import INVITED, NETWORK
from experiment.store.tables import sessions

if TYPE_CHECKING:
    from experiment.people.service import StudyService

LONGEST_KEPT = 500
RESUME = "resume"
"""The parameter of a link with which an experimenter lets somebody continue a session in another browser."""
GOES_ON = ("started", "declined", "interrupted")
"""States of an invited person's session in which the link is good for more."""
VERSION = re.compile(r"(\d+)[._][\d._]*")


class Hindered(Exception):
    """Somebody cannot begin; ``hindrance`` holds what they are told."""

    def __init__(self, hindrance: Hindrance) -> None:
        super().__init__(hindrance.kind)
        self.hindrance = hindrance


def admit(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> dict[str, str]:
    """Return the ids by which somebody can be known again (source → id), if their link lets them in."""
    hindrance = hindrance_of_link(
        service, given, standing="valid" if is_signed else "absent"
    ) or hindrance_of_token(connection, service, given, is_signed=is_signed)
    if hindrance is not None:
        raise Hindered(hindrance)
    token = given.get(invitations.PARAMETER)
    if not token or service.recruitment is None or service.recruitment.platform is None:
        return identities(service, given, is_signed=is_signed)
    invited = invitations.look_up(connection, service.study, token)
    if invited.session_id is not None:
        row = queries.session(connection, invited.session_id)
        # names may be forgotten by now; the token still knows its session
        if row is None or row["state"] not in GOES_ON:
            raise Hindered(already(service))
    known = identities(service, given, is_signed=is_signed)
    return known | ({INVITED: invited.participant} if invited.participant else {})


def invited_session(
    connection: Connection, service: StudyService, given: Mapping[str, str]
) -> list[queries.Row]:
    """Return the session that a personal link has begun, none or one: known by the link when the name is forgotten."""
    token = given.get(invitations.PARAMETER)
    if not token or service.recruitment is None or service.recruitment.platform is None:
        return []
    begun = invitations.look_up(connection, service.study, token).session_id
    row = None if begun is None else queries.session(connection, begun)
    return [] if row is None else [row]


def hold_place(connection: Connection, service: StudyService) -> None:
    """Make sure that there is a place for one more session, which the same transaction then creates."""
    refusal = place_for(connection, service)
    if refusal is not None:
        raise Hindered(Hindrance(refusal.kind, refusal.title, refusal.text, refusal.mend))


def note_arrival(
    connection: Connection, service: StudyService, session_id: str, given: Mapping[str, str]
) -> None:
    """Spend the invitation of a new session."""
    token = given.get(invitations.PARAMETER)
    if token:
        invitations.use(connection, service.study, token, session_id)


def note_network(
    connection: Connection, service: StudyService, session_id: str, network: Mapping[str, str | None]
) -> None:
    """Keep of the network what the study says is to be kept, of people who agreed to take part."""
    recruitment = service.recruitment
    if recruitment is None:
        return
    wanted = {"ip_address": recruitment.keep_ip_address, "user_agent": recruitment.keep_user_agent}
    kept = {
        name: value[:LONGEST_KEPT]
        for name, is_kept in wanted.items()
        if is_kept and (value := network.get(name))
    }
    if not kept:
        return
    is_real = select(sessions.c.session_id).where(
        sessions.c.session_id == session_id, sessions.c.reader_kind == "human", sessions.c.is_pilot.is_(False)
    )
    if connection.scalar(is_real) is not None:
        records.add_person(connection, service.study, session_id, NETWORK, session_id, kept)


def coarse(client: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what a browser says of itself with versions cut to their first number: enough to tell classes apart."""
    if client is None:
        return None
    return {
        name: VERSION.sub(r"\1", value) if isinstance(value, str) else value for name, value in client.items()
    }


def link_details(given: Mapping[str, str]) -> dict[str, str]:
    """Return what of a link may be stored beside a platform id: no tokens."""
    return {name: value for name, value in given.items() if name not in (RESUME, invitations.PARAMETER)}
