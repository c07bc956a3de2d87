"""Lets somebody in, inside the transaction that begins their session, or says why not."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from sqlalchemy import Connection, and_, case, func, select, update

from experiment.people.live import token_hash
from experiment.people.recruitment.codes import OUTCOME_OF_STATE, Platform
from experiment.people.recruitment.returns import Return, link_parameters, return_for
from experiment.people.recruitment.signed_links import Standing
from experiment.store import queries, records
from experiment.store.assignment import INVITED, NETWORK, STARTED_RECENTLY, is_finished, is_under_way
from experiment.store.attendance import stamp
from experiment.store.database import lock_for_change
from experiment.store.erasure import NUMBERED, SERVER, erase_invitations
from experiment.store.queries import excluded_sessions
from experiment.store.records import collection_of
from experiment.store.tables import invitations, sessions
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.people.service import StudyService
if TYPE_CHECKING:
    from experiment.people.service import StudyService
if TYPE_CHECKING:
    from experiment.people.service import StudyService

TOKEN_BYTES = 16
INVITATION = "invitation"


@dataclass(frozen=True)
class Invitation:
    """A link that was made."""

    participant: str
    link: str
    expires_at: str | None


@dataclass(frozen=True)
class Invited:
    """What became of a token that somebody brought."""

    standing: Literal["open", "used", "expired", "unknown"]
    participant: str | None = None
    session_id: str | None = None
    expires_at: str | None = None


def invite(
    connection: Connection,
    study: str,
    participants: Sequence[str],
    *,
    base_url: str,
    days: float | None,
    again: bool = False,
) -> list[Invitation]:
    """Make a link for each participant."""
    twice = next((name for place, name in enumerate(participants) if name in participants[:place]), None)
    if twice is not None:
        raise UserError(f"{twice!r} is named twice", mend="Name each participant once.")
    known = connection.execute(
        select(invitations.c.participant, invitations.c.session_id).where(
            invitations.c.study == study, invitations.c.participant.in_(participants)
        )
    ).all()
    stuck = [row.participant for row in known if row.session_id is not None or not again]
    if stuck:
        names = ", ".join(stuck[:5]) + (f" and {len(stuck) - 5} more" if len(stuck) > 5 else "")
        told = "took part with their link" if again else "have a link already"
        mend = "Leave them out." if again else "Leave them out, or replace unused links with --again."
        raise UserError(f"{names}: {told}", mend=mend)
    replaced = and_(
        invitations.c.study == study,
        invitations.c.participant.in_(participants),
        invitations.c.session_id.is_(None),
    )
    erase_invitations(connection, replaced, actor=SERVER)
    moment = records.now()
    expires = None
    if days is not None:
        expires = stamp(datetime.now(UTC) + timedelta(days=days))
    made, rows = [], []
    for participant in participants:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        link = f"{base_url.rstrip('/')}/{study}/?{urlencode({INVITATION: token})}"
        made.append(Invitation(participant, link, expires))
        rows.append(
            {
                "token_hash": token_hash(token),
                "study": study,
                "participant": participant,
                "session_id": None,
                "created_at": moment,
                "expires_at": expires,
            }
        )
    connection.execute(invitations.insert(), rows)
    return made


def numbered(connection: Connection, study: str, number: int) -> list[str]:
    """Return the next names for so many links that are for nobody in particular: link-001 and so on."""
    count = select(func.count()).where(
        invitations.c.study == study, invitations.c.participant.startswith(NUMBERED)
    )
    before = int(connection.scalar(count) or 0)
    return [f"{NUMBERED}{before + place:03d}" for place in range(1, number + 1)]


def find_invitation(connection: Connection, study: str, token: str) -> Invited:
    """Say what a token is good for."""
    row: Any = connection.execute(
        select(invitations).where(invitations.c.token_hash == token_hash(token), invitations.c.study == study)
    ).first()
    if row is None:
        return Invited("unknown")
    if row.session_id is not None:
        standing: Literal["used", "expired", "open"] = "used"
    else:
        standing = "expired" if row.expires_at is not None and row.expires_at < records.now() else "open"
    return Invited(standing, row.participant, row.session_id, row.expires_at)


def spend_invitation(connection: Connection, study: str, token: str, session_id: str) -> None:
    """Bind a token to the session that it began."""
    connection.execute(
        update(invitations)
        .where(invitations.c.token_hash == token_hash(token), invitations.c.study == study)
        .values(session_id=session_id)
    )


def only_invited(connection: Connection, study: str) -> bool:
    """Say whether a study has personal links, so that its open link is closed."""
    return (
        connection.execute(select(invitations.c.study).where(invitations.c.study == study).limit(1)).first()
        is not None
    )


TRY_AGAIN_MINUTES = 30


@dataclass(frozen=True)
class Refusal:
    """Why somebody cannot begin."""

    kind: Literal["full", "busy", "paused", "closed"]
    title: str
    text: str
    mend: str


@dataclass(frozen=True)
class Places:
    """Sessions of people that hold a place."""

    finished: int
    under_way: int


def places_taken(connection: Connection, service: StudyService) -> Places:
    """Count the sessions that hold a place: people's, neither pilots nor excluded, of the present version of the design."""
    recently = min(STARTED_RECENTLY, service.left_within or STARTED_RECENTLY)
    finished = func.sum(case((is_finished(), 1), else_=0))
    under_way = func.sum(case((is_under_way(recently), 1), else_=0))
    found = connection.execute(
        select(finished, under_way).where(
            sessions.c.study == service.study,
            sessions.c.version == service.version,
            sessions.c.reader_kind == "human",
            sessions.c.is_pilot.is_(False),
            sessions.c.session_id.not_in(excluded_sessions()),
        )
    ).one()
    return Places(int(found[0] or 0), int(found[1] or 0))


