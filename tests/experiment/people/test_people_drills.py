"""Faults made on purpose while people answer at a real ``wrods serve``: every answer that was confirmed is in the store, once.

Each drill counts what it did and holds it against its row of ``drills.json``, from which docs/drills.md is written.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import itertools
import os
import random
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiment.cli import main
from experiment.people.connections import CallerLimits, raise_file_limit
from experiment.store import open_store
from experiment.store import records as q
from experiment.store.chain import chained_sessions, verify
from tests.experiment.people.conftest import PASSWORD, ROOT
from tests.experiment.people.drills import (
    LAST,
    TRIALS,
    Crowd,
    Ledger,
    Page,
    crowd,
    held_against,
    rows_of,
    study_of_twenty_trials,
)
from tests.experiment.people.shifted_clock import set_clock
from tests.experiment.postgres import restart_postgres
from tests.experiment.test_damaged_database import damage

FULL = pytest.mark.full
PEOPLE = 8
DAY = 86_400.0


@pytest.fixture
def held(request: pytest.FixtureRequest) -> Callable[[int, int], None]:
    """Return a function that holds what a drill counted against its row, and called again against its next one."""
    left = rows_of(request)
    return lambda confirmed, lost: held_against(left.pop(0), confirmed, lost)


@pytest.fixture
def many(caller_at: Any) -> Callable[[Callable[[], int]], contextlib.AbstractContextManager[Crowd]]:
    """Return a function that lets people take part at a port that may change."""
    return lambda port: crowd(PEOPLE, port, caller_at)


def health(port: int) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", "/health")
    return line.getresponse().status


def connect(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))


def test_an_answer_that_was_changed_doubled_or_dropped_counts_as_lost(site):
    person, ledger = site.begin(), Ledger()
    for index in range(4):
        assert person.answer(index).status == 201
        ledger.confirm(person.session_id, person.payload(index))
    folder = site.service.folder
    assert ledger.lost(folder) == 0
    changes = (
        "UPDATE trials SET response_raw = response_raw || ' ' WHERE trial_index = 0",
        "UPDATE trials SET attempt = 2, trial_index = 0 WHERE trial_index = 1",
        "UPDATE trials SET payload_hash = '' WHERE trial_index = 2",
    )
    for number, change in enumerate(changes, 1):
        with contextlib.closing(sqlite3.connect(folder / "study.db", isolation_level=None)) as plain:
            plain.execute(change)
        assert ledger.lost(folder) == number


def is_cut(line: socket.socket) -> bool:
    """Wait until the server has ended a connection; a server that does not is waited for in vain."""
    line.settimeout(60)
    with contextlib.suppress(ConnectionError):
        while line.recv(65_536):
            pass
    return True


# callers that take too much


@contextlib.contextmanager
def flooded(port: int) -> Iterator[None]:
    """Open 600 idle connections from each of four networks, and close and open one after another of them."""
    raise_file_limit()
    sources = [f"127.{network}.0.1" for network in range(1, 5)]
    lines = [connect(port, source) for _ in range(600) for source in sources]
    is_over = threading.Event()

    def go_on() -> None:
        for place in itertools.cycle(range(len(lines))):
            if is_over.wait(0.002):
                return
            lines[place].close()
            lines[place] = connect(port, sources[place % len(sources)])

    flood = threading.Thread(target=go_on)
    flood.start()
    try:
        yield
    finally:
        is_over.set()
        flood.join()
    beyond = len(lines) - len(sources) * CallerLimits().per_address
    waiting = select.poll()
    for line in lines:
        waiting.register(line, select.POLLIN | select.POLLRDHUP)
    end = time.monotonic() + 60
    while len(waiting.poll(0)) < beyond:
        assert time.monotonic() < end
        time.sleep(0.1)
    for line in lines:
        line.close()


@contextlib.contextmanager
def slowed(port: int) -> Iterator[None]:
    """Send 200 heads and 200 bodies a byte at a time; at the end each sender has been cut."""
    heads = [connect(port, f"127.5.0.{n % 40 + 1}") for n in range(200)]
    bodies = [connect(port, f"127.6.0.{n % 40 + 1}") for n in range(200)]
    for line in bodies:
        line.sendall(
            b"POST /api/small/sessions HTTP/1.1\r\nHost: h\r\nX-Wrods: 1\r\nContent-Length: 200000\r\n\r\n"
        )
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.wait(0.5):
            for line in (*heads, *bodies):
                with contextlib.suppress(OSError):
                    line.send(b"G")

    sender = threading.Thread(target=go_on)
    sender.start()
    try:
        yield
        assert all(is_cut(line) for line in (*heads, *bodies))
    finally:
        is_over.set()
        sender.join()


def sign_in(port: int, password: str, source: str) -> int:
    """Give a password at the dashboard from an address; return the status."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(source, 0))
    line.request("GET", "/admin/login")
    page = line.getresponse()
    form = re.search(r'name="csrf" value="([^"]+)"', page.read().decode())
    assert form is not None
    cookie = str(page.headers["Set-Cookie"]).partition(";")[0]
    head = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
    line.request("POST", "/admin/login", f"csrf={form[1]}&name=&password={password}", head)
    return line.getresponse().status


