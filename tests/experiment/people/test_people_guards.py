"""What the interface refuses, and that it refuses it in words rather than by falling over."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from experiment.people import session_cache as access
from experiment.people.request_validation import DEEPEST, Problem, parse
from experiment.people.response_intake import read_copy, take_copy
from experiment.people.session_cache import Passes, Throttle, session_token
from experiment.store import queries as q
from experiment.store.chain import verify
from experiment.store.session_activity import shown_keys

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS: dict[str, tuple[str, ...]] = {
    "sessions": ("client_uuid", "participant", "platform", "client", "simulated"),
    "trials": ("client_uuid", "trial_index", "attempt", "response_raw", "timed_out", "rt", "key_log", "regions",
               "created_at", "dropped_frames", "plugin_version"),
    "events": ("client_uuid", "kind", "detail", "at"),
    "finish": ("trials",),
}  # fmt: skip


@pytest.fixture
def person(site: Any) -> Any:
    return site.begin()


@pytest.mark.parametrize("end", ["trials", "events", "finish"])
def test_unknown_sessions_and_wrong_tokens_are_answered_alike(site: Any, person: Any, end: str) -> None:
    stranger = site.begin()
    wrong = person.caller.post(f"{person.base}/{end}", {}, Authorization="Bearer wrong")
    others = person.caller.post(f"{person.base}/{end}", {}, **stranger.auth)
    nobody = person.caller.post(f"/api/small/sessions/{'0' * 32}/{end}", {}, **person.auth)
    assert wrong.status == others.status == nobody.status == 404
    assert wrong.text == others.text == nobody.text


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "token"])
def test_a_missing_token_is_refused(person: Any, header: str) -> None:
    assert person.caller.get(person.base, Authorization=header).status == 401


def test_tokens_are_long_and_stored_as_digests_only(site: Any, person: Any) -> None:
    with site.store.read() as connection:
        row = q.session(connection, person.session_id)
    assert row is not None
    assert len(person.token) >= 43  # 256 bits
    assert len(row["token_hash"]) == 64
    assert person.token not in str(row)
    assert session_token(b"k", "a") != session_token(b"k", "b") != session_token(b"l", "b")


def test_posts_from_other_sites_are_refused(site: Any, person: Any) -> None:
    person.agree()
    body = person.payload(1)
    path = f"{person.base}/trials"
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{site.port + 1}"):
        assert person.caller.post(path, body, Origin=origin, **person.auth).status == 403
    assert person.caller.post(path, body, X_Wrods="", **person.auth).status == 403
    assert person.caller.post(path, body, Content_Type="text/plain", **person.auth).status == 415
    own = f"http://127.0.0.1:{site.port}"
    assert person.caller.post(path, body, Origin=own, **person.auth).status == 201


def test_behind_a_proxy_the_public_origin_is_ours(make_study: Any, serve_study: Any) -> None:
    site = serve_study(make_study(), config={"public_url": "https://lab.example/studies"})
    body = {"client_uuid": str(uuid.uuid4()), "participant": "1"}
    told = site.caller().post("/api/small/sessions", body, Origin="https://lab.example")
    assert told.status == 201


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"nul", b"\xff\xfe", b'{"a": NaN}', b'{"trials": Infinity}', b'{"trials": 1e999}', b"[]", b"1",
        b'"x"', b"[" * 30_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"trials": ' + b"9" * 5000 + b"}",
        b'{"trials": 1.5}', b'{"trials": true}', b'{"trials": -1}', b'{"trials": "1"}', b'{"trials": 1, "x": 2}',
    ],
    ids=range(18),
)  # fmt: skip
def test_malformed_bodies_are_told_so(person: Any, raw: bytes) -> None:
    for end in ("trials", "events", "finish"):
        told = person.caller.post(f"{person.base}/{end}", raw=raw, **person.auth)
        assert told.status == (413 if end == "events" and len(raw) > 32 * 1024 else 400)
        assert set(told.body) >= {"error", "rule", "mend"}
        assert len(told.text) < 2000


def test_bodies_of_more_than_256_kilobytes_are_refused(site: Any, person: Any) -> None:
    body = json.dumps({"trials": 1, "x": "x" * 256 * 1024}).encode()
    assert site.caller().send("POST", f"{person.base}/finish", raw=body, **person.auth).status == 413
    # of a far larger one the server reads only the beginning, so the caller may find the line cut
    with contextlib.suppress(ConnectionError):
        huge = site.caller().send("POST", f"{person.base}/finish", raw=b"x" * 5_000_000, **person.auth)
        assert huge.status == 413
    assert person.finish(0).status == 409


@given(JSON)
@example({"a": "]" * 50 + '\\"' + "[" * 50})
def test_parsing_keeps_what_json_can_say_and_refuses_the_rest(value: object) -> None:
    raw = json.dumps(value).encode()
    try:
        parsed = parse(raw)
    except Problem as problem:
        assert problem.status == 400
        assert (
            "NaN" in raw.decode() or "Infinity" in raw.decode() or raw.count(b"[") + raw.count(b"{") > DEEPEST
        )
    else:
        assert "\0" not in json.dumps(parsed, ensure_ascii=False).encode("utf-8").decode()
        assert json.loads(json.dumps(parsed)) == parsed


def as_floats(body: object) -> str:
    """Write JSON as some programs do: each whole number with a point."""
    return re.sub(r"(?<![\w.\"-])(\d+)(?=[,\]}])", r"\1.0", json.dumps(body))


def test_whole_numbers_written_with_a_point_leave_every_row_as_its_chain_says(site: Any) -> None:
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


@pytest.mark.parametrize("field", ["key_log", "early_keys", "insertions"])
@pytest.mark.parametrize(
    "odd", [[{"a": [1]}, {"a": [1]}], [[1]], [[1, "a", 2]], [["1", "a"]], [[1, {}]], [[1e15, "a"]], [None]]
)
def test_keys_struck_are_pairs_of_a_time_and_a_name(person: Any, field: str, odd: list[Any]) -> None:
    told = person.answer(0, **{field: odd})
    assert told.status == 400 and field in told.body["error"]
    assert person.answer(0, **{field: [[1.5, "a"], [2, "b"]]}).status == 201


@pytest.mark.parametrize(
    "odd",
    [
        {"a": 10**400}, {"a": -(10**16)}, {"a": {"b": {"c": {}}}}, {"a": "x" * 20_001}, {"a": [1] * 1001},
        {"x" * 101: 1}, {str(i): 1 for i in range(51)},
    ],
    ids=range(7),
)  # fmt: skip
def test_what_happened_is_told_in_bounded_words_and_numbers(person: Any, odd: dict[str, Any]) -> None:
    assert person.event("device_missed", odd).status == 400
    history = [{"page_index": 0, "viewing_time": 812.5}]
    assert person.event("instructions", {"view_history": history, "duration": 812.5}).status == 201


@pytest.mark.parametrize(
    "odd",
    [
        "2026-11-24T::::::Z", "2026-11-24T10:00Z", "2026-02-30T10:00:00Z", "2026-13-01T10:00:00.000Z",
        "2026-11-24T25:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-11-24T10:00:00",
    ],
)  # fmt: skip
def test_a_time_of_day_is_one_that_exists(person: Any, odd: str) -> None:
    assert person.answer(0, created_at=odd).status == 400
    body = {"client_uuid": str(uuid.uuid4()), "kind": "blur", "at": odd}
    assert person.caller.post(f"{person.base}/events", body, **person.auth).status == 400
    assert person.answer(0, created_at="2024-02-29T23:59:59.999+05:30").status == 201


@MANY
@given(data=st.data())
@pytest.mark.parametrize("end", ["sessions", "trials", "events", "finish"])
def test_no_body_makes_the_server_fail(site: Any, end: str, data: st.DataObject) -> None:
    fields = st.sampled_from(FIELDS[end]) | st.text(max_size=8)
    body = data.draw(st.dictionaries(fields, JSON, max_size=6) | JSON)
    raw = data.draw(st.just(json.dumps(body).encode()) | st.binary(max_size=200))
    if end == "sessions":
        told = site.caller().post("/api/small/sessions", raw=raw)
    else:
        person = _anyone(site)
        told = person.caller.post(f"{person.base}/{end}", raw=raw, **person.auth)
    assert told.status < 500
    assert told.body is not None


@MANY
@given(data=st.data())
def test_valid_trials_with_any_field_changed_never_make_the_server_fail(
    site: Any, data: st.DataObject
) -> None:
    person = _anyone(site)
    changed = data.draw(st.dictionaries(st.sampled_from(FIELDS["trials"]), JSON, max_size=2))
    told = person.answer(data.draw(st.integers(0, 4)), **changed)
    assert told.status in (200, 201, 400, 409)


def _anyone(site: Any) -> Any:
    """The same participant for all examples of a test, so that entries are not limited."""
    known = getattr(site, "known", None)
    if known is None:
        known = site.known = site.begin(participant="fuzz")
    return known


@given(
    path=st.text(alphabet="abc/.%0-?{}<>\\~ü", max_size=30),
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
)
@MANY
def test_no_address_makes_the_server_fail(site: Any, path: str, method: str) -> None:
    for start in ("/", "/api/", "/api/small/sessions/", "/static/", "/assets/", "/admin/"):
        as_sent = {"PATH_INFO": (start + path).encode("utf-8").decode("latin-1")}
        told = site.app.test_client().open("/", method=method, environ_overrides=as_sent)
        assert told.status_code < 500


def test_too_many_entries_from_one_place_are_asked_to_wait(make_study: Any, serve_study: Any) -> None:
    site = serve_study(make_study(), config={"entries_per_minute": 3})
    told = [site.opening() for _ in range(4)]
    assert [answer.status for answer in told] == [201, 201, 201, 429]
    assert int(told[3].headers["Retry-After"]) >= 1
    with site.store.read() as connection:
        assert "127.0.0.1" not in str([q.session(connection, told[0].body["session_id"])])


def test_a_throttle_frees_tries_one_by_one() -> None:
    time = [100.0]
    throttle = Throttle(2, 60, clock=lambda: time[0])
    assert [throttle.wait("a"), throttle.wait("a"), throttle.wait("b")] == [0, 0, 0]
    assert throttle.wait("a") == throttle.wait("a") == 30
    time[0] += 30
    assert [throttle.wait("a"), throttle.wait("a")] == [0, 30]
    time[0] += 1000
    assert [throttle.wait("a"), throttle.wait("a")] == [0, 0] and throttle.wait("a") == 30


def test_a_throttle_takes_no_more_memory_for_more_callers() -> None:
    throttle = Throttle(1, 60)
    size = sys.getsizeof(throttle._free_from)
    waits = [throttle.wait(f"2001:db8::{number:x}") for number in range(3000)]
    assert sys.getsizeof(throttle._free_from) == size < 1_000_000
    assert waits.count(0) > 2800  # few share a place with another


def test_passes_are_of_one_kind_for_one_study_and_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(b"key")
    given = passes.make("small", "pilot")
    known = passes.read(given, "small")
    assert known is not None and (known.kind, known.told) == ("pilot", {})
    assert passes.read(given, "other") is None and passes.read(given + "x", "small") is None
    assert Passes(b"another key").read(given, "small") is None and passes.read("", "small") is None
    monkeypatch.setattr(access, "PASS_AGE", {"pilot": timedelta(seconds=-1)})
    assert passes.read(given, "small") is None
