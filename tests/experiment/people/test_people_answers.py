from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from experiment.integrity.withdrawal import remembered
from experiment.people.response_intake import read_copy, take_copy
from experiment.store import queries as q
from experiment.store.backups import FOLDER, back_up
from experiment.store.tables import audit, events
from stimuli.errors import UserError
from tests.experiment.commands import wrods
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


def test_a_session_runs_from_start_to_completion_code_whatever_is_sent_twice_or_too_late(site):
    person = site.begin(participant="17")
    assert person.status == 201 and person.event("consent", person.agreement).status == 201
    beyond = person.payload(1) | {"trial_index": 5}
    assert person.caller.post(f"{person.base}/trials", beyond, **person.auth).status == 400, "not planned"
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
    found = {(row["trial_index"], row["attempt"]): row for row in rows(site)}
    assert sorted(found) == [(0, 1), (0, 2), (1, 2), (2, 1), (3, 1), (4, 1)] and len(rows(site)) == 6
    late = found[2, 1]
    assert (late["response_status"], late["correct"], late["timed_out"]) == ("timeout", None, True)
    with site.store.read() as connection:
        session = q.sessions_overview(connection)[0]
        assert len(list(q.all_scores(connection))) == 6
    assert (session["state"], session["reader"], session["participant_id"]) == ("finished", "17", "17")
    assert session["n_trials"] == 6 and session["planned_trials"] == 5
    assert site.opening(participant="17", pin=PIN).status == 409, "everybody takes part once"


def test_the_sessions_at_hand_are_bounded_by_their_trials_and_none_is_lost(site, monkeypatch):
    people = [site.begin() for _ in range(6)]
    monkeypatch.setattr("experiment.people.session_cache.MOST_TRIALS", 2 * len(people[0].trials()))
    for index in range(3):
        for person in people:
            assert person.answer(index).status == 201
    known = site.app.extensions["wrods"].live
    assert len(known._known) == 2 and known._trials == 2 * len(people[0].trials())


@pytest.mark.parametrize(
    "other", [{"response_raw": "zzz"}, {"rt": 1.0}, {"client_uuid": str(uuid.UUID(int=1))}]
)
def test_another_payload_for_a_stored_trial_is_refused_and_logged(site, other):
    person = site.begin()
    person.answer(1)
    told = person.answer(1, **other)
    assert told.status == 409
    assert set(told.body) >= {"error", "rule", "mend"}
    assert [row["response_raw"] for row in rows(site)] == [person.payload(1)["response_raw"]]
    assert kinds_of_events(site) == ["consent", "trial_conflict"]


def test_what_was_shown_comes_from_the_plan_and_not_from_the_browser(site):
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


def test_a_time_that_its_own_stamps_deny_is_computed_from_them_and_flagged(site):
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
def test_a_negative_time_is_kept_and_flagged(site, times):
    person = site.begin()
    assert person.answer(3, **times).status == 201
    (row,) = rows(site)
    assert {name: row[name] for name in times} == times
    assert flags_of(site) == [(3, 1, "suspect", "server")]


def test_models_labels_govern_no_list_of_people(make_study, serve_study):
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


def test_a_trial_waits_until_its_reader_has_agreed(site):
    person = site.begin()
    send = f"{person.base}/trials"
    told = person.caller.post(send, person.payload(1), **person.auth)
    assert told.status == 425 and "consent" in told.body["rule"], "the page sends it again"
    assert rows(site) == []
    assert person.event("consent", person.agreement).status == 201
    assert person.caller.post(send, person.payload(1), **person.auth).status == 201


def test_who_failed_practice_cannot_begin_again_and_who_declined_can(site):
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


def test_events_are_noted_once(site):
    person, token = site.begin(), str(uuid.uuid4())
    told = [person.event("blur", {"n": 1}, token).status for _ in range(2)]
    assert told == [201, 200]
    assert person.event("blur", {"n": 2}, token).status == 409
    assert count(site, events) == 1


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
        (region,) = list(q.all_regions(connection))
        (trial,) = list(q.trials_with_scores(connection))
    assert region["shown"] == trial["shown"]["word"]
    assert region["intact"] == trial["answer"]
    assert region["is_changed"] == (trial["condition"]["position"] != "intact")
    assert (region["rt"], region["line"]) == (312.25, 0)


def test_a_full_disk_asks_for_patience_and_later_succeeds(site):
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


def test_a_slow_disk_asks_for_patience_and_the_retry_is_the_same_trial(site):
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


def copy_of(person: Any, trials: int = 5, **changed: Any) -> dict[str, Any]:
    event = {"client_uuid": str(uuid.UUID(int=7)), "kind": "blur", "detail": {"ts": 1.5}, "at": None}
    items = [{"kind": "trials", "body": person.payload(index)} for index in range(trials)]
    return {
        "wrods": 1, "kind": "answers", "study": "small", "session_id": person.session_id, "token": person.token,
        "items": [*items, {"kind": "events", "body": event}],
    } | changed  # fmt: skip


