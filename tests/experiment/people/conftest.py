"""A small study on a real server at a real socket, with a real SQLite file."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Select, select, update
from werkzeug.routing import Rule

from experiment.bundle import bundle_folder
from experiment.people.app import create_app
from experiment.people.connections import listen
from experiment.people.dashboard import sign_ins
from experiment.people.dashboard.authentication import _form_token
from experiment.people.lab.settings import Lab, set_lab
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.server import StudyServer
from experiment.people.service import PeopleSettings, StudyService, service_for
from experiment.store import Store, open_store, records
from experiment.store.tables import metadata, sessions
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item
from tests.conftest import new_context
from tests.experiment.postgres import postgres_cluster, postgres_url

__all__ = ["postgres_cluster", "postgres_url"]
ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse"
PIN = "4711"
PASSWORD_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
CLIENT = {
    "browser": "Chrome 140", "system": "Linux", "device": "computer", "width": 1366, "height": 700,
    "pixel_ratio": 1, "cross_origin_isolated": True, "refresh_hz": 59.9,
}  # fmt: skip


PROLIFIC = {
    "PROLIFIC_PID": "5e9088a8a4b6ed018b45ba7b",
    "STUDY_ID": "671b8ae84509b9a624b95e13",
    "SESSION_ID": "671b8e95b17f88050648883e",
}
MTURK = {"workerId": "A1B2C3", "assignmentId": "3XYZ", "hitId": "3HIT"}
CODES = {"complete": "C1DONE", "no_consent": "C2NOCON", "screened_out": "C3OUT", "failed_checks": "C4CHECK"}


def prolific_id(name: str) -> str:
    """Return an id of the form that Prolific's have."""
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def word_items(
    number: int, word: str = "word{:02d}", choices: tuple[str, ...] | None = None, answer: str | None = None
) -> list[Item]:
    """Return so many items of one word in each condition; the right answer is the word, or what is given."""

    def item(place: int, level: str) -> Item:
        own = word.format(place)
        return Item(
            item_id=own, set_name="words", role="test", condition={"position": level},
            shown={"word": f"word{place:02d} {level}"}, intact={"word": own}, choices=choices or (own, "other"),
            answer=answer or own, covariates={"letters": 6},
            provenance={"source": "t", "source_id": own, "split": None, "licence": None, "operation": level, "seed": 7},
        )  # fmt: skip

    return [item(place, level) for place in range(number) for level in ("intact", "initial")]


def settings_of(participants: str) -> tuple[str, str]:
    """Return the change of the small study that gives it these settings of participants."""
    return ("seed: 7\n", f"seed: 7\nparticipants: {{{participants}}}\n")


