"""The door for stations: TLS and plain http at one port, with the visitor's own address behind it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
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
from experiment.people.server import StudyServer
from tests.conftest import ROOT
from tests.experiment.commands import wrods


@dataclass
class Door:
    port: int
    certificate: ServerCertificate

    def connection(self, scheme: str) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        context = ssl.create_default_context(cafile=str(self.certificate.authority))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)

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
    thread.join(10)
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
        process.wait(30)
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
        assert re.search(
            rf"{system}\s.*--unsafely-treat-insecure-origin-as-secure=http://127\.0\.0\.1:\d+ ", said
        )
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