def test_a_copy_adds_what_did_not_arrive_and_completes_the_session(site):
    person = site.begin(participant="1")
    person.answer(0)
    person.answer(2)
    taken = take_copy(site.store, "small", read_copy(json.dumps(copy_of(person)).encode()))
    assert (taken.new, taken.same, taken.refused, taken.trials) == (4, 2, 0, 3)
    assert (taken.reader, taken.state) == ("1", "finished")
    with site.store.read() as connection:
        rows = list(q.trials_with_scores(connection))
    assert [row["trial_index"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["scorer"] for row in rows)
    assert person.finish(5).body["completion_code"], "the page, still open, gets its code all the same"


def test_taking_a_copy_again_changes_nothing(site):
    person = site.begin(participant="1")
    person.agree()
    copy = copy_of(person, 3)

    def everything() -> list[Any]:
        with site.store.read() as connection:
            tables = (q.trials_with_scores, q.all_scores, q.all_events, q.sessions_overview)
            return [list(table(connection)) for table in tables]

    assert take_copy(site.store, "small", copy).new == 4
    before = everything()
    again = take_copy(site.store, "small", copy)
    assert (again.new, again.same, again.refused, again.state) == (0, 4, 0, "started")
    after = everything()
    for rows in (*before, *after):
        for row in rows:
            row.pop("last_seen_at", None)
    assert after == before


def test_a_copy_that_has_answers_deleted_cleans_the_files_too(site, tmp_path):
    person = site.begin(participant="a-very-particular-person")
    folder = site.service.folder
    backup = back_up(site.store.address, folder / FOLDER, stem="study")
    given = {"client_uuid": str(uuid.UUID(int=8)), "kind": "consent", "detail": {"agreed": False}, "at": None}
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(copy_of(person, 0, items=[{"kind": "events", "body": given}])))
    done = wrods("import", folder, file, "--json")
    told = json.loads(done.stdout)
    assert (told["refused"], told["state"]) == (0, "withdrawn"), done.output
    assert person.session_id in remembered(folder)
    assert b"a-very-particular-person" not in backup.read_bytes()
    with site.store.read() as connection:
        assert person.session_id not in repr(connection.execute(select(audit)).all())


def test_what_contradicts_a_stored_answer_is_refused_with_the_reason(site):
    person = site.begin(participant="1")
    person.answer(0, response_raw="something else")
    copy = copy_of(person, 2)
    copy["items"].append({"kind": "trials", "body": {"trial_index": "x"}})
    copy["items"].append({"kind": "trials", "body": person.payload(1) | {"trial_index": 99, "attempt": 2}})
    taken = take_copy(site.store, "small", copy)
    assert (taken.new, taken.same, taken.refused) == (2, 0, 3)
    assert any("stored with other contents" in reason for reason in taken.reasons)
    assert "there is no trial 99" in taken.reasons


def test_what_does_not_belong_here_is_refused_in_words(site):
    person = site.begin(participant="1")
    for changed, told in (
        ({"token": "another token"}, "not in this store"),
        ({"session_id": "0" * 32}, "not in this store"),
        ({"study": "big"}, "of the study 'big'"),
        ({"wrods": 2}, "not a copy of answers"),
        ({"items": "x"}, "not a copy of answers"),
        ({"extra": 1}, "not a copy of answers"),
    ):
        with pytest.raises(UserError, match=told):
            take_copy(site.store, "small", copy_of(person, 1, **changed))
    with site.store.read() as connection:
        assert not list(q.trials_with_scores(connection))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"[" * 2000, b'{"wrods": NaN}'])
def test_a_file_that_is_no_copy_is_refused_in_words(data):
    with pytest.raises(UserError, match="not a copy of answers"):
        read_copy(data)


def test_wrods_import_tells_the_counts(site, tmp_path):
    person = site.begin(participant="1")
    file = tmp_path / "small-answers.json"
    copy = copy_of(person)
    agreed = {"client_uuid": str(uuid.UUID(int=8)), "kind": "consent", "detail": person.agreement}
    copy["items"].insert(0, {"kind": "events", "body": agreed})
    file.write_text(json.dumps(copy), "utf-8")
    folder = str(site.store.path.parent)
    told = wrods("import", folder, file)
    assert told.exit_code == 0, told.output
    assert "1 (finished): 7 new (5 of them trials), 0 were here already, 0 refused." in told.output
    again = wrods("import", folder, file, "--json")
    assert json.loads(again.output)["same"] == 7
    file.write_text("{}", "utf-8")
    wrong = wrods("import", folder, file)
    assert wrong.exit_code != 0 and "not a copy of answers" in wrong.output
