"""Admission inside the transaction that begins a session, or the reason for refusal: links, invitations and places.

Personal links work for one session each: 128-bit tokens, of which only digests are stored. Places are counted in the
transaction that begins a session, so two people who arrive together cannot both get the last place. Places of those who
returned, timed out or became inactive are available again, on the same list.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Literal
from urllib.parse import urlencode

from sqlalchemy import Connection, and_, case, func, select, update

from experiment.people.recruitment.codes import OUTCOME_OF_STATE, Platform
from experiment.people.recruitment.return_links import Return, Standing, link_parameters, return_for
from experiment.people.response_intake import Problem
from experiment.people.service import StudyService, token_hash
from experiment.store import records
from experiment.store.assignment import INVITED, NETWORK, STARTED_RECENTLY, is_finished, is_under_way
from experiment.store.erasure import NUMBERED, SERVER, erase_invitations
from experiment.store.records import collection_of, excluded_sessions
from experiment.store.session_activity import stamp
from experiment.store.tables import invitations, sessions
from stimuli.errors import UserError

TOKEN_BYTES = 16
INVITATION = "invitation"
"""The parameter of a personal link."""
RESUME = "resume"
"""The parameter of a link with which an experimenter lets a participant continue a session in another browser."""
ALIASES = {"id": "survey_code"}
"""Older names of parameters, for the platforms that have the parameter."""
GOES_ON = ("started", "declined", "interrupted")
"""States of an invited participant's session in which the link still works."""
TOLD_AT_ONCE = tuple(state for state in OUTCOME_OF_STATE if state != "declined")
"""Outcomes after which nobody may start again; people who declined may change their minds."""
TRY_AGAIN_MINUTES = 30
LONGEST_KEPT = 500
VERSION = re.compile(r"(\d+)[._][\d._]*")


@dataclass(frozen=True)
class Invitation:
    """A new personal link."""

    participant: str
    link: str
    expires_at: str | None


@dataclass(frozen=True)
class Invited:
    """The status of a token that somebody brought."""

    standing: Literal["open", "used", "expired", "unknown"]
    participant: str | None = None
    session_id: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True)
class EntryRefusal:
    """The reason why an arriving person cannot begin, in the study's language."""

    kind: str
    title: str
    text: str
    mend: str = ""
    back: Return | None = None

    def as_problem(self) -> Problem:
        """Return the refusal as a problem of the API."""
        return Problem(403, self.text, rule=self.kind, mend=self.mend, title=self.title)


def _refusal(service: StudyService, kind: str, mend: str = "", **values: object) -> EntryRefusal:
    title, text = (service.pack.fill(f"{kind}_{part}", **values) for part in ("title", "text"))
    return EntryRefusal(kind, title, text, mend)


def invite(
    connection: Connection,
    study: str,
    participants: Sequence[str],
    *,
    base_url: str,
    days: float | None,
    again: bool = False,
) -> list[Invitation]:
    """Return a link for each participant."""
    twice = next((name for place, name in enumerate(participants) if name in participants[:place]), None)
    if twice is not None:
        raise UserError(f"{twice!r} is named twice", mend="Name each participant once.")
    theirs = and_(invitations.c.study == study, invitations.c.participant.in_(participants))
    known = connection.execute(
        select(invitations.c.participant, invitations.c.session_id).where(theirs)
    ).all()
    stuck = [row.participant for row in known if row.session_id is not None or not again]
    if stuck:
        names = ", ".join(stuck[:5]) + (f" and {len(stuck) - 5} more" if len(stuck) > 5 else "")
        reason = "took part with their link" if again else "have a link already"
        mend = "Leave them out." if again else "Leave them out, or replace unused links with --again."
        raise UserError(f"{names}: {reason}", mend=mend)
    erase_invitations(connection, and_(theirs, invitations.c.session_id.is_(None)), actor=SERVER)
    expires = None if days is None else stamp(datetime.now(UTC) + timedelta(days=days))
    row = {"study": study, "session_id": None, "created_at": records.now(), "expires_at": expires}
    made, rows = [], []
    for participant in participants:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        link = f"{base_url.rstrip('/')}/{study}/?{urlencode({INVITATION: token})}"
        made.append(Invitation(participant, link, expires))
        rows.append(row | {"token_hash": token_hash(token), "participant": participant})
    connection.execute(invitations.insert(), rows)
    return made


