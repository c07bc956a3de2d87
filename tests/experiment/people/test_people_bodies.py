"""What browsers send is judged by the compiled schema as ``jsonschema`` judges it."""

from __future__ import annotations

import json
import math
import re
import sys
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.people.request_validation import FREQUENT, LARGEST_BODY, Problem, acceptance, parse, validator
from experiment.people.response_intake import read_copy, take_copy
from experiment.people.server import largest_body
from experiment.people.session_cache import Throttle, session_token
from experiment.store import queries as q
from experiment.store.chain import verify
from experiment.store.session_activity import shown_keys
from experiment.store.tables import sessions

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


def test_every_frequent_body_has_a_compiled_schema():
    assert all(callable(acceptance(name)) for name in FREQUENT)


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


@pytest.mark.parametrize(
    "number",
    ["1e400", "-1e400", "1E+0309", "[1e999]", f"{'9' * 250}e99", f"{'9' * 400}.0", ' 1.5e308\n,"b": 2e308'],
)
def test_a_number_that_is_infinite_here_is_refused_in_any_spelling(number):
    with pytest.raises(Problem, match="number"):
        parse(f'{{"a":{number}}}'.encode())


@pytest.mark.parametrize(("levels", "fits"), [(12, True), (13, False)])
def test_brackets_in_texts_do_not_count_as_depth(levels, fits):
    nested = '{"a":' * (levels - 1) + '["]]]]{{{{[[[[[[[[[[["]' + "}" * (levels - 1)
    if fits:
        assert parse(nested.encode())
    else:
        with pytest.raises(Problem) as refused:
            parse(nested.encode())
        assert "nests" in str(refused.value.body["rule"])


@pytest.mark.parametrize("start", ['[["', '[{"a": "\\', '[["\\"'])
def test_a_string_that_never_ends_is_read_once(start):
    with pytest.raises(
        Problem, match="was not accepted"
    ):  # a search that starts again at each quote takes minutes
        parse((start + '\\"' * 100_000).encode())


@pytest.mark.parametrize("path", ["//[", "/admin/small/upload\0", ""])
def test_what_callers_send_as_a_path_need_not_be_one(path, make_study, serve_study):
    assert largest_body(serve_study(make_study()).app, path, "") == LARGEST_BODY


@pytest.fixture
def person(site: Any) -> Any:
    return site.begin()


def test_unknown_sessions_and_wrong_tokens_are_answered_alike(site, person):
    stranger = site.begin()
    for end in ("trials", "events", "finish"):
        wrong = person.caller.post(f"{person.base}/{end}", {}, Authorization="Bearer wrong")
        others = person.caller.post(f"{person.base}/{end}", {}, **stranger.auth)
        nobody = person.caller.post(f"/api/small/sessions/{'0' * 32}/{end}", {}, **person.auth)
        assert wrong.status == others.status == nobody.status == 404
        assert wrong.text == others.text == nobody.text
    assert person.event("blur").status == 201
    site.store.write(lambda connection: connection.execute(sessions.delete()).close()).result()
    assert person.event("blur").status == 404, "a session that was withdrawn meanwhile"


def test_tokens_are_long_and_stored_as_digests_only(site, person):
    with site.store.read() as connection:
        row = q.session(connection, person.session_id)
    assert row is not None
    assert len(person.token) >= 43  # 256 bits
    assert len(row["token_hash"]) == 64
    assert person.token not in str(row)
    assert session_token(b"k", "a") != session_token(b"k", "b") != session_token(b"l", "b")


def test_behind_a_proxy_the_public_origin_is_ours(make_study, serve_study):
    site = serve_study(make_study(), config={"public_url": "https://lab.example/studies"})
    body = {"client_uuid": str(uuid.uuid4()), "participant": "1"}
    told = site.caller().post("/api/small/sessions", body, Origin="https://lab.example")
    assert told.status == 201


def test_malformed_bodies_are_told_so(person):
    bodies = (
        b"", b"{", b"nul", b"\xff\xfe", b'{"a": NaN}', b'{"trials": Infinity}', b'{"trials": 1e999}', b"[]", b"1",
        b'"x"', b"[" * 30_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"trials": ' + b"9" * 5000 + b"}",
        b'{"trials": 1.5}', b'{"trials": true}', b'{"trials": -1}', b'{"trials": "1"}', b'{"trials": 1, "x": 2}',
    )  # fmt: skip
    for raw in bodies:
        for end in ("trials", "events", "finish"):
            told = person.caller.post(f"{person.base}/{end}", raw=raw, **person.auth)
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
        assert person.caller.post(f"{person.base}/{end}", raw=raw, **person.auth).status == status
    copy = {
        "wrods": 1, "kind": "answers", "study": "small", "session_id": person.session_id, "token": person.token,
        "items": [{"kind": "trials", "body": person.payload(1)}],
    }  # fmt: skip
    assert take_copy(site.store, "small", read_copy(as_floats(copy).encode())).new == 1
    with site.store.read() as connection:
        found = verify(connection, person.session_id)
        stored = q.done_keys(connection, person.session_id)
        shown = shown_keys(connection, person.session_id)
    assert found.broken is None
    assert (stored, shown) == ([(0, 1), (1, 1)], [(1, 1)])
    assert person.answer(0, next=[1, 1], dropped_frames=3, key_log=[[1, "a"]]).status == 200, "the same trial"


def test_keys_struck_are_pairs_of_a_time_and_a_name(person):
    pairs = [{"a": [1]}, {"a": [1]}], [[1]], [[1, "a", 2]], [["1", "a"]], [[1, {}]], [[1e15, "a"]], [None]
    for index, field in enumerate(("key_log", "early_keys", "insertions")):
        for odd in pairs:
            told = person.answer(index, **{field: odd})
            assert told.status == 400 and field in told.body["error"], odd
        assert person.answer(index, **{field: [[1.5, "a"], [2, "b"]]}).status == 201


def test_what_happened_is_told_in_bounded_words_and_numbers(person):
    details = (
        {"a": 10**400}, {"a": -(10**16)}, {"a": {"b": {"c": {}}}}, {"a": "x" * 20_001}, {"a": [1] * 1001},
        {"x" * 101: 1}, {str(i): 1 for i in range(51)},
    )  # fmt: skip
    assert [person.event("device_missed", odd).status for odd in details] == [400] * 7
    history = [{"page_index": 0, "viewing_time": 812.5}]
    assert person.event("instructions", {"view_history": history, "duration": 812.5}).status == 201


def test_a_time_of_day_is_one_that_exists(person):
    for odd in (
        "2026-11-24T::::::Z", "2026-11-24T10:00Z", "2026-02-30T10:00:00Z", "2026-13-01T10:00:00.000Z",
        "2026-11-24T25:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-11-24T10:00:00",
    ):  # fmt: skip
        assert person.answer(0, created_at=odd).status == 400, odd
        body = {"client_uuid": str(uuid.uuid4()), "kind": "blur", "at": odd}
        assert person.caller.post(f"{person.base}/events", body, **person.auth).status == 400, odd
    assert person.answer(0, created_at="2024-02-29T23:59:59.999+05:30").status == 201


def test_too_many_entries_from_one_place_are_asked_to_wait(make_study, serve_study):
    site = serve_study(make_study(), config={"entries_per_minute": 3})
    told = [site.opening() for _ in range(4)]
    assert [answer.status for answer in told] == [201, 201, 201, 429]
    assert int(told[3].headers["Retry-After"]) >= 1
    with site.store.read() as connection:
        assert "127.0.0.1" not in str([q.session(connection, told[0].body["session_id"])])


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
