"""The door for stations: TLS and plain http at one port, with the visitor's own address behind it."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, jsonify, request

from experiment.people.lab.serving import ServerCertificate, server_certificate, tls_of, try_addresses
from experiment.people.server import StudyServer


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

    @app.post("/often")
    def often() -> bytes:
        return 20 * request.get_data()

    @app.get("/robots.txt")
    def robots() -> str:
        return ""

    return app


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    certificate = server_certificate(tmp_path / "lab", ["localhost"], ["127.0.0.1"])
    server = StudyServer(application(), "127.0.0.1", 0, tls=tls_of(certificate))
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
    (good,) = try_addresses(["127.0.0.1"], door.port, door.certificate.authority)
    assert good.trouble is None
    (wrong,) = try_addresses(["127.0.0.2"], door.port, door.certificate.authority)
    assert wrong.trouble is not None and "no connection" in wrong.trouble
