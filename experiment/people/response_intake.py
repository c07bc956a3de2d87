"""Validates and stores what a session's page sends, over the network or in a downloaded copy.

Each operation is a function of the writer's connection and safe to repeat: a repeated request is stored once and gets the same
answer. A trial or event is stored whichever tab sends it and however late: only the next screen depends on which tab holds the
session.

The copy of answers that a participant downloaded when the server did not confirm them passes the same checks and operations, so
an answer that had arrived after all counts as the same, and importing a copy twice changes nothing.

If a participant declines or has their answers deleted, the rows are erased in the transaction of the request. Bytes in database
files and backups follow in a separate thread, one study at a time; an interrupted cleaning is completed when the study is
served again.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from importlib import resources
from typing import Any, Literal

from flask import Request
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from sqlalchemy import Connection, select

from experiment.people.recruitment.codes import DEVICE, Recruitment
from experiment.people.recruitment.return_links import hold_early_end, hold_if_doubtful
from experiment.people.service import LiveSession, ScoreTrial, StudyService, is_token, live_session, present
from experiment.procedure.questions import answer_names, group_of, is_eligible, right_answers
from experiment.procedure.steps import Verdict, foils_shown, intact_parts, parts_of, region_names, verdict_of
from experiment.scoring.trial import score_trial
from experiment.store import SessionGone, Store, chain, records, session_activity
from experiment.store.erasure import (
    DECLINED,
    UNDECIDED,
    asks_for_consent,
    erase_sessions,
    forget,
    forget_and_count,
    has_agreed,
)
from experiment.store.records import SUSPECT
from experiment.store.tables import sessions
from experiment.trials import OWN_TYPE, UNANSWERED, recorded_fields
from experiment.trials.own import LARGEST_RECORD, answer_of, record_faults
from stimuli.errors import UserError
from stimuli.schemas.acceptance import Accepts, acceptor, is_moment

TOLERANCE_MS = 1.0


class Problem(Exception):
    """An error response to a request."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        rule: str,
        mend: str = "",
        retry_after_s: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = {"error": error, "rule": rule, "mend": mend, **more}


def no_such_session() -> Problem:
    """Return the same problem for an unknown session and a wrong token, so that neither can be guessed."""
    return Problem(
        404,
        "there is no such session for this token",
        rule="a session answers only to the token that was given when it began",
        mend="Open the study's page again.",
    )


FREQUENT = frozenset({"trial", "event"})
LARGEST_BODY = 256 * 1024
LARGEST_EVENT = 32 * 1024
DEEPEST = 12
LONGEST_RULE = 300
LARGEST_WHOLE = 2.0**53
"""Up to this value, a float represents every whole number exactly."""
_FORMATS = FormatChecker(formats=())
_FORMATS.checks("date-time")(is_moment)
_BRACKET = re.compile(r"[\[\]{}]")
# possessive, with an optional closing mark: matched text is never scanned again
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_SURROGATE_OR_NUL = re.compile("[\0\ud800-\udfff]")
# only an escape can encode a surrogate or a zero byte, only a long or exponential number can be infinite
_PERHAPS_NOT_STORABLE = re.compile(r"\\u|(?:^|[:,\[\s])-?\d[\d.]*[eE]\+?\d{3}|\d{200}")


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of one kind of body: the name of a file in ``schemas/``."""
    text = resources.files(__package__).joinpath("schemas", f"{name}.json").read_text("utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=_FORMATS)


@cache
def acceptance(name: str) -> Accepts:
    """Return a fast check of whether a body is valid, for those sent with every trial."""
    schema = validator(name).schema
    assert isinstance(schema, dict)
    return acceptor(schema)


def read_body(request: Request, name: str) -> dict[str, Any]:
    """Return the validated JSON body of a request."""
    if request.mimetype != "application/json":
        raise Problem(415, "the body is not JSON", rule="send application/json")
    data = request.get_data(cache=False)
    if name == "event" and len(data) > LARGEST_EVENT:
        raise Problem(413, "the event is too large", rule=f"an event has at most {LARGEST_EVENT // 1024} KB")
    body = parse(data)
    if name not in FREQUENT or not acceptance(name)(body):
        error = best_match(validator(name).iter_errors(body))
        if error is not None:
            raise _bad(_place(error), _rule(error))
    assert isinstance(body, dict)
    return body


def parse(data: bytes, deepest: int = DEEPEST) -> object:
    """Return JSON that a database can store: limited depth, no NaN, no infinity; 1.0 becomes 1, as in a browser.

    Surrogates and zero bytes, which a browser can send and a database cannot store, become U+FFFD: an odd character is no
    reason to lose an answer.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad("the body", "is UTF-8") from None
    if _depth(text) > deepest:
        raise _bad("the body", f"nests at most {deepest} deep")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_number)
    except (ValueError, RecursionError):
        raise _bad("the body", "is valid JSON") from None
    return _storable(value) if _PERHAPS_NOT_STORABLE.search(text) else value


