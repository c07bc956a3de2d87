from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from experiment.integrity.withdrawal import remembered
from experiment.people.response_intake import read_copy, take_copy
from experiment.store import records
from experiment.store.backups import FOLDER, back_up
from experiment.store.tables import audit, scores
from stimuli.errors import UserError
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import PIN


def test_a_session_runs_from_start_to_completion_code_whatever_is_sent_twice_or_too_late(site):
    person = site.begin(participant="17")
    assert person.status == 201 and person.event("consent", person.agreement).status == 201
    beyond = person.payload(1) | {"trial_index": 5}
    assert person.post("trials", beyond).status == 400, "not planned"
    assert person.finish(0).status == 409
    assert [person.answer(0).status for _ in range(3)] == [201, 200, 200]
    again = {"attempt": 2, "client_uuid": str(uuid.uuid4())}
    assert person.answer(0, **again).status == 201, "practice can be repeated"
    assert person.answer(1, attempt=2).status == 201, "first answered after a reload"
    assert person.answer(2, response_raw=None, timed_out=True, rt=None).status == 201
    assert person.answer(3).status == 201
    told = person.finish(6)
    assert (told.status, told.body["stored"]) == (409, 5), "every answer has to be here"
    assert person.finish(5).status == 409 and person.answer(4).status == 201
    told = person.finish(6)
    assert told.status == 200 and len(told.body["completion_code"]) == 8
    assert person.finish(6).body == told.body
    new = {"attempt": 2, "client_uuid": str(uuid.uuid4())}
    assert person.answer(4).status == 200 and person.answer(4, **new).status == 409, (
        "nothing new after the end"
    )
    found = {(row["trial_index"], row["attempt"]): row for row in site.trials}
    assert sorted(found) == [(0, 1), (0, 2), (1, 2), (2, 1), (3, 1), (4, 1)] and len(site.trials) == 6
    late = found[2, 1]
    assert (late["response_status"], late["correct"], late["timed_out"]) == ("timeout", None, True)
    assert len(site.rows(scores)) == 6
    (session,) = site.sessions
    assert (session["state"], session["reader"], session["participant_id"]) == ("finished", "17", "17")
    assert session["n_trials"] == 6 and session["planned_trials"] == 5
    assert site.opening(participant="17", pin=PIN).status == 409, "everybody takes part once"


def test_the_sessions_at_hand_are_bounded_by_their_trials_and_none_is_lost(site, monkeypatch):
    people = [site.begin() for _ in range(6)]
    most = 2 * len(people[0].trials())
    monkeypatch.setattr("experiment.people.service.MOST_TRIALS", most)
    assert {person.answer(index).status for index in range(3) for person in people} == {201}
    assert site.state.live._trials == most


@pytest.mark.parametrize(
    "other", [{"response_raw": "zzz"}, {"rt": 1.0}, {"client_uuid": str(uuid.UUID(int=1))}]
)
def test_another_payload_for_a_stored_trial_or_event_is_refused_and_logged(site, other):
    person, token = site.begin(), str(uuid.uuid4())
    person.answer(1)
    told = person.answer(1, **other)
    assert told.status == 409
    assert set(told.body) >= {"error", "rule", "mend"}
    assert [row["response_raw"] for row in site.trials] == [person.payload(1)["response_raw"]]
    noted = [person.event("blur", {"n": number}, token).status for number in (1, 1, 2)]
    assert noted == [201, 200, 409]
    assert [event["kind"] for event in site.events] == ["consent", "trial_conflict", "blur"]


def test_what_was_shown_comes_from_the_plan_and_not_from_the_browser(site):
    person = site.begin()
    for name in ("item_id", "condition", "answer", "correct", "is_practice"):
        assert person.answer(1, **{name: "forged"}).status == 400
    person.answer_all()
    stored = site.trials
    for row, trial in zip(stored, site.planned(person), strict=True):
        for name in ("item_id", "condition", "shown", "answer", "is_practice", "block", "choice_order"):
            assert row[name] == trial[name]
        assert row["correct"] == (row["response"] == trial["answer"])
        assert row["response_status"] == "valid"
    assert {row["is_practice"] for row in stored} == {True, False}
    assert stored[2]["rt"] == 814.3


