"""What protects pages and the dashboard: headers on every answer, origins, cookies; and whether the server is well."""

from __future__ import annotations

import http.client
import sqlite3
import ssl
import threading
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from experiment.checking import load_study
from experiment.configuration import config_file, read_config, store_address
from experiment.integrity.maintenance import Maintenance, kept
from experiment.people.app import create_app
from experiment.people.connections import listen
from experiment.people.dashboard.sign_ins import is_password
from experiment.people.headers import A_DAY_S, A_YEAR_S, HEADERS
from experiment.people.lab.serving import own_names, server_certificate, tls_of
from experiment.people.server import StudyServer
from experiment.people.server_state import HealthWatch, ServerHealth, public_address_problems
from experiment.people.service import read_settings, service_for
from experiment.store import DamagedStore, open_store
from stimuli.errors import UserError
from tests.browser.walking import until
from tests.experiment.people.conftest import PASSWORD, Visitor, words_of
from tests.experiment.test_damaged_database import damage

NAME = own_names()[0]


@pytest.fixture
def at_tls(site: Any, tmp_path: Path) -> Any:
    """Return a function that asks the small study's server over TLS, under any name."""
    certificate = server_certificate(tmp_path / "lab", [NAME, "localhost"], ["127.0.0.1"])
    server = StudyServer(site.app, listen("127.0.0.1", 0), tls=tls_of(certificate))
    threading.Thread(target=server.run, daemon=True).start()
    context = ssl.create_default_context(cafile=str(certificate.authority))

    def ask(method: str, path: str, host: str, **headers: str) -> http.client.HTTPResponse:
        line = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
        line.request(method, path, headers={"Host": f"{host}:{server.port}"} | headers)
        return line.getresponse()

    yield ask
    server.close()


def test_every_answer_has_every_protecting_header(site, at_tls):
    for path in (
        "/", "/small/", "/nowhere", "/admin/login", "/admin/", "/assets/pages.css", "/static/none.js", "/favicon.ico",
        "/health", "/api/small/sessions/none", "/api/none/sessions",
    ):  # fmt: skip
        plain = site.caller().get(path)
        assert {name: plain.headers[name] for name in HEADERS} == HEADERS, path
        assert plain.headers["Strict-Transport-Security"] is None
        policy = plain.headers["Content-Security-Policy"]
        assert all(part in policy for part in ("default-src 'self'", "frame-ancestors 'self'"))
        assert "unsafe" not in policy
        secure = at_tls("GET", path, NAME)
        assert {name: secure.headers[name] for name in HEADERS} == HEADERS, path
        assert secure.headers["Strict-Transport-Security"] == f"max-age={A_DAY_S}"
    for name in ("localhost", "127.0.0.1"):
        own = at_tls("GET", "/health", name)
        assert own.headers["Strict-Transport-Security"] is None, "own names are never bound to TLS"
    secure, plain = at_tls("GET", "/admin/login", NAME), site.caller().get("/admin/login")
    cookies = [answer.headers["Set-Cookie"] for answer in (secure, plain)]
    assert ["Secure" in cookie for cookie in cookies] == [True, False]
    assert all("HttpOnly" in cookie and "SameSite=Lax" in cookie for cookie in cookies)
    # a browser that has the one does not take the other in its place
    assert len({cookie.partition("=")[0] for cookie in cookies}) == 2
    told = site.caller().get("/small", Host="evil.example")
    assert (told.status, told.headers["Location"]) == (308, "/small/"), "an invented name is not repeated"


def test_a_public_address_over_https_is_bound_to_it_for_a_year(make_study, serve_study):
    site = serve_study(make_study(), config={"public_url": "https://lab.example"}, behind_proxy=True)
    caller = site.caller()
    told = {"Proto": "https", "Host": "lab.example", "For": "192.0.2.1"}
    caller.headers = {f"X-Forwarded-{name}": value for name, value in told.items()}
    assert caller.get("/health").headers["Strict-Transport-Security"] == f"max-age={A_YEAR_S}"
    assert "Secure" in caller.get("/admin/login").headers["Set-Cookie"]


def test_own_names_are_known_and_an_origin_that_only_matches_a_forged_host_is_refused(site):
    body = {"participant": "1"}
    at = f":{site.port}"
    for host in ("evil.example", f"evil.example{at}", f"localhost.evil.example{at}", "1.2.3.4.nip.io"):
        given = body | {"client_uuid": str(uuid.uuid4())}
        told = site.caller().post("/api/small/sessions", given, Host=host, Origin=f"http://{host}")
        assert told.status == 403 and "[serve]" in told.body["mend"], host
        form = site.caller().send("POST", "/admin/login", raw=b"x=y", Host=host, Origin=f"http://{host}")
        assert form.status == 403, host
    names = ("127.0.0.1", "localhost", "[::1]", "10.20.0.5", NAME, f"{NAME.split('.')[0]}.local")
    for number, host in enumerate(names):
        given = {"client_uuid": str(uuid.uuid4()), "participant": str(number)}
        own = f"{host}:{site.port}"
        for scheme, status in (("http", 201), ("https", 403)):
            told = site.caller().post("/api/small/sessions", given, Host=own, Origin=f"{scheme}://{own}")
            assert told.status == status, (host, scheme)


