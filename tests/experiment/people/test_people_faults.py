"""Real server processes under load, beside a run of models, on either kind of store."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from experiment.store import open_store
from experiment.store import records as q
from tests.experiment.people.conftest import ROOT
from tests.experiment.people.drills import Ledger, Page, study_of_twenty_trials

TRIALS = 8


@pytest.fixture
def folder(make_study: Any) -> Path:
    readers = "{guesser: {use: 'baseline:random'}, oracle: {use: 'baseline:oracle'}}"
    models = ("design:\n", f"models: {{replicates: 2, who: {readers}}}\ndesign:\n")
    return study_of_twenty_trials(make_study, "recruit: link", models, trials=TRIALS)


def all_take_part(port: int, people: int, caller_at: Callable[[int], Any]) -> Ledger:
    """Let people begin, answer every trial and finish at once, each request sent twice, in an order of each one's own."""
    ledger, together = Ledger(), threading.Barrier(people)

    def take_part(number: int) -> None:
        page = Page(caller_at(port), ledger, lambda: port, number)
        together.wait(timeout=120)
        opened = [
            page.send("/api/small/sessions", {"client_uuid": f"client-{number:012d}"}) for _ in range(2)
        ]
        page.take(opened[0].body)
        page.agree()
        order = 2 * [page.payload(index) for index in range(TRIALS)]
        random.Random(number).shuffle(order)
        for payload in order:
            page.deliver(payload)
        for _ in range(2):
            page.send(f"{page.base}/finish", {"trials": TRIALS})

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(take_part, range(people)))
    # many at one address may together ask faster than one network is allowed to; they wait, as the page does
    told = {status: number for status, number in ledger.told.items() if status not in ("429", "no reply")}
    assert told == {"201": people * (2 + TRIALS), "200": people * (3 + TRIALS)}
    return ledger


def check_store(target: Path | str, people: int, ledger: Ledger) -> None:
    assert len(ledger.confirmed) == people * TRIALS and ledger.lost(target) == 0
    with open_store(target) as store, store.read() as connection:
        sessions = [row for row in q.sessions_overview(connection) if row["reader_kind"] == "human"]
    assert len(sessions) == people
    assert {(row["state"], row["n_trials"]) for row in sessions} == {("finished", TRIALS)}
    filled = Counter(row["list_id"] for row in sessions)
    assert len(filled) == 2 and max(filled.values()) - min(filled.values()) <= 1
    assert sorted(row["reader"] for row in sessions) == [f"P{number:03d}" for number in range(1, people + 1)]


@pytest.mark.parametrize(
    ("kind", "people"),
    [
        ("sqlite", 20),
        pytest.param("postgresql", 20, marks=pytest.mark.postgres),
        pytest.param("sqlite", 100, marks=pytest.mark.full),
    ],
)
def test_many_at_once_who_send_all_twice_and_out_of_order_lose_nothing(
    folder, serve_process, caller_at, request, monkeypatch, kind, people
):
    target = str(request.getfixturevalue("postgres_url")) if kind == "postgresql" else str(folder)
    if kind == "postgresql":
        monkeypatch.setenv("WRODS_STORE", target)
    process = serve_process(folder)
    ledger = all_take_part(process.port, people, caller_at)
    process.kill()
    check_store(target, people, ledger)


def test_people_and_a_run_of_models_write_one_study_at_once(folder, serve_process, caller_at):
    people = 12
    process = serve_process(folder)
    command = [sys.executable, "-m", "experiment.cli", "run", str(folder)]
    models = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ledger = all_take_part(process.port, people, caller_at)
    said, _ = models.communicate(timeout=300)
    assert models.returncode == 0, said
    process.kill()
    assert "Dashboard" in process.said and "/api/" not in process.said, "requests are not logged"
    check_store(folder, people, ledger)
    with open_store(folder) as store, store.read() as connection:
        runs = [row for row in q.sessions_overview(connection) if row["reader_kind"] != "human"]
    assert len(runs) >= 4
    assert all(row["state"] == "finished" and row["n_trials"] == TRIALS for row in runs)
