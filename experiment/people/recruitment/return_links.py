"""Participants' links: signed ones that identify a person, and return links at the end, by whose codes the platform can pay.

Sessions held for review are paid only after an experimenter releases them: they were too fast for their plan, passed a screen
unanswered, or ended early for a reported reason that their answers do not show.

A token is checked against the platform's published keys. A study's own link contains an id, the second at which it expires, and
a signature over study, id and second, so that only someone with the key can make links.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256
from sqlalchemy import Connection, and_, case, func, select

from experiment.people.recruitment.codes import (
    OUTCOME_OF_STATE,
    Outcome,
    Platform,
    Recruitment,
    Signing,
    code_of,
    code_of_session,
    platforms,
)
from experiment.procedure.plan_builder import asked_of
from experiment.procedure.questions import is_eligible, right_answers
from experiment.session_minutes import shortest_seconds
from experiment.store import records
from experiment.store.records import SUSPECT, add_audit, add_flag
from experiment.store.session_activity import change_session
from experiment.store.tables import TRIAL_KEY, events, people, regions, scores, sessions, trials

if TYPE_CHECKING:
    from experiment.people.service import StudyService


FRESH_S = 24 * 3600
TRY_AGAIN_S = 60
"""Seconds after a fetch before keys are fetched again, whatever keys tokens name."""
PATIENCE_S = 5
LARGEST = 256 * 1024
SMALLEST_BITS = 2048

Find = Callable[[str], RSAPublicKey | None]

KEPT = "not paid: "
"""Prefix of the reason of a session that stays held after its review."""
SERVER = "server"
REFERENCE_LENGTH = 12


class KeysUnavailable(Exception):
    """A platform's keys cannot be reached, and none are cached."""


@dataclass
class _Known:
    keys: Mapping[str, RSAPublicKey]
    fetched_at: float | None = None
    tried_at: float | None = None


class KeySets:
    """The platforms' keys by the address or file of their key set."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def of(self, place: str) -> Find:
        """Return a function that finds a key by its id in the set at an address or in a file; it raises ``KeysUnavailable``."""
        return lambda key_id: self._find(place, key_id)

    def _find(self, place: str, key_id: str) -> RSAPublicKey | None:
        now = self._clock()
        known = self._known.get(place)
        if known is not None and key_id in known.keys and now - (known.fetched_at or 0) <= FRESH_S:
            return known.keys[key_id]  # without waiting for a fetch in progress
        with self._lock:
            known = self._known.setdefault(place, _Known({}))
            is_old = known.fetched_at is None or now - known.fetched_at > FRESH_S
            # an unknown key may be a new one
            may_try = known.tried_at is None or now - known.tried_at > TRY_AGAIN_S
            if (is_old or key_id not in known.keys) and may_try:
                known.tried_at = now
                try:
                    known.keys = read_keys(_fetched(place))
                    known.fetched_at = now
                except (OSError, ValueError):
                    pass  # cached keys stay valid
            if known.fetched_at is None:
                raise KeysUnavailable(place)
            return known.keys.get(key_id)


def _fetched(place: str) -> bytes:
    if not place.startswith(("https://", "http://")):
        return Path(place).expanduser().read_bytes()
    with urllib.request.urlopen(place, timeout=PATIENCE_S) as reply:
        return bytes(reply.read(LARGEST))


def read_keys(data: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA keys of a set by their id."""
    given = json.loads(data)
    entries = given.get("keys") if isinstance(given, dict) else None
    keys = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("kty") == "RSA" and entry.get("use", "sig") == "sig":
            key = RSAPublicNumbers(_number(entry.get("e")), _number(entry.get("n"))).public_key()
            if key.key_size >= SMALLEST_BITS:
                keys[str(entry.get("kid"))] = key
    if not keys:
        raise ValueError("the set has no RSA key for signatures")
    return keys


