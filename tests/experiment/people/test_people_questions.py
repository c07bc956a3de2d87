"""Questions that decide who takes part: judged by the server, which alone knows what is wanted."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from experiment.people.response_intake import NotAgreed, answers_operation
from experiment.people.session_cache import live_session
from experiment.store import queries as q

MATERIALS = "materials: {words: words.txt}\n"
ELIGIBLE = (
    MATERIALS,
    f"{MATERIALS}participants: {{eligible: {{first_language: de, age: [18, 40], device: computer}}}}\n",
)
YES = {"first_language": "de", "age": 23}


@pytest.fixture
def site(make_study: Any, serve_study: Any) -> Any:
    return serve_study(make_study(ELIGIBLE))


def tell(person: Any, answers: dict[str, Any], token: str | None = None, screen: str = "eligibility") -> Any:
    person.agree()
    body = {"client_uuid": token or str(uuid.uuid4()), "screen": screen, "answers": answers}
    return person.caller.post(f"{person.base}/answers", body, **person.auth)


def session(site: Any, person: Any) -> dict[str, Any]:
    with site.store.read() as connection:
        found = q.session(connection, person.session_id)
    assert found is not None
    return found


def test_answers_that_fit_let_a_person_go_on_and_are_stored_once(site):
    person = site.begin()
    token = str(uuid.uuid4())
    told = [tell(person, YES, token) for _ in range(2)]
    assert [(one.status, one.body["eligible"]) for one in told] == [(201, True), (200, True)]
    with site.store.read() as connection:
        (event,) = (event for event in q.all_events(connection) if event["kind"] == "answers")
    assert (event["kind"], event["detail"]) == ("answers", {"screen": "eligibility", "answers": YES})
    assert session(site, person)["state"] == "started"
    assert tell(person, YES | {"age": 24}, token).status == 409, "the same token with other answers"


def test_answers_that_do_not_fit_end_the_session_with_the_reason(site):
    for number, (answers, missed) in enumerate(
        [
            ({"first_language": "de", "age": 41}, "age"),
            ({"first_language": "fr", "age": 20}, "first_language"),
            ({"first_language": ["fr"], "age": "old"}, "first_language, age"),
            ({}, "first_language, age"),
        ]
    ):
        person = site.begin(participant=str(number))
        shown = [screen for screen in person.plan["screens"] if screen["kind"] == "questions"]
        assert shown and "accept" not in json.dumps(shown), "what is wanted never leaves the server"
        token = str(uuid.uuid4())
        for _ in range(2):
            told = tell(person, answers, token)
            assert (told.body["eligible"], told.body["ended"]) == (False, "screened_out")
        assert told.status == 200 and "first_language" not in told.text and "age" not in told.text
        row = session(site, person)
        assert (row["state"], row["ended_reason"]) == ("screened_out", f"eligibility: {missed}")
        assert tell(person, YES).body["eligible"] is False, "no second try with other answers"
        assert site.opening(participant=str(number)).status == 403


def test_answers_wait_until_their_reader_has_agreed(site):
    person = site.begin()
    body = {"client_uuid": str(uuid.uuid4()), "screen": "eligibility", "answers": YES}
    told = person.caller.post(f"{person.base}/answers", body, **person.auth)
    assert told.status == 425 and "consent" in told.body["rule"], "the page sends them again"
    with site.store.read() as connection:
        assert list(q.all_events(connection)) == []
    person.agree()
    assert person.caller.post(f"{person.base}/answers", body, **person.auth).status == 201


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
        return str(site.store.write(answers_operation(live, body, lambda *_: None)).result().told)

    assert give("early") == "stored"
    with pytest.raises(NotAgreed):
        give("late")
    person.agree()
    assert give("late") == "stored"


def test_odd_answers_are_refused(site):
    person = site.begin()
    for body in (
        {"screen": "nowhere", "answers": {}},
        {"screen": "eligibility", "answers": {"age": {"deep": 1}}},
        {"screen": "eligibility", "answers": {"age": 10**400}},
        {"screen": "eligibility", "answers": {"age": [10**16]}},
        {"screen": "eligibility", "answers": YES | {"a column of everybody's export": 1}},
        {"screen": "eligibility", "answers": {"age": "x" * 20_001}},
        {"screen": "eligibility", "answers": {str(i): 1 for i in range(201)}},
        {"screen": "eligibility"},
    ):
        given = {"client_uuid": str(uuid.uuid4())} | body
        assert person.caller.post(f"{person.base}/answers", given, **person.auth).status == 400, body


def test_a_device_that_does_not_fit_ends_the_session(site):
    person = site.begin()
    detail = {"passed": False, "measured": {"width": 400}, "missed": ["width", "device"]}
    assert person.event("device", detail).status == 201
    row = session(site, person)
    assert (row["state"], row["ended_reason"]) == ("screened_out", "device: width, device")
    told = person.caller.post(f"{person.base}/finish", {"trials": 0, "completed": False}, **person.auth)
    assert (told.status, told.body["state"], told.body["completion_code"]) == (200, "screened_out", None)