@pytest.mark.parametrize(
    ("times", "kept", "is_flagged"),
    [
        ({}, {"rt": 814.3}, False),
        ({"rt": 9.5}, {"rt": 814.3}, True),  # its own stamps deny it: computed from them
        ({"rt": -40.0, "response_ts": 10194.1}, {"rt": -40.0, "response_ts": 10194.1}, True),
        ({"rt": -40.0, "onset_ts": None, "response_ts": None}, {"rt": -40.0, "onset_ts": None}, True),
        ({"reading_time": -3.0}, {"reading_time": -3.0, "rt": 814.3}, True),
    ],
)
def test_a_time_that_cannot_be_is_flagged(site, times, kept, is_flagged):
    person = site.begin()
    assert [person.answer(2, **times).status for _ in range(2)] == [201, 200]
    (row,) = site.trials
    assert {name: row[name] for name in kept} == pytest.approx(kept)
    with site.store.read() as connection:
        told = [
            (one["trial_index"], one["attempt"], one["kind"], one["made_by"])
            for one in records.all_flags(connection, None)
        ]
    assert told == [(2, 1, "suspect", "server")] * is_flagged


def test_models_labels_govern_no_list_of_people(make_study, serve_study):
    study = make_study(
        ("seed: 7\n", "seed: 7\nmodels: {label_maps: fixed, who: {g: {use: 'baseline:random'}}}\n"),
        ("keys: [f, j], answer_by: text", "keys: {A: f, B: j}, labels: balanced"),
    )
    site = serve_study(study)
    assert site.service.list_ids == (1, 2, 3, 4)
    plans = [site.session(site.begin())["plan"] for _ in range(4)]
    assert sorted(plan["label_map"]["A"] for plan in plans) == ["A", "A", "B", "B"]


def test_a_trial_waits_until_its_reader_has_agreed(site):
    person = site.begin()
    told = person.post("trials", person.payload(1))
    assert told.status == 425 and "consent" in told.body["rule"], "the page sends it again"
    assert site.trials == []
    assert person.event("consent", person.agreement).status == 201
    assert person.post("trials", person.payload(1)).status == 201


def test_who_failed_practice_cannot_begin_again_and_who_declined_can(site):
    failed = site.begin(participant="1")
    failed.event("practice", {"then": "end"})
    assert site.opening(participant="1").status == 403
    declined = site.begin(participant="2")
    declined.event("consent", {"agreed": False})
    assert declined.finish(0).status == 404, "nothing is left of the session"
    assert site.begin(participant="2").session_id != declined.session_id
    assert site.session(failed)["state"] == "failed_practice"


def test_a_word_of_a_text_keeps_what_was_shown_and_intact(make_study, serve_study):
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
        (region,) = records.all_regions(connection)
    (trial,) = site.trials
    assert region["shown"] == trial["shown"]["word"]
    assert region["intact"] == trial["answer"]
    assert region["is_changed"] == (trial["condition"]["position"] != "intact")
    assert (region["rt"], region["line"]) == (312.25, 0)


def test_a_full_disk_asks_for_patience_and_later_succeeds(site):
    person = site.begin()

    def limit(pages: int) -> Callable[[Any], None]:
        return lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}").close()

    used = site.do(lambda c: int(c.exec_driver_sql("PRAGMA page_count").scalar_one()))
    site.do(limit(used))
    long = {"response_raw": "x" * 19_000}
    told = [person.answer(index, **long) for index in range(5)]
    refused = [answer for answer in told if answer.status == 503]
    assert refused and {answer.status for answer in told} <= {201, 503}
    assert refused[0].headers["Retry-After"] == "2"
    assert "full" in refused[0].body["error"]
    assert [row["trial_index"] for row in site.trials] == [
        n for n, one in enumerate(told) if one.status == 201
    ]
    site.do(limit(1_000_000))
    assert {person.answer(index, **long).status for index in range(5)} <= {200, 201}
    assert len(site.trials) == 5


def test_a_slow_disk_asks_for_patience_and_the_retry_is_the_same_trial(site):
    person, patient = site.begin(), site.state.settings
    go_on = threading.Event()
    site.store.write(lambda connection: go_on.wait(timeout=60))
    site.state.settings = replace(patient, patience_s=0.05)
    assert person.answer(1).status == 503
    site.state.settings = patient
    go_on.set()
    site.do(lambda connection: None)
    assert person.answer(1).status == 200
    assert len(site.trials) == 1