def numbered(connection: Connection, study: str, number: int) -> list[str]:
    """Return the next names for ``number`` links without a named participant: link-001 and so on."""
    count = select(func.count()).where(
        invitations.c.study == study, invitations.c.participant.startswith(NUMBERED)
    )
    before = int(connection.scalar(count) or 0)
    return [f"{NUMBERED}{before + place:03d}" for place in range(1, number + 1)]


def find_invitation(connection: Connection, study: str, token: str) -> Invited:
    """Return the status of a token."""
    row: Any = connection.execute(
        select(invitations).where(invitations.c.token_hash == token_hash(token), invitations.c.study == study)
    ).first()
    if row is None:
        return Invited("unknown")
    is_over = row.expires_at is not None and row.expires_at < records.now()
    standing: Literal["used", "expired", "open"]
    standing = "used" if row.session_id is not None else "expired" if is_over else "open"
    return Invited(standing, row.participant, row.session_id, row.expires_at)


def spend_invitation(connection: Connection, study: str, token: str, session_id: str) -> None:
    """Assign a token to the session that it began."""
    theirs = (invitations.c.token_hash == token_hash(token), invitations.c.study == study)
    connection.execute(update(invitations).where(*theirs).values(session_id=session_id))


def places_taken(
    connection: Connection, service: StudyService, lists: Sequence[int] | None = None
) -> tuple[int, int]:
    """Return the number of finished and active sessions that take a place: participants' own, without pilots and exclusions.

    ``lists``: those of a group of people; all without it.
    """
    recently = min(STARTED_RECENTLY, service.left_within or STARTED_RECENTLY)
    conditions = (is_finished(), is_under_way(recently))
    counts = connection.execute(
        select(*(func.sum(case((condition, 1), else_=0)) for condition in conditions)).where(
            sessions.c.study == service.study,
            sessions.c.version == service.version,
            sessions.c.reader_kind == "human",
            sessions.c.is_pilot.is_(False),
            sessions.c.session_id.not_in(excluded_sessions()),
            *(() if lists is None else (sessions.c.list_id.in_(lists),)),
        )
    ).one()
    return int(counts[0] or 0), int(counts[1] or 0)


def place_refusal(connection: Connection, service: StudyService) -> EntryRefusal | None:
    """Return the refusal if no more participants may begin; valid within the transaction that creates the session."""
    state = collection_of(connection, service.study).state
    if state != "open":
        return _refusal(service, state)
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.wanted is None:
        return None
    finished, under_way = places_taken(connection, service)
    if service.groups:
        # readers beyond a group's places take none of another's
        places, extra = _places_of_a_group(service, recruitment.wanted, recruitment.overbook)
        of_groups = [places_taken(connection, service, group.lists) for group in service.groups]
        finished = sum(min(done, places) for done, _ in of_groups)
        under_way -= sum(max(0, active - (places + extra - min(done, places))) for done, active in of_groups)
    if finished >= recruitment.wanted:
        platform = recruitment.platform
        is_own = platform.key == "link"
        return _refusal(
            service, "full", "" if is_own else service.pack.fill("full_return", platform=platform.name)
        )
    if finished + under_way >= recruitment.wanted + recruitment.overbook:
        return _refusal(service, "busy", minutes=TRY_AGAIN_MINUTES)
    return None


def group_is_full(connection: Connection, service: StudyService, lists: Sequence[int]) -> bool:
    """Return whether a group of people, with its lists, has no place for one more, as :func:`place_refusal` counts."""
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.wanted is None:
        return False
    finished, under_way = places_taken(connection, service, lists)
    places, extra = _places_of_a_group(service, recruitment.wanted, recruitment.overbook)
    return finished >= places or finished + under_way >= places + extra


def _places_of_a_group(service: StudyService, wanted: int, overbook: int) -> tuple[int, int]:
    """Return the places of each group, and how many more of its sessions can be in progress."""
    return wanted // len(service.groups), ceil(overbook / len(service.groups))


