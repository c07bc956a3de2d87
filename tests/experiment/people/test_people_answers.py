from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from experiment.store import queries as q
from experiment.store.tables import events, sessions, trials
from tests.experiment.people.conftest import PIN


def rows(site: Any) -> list[dict[str, Any]]:
    with site.store.read() as connection:
        return list(q.trials_with_scores(connection))


def count(site: Any, table: Any) -> int:
    with site.store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def kinds_of_events(site: Any) -> list[str]:
    with site.store.read() as connection:
        return [event["kind"] for event in q.all_events(connection)]


def test_a_session_runs_from_start_to_completion_code(site: Any) -> None:
    person = site.begin(participant="17")
    assert person.status == 201
    assert person.event("consent", person.agreement).status == 201
    for trial in person.trials():
        assert person.answer(trial["trial_index"]).status == 201
    told = person.finish(len(person.trials()))
    assert told.status == 200
    assert len(told.body["completion_code"]) == 8
    assert person.finish(len(person.trials())).body == told.body
    with site.store.read() as connection:
        session = q.sessions_overview(connection)[0]
    assert (session["state"], session["reader"], session["participant_id"]) == ("finished", "17", "17")
    assert session["n_trials"] == session["planned_trials"] == 5


def test_posting_a_trial_twice_stores_it_once(site: Any) -> None:
    person = site.begin()
    assert [person.answer(1).status for _ in range(3)] == [201, 200, 200]
    assert len(rows(site)) == 1
    with site.store.read() as connection:
        assert len(list(q.all_scores(connection))) == 1


@pytest.mark.parametrize(
    "other", [{"response_raw": "zzz"}, {"rt": 1.0}, {"client_uuid": str(uuid.UUID(int=1))}]
)
def test_another_payload_for_a_stored_trial_is_refused_and_logged(site: Any, other: dict[str, Any]) -> None:
    person = site.begin()
    person.answer(1)
    told = person.answer(1, **other)
    assert told.status == 409
    assert set(told.body) >= {"error", "rule", "mend"}
    assert [row["response_raw"] for row in rows(site)] == [person.payload(1)["response_raw"]]
    assert kinds_of_events(site) == ["consent", "trial_conflict"]


def test_what_was_shown_comes_from_the_plan_and_not_from_the_browser(site: Any) -> None:
    person = site.begin()
    for name in ("item_id", "condition", "answer", "correct", "is_practice"):
        assert person.answer(1, **{name: "forged"}).status == 400
    for trial in person.trials():
        person.answer(trial["trial_index"])
    with site.store.read() as connection:
        plan = q.session(connection, person.session_id)["plan"]  # type: ignore[index]
    planned = [trial for screen in plan["screens"] for trial in screen.get("trials", ())]
    stored = rows(site)
    for row, trial in zip(stored, planned, strict=True):
        for name in ("item_id", "condition", "shown", "answer", "is_practice", "block", "choice_order"):
            assert row[name] == trial[name]
        assert row["correct"] == (row["response"] == trial["answer"])
        assert row["response_status"] == "valid"
    assert {row["is_practice"] for row in stored} == {True, False}
    assert stored[2]["rt"] == 814.3


def flags_of(site: Any) -> list[tuple[int, int, str, str]]:
    with site.store.read() as connection:
        return [
            (f["trial_index"], f["attempt"], f["kind"], f["made_by"]) for f in q.all_flags(connection, None)
        ]


def test_a_time_that_its_own_stamps_deny_is_computed_from_them_and_flagged(site: Any) -> None:
    person = site.begin()
    assert person.answer(1).status == 201
    assert person.answer(2, rt=9.5).status == 201
    assert person.answer(2, rt=9.5).status == 200
    told = [(row["trial_index"], row["rt"], row["onset_ts"], row["response_ts"]) for row in rows(site)]
    assert told == [(1, 813.3, 10234.1, 11047.4), (2, pytest.approx(814.3), 10234.1, 11048.4)]
    assert flags_of(site) == [(2, 1, "suspect", "server")]


@pytest.mark.parametrize(
    "times",
    [
        {"rt": -40.0, "response_ts": 10194.1},
        {"rt": -40.0, "onset_ts": None, "response_ts": None},
        {"reading_time": -3.0},
    ],
)
def test_a_negative_time_is_kept_and_flagged(site: Any, times: dict[str, Any]) -> None:
    person = site.begin()
    assert person.answer(3, **times).status == 201
    (row,) = rows(site)
    assert {name: row[name] for name in times} == times
    assert flags_of(site) == [(3, 1, "suspect", "server")]


