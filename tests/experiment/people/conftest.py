"""A small study on a real server at a real socket, with a real SQLite file."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask import Flask

from experiment.people.app import create_app
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.server import StudyServer
from experiment.people.service import PeopleSettings, StudyService, service_for
from experiment.store import Store, open_store
from experiment.study import Study
from tests.experiment.people.recruitment.conftest import prolific, recruiting
from tests.experiment.postgres import postgres_cluster, postgres_url

__all__ = ["postgres_cluster", "postgres_url", "prolific", "recruiting"]
ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse"
PIN = "4711"
PASSWORD_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
CLIENT = {
    "browser": "Chrome 140", "system": "Linux", "device": "computer", "width": 1366, "height": 700,
    "pixel_ratio": 1, "cross_origin_isolated": True, "refresh_hz": 59.9,
}  # fmt: skip


def an_hour_later() -> datetime:
    """Return the moment at which a session that just began finishes: the tests' participants answer in no time."""
    return datetime.now(UTC) + timedelta(hours=1)


@dataclass
class Answer:
    status: int
    body: Any
    headers: http.client.HTTPMessage
    text: str


@dataclass
class Caller:
    """A browser's side of the wire, over one kept connection."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    connection: http.client.HTTPConnection | None = None

    def send(
        self, method: str, path: str, body: object = None, *, raw: bytes | None = None, **headers: str
    ) -> Answer:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json", "X-Wrods": "1"} if data is not None else {}
        given |= self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connection.request(method, path, body=data, headers={k: v for k, v in given.items() if v})
        response = self.connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return Answer(response.status, json.loads(text) if is_json else None, response.headers, text)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: object = None, **rest: Any) -> Answer:
        return self.send("POST", path, body, **rest)


def agreement(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what a page sends of an agreement to take part."""
    versions = [screen["version"] for screen in plan["screens"] if screen["kind"] == "consent"]
    return {"agreed": True, "version": versions[0] if versions else None}


@dataclass
class Participant:
    """Someone who began a session and can answer its trials."""

    caller: Caller
    base: str
    token: str
    plan: dict[str, Any]
    session_id: str
    status: int
    done: list[list[int]]
    has_agreed: bool = False

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def agreement(self) -> dict[str, Any]:
        return agreement(self.plan)

    def trials(self) -> list[dict[str, Any]]:
        return [trial for screen in self.plan["screens"] for trial in screen.get("trials", ())]

    def payload(self, index: int, **changed: Any) -> dict[str, Any]:
        step = self.trials()[index]["steps"][-1]
        return {
            "client_uuid": str(uuid.uuid5(uuid.UUID(self.session_id), str(index))), "trial_index": index,
            "attempt": 1, "response_raw": step["labels"][0], "timed_out": False, "rt": 812.3 + index,
            "onset_ts": 10234.1, "paint_ts": 10238.0, "response_ts": 11046.4 + index, "handler_ts": 11047.0 + index,
            "frame_period": 16.67, "dropped_frames": 0, "hidden_ms": 0, "blurred_ms": 0, "regions": [],
            "plugin_version": "wrods-choose 0.1.0", "created_at": "2026-11-21T10:00:00.000Z",
        } | changed  # fmt: skip

    def agree(self) -> None:
        """Agree to take part, once, where the study asks for it."""
        if not self.has_agreed and any(screen["kind"] == "consent" for screen in self.plan["screens"]):
            self.event("consent", self.agreement)

    def answer(self, index: int, **changed: Any) -> Answer:
        self.agree()
        return self.caller.post(f"{self.base}/trials", self.payload(index, **changed), **self.auth)

    def event(self, kind: str, detail: object = None, client_uuid: str | None = None) -> Answer:
        body = {"client_uuid": client_uuid or str(uuid.uuid4()), "kind": kind, "detail": detail or {}}
        self.has_agreed = self.has_agreed or body["detail"] == self.agreement
        return self.caller.post(f"{self.base}/events", body, **self.auth)

    def finish(self, trials: int) -> Answer:
        return self.caller.post(f"{self.base}/finish", {"trials": trials}, **self.auth)


