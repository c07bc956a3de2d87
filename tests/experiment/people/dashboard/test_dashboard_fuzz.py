"""Every address of the server, asked for anything by anybody: no fault of the server, nothing to those who may not see it.

``WRODS_FUZZ=5000`` in the environment asks for that many examples instead of the default number.
"""

from __future__ import annotations

import io
import os
import uuid
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiment.store.records import add_person
from tests.experiment.people.conftest import word_items

EXAMPLES = int(os.environ.get("WRODS_FUZZ", "60"))
KEY, ANSWER, PLATFORM_ID = "zzkeyzz", "what a participant typed", "5f8d0d55a1b2c3aaaabbbb01"
NOT_ASKED = {"pages.bundle", "pages.asset", "admin.logout", "admin.end_all_sign_ins"}
"""Files of the page, which are the same for everybody, and what would end the callers' own sign-ins."""
text = st.text(max_size=20) | st.sampled_from(
    ["", "../../etc/passwd", "'; --", "=1+1", "<script>", "\0", "ﾟ", "9" * 40]
)
values = st.one_of(
    text,
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(
        ["open", "paused", "closed", "third", "discussion", "too_fast", "prolific", "csv", "psych-ds"]
    ),
)
FIELDS = [
    "reason", "rule", "state", "name", "password", "answer", "value", "how", "note", "at", "participant", "station", "pin",
    "sure", "confirm", "invitation", "pilot", "PROLIFIC_PID", "assignmentId", "v", "client_uuid", "trials", "screen",
]  # fmt: skip


@pytest.fixture
def site(make_study: Any, serve_study: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A study with a participant's answers, a platform id, and answer keys that no page but a download shows."""
    monkeypatch.setattr("experiment.people.server_state.SENDINGS_PER_MINUTE", 10**9)
    for limit in ("FREE_TRIES", "FREE_TRIES_OF_NETWORK"):
        monkeypatch.setattr(f"experiment.people.dashboard.sign_ins.{limit}", 10**9)
    running = serve_study(
        make_study(items=word_items(4, KEY + "{}", ("this", "that"), "this")),
        config={"entries_per_minute": 10**9},
    )
    person = running.begin()
    person.answer(1, response_raw=ANSWER)
    running.person = person
    running.do(lambda c: add_person(c, "small", person.session_id, "prolific", PLATFORM_ID))
    return running


@st.composite
def requests(draw: Any, rules: list[tuple[str, str, tuple[str, ...]]], known: dict[str, list[str]]) -> Any:
    """Draw a method, an address with its parts filled in, and what is sent along."""
    pattern, method, names = draw(st.sampled_from(rules))
    for name, kind in names:
        part = draw(st.sampled_from(known.get(name, ["small"])) | text)
        pattern = pattern.replace(f"<{kind}{name}>", quote(part, safe="") or "x")
    given = draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=6))
    shape = draw(st.sampled_from(["form", "json", "file", "query", "raw"]))
    return method, pattern, given, shape, draw(st.binary(max_size=60))


def send(client: Any, token: str, request: Any, headers: dict[str, str]) -> Any:
    method, address, given, shape, raw = request
    sent: dict[str, Any] = {"method": method, "headers": headers}
    if shape == "json":
        sent["json"] = given
    elif shape == "form":
        sent["data"] = given | {"csrf": token}
    elif shape == "file":
        sent |= {"data": given | {"csrf": token, "file": (io.BytesIO(raw), "f.csv")}}
    elif shape == "query":
        sent |= {"query_string": given}
    else:
        sent |= {"data": raw, "content_type": "application/json"}
    return client.open(address, **sent)


def test_no_address_breaks_the_server_or_tells_what_is_not_for_its_caller(site, visit):
    signed_in = {name: visit(name) for name in ("ada", "ben", "cora")}
    cookies = {name: one.client.get_cookie("wrods_admin").value for name, one in signed_in.items()}  # type: ignore[union-attr]
    tokens = {name: one.token() for name, one in signed_in.items()}
    rules = [
        (rule.rule, method, tuple((name, _kind(rule.rule, name)) for name in sorted(rule.arguments)))
        for rule in site.app.url_map.iter_rules()
        if rule.endpoint not in NOT_ASKED
        for method in sorted((rule.methods or set()) & {"GET", "POST"})
    ]
    assert len(rules) > 40, "every address is asked"
    key = site.person.session_id
    known = {
        "study": ["small"], "session_id": [key], "key": [key[:12]], "form": ["csv", "jspsych", "psych-ds", "parquet"],
        "action": ["note", "flag", "pilot", "exclude", "restore", "end"], "token": ["x" * 43],
    }  # fmt: skip
    seen: set[tuple[str, int]] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        request=requests(rules, known), who=st.sampled_from(["nobody", "participant", "ada", "ben", "cora"])
    )
    def anybody_asks_for_anything(request: Any, who: str) -> None:
        client = site.app.test_client()
        headers = {"X-Wrods": "1"}
        if who in cookies:
            client.set_cookie("wrods_admin", cookies[who])
        if who == "participant":
            other = site.begin(participant=str(uuid.uuid4()))
            headers["Authorization"] = f"Bearer {other.token}"
        told = send(client, tokens.get(who, ""), request, headers)
        seen.add((request[0], told.status_code))
        assert told.status_code < 500, (who, request, told.text[:400])
        if who == "ada":
            return
        page = told.get_data(as_text=True)
        hidden = [KEY, ANSWER, PLATFORM_ID, site.person.token]
        # who is nobody here does not learn of a session either
        hidden += [key] if who in ("nobody", "participant", "cora") else []
        assert not [one for one in hidden if one in page and one not in str(request)], (
            who,
            request,
            page[:400],
        )
        assert '"responses"' not in page or '"is_practice":true' in page.replace(" ", "")

    anybody_asks_for_anything()
    assert {status for _, status in seen} >= {200, 302, 404}


def _kind(rule: str, name: str) -> str:
    """Return how a rule writes one of its parts before its name: ``path:`` or nothing."""
    return "path:" if f"<path:{name}>" in rule else ""