def _bad(what: str, rule: str) -> Problem:
    return Problem(400, f"{what} was not accepted", rule=f"{what} {rule}"[:LONGEST_RULE])


def _depth(text: str) -> int:
    depth = deepest = 0
    if text.count("{") + text.count("[") <= 1:
        return 1
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= LARGEST_WHOLE else value


def _storable(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE_OR_NUL.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _bad("a number", "is finite")
    if isinstance(value, list):
        return [_storable(part) for part in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(part) for name, part in value.items()}
    return value


def _place(error: ValidationError, whole: str = "the body") -> str:
    return ".".join(str(part) for part in error.absolute_path)[:100] or whole


def _rule(error: ValidationError) -> str:
    expected = json.dumps(error.validator_value, ensure_ascii=False, default=str)
    return f"must satisfy {error.validator}: {expected}"


def response_time(body: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return a trial's response time in milliseconds, and why its times are doubtful, if they are.

    The timestamps are those of the page's clock; if they contradict the response time that was sent, it is computed from them.
    A trial with doubtful times is still stored.
    """
    rt, onset, response = (body.get(name) for name in ("rt", "onset_ts", "response_ts"))
    reasons = []
    if rt is not None and onset is not None and response is not None:
        between = response - onset
        if abs(rt - between) > TOLERANCE_MS:
            reasons.append(f"rt was sent as {rt} ms; from onset to response it is {between:.1f} ms")
            rt = between
    if rt is not None and rt < 0:
        reasons.append(f"rt is negative ({rt:.1f} ms)")
    reading_time = body.get("reading_time")
    if reading_time is not None and reading_time < 0:
        reasons.append(f"reading_time is negative ({reading_time:.1f} ms)")
    return rt, "; ".join(reasons) or None


ACTOR = "participant"
LATER_S = 600.0
"""Seconds that cleaning after a decline waits for others that it can include."""

Wish = Literal["decline", "delete"]


class TooLate(Exception):
    """The session has ended, and the last day for deleting its answers is over."""

    def __init__(self, until: str) -> None:
        super().__init__(until)
        self.until = until


@dataclass(frozen=True)
class Departed:
    """Sessions that were erased."""

    sessions: tuple[str, ...]
    wish: Wish


def wish_of(kind: str, detail: Mapping[str, Any]) -> Wish | None:
    """Return what an event requests, None if it erases nothing."""
    if kind == "consent" and detail.get("agreed") is False:
        return "decline"
    return "delete" if kind == "stop" and detail.get("then") == "delete" else None


def depart(connection: Connection, session_id: str, wish: Wish, withdraw_until: str | None) -> Departed:
    """Erase a declined session, or all sessions of its reader; those of a reader who had consented leave a tombstone."""
    row = records.session(connection, session_id)
    if row is None:
        raise SessionGone(session_id)
    same = select(sessions.c.session_id).where(
        sessions.c.study == row["study"],
        sessions.c.person_key == row["person_key"],
        sessions.c.person_key.is_not(None),
    )
    of_person = list(dict.fromkeys([row["session_id"], *connection.scalars(same)]))
    theirs = [session_id] if wish == "decline" else of_person
    is_asked = wish == "decline" or asks_for_consent(row["plan"])
    if is_asked and not any(has_agreed(connection, their) for their in theirs):
        forget_and_count(connection, session_id, DECLINED)
        for other in theirs[1:]:
            forget(connection, other)
        return Departed(tuple(theirs), wish)
    is_over = withdraw_until is not None and date.today().isoformat() > withdraw_until
    if row["state"] != "started" and is_over:
        raise TooLate(str(withdraw_until))
    erased = erase_sessions(connection, of_person, actor=ACTOR)
    return Departed(tuple(erased.sessions), "delete")


def leave_unagreed(connection: Connection, session_id: str) -> Departed | None:
    """Erase and count a participant's session that ended before consent; return None if it is kept."""
    row = records.session(connection, session_id)
    if row is None or row["reader_kind"] != "human" or not asks_for_consent(row["plan"]):
        return None
    if has_agreed(connection, session_id):
        return None
    forget_and_count(connection, session_id, UNDECIDED)
    return Departed((session_id,), "decline")


class Cleaning:
    """Cleans files of erased sessions in a separate thread, so that no answer waits for it."""

    def __init__(self, tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr)) -> None:
        self._tell = tell
        self._due: dict[str, StudyService] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_urgent = False
        self._is_closing = False

    def after(self, service: StudyService, departed: Departed) -> None:
        """Record erased sessions next to the backups, so that none restores them, and clean the study's files."""
        from experiment.integrity.withdrawal import remember

        if service.folder is None:
            return
        remember(service.folder, departed.sessions)
        with self._changed:
            self._due[service.study] = service
            self._is_urgent = self._is_urgent or departed.wish == "delete"
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="wrods-cleaning", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Clean what is due at once, and wait until it is done."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        from experiment.integrity.withdrawal import clean_up

        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_urgent or self._is_closing, timeout=LATER_S)
                due, self._due, self._is_urgent = self._due, {}, False
                if not due:
                    self._thread = None
                    return
            for service in due.values():
                assert service.folder is not None
                try:
                    left = clean_up(service.store, service.study, service.folder)
                except Exception as error:
                    # whatever the error, participants are answering: report it and continue
                    left = [f"{service.study}: files were not cleaned of deleted answers: {error}"]
                for line in left:
                    self._tell(line)


