"""Stations answering at once: the server of ``serve --lan`` over https and http, compared with waitress on the same trials.

``python tests/benchmarks/bench_stations.py [--rounds 30]``. All stations post a trial at the same instant, wait until the last
reply is in, and post the next: the worst that a class can do to its server. Each reply comes when the trial is on disk. Waitress is
measured where it is installed.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STATIONS = (20, 60)
STUDY = """\
wrods: 1
study: bench
title: Bench
seed: 7
participants: {recruit: lab}
materials: {words: words.csv}
procedure:
  - block:
      trial:
        - choose: {show: word, keys: [f, j], answer_by: text}
"""


def make_study(folder: Path, trials: int) -> Path:
    """Write and build a study of one long block."""
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY, "utf-8")
    rows = "".join(f"w{number},word{number},other{number}\n" for number in range(trials))
    (folder / "words.csv").write_text("item,word,foil\n" + rows, "utf-8")
    subprocess.run(
        [sys.executable, "-m", "experiment.cli", "build", str(folder)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder


def serve(folder: str, kind: str) -> None:
    """Serve until standard input closes, telling port and certificate on the first line."""
    from experiment.checking import load_study
    from experiment.people.app import create_app
    from experiment.people.connections import listen
    from experiment.people.lab.serving import open_lab
    from experiment.people.server import StudyServer
    from experiment.people.service import PeopleSettings, service_for
    from experiment.store import open_store

    study = load_study(Path(folder))
    with open_store(study.folder) as store:
        settings = PeopleSettings(
            password_hash="", secret=b"a signing key for benches", entries_per_minute=10_000
        )
        app = create_app({study.id: service_for(study, store)}, config=settings)
        authority = ""
        if kind == "waitress":
            return serve_by_waitress(app)
        if kind == "alone":
            server: Any = StudyServer(app, listen("127.0.0.1", 0))
        else:
            at = open_lab(app, host="127.0.0.1", port=0, pin=None,
                          certificates=None if kind == "http" else study.folder / "lab", tell=lambda _: None)  # fmt: skip
            server = at.server
            authority = str(at.certificate.authority) if at.certificate else ""
        print(json.dumps([server.port, authority]), flush=True)
        threading.Thread(target=server.run, daemon=True).start()
        sys.stdin.read()
        server.close()


def serve_by_waitress(app: Any) -> None:
    """Serve with the peer, a server that is not installed with wrods: ``pip install waitress``."""
    from waitress.server import create_server

    server = create_server(app, host="127.0.0.1", port=0, threads=32, backlog=1024, connection_limit=1024)
    print(json.dumps([server.effective_port, ""]), flush=True)
    threading.Thread(target=server.run, daemon=True).start()
    sys.stdin.read()


class Station:
    """One browser with one kept connection."""

    def __init__(self, port: int, authority: str) -> None:
        self.connection = (
            http.client.HTTPSConnection(
                "127.0.0.1", port, context=ssl.create_default_context(cafile=authority)
            )
            if authority
            else http.client.HTTPConnection("127.0.0.1", port)
        )
        body = {"client_uuid": str(uuid.uuid4()), "participant": uuid.uuid4().hex}
        begun = self.post("/api/bench/sessions", body, None)
        self.address, self.token = f"/api/bench/sessions/{begun['session_id']}", begun["token"]
        self.waited: list[float] = []

    def post(self, path: str, body: dict[str, Any], token: str | None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "X-Wrods": "1"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.connection.request("POST", path, json.dumps(body), headers)
        answer = self.connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path}: {answer.status} {told}")
        return told

    def answer(self, index: int) -> None:
        payload = {
            "client_uuid": str(uuid.uuid4()), "trial_index": index, "attempt": 1, "response_raw": "f", "timed_out": False,
            "rt": 812.3, "onset_ts": 1000.0, "paint_ts": 1004.0, "response_ts": 1812.3, "handler_ts": 1813.0,
            "frame_period": 16.67, "dropped_frames": 0, "hidden_ms": 0, "blurred_ms": 0, "regions": [],
            "plugin_version": "bench 1", "created_at": "2026-11-21T10:00:00.000Z",
        }  # fmt: skip
        start = time.perf_counter()
        self.post(f"{self.address}/trials", payload, self.token)
        self.waited.append(1000 * (time.perf_counter() - start))


def measure(port: int, authority: str, count: int, rounds: int) -> list[float]:
    """Return what each reply took, milliseconds, sorted."""
    stations = [Station(port, authority) for _ in range(count)]
    gate = threading.Barrier(count)

    def sit(station: Station) -> None:
        for index in range(rounds):
            gate.wait()
            station.answer(index)

    seats = [threading.Thread(target=sit, args=(station,)) for station in stations]
    for seat in seats:
        seat.start()
    for seat in seats:
        seat.join()
    return sorted(wait for station in stations for wait in station.waited)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--serve", nargs=2)
    given = parser.parse_args()
    if given.serve:
        return serve(*given.serve)
    print(
        "| server | stations | replies | p50 ms | p99 ms | slowest ms |\n| --- | --- | --- | --- | --- | --- |"
    )
    names = {"alone": "this computer, http", "http": "--kiosk, http", "https": "--lan, https"}
    if importlib.util.find_spec("waitress") is not None:
        names = {"waitress": "waitress, http"} | names
    for kind, name in names.items():
        for count in STATIONS:
            with tempfile.TemporaryDirectory() as place:
                folder = make_study(Path(place) / "bench", given.rounds)
                command = [sys.executable, __file__, "--serve", str(folder), kind]
                environment = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                with subprocess.Popen(command, **environment) as server:  # type: ignore[call-overload]
                    port, authority = json.loads(server.stdout.readline())
                    waits = measure(port, authority, count, given.rounds)
                    server.stdin.close()
            share = [waits[int(len(waits) * part)] for part in (0.5, 0.99)]
            print(
                f"| {name} | {count} | {len(waits)} | {share[0]:.0f} | {share[1]:.0f} | {waits[-1]:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