def _number(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("a number of the key is missing")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


LEEWAY_S = 60
"""Largest difference between the clocks of platform and server."""
ALGORITHM = "RS256"
LONGEST_TOKEN = 4096
ID, UNTIL, SIGNATURE = OWN_PARAMETERS = ("id", "until", "signature")


Standing = Literal["absent", "valid", "expired", "invalid", "unchecked"]


@dataclass(frozen=True)
class Signed:
    """The result of checking a link's signature."""

    standing: Standing
    parameters: Mapping[str, str]


ABSENT, EXPIRED = Signed("absent", {}), Signed("expired", {})
INVALID, UNCHECKED = Signed("invalid", {}), Signed("unchecked", {})


def check_link(service: StudyService, given: Mapping[str, str], *, host: str, keys: KeySets) -> Signed:
    """Return the result of checking a link's signature."""
    recruitment = service.recruitment
    signing = None if recruitment is None or recruitment.platform is None else recruitment.platform.signing
    if recruitment is None or signing is None:
        return ABSENT
    if signing.by == "key":
        return check_own(recruitment.link_key, service.study, given)
    token = given.get(signing.parameters[0])
    if not token:
        return ABSENT
    try:
        claims = read_token(token, keys.of(recruitment.key_set or signing.keys))
    except KeysUnavailable:
        return UNCHECKED
    return INVALID if claims is None else _signed(signing, claims, given, service.study, host)


def read_token(token: str, find: Any) -> dict[str, Any] | None:
    """Return the claims of a JSON Web Token (RFC 7519) signed with one of a platform's keys, else None."""
    if len(token) > LONGEST_TOKEN:
        return None
    try:
        head, body, signature = token.encode("ascii").split(b".")
        header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
        # the algorithm is ours to choose, never the token's
        if header["alg"] != ALGORITHM or not isinstance(claims, dict):
            return None
        key = find(str(header["kid"]))
        if key is None:
            return None
        key.verify(_decoded(signature), head + b"." + body, PKCS1v15(), SHA256())
    except (ValueError, KeyError, TypeError, RecursionError, InvalidSignature):
        return None
    return claims


def _decoded(part: bytes) -> bytes:
    try:
        return base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("not base64url") from error


def _signed(
    signing: Signing, claims: Mapping[str, Any], given: Mapping[str, str], study: str, host: str
) -> Signed:
    now = time.time()
    expires, identity = claims.get("exp"), claims.get(signing.claim or "")
    if not isinstance(expires, int | float) or not isinstance(identity, Mapping):
        return INVALID
    parameters = {
        name: value for name in signing.signs if isinstance(value := identity.get(name), str) and value
    }
    contradicts = any(given.get(name, value) != value for name, value in parameters.items())
    if signing.identity not in parameters or contradicts or not _is_for(claims.get("aud"), study, host):
        return INVALID
    return EXPIRED if expires < now - LEEWAY_S else Signed("valid", parameters)


def _is_for(audience: object, study: str, host: str) -> bool:
    """Return whether a token is for this server, and for this study if it names an address rather than a host."""
    for entry in audience if isinstance(audience, list) else [audience]:
        if not isinstance(entry, str):
            continue
        address = urlsplit(entry if "//" in entry else f"//{entry}")
        path = address.path.strip("/").split("/")
        if (address.hostname or "").lower() == host.lower() and path[-1] in ("", study):
            return True
    return False


def check_own(key: str | None, study: str, given: Mapping[str, str]) -> Signed:
    """Return the result of checking a link signed with the study's own key."""
    until, signature = given.get(UNTIL, ""), given.get(SIGNATURE)
    if not signature:
        return ABSENT
    if key is None or not (until.isascii() and until.isdecimal() and len(until) <= 12):
        return INVALID
    right = sign(key, study, given.get(ID, ""), int(until))
    if not given.get(ID) or not hmac.compare_digest(right.encode(), signature.encode()):
        return INVALID
    return EXPIRED if int(until) < time.time() else Signed("valid", {ID: given[ID]})


def sign(key: str, study: str, external_id: str, until: int) -> str:
    """Return the signature of a link: HMAC-SHA256 over study, id and second, one per line, in hexadecimal."""
    text = f"{study}\n{external_id}\n{until}"
    return hmac.digest(key.encode(), text.encode(), hashlib.sha256).hex()


def signed_link(base_url: str, key: str, study: str, external_id: str, until: int) -> str:
    """Return a link for a person with the user's own id, valid until a second of Unix time."""
    signature = sign(key, study, external_id, until)
    query = urlencode({ID: external_id, UNTIL: str(until), SIGNATURE: signature})
    return f"{base_url.rstrip('/')}/{study}/?{query}"


def hold_if_doubtful(
    connection: Connection,
    row: Mapping[str, Any],
    answered: Collection[int],
    recruitment: Recruitment | None,
    now: datetime,
) -> str | None:
    """Record why a session that is finishing needs review; return the reason for which its code is held.

    In a laboratory codes are not paid, so the session is only flagged, and the reason is None.
    """
    if _is_never_held(row):
        return None
    reasons = [*screens_not_passed(connection, row), *_too_fast(row, row["plan"]["screens"], answered, now)]
    return _held(connection, row, reasons, recruitment)


def hold_early_end(
    connection: Connection,
    session_id: str,
    screen: str | None,
    recruitment: Recruitment | None,
    now: datetime,
) -> None:
    """Hold a session that ended before its last trial if its reader would get a code and the end is doubtful."""
    row = records.session(connection, session_id)
    if row is None or _is_never_held(row):
        return
    if recruitment is not None and recruitment.platform and not code_of(recruitment, "screened_out"):
        return
    screens = row["plan"]["screens"]
    if screen is None:
        place = next(
            (at for at, screen in enumerate(screens) if _is_failed(connection, session_id, screen)), None
        )
    else:
        place = next(at for at, candidate in enumerate(screens) if candidate.get("name") == screen)
    if place is None:
        reasons = ["practice was reported as not passed; the stored answers do not show it"]
    else:
        answered = {index for index, _ in records.done_keys(connection, session_id)}
        reasons = _too_fast(row, screens[: place + 1], answered, now)
    reason = _held(connection, row, reasons, recruitment)
    if reason is not None:
        change_session(connection, session_id, held_reason=reason)


def _is_never_held(row: Mapping[str, Any]) -> bool:
    return bool(row["is_pilot"]) or row["reader_kind"] != "human"


def _too_fast(
    row: Mapping[str, Any], screens: Sequence[Mapping[str, Any]], answered: Collection[int], now: datetime
) -> list[str]:
    took = (now - datetime.fromisoformat(row["created_at"])).total_seconds()
    shortest = shortest_seconds({"screens": screens}, answered)
    if took >= shortest:
        return []
    return [f"ended after {took:.1f} s; the plan takes at least {shortest:.1f} s"]


def _held(
    connection: Connection, row: Mapping[str, Any], reasons: Sequence[str], recruitment: Recruitment | None
) -> str | None:
    """Record the reasons why a session needs review; return them if its code is held."""
    if not reasons:
        return None
    reason, session_id = "; ".join(reasons), str(row["session_id"])
    if recruitment is None or recruitment.platform is None:
        add_flag(connection, session_id, SUSPECT, reason, SERVER)
        return None
    detail = {"reason": reason}
    add_audit(connection, SERVER, "held for review", study=row["study"], session_id=session_id, detail=detail)
    return reason


def screens_not_passed(connection: Connection, row: Mapping[str, Any]) -> list[str]:
    """Return the missing answers that admit a reader: eligibility, instructions, practice with a criterion."""
    query = select(events.c.detail).filter_by(session_id=row["session_id"], kind="answers")
    stored = connection.scalars(query.order_by(events.c.event_id))
    # pages of earlier versions could send such events with any detail
    details = [detail for detail in stored if {"screen", "answers"} <= (detail or {}).keys()]
    missing = []
    for screen in row["plan"]["screens"]:
        if _has_criterion(screen):
            needed, (right, _) = _needed(screen), _practised(connection, str(row["session_id"]), screen)
            if right < needed:
                missing.append(
                    f"practice {screen['block']!r} was not passed: {right} right of {needed} needed"
                )
        criterion, questions = screen.get("comprehension"), screen.get("questions", ())
        if not criterion and all(question.get("accept") is None for question in questions):
            continue
        given = [detail["answers"] for detail in details if detail["screen"] == screen["name"]]
        if not given:
            missing.append(f"the screen {screen['name']!r} was not answered")
            continue
        if criterion:
            is_passed = _understood(criterion, questions, given)
        else:
            is_passed = all(is_eligible(list(questions), answers)[0] for answers in given)
        if not is_passed:
            missing.append(f"the screen {screen['name']!r} was not passed")
    return missing


def _has_criterion(screen: Mapping[str, Any]) -> bool:
    return screen["kind"] == "practice" and screen.get("pass") is not None


def _needed(practice: Mapping[str, Any]) -> int:
    share: float = practice["pass"]
    return math.ceil(share * (practice.get("of_last") or len(asked_of(practice["trials"]))) - 1e-9)


def _is_failed(connection: Connection, session_id: str, screen: Mapping[str, Any]) -> bool:
    """Return whether all passes of a practice with a criterion were answered, and none well enough."""
    if not _has_criterion(screen):
        return False
    right, passes = _practised(connection, session_id, screen)
    return passes >= (screen.get("attempts") or 1) and right < _needed(screen)


def _practised(connection: Connection, session_id: str, practice: Mapping[str, Any]) -> tuple[int, int]:
    """Return the correct practice trials in the best of the allowed passes, and the number of answered passes."""
    planned = [trial["trial_index"] for trial in practice["trials"]]
    verdicts = (
        select(scores.c.trial_index, scores.c.attempt, scores.c.correct)
        .where(scores.c.session_id == session_id, scores.c.trial_index.in_(planned))
        .order_by(scores.c.trial_index, scores.c.attempt, scores.c.score_id)
    )
    answers = {(index, attempt): bool(correct) for index, attempt, correct in connection.execute(verdicts)}
    answers |= _mazes_passed(connection, session_id, practice)
    return practice_result(practice, dict(sorted(answers.items())))


def _mazes_passed(
    connection: Connection, session_id: str, practice: Mapping[str, Any]
) -> dict[tuple[int, int], bool]:
    """Return whether every word of a maze was chosen at once, by trial and attempt."""
    steps = {trial["trial_index"]: trial["steps"][-1] for trial in asked_of(practice["trials"])}
    words = {index: len(step["parts"]) for index, step in steps.items() if step.get("as") == "maze"}
    if not words:
        return {}
    right = func.sum(case((regions.c.is_correct, 1), else_=0))
    chosen = (
        select(regions.c.trial_index, regions.c.attempt, right)
        .where(regions.c.session_id == session_id, regions.c.trial_index.in_(words))
        .group_by(regions.c.trial_index, regions.c.attempt)
    )
    return {(index, attempt): n == words[index] for index, attempt, n in connection.execute(chosen)}


def practice_result(practice: Mapping[str, Any], answers: Mapping[tuple[int, int], bool]) -> tuple[int, int]:
    """Return the correct practice trials in the best of the allowed passes, and the number of answered passes.

    A trial's first answer is its first pass, whatever its attempt: one that was seen and not answered counts as an attempt.
    Trials that only show a text are not counted. If the criterion is about the last trials (``of_last``), the best so many in a
    row count. ``answers``: by trial (index, attempt), in this order.
    """
    planned = [trial["trial_index"] for trial in asked_of(practice["trials"])]
    passes = Counter[int]()
    right: dict[int, list[bool]] = {}  # by pass, in the order of the plan
    for (index, _), is_right in answers.items():
        passes[index] += 1
        if passes[index] <= (practice.get("attempts") or 1):
            right.setdefault(passes[index], []).append(is_right)
    last = practice.get("of_last") or max(len(planned), 1)
    best = max((sum(row[i : i + last]) for row in right.values() for i in range(len(row))), default=0)
    return best, min((passes[index] for index in planned), default=0)


def _understood(
    criterion: Mapping[str, Any], questions: Sequence[dict[str, Any]], given: Sequence[Mapping[str, Any]]
) -> bool:
    rounds = given[: criterion["rounds"]]
    if len(rounds) == criterion["rounds"] and criterion["if_failed"] != "end":
        return True
    return any(right_answers(questions, answers) >= criterion["needed"] for answers in rounds)


def awaits_review(row: Mapping[str, Any]) -> bool:
    """Return whether a session is held and not yet decided on."""
    reason = row["held_reason"]
    return reason is not None and not reason.startswith(KEPT)


def release(connection: Connection, session_id: str) -> bool:
    """Release a held session, so that its participant gets the code and it takes a place; return whether it was held."""
    return change_session(connection, session_id, sessions.c.held_reason.is_not(None), held_reason=None)


def keep(connection: Connection, session_id: str, reason: str) -> bool:
    """Keep a session held after its review; return whether it awaited one."""
    awaits = (sessions.c.held_reason.is_not(None), sessions.c.held_reason.not_like(f"{KEPT}%"))
    return change_session(connection, session_id, *awaits, held_reason=KEPT + reason)


@dataclass(frozen=True)
class Return:
    """A participant's return link."""

    code: str | None
    url: str | None
    by_itself: bool = False
    text: str = ""


def return_for(
    service: StudyService,
    session: Mapping[str, Any],
    state: str,
    *,
    platform: Mapping[str, str] | None = None,
) -> Return:
    """Return the return link of a session that ended in a state."""
    recruitment = service.recruitment
    named = OUTCOME_OF_STATE[state]
    if recruitment is None or recruitment.platform is None or session.get("is_pilot"):
        return Return(session.get("completion_code"), None)
    given = platform
    if given is None:
        with service.store.read() as connection:
            given = link_parameters(connection, str(session["session_id"]))
    if session.get("held_reason"):
        return _return_when_held(service, recruitment.platform, str(session["session_id"]), given)
    code = code_of_session(recruitment, session, named)
    url = _url(recruitment.platform, named, code, given, recruitment.credit_url)
    words, key = service.pack.texts, recruitment.platform.key
    if url is not None and code is not None:
        text = words[f"return_{key}"]
    else:
        text = words.get(f"return_{key}_{named}", "" if code is None else words["return_code"])
    return Return(code, url, url is not None and recruitment.platform.returns_by_itself, text)


def _return_when_held(
    service: StudyService, platform: Platform, session_id: str, given: Mapping[str, str]
) -> Return:
    """Return the return link of a session held for review: without its code, and without credit."""
    code = code_when_held(platform, session_id)
    url = None if code is None else _url(platform, "complete", code, given)
    words = service.pack.texts
    text = words.get(f"return_{platform.key}_held", words["return_held"])
    return Return(code, url, url is not None and platform.returns_by_itself, text)


def code_when_held(platform: Platform, session_id: str) -> str | None:
    """Return what a participant whose session is held enters at the platform, or None."""
    pattern = platform.code_when_held
    return None if pattern is None else pattern.format(reference=session_id[:REFERENCE_LENGTH])


def return_when_barred(service: StudyService) -> str:
    """Return instructions on the platform for a participant whose session cannot continue; empty without a platform."""
    if service.recruitment is None or service.recruitment.platform is None:
        return ""
    return service.pack.texts.get(f"return_{service.recruitment.platform.key}_screened_out", "")


def return_fields(
    service: StudyService, session: Mapping[str, Any], platform: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of an ended session for its page: code, address, text; empty before its end.

    ``platform`` has the parameters of the participant's link if the session is not stored.
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


def link_parameters(connection: Connection, session_id: str) -> dict[str, str]:
    """Return the link parameters with which a session's participant came."""
    parameters: dict[str, str] = {}
    sources = [platform.source for platform in platforms().values()]
    query = select(people.c.source, people.c.external_id, people.c.details)
    theirs = query.where(people.c.session_id == session_id, people.c.source.in_(sources))
    for source, external_id, details in connection.execute(theirs):
        parameters |= {str(name): str(value) for name, value in (details or {}).items()}
        if source == "sona":
            parameters["survey_code"] = str(external_id)
    return parameters


def failed_checks(connection: Connection, session_id: str) -> list[int]:
    """Return the indices of failed instructed-response checks in a session, by its latest scores."""
    of_session = select(func.max(scores.c.score_id)).where(scores.c.session_id == session_id)
    latest = of_session.group_by(scores.c.trial_index, scores.c.attempt)
    checks = select(trials.c.trial_index).filter_by(session_id=session_id, is_attention_check=True)
    scored = checks.join(scores, and_(*(scores.c[name] == trials.c[name] for name in TRIAL_KEY)))
    failed = scored.where(scores.c.score_id.in_(latest), scores.c.correct.is_(False))
    return list(connection.scalars(failed.order_by(trials.c.trial_index)))


def outcome_at_end(connection: Connection, service: StudyService, session_id: str) -> Outcome:
    """Return the outcome of a session that has all its answers.

    Checks count as failed from the number that the study declares (``analysis.exclude.sessions``), or else from the number that
    the platform accepts as a reason, if it has such a rule and the user has set the study's duration.
    """
    recruitment = service.recruitment
    if recruitment is None:
        return "complete"
    limit = recruitment.failed_checks_at
    platform = recruitment.platform
    if limit is None and platform is not None and platform.checks is not None:
        # a study of unknown duration counts as long, with the stricter rule, before anyone is told of a failure
        long = platform.checks.long_from_minutes
        limit = platform.checks.needed(long if recruitment.minutes is None else recruitment.minutes)
    if limit is None or len(failed_checks(connection, session_id)) < limit:
        return "complete"
    return "failed_checks"


def code_at_end(connection: Connection, service: StudyService, session_id: str) -> str | None:
    """Return the completion code of a session that has all its answers; None means a random one."""
    if service.recruitment is None:
        return service.completion_code
    outcome = outcome_at_end(connection, service, session_id)
    return code_of(service.recruitment, outcome) or service.completion_code