MEASURED = ("client_uuid", "trial_index", "attempt", *recorded_fields(), "plugin_version", "created_at")
SCREENED_OUT = "screened_out"
GROUP_FULL = "group is full"
"""Beginning of the reason of a session that ended because its reader's group has no places left."""
GiveList = Callable[[Connection, Mapping[str, Any], Mapping[str, str]], bool]
"""Assigns a list of the reader's group to a session; returns False if the group is full."""
FAILED_COMPREHENSION = "failed_comprehension"
STOPPED = "stopped"
OF_THE_SERVER = frozenset(
    {"answers", "resumed", "ended_at_station", "ended_by_experimenter", "trial_conflict"}
)
"""Kinds of events that the server records itself."""


@dataclass(frozen=True)
class IntakeResult:
    """Result of storing something that was sent."""

    told: Literal["stored", "same", "erased"]
    is_elsewhere: bool = False
    eligible: bool = True
    feedback: Verdict | None = None
    then: Literal["go_on", "again", "end", "assigned", "full"] | None = None
    departed: Departed | None = None


Take = Callable[[Connection], IntakeResult]
KeepNetwork = Callable[[Connection, str], None]
"""Stores a study's network data of a session after its reader has consented."""
HoldEarlyEnd = Callable[[Connection, str, str | None], None]
"""Holds a session whose early end is doubtful; receives the screen whose answers ended it, None for practice."""


