"""What a server says while its database, its backups or its disk are in trouble: to participants, experimenters and the console."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from experiment.integrity.maintenance import Maintenance, kept
from experiment.people.headers import HEADERS
from experiment.people.server_health import HealthWatch, ServerHealth, public_address_problems
from experiment.store import DamagedStore
from tests.experiment.people.dashboard.conftest import Visitor, words_of
from tests.experiment.test_damaged_database import damage

GB = 10**9


@pytest.fixture
def folder(site: Any) -> Path:
    found = site.service.folder
    assert isinstance(found, Path)
    return found


def signed_in(site: Any) -> Visitor:
    from tests.experiment.people.conftest import PASSWORD

    visitor = Visitor(site.app.test_client())
    assert visitor.sign_in("", PASSWORD).status_code == 302
    return visitor


def broken_under_way(site: Any, folder: Path) -> None:
    """Damage the database of a running server."""
    Maintenance([kept_of(site, folder)], (), print, lambda study, failure: None).round()
    damage(folder / "study.db", pages=slice(1, None))
    site.store._reading.dispose()  # pages in memory would hide it for a while


def kept_of(site: Any, folder: Path) -> Any:
    from experiment.checking import load_study

    return kept(load_study(folder), site.store)


def test_a_database_that_breaks_while_it_is_served_is_served_no_longer(site, folder):
    person = site.begin()
    assert person.answer(0).status == 201
    lines: list[str] = []
    watch = HealthWatch(site.app.extensions["wrods"].health, {"small": site.service}, lines.append)
    watch.look()
    assert lines == [] and site.app.extensions["wrods"].health.report() == (
        200,
        {"status": "ok", "concerns": []},
    )
    broken_under_way(site, folder)
    told = person.answer(1)
    assert told.status == 503 and told.headers["Retry-After"], told.text
    present = (folder / "study.db").read_bytes()
    assert person.answer(2).status == site.opening().status == 503
    assert (folder / "study.db").read_bytes() == present
    status, body = site.app.extensions["wrods"].health.report()
    assert (status, body["status"]) == (503, "failing")
    assert body["concerns"] == [{"study": "small", "kind": "damaged", "what": "the database is damaged"}]
    assert isinstance(site.store.trouble, DamagedStore)
    watch.look()
    watch.look()
    assert len(lines) == 1 and f"wrods restore {folder}" in lines[0] and "study.db is damaged" in lines[0]


def test_strangers_are_told_no_paths_of_a_damaged_database(site, folder):
    visitor = signed_in(site)
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
    assert len(lines) == 1 and "150 MB are free" in lines[0] and str(folder) in lines[0]
    assert site_health.report() == (
        200,
        {
            "status": "warning",
            "concerns": [{"study": "small", "kind": "disk", "what": "the disk is nearly full"}],
        },
    )
    free[0] = 100 * GB
    watch.look()
    assert lines[1:] == ["small: no longer so: the disk is nearly full"]


def test_a_backup_that_fails_is_told_on_the_dashboard_until_one_succeeds(site, folder):
    health = site.app.extensions["wrods"].health
    upkeep = Maintenance([kept_of(site, folder)], (), print, health.backed_up)
    (folder / "backups").write_text("a file where the folder should be")
    upkeep.round()
    visitor = signed_in(site)
    said = words_of(visitor.get("/admin/").text)
    assert "The latest backup failed" in said and str(folder / "backups") in said
    (concern,) = visitor.get("/admin/data.json").json["concerns"]
    assert "The latest backup failed" in concern["words"] and not concern["stops_answers"]
    assert health.report()[1]["concerns"][0]["kind"] == "backup failed"
    (folder / "backups").unlink()
    upkeep.round()
    assert health.concerns() == [] and "backup failed" not in visitor.get("/admin/").text


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
    from experiment.people.app import create_app
    from experiment.people.service import service_for
    from experiment.store import open_store
    from tests.experiment.people.conftest import PASSWORD

    sound, broken = make_study(), make_study(("study: small", "study: other"), name="other")
    with open_store(sound.folder) as first, open_store(broken.folder) as second:
        services = {one.id: service_for(one, store) for one, store in ((sound, first), (broken, second))}
        app = create_app(services, config=settings)
        visitor = Visitor(app.test_client())
        visitor.sign_in("", PASSWORD)
        damage(broken.folder / "study.db")
        second.check()
        page = visitor.get("/admin/")
        assert page.status_code == 200 and "wrods restore" in page.text and "study.db is damaged" in page.text
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