def platform_of(service: StudyService) -> Platform | None:
    """Return the platform that a study recruits from, None in a laboratory."""
    return None if service.recruitment is None else service.recruitment.platform


def parameters_of_links(service: StudyService) -> tuple[str, ...]:
    """Return the parameters allowed in a study's links: those of its platform and of personal links, none in a lab."""
    platform = platform_of(service)
    if platform is None:
        return ()
    sandbox = (name for name in platform.sandbox if name != "return_url")
    aliases = (name for name, stands_for in ALIASES.items() if stands_for in platform.parameters)
    signed = () if platform.signing is None else (platform.signing.identity,)
    return tuple(dict.fromkeys((*platform.parameters, *sandbox, *aliases, *signed, INVITATION)))


def identities(service: StudyService, given: Mapping[str, str], *, is_signed: bool = False) -> dict[str, str]:
    """Return the id by which the study's platform, or a signed link, identifies a person: source → id."""
    platform = platform_of(service)
    if platform is None:
        return {}
    name = platform.signing.identity if is_signed and platform.signing is not None else platform.identity
    external_id = _renamed(platform, given).get(name or "", "").strip()
    return {platform.source: external_id} if external_id and platform.has_form(external_id) else {}


def _renamed(platform: Platform, given: Mapping[str, str]) -> dict[str, str]:
    aliases = {name: of for name, of in ALIASES.items() if of in platform.parameters}
    named = {name: value for name, value in given.items() if name not in aliases}
    return named | {of: given[name] for name, of in aliases.items() if given.get(name) and of not in named}


def link_refusal(
    service: StudyService, given: Mapping[str, str], *, standing: Standing = "absent"
) -> EntryRefusal | None:
    """Return the refusal of a link: all of the platform's parameters must be present, and its signature if required.

    A personal link needs no other parameter, and does not confirm ids in other parameters.
    """
    platform = platform_of(service)
    if platform is None:
        return None
    parameters = _renamed(platform, given)
    named = (platform.identity, None if platform.signing is None else platform.signing.identity)
    if given.get(INVITATION) and not any(parameters.get(name or "") for name in named):
        return None
    if any(parameters.get(name) == value for name, value in platform.preview.items()):
        return _refusal(service, "preview", platform=platform.name)
    unreplaced = next(
        (
            name
            for name in platform.parameters
            if any(mark in parameters.get(name, "") for mark in platform.template_marks)
        ),
        None,
    )
    name = unreplaced or platform.identity or ""
    external_id = parameters.get(name, "").strip()
    if unreplaced is not None:
        kind = "unreplaced"
    elif name and not external_id:
        # if the token is invalid, the person needs a new link, not another id
        if standing not in ("absent", "valid"):
            known = "invalid" if standing == "expired" else standing
            return _signature_refusal(service, platform, parameters, known)
        kind = "missing"
    elif name and not platform.has_form(external_id):
        kind = "malformed"
    else:
        return _signature_refusal(service, platform, parameters, standing)
    values = {"platform": platform.name, "parameter": name, "value": parameters.get(name, "")[:60]}
    mend = service.pack.fill("missing_mend" if kind == "malformed" else f"{kind}_mend", **values)
    return _refusal(service, kind, mend, **values)


def _signature_refusal(
    service: StudyService, platform: Platform, parameters: Mapping[str, str], standing: Standing
) -> EntryRefusal | None:
    # a link that has expired since may be reopened by the browser that already has a session
    if standing in ("valid", "expired") or service.recruitment is None:
        return None
    signing = platform.signing
    # an id without its required signature is not trusted
    is_claim = signing is not None and signing.by == "key" and bool(parameters.get(signing.identity))
    if not (service.recruitment.needs_signature or is_claim or standing == "invalid"):
        return None
    if standing == "unchecked":
        return _refusal(service, "unchecked", platform=platform.name)
    return _refusal(service, "unsigned")