def trial_operation(
    live: LiveSession, score: ScoreTrial, body: Mapping[str, Any], lease: str | None = None
) -> Take:
    """Return the operation that stores an answered trial with its score; what was shown comes from the stored plan."""
    planned = live.trials.get(body["trial_index"])
    if planned is None:
        raise Problem(
            400, f"there is no trial {body['trial_index']}", rule="trial_index is one of the plan's"
        )
    announced = body.get("next")
    if announced is not None and announced[0] not in live.trials:
        raise Problem(400, f"there is no trial {announced[0]}", rule="next is one of the plan's trials")
    parts = _regions(planned, body.get("regions") or [])
    recorded, faults = _recorded(live, planned, body.get("recorded") or {})
    answering = planned["steps"][-1]
    response_raw = body["response_raw"]
    if answering["step"] == OWN_TYPE:
        response_raw = answer_of(answering, recorded)
    verdict = score(planned, response_raw, timed_out=body["timed_out"])
    feedback = verdict_of(
        live.feedback.get(planned["block"]), planned, correct=verdict.correct, timed_out=body["timed_out"]
    )
    row = records.planned_columns(planned)
    row |= {name: body.get(name) for name in MEASURED}
    row |= {"response_raw": response_raw, "recorded": recorded or None}
    row["rt"], doubt = response_time(body)
    doubt = "; ".join(filter(None, (doubt, *faults))) or None
    row |= {"session_id": live.session_id, "payload_hash": records.payload_hash(body)}

    def store(connection: Connection) -> IntakeResult:
        # the session's row precedes its chain everywhere, so that no two operations deadlock
        heard = session_activity.hear(connection, live.session_id, lease)
        with chain.gathering(connection, live.session_id):
            return store_all(connection, heard)

    def store_all(connection: Connection, heard: session_activity.SessionActivity) -> IntakeResult:
        _require_agreement(connection, live)
        stored = records.store_trial(connection, row, parts, verdict)
        if stored == "same":
            return IntakeResult(stored, heard.is_elsewhere, feedback=feedback)
        if heard.state == "finished":
            raise Problem(409, "the session has ended", rule="trials come before the end")
        if doubt is not None:
            trial = records.TrialPlace(row["trial_index"], row["attempt"])
            records.add_flag(connection, live.session_id, SUSPECT, doubt, "server", trial)
        if announced is not None:
            index, attempt = announced
            detail = {"trial_index": index, "attempt": attempt}
            records.add_event(connection, live.session_id, session_activity.SHOWN, detail)
        return IntakeResult(stored, heard.is_elsewhere, feedback=feedback)

    return store


def _require_agreement(connection: Connection, live: LiveSession, screen: str | None = None) -> None:
    if not live.agreed.is_set() and screen not in live.above_consent:
        if not has_agreed(connection, live.session_id):
            # not a final refusal: the consent may still arrive
            raise Problem(
                425,
                "the reader has not agreed to take part",
                rule="trials and answers come after the event consent with agreed: true, where the study has a consent screen",
                mend="The browser tries again by itself.",
                retry_after_s=2,
            )
        live.agreed.set()