@contextlib.contextmanager
def guessed(port: int) -> Iterator[None]:
    """Guess passwords from 60 addresses and session tokens from another; none is right, and the owner still gets in."""
    told: Counter[int] = Counter()
    is_over = threading.Event()

    def passwords(number: int) -> None:
        for guess in itertools.count():
            if is_over.is_set():
                return
            told[sign_in(port, f"guess-{guess}", f"127.7.{number}.1")] += 1

    def tokens() -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=("127.8.0.1", 0))
        while not is_over.is_set():
            head = {"Authorization": f"Bearer {uuid.uuid4().hex}", "X-Wrods": "1"}
            line.request("POST", f"/api/small/sessions/{uuid.uuid4().hex}/trials", b"{}", head)
            reply = line.getresponse()
            reply.read()
            told[reply.status] += 1

    threads = [threading.Thread(target=passwords, args=(number,)) for number in range(60)]
    threads.append(threading.Thread(target=tokens))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert set(told) <= {401, 404, 429}, told
    assert told[429] and told[404]
    assert sign_in(port, PASSWORD, "127.9.0.1") == 302


@FULL
@pytest.mark.parametrize("attack", [flooded, slowed, guessed])
def test_people_answer_while_others_take_too_much(make_study, serve_process, many, held, attack):
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    with many(lambda: process.port) as people, attack(process.port):
        people.reach(PEOPLE * (TRIALS - LAST))
        confirmed = people.done()
    assert health(process.port) == 200
    held(confirmed, people.ledger.lost(folder))


# two who want the same


@FULL
def test_of_two_who_send_for_one_place_the_first_is_stored_and_the_other_refused(
    make_study, serve_process, caller_at, held
):
    folder = study_of_twenty_trials(make_study, "recruit: lab")
    process = serve_process(folder)
    ledger, together = Ledger(), threading.Barrier(PEOPLE)
    pages = [Page(caller_at(process.port), ledger, lambda: process.port, number) for number in range(PEOPLE)]

    def begin(page: Page) -> int:
        together.wait(60)
        body = {"client_uuid": str(uuid.uuid4()), "participant": "17"}
        told = page.send("/api/small/sessions", body)
        if told.status == 201:
            page.take(told.body)
        return int(told.status)

    with ThreadPoolExecutor(PEOPLE) as pool:
        # one number at eight computers at once
        assert Counter(pool.map(begin, pages)) == {201: 1, 403: PEOPLE - 1}
        (mine,) = [page for page in pages if page.session_id]
        mine.agree()

        def rival(page: Page) -> list[int]:
            """Answer every trial of the one session, each time with another answer than the other pages."""
            page.session_id, page.token = mine.session_id, mine.token
            told = []
            for index in range(TRIALS):
                together.wait(60)
                payload = {
                    "client_uuid": str(uuid.uuid4()), "trial_index": index, "attempt": 1, "timed_out": False,
                    "response_raw": f"page {page.number}", "created_at": "2026-11-21T10:00:00.000Z",
                }  # fmt: skip
                sent = page.send(f"{page.base}/trials", payload)
                told.append(sent.status)
                if sent.status == 201:
                    ledger.confirm(page.session_id, payload)
            return told

        told = Counter(itertools.chain.from_iterable(pool.map(rival, pages)))
    assert told == {201: TRIALS, 409: TRIALS * (PEOPLE - 1)}
    with open_store(folder) as store, store.read() as connection:
        kinds = Counter(event["kind"] for event in q.all_events(connection))
    assert kinds["trial_conflict"] == TRIALS * (PEOPLE - 1)
    held(len(ledger.confirmed), ledger.lost(folder))


# disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes, where this computer lets the tests mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@FULL
def test_a_disk_that_fills_up_makes_people_wait_until_there_is_room(
    make_study, small_disk, serve_process, many, held
):
    folder = study_of_twenty_trials(make_study)
    assert folder == small_disk
    process = serve_process(folder)
    with many(lambda: process.port) as people:
        people.reach(40)
        with (folder / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError) as full:
            while True:
                filler.write(b"x" * 65_536)
        assert full.value.errno == errno.ENOSPC
        people.ledger.wait(lambda: people.ledger.told["503"] >= PEOPLE)
        assert health(process.port) == 503
        (folder / "filler").unlink()
        confirmed = people.done()
    assert health(process.port) == 200
    held(confirmed, people.ledger.lost(folder))
    process.kill()
    assert " MB " in process.said and "réponse" not in process.said


@FULL
def test_files_that_may_not_grow_make_people_wait_until_they_may(make_study, serve_process, many, held):
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    with many(lambda: process.port) as people:
        people.reach(40)
        size = (folder / "study.db-wal").stat().st_size
        before = resource.prlimit(process.running.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        people.ledger.wait(lambda: people.ledger.told["503"] >= PEOPLE)
        resource.prlimit(process.running.pid, resource.RLIMIT_FSIZE, before)
        confirmed = people.done()
    held(confirmed, people.ledger.lost(folder))


def wrods(*arguments: object) -> str:
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    assert done.exit_code == 0, done.output
    return done.output


@FULL
def test_after_damage_the_backup_and_the_pages_that_are_open_give_answers_back(
    make_study, serve_process, many, caller_at, held
):
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    undecided, late = (
        Page(caller_at(process.port), Ledger(), lambda: process.port, PEOPLE + number) for number in range(2)
    )
    with many(lambda: process.port) as people:
        people.reach(40)
        undecided.begin()
        wrods("backup", folder)
        undecided.agree()
        undecided.answer(0)
        late.begin()
        late.agree()
        for index in range(TRIALS):
            late.answer(index)
        late.finish()
        process.kill()
        damage(folder / "study.db")
        refused = CliRunner().invoke(main, ["serve", str(folder), "--no-browser", "--port", "0"])
        named = re.search(r"wrods (restore .*)", refused.output)
        assert refused.exit_code == 1 and named is not None, refused.output
        wrods(*shlex.split(named[1]), "--yes")
        process.start()
        for index in range(1, TRIALS):
            undecided.answer(index)
        undecided.finish()
        people.ledger.confirmed |= undecided.ledger.confirmed
        confirmed = people.done()
    held(confirmed, people.ledger.lost(folder))
    held(len(late.ledger.confirmed), late.ledger.lost(folder))


# ends of processes


@pytest.mark.parametrize("end", ["SIGKILL", pytest.param("SIGTERM", marks=FULL)])
def test_a_server_that_is_ended_under_load_and_started_again_costs_no_answer(
    make_study, serve_process, many, held, end
):
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    with many(lambda: process.port) as people:
        people.reach(60)
        process.running.send_signal(signal.Signals[end])
        process.running.wait(60)
        assert (process.running.returncode == 0) == (end == "SIGTERM")
        assert Ledger(dict(people.ledger.confirmed)).lost(folder) == 0
        process.start()
        confirmed = people.done()
    with open_store(folder) as store, store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    held(confirmed, people.ledger.lost(folder))


@FULL
def test_a_second_server_of_the_same_folder_is_refused_and_the_first_goes_on(
    make_study, serve_process, many, held
):
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    with many(lambda: process.port) as people:
        people.reach(40)
        refused = CliRunner().invoke(main, ["serve", str(folder), "--no-browser", "--port", "0"])
        assert refused.exit_code == 1
        assert f" {process.running.pid} " in refused.output
        confirmed = people.done()
    held(confirmed, people.ledger.lost(folder))


@FULL
@pytest.mark.postgres
def test_of_two_servers_on_one_postgresql_either_may_be_killed(
    make_study, serve_process, many, held, postgres_url, monkeypatch
):
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    folder = study_of_twenty_trials(make_study)
    servers = [serve_process(folder), serve_process(folder)]
    turns = itertools.count()

    def port() -> int:
        return int(servers[next(turns) % len(servers)].port)

    with many(port) as people:
        people.reach(60)
        servers.pop().kill()
        confirmed = people.done()
    held(confirmed, people.ledger.lost(postgres_url))


def free_ports(number: int) -> list[int]:
    """Return ports at which nothing listens and that no outgoing connection is given (those lie above 32768)."""
    with contextlib.ExitStack() as held:
        free: list[int] = []
        for port in random.sample(range(20_000, 32_000), 100):
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                free.append(port)
            if len(free) == number:
                return free
    raise AssertionError("too few ports are free")


@contextlib.contextmanager
def caddy(port: int, servers: list[int], folder: Path) -> Iterator[None]:
    """Run Caddy with the file in ``deploy/``, changed as docs/online.md has it for two servers without containers."""
    page = (ROOT / "docs/online.md").read_text("utf-8")
    (block,) = re.findall(
        r"^\treverse_proxy 127\.0\.0\.1:8000 127\.0\.0\.1:8001 \{$.*?^\t\}$", page, re.M | re.S
    )
    for number, at in enumerate(servers):
        block = block.replace(f"127.0.0.1:800{number}", f"127.0.0.1:{at}")
    file = folder / "Caddyfile"
    text = (ROOT / "deploy/Caddyfile").read_text("utf-8")
    text = text.replace("{\n\tservers", "{\n\tadmin off\n\tservers").replace(
        "\treverse_proxy wrods:8000", block
    )
    file.write_text(text, "utf-8")
    homes = {name: str(folder / "caddy") for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    own = {"DOMAIN": f"http://127.0.0.1:{port}"}
    log = folder / "caddy.log"
    with log.open("wb") as output:
        running = subprocess.Popen(
            ["caddy", "run", "--config", file], env=os.environ | homes | own, stderr=output
        )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        assert running.poll() is None, log.read_text("utf-8")
        yield
    finally:
        running.terminate()
        running.wait(60)


@FULL
@pytest.mark.postgres
def test_behind_the_documented_proxy_either_of_two_servers_may_be_killed(
    make_study, serve_process, many, held, postgres_url, monkeypatch, tmp_path, require
):
    require("caddy", shutil.which("caddy"), "Caddy is not installed")
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    folder = study_of_twenty_trials(make_study)
    proxy, *ports = free_ports(3)
    with caddy(proxy, ports, tmp_path):
        servers = [serve_process(folder, public=f"http://127.0.0.1:{proxy}", port=port) for port in ports]
        with many(lambda: proxy) as people:
            people.reach(60)
            servers[0].kill()
            people.reach(90)
            servers[0].start()
            servers[1].kill()
            confirmed = people.done()
    held(confirmed, people.ledger.lost(postgres_url))


@FULL
@pytest.mark.postgres
@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_postgresql_that_is_restarted_under_load_makes_people_wait(
    make_study, serve_process, many, held, postgres_url, monkeypatch, how
):
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    folder = study_of_twenty_trials(make_study)
    process = serve_process(folder)
    with many(lambda: process.port) as people:
        for answers in (40, 90):
            people.reach(answers)
            restart_postgres(postgres_url, how)
        confirmed = people.done()
    held(confirmed, people.ledger.lost(postgres_url))


# clocks


@FULL
def test_a_server_s_clock_that_jumps_costs_no_answer(make_study, serve_process, many, held, tmp_path):
    within = "recruit: link, if_interrupted: {then: resume, within: 30 min}"
    folder = study_of_twenty_trials(make_study, within)
    clock = tmp_path / "clock"
    set_clock(clock, 0)
    process = serve_process(folder, str(Path(__file__).with_name("shifted_clock.py")), str(clock))
    with many(lambda: process.port) as people:
        people.reach(30)
        set_clock(clock, 3 * DAY)
        people.reach(60)
        set_clock(clock, -400 * DAY)
        people.reach(90)
        process.kill()
        process.start()
        people.reach(120)
        set_clock(clock, 0)
        confirmed = people.done()
    with open_store(folder) as store, store.read() as connection:
        assert {row["state"] for row in q.sessions_overview(connection)} == {"finished"}
        broken = [verify(connection, one).broken for one in chained_sessions(connection, "small")]
    assert broken == [None] * PEOPLE
    held(confirmed, people.ledger.lost(folder))