@dataclass
class Running:
    """A served study."""

    port: int
    app: Flask
    store: Store
    service: StudyService
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def caller(self) -> Caller:
        return Caller(self.port)

    def opening(self, **body: Any) -> Answer:
        given = {"client_uuid": str(uuid.uuid4()), "participant": None, "platform": {}, "client": CLIENT}
        if self.service.ask_participant and not body.keys() & {"participant", "pass"}:
            given["participant"] = f"P{next(self.numbers):03d}"
        return self.caller().post(f"/api/{self.service.study}/sessions", given | body)

    def make_pass(self, kind: str) -> str:
        passes = self.app.extensions["wrods"].passes
        return str(passes.make(self.service.study, kind))

    def begin(self, **body: Any) -> Participant:
        told = self.opening(**body)
        assert told.status in (200, 201), told.text
        base = f"/api/{self.service.study}/sessions/{told.body['session_id']}"
        return Participant(
            self.caller(), base, told.body["token"], told.body["plan"], told.body["session_id"],
            told.status, told.body["done"],
        )  # fmt: skip


@pytest.fixture
def caller_at() -> Callable[[int], Caller]:
    """Return a function that gives a browser's side of the wire to a port."""
    return Caller


@pytest.fixture
def settings() -> PeopleSettings:
    return PeopleSettings(password_hash=PASSWORD_HASH, secret=b"a signing key for tests")


@pytest.fixture
def serve_study(settings: PeopleSettings) -> Iterator[Callable[..., Running]]:
    """Return a function that serves a study, with settings and parts of the service changed at will."""
    with ExitStack() as running:

        def run(
            study: Study, *, config: dict[str, Any] | None = None, behind_proxy: bool = False, **changed: Any
        ) -> Running:
            store = running.enter_context(open_store(study.folder))
            service = replace(service_for(study, store), **{"clock": an_hour_later} | changed)
            app = create_app({service.study: service}, config=replace(settings, **(config or {})))
            set_lab(app, Lab(pin=PIN))
            server = StudyServer(app, "127.0.0.1", 0, behind_proxy=behind_proxy)
            threading.Thread(target=server.run, daemon=True).start()
            running.callback(app.extensions["wrods"].cleaning.close)
            running.callback(server.close)
            return Running(server.port, app, store, service)

        yield run


@pytest.fixture
def site(make_study: Callable[..., Study], serve_study: Callable[..., Running]) -> Running:
    """The small study with two lists, four test trials behind one practice trial."""
    return serve_study(make_study())


@dataclass
class Process:
    """``wrods serve`` as a process of its own that can be killed and started again on the same port."""

    folder: Path
    program: tuple[str, ...] = ("-m", "experiment.cli")
    public: str = ""
    port: int = 0
    running: subprocess.Popen[str] | None = None
    said: str = ""

    def start(self) -> None:
        command = [sys.executable, *self.program, "serve", str(self.folder), "--no-browser"]
        command += ["--public", self.public] if self.public else []
        environment = os.environ | {
            "WRODS_PASSWORD": PASSWORD,
            "WRODS_SECRET": "a signing key that outlives the process",
        }
        self.running = subprocess.Popen(
            [*command, "--port", str(self.port)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment,
        )  # fmt: skip
        assert self.running.stdout is not None
        found = (re.search(r":(\d+)/small/", line) for line in self.running.stdout)
        shown = next(int(address[1]) for address in found if address)
        self.port = self.port or shown

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.said += self.running.communicate()[0]
            self.running = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/small/"


@pytest.fixture
def serve_process() -> Iterator[Callable[..., Process]]:
    """Return a function that serves a study's folder from a process of its own, by the command or another program."""
    with ExitStack() as processes:

        def run(folder: Path, *program: str, public: str = "", port: int = 0) -> Process:
            process = Process(folder, program or Process.program, public, port)
            process.start()
            processes.callback(process.kill)
            return process

        yield run