def place_for(connection: Connection, service: StudyService) -> Refusal | None:
    """Say whether one more person may begin, and let nobody else decide until the writer's transaction ends.

    Call it in the transaction that then creates the session; see :func:`refusal_for`.
    """
    lock_for_change(connection)
    return refusal_for(connection, service)


def refusal_for(connection: Connection, service: StudyService) -> Refusal | None:
    """Say whether one more person may begin at this moment."""
    state = collection_of(connection, service.study).state
    if state != "open":
        words = service.pack.texts
        return Refusal(state, words[f"{state}_title"], words[f"{state}_text"], "")
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.wanted is None:
        return None
    taken = places_taken(connection, service)
    words = service.pack.texts
    if taken.finished >= recruitment.wanted:
        key = recruitment.platform.key
        mend = "" if key == "link" else service.pack.fill("full_return", platform=recruitment.platform.name)
        return Refusal("full", words["full_title"], words["full_text"], mend)
    if taken.finished + taken.under_way >= recruitment.wanted + recruitment.overbook:
        text = service.pack.fill("busy_text", minutes=TRY_AGAIN_MINUTES)
        return Refusal("busy", words["busy_title"], text, "")
    return None


Kind = Literal[
    "missing",
    "unreplaced",
    "malformed",
    "unsigned",
    "unchecked",
    "preview",
    "uninvited",
    "unknown",
    "expired",
    "again",
    "full",
    "busy",
    "paused",
    "closed",
]
ALIASES = {"id": "survey_code"}
"""Another name of a parameter, from older studies: for the platforms that have the parameter."""
TOLD_AT_ONCE = tuple(state for state in OUTCOME_OF_STATE if state != "declined")
"""Ends after which nobody begins again; whoever declined may think better of it."""


@dataclass(frozen=True)
class Hindrance:
    """Why somebody who arrives does not begin."""

    kind: Kind
    title: str
    text: str
    mend: str = ""
    back: Return | None = None


def platform_of(service: StudyService) -> Platform | None:
    """Return the platform that a study recruits from, None in a laboratory."""
    return None if service.recruitment is None else service.recruitment.platform


def parameters_of_links(service: StudyService) -> tuple[str, ...]:
    """Return what links to a study may carry: the parameters of its own platform and of personal links, nothing in a lab."""
    platform = platform_of(service)
    if platform is None:
        return ()
    sandbox = (name for name in platform.sandbox if name != "return_url")
    aliases = (name for name, stands_for in ALIASES.items() if stands_for in platform.parameters)
    signed = () if platform.signing is None else (platform.signing.identity,)
    return tuple(dict.fromkeys((*platform.parameters, *sandbox, *aliases, *signed, INVITATION)))


def identities(service: StudyService, given: Mapping[str, str], *, is_signed: bool = False) -> dict[str, str]:
    """Return the id by which the study's platform, or a signed link, knows somebody: source → id."""
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


def hindrance_of_link(
    service: StudyService, given: Mapping[str, str], *, standing: Standing = "absent"
) -> Hindrance | None:
    """Judge a link by itself: all that the study's platform adds must be there, and its signature where one is needed."""
    platform = platform_of(service)
    if platform is None or given.get(INVITATION):
        return None
    parameters = _renamed(platform, given)
    words = service.pack.texts
    for name, value in platform.preview.items():
        if parameters.get(name) == value:
            text = service.pack.fill("preview_text", platform=platform.name)
            return Hindrance("preview", words["preview_title"], text)
    kind: Kind
    name = _unreplaced(platform, parameters) or platform.identity or ""
    external_id = parameters.get(name, "").strip()
    if _unreplaced(platform, parameters) is not None:
        kind = "unreplaced"
    elif name and not external_id:
        # whose token does not hold needs a new link, not its id
        if standing not in ("absent", "valid"):
            told = "invalid" if standing == "expired" else standing
            return _hindrance_of_signature(service, platform, parameters, told)
        kind = "missing"
    elif name and not platform.has_form(external_id):
        kind = "malformed"
    else:
        return _hindrance_of_signature(service, platform, parameters, standing)
    filled = {"platform": platform.name, "parameter": name, "value": parameters.get(name, "")[:60]}
    mend = "missing_mend" if kind == "malformed" else f"{kind}_mend"
    title, text, then = (service.pack.fill(key, **filled) for key in (f"{kind}_title", f"{kind}_text", mend))
    return Hindrance(kind, title, text, then)


