"""Where a participant goes at the end, with which code: one for each outcome, so that the platform can pay by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import Connection, func, select

from experiment.people.recruitment.codes import (
    OUTCOME_OF_STATE,
    Outcome,
    code_of,
    code_of_session,
    outcome_named,
)
from experiment.people.recruitment.holding import reference_to
from experiment.people.recruitment.platforms import Platform, platforms
from experiment.store.tables import people, scores, trials

if TYPE_CHECKING:
    from experiment.people.service import StudyService


@dataclass(frozen=True)
class Return:
    """A participant's way back."""

    code: str | None
    url: str | None
    by_itself: bool = False
    text: str = ""


def return_for(
    service: StudyService,
    session: Mapping[str, Any],
    outcome: str,
    *,
    platform: Mapping[str, str] | None = None,
) -> Return:
    """Return where a session's participant goes."""
    recruitment = service.recruitment
    named = outcome_named(outcome)
    if recruitment is None or recruitment.platform is None or session.get("is_pilot"):
        return Return(session.get("completion_code"), None)
    given = _platform_of(service, str(session["session_id"])) if platform is None else platform
    if session.get("held_reason"):
        return _return_when_held(service, recruitment.platform, str(session["session_id"]), given)
    code = code_of_session(recruitment, session, named)
    url = _url(recruitment.platform, named, code, given, recruitment.credit_url)
    by_itself = url is not None and recruitment.platform.returns_by_itself
    return Return(code, url, by_itself, _text(service.pack.texts, recruitment.platform.key, named, code, url))


def _return_when_held(
    service: StudyService, platform: Platform, session_id: str, given: Mapping[str, str]
) -> Return:
    """Return where somebody goes whose session is held for review: without its code, and without credit."""
    code = code_when_held(platform, session_id)
    url = None if code is None else _url(platform, "complete", code, given)
    words = service.pack.texts
    text = words.get(f"return_{platform.key}_held", words["return_held"])
    return Return(code, url, url is not None and platform.returns_by_itself, text)


def code_when_held(platform: Platform, session_id: str) -> str | None:
    """Return what somebody enters at the platform whose session is held for review, None where nothing is."""
    pattern = platform.code_when_held
    return None if pattern is None else pattern.format(reference=reference_to(session_id))


def _text(
    words: Mapping[str, str], platform: str, outcome: Outcome, code: str | None, url: str | None
) -> str:
    if url is not None and code is not None:
        return words[f"return_{platform}"]
    otherwise = "" if code is None else words["return_code"]
    return words.get(f"return_{platform}_{outcome}", otherwise)


def return_when_barred(service: StudyService) -> str:
    """Return what somebody does on their platform whose session can no longer go on; empty without a platform."""
    if service.recruitment is None or service.recruitment.platform is None:
        return ""
    return service.pack.texts.get(f"return_{service.recruitment.platform.key}_screened_out", "")


def return_fields(
    service: StudyService, session: Mapping[str, Any], platform: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what a page is told of a session that has ended: code, address, text; nothing before its end.

    ``platform`` holds the parameters of the participant's link where the session is not stored.
    """
    state = str(session["state"])
    if state not in OUTCOME_OF_STATE:
        return {}
    back = return_for(service, session, state, platform=platform)
    return {
        "completion_code": back.code,
        "return_url": back.url,
        "return_by_itself": back.by_itself,
        "return_text": back.text,
    }


def _url(
    platform: Platform,
    outcome: Outcome,
    code: str | None,
    given: Mapping[str, str],
    credit_url: str | None = None,
) -> str | None:
    pattern = platform.return_url
    if pattern is None:
        return None
    if "{credit_url}" in pattern:
        person = given.get(platform.identity or "")
        if credit_url is None or not person or outcome not in ("complete", "failed_checks"):
            return None
        return pattern.format(credit_url=credit_url, survey_code=quote(person, safe=""))
    if "{code}" in pattern:
        return None if code is None else pattern.format(code=quote(code, safe=""))
    sandbox = platform.sandbox
    is_sandbox = any(given.get(name) == value for name, value in sandbox.items() if name != "return_url")
    return sandbox["return_url"] if is_sandbox else pattern


def _platform_of(service: StudyService, session_id: str) -> dict[str, str]:
    with service.store.read() as connection:
        return link_parameters(connection, session_id)


def link_parameters(connection: Connection, session_id: str) -> dict[str, str]:
    """Return the parameters of the link by which a session's participant came."""
    found: dict[str, str] = {}
    sources = [platform.source for platform in platforms().values()]
    for source, external_id, details in connection.execute(
        select(people.c.source, people.c.external_id, people.c.details).where(
            people.c.session_id == session_id, people.c.source.in_(sources)
        )
    ):
        found |= {str(name): str(value) for name, value in (details or {}).items()}
        if source == "sona":
            found["survey_code"] = str(external_id)
    return found


def failed_checks(connection: Connection, session_id: str) -> list[int]:
    """Return the trials at which a session's instructed-response checks were answered wrongly, by its latest scores."""
    latest = (
        select(func.max(scores.c.score_id))
        .where(scores.c.session_id == session_id)
        .group_by(scores.c.trial_index, scores.c.attempt)
    )
    return list(
        connection.scalars(
            select(trials.c.trial_index)
            .join(
                scores,
                (scores.c.session_id == trials.c.session_id)
                & (scores.c.trial_index == trials.c.trial_index)
                & (scores.c.attempt == trials.c.attempt),
            )
            .where(
                trials.c.session_id == session_id,
                trials.c.is_attention_check.is_(True),
                scores.c.score_id.in_(latest),
                scores.c.correct.is_(False),
            )
            .order_by(trials.c.trial_index)
        )
    )


def outcome_at_end(connection: Connection, service: StudyService, session_id: str) -> Outcome:
    """Return the outcome of a session that has all its answers.

    Checks count as failed from the number that the study declares (``analysis.exclude.sessions``), else from the
    number that the platform accepts as a reason, where it has such a rule and the user says how long the study takes.
    """
    recruitment = service.recruitment
    if recruitment is None:
        return "complete"
    limit = recruitment.failed_checks_at
    platform = recruitment.platform
    if limit is None and platform is not None and platform.checks is not None:
        # of unknown length a study counts as long: the stricter rule before anybody is told of a failure
        long = platform.checks.long_from_minutes
        limit = platform.checks.needed(long if recruitment.minutes is None else recruitment.minutes)
    if limit is None or len(failed_checks(connection, session_id)) < limit:
        return "complete"
    return "failed_checks"


def code_at_end(connection: Connection, service: StudyService, session_id: str) -> str | None:
    """Return the completion code of a session that has all its answers; None makes one of its own."""
    if service.recruitment is None:
        return service.completion_code
    outcome = outcome_at_end(connection, service, session_id)
    return code_of(service.recruitment, outcome) or service.completion_code