WITHOUT_BREAKS = ("      break_every: 2\n", "")
WITHOUT_PRACTICE = ("  - practice: {items: practice.csv, feedback: true, pass: 50%}\n", "")


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

    def post(self, end: str, body: object = None, **headers: Any) -> Answer:
        return self.caller.post(f"{self.base}/{end}", body, **self.auth | headers)

    def answer(self, index: int, **changed: Any) -> Answer:
        self.agree()
        return self.post("trials", self.payload(index, **changed))

    def event(self, kind: str, detail: object = None, client_uuid: str | None = None) -> Answer:
        body = {"client_uuid": client_uuid or str(uuid.uuid4()), "kind": kind, "detail": detail or {}}
        self.has_agreed = self.has_agreed or body["detail"] == self.agreement
        return self.post("events", body)

    def tell(self, screen: str, answers: object, token: str | None = None) -> Answer:
        """Answer a screen of questions."""
        self.agree()
        body = {"client_uuid": token or str(uuid.uuid4()), "screen": screen, "answers": answers}
        return self.post("answers", body)

    def finish(self, trials: int) -> Answer:
        return self.post("finish", {"trials": trials})

    def leave(self) -> Answer:
        """Say, as a page does, that the session is over before its last trial."""
        return self.post("finish", {"trials": 0, "completed": False})

    def answer_all(self, **changed: Any) -> None:
        for index in range(len(self.trials())):
            assert self.answer(index, **changed).status == 201

    def complete(self) -> Answer:
        """Answer every trial and finish."""
        self.answer_all()
        return self.finish(len(self.trials()))

    def copy(self, *items: tuple[str, object], **changed: Any) -> dict[str, Any]:
        """Return the copy of answers and events that a page lets a participant download."""
        sent = [{"kind": kind, "body": body} for kind, body in items]
        told = {"study": "small", "session_id": self.session_id, "token": self.token}
        return {"wrods": 1, "kind": "answers", "items": sent} | told | changed


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
        return str(self.state.passes.make(self.service.study, kind))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/small/"

    @property
    def state(self) -> Any:
        """The parts of the server that its views share."""
        return self.app.extensions["wrods"]

    @property
    def sessions(self) -> list[dict[str, Any]]:
        return self.read(records.sessions_overview)

    @property
    def trials(self) -> list[dict[str, Any]]:
        return self.read(records.trials_with_scores)

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.read(records.all_events)

    def session(self, person: Participant | str) -> dict[str, Any]:
        """Return the whole row of a session that is there."""
        found = self.read(records.session, person if isinstance(person, str) else person.session_id)
        assert found is not None
        return found

    def planned(self, person: Participant | str) -> list[dict[str, Any]]:
        """Return a session's trials as the server planned them, with what is right."""
        return [one for screen in self.session(person)["plan"]["screens"] for one in screen.get("trials", ())]

    def rows(self, query: Any) -> list[Any]:
        """Return the rows of a query, a table or a column; values, not rows, where one column is asked for."""
        with self.store.read() as connection:
            found = connection.execute(query if isinstance(query, Select) else select(query))
            return list(found.scalars() if len(found.keys()) == 1 else found.all())

    def everything(self) -> str:
        """Return all that the store holds, in one text."""
        return repr([self.rows(table) for table in metadata.sorted_tables])

    def read(self, reading: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Return what the store says: a list where it is told row by row."""
        with self.store.read() as connection:
            found = reading(connection, *given, **more)
            return list(found) if isinstance(found, Iterator) else found

    def do(self, operation: Callable[[Any], Any]) -> Any:
        """Let the store's writer do something, and wait for it."""
        return self.store.write(operation).result()

    def change(self, person: Participant | None = None, **values: Any) -> None:
        """Change columns of one session, or of all."""
        query = update(sessions).values(**values)
        query = query if person is None else query.where(sessions.c.session_id == person.session_id)
        self.do(lambda connection: connection.execute(query).close())

    def begin(self, **body: Any) -> Participant:
        told = self.opening(**body)
        assert told.status in (200, 201), told.text
        base = f"/api/{self.service.study}/sessions/{told.body['session_id']}"
        return Participant(
            self.caller(), base, told.body["token"], told.body["plan"], told.body["session_id"],
            told.status, told.body["done"],
        )  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _compile_addresses_once() -> Iterator[None]:
    """Share Werkzeug's compiled URL builders among the applications of all tests: compiling takes most of making one."""
    compiled: dict[tuple[object, ...], Any] = {}
    compile_one = Rule._compile_builder

    def shared(rule: Rule, append_unknown: bool = True) -> Any:
        key = (rule.rule, rule.subdomain, rule.host, repr(rule.defaults), append_unknown)
        if key not in compiled:
            compiled[key] = compile_one(rule, append_unknown)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rule, "_compile_builder", shared)
        yield


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
            server = StudyServer(app, listen("127.0.0.1", 0), behind_proxy=behind_proxy)
            threading.Thread(target=server.run, daemon=True).start()
            running.callback(app.extensions["wrods"].cleaning.close)
            running.callback(server.close)
            return Running(server.port, app, store, service)

        yield run


@pytest.fixture
def site(make_study: Callable[..., Study], serve_study: Callable[..., Running]) -> Running:
    """The small study with two lists, four test trials behind one practice trial."""
    return serve_study(make_study())


@pytest.fixture
def prolific() -> dict[str, str]:
    return dict(PROLIFIC)