def test_an_answer_first_given_after_a_reload_is_the_trial_s_only_row(site: Any) -> None:
    person = site.begin()
    assert person.answer(1, attempt=2).status == 201
    assert [(row["trial_index"], row["attempt"]) for row in rows(site)] == [(1, 2)]
    assert flags_of(site) == []


def test_a_timeout_has_no_verdict_on_correctness(site: Any) -> None:
    person = site.begin()
    person.answer(1, response_raw=None, timed_out=True, rt=None)
    (row,) = rows(site)
    assert (row["response_status"], row["correct"], row["timed_out"]) == ("timeout", None, True)


def test_test_items_reach_the_browser_without_their_answers(site: Any) -> None:
    person = site.begin()
    again = person.caller.get(person.base, **person.auth).body["plan"]
    for plan in (person.plan, again):
        for screen in plan["screens"]:
            for trial in screen.get("trials", ()):
                told = {"answer", "intact", "condition", "item_id", "choice_order"} & set(trial)
                assert told == ({"answer"} if trial["is_practice"] else set())
                assert ("responses" in trial["steps"][-1]) == trial["is_practice"]


def test_models_labels_govern_no_list_of_people(make_study: Any, serve_study: Any) -> None:
    study = make_study(
        ("seed: 7\n", "seed: 7\nmodels: {label_maps: fixed, who: {g: {use: 'baseline:random'}}}\n"),
        ("keys: [f, j], answer_by: text", "keys: {A: f, B: j}, labels: balanced"),
    )
    site = serve_study(study)
    assert site.service.list_ids == (1, 2, 3, 4)
    for _ in range(4):
        site.begin()
    with site.store.read() as connection:
        plans = [q.session(connection, s["session_id"])["plan"] for s in q.sessions_overview(connection)]  # type: ignore[index]
    assert sorted(plan["label_map"]["A"] for plan in plans) == ["A", "A", "B", "B"]


def test_a_trial_waits_until_its_reader_has_agreed(site: Any) -> None:
    person = site.begin()
    send = f"{person.base}/trials"
    told = person.caller.post(send, person.payload(1), **person.auth)
    assert told.status == 425 and "consent" in told.body["rule"], "the page sends it again"
    assert rows(site) == []
    assert person.event("consent", person.agreement).status == 201
    assert person.caller.post(send, person.payload(1), **person.auth).status == 201


def test_a_trial_that_is_not_planned_is_refused(site: Any) -> None:
    person = site.begin()
    payload = person.payload(1) | {"trial_index": 5}
    assert person.caller.post(f"{person.base}/trials", payload, **person.auth).status == 400
    assert rows(site) == []


def test_the_code_is_given_only_when_every_answer_is_here(site: Any) -> None:
    person = site.begin()
    assert person.finish(0).status == 409
    for index in range(4):
        person.answer(index)
    told = person.finish(5)
    assert (told.status, told.body["stored"]) == (409, 4)
    assert person.finish(4).status == 409
    person.answer(4)
    assert person.finish(5).status == 200


def test_nothing_new_is_stored_after_the_end(site: Any) -> None:
    person = site.begin()
    for index in range(5):
        person.answer(index)
    person.finish(5)
    assert person.answer(4).status == 200
    assert person.answer(4, attempt=2, client_uuid=str(uuid.uuid4())).status == 409
    assert len(rows(site)) == 5


def test_practice_can_be_repeated(site: Any) -> None:
    person = site.begin()
    person.answer(0)
    assert person.answer(0, attempt=2, client_uuid=str(uuid.uuid4())).status == 201
    for index in range(1, 5):
        person.answer(index)
    assert person.finish(6).status == 200


def test_asking_again_under_the_same_client_uuid_gives_the_same_session(site: Any) -> None:
    token = str(uuid.uuid4())
    first, second = site.begin(client_uuid=token), site.begin(client_uuid=token)
    assert (first.status, second.status) == (201, 200)
    assert (first.session_id, first.token, first.plan) == (second.session_id, second.token, second.plan)
    assert count(site, sessions) == 1


def test_a_participant_goes_on_where_they_left_off(site: Any) -> None:
    first = site.begin(participant="17")
    first.answer(0)
    first.answer(1)
    again = site.begin(participant="17", pin=PIN)
    assert again.session_id == first.session_id
    assert again.done == [[0, 1], [1, 1]]
    assert again.plan == first.plan
    assert kinds_of_events(site) == ["consent", "resumed"]
    assert site.begin(participant="18").session_id != first.session_id


