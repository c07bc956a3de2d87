"""Signed links: Prolific's tokens under keys made on the spot, links signed with a study's own key, and what is refused."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given as drawn
from hypothesis import strategies as st

from experiment.languages import pack_for
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.return_links import (
    FRESH_S,
    KeySets,
    KeysUnavailable,
    check_own,
    read_token,
    sign,
    signed_link,
)
from stimuli.errors import UserError
from tests.experiment.people.conftest import PROLIFIC, config_of, prolific_id, settings_of

HOST = "study.example.org"
KEY = "a key of the study's own, long enough"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Signer:
    """A platform that signs: a key, its set, and a loopback server that publishes it."""

    def __init__(self, key_id: str = "k1", bits: int = 2048) -> None:
        self.key_id = key_id
        self.key = rsa.generate_private_key(65537, bits)

    def entry(self) -> dict[str, str]:
        numbers = self.key.public_key().public_numbers()
        long = {"n": numbers.n, "e": numbers.e}
        told = {name: encoded(n.to_bytes((n.bit_length() + 7) // 8, "big")) for name, n in long.items()}
        return {"kty": "RSA", "kid": self.key_id, "alg": "RS256", "use": "sig"} | told

    def token(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        told = {
            "iss": "https://www.prolific.com",
            "aud": f"https://{HOST}/small/",
            "sub": PROLIFIC["SESSION_ID"],
            "exp": int(time.time()) + 300,
            "prolific": {**PROLIFIC, "workspace_id": "w"},
        } | claims
        head = {"alg": "RS256", "kid": self.key_id, "typ": "JWT"} | (header or {})
        body = f"{encoded(json.dumps(head).encode())}.{encoded(json.dumps(told).encode())}"
        return f"{body}.{encoded(self.key.sign(body.encode(), PKCS1v15(), SHA256()))}"


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer()


@pytest.fixture(scope="module")
def stranger() -> Signer:
    return Signer()


class Published:
    """A loopback server with a key set; ``asked`` counts requests, ``status`` is what it answers with."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self.asked, self.status = 0, 200
        here = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                here.asked += 1
                self.send_response(here.status)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": here.entries}).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/keys.json"


@pytest.fixture
def published(signer: Signer) -> Iterator[Published]:
    one = Published()
    one.entries = [signer.entry()]
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def serving(recruiting: Any, published: Published) -> Callable[..., Any]:
    """Serve the small study for Prolific; the keys come from the loopback server."""

    def run(recruit: str = "prolific", **settings: object) -> Any:
        codes = {"complete": "C1DONE", "key_set": published.address, "link_key": KEY}
        public = {"public_url": f"https://{HOST}"}
        return recruiting(recruit, codes, config=public, **(settings or {"signed_links": "required"}))

    return run


def visit(site: Any, **parameters: str) -> tuple[int, dict[str, Any] | str]:
    """Open the study's page; return its status and its settings, or what it says where nobody begins."""
    told = site.app.test_client().get("/small/", query_string=parameters)
    if "wrods-config" not in told.text:
        return told.status_code, told.text
    return told.status_code, config_of(told.text)


def arrive(site: Any, **parameters: str) -> Any:
    """Open the page, and ask for a session as it does."""
    status, config = visit(site, **parameters)
    assert status == 200 and isinstance(config, dict), config
    return site.opening(**{"platform": config["platform"], "pass": config["pass"]})


def test_a_signed_arrival_begins_and_goes_on_in_any_browser(serving, signer):
    site = serving()
    first = arrive(site, prolific_token=signer.token(), **PROLIFIC)
    assert first.status == 201
    again = arrive(site, prolific_token=signer.token())
    assert (again.status, again.body["session_id"]) == (200, first.body["session_id"])
    assert visit(site, prolific_token=signer.token())[1]["any_browser"]
    assert [row["reader"] for row in site.sessions] == ["P001"]
    assert "prolific_token" not in json.dumps(visit(site, prolific_token=signer.token())[1])


def test_a_signature_is_welcome_where_it_is_not_required(serving, signer):
    site = serving(wanted=9)
    unsigned = arrive(site, **PROLIFIC | {"PROLIFIC_PID": prolific_id("a")})
    assert unsigned.status == 201
    assert arrive(site, **PROLIFIC | {"PROLIFIC_PID": prolific_id("a")}).status == 403, "elsewhere"
    assert arrive(site, prolific_token=signer.token()).status == 201
    assert arrive(site, prolific_token=signer.token()).status == 200


BAD_CLAIMS: dict[str, dict[str, Any]] = {
    "another server": {"aud": "https://elsewhere.example/small/"},
    "another study": {"aud": f"https://{HOST}/other/"},
    "no audience": {"aud": None},
    "no end": {"exp": None},
    "nobody": {"prolific": {}},
    "no claim": {"prolific": None},
    "an odd claim": {"prolific": [1]},
    "an odd id": {"prolific": {"PROLIFIC_PID": 7}},
}


