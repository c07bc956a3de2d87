"""Trials per second and waiting times of paced participants: our own endpoint beside oTree doing its own trials.

``python tests/benchmarks/bench_server.py [--seconds 20] [--store sqlite|URL [--servers 1]] [--only wrods|otree] [--people 200]``.
Each participant answers after a think time drawn from an exponential; all run on this machine in one asyncio client, ours first,
then oTree in an environment that pip makes and that is thrown away. Each row names the load averages when it ended. A trial of
ours is one JSON post, answered when it is on disk; one of oTree's is the form's post, its redirect and the next page: that is
what a participant of each waits for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import venv
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

ROOT = Path(__file__).resolve().parents[2]
OTREE = "otree==6.0.15"
TRIALS = 60
PACES = ((50, 1.0), (200, 1.0), (500, 2.5), (1000, 5.0))
"""Participants, and their mean think time in seconds."""
PEOPLE_A_NETWORK = 100
PASSWORD = "bench-password"
STUDY = """\
wrods: 1
study: bench
title: Bench
seed: 7
participants: {recruit: link}
materials: {words: words.csv}
procedure:
  - block:
      trial:
        - choose: {show: word, keys: [f, j], answer_by: text}
"""
SETTINGS = """\
SESSION_CONFIGS = [dict(name="bench", app_sequence=["bench"], num_demo_participants=1)]
SESSION_CONFIG_DEFAULTS = dict(real_world_currency_per_point=1.0, participation_fee=0.0, doc="")
PARTICIPANT_FIELDS = []
SESSION_FIELDS = []
LANGUAGE_CODE = "en"
REAL_WORLD_CURRENCY_CODE = "USD"
USE_POINTS = True
ADMIN_USERNAME = "admin"
ADMIN_PASSWORD = "bench-password"
DEMO_PAGE_INTRO_HTML = ""
SECRET_KEY = "bench"
ROOMS = []
"""
APP = f"""\
from otree.api import *

class C(BaseConstants):
    NAME_IN_URL = "bench"
    PLAYERS_PER_GROUP = None
    NUM_ROUNDS = {TRIALS}

class Subsession(BaseSubsession):
    pass

class Group(BaseGroup):
    pass

class Player(BasePlayer):
    response = models.StringField()

class Trial(Page):
    form_model = "player"
    form_fields = ["response"]

