"""Sessions from start to code, copies of answers, and bodies, which are judged as ``jsonschema`` judges them."""

from __future__ import annotations

import json
import math
import re
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.integrity.withdrawal import remembered
from experiment.people.response_intake import (
    LARGEST_BODY,
    Problem,
    acceptance,
    parse,
    read_copy,
    take_copy,
    validator,
)
from experiment.people.server import largest_body
from experiment.people.service import Throttle, session_token
from experiment.store import records
from experiment.store.backups import FOLDER, back_up
from experiment.store.chain import verify
from experiment.store.session_activity import shown_keys
from experiment.store.tables import audit, scores, sessions
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
    assert [person.answer(4).status, person.answer(4, **new).status] == [200, 409], (
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
    told = [
        (one["trial_index"], one["attempt"], one["kind"], one["made_by"])
        for one in site.read(records.all_flags, None)
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
    (region,) = site.read(records.all_regions)
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


TRIAL: dict[str, Any] = {
    "client_uuid": "0123456789abcdef0123", "trial_index": 3, "attempt": 1, "next": [4, 1], "response_raw": "yes",
    "timed_out": False, "rt": 812.3, "key_log": [[1.5, "a"]], "regions": [{"region": 0, "line": 0, "onset_ts": 1.0, "rt": 200}],
    "plugin_version": "x 1", "created_at": "2026-11-21T10:00:00.000Z",
}  # fmt: skip
EVENT: dict[str, Any] = {
    "client_uuid": "0123456789abcdef0123",
    "kind": "hidden",
    "detail": {"trial_index": 3},
    "at": "2026-11-21T10:00:00.000Z",
}
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**13), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3), st.just("x" * 20_001), st.just([]), st.just([1, 2, 3]), st.just({}), st.just({"region": -1}),
    st.just([[1, "a"]]), st.just([["a", 1]]), st.just([[1]]), st.just({"x" * 101: 1}), st.just({"a": [{"b": []}]}),
    st.just("2026-02-30T10:00:00Z"), st.just("2026-02-28T10:00:00+01:00"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "whole"), [("trial", TRIAL), ("event", EVENT)])
@given(data=st.data())
def test_a_body_with_one_odd_part_is_judged_alike(name, whole, data):
    accepts, schema = acceptance(name), validator(name)
    assert accepts(whole) and schema.is_valid(whole)
    key = data.draw(st.sampled_from([*whole, "other"]))
    broken = whole | {key: data.draw(ODD)}
    if data.draw(st.booleans()):
        broken = {k: v for k, v in whole.items() if k != key}
    assert accepts(broken) == schema.is_valid(broken)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def storable(value: object) -> bool:
    """Say whether a database can hold a value: no half characters, no zero bytes, no infinite numbers."""
    if isinstance(value, str):
        return "\0" not in value and value.encode("utf-8", "ignore").decode() == value
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(storable(part) for pair in value.items() for part in pair)
    return all(storable(part) for part in value) if isinstance(value, list) else True


@given(value=ANYTHING, plain=st.booleans())
def test_what_is_read_can_be_stored_however_it_was_written(value, plain):
    data = json.dumps({"value": value}, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    try:
        read = parse(data)
    except Problem as problem:
        assert problem.status == 400
        return
    assert storable(read)
    if storable(value):
        assert read == {"value": value}


NESTED = '{{"a":' * 11 + '{}["]]]]{{{{{{{{[[[[[[[[[[["]{}' + "}}" * 11


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        ('{"a":1.5e307}', True),
        *(
            (f'{{"a":{number}}}', False)
            for number in ("1e400", "-1e400", "1E+0309", "[1e999]", f"{'9' * 250}e99")
        ),
        *((f'{{"a":{number}}}', False) for number in (f"{'9' * 400}.0", ' 1.5e308\n,"b": 2e308')),
        # brackets in texts do not count as depth
        (NESTED.format("", ""), True),
        (NESTED.format('{"a":', "}"), False),
        # a search that starts again at each quote takes minutes
        *((start + '\\"' * 100_000, False) for start in ('[["', '[{"a": "\\', '[["\\"')),
    ],
)
def test_numbers_depth_and_strings_are_bounded_in_any_spelling(data, is_read):
    if is_read:
        assert parse(data.encode())
    else:
        with pytest.raises(Problem):
            parse(data.encode())


def test_what_callers_send_as_a_path_need_not_be_one(site):
    for path in ("//[", "/admin/small/upload\0", ""):
        assert largest_body(site.app, path, "") == LARGEST_BODY


@pytest.fixture
def person(site: Any) -> Any:
    return site.begin()


def test_unknown_sessions_and_wrong_tokens_are_answered_alike(site, person):
    stranger = site.begin()
    for end in ("trials", "events", "finish"):
        wrong = person.post(end, {}, Authorization="Bearer wrong")
        others = person.post(end, {}, **stranger.auth)
        nobody = person.caller.post(f"/api/small/sessions/{'0' * 32}/{end}", {}, **person.auth)
        assert wrong.status == others.status == nobody.status == 404
        assert wrong.text == others.text == nobody.text
    assert person.event("blur").status == 201
    site.do(lambda connection: connection.execute(sessions.delete()).close())
    assert person.event("blur").status == 404, "a session that was withdrawn meanwhile"


def test_tokens_are_long_and_stored_as_digests_only(site, person):
    row = site.session(person)
    assert len(person.token) >= 43  # 256 bits
    assert len(row["token_hash"]) == 64
    assert person.token not in str(row)
    assert session_token(b"k", "a") != session_token(b"k", "b") != session_token(b"l", "b")