def invitation_refusal(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> EntryRefusal | None:
    """Return the refusal of a personal link, or of its absence if the study needs one and the link is not signed."""
    platform = platform_of(service)
    if platform is None:
        return None
    token = given.get(INVITATION)
    if not token:
        # a study with personal links has no open one
        has_links = select(invitations.c.study).where(invitations.c.study == service.study).limit(1)
        if platform.key != "link" or is_signed or connection.execute(has_links).first() is None:
            return None
        return _refusal(service, "uninvited")
    invited = find_invitation(connection, service.study, token)
    if invited.standing == "unknown":
        return _refusal(service, "unknown")
    if invited.standing == "expired":
        return _refusal(service, "expired", until=(invited.expires_at or "")[:10])
    return None


def person_refusal(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> EntryRefusal | None:
    """Return the refusal by a person's stored sessions; an identified person whose session ended gets code and return link."""
    platform = platform_of(service)
    if platform is None:
        return None
    refusal = invitation_refusal(connection, service, given, is_signed=is_signed)
    if refusal is not None:
        return refusal
    token = given.get(INVITATION)
    known = identities(service, given, is_signed=is_signed)
    if token:
        earlier = _invited_session(connection, find_invitation(connection, service.study, token))
    else:
        earlier = records.sessions_of_person(connection, service.study, known)
    if not earlier:
        # an unidentifiable person may have an active session: only the writer refuses them, when they begin
        return place_refusal(connection, service) if token or known else None
    latest = earlier[0]
    if latest["state"] not in TOLD_AT_ONCE:
        return None
    stored = link_parameters(connection, str(latest["session_id"]))
    brought = _renamed(platform, given)
    is_same = bool(stored) and _renamed(platform, stored).items() <= brought.items()
    # a person's id alone is not secret and may be guessed; a submission's id is known only to them and the platform
    if not ((is_same and platform.submission in stored) or is_signed or token):
        return None  # the writer refuses them when they begin, with the same text in all cases
    return _already(service, return_for(service, latest, str(latest["state"]), platform=stored))


def _already(service: StudyService, back: Return | None = None) -> EntryRefusal:
    """Return the refusal for a person whose session in this study has ended."""
    words = service.pack.texts
    return EntryRefusal("again", words["again_title"], words["again_text"], words["ask_us"], back)


def _invited_session(connection: Connection, invited: Invited) -> list[records.Row]:
    row = None if invited.session_id is None else records.session(connection, invited.session_id)
    return [] if row is None else [row]


def admit(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> tuple[dict[str, str], list[records.Row]]:
    """Return the ids by which a person can be recognised (source → id), and the session that their personal link began."""
    refusal = link_refusal(service, given, standing="valid" if is_signed else "absent") or invitation_refusal(
        connection, service, given, is_signed=is_signed
    )
    if refusal is not None:
        raise refusal.as_problem()
    known = identities(service, given, is_signed=is_signed)
    token = given.get(INVITATION)
    if not token or platform_of(service) is None:
        return known, []
    invited = find_invitation(connection, service.study, token)
    begun = _invited_session(connection, invited)
    # names may be deleted by now; the token still identifies its session
    if invited.session_id is not None and (not begun or begun[0]["state"] not in GOES_ON):
        raise _already(service).as_problem()
    return known | ({INVITED: invited.participant} if invited.participant else {}), begun


def note_network(
    connection: Connection, service: StudyService, session_id: str, network: Mapping[str, str | None]
) -> None:
    """Store the network data that the study requires, for participants who consented."""
    recruitment = service.recruitment
    if recruitment is None:
        return
    wanted = {"ip_address": recruitment.keep_ip_address, "user_agent": recruitment.keep_user_agent}
    stored = {
        name: value[:LONGEST_KEPT]
        for name, is_kept in wanted.items()
        if is_kept and (value := network.get(name))
    }
    is_real = select(sessions.c.session_id).where(
        sessions.c.session_id == session_id, sessions.c.reader_kind == "human", sessions.c.is_pilot.is_(False)
    )
    if stored and connection.scalar(is_real) is not None:
        records.add_person(connection, service.study, session_id, NETWORK, session_id, stored)


def coarse(client: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a browser's self-description with versions cut to their first number, enough to distinguish classes."""
    if client is None:
        return None
    return {
        name: VERSION.sub(r"\1", value) if isinstance(value, str) else value for name, value in client.items()
    }
