"""Takes what a session's page sends, whether over the wire or from a downloaded copy: the operations that store it.

Each is a function of the writer's connection, safe to repeat: the same again is stored once and answered alike. A trial
or event is stored whichever tab sends it and however late: only what is shown next depends on who holds the session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection

from experiment.people.departures import Departed, depart, leave_unagreed, wish_of
from experiment.people.live import LiveSession
from experiment.people.problems import Problem
from experiment.people.recruitment.codes import DEVICE
from experiment.people.service import ScoreTrial
from experiment.people.times import SUSPECT, response_time
from experiment.procedure.feedback import Verdict, verdict_of
from experiment.procedure.questions import is_eligible, right_answers
from experiment.store import attendance, chain, queries, records
from experiment.store.declining import has_agreed
from experiment.trials import recorded_fields

MEASURED = ("client_uuid", "trial_index", "attempt", *recorded_fields(), "plugin_version", "created_at")
SCREENED_OUT = "screened_out"
FAILED_COMPREHENSION = "failed_comprehension"
STOPPED = "stopped"
OF_THE_SERVER = frozenset(
    {"answers", "resumed", "ended_at_station", "ended_by_experimenter", "trial_conflict"}
)
"""Kinds of events that the server records itself."""


class SessionEnded(Exception):
    """A new trial came after the completion code was handed out."""


class NotAgreed(Exception):
    """A trial or answers came before their reader's agreement to take part."""


@dataclass(frozen=True)
class Taken:
    """What became of something sent."""

    told: Literal["stored", "same", "erased"]
    is_elsewhere: bool = False
    eligible: bool = True
    feedback: Verdict | None = None
    comprehension: Comprehension | None = None
    departed: Departed | None = None


@dataclass(frozen=True)
class Comprehension:
    """What came of questions about instructions."""

    right: int
    needed: int
    then: Literal["go_on", "again", "end"]


Take = Callable[[Connection], Taken]
KeepNetwork = Callable[[Connection, str], None]
"""Keeps what a study keeps of a session's network, once its reader has agreed."""
HoldEarlyEnd = Callable[[Connection, str, str | None], None]
"""Holds a session for review whose early end is doubtful; gets the screen whose answers ended it, None for practice."""


def trial(live: LiveSession, score: ScoreTrial, body: Mapping[str, Any], lease: str | None = None) -> Take:
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
    verdict = score(planned, body["response_raw"], timed_out=body["timed_out"])
    feedback = verdict_of(
        live.feedback.get(planned["block"]), planned, correct=verdict.correct, timed_out=body["timed_out"]
    )
    row = records.planned_columns(planned)
    row |= {name: body.get(name) for name in MEASURED}
    row["rt"], doubt = response_time(body)
    row |= {"session_id": live.session_id, "payload_hash": records.payload_hash(body)}

    def store(connection: Connection) -> Taken:
        # the session's row comes before its chain everywhere, so that no two operations wait for each other
        heard = attendance.hear(connection, live.session_id, lease)
        with chain.gathering(connection, live.session_id):
            return store_all(connection, heard)

    def store_all(connection: Connection, heard: attendance.Heard) -> Taken:
        _require_agreement(connection, live)
        told = records.store_trial(connection, row, parts, verdict)
        if told == "same":
            return Taken(told, heard.is_elsewhere, feedback=feedback)
        if heard.state == "finished":
            raise SessionEnded
        if doubt is not None:
            place = {"trial_index": row["trial_index"], "attempt": row["attempt"]}
            records.add_flag(connection, live.session_id, SUSPECT, doubt, "server", **place)
        if announced is not None:
            index, attempt = announced
            detail = {"trial_index": index, "attempt": attempt}
            records.add_event(connection, live.session_id, attendance.SHOWN, detail)
        return Taken(told, heard.is_elsewhere, feedback=feedback)

    return store


def _require_agreement(connection: Connection, live: LiveSession, screen: str | None = None) -> None:
    if not live.agreed.is_set() and screen not in live.above_consent:
        if not has_agreed(connection, live.session_id):
            raise NotAgreed
        live.agreed.set()


