"""Judges how somebody arrives: with all that their platform adds to a link, in a preview, by a personal link, or again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection

from experiment.people.recruitment import invitations
from experiment.people.recruitment.codes import OUTCOME_OF_STATE
from experiment.people.recruitment.places import refusal_for
from experiment.people.recruitment.platforms import Platform
from experiment.people.recruitment.returns import Return, link_parameters, return_for
from experiment.people.recruitment.signed_links import Standing
from experiment.store import queries

if TYPE_CHECKING:
    from experiment.people.service import StudyService

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
    return tuple(dict.fromkeys((*platform.parameters, *sandbox, *aliases, *signed, invitations.PARAMETER)))


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
    if platform is None or given.get(invitations.PARAMETER):
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
    token = given.get(invitations.PARAMETER)
    if not token:
        is_open = is_signed or not invitations.only_invited(connection, service.study)
        if recruitment.platform.key != "link" or is_open:
            return None
        return Hindrance("uninvited", words["uninvited_title"], words["uninvited_text"])
    invited = invitations.look_up(connection, service.study, token)
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
    token = given.get(invitations.PARAMETER)
    known = identities(service, given, is_signed=is_signed)
    if token:
        used_by = invitations.look_up(connection, service.study, token).session_id
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
