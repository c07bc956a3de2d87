"""A small server that speaks the participants' API of docs/contracts.md and misbehaves on demand."""

from __future__ import annotations

import json
import mimetypes
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from experiment.languages import pack_for
from experiment.people.headers import CONTENT_POLICY

CODE = "C0DE-4711"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/bundle/wrods.css">
<script type="module" src="/bundle/wrods.js"></script>
</head>
<body>
<header><h1>{title}</h1></header>
<main id="wrods-root"></main>
<script type="application/json" id="wrods-config">{config}</script>
</body>
</html>"""


@dataclass
class Sent:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    status: int | None = None


@dataclass
class ScriptedServer:
    """What a test sets (plan, config, troubles) and what it looks at afterwards (sent, trials, events)."""

    bundle: Path
    plan: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    stored: dict[str, dict[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    # Answers to questions by screen, and what the server says to them.
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    eligible: bool = True
    # What the server tells of trials, by trial_index, and how it goes on behind questions about instructions.
    verdicts: dict[int, str] = field(default_factory=dict)
    then: list[str] = field(default_factory=list)
    judged: dict[str, dict[str, Any]] = field(default_factory=dict)
    # How many of the next requests for an ending of the path get no reply at all, or this status.
    drop: dict[str, int] = field(default_factory=dict)
    reply_with: dict[str, list[int]] = field(default_factory=dict)
    lose_trials: int = 0
    # Files of items by name, and how many requests for each get nothing before it comes.
    media: dict[str, bytes] = field(default_factory=dict)
    withheld: dict[str, int] = field(default_factory=dict)
    # Sessions that were erased at their reader's wish.
    erased: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    address: str = ""

    @property
    def trials(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Rows of the first session: (trial_index, attempt) → payload."""
        return self.stored.setdefault("s1", {})

    def page(self) -> str:
        pack = pack_for(self.plan["language"])
        config = {
            "api": "/api/demo",
            "media": "/media/",
            "study": "demo",
            "title": self.plan["title"],
            "language": self.plan["language"],
            "direction": pack.direction,
            "messages": pack.texts,
            "mode": "session",
            "participant": None,
            "platform": {},
            "ask_participant": False,
            "preview_plan": None,
            **self.config,
        }
        text = json.dumps(config).replace("<", "\\u003c")
        return PAGE.format(title=self.plan["title"], config=text)

    def answer(self, sent: Sent) -> tuple[int, dict[str, Any]]:
        """Reply to an API request as the contract says."""
        parts = urlsplit(sent.path).path.strip("/").split("/")[2:]
        if sent.method == "POST" and sent.headers.get("x-wrods") != "1":
            return 400, {"error": "X-Wrods is missing"}
        if parts == ["sessions"]:
            self.opened.append(sent.body)
            count = len(self.opened)
            told = {"session_id": f"s{count}", "token": f"t{count}", "plan": self.plan, "done": []}
            return 201, told | {"participant": f"P00{count}"}
        session = parts[1]
        if session in self.erased:
            return 404, {"error": "no such session"}
        if sent.headers.get("authorization") != f"Bearer t{session.removeprefix('s')}":
            return 404, {"error": "no such session"}
        trials = self.stored.setdefault(session, {})
        done = [list(key) for key in trials]
        match parts[2:]:
            case []:
                return 200, {"session_id": session, "plan": self.plan, "done": done, "state": "running"}
            case ["trials"]:
                status, _ = self.take_trial(trials, sent.body)
                return status, {"feedback": self.verdicts.get(sent.body["trial_index"])}
            case ["events"]:
                if sent.body not in self.events:  # sent again where the reply was lost, stored once
                    self.events.append(sent.body)
                if sent.body["detail"] == {"agreed": False} or sent.body["detail"].get("then") == "delete":
                    self.erased.add(session)
                    return 201, {"erased": True}
                return 201, {}
            case ["answers"]:
                self.answers[sent.body["screen"]] = sent.body["answers"]
                if sent.body["client_uuid"] not in self.judged:  # the same again is answered alike
                    then = {"then": self.then.pop(0)} if self.then else {}
                    self.judged[sent.body["client_uuid"]] = {"eligible": self.eligible, **then}
                return 200, self.judged[sent.body["client_uuid"]]
            case ["resume"]:
                state = {"state": "started", "shown": []}
                return 200, {"session_id": session, "plan": self.plan, "done": done, **state}
            case ["lease"]:
                return 200, {"state": "started"}
            case ["finish"] if sent.body.get("completed") is False:
                return 200, {"completion_code": None}
            case ["finish"]:
                if sent.body["trials"] != len(trials):
                    return 409, {"stored": len(trials)}
                return 200, {"completion_code": CODE}
        return 404, {"error": "no such address"}

    def take_trial(
        self, trials: dict[tuple[int, int], dict[str, Any]], body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        key = (body["trial_index"], body["attempt"])
        if key in trials:
            return (200 if trials[key] == body else 409), {}
        if self.lose_trials:
            self.lose_trials -= 1  # acknowledged, yet not there: a fault that finishing must find
        else:
            trials[key] = body
        return 201, {}

    def posts(self, ending: str) -> list[Sent]:
        return [sent for sent in self.sent if sent.method == "POST" and sent.path.endswith(ending)]

    def event(self, kind: str) -> dict[str, Any]:
        return next(event["detail"] for event in self.events if event["kind"] == kind)


def request_class(scripted: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Request(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path.startswith("/api/"):
                self.api()
            elif path.startswith("/media/"):
                name = path.removeprefix("/media/")
                left = scripted.withheld.get(name, 0)
                scripted.withheld[name] = left - 1
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                self.reply(200, scripted.media[name], kind) if left < 1 else self.reply(
                    404, b"", "text/plain"
                )
            elif path.startswith("/bundle/"):
                file = scripted.bundle / path.removeprefix("/bundle/")
                kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
                self.reply(200, file.read_bytes(), kind) if file.is_file() else self.reply(
                    404, b"", "text/plain"
                )
            else:
                self.reply(200, scripted.page().encode(), "text/html; charset=utf-8")

        def do_POST(self) -> None:
            self.api()

        def api(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = Sent(self.command, self.path, headers, body)
            with scripted.lock:
                scripted.sent.append(sent)
                ending = self.path.rsplit("/", 1)[-1]
                if scripted.drop.get(ending, 0):
                    scripted.drop[ending] -= 1
                    self.close_connection = True
                    return
                scheduled = scripted.reply_with.get(ending)
                sent.status, reply = (scheduled.pop(0), {}) if scheduled else scripted.answer(sent)
            self.reply(sent.status, json.dumps(reply).encode(), "application/json")

        def reply(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Security-Policy", CONTENT_POLICY)
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Request


class Listening:
    """The server on a free port of this machine, as a context manager."""

    def __init__(self, scripted: ScriptedServer) -> None:
        self.scripted = scripted
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), request_class(scripted))
        self.http.daemon_threads = True

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=lambda: self.http.serve_forever(0.02), daemon=True).start()
        self.scripted.address = f"http://127.0.0.1:{self.http.server_port}"
        return self.scripted

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