def _regions(planned: Mapping[str, Any], given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the words that the plan showed beside the times that the browser measured."""
    if not given:
        return []
    read = next((step for step in planned["steps"] if step["step"] == "read"), planned["steps"][-1])
    shown = (read["text"] or "").split()
    field = next((name for name, text in planned["shown"].items() if text == read["text"]), None)
    intact = str(planned.get("intact", {}).get(field, "")).split()
    places = [part["region"] for part in given]
    if max(places) >= len(shown) or len(set(places)) < len(places):
        raise Problem(400, "a region is not of this text", rule="regions count the words shown, each once")
    rows = []
    for part in given:
        place = part["region"]
        form = intact[place] if len(intact) == len(shown) else None
        changed = None if form is None else form != shown[place]
        rows.append(part | {"shown": shown[place], "intact": form, "is_changed": changed})
    return rows


def event(
    live: LiveSession,
    body: Mapping[str, Any],
    hold_early_end: HoldEarlyEnd,
    lease: str | None = None,
    keep_network: KeepNetwork = lambda _, __: None,
) -> Take:
    """Return the operation that stores something that happened beside the trials; some events end or erase a session."""
    kind, detail = body["kind"], body.get("detail") or {}
    if kind in OF_THE_SERVER:
        raise Problem(
            400, f"a page does not send events of kind {kind!r}", rule="the server records these itself"
        )
    wish, ending = wish_of(kind, detail), _ending(kind, detail)
    if kind == "consent" and wish is None:
        _check_agreement(live, detail)
    if ending is not None and kind != "stop" and kind not in live.sends_away:
        raise Problem(
            400, f"this study sends nobody away for {kind}", rule="an end is one that the session's plan has"
        )

    def store(connection: Connection) -> Taken:
        if wish is not None:
            return Taken("erased", departed=depart(connection, live.session_id, wish, live.withdraw_until))
        heard = attendance.hear(connection, live.session_id, lease)
        told = records.add_event(
            connection, live.session_id, kind, detail, client_uuid=body["client_uuid"], at=body.get("at")
        )
        if ending is not None and told == "stored":
            has_ended = attendance.end_session(connection, live.session_id, *ending)
            if has_ended and kind == "practice":
                hold_early_end(connection, live.session_id, None)
            # whoever was screened out is still told how to return the place, and is erased within a day
            left = leave_unagreed(connection, live.session_id) if kind == "stop" else None
            if left is not None:
                return Taken("erased", departed=left)
        if kind == "consent" and told == "stored":
            keep_network(connection, live.session_id)
        return Taken(told, heard.is_elsewhere)

    return store


def _check_agreement(live: LiveSession, detail: Mapping[str, Any]) -> None:
    """Refuse an agreement that does not say to which text, where its reader was shown one."""
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


def _ending(kind: str, detail: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the state in which an event leaves its session for good, with the reason, or None."""
    if kind == "stop" and detail.get("then") == "keep":
        return STOPPED, "by the participant"
    if kind == "practice" and detail.get("then") == "end":
        return "failed_practice", f"practice: {detail.get('right')} right of {detail.get('needed')} needed"
    if kind == "device" and detail.get("passed") is False:
        missed = detail.get("missed")
        named = ", ".join(str(one) for one in missed)[:200] if isinstance(missed, list) else ""
        return SCREENED_OUT, f"{DEVICE}{named}"
    return None


def answers(
    live: LiveSession, body: Mapping[str, Any], hold_early_end: HoldEarlyEnd, lease: str | None = None
) -> Take:
    """Return the operation that stores a screen's answers, and ends the session where they do not let its reader in."""
    screen = body["screen"]
    questions = live.questions.get(screen)
    if questions is None:
        raise Problem(400, f"there is no screen {screen!r}", rule="screen names one of the plan's")
    unknown = sorted(body["answers"].keys() - {question["name"] for question in questions})
    if unknown:
        raise Problem(
            400,
            f"the screen {screen!r} asks no question {unknown[0]!r}",
            rule="answers are to the screen's questions",
        )
    criterion = live.comprehension.get(screen)
    if criterion is not None:
        return _about_instructions(live, questions, criterion, body, hold_early_end, lease)
    lets_in, missed = is_eligible(list(questions), body["answers"])
    detail = {"screen": screen, "answers": dict(body["answers"])}

    def store(connection: Connection) -> Taken:
        heard = attendance.hear(connection, live.session_id, lease)
        _require_agreement(connection, live, screen)
        told = records.add_event(
            connection, live.session_id, "answers", detail, client_uuid=body["client_uuid"]
        )
        reason = f"eligibility: {', '.join(missed)}"
        if not lets_in and attendance.end_session(connection, live.session_id, SCREENED_OUT, reason):
            hold_early_end(connection, live.session_id, screen)
        # who was turned away is not let in by other answers to the same questions
        return Taken(told, heard.is_elsewhere, lets_in and heard.state != SCREENED_OUT)

    return store


def _about_instructions(
    live: LiveSession,
    questions: Sequence[dict[str, Any]],
    criterion: Mapping[str, Any],
    body: Mapping[str, Any],
    hold_early_end: HoldEarlyEnd,
    lease: str | None,
) -> Take:
    """Return the operation that stores answers about instructions and says how it goes on; the last round may end it all."""
    screen = body["screen"]
    right, needed, rounds = (
        right_answers(questions, body["answers"]),
        criterion["needed"],
        criterion["rounds"],
    )
    detail = {"screen": screen, "answers": dict(body["answers"])}

    def store(connection: Connection) -> Taken:
        heard = attendance.hear(connection, live.session_id, lease)
        _require_agreement(connection, live, screen)
        told = records.add_event(
            connection, live.session_id, "answers", detail, client_uuid=body["client_uuid"]
        )
        given = queries.answers_to(connection, live.session_id, screen)
        this_round = given.index(body["client_uuid"]) + 1
        then: Literal["go_on", "again", "end"] = "go_on"
        if right < needed and this_round < rounds:
            then = "again"
        elif right < needed and criterion["if_failed"] == "end":
            then = "end"
        reason = f"comprehension of the instructions: {right} right of {needed} needed, after {rounds} rounds"
        if heard.state == FAILED_COMPREHENSION:
            then = "end"
        elif then == "end":
            if attendance.end_session(connection, live.session_id, FAILED_COMPREHENSION, reason):
                hold_early_end(connection, live.session_id, screen)
        elif right < needed and then == "go_on" and told == "stored":
            records.add_flag(connection, live.session_id, SUSPECT, reason, "server")
        return Taken(told, heard.is_elsewhere, comprehension=Comprehension(right, needed, then))

    return store