def _recorded(
    live: LiveSession, planned: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a trial's steps of own types recorded, by type, and what of it is against its declaration.

    A value that breaks its declaration is stored as it came, and the trial is marked: nothing that was measured is lost.
    """
    own = [step["type"] for step in planned["steps"] if step["step"] == OWN_TYPE]
    unknown = sorted(given.keys() - set(own))
    if unknown:
        rule = f"recorded has the trial's own types: {', '.join(own) or 'none'}"
        raise Problem(400, f"the trial has no step {unknown[0]!r}", rule=rule)
    size = len(json.dumps(given, ensure_ascii=False).encode())
    if size > LARGEST_RECORD:
        rule = f"the fields of a trial's own types have at most {LARGEST_RECORD // 1000} KB"
        raise Problem(413, f"{size // 1000} KB were recorded", rule=rule)
    faults = [
        f"{name}: {fault}"
        for name in own
        for fault in record_faults(live.own_types[name]["fields"], given.get(name, {})).values()
        if name in given or not planned["steps"][-1].get("time_limit_ms")
    ]
    return {name: given[name] for name in own if name in given}, faults


def _regions(planned: Mapping[str, Any], given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return region rows: the parts of the text in the plan with the times that the browser measured."""
    if not given:
        return []
    read = next((step for step in planned["steps"] if step["step"] in UNANSWERED), planned["steps"][-1])
    shown = parts_of(read)
    texts = [planned["shown"].get(name) for name in planned.get("intact", {})]
    is_comparable = any(text and text in (read["text"] or "") for text in texts)
    intact = intact_parts(planned, read) if is_comparable else [None] * len(shown)
    places = [part["region"] for part in given]
    if max(places) >= len(shown) or len(set(places)) < len(places):
        raise Problem(
            400,
            "a region is not of this text",
            rule="regions count the words, chunks or sentences shown, each once",
        )
    foils = foils_shown(read)
    rows = []
    for part in given:
        place = part["region"]
        form = intact[place]
        changed = None if form is None else form != shown[place]
        names = region_names(planned, place)
        side = read["sides"][place] if read.get("sides") else None
        of_plan = {"shown": shown[place], "intact": form, "is_changed": changed, "region_names": names}
        rows.append(part | of_plan | {"foil": foils[place], "side": side})
    return rows


def event_operation(
    live: LiveSession,
    body: Mapping[str, Any],
    hold_early_end: HoldEarlyEnd,
    lease: str | None = None,
    keep_network: KeepNetwork = lambda _, __: None,
) -> Take:
    """Return the operation that stores an event outside the trials; some events end or erase a session."""
    kind, detail = body["kind"], body.get("detail") or {}
    if kind in OF_THE_SERVER:
        raise Problem(
            400, f"a page does not send events of kind {kind!r}", rule="the server records these itself"
        )
    wish, ending = wish_of(kind, detail), _ending(kind, detail)
    if kind == "consent" and wish is None:
        agreed, version = detail.get("agreed"), detail.get("version")
        if agreed is not True:
            raise Problem(400, f"agreed is {agreed!r}", rule="agreed is true or false")
        if live.consents and version not in live.consents:
            shown = " or ".join(sorted(live.consents))
            raise Problem(
                409,
                f"the agreement names version {version!r} of the consent text; this session was shown {shown}",
                rule="an agreement names the version of the consent text that was shown",
                mend="Send the version that the session's plan has.",
            )
    if ending is not None and kind != "stop" and kind not in live.sends_away:
        raise Problem(
            400, f"this study sends nobody away for {kind}", rule="an end is one that the session's plan has"
        )

    def store(connection: Connection) -> IntakeResult:
        if wish is not None:
            return IntakeResult(
                "erased", departed=depart(connection, live.session_id, wish, live.withdraw_until)
            )
        heard = session_activity.hear(connection, live.session_id, lease)
        stored = records.add_event(
            connection, live.session_id, kind, detail, client_uuid=body["client_uuid"], at=body.get("at")
        )
        if ending is not None and stored == "stored":
            has_ended = session_activity.end_session(connection, live.session_id, *ending)
            if has_ended and kind == "practice":
                hold_early_end(connection, live.session_id, None)
            # a participant who was screened out is still told how to return the place, and is erased within a day
            left = leave_unagreed(connection, live.session_id) if kind == "stop" else None
            if left is not None:
                return IntakeResult("erased", departed=left)
        if kind == "consent" and stored == "stored":
            keep_network(connection, live.session_id)
        return IntakeResult(stored, heard.is_elsewhere)

    return store


def _ending(kind: str, detail: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the final state of a session after an event, with the reason, or None."""
    if kind == "stop" and detail.get("then") == "keep":
        return STOPPED, "by the participant"
    if kind == "practice" and detail.get("then") == "end":
        return "failed_practice", f"practice: {detail.get('right')} right of {detail.get('needed')} needed"
    if kind == "device" and detail.get("passed") is False:
        missed = detail.get("missed")
        named = ", ".join(str(name) for name in missed)[:200] if isinstance(missed, list) else ""
        return SCREENED_OUT, f"{DEVICE}{named}"
    return None


def answers_operation(
    live: LiveSession,
    body: Mapping[str, Any],
    hold_early_end: HoldEarlyEnd,
    lease: str | None = None,
    give_list: GiveList | None = None,
) -> Take:
    """Return the operation that stores a screen's answers, and ends the session if they do not admit its reader.

    Answers that decide on the reader's group count once: they give the session its list (``give_list``; without it, answers
    are stored and the session waits until its page asks again).
    """
    screen = body["screen"]
    questions = live.questions.get(screen)
    if questions is None:
        raise Problem(400, f"there is no screen {screen!r}", rule="screen names one of the plan's")
    asked = {name for question in questions for name in answer_names(question)}
    unknown = sorted(body["answers"].keys() - asked)
    if unknown:
        raise Problem(
            400,
            f"the screen {screen!r} asks no question {unknown[0]!r}",
            rule="answers are to the screen's questions",
        )
    criterion = live.comprehension.get(screen)
    lets_in, missed = is_eligible(list(questions), body["answers"])
    grouping = live.grouping.get(screen)
    group = None if grouping is None else group_of(grouping, body["answers"])
    if lets_in and grouping is not None and group is None:
        lets_in, missed = False, sorted({name for one in grouping["groups"] for name in one["accept"]})
    detail = {"screen": screen, "answers": dict(body["answers"])}

    def store(connection: Connection) -> IntakeResult:
        heard = session_activity.hear(connection, live.session_id, lease)
        _require_agreement(connection, live, screen)
        row = None if grouping is None else records.session(connection, live.session_id)
        if row is not None and not chain.awaits_group(row["plan"]):
            return IntakeResult("same", heard.is_elsewhere, then="assigned")
        stored = records.add_event(
            connection, live.session_id, "answers", detail, client_uuid=body["client_uuid"]
        )

        def end(state: str, reason: str) -> None:
            if session_activity.end_session(connection, live.session_id, state, reason):
                hold_early_end(connection, live.session_id, screen)

        if row is not None and (row["ended_reason"] or "").startswith(GROUP_FULL):
            return IntakeResult(stored, heard.is_elsewhere, eligible=False, then="full")
        if criterion is None:
            if not lets_in:
                end(SCREENED_OUT, f"eligibility: {', '.join(missed)}")
            elif row is not None and group and give_list and heard.state in session_activity.MAY_FINISH:
                if give_list(connection, row, group):
                    return IntakeResult(stored, heard.is_elsewhere, then="assigned")
                end(SCREENED_OUT, f"{GROUP_FULL}: {', '.join(group.values())}")
                return IntakeResult(stored, heard.is_elsewhere, eligible=False, then="full")
            # a reader who was turned away is not admitted by other answers to the same questions
            return IntakeResult(stored, heard.is_elsewhere, lets_in and heard.state != SCREENED_OUT)
        right = right_answers(questions, body["answers"])
        needed, rounds = criterion["needed"], criterion["rounds"]
        given = records.answers_to(connection, live.session_id, screen)
        is_last = given.index(body["client_uuid"]) + 1 >= rounds
        then: Literal["go_on", "again", "end"] = "go_on"
        reason = f"comprehension of the instructions: {right} right of {needed} needed, after {rounds} rounds"
        if heard.state == FAILED_COMPREHENSION:
            then = "end"
        elif right < needed and not is_last:
            then = "again"
        elif right < needed and criterion["if_failed"] == "end":
            then = "end"
            end(FAILED_COMPREHENSION, reason)
        elif right < needed and stored == "stored":
            records.add_flag(connection, live.session_id, SUSPECT, reason, "server")
        return IntakeResult(stored, heard.is_elsewhere, then=then)

    return store


LARGEST_COPY = 64 * 1024 * 1024
WRAPPING = 3
"""Additional depth of an answer in a copy, compared with a request."""
_SCHEMAS = {"trials": "trial", "events": "event", "answers": "answers"}


@dataclass(frozen=True)
class CopyResult:
    """Result of importing a copy."""

    new: int
    same: int
    refused: int
    trials: int
    reasons: tuple[str, ...]
    session_id: str
    reader: str
    state: str
    departed: Departed | None = None


def read_copy(data: bytes) -> dict[str, Any]:
    """Return a copy of answers; raise an error if the file is too large, or not a copy of answers."""
    if len(data) > LARGEST_COPY:
        raise UserError(
            "the file is larger than any copy of answers",
            mend="Give the JSON file that the participant's page offered.",
        )
    try:
        return _checked(parse(data, DEEPEST + WRAPPING))
    except Problem as problem:
        raise _no_copy(str(problem.body["rule"])) from None


def take_copy(
    store: Store,
    study: str,
    copy: Mapping[str, Any],
    *,
    recruitment: Recruitment | None = None,
    score: ScoreTrial = score_trial,
    clock: Callable[[], datetime] = present,
) -> CopyResult:
    """Store the missing answers in a copy; end the session if that completes it, as its page would.

    A copy is ``{"wrods": 1, "kind": "answers", "study", "session_id", "token", "items": [{kind, body}]}``. Sessions of a study
    that pays by code (``recruitment``) are held if they were too fast.
    """
    given = _checked(copy)
    if given["study"] != study:
        raise UserError(
            f"the answers are of the study {given['study']!r}, not of {study!r}",
            mend="Name the study that they belong to.",
        )
    with store.read() as connection:
        row = records.session(connection, given["session_id"])
    is_here = row is not None and row["plan"] and row["study"] == study
    if row is None or not (is_here and is_token(given["token"], row["token_hash"])):
        raise UserError(
            "the session of these answers is not in this store",
            mend="Check that the study's store is the one that collected them; "
            "the answers of somebody who was withdrawn are not taken.",
            exit_code=1,
        )
    live = live_session(row)

    def hold(connection: Connection, session_id: str, screen: str | None) -> None:
        hold_early_end(connection, session_id, screen, recruitment, clock())

    # all are queued before the first is waited for, so that they share commits
    waiting = [(item["kind"], _queue(store, live, score, hold, item)) for item in given["items"]]
    results = [(kind, _outcome(queued)) for kind, queued in waiting]
    stored = [(kind, result) for kind, result in results if isinstance(result, IntakeResult)]
    refused = [result for _, result in results if isinstance(result, str)]
    return CopyResult(
        new=sum(result.told == "stored" for _, result in stored),
        same=sum(result.told == "same" for _, result in stored),
        refused=len(refused),
        trials=sum(kind == "trials" and result.told == "stored" for kind, result in stored),
        reasons=tuple(dict.fromkeys(refused)),
        session_id=live.session_id,
        reader=str(row["reader"]),
        state=store.write(lambda connection: _complete(connection, live, recruitment, clock())).result(),
        departed=next((result.departed for _, result in stored if result.departed), None),
    )


def _checked(copy: object) -> dict[str, Any]:
    error = best_match(validator("copy").iter_errors(copy))
    if error is not None:
        raise _no_copy(f"{_place(error, 'the file')} is not as the page wrote it"[:200])
    assert isinstance(copy, dict)
    return copy


def _no_copy(why: str) -> UserError:
    return UserError(
        f"this is not a copy of answers ({why})",
        mend="Give the JSON file that the participant's page offered.",
    )


def _queue(
    store: Store, live: LiveSession, score: ScoreTrial, hold: HoldEarlyEnd, item: Mapping[str, Any]
) -> Future[IntakeResult] | str:
    """Queue an answer for the writer, or return why it cannot be stored."""
    kind, body = item["kind"], item["body"]
    error = best_match(validator(_SCHEMAS[kind]).iter_errors(body))
    if error is not None:
        return f"{kind}: {_place(error)} is not accepted"
    try:
        if kind == "trials":
            return store.write(trial_operation(live, score, body))
        return store.write((event_operation if kind == "events" else answers_operation)(live, body, hold))
    except Problem as problem:
        return str(problem)


def _outcome(queued: Future[IntakeResult] | str) -> IntakeResult | str:
    if isinstance(queued, str):
        return queued
    try:
        return queued.result()
    except (records.TrialConflict, records.EventConflict, Problem) as refusal:
        return str(refusal)
    except SessionGone:
        return "the session was withdrawn"
    except TooLate as late:
        return f"answers could be deleted until {late.until}"


def _complete(
    connection: Connection, live: LiveSession, recruitment: Recruitment | None, now: datetime
) -> str:
    row = records.session(connection, live.session_id)
    state = "withdrawn" if row is None else str(row["state"])
    done = records.done_keys(connection, live.session_id)
    answered = {index for index, _ in done}
    may_finish = state in session_activity.MAY_FINISH and session_activity.has_all(live.trials, answered)
    if row is None or live.awaits_group or not may_finish:
        return state
    held = hold_if_doubtful(connection, row, answered, recruitment, now)
    session_activity.complete_session(connection, live.session_id, held)
    return "finished"