@pytest.mark.parametrize("demanded", [{"signed_links": "required"}, {"wanted": 9}])
def test_a_token_for_something_else_lets_nobody_in(serving, signer, demanded):
    site = serving(**demanded)
    for name, claims in BAD_CLAIMS.items():
        assert visit(site, prolific_token=signer.token(**claims), **PROLIFIC)[0] == 403, name
    assert site.sessions == []


def test_a_token_by_another_key_algorithm_or_hand_lets_nobody_in(serving, signer, stranger):
    site = serving()
    good = signer.token()
    head, body, signature = good.split(".")
    forged = [
        stranger.token(),
        signer.token(header={"kid": "unknown"}),
        signer.token(header={"alg": "none"}),
        signer.token(header={"alg": "HS256"}),
        f"{encoded(json.dumps({'alg': 'none', 'kid': 'k1'}).encode())}.{body}.",
        f"{head}.{body}.",
        f"{head}.{encoded(json.dumps({'prolific': PROLIFIC}).encode())}.{signature}",
        f"{head}.{body}",
        f"{head}.{body}.{signature}.{signature}",
        good[:-4] + "AAAA",
        "é.é.é",
        "x" * 5000,
    ]
    for token in forged:
        assert visit(site, prolific_token=token, **PROLIFIC)[0] == 403, token[:60]
    status, said = visit(site, **PROLIFIC)
    assert status == 403 and pack_for("en").texts["unsigned_title"] in str(said)
    assert site.opening(platform=dict(PROLIFIC)).body["rule"] == "unsigned" and site.sessions == []
    assert arrive(site, prolific_token=good).status == 201


def test_parameters_that_contradict_the_token_let_nobody_in(serving, signer):
    site = serving()
    other = PROLIFIC | {"PROLIFIC_PID": prolific_id("somebody else")}
    assert visit(site, prolific_token=signer.token(), **other)[0] == 403
    _, config = visit(site, prolific_token=signer.token())
    assert isinstance(config, dict)
    # what the page was told counts, whatever is sent beside it
    told = site.opening(**{"platform": other, "pass": config["pass"]})
    assert told.status == 201
    assert arrive(site, prolific_token=signer.token()).body["session_id"] == told.body["session_id"]


def test_an_expired_token_shows_the_page_to_who_has_a_session_and_begins_none(serving, signer):
    site = serving()
    old = signer.token(exp=int(time.time()) - 3600)
    status, config = visit(site, prolific_token=old, **PROLIFIC)
    assert status == 200 and isinstance(config, dict) and config["pass"] is None
    assert site.opening(platform=config["platform"]).body["rule"] == "unsigned"
    status, said = visit(site, prolific_token=old)
    assert status == 403 and "PROLIFIC_PID" not in str(said), "the id is in the token, which is too old"
    assert arrive(site, prolific_token=signer.token(exp=int(time.time()) - 30)).status == 201, "clocks differ"


def test_the_audience_may_be_our_name_our_address_or_the_study_s(serving, signer):
    site = serving()
    for audience in (HOST, HOST.upper(), f"https://{HOST}", [f"https://{HOST}/small/?x=1"]):
        assert arrive(site, prolific_token=signer.token(aud=audience)).status in (200, 201), audience


def test_without_the_keys_people_are_asked_to_come_again(serving, signer, published):
    published.status = 503
    status, said = visit(serving(), prolific_token=signer.token(), **PROLIFIC)
    assert status == 403 and pack_for("en").texts["unchecked_title"] in str(said)
    assert arrive(serving(wanted=9), prolific_token=signer.token(), **PROLIFIC).status == 201, "unsigned"


def test_keys_are_fetched_when_needed_kept_for_a_day_and_through_outages(signer, stranger, published):
    moment = [1000.0]
    keys = KeySets(clock=lambda: moment[0])
    find = keys.of(published.address)
    assert published.asked == 0
    assert find("k1") is not None and find("k1") is not None and published.asked == 1
    moment[0] += FRESH_S - 1
    assert find("k1") is not None and published.asked == 1
    assert find("k2") is None and published.asked == 2, "a new key may have come"
    for _ in range(50):
        assert find("k3") is None
    assert published.asked == 2, "made-up key ids do not make us ask again and again"
    moment[0] += FRESH_S + 1
    published.status = 500
    assert find("k1") is not None and published.asked == 3
    moment[0] += 61
    published.status = 200
    stranger.key_id = "k2"
    published.entries = [stranger.entry()]
    assert find("k2") is not None and find("k1") is None
    with pytest.raises(KeysUnavailable):
        KeySets().of("/no/such/file")("k1")