page_sequence = [Trial]
"""
PAGE = "{{ block title }}engine jumps all night{{ endblock }}{{ block content }}{{ formfields }}{{ next_button }}{{ endblock }}"
Answer = Callable[[], Awaitable[None]]
Paces = list[tuple[int, float]]


@dataclass
class Waits:
    """How long participants waited for their trials once all were under way (seconds), how many were answered, what failed."""

    seconds: list[float] = field(default_factory=list)
    answered: int = 0
    failures: list[str] = field(default_factory=list)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def process(
    command: list[str], folder: Path, port: int, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; wait until it listens."""
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=os.environ | environment)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                if server.poll() is not None:
                    raise RuntimeError((folder / "server.log").read_text())
                time.sleep(0.1)
            yield server
        finally:
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and its children, seconds."""
    total = 0.0
    for one in [pid, *_children(pid)]:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                found += [int(child), *_children(int(child))]
    return found


async def paced(people: list[Answer], think_s: float, seconds: float) -> Waits:
    """Let everybody answer at their own pace for so long, after a fifth of that time to get going."""
    waits = Waits()
    begin = time.monotonic()

    async def one(number: int, answer: Answer) -> None:
        draw = random.Random(number)
        # drawn like every later one, so that trials arrive at one rate from the start
        await asyncio.sleep(draw.expovariate(1 / think_s))
        while time.monotonic() - begin < seconds * 1.2:
            asked = time.monotonic()
            try:
                await answer()
            except StopAsyncIteration:
                return
            except Exception as error:  # every failure is a row of the table
                waits.failures.append(repr(error)[:200])
                return
            waits.answered += 1
            if asked - begin > seconds * 0.2:
                waits.seconds.append(time.monotonic() - asked)
            await asyncio.sleep(draw.expovariate(1 / think_s))

    await asyncio.gather(*(one(number, answer) for number, answer in enumerate(people)))
    return waits


async def ours(http: aiohttp.ClientSession, base: str) -> Answer:
    """Begin a session on our server; return what answers its next trial."""
    head = {"X-Wrods": "1"}
    body = {"client_uuid": str(uuid.uuid4())}
    async with http.post(f"{base}/sessions", json=body, headers=head) as reply:
        reply.raise_for_status()
        opened = await reply.json()
    head["Authorization"] = f"Bearer {opened['token']}"
    session = f"{base}/sessions/{opened['session_id']}"
    # as a page does that shows instructions before the trials
    seen = {"client_uuid": str(uuid.uuid4()), "kind": "instructions", "detail": {}}
    async with http.post(f"{session}/events", json=seen, headers=head) as reply:
        reply.raise_for_status()
    trials = iter([trial for screen in opened["plan"]["screens"] for trial in screen.get("trials", ())])

    async def answer() -> None:
        trial = next(trials, None)
        if trial is None:
            raise StopAsyncIteration
        payload = {
            "client_uuid": str(uuid.uuid4()), "trial_index": trial["trial_index"], "attempt": 1,
            "response_raw": trial["steps"][-1]["labels"][0], "timed_out": False, "rt": 812.3, "onset_ts": 10234.1,
            "paint_ts": 10238.0, "response_ts": 11046.4, "handler_ts": 11047.0, "frame_period": 16.67, "dropped_frames": 0,
            "hidden_ms": 0, "blurred_ms": 0, "regions": [], "plugin_version": "wrods-choose 0.1.0",
            "created_at": "2026-11-21T10:00:00.000Z",
        }  # fmt: skip
        async with http.post(f"{session}/trials", json=payload, headers=head) as reply:
            if reply.status != 201:
                raise RuntimeError(f"{reply.status} {await reply.text()}")

    return answer


async def otrees(http: aiohttp.ClientSession, start: str) -> Answer:
    """Begin a participant on oTree; return what submits the page that is shown and loads the next."""
    async with http.get(start) as reply:
        reply.raise_for_status()
        await reply.read()
        place = str(reply.url)

    async def answer() -> None:
        nonlocal place
        if "/Trial/" not in place:
            raise StopAsyncIteration
        async with http.post(place, data={"response": "f"}) as reply:
            reply.raise_for_status()
            await reply.read()
            place = str(reply.url)

    return answer


def row(name: str, people: int, think_s: float, seconds: float, waits: Waits, cpu: float) -> str:
    loads = " ".join(f"{load:.1f}" for load in os.getloadavg()[:2])
    if not waits.seconds:
        return f"| {name} | {people} | {think_s:g} s | 0 | | | | | {len(waits.failures)} | {loads} |"
    ordered = sorted(waits.seconds)
    p50, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    rate = len(ordered) / seconds
    # answers of the fifth in which everybody gets going cost time as well
    each = 1000 * cpu / waits.answered
    return (
        f"| {name} | {people} | {think_s:g} s | {rate:.0f} | {1000 * p50:.0f} | {1000 * p99:.0f} | "
        f"{1000 * ordered[-1]:.0f} | {each:.2f} | {len(waits.failures)} | {loads} |"
    )


async def run_ours(folder: Path, seconds: float, store: str, servers: int, paces: Paces) -> None:
    rows = "".join(f"word{chr(97 + i // 26)}{chr(97 + i % 26)},other{i}\n" for i in range(TRIALS))
    (folder / "words.csv").write_text("word,foil\n" + rows, "utf-8")
    (folder / "study.yaml").write_text(STUDY, "utf-8")
    (folder / "config" / "wrods").mkdir(parents=True)
    (folder / "config" / "wrods" / "config.toml").write_text("[serve]\nentries_per_minute = 1000000\n")
    (folder / "config" / "wrods" / "config.toml").chmod(0o600)
    environment = {
        "XDG_CONFIG_HOME": str(folder / "config"),
        "WRODS_PASSWORD": PASSWORD,
        "PYTHONPATH": str(ROOT),
    }
    if store != "sqlite":
        environment["WRODS_STORE"] = store
    wrods = [sys.executable, "-m", "experiment.cli"]
    subprocess.run(
        [*wrods, "build", "."], cwd=folder, env=os.environ | environment, check=True, capture_output=True
    )
    environment["WRODS_SECRET"] = "a signing key that all servers of the study have"
    with contextlib.ExitStack() as running:
        ports = [free_port() for _ in range(servers)]
        processes = [
            running.enter_context(
                process(
                    [*wrods, "serve", ".", "--port", str(port), "--no-browser"], folder, port, **environment
                )
            )
            for port in ports
        ]
        for number, think_s in paces:
            async with contextlib.AsyncExitStack() as networks:
                # the server limits what one address or network may use, so people come from several
                https = [
                    await networks.enter_async_context(
                        aiohttp.ClientSession(
                            connector=aiohttp.TCPConnector(limit=0, local_addr=(f"127.0.{net}.1", 0))
                        )
                    )
                    for net in range(1, 1 + -(-number // PEOPLE_A_NETWORK))
                ]
                people = [
                    await ours(
                        https[person % len(https)], f"http://127.0.0.1:{ports[person % servers]}/api/bench"
                    )
                    for person in range(number)
                ]
                before = sum(cpu_seconds(server.pid) for server in processes)
                waits = await paced(people, think_s, seconds)
                cpu = sum(cpu_seconds(server.pid) for server in processes) - before
            name = "wrods, SQLite" if store == "sqlite" else f"wrods, PostgreSQL, {servers} server(s)"
            print(row(name, number, think_s, seconds, waits, cpu), flush=True)
            for failure in waits.failures[:2]:
                print(f"  {failure}", file=sys.stderr)


async def run_otree(folder: Path, seconds: float, paces: Paces) -> None:
    venv.create(folder / "venv", with_pip=True)
    subprocess.run([folder / "venv" / "bin" / "pip", "install", "-q", OTREE], check=True, capture_output=True)
    (folder / "settings.py").write_text(SETTINGS)
    for made in ("bench", "_static", "_templates"):
        (folder / made).mkdir()
    (folder / "bench" / "__init__.py").write_text(APP)
    (folder / "bench" / "Trial.html").write_text(PAGE)
    environment = {"OTREE_PRODUCTION": "1", "OTREE_ADMIN_PASSWORD": PASSWORD, "OTREE_REST_KEY": PASSWORD}
    otree = str(folder / "venv" / "bin" / "otree")
    subprocess.run(
        [otree, "resetdb", "--noinput"],
        cwd=folder,
        env=os.environ | environment,
        check=True,
        capture_output=True,
    )
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    environment["PATH"] = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with process([otree, "prodserver", str(port)], folder, port, **environment) as server:
        for number, think_s in paces:
            async with aiohttp.ClientSession(headers={"otree-rest-key": PASSWORD}) as http:
                body = {"session_config_name": "bench", "num_participants": number}
                async with http.post(f"{base}/api/sessions", json=body) as reply:
                    reply.raise_for_status()
                    made = await reply.json()
            browsers = [
                aiohttp.ClientSession(
                    cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=aiohttp.ClientTimeout(60)
                )
                for _ in range(number)
            ]
            try:
                people = [await otrees(browser, made["session_wide_url"]) for browser in browsers]
                before = cpu_seconds(server.pid)
                waits = await paced(people, think_s, seconds)
                print(
                    row("oTree, SQLite", number, think_s, seconds, waits, cpu_seconds(server.pid) - before),
                    flush=True,
                )
            finally:
                for browser in browsers:
                    await browser.close()


async def main(seconds: float, store: str, servers: int, only: str | None, paces: Paces) -> None:
    print(
        "| server | people | think time | trials/s | p50 ms | p99 ms | max ms | server CPU ms a trial | failures "
        "| load 1, 5 min |"
    )
    print("|" + " --- |" * 10)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("ours", "otree"):
            (folder / name).mkdir()
        if only != "otree":
            await run_ours(folder / "ours", seconds, store, servers, paces)
        if only != "wrods":
            await run_otree(folder / "otree", seconds, paces)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="measured time a row")
    parser.add_argument("--rounds", type=int, default=1, help="how often each row is measured")
    parser.add_argument("--only", choices=["wrods", "otree"], help="one of the two servers")
    parser.add_argument(
        "--people",
        type=int,
        action="append",
        choices=[people for people, _ in PACES],
        help="some of the rows",
    )
    parser.add_argument(
        "--store", default="sqlite", help="sqlite, or the URL of an empty PostgreSQL database"
    )
    parser.add_argument(
        "--servers", type=int, default=1, help="server processes that share a PostgreSQL database"
    )
    given = parser.parse_args()
    chosen = [pace for pace in PACES for _ in range(given.rounds) if pace[0] in (given.people or dict(PACES))]
    asyncio.run(main(given.seconds, given.store, given.servers, given.only, chosen))
