"""Judges how somebody arrives: with all that their platform adds to a link, in a preview, by a personal link, or again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection

from experiment.languages import pack_for
from experiment.people.recruitment import invitations
from experiment.people.recruitment.codes import OUTCOME_OF_STATE
from experiment.people.recruitment.places import refusal_for
from experiment.people.recruitment.platforms import Platform, platforms
from experiment.people.recruitment.returns import Return, link_parameters, return_for
from experiment.store import queries

if TYPE_CHECKING:
    from experiment.people.service import StudyService

Kind = Literal[
    "missing",
    "unreplaced",
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
"""Another name under which a parameter is known from older studies."""
TOLD_AT_ONCE = tuple(state for state in OUTCOME_OF_STATE if state != "declined")
"""Ends after which nobody begins again; whoever declined may think better of it."""


@dataclass(frozen=True)
class Hindrance:
    """Why somebody who arrives does not begin.

    Attributes
    ----------
    kind : str
        What is the matter.
    title, text, mend : str
        For the participant, in the study's language.
    back : Return or None
        The way back of somebody whose session has ended, if it is surely theirs.
    """

    kind: Kind
    title: str
    text: str
    mend: str = ""
    back: Return | None = None


def known_parameters() -> tuple[str, ...]:
    """Return every parameter that the link of any platform, or a personal link, may carry."""
    names = [name for platform in platforms().values() for name in platform.parameters]
    sandbox = [name for platform in platforms().values() for name in platform.sandbox if name != "return_url"]
    return tuple(dict.fromkeys((*names, *sandbox, *ALIASES, invitations.PARAMETER)))


def identities(given: Mapping[str, str]) -> dict[str, str]:
    """Return the ids by which somebody can be known again: source → id."""
    parameters = _renamed(given)
    found = {}
    for platform in platforms().values():
        external_id = parameters.get(platform.identity or "", "").strip()
        if external_id:
            found[platform.source] = external_id
    return found


def _renamed(given: Mapping[str, str]) -> dict[str, str]:
    named = {name: value for name, value in given.items() if name not in ALIASES}
    return named | {
        ALIASES[name]: given[name] for name in ALIASES if given.get(name) and ALIASES[name] not in named
    }


def hindrance_of_link(service: StudyService, given: Mapping[str, str]) -> Hindrance | None:
    """Judge a link by its parameters alone: all that the study's platform adds must be there."""
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or given.get(invitations.PARAMETER):
        return None
    platform = recruitment.platform
    parameters = _renamed(given)
    words = pack_for(service.language).texts
    for name, value in platform.preview.items():
        if parameters.get(name) == value:
            text = words["preview_text"].format(platform=platform.name)
            return Hindrance("preview", words["preview_title"], text)
    unreplaced = _unreplaced(platform, parameters)
    if unreplaced is not None:
        kind: Kind = "unreplaced"
    elif platform.identity is not None and not parameters.get(platform.identity, "").strip():
        kind, unreplaced = "missing", platform.identity
    else:
        return None
    filled = {
        "platform": platform.name,
        "parameter": unreplaced,
        "value": parameters.get(unreplaced, "")[:60],
    }
    title, text, mend = (words[f"{kind}_{part}"].format(**filled) for part in ("title", "text", "mend"))
    return Hindrance(kind, title, text, mend)


def _unreplaced(platform: Platform, parameters: Mapping[str, str]) -> str | None:
    for name in platform.parameters:
        value = parameters.get(name, "")
        if any(mark in value for mark in platform.template_marks):
            return name
    return None


def hindrance_of_token(
    connection: Connection, service: StudyService, given: Mapping[str, str]
) -> Hindrance | None:
    """Judge a personal link, or the lack of one where the study has them."""
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None:
        return None
    words = pack_for(service.language).texts
    token = given.get(invitations.PARAMETER)
    if not token:
        if recruitment.platform.key != "link" or not invitations.only_invited(connection, service.study):
            return None
        return Hindrance("uninvited", words["uninvited_title"], words["uninvited_text"])
    invited = invitations.look_up(connection, service.study, token)
    if invited.standing == "unknown":
        return Hindrance("unknown", words["unknown_title"], words["unknown_text"])
    if invited.standing == "expired":
        text = words["expired_text"].format(until=(invited.expires_at or "")[:10])
        return Hindrance("expired", words["expired_title"], text)
    return None


def hindrance_of_person(
    connection: Connection, service: StudyService, given: Mapping[str, str]
) -> Hindrance | None:
    """Judge by what is stored whether somebody may begin, or go on.

    Parameters
    ----------
    connection : Connection
        A reading connection.
    service : StudyService
        The study.
    given : Mapping of str to str
        The parameters of their link.
    """
    if service.recruitment is None or service.recruitment.platform is None:
        return None
    hindrance = hindrance_of_token(connection, service, given)
    if hindrance is not None:
        return hindrance
    token = given.get(invitations.PARAMETER)
    if token:
        used_by = invitations.look_up(connection, service.study, token).session_id
        row = None if used_by is None else queries.session(connection, used_by)
        earlier = [] if row is None else [row]
    else:
        earlier = queries.sessions_of_person(connection, service.study, identities(given))
    if not earlier:
        # who cannot be known again may be somebody under way: only the writer refuses them, when they begin
        refusal = refusal_for(connection, service) if token or identities(given) else None
        if refusal is None:
            return None
        return Hindrance(refusal.kind, refusal.title, refusal.text, refusal.mend)
    latest = earlier[0]
    return _again(connection, service, latest, given) if latest["state"] in TOLD_AT_ONCE else None


def already(service: StudyService, back: Return | None = None) -> Hindrance:
    """Tell somebody that their session in this study has ended."""
    words = pack_for(service.language).texts
    return Hindrance("again", words["again_title"], words["again_text"], words["ask_us"], back)


def _again(
    connection: Connection, service: StudyService, row: Mapping[str, Any], given: Mapping[str, str]
) -> Hindrance:
    """Tell somebody that their session has ended; whoever brings the very same link also gets code and way back."""
    stored = link_parameters(connection, str(row["session_id"]))
    brought = _renamed(given)
    is_theirs = bool(stored) and all(brought.get(name) == value for name, value in _renamed(stored).items())
    back = None
    if is_theirs or given.get(invitations.PARAMETER):
        back = return_for(service, row, str(row["state"]), platform=stored)
    return already(service, back)
