"""The door for stations: TLS and plain http at one port, with the visitor's own address behind it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from flask import Flask, jsonify, request

from experiment.people.connections import listen
from experiment.people.lab.serving import (
    Meeting,
    ServerCertificate,
    firewall_hint,
    server_certificate,
    tls_of,
    try_addresses,
)
from experiment.people.lab.settings import Lab, set_lab, written
from experiment.people.lab.stations import SYSTEMS, command, shortcut
from experiment.people.server import StudyServer
from experiment.store.erasure import UNDECIDED, number_of
from stimuli.errors import UserError
from tests.conftest import ROOT
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import PIN


@dataclass
class Door:
    port: int
    certificate: ServerCertificate

    def connection(self, scheme: str) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        context = ssl.create_default_context(cafile=str(self.certificate.authority))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)

    def ask(self, scheme: str, method: str = "GET", path: str = "/who", body: bytes | None = None) -> Any:
        connection = self.connection(scheme)
        connection.request(method, path, body=body, headers={"X-Forwarded-For": "203.0.113.9"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data


def application() -> Flask:
    app = Flask(__name__)

    @app.get("/who")
    def who() -> Any:
        return jsonify([request.remote_addr, request.host_url])

    @app.post("/echo")
    def echo() -> bytes:
        return request.get_data()

    @app.get("/robots.txt")
    def robots() -> str:
        return ""

    return app


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    certificate = server_certificate(tmp_path / "lab", ["localhost"], ["127.0.0.1"])
    server = StudyServer(application(), listen("127.0.0.1", 0), tls=tls_of(certificate))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield Door(server.port, certificate)
    server.close()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_one_port_speaks_both_and_the_application_knows_which(door, scheme):
    status, data = door.ask(scheme)
    assert status == 200 and f"{scheme}://127.0.0.1:{door.port}/".encode() in data
    assert b'"127.0.0.1"' in data and b"203.0.113.9" not in data


def test_twenty_stations_answering_at_once_are_all_served(door):
    told: list[int] = []

    def station(number: int) -> None:
        connection = door.connection("https")
        for trial in range(10):
            body = f"{number}.{trial}".encode()
            connection.request("POST", "/echo", body=body)
            answer = connection.getresponse()
            told.append(answer.status if answer.read() == body else -1)
        connection.close()

    stations = [threading.Thread(target=station, args=(number,)) for number in range(20)]
    for one in stations:
        one.start()
    for one in stations:
        one.join(60)
    assert told == [200] * 200


def test_a_station_that_does_not_trust_the_authority_refuses_and_others_go_on(door):
    stranger = http.client.HTTPSConnection("127.0.0.1", door.port, context=ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger.request("GET", "/who")
    assert door.ask("https")[0] == 200


def test_addresses_are_tried_and_the_reason_told_where_one_does_not_answer(door):
    told = try_addresses(["127.0.0.1", "127.0.0.2"], door.port, door.certificate.authority)
    assert told["127.0.0.1"] is None and told["127.0.0.2"]


ADDRESS = "127.0.0.1"


@contextmanager
def serving(folder: Path, config: Path, *options: str) -> Iterator[Callable[[str], str]]:
    """Run the command; the function waits until it has said something that fits and returns all that it said."""
    said = config.parent / "said.txt"
    command = [sys.executable, "-m", "experiment.cli", "serve", str(folder), "--port", "0", "--no-browser"]
    environment = os.environ | {"XDG_CONFIG_HOME": str(config), "PYTHONUNBUFFERED": "1"}
    with said.open("w") as out:
        process = subprocess.Popen(
            [*command, *options], cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
        )

    def wait_for(pattern: str) -> str:
        end = time.monotonic() + 60
        while not re.search(pattern, said.read_text("utf-8")):
            assert process.poll() is None and time.monotonic() < end, said.read_text("utf-8")
            time.sleep(0.1)
        return said.read_text("utf-8")

    try:
        yield wait_for
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert process.returncode == 0


@pytest.mark.full
def test_lan_prints_where_stations_come_in_and_what_to_fetch_and_tries_it(make_study, tmp_path):
    config = tmp_path / "config"
    with serving(make_study().folder, config, "--lan", "--host", ADDRESS) as wait_for:
        said = wait_for(r"reached\s+127\.0\.0\.1:\d+")
        (port,) = set(re.findall(r"https://127\.0\.0\.1:(\d+)/", said))
        authority = config / "wrods" / "lab" / "authority.pem"
        context = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection(ADDRESS, int(port), context=context)
        connection.request("GET", "/certificate")
        page = connection.getresponse().read().decode()
        (fingerprint,) = re.findall(r"fingerprint ([0-9A-F:]{95})", said)
        assert fingerprint in page and "/kiosk" in said


@pytest.mark.full
def test_kiosk_prints_a_shortcut_for_each_system_and_makes_no_certificate(make_study, tmp_path):
    config = tmp_path / "config"
    with serving(make_study().folder, config, "--kiosk", "--host", ADDRESS) as wait_for:
        said = wait_for(r"reached\s+127\.0\.0\.1:\d+")
    for system in ("Windows", "macOS", "Linux"):
        switch = r"--unsafely-treat-insecure-origin-as-secure=http://127\.0\.0\.1:\d+ "
        assert re.search(rf"{system}\s.*{switch}", said)
    assert not (config / "wrods" / "lab").exists()


def test_stations_and_a_public_address_do_not_go_together(make_study):

    folder = str(make_study().folder)
    told = wrods("serve", folder, "--lan", "--public", "https://study.example")
    assert told.exit_code != 0 and "--public" in told.output and "--lan" in told.output


def test_a_station_is_named_when_it_first_connects_and_only_then():
    told: list[str] = []
    meeting = Meeting([ADDRESS], told.append)
    for address in ("10.0.0.31", "10.0.0.31", ADDRESS, "10.0.0.32", "127.0.0.1", "::1"):
        meeting.meet(address)
    assert [line.split() for line in told] == [
        ["station", "10.0.0.31", "has", "connected"],
        ["station", "10.0.0.32", "has", "connected"],
    ]


def test_a_firewall_that_is_on_is_named_with_the_command_that_opens_the_port(tmp_path, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("firewalld is Linux's")
    program = tmp_path / "firewall-cmd"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --state) echo running;; --query-port=8000/tcp) echo "$OPEN";; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPEN", "no")
    assert firewall_hint(8000) == "firewalld is on: sudo firewall-cmd --add-port=8000/tcp"
    monkeypatch.setenv("OPEN", "yes")
    assert firewall_hint(8000) is None


NAMES = ["lab-pc", "lab-pc.local"]


def asked_for(chain: Path) -> tuple[list[str], list[str]]:
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName), [
        str(one) for one in names.get_values_for_type(x509.IPAddress)
    ]


def test_the_authority_is_made_once_and_the_certificate_only_when_an_address_is_new(tmp_path):
    first = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5", "fd00::2"])
    assert first.is_renewed and asked_for(first.chain) == (NAMES, ["10.0.0.5", "fd00::2"])
    again = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5"])
    assert not again.is_renewed and again.fingerprint == first.fingerprint
    moved = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.9"])
    assert moved.is_renewed and moved.fingerprint == first.fingerprint
    assert asked_for(moved.chain) == (NAMES, ["10.0.0.9"])
    later = datetime.now(UTC) + timedelta(days=380)
    renewed = server_certificate(tmp_path / "lab", NAMES, ["10.0.0.9"], moment=later)
    assert renewed.is_renewed and renewed.fingerprint == first.fingerprint, "before it ends"
    renamed = server_certificate(tmp_path / "lab", ["other-pc"], ["10.0.0.9"])
    assert renamed.is_renewed and renamed.fingerprint != first.fingerprint, "an authority for the new name"


def test_stations_accept_the_certificate_for_its_names_alone(tmp_path):
    made = server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    leaf = x509.load_pem_x509_certificate(made.chain.read_bytes())
    builder = PolicyBuilder().store(Store([authority])).time(datetime.now(UTC))
    builder.build_server_verifier(x509.DNSName("lab-pc")).verify(leaf, [])
    with pytest.raises(VerificationError):
        builder.build_server_verifier(x509.DNSName("bank.example")).verify(leaf, [])


def test_the_authority_can_vouch_for_this_computer_s_names_only(tmp_path):
    made = server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    names = [one.value for one in limits.value.permitted_subtrees or [] if isinstance(one, x509.DNSName)]
    assert limits.critical and set(names) == {"localhost", "local", *NAMES}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
def test_private_keys_are_readable_by_their_owner_alone(tmp_path):
    server_certificate(tmp_path / "lab", NAMES, ["10.0.0.5"])
    for name in ("authority.key", "server.key"):
        assert stat.S_IMODE((tmp_path / "lab" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "lab").stat().st_mode) == 0o700


def test_damaged_files_are_named_with_a_way_out(tmp_path):
    server_certificate(tmp_path, NAMES, ["10.0.0.5"])
    (tmp_path / "authority.key").write_text("nothing")
    with pytest.raises(UserError, match=str(tmp_path)):
        server_certificate(tmp_path, NAMES, ["10.0.0.5"])


PAGE = "http://10.0.0.5:8000/small/"
SWITCH = "--unsafely-treat-insecure-origin-as-secure=http://10.0.0.5:8000"


@pytest.fixture
def lab(site: Any, tmp_path: Path) -> Any:
    certificate = server_certificate(tmp_path / "lab", ["lab-pc"], ["10.0.0.5"])
    set_lab(
        site.app,
        Lab(
            has_stations=True,
            origins=("http://10.0.0.5:8000", "http://lab-pc:8000"),
            authority=certificate.authority,
            fingerprint=certificate.fingerprint,
        ),
    )
    site.certificate = certificate
    return site


def test_the_certificate_page_gives_the_certificate_and_its_fingerprint(lab):
    page = lab.caller().get("/certificate")
    assert page.status == 200 and lab.certificate.fingerprint in page.text
    for system in ("Windows", "macOS", "Linux", "Firefox"):
        assert system in page.text
    file = lab.caller().get("/certificate/wrods-lab.crt")
    assert file.text == lab.certificate.authority.read_text() and "PRIVATE" not in file.text
    assert file.headers["Content-Type"] == "application/x-x509-ca-cert"
    for path in ("/certificate/authority.key", "/certificate/../authority.key", "/kiosk/small/authority.key"):
        assert lab.caller().get(path).status == 404, "private keys have no address"


def test_each_system_gets_a_shortcut_with_the_switch_and_a_profile_of_its_own(lab):
    assert SWITCH in lab.caller().get("/kiosk").text
    for system in SYSTEMS:
        file = lab.caller().get(f"/kiosk/small/{system.file}", Host="10.0.0.5:8000")
        assert file.status == 200 and SWITCH in file.text and "--user-data-dir=" in file.text
        assert "--kiosk" in file.text and PAGE in file.text
    # and never names a host that is not this computer's
    file = lab.caller().get("/kiosk/small/wrods-station.sh", Host="evil.example")
    assert "evil" not in file.text and SWITCH in file.text
    named = lab.caller().get("/kiosk/small/wrods-station.sh", Host="lab-pc:8000")
    assert "http://lab-pc:8000/small/" in named.text


def test_nothing_that_a_command_line_could_run_stands_in_a_shortcut():
    for page in ('http://a/"; rm -rf ~', "http://a/$(id)", "http://a/%TEMP%", "http://a/ b"):
        with pytest.raises(UserError):
            shortcut(SYSTEMS[0], page)
        with pytest.raises(UserError):
            command(SYSTEMS[2], page)


def ask(site: Any, **body: Any) -> Any:
    return site.caller().post("/api/small/station/start", body)


def end(site: Any, **body: Any) -> Any:
    return site.caller().post("/api/small/station/end", {"pin": PIN} | body)


@pytest.mark.parametrize(
    ("typed", "number"),
    [("P014", "P014"), ("p14", "P014"), (" 14 ", "P014"), ("P0014", None), ("Q014", None), ("P", None)],
)
def test_numbers_are_written_as_the_study_has_them(typed, number):
    assert written(typed, "P###") == number


def test_a_number_is_new_then_unfinished_then_finished(site):
    assert ask(site, participant="P014").body["state"] == "new"
    person = site.begin(participant="P014", station="Station 07")
    for index in range(3):
        assert person.answer(index).status == 201
    told = ask(site, participant="P014").body
    assert told["state"] == "unfinished"
    (left,) = told["unfinished"]
    # trial 0 is practice: two of four test trials are done
    assert (left["participant"], left["next_trial"], left["trials"]) == ("P014", 3, 4)
    assert left["station"] == "Station 07"
    for index in (3, 4):
        person.answer(index)
    (left,) = ask(site, participant="P014").body["unfinished"]
    assert (left["next_trial"], left["trials"]) == (5, 4), "no trial is left, the session is not over"
    assert person.finish(5).status == 200
    told = ask(site, participant="P014").body
    assert told["state"] == "finished" and told["unfinished"] == []


def test_a_station_lists_its_own_unfinished_sessions_only(site):
    site.begin(participant="P001", station="Station 01")
    site.begin(participant="P002", station="Station 02")
    site.begin(participant="P003", station="Station 02")
    there = ask(site, station="Station 02").body["unfinished"]
    assert sorted(one["participant"] for one in there) == ["P002", "P003"]
    assert ask(site, station="Station 09").body["unfinished"] == []
    assert ask(site).body["unfinished"] == []


def test_a_session_goes_on_at_another_station_which_is_noted(site):
    first = site.begin(participant="P014", station="Station 07")
    first.answer(0)
    second = site.begin(participant="P014", station="Station 03", take=True, pin=PIN)
    assert second.session_id == first.session_id and second.done == [[0, 1]]
    (row,) = site.sessions
    assert row["station"] == "Station 03"
    (resumed,) = (one for one in site.events if one["kind"] == "resumed")
    assert resumed["detail"]["station"] == "Station 03"


def test_a_session_ended_with_a_reason_keeps_its_answers_and_refuses_its_number(site):
    person = site.begin(participant="P014", station="Station 07")
    person.answer(0)
    person.answer(1)
    assert end(site, participant="P014", reason="  ").status == 400, "it needs a reason and a session"
    assert end(site, participant="P015", reason="x").status == 404
    for headers in ({"Origin": "https://evil.example"}, {"X_Wrods": ""}):
        body = {"participant": "P014", "reason": "x", "pin": PIN}
        assert site.caller().post("/api/small/station/end", body, **headers).status == 403
    assert end(site, participant="P014", reason=" fire alarm ", station="Station 07").body == {"ended": True}
    (row,) = site.sessions
    assert (row["state"], row["ended_reason"], row["n_trials"]) == ("ended", "experimenter: fire alarm", 2)
    assert end(site, participant="P014", reason="once more").status == 200
    assert site.sessions[0]["ended_reason"] == "experimenter: fire alarm"
    assert ask(site, participant="P014").body["state"] == "ended"
    assert site.opening(participant="P014").status == 403
    refused = site.opening(participant="P014", pin=PIN)
    assert (refused.status, refused.body["state"]) == (409, "ended"), "an experimenter is told why"
    assert ask(site, station="Station 07").body["unfinished"] == []
    assert person.answer(2).status == 201, "trials that waited at the station are stored"
    assert site.sessions[0]["n_trials"] == 3 and site.sessions[0]["state"] == "ended"


def test_a_number_that_was_mistyped_is_free_again_when_it_is_ended_before_the_first_trial(site):
    site.begin(participant="P041").answer(0)  # practice
    end(site, participant="P041", reason="mistyped")
    assert ask(site, participant="P041").body["state"] == "new"
    assert site.begin(participant="P041").status == 201


def test_a_session_ended_before_consent_is_erased_and_counted(site):
    site.begin(participant="P041").event("answers", {"diagnosis": "a very particular one"})
    assert end(site, participant="P041", reason="walked out").body == {"ended": True}
    assert site.read(number_of, "small", UNDECIDED) == 1
    left = site.everything()
    assert "P041" not in left and "a very particular one" not in left


@pytest.mark.parametrize("pin", [PIN, None])
def test_nobody_continues_or_ends_a_session_without_the_pin(site, pin):
    set_lab(site.app, Lab(pin=pin))
    person = site.begin(participant="P014")
    person.answer(0)
    for wrong in ({"pin": None}, {"pin": "0000"}, {"pin": "None"}, {"pin": ""}):
        assert site.opening(participant="P014", **wrong).status == 403
        assert end(site, participant="P014", reason="x", **wrong).status == 403
    assert site.opening(participant="P015").status == 201, "a new participant needs none"
    expected = 403 if pin is None else 200
    assert site.opening(participant="P014", pin=PIN).status == expected
    assert end(site, participant="P014", reason="x", pin=PIN).status == expected


def at(site: Any, address: str) -> Any:
    """Return the browser of a station with an address of its own."""
    caller = site.caller()
    caller.connection = http.client.HTTPConnection(
        "127.0.0.1", site.port, timeout=60, source_address=(address, 0)
    )
    return caller


def test_pins_cannot_be_tried_out_from_one_station_or_many_and_the_experimenter_is_not_kept_out(site):
    site.begin(participant="P014")

    def tries(address: str, *pins: str) -> list[int]:
        station = at(site, address)
        given = ({"participant": "P014", "reason": "x", "pin": pin} for pin in pins)
        told = [station.post("/api/small/station/end", body) for body in given]
        assert all("Wait" in one.body["mend"] for one in told if one.status == 429)
        return [one.status for one in told]

    wrong = [f"{number:04}" for number in range(10)]
    assert tries("127.0.7.1", *wrong, *wrong[:2]) == [403] * 10 + [429] * 2
    for host in range(2, 40):
        assert tries(f"127.0.7.{host}", *wrong) == [403] + [429] * 9
    assert tries("127.0.7.1", PIN) == [429], "the right one is not looked at either"
    assert tries("127.0.7.77", PIN) == [200], "at a station of the same network"
