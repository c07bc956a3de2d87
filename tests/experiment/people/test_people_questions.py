"""Questions that decide who takes part: judged by the server, which alone knows what is wanted."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest

from experiment.people.response_intake import Problem, answers_operation
from experiment.people.service import live_session
from experiment.store.tables import flags
from tests.experiment.people.conftest import PIN, settings_of

ELIGIBLE = settings_of("eligible: {first_language: de, age: [18, 40], device: computer}")
YES = {"first_language": "de", "age": 23}


@pytest.fixture
def site(make_study: Any, serve_study: Any) -> Any:
    return serve_study(make_study(ELIGIBLE))


def test_answers_of_those_who_agreed_let_them_go_on_and_are_stored_once(site):
    person, token = site.begin(), str(uuid.uuid4())
    body = {"client_uuid": token, "screen": "eligibility", "answers": YES}
    told = person.post("answers", body)
    assert told.status == 425 and "consent" in told.body["rule"], "the page sends them again"
    assert site.events == []
    told = [person.tell("eligibility", YES, token) for _ in range(2)]
    assert [(one.status, one.body["eligible"]) for one in told] == [(201, True), (200, True)]
    (event,) = (event for event in site.events if event["kind"] == "answers")
    assert event["detail"] == {"screen": "eligibility", "answers": YES}
    assert site.session(person)["state"] == "started"
    assert person.tell("eligibility", YES | {"age": 24}, token).status == 409, "the same token, other answers"
    for screen, odd in (
        ("nowhere", {}), ("eligibility", {"age": {"deep": 1}}), ("eligibility", {"age": 10**400}),
        ("eligibility", {"age": [10**16]}), ("eligibility", YES | {"a column of everybody's export": 1}),
        ("eligibility", {"age": "x" * 20_001}), ("eligibility", {str(i): 1 for i in range(201)}), ("eligibility", None),
    ):  # fmt: skip
        assert person.tell(screen, odd).status == 400, odd


@pytest.mark.parametrize(
    ("answers", "missed"),
    [
        ({"first_language": "de", "age": 41}, "age"),
        ({"first_language": "fr", "age": 20}, "first_language"),
        ({"first_language": ["fr"], "age": "old"}, "first_language, age"),
        ({}, "first_language, age"),
    ],
)
def test_answers_that_do_not_fit_end_the_session_with_the_reason(site, answers, missed):
    person, token = site.begin(participant="1"), str(uuid.uuid4())
    shown = [screen for screen in person.plan["screens"] if screen["kind"] == "questions"]
    assert shown and "accept" not in json.dumps(shown), "what is wanted never leaves the server"
    for _ in range(2):
        told = person.tell("eligibility", answers, token)
        assert (told.body["eligible"], told.body["ended"]) == (False, "screened_out")
    assert told.status == 200 and "first_language" not in told.text and "age" not in told.text
    row = site.session(person)
    assert (row["state"], row["ended_reason"]) == ("screened_out", f"eligibility: {missed}")
    assert person.tell("eligibility", YES).body["eligible"] is False, "no second try with other answers"
    assert site.opening(participant="1").status == 403


@pytest.mark.parametrize("criterion", [None, {"needed": 0, "rounds": 1, "if_failed": "end"}])
def test_questions_above_the_consent_of_an_earlier_version_are_answered_before_it(site, criterion):
    person = site.begin()

    def questions(name: str) -> dict[str, Any]:
        asked = {"kind": "questions", "name": name, "questions": []}
        return asked if criterion is None else asked | {"comprehension": criterion}

    plan = {"screens": [questions("early"), {"kind": "consent", "name": "consent"}, questions("late")]}
    row = {"study": "small", "token_hash": "h", "plan": plan, "reader_kind": "human"}
    live = live_session(row | {"session_id": person.session_id})

    def give(screen: str) -> str:
        body = {"client_uuid": str(uuid.uuid4()), "screen": screen, "answers": {}}
        return str(site.do(answers_operation(live, body, lambda *_: None)).told)

    assert give("early") == "stored"
    with pytest.raises(Problem, match="not agreed"):
        give("late")
    person.agree()
    assert give("late") == "stored"


def test_a_device_that_does_not_fit_ends_the_session(site):
    person = site.begin()
    detail = {"passed": False, "measured": {"width": 400}, "missed": ["width", "device"]}
    assert person.event("device", detail).status == 201
    row = site.session(person)
    assert (row["state"], row["ended_reason"]) == ("screened_out", "device: width, device")
    told = person.leave()
    assert (told.status, told.body["state"], told.body["completion_code"]) == (200, "screened_out", None)


ACCURACY = ("break_every: 2", "break_every: 2\n      feedback: accuracy\n      feedback_for: 800 ms")
QUESTIONS = (
    "  - instructions: instructions.md\n",
    """\
  - instructions:
      pages: instructions.md
      questions:
        keys: {ask: Which key means the left word?, type: choice, options: [f, j], accept: f}
        hands: {ask: Which fingers do you use?, type: several, options: [index, ring, thumb], accept: [index, thumb]}
        pace: {ask: For how many seconds do you rest?, type: number, accept: 5 to 10}
      pass: 60%
      rounds: 2
