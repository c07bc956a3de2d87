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
