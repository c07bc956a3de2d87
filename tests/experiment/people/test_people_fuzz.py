"""Whatever is sent to the participants' interface: no fault of the server, nothing of others, no answer key.

``WRODS_FUZZ=2000`` in the environment asks for that many examples.
"""

from __future__ import annotations

import json
import os
import string
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiment.store import open_store
from tests.experiment.people.conftest import WITHOUT_PRACTICE, page_of, settings_of, word_items

EXAMPLES = int(os.environ.get("WRODS_FUZZ", "20"))
ENDPOINTS = ("trials", "events", "answers", "finish", "resume", "lease", "shown", "")
SECRET_ANSWER = "zzkeyzz"
OTHERS_ANSWER = "what another participant typed"

odd = st.sampled_from(["\0", "\ufffe", "'; --", "=1+1", "<script>"])
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=30) | odd
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    "client_uuid", "trial_index", "attempt", "response_raw", "timed_out", "created_at", "rt", "next", "regions", "kind",
    "detail", "at", "screen", "answers", "trials", "completed", "take", "release", "away_ms", "participant", "platform",
    "client", "key_log",
]  # fmt: skip
plausible = {
    "client_uuid": st.uuids().map(str), "trial_index": st.integers(0, 6), "attempt": st.integers(1, 3),
    "response_raw": st.none() | st.text(max_size=20), "timed_out": st.booleans(),
    "created_at": st.just("2026-11-21T10:00:00.000Z"), "kind": st.sampled_from(["consent", "practice", "device", "shown", "blur"]),
    "detail": st.dictionaries(st.sampled_from(["agreed", "then", "passed", "missed", "trial_index", "attempt"]), values, max_size=4),
    "screen": st.sampled_from(["eligibility", "x"]), "answers": st.dictionaries(st.sampled_from(["age", "first_language"]), values),
    "trials": st.integers(0, 6), "completed": st.booleans(), "take": st.booleans(), "release": st.booleans(),
    "away_ms": st.integers(0, 10**9), "next": st.lists(st.integers(0, 6), min_size=2, max_size=2),
    "regions": st.lists(st.fixed_dictionaries({"region": st.integers(0, 3)}), max_size=2),
}  # fmt: skip
wild = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), values, max_size=8)
near = {
    "trials": ("client_uuid", "trial_index", "attempt", "response_raw", "timed_out", "created_at"),
    "events": ("client_uuid", "kind", "detail"),
    "answers": ("client_uuid", "screen", "answers"),
    "finish": ("trials", "completed"),
    "resume": ("take",),
    "lease": ("release", "away_ms"),
}


@st.composite
def bodies(draw: Any, endpoint: str) -> Any:
    needed = near.get(endpoint, ())
    body = draw(st.fixed_dictionaries({name: plausible[name] for name in needed}))
    if draw(st.booleans()):
        extra = draw(st.sampled_from(["next", "regions", *needed]))
        body[extra] = draw(plausible[extra] | values)
    return draw(st.just(body) | wild | values)


sent = st.sampled_from(ENDPOINTS).flatmap(lambda endpoint: st.tuples(st.just(endpoint), bodies(endpoint)))
tabs = st.none() | st.uuids().map(str) | st.text(string.ascii_letters + "-", max_size=70)


@pytest.fixture
def site(make_study: Any, serve_study: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("experiment.people.server_state.SENDINGS_PER_MINUTE", 10**9)
    eligible = settings_of("eligible: {first_language: de, age: [21, 43]}")
    items = word_items(4, SECRET_ANSWER + "{}", ("this", "that"), "this")
    return serve_study(
        make_study(eligible, WITHOUT_PRACTICE, items=items), config={"entries_per_minute": 10**9}
    )


@settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(requests=st.lists(sent, min_size=1, max_size=6), tab=tabs)
def test_nothing_that_is_sent_breaks_the_server_or_reveals_anything(site, requests, tab):
    other = site.begin(participant=f"the other {uuid.uuid4()}")
    other.answer(1, response_raw=OTHERS_ANSWER)
    person = site.begin()
    headers = person.auth | ({"X_Wrods_Lease": tab} if tab else {})
    for endpoint, body in requests:
        raw = json.dumps(body).encode()
        told = [
            person.caller.post(f"{person.base}/{endpoint}".rstrip("/"), raw=raw, **headers),
            person.caller.post("/api/small/sessions", raw=raw, **headers),
            person.caller.post(f"{other.base}/{endpoint}".rstrip("/"), raw=raw, **headers),
            person.caller.get(person.base, **person.auth),
            person.caller.get(other.base, **person.auth),
        ]
        assert all(answer.status < 500 for answer in told), (endpoint, body, [answer.text for answer in told])
        assert told[2].status in (400, 404, 405, 415) and told[4].status == 404
        for answer in told:
            assert SECRET_ANSWER not in answer.text and OTHERS_ANSWER not in answer.text
            assert other.token not in answer.text and other.session_id not in answer.text
            assert '"accept"' not in answer.text and '"responses"' not in answer.text


def test_every_write_asks_for_our_header_our_origin_and_the_sessions_token(site):
    own = f"http://127.0.0.1:{site.port}"
    for endpoint in ("answers", "lease", "resume", "trials", "events", "finish"):
        person = site.begin()
        body = {"client_uuid": str(uuid.uuid4())}
        refused: list[tuple[int, dict[str, Any]]] = [
            (403, {"X_Wrods": ""}),
            *(
                (403, {"Origin": origin})
                for origin in ("https://evil.example", "null", f"{own[:-1]}{int(own[-1]) ^ 1}")
            ),
            (415, {"Content_Type": "text/plain"}),
            *((401, {"Authorization": given}) for given in ("", "Bearer", "Bearer ", "Basic abc", "token")),
            (404, {"Authorization": "Bearer x"}),
            (400, {"raw": b"[" * 5000}),
            (413, {"raw": b'{"x": "' + b"y" * 300_000 + b'"}'}),
        ]
        for status, changed in refused:
            assert person.post(endpoint, body, **changed).status == status, (endpoint, changed)
        assert person.post(endpoint, body, Origin=own).status != 403


def test_zero_bytes_in_addresses_and_forms_are_refused_before_postgresql_fails_at_them(
    make_study, serve_study, visit, monkeypatch, postgres_url
):
    from tests.experiment.people import conftest

    monkeypatch.setattr(conftest, "open_store", lambda folder: open_store(postgres_url))
    site = serve_study(make_study())
    assert site.caller().get("/api/small/sessions/%00", Authorization="Bearer a").status == 404
    done = visit("ada", site).post(page_of(site.begin(), "note"), reason="a\0b")
    assert done.status_code == 400