""",
)
RIGHT = {"keys": "f", "hands": ["thumb", "index"], "pace": 7.0}
WRONG = {"keys": "j", "hands": ["index"], "pace": 7}


def test_whether_an_answer_was_right_is_told_only_behind_the_stored_answer(make_study, serve_study):
    site = serve_study(make_study(ACCURACY))
    person = site.begin()
    tested = [trial for trial in person.trials() if not trial["is_practice"]]
    assert all(not {"answer", "accepted", "item_id"} & set(trial) for trial in tested)
    assert all("responses" not in step for trial in tested for step in trial["steps"])
    for trial in tested:
        index, labels = trial["trial_index"], trial["steps"][-1]["labels"]
        told = person.answer(index, response_raw=labels[0])
        assert told.body["feedback"] in ("correct", "incorrect")
        assert person.answer(index, response_raw=labels[0]).body["feedback"] == told.body["feedback"]
        assert "feedback" not in person.answer(index, response_raw=labels[1]).body  # too late to try another
    assert {person.answer(row["trial_index"], response_raw=None).status for row in site.trials} == {409}


def test_an_answer_too_late_is_not_right_or_too_slow_as_the_block_says(make_study, serve_study):
    for mode, told in (("accuracy", "incorrect"), ("accuracy_and_late", "late"), ("late", "late")):
        limited = ("answer_by: text", "answer_by: text, time_limit: 5 s")
        study = make_study((ACCURACY[0], f"break_every: 2\n      feedback: {mode}"), limited, name=mode)
        person = serve_study(study).begin()
        assert person.answer(1, response_raw=None, timed_out=True).body["feedback"] == told
        ahead = person.answer(2).body.get("feedback")
        assert (ahead is None) is (mode == "late")


def test_practice_and_blocks_without_feedback_are_told_nothing_by_the_server(make_study, serve_study):
    person = serve_study(make_study(ACCURACY)).begin()
    assert "feedback" not in person.answer(0).body  # the page judges practice itself
    silent = serve_study(make_study(name="silent")).begin()
    assert "feedback" not in silent.answer(1).body


def understood(person: Any, given: dict[str, Any], token: str | None = None) -> dict[str, Any]:
    told = person.tell("comprehension-1", given, token)
    assert told.status in (200, 201), told.text
    return dict(told.body)


def test_instructions_are_understood_where_enough_answers_are_right(make_study, serve_study):
    site = serve_study(make_study(QUESTIONS))
    person = site.begin()
    (screen,) = (one for one in person.plan["screens"] if one.get("comprehension"))
    assert screen["comprehension"] == {"needed": 2, "rounds": 2, "if_failed": "end"}
    assert all("accept" not in question for question in screen["questions"])
    token = str(uuid.uuid4())
    assert [understood(person, WRONG, token)["then"] for _ in range(3)] == ["again"] * 3
    assert understood(person, RIGHT)["then"] == "go_on"
    assert site.session(person)["state"] == "started"


def test_who_does_not_understand_the_instructions_ends_there_whatever_is_answered_then(
    make_study, serve_study
):
    site = serve_study(make_study(QUESTIONS))
    person = site.begin(participant="9")
    assert understood(person, WRONG)["then"] == "again"
    last = understood(person, WRONG)
    assert (last["then"], last["ended"]) == ("end", "failed_comprehension")
    assert understood(person, RIGHT)["then"] == "end"
    session = site.session(person)
    assert session["state"] == "failed_comprehension"
    assert re.findall(r"\d+", session["ended_reason"]) == ["1", "2", "2"]
    refused = site.opening(participant="9", pin=PIN)
    assert (refused.status, refused.body["state"]) == (409, "failed_comprehension")


def test_a_study_may_let_them_go_on_and_flags_the_session(make_study, serve_study):
    lenient = (QUESTIONS[0], QUESTIONS[1].replace("rounds: 2", "rounds: 1\n      if_failed: go_on"))
    site = serve_study(make_study(lenient))
    person = site.begin()
    token = str(uuid.uuid4())
    assert [understood(person, WRONG, token)["then"] for _ in range(2)] == ["go_on"] * 2
    (flag,) = site.rows(flags)
    assert (flag.kind, flag.trial_index) == ("suspect", None)
    (stored,) = (event["detail"] for event in site.events if event["kind"] == "answers")
    assert stored == {"screen": "comprehension-1", "answers": WRONG}