def test_health_is_told_to_anybody_and_asks_the_store_seldom(site, monkeypatch):
    written: list[object] = []
    write = type(site.store).write
    monkeypatch.setattr(
        type(site.store), "write", lambda store, work: written.append(work) or write(store, work)
    )
    before = site.everything()
    answers = [site.caller().get("/health") for _ in range(5)]
    assert [(one.status, one.body["status"]) for one in answers] == [(200, "ok")] * 5
    assert len(written) == 1 and site.everything() == before
    assert str(site.service.folder) not in answers[0].text


def test_a_store_that_takes_nothing_is_told_with_503(site, monkeypatch):
    with sqlite3.connect(site.store.path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr("experiment.people.server_state.PROVE_WITHIN_S", 0.2)
        told = site.caller().get("/health")
        other.execute("ROLLBACK")
    assert told.status == 503
    assert told.body["concerns"][0]["kind"] == "unusable"
    monkeypatch.setattr("experiment.people.server_state.PROVE_EVERY_S", 0)
    monkeypatch.setattr("experiment.people.server_state.PROVE_WITHIN_S", 60)
    assert site.caller().get("/health").status == 200


def write_config(text: str, mode: int = 0o600) -> Path:
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_password_is_made_where_none_is_given_and_comes_from_the_environment_before_the_file(monkeypatch):
    settings, made = read_settings(read_config())
    assert made is not None and len(made) >= 16 and made not in repr(settings)
    assert is_password(made, settings.password_hash) and not is_password("", settings.password_hash)
    write_config('[serve]\npassword = "from the file"\n')
    settings, made = read_settings(read_config())
    assert made is None and is_password("from the file", settings.password_hash)
    monkeypatch.setenv("WRODS_PASSWORD", "from the environment")
    settings, _ = read_settings(read_config())
    assert is_password("from the environment", settings.password_hash)
    assert not is_password("from the file", settings.password_hash)


def test_a_password_may_be_given_as_a_hash():
    known = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("word")
    write_config(
        f'store = "postgresql://me@here/data"\n[serve]\npassword_hash = "{known}"\nsecret = "{"k" * 20}"\n'
    )
    config = read_config()
    settings, made = read_settings(config)
    assert made is None and is_password("word", settings.password_hash) and settings.secret == b"k" * 20
    assert store_address(config) == "postgresql://me@here/data"


@pytest.mark.parametrize(
    ("environment", "text", "mode", "told"),
    [
        ({"WRODS_PASSWORD": "lab"}, "", 0o600, "10 characters"),
        ({}, '[serve]\npassword = "lab"\n', 0o600, "10 characters"),
        ({"WRODS_SECRET": "short"}, "", 0o600, "16 characters"),
        ({}, "", 0o644, "chmod 600"),
    ],
    ids=["password", "password in the file", "signing key", "readable by others"],
)
def test_settings_that_would_let_others_in_are_refused_without_repeating_them(
    monkeypatch, environment, text, mode, told
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write_config(text, mode)
    with pytest.raises(UserError, match=told) as refused:
        read_settings(read_config())
    assert "'lab'" not in str(refused.value) and "short'" not in str(refused.value)


GB = 10**9


@pytest.fixture
def folder(site: Any) -> Path:
    found = site.service.folder
    assert isinstance(found, Path)
    return found


def broken_under_way(site: Any, folder: Path) -> None:
    """Damage the database of a running server."""
    Maintenance([kept_of(site, folder)], (), print, lambda study, failure: None).round()
    damage(folder / "study.db", pages=slice(1, None))
    site.store._reading.dispose()  # pages in memory would hide it for a while


def kept_of(site: Any, folder: Path) -> Any:
    return kept(load_study(folder), site.store)


def test_a_database_that_breaks_while_it_is_served_is_served_no_longer(site, folder):
    person = site.begin()
    assert person.answer(0).status == 201
    lines: list[str] = []
    watch = HealthWatch(site.state.health, {"small": site.service}, lines.append)
    watch.look()
    assert lines == [] and site.state.health.report() == (200, {"status": "ok", "concerns": []})
    broken_under_way(site, folder)
    told = person.answer(1)
    assert told.status == 503 and told.headers["Retry-After"], told.text
    present = (folder / "study.db").read_bytes()
    assert person.answer(2).status == site.opening().status == 503
    assert (folder / "study.db").read_bytes() == present
    status, body = site.state.health.report()
    assert (status, body["status"]) == (503, "failing")
    assert [(one["study"], one["kind"]) for one in body["concerns"]] == [("small", "damaged")]
    assert isinstance(site.store.trouble, DamagedStore)
    watch.look()
    watch.look()
    assert len(lines) == 1 and f"wrods restore {folder}" in lines[0]


def test_strangers_are_told_no_paths_of_a_damaged_database(site, visit, folder):
    visitor = visit("")
    broken_under_way(site, folder)
    site.store.check()
    page = visitor.get("/admin/")
    assert page.status_code == 503 and "wrods serve" in page.text and str(folder) not in page.text
    pages = [site.app.test_client().get(path) for path in ("/admin/", "/admin/small/flags", "/admin/login")]
    assert not any(str(folder) in one.text for one in pages)


def test_a_nearly_full_disk_is_announced_before_answers_are_refused(site, folder):
    free = [100 * GB]
    site_health = ServerHealth({"small": site.service}, disk_usage=lambda _: (200 * GB, 0, free[0]))
    lines: list[str] = []
    watch = HealthWatch(site_health, {}, lines.append)
    watch.look()
    free[0] = 150_000_000
    watch.look()
    watch.look()
    assert len(lines) == 1 and "150 MB" in lines[0] and str(folder) in lines[0]
    status, told = site_health.report()
    assert (status, told["status"], [one["kind"] for one in told["concerns"]]) == (200, "warning", ["disk"])
    free[0] = 100 * GB
    watch.look()
    assert len(lines) == 2


def test_a_backup_that_fails_is_told_on_the_dashboard_until_one_succeeds(site, visit, folder):
    health = site.state.health
    upkeep = Maintenance([kept_of(site, folder)], (), print, health.backed_up)
    (folder / "backups").write_text("a file where the folder should be")
    upkeep.round()
    visitor = visit("")
    said = words_of(visitor.get("/admin/").text)
    assert str(folder / "backups") in said
    (concern,) = visitor.get("/admin/data.json").json["concerns"]
    assert str(folder / "backups") in concern["words"] and not concern["stops_answers"]
    assert health.report()[1]["concerns"][0]["kind"] == "backup failed"
    (folder / "backups").unlink()
    upkeep.round()
    assert health.concerns() == [] and str(folder / "backups") not in visitor.get("/admin/").text


def test_a_last_backup_that_fails_is_told_before_the_server_has_ended(site, folder):
    health = ServerHealth({"small": site.service}, disk_usage=lambda _: (200 * GB, 0, 0))
    upkeep = Maintenance([kept_of(site, folder)], (), print, health.backed_up)
    (folder / "backups").write_text("a file where the folder should be")
    lines: list[str] = []
    with HealthWatch(health, {}, lines.append, every_s=600):
        until(lambda: lines)
        assert str(folder / "backups") not in lines.pop()
        upkeep.round()
    assert len(lines) == 1 and str(folder / "backups") in lines[0]


def test_a_study_without_a_backup_for_two_hours_is_named_and_a_jump_of_the_clock_is_not_taken_for_one(
    site, folder
):
    now = [0.0]
    health = ServerHealth({"small": site.service}, clock=lambda: now[0])
    health.backed_up("small", None)
    old = datetime.now(UTC) - timedelta(hours=3)
    (folder / "backups").mkdir(exist_ok=True)
    (folder / "backups" / f"study-auto-{old:%Y%m%dT%H%M%S}Z.db").touch()
    now[0] = 3600.0  # an hour of work; the wall clock was set forward by two
    assert health.concerns() == []
    now[0] = 2.5 * 3600
    (concern,) = health.concerns()
    assert concern.kind == "no recent backup" and "3.0 hours old" in concern.words


def test_a_study_whose_database_is_damaged_keeps_nobody_from_the_other_studies(make_study, settings):
    sound, broken = make_study(), make_study(("study: small", "study: other"), name="other")
    with open_store(sound.folder) as first, open_store(broken.folder) as second:
        services = {one.id: service_for(one, store) for one, store in ((sound, first), (broken, second))}
        visitor = Visitor(create_app(services, config=settings).test_client())
        visitor.sign_in("", PASSWORD)
        damage(broken.folder / "study.db")
        second.check()
        page = visitor.get("/admin/")
        assert page.status_code == 200 and "wrods restore" in page.text and "study.db" in page.text
        data = visitor.get("/admin/data.json").json
        assert [one["study"] for one in data["studies"]] == ["small"]
        assert data["concerns"][0]["stops_answers"]
        told = visitor.get("/admin/other/flags")
        assert told.status_code == 503 and "wrods restore" in told.text


@pytest.mark.parametrize(
    ("status", "body", "headers", "told"),
    [
        (200, b'{"status": "ok", "concerns": []}', HEADERS, []),
        (503, b'{"status": "failing", "concerns": [1]}', HEADERS, []),
        (502, b"Bad Gateway", HEADERS, ["502"]),
        (200, b'{"concerns": []}', dict(list(HEADERS.items())[1:]), ["Content-Security-Policy"]),
    ],
)
def test_a_public_address_that_does_not_lead_here_is_told(status, body, headers, told):
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = public_address_problems(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert public_address_problems(f"http://127.0.0.1:{server.server_port}")[0].endswith("refused")
    assert all(any(part in problem for problem in found) for part in told)
    assert len(found) == (1 if status == 502 else 1 + len(told))