def test_a_participant_takes_part_once(site: Any) -> None:
    person = site.begin(participant="17")
    for index in range(5):
        person.answer(index)
    person.finish(5)
    told = site.opening(participant="17", pin=PIN)
    assert told.status == 409
    assert "already" in told.body["error"]
    assert site.opening(participant="18").status == 201


def test_who_failed_practice_cannot_begin_again_and_who_declined_can(site: Any) -> None:
    failed = site.begin(participant="1")
    failed.event("practice", {"then": "end"})
    assert site.opening(participant="1").status == 403
    declined = site.begin(participant="2")
    declined.event("consent", {"agreed": False})
    assert declined.finish(0).status == 404, "nothing is left of the session"
    assert site.begin(participant="2").session_id != declined.session_id
    with site.store.read() as connection:
        states = {row["participant_id"]: row["state"] for row in reversed(q.sessions_overview(connection))}
    assert states["1"] == "failed_practice"


def test_simulated_readers_are_marked_and_numbered_apart(site: Any) -> None:
    site.begin(**{"simulated": True, "pass": site.make_pass("simulated")})
    site.begin()
    with site.store.read() as connection:
        told = {(row["reader_kind"], row["reader"]) for row in q.sessions_overview(connection)}
    assert told == {("simulated", "S001"), ("human", "P001")}


def test_events_are_noted_once(site: Any) -> None:
    person, token = site.begin(), str(uuid.uuid4())
    told = [person.event("blur", {"n": 1}, token).status for _ in range(2)]
    assert told == [201, 200]
    assert person.event("blur", {"n": 2}, token).status == 409
    assert count(site, events) == 1


def test_a_word_of_a_text_keeps_what_was_shown_and_intact(make_study: Any, serve_study: Any) -> None:
    study = make_study(
        (
            "        - choose: {show: word,",
            "        - read: {show: word, as: whole}\n        - choose: {show: word,",
        )
    )
    site = serve_study(study)
    person = site.begin()
    given = [{"region": 0, "rt": 312.25, "onset_ts": 100.5, "line": 0}]
    assert person.answer(1, regions=[{"region": 1, "rt": 1}]).status == 400
    assert person.answer(1, regions=given * 2).status == 400
    assert person.answer(1, regions=given).status == 201
    with site.store.read() as connection:
        (region,) = list(q.all_regions(connection))
        (trial,) = list(q.trials_with_scores(connection))
    assert region["shown"] == trial["shown"]["word"]
    assert region["intact"] == trial["answer"]
    assert region["is_changed"] == (trial["condition"]["position"] != "intact")
    assert (region["rt"], region["line"]) == (312.25, 0)


def test_a_full_disk_asks_for_patience_and_later_succeeds(site: Any) -> None:
    person = site.begin()

    def limit(pages: int) -> Callable[[Any], None]:
        return lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}").close()

    used = site.store.write(lambda c: int(c.exec_driver_sql("PRAGMA page_count").scalar_one())).result()
    site.store.write(limit(used)).result()
    long = {"response_raw": "x" * 19_000}
    told = [person.answer(index, **long) for index in range(5)]
    refused = [answer for answer in told if answer.status == 503]
    assert refused and {answer.status for answer in told} <= {201, 503}
    assert refused[0].headers["Retry-After"] == "2"
    assert "full" in refused[0].body["error"]
    site.store.write(limit(1_000_000)).result()
    assert {person.answer(index, **long).status for index in range(5)} <= {200, 201}
    assert len(rows(site)) == 5


def test_a_slow_disk_asks_for_patience_and_the_retry_is_the_same_trial(site: Any) -> None:
    person = site.begin()
    patient = site.app.extensions["wrods"]
    hasty = replace(patient, settings=replace(patient.settings, patience_s=0.05))
    go_on = threading.Event()
    site.store.write(lambda connection: go_on.wait(timeout=60))
    site.app.extensions["wrods"] = hasty
    assert person.answer(1).status == 503
    site.app.extensions["wrods"] = patient
    go_on.set()
    site.store.write(lambda connection: None).result()
    assert person.answer(1).status == 200
    assert len(rows(site)) == 1


def test_a_withdrawn_session_answers_like_an_unknown_one(site: Any) -> None:
    person = site.begin()
    assert person.event("blur").status == 201
    site.store.write(lambda connection: connection.execute(sessions.delete()) and None).result()
    assert person.event("blur").status == 404
    assert count(site, trials) == 0