@pytest.mark.parametrize(
    ("config", "host", "origin"),
    [
        ({"public_url": "https://lab.example/studies"}, None, "https://lab.example"),
        ({"hosts": ("study.lab.example",)}, "study.lab.example", "http://study.lab.example"),
    ],
)
def test_the_public_origin_and_names_that_a_laboratory_gives_its_server_are_ours(
    make_study, serve_study, config, host, origin
):
    site = serve_study(make_study(), config=config)
    body = {"client_uuid": str(uuid.uuid4()), "participant": "1"}
    headers = {"Origin": origin} | ({"Host": host} if host else {})
    assert site.caller().post("/api/small/sessions", body, **headers).status == 201


def test_malformed_bodies_are_told_so(person):
    bodies = (
        b"", b"{", b"nul", b"\xff\xfe", b'{"a": NaN}', b'{"trials": Infinity}', b'{"trials": 1e999}', b"[]", b"1",
        b'"x"', b"[" * 30_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"trials": ' + b"9" * 5000 + b"}",
        b'{"trials": 1.5}', b'{"trials": true}', b'{"trials": -1}', b'{"trials": "1"}', b'{"trials": 1, "x": 2}',
    )  # fmt: skip
    for raw in bodies:
        for end in ("trials", "events", "finish"):
            told = person.post(end, raw=raw)
            assert told.status == (413 if end == "events" and len(raw) > 32 * 1024 else 400), raw[:40]
            assert set(told.body) >= {"error", "rule", "mend"} and len(told.text) < 2000, raw[:40]


def as_floats(body: object) -> str:
    """Write JSON as some programs do: each whole number with a point."""
    return re.sub(r"(?<![\w.\"-])(\d+)(?=[,\]}])", r"\1.0", json.dumps(body))


def test_whole_numbers_written_with_a_point_leave_every_row_as_its_chain_says(site):
    person = site.begin()
    person.agree()
    trial = person.payload(0, next=[1, 1], dropped_frames=3, key_log=[[1, "a"]])
    event = {"client_uuid": str(uuid.uuid4()), "kind": "shown", "detail": {"trial_index": 1, "attempt": 1}}
    for end, body, status in (("trials", trial, 201), ("events", event, 201), ("finish", {"trials": 1}, 409)):
        raw = as_floats(body).encode()
        assert b"1.0" in raw
        assert person.post(end, raw=raw).status == status
    copy = as_floats(person.copy(("trials", person.payload(1))))
    assert take_copy(site.store, "small", read_copy(copy.encode())).new == 1
    with site.store.read() as connection:
        assert verify(connection, person.session_id).broken is None
        assert records.done_keys(connection, person.session_id) == [(0, 1), (1, 1)]
        assert shown_keys(connection, person.session_id) == [(1, 1)]
    assert person.answer(0, next=[1, 1], dropped_frames=3, key_log=[[1, "a"]]).status == 200, "the same trial"


ODD_PAIRS = ([{"a": [1]}, {"a": [1]}], [[1]], [[1, "a", 2]], [["1", "a"]], [[1, {}]], [[1e15, "a"]], [None])
ODD_DETAILS = (
    {"a": 10**400}, {"a": -(10**16)}, {"a": {"b": {"c": {}}}}, {"a": "x" * 20_001}, {"a": [1] * 1001},
    {"x" * 101: 1}, {str(i): 1 for i in range(51)},
)  # fmt: skip
ODD_MOMENTS = (
    "2026-11-24T::::::Z", "2026-11-24T10:00Z", "2026-02-30T10:00:00Z", "2026-13-01T10:00:00.000Z",
    "2026-11-24T25:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-11-24T10:00:00",
)  # fmt: skip


def test_keys_details_and_moments_are_bounded_and_possible(person):
    for field in ("key_log", "early_keys", "insertions"):
        for odd in ODD_PAIRS:
            told = person.answer(0, **{field: odd})
            assert told.status == 400 and field in told.body["error"], odd
    for odd in ODD_DETAILS:
        assert person.event("device_missed", odd).status == 400, odd
    for odd in ODD_MOMENTS:
        assert person.answer(0, created_at=odd).status == 400, odd
        body = {"client_uuid": str(uuid.uuid4()), "kind": "blur", "at": odd}
        assert person.post("events", body).status == 400, odd
    log = [[1.5, "a"], [2, "b"]]
    moment = "2024-02-29T23:59:59.999+05:30"
    assert person.answer(0, key_log=log, early_keys=log, insertions=log, created_at=moment).status == 201
    history = [{"page_index": 0, "viewing_time": 812.5}]
    assert person.event("instructions", {"view_history": history, "duration": 812.5}).status == 201


def test_too_many_entries_from_one_place_are_asked_to_wait(make_study, serve_study):
    site = serve_study(make_study(), config={"entries_per_minute": 3})
    told = [site.opening() for _ in range(4)]
    assert [answer.status for answer in told] == [201, 201, 201, 429]
    assert int(told[3].headers["Retry-After"]) >= 1
    assert "127.0.0.1" not in str(site.session(told[0].body["session_id"]))


def test_a_throttle_frees_tries_one_by_one_and_takes_no_more_memory_for_more_callers():
    time = [100.0]
    throttle = Throttle(2, 60, clock=lambda: time[0])
    assert [throttle.wait("a"), throttle.wait("a"), throttle.wait("b")] == [0, 0, 0]
    assert throttle.wait("a") == throttle.wait("a") == 30
    time[0] += 30
    assert [throttle.wait("a"), throttle.wait("a")] == [0, 30]
    size = sys.getsizeof(throttle._free_from)
    waits = [throttle.wait(f"2001:db8::{number:x}") for number in range(3000)]
    assert sys.getsizeof(throttle._free_from) == size < 1_000_000
    assert waits.count(0) > 2800  # few share a place with another