def copy_of(person: Any, trials: int = 5, **changed: Any) -> dict[str, Any]:
    blur = {"client_uuid": str(uuid.UUID(int=7)), "kind": "blur", "detail": {"ts": 1.5}, "at": None}
    answers = (("trials", person.payload(index)) for index in range(trials))
    return dict(person.copy(*answers, ("events", blur), **changed))


def test_an_imported_copy_adds_what_did_not_arrive_once_and_completes_the_session(site, tmp_path):
    person = site.begin(participant="1")
    person.answer(0)
    person.answer(2)
    file, folder = tmp_path / "small-answers.json", site.service.folder
    file.write_text(json.dumps(copy_of(person)), "utf-8")

    def imported() -> tuple[dict[str, Any], list[Any]]:
        done = wrods("import", folder, file, "--json")
        assert done.exit_code == 0, done.output
        for table in (found := [site.trials, site.events, site.sessions]):
            for row in table:
                row.pop("last_seen_at", None)
        return json.loads(done.output), found

    told, stored = imported()
    assert {name: told[name] for name in ("new", "same", "refused", "trials")} == {
        "new": 4, "same": 2, "refused": 0, "trials": 3,
    }  # fmt: skip
    assert (told["reader"], told["state"]) == ("1", "finished")
    assert [row["trial_index"] for row in stored[0]] == [0, 1, 2, 3, 4]
    assert all(row["scorer"] for row in stored[0])
    again, unchanged = imported()
    assert (again["new"], again["same"], again["refused"]) == (0, 6, 0) and unchanged == stored
    assert "1 (finished): 0 new" in wrods("import", folder, file).output
    assert person.finish(5).body["completion_code"], "the page, still open, gets its code all the same"


@pytest.mark.parametrize("way", ["command", "dashboard"])
def test_a_copy_that_has_answers_deleted_cleans_the_files_too(site, visit, tmp_path, way):
    person = site.begin(participant="a-very-particular-person")
    folder = site.service.folder
    backup = back_up(site.store.address, folder / FOLDER, stem="study")
    given = {"client_uuid": str(uuid.UUID(int=8)), "kind": "consent", "detail": {"agreed": False}, "at": None}
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(person.copy(("events", given))))
    if way == "command":
        told = json.loads(wrods("import", folder, file, "--json").stdout)
        assert (told["refused"], told["state"]) == (0, "withdrawn")
    else:
        owner = visit("ada")
        with file.open("rb") as copy:
            body = {"csrf": owner.token(), "file": (copy, "answers.json")}
            assert owner.client.post("/admin/small/copy", data=body).status_code == 302
        site.state.cleaning.close()
    assert person.session_id in remembered(folder)
    assert b"a-very-particular-person" not in backup.read_bytes()
    assert person.session_id not in repr(site.rows(audit))


def test_what_contradicts_a_stored_answer_is_refused_with_the_reason(site):
    person = site.begin(participant="1")
    person.answer(0, response_raw="something else")
    copy = copy_of(person, 2)
    copy["items"].append({"kind": "trials", "body": {"trial_index": "x"}})
    copy["items"].append({"kind": "trials", "body": person.payload(1) | {"trial_index": 99, "attempt": 2}})
    taken = take_copy(site.store, "small", copy)
    assert (taken.new, taken.same, taken.refused) == (2, 0, 3)
    assert len(taken.reasons) == 3 and any("99" in reason for reason in taken.reasons)


def test_what_does_not_belong_here_is_refused(site):
    person = site.begin(participant="1")
    for changed in (
        {"token": "another token"}, {"session_id": "0" * 32}, {"study": "big"}, {"wrods": 2}, {"items": "x"}, {"extra": 1},
    ):  # fmt: skip
        with pytest.raises(UserError):
            take_copy(site.store, "small", copy_of(person, 1, **changed))
    for data in (b"", b"\xff", b"[]", b"[" * 2000, b'{"wrods": NaN}'):
        with pytest.raises(UserError):
            read_copy(data)
    assert site.trials == []