def _hindrance_of_signature(
    service: StudyService, platform: Platform, parameters: Mapping[str, str], standing: Standing
) -> Hindrance | None:
    # a link that has expired since may be opened again by the browser that has a session already
    if standing in ("valid", "expired") or service.recruitment is None:
        return None
    words = service.pack.texts
    signing = platform.signing
    # an id of somebody's own is worth nothing without its signature
    is_claim = signing is not None and signing.by == "key" and bool(parameters.get(signing.identity))
    if not (service.recruitment.needs_signature or is_claim or standing == "invalid"):
        return None
    if standing == "unchecked":
        text = service.pack.fill("unchecked_text", platform=platform.name)
        return Hindrance("unchecked", words["unchecked_title"], text)
    return Hindrance("unsigned", words["unsigned_title"], words["unsigned_text"])


def _unreplaced(platform: Platform, parameters: Mapping[str, str]) -> str | None:
    for name in platform.parameters:
        value = parameters.get(name, "")
        if any(mark in value for mark in platform.template_marks):
            return name
    return None


def hindrance_of_token(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> Hindrance | None:
    """Judge a personal link, or the lack of one where the study has them and the link is not signed either."""
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None:
        return None
    words = service.pack.texts
    token = given.get(INVITATION)
    if not token:
        is_open = is_signed or not only_invited(connection, service.study)
        if recruitment.platform.key != "link" or is_open:
            return None
        return Hindrance("uninvited", words["uninvited_title"], words["uninvited_text"])
    invited = find_invitation(connection, service.study, token)
    if invited.standing == "unknown":
        return Hindrance("unknown", words["unknown_title"], words["unknown_text"])
    if invited.standing == "expired":
        text = service.pack.fill("expired_text", until=(invited.expires_at or "")[:10])
        return Hindrance("expired", words["expired_title"], text)
    return None


def hindrance_of_person(
    connection: Connection, service: StudyService, given: Mapping[str, str], *, is_signed: bool
) -> Hindrance | None:
    """Judge by what is stored whether somebody may begin, or go on."""
    if platform_of(service) is None:
        return None
    hindrance = hindrance_of_token(connection, service, given, is_signed=is_signed)
    if hindrance is not None:
        return hindrance
    token = given.get(INVITATION)
    known = identities(service, given, is_signed=is_signed)
    if token:
        used_by = find_invitation(connection, service.study, token).session_id
        row = None if used_by is None else queries.session(connection, used_by)
        earlier = [] if row is None else [row]
    else:
        earlier = queries.sessions_of_person(connection, service.study, known)
    if not earlier:
        # who cannot be known again may be somebody under way: only the writer refuses them, when they begin
        refusal = refusal_for(connection, service) if token or known else None
        if refusal is None:
            return None
        return Hindrance(refusal.kind, refusal.title, refusal.text, refusal.mend)
    latest = earlier[0]
    if latest["state"] not in TOLD_AT_ONCE:
        return None
    return _again(connection, service, latest, given, is_shown=is_signed or bool(token))


def already(service: StudyService, back: Return | None = None) -> Hindrance:
    """Tell somebody that their session in this study has ended."""
    words = service.pack.texts
    return Hindrance("again", words["again_title"], words["again_text"], words["ask_us"], back)


def _again(
    connection: Connection,
    service: StudyService,
    row: Mapping[str, Any],
    given: Mapping[str, str],
    *,
    is_shown: bool,
) -> Hindrance | None:
    """Tell somebody whose link shows who they are that their session has ended, with code and way back; others nothing."""
    platform = platform_of(service)
    assert platform is not None
    stored = link_parameters(connection, str(row["session_id"]))
    brought = _renamed(platform, given)
    same = bool(stored) and all(
        brought.get(name) == value for name, value in _renamed(platform, stored).items()
    )
    # a person's id alone is not a secret and may be guessed; that of their one submission is known to them and the platform
    is_theirs = same and platform.submission in stored
    if not (is_theirs or is_shown):
        return None  # the writer refuses them when they begin, in the same words however it stands with the session
    return already(service, return_for(service, row, str(row["state"]), platform=stored))


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
    token = given.get(INVITATION)
    if not token or service.recruitment is None or service.recruitment.platform is None:
        return identities(service, given, is_signed=is_signed)
    invited = find_invitation(connection, service.study, token)
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
    token = given.get(INVITATION)
    if not token or service.recruitment is None or service.recruitment.platform is None:
        return []
    begun = find_invitation(connection, service.study, token).session_id
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
    token = given.get(INVITATION)
    if token:
        spend_invitation(connection, service.study, token, session_id)


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
    return {name: value for name, value in given.items() if name not in (RESUME, INVITATION)}