@pytest.fixture
def recruiting(make_study: Callable[..., Study], serve_study: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that serves the small study for a platform, with settings of participants and codes."""

    def run(
        recruit: str,
        codes: Mapping[str, object] | None = None,
        *changes: tuple[str, str],
        clock: Callable[[], datetime] = an_hour_later,
        config: dict[str, Any] | None = None,
        **participants: object,
    ) -> Any:
        given = {"recruit": recruit} | participants
        study = make_study(
            settings_of(", ".join(f"{name}: {value}" for name, value in given.items())), *changes
        )
        recruitment = recruitment_for(
            study, {"recruitment": {study.id: dict(CODES if codes is None else codes)}}
        )
        return serve_study(study, recruitment=recruitment, clock=clock, config=config)

    return run


@pytest.fixture
def tabs(chromium: Any) -> Iterator[Any]:
    """One browser of one person; its tabs share their storage, and an error on any of them fails the test at the end."""
    try:
        bundle_folder()
    except UserError as error:
        pytest.fail(str(error))
    context = new_context(chromium, accept_downloads=True)
    troubles: list[str] = []
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("console", lambda said: said.type == "error" and troubles.append(said.text))
    yield context
    context.close()
    # lost connections and refusals are part of what is tested
    assert [one for one in troubles if "ERR_" not in one and "Failed to load resource" not in one] == []


@pytest.fixture
def page(tabs: Any) -> Any:
    return tabs.new_page()


ACCOUNTS = {
    "ada": ("owner", "a long password"), "ben": ("assistant", "another long one"),
    "cora": ("rater", "the third password"), "dan": ("rater", "a fourth password"),
}  # fmt: skip


@dataclass
class Visitor:
    """A browser at the experimenter's pages: follows the forms that it finds."""

    client: FlaskClient

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(
            path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    def says(self, path: str) -> str:
        return words_of(self.get(path).text)

    def token(self) -> str:
        cookie = self.client.get_cookie("wrods_admin")
        return "" if cookie is None else _form_token(cookie.value)

    def post(self, path: str, **fields: Any) -> Any:
        return self.client.post(path, data={"csrf": self.token()} | fields)

    def sign_in(self, name: str, password: str) -> Any:
        self.client.get("/admin/login")
        return self.post("/admin/login", name=name, password=password)


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(sign_ins, "PasswordHasher", lambda: cheap)


@pytest.fixture
def people() -> dict[str, str]:
    """Accounts of every role in the tester's own configuration; name → password."""
    for name, (role, password) in ACCOUNTS.items():
        sign_ins.add_account(name, role, password)
    return {name: password for name, (_, password) in ACCOUNTS.items()}


@pytest.fixture
def visit(request: pytest.FixtureRequest, people: dict[str, str]) -> Callable[..., Visitor]:
    """Return a function that signs somebody in, at the served small study or another, and gives their browser."""

    def sign_in(name: str, at: Any = None) -> Visitor:
        visitor = Visitor((at or request.getfixturevalue("site")).app.test_client())
        password = PASSWORD if name == "" else people[name]
        assert visitor.sign_in(name, password).status_code == 302
        return visitor

    return sign_in


def words_of(page: str) -> str:
    """Return what a page says, without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def page_of(person: Participant, deed: str = "") -> str:
    """Return the address of a session's page, or of something to do there."""
    return f"/admin/small/sessions/{person.session_id[:12]}" + (f"/{deed}" if deed else "")


def config_of(page: str) -> dict[str, Any]:
    """Return what a page of a study tells its browser."""
    found = re.search(r'<script type="application/json" id="wrods-config">(.*?)</script>', page, re.S)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


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

    @property
    def trials(self) -> list[dict[str, Any]]:
        with open_store(self.folder) as store, store.read() as connection:
            return list(records.trials_with_scores(connection))

    @property
    def keys(self) -> list[tuple[int, int]]:
        return [(row["trial_index"], row["attempt"]) for row in self.trials]

    @property
    def sessions(self) -> list[dict[str, Any]]:
        with open_store(self.folder) as store, store.read() as connection:
            return records.sessions_overview(connection)

    @property
    def states(self) -> list[str]:
        return sorted(row["state"] for row in self.sessions)


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