def test_keys_may_come_from_a_file_and_weak_ones_and_those_for_encryption_sign_nothing(signer, tmp_path):
    weak, other = Signer("weak", bits=1024), Signer("other")
    file = tmp_path / "keys.json"
    for entry in (weak.entry(), other.entry() | {"use": "enc"}):
        file.write_text(json.dumps({"keys": [entry]}), "utf-8")
        with pytest.raises(KeysUnavailable):
            KeySets().of(str(file))(entry["kid"])
    file.write_text(json.dumps({"keys": [{"kty": "EC"}, signer.entry()]}), "utf-8")
    assert KeySets().of(str(file))("k1") is not None
    until = int(time.time()) + 60
    given = {"id": "17", "until": str(until), "signature": sign("", "small", "17", until)}
    assert check_own(None, "small", given).standing == "invalid", "without a key no link is good"


@drawn(st.text(max_size=80) | st.from_regex(r"[\w-]{0,20}\.[\w-]{0,20}\.[\w-]{0,20}", fullmatch=True))
def test_whatever_comes_as_a_token_is_refused_and_not_fallen_over(text):
    assert read_token(text, lambda _: None) is None


def test_a_link_signed_with_the_study_s_key_begins_and_goes_on(serving):
    site = serving("link")
    link = signed_link(f"https://{HOST}", KEY, "small", "panel 17/ä", int(time.time()) + 60)
    given = dict(parse_qsl(urlsplit(link).query))
    first, again = arrive(site, **given), arrive(site, **given)
    assert (first.status, again.status) == (201, 200)
    assert first.body["session_id"] == again.body["session_id"]
    other = signed_link(f"https://{HOST}", KEY, "small", "18", int(time.time()) + 60)
    assert arrive(site, **dict(parse_qsl(urlsplit(other).query))).status == 201
    assert sorted(row["reader"] for row in site.sessions) == ["P001", "P002"]


@pytest.mark.parametrize("demanded", [{"signed_links": "required"}, {"wanted": 9}])
def test_an_id_of_one_s_own_counts_only_with_its_signature(serving, demanded):
    site = serving("link", **demanded)
    until = int(time.time()) + 60
    right = {"id": "17", "until": str(until), "signature": sign(KEY, "small", "17", until)}
    wrong: list[dict[str, str]] = [
        {"id": "17"},
        right | {"id": "18"},
        right | {"until": str(until + 1)},
        right | {"signature": right["signature"][:-1]},
        right | {"signature": sign("another key, also long enough", "small", "17", until)},
        right | {"signature": sign(KEY, "other", "17", until)},
        right | {"until": "²" * 5},
        right | {"until": "9" * 400},
        {"signature": sign(KEY, "small", "", until), "until": str(until)},
    ]
    for given in wrong:
        assert visit(site, **given)[0] == 403, given
    assert site.opening(platform={"id": "17"}).status == 403
    assert site.sessions == []
    past = int(time.time()) - 1
    old = {"id": "17", "until": str(past), "signature": sign(KEY, "small", "17", past)}
    status, config = visit(site, **old)
    assert status == 200 and site.opening(platform=config["platform"]).status == 403


def test_the_signature_is_the_one_that_the_docs_give():
    # printf 'my-study\nA17\n1790000000' | openssl dgst -sha256 -hmac 'correct horse battery staple'
    told = sign("correct horse battery staple", "my-study", "A17", 1790000000)
    assert told == "0fbf2e6916689d8718f74af021b8d3fef59d68b74f0378e791eaae37f5bd7157"


@pytest.mark.parametrize("recruit", ["sona", "mturk", "lab"])
def test_links_that_nobody_signs_cannot_be_required(make_study, recruit):
    study = make_study(settings_of(f"recruit: {recruit}, signed_links: required"))
    with pytest.raises(UserError, match="signed_links"):
        recruitment_for(study, {})


@pytest.mark.parametrize(
    ("name", "value"), [("key_set", "http://keys.example/k.json"), ("link_key", "short"), ("link_key", 4711)]
)
def test_a_setting_that_would_weaken_signatures_is_refused(make_study, name, value):
    study = make_study(settings_of("recruit: link"))
    with pytest.raises(UserError, match=name):
        recruitment_for(study, {"recruitment": {"small": {name: value}}})


def test_a_key_follows_from_the_server_s_own_and_differs_by_study(make_study, monkeypatch):
    monkeypatch.delenv("WRODS_SECRET", raising=False)
    study = make_study(settings_of("recruit: link"))
    assert recruitment_for(study, {}).link_key is None
    derived = recruitment_for(study, {"serve": {"secret": "k" * 20}}).link_key
    monkeypatch.setenv("WRODS_SECRET", "k" * 20)
    assert derived is not None and recruitment_for(study, {}).link_key == derived
    monkeypatch.setenv("WRODS_SECRET", "m" * 20)
    assert recruitment_for(study, {}).link_key != derived
    assert KEY not in repr(recruitment_for(study, {"recruitment": {"small": {"link_key": KEY}}}))
