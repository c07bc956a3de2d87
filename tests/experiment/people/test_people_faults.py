"""Real server processes under load, beside a run of models, on either kind of store, and a disk that fills up."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from experiment.store import open_store
from experiment.store import queries as q
from tests.experiment.people.browsing import answer, into_block, item_shown, to_the_end
from tests.experiment.people.conftest import (
    ROOT,
    WITHOUT_BREAKS,
    WITHOUT_PRACTICE,
    agreement,
    settings_of,
    word_items,
)
from tests.experiment.people.drills import study_of_twenty_trials

TRIALS = 12


@pytest.fixture
def folder(make_study: Any) -> Path:
    readers = "{guesser: {use: 'baseline:random'}, oracle: {use: 'baseline:oracle'}}"
    models = ("design:\n", f"models: {{replicates: 6, who: {readers}}}\ndesign:\n")
    return study_of_twenty_trials(make_study, "recruit: link", models, trials=TRIALS)


def take_part(caller: Any, number: int) -> Counter[str]:
    """Answer every trial twice, in an order of one's own; say what was told to which request.

    Two hundred people at one address may together ask faster than one network is allowed to; they wait, as the page does.
    """

    def post(path: str, sent: object, **headers: str) -> Any:
        while (told := caller.post(path, sent, **headers)).status == 429:
            caller.connection = None
            time.sleep(int(told.headers["Retry-After"]))
        return told

    draw = random.Random(number)
    told: Counter[str] = Counter()
    body = {"client_uuid": f"client-{number:012d}"}
    opened = [post("/api/small/sessions", body) for _ in range(2)]
    told.update(f"begin {one.status}" for one in opened)
    session = opened[0].body
    base = f"/api/small/sessions/{session['session_id']}"
    auth = {"Authorization": f"Bearer {session['token']}"}
    trials = [trial for screen in session["plan"]["screens"] for trial in screen.get("trials", ())]
    detail = agreement(session["plan"])
    agreed = {"client_uuid": f"client-{number:06d}-consent", "kind": "consent", "detail": detail}
    assert post(f"{base}/events", agreed, **auth).status == 201
    order = [*trials, *trials]
    draw.shuffle(order)
    for trial in order:
        index = trial["trial_index"]
        payload = {
            "client_uuid": f"client-{number:06d}-{index:06d}", "trial_index": index, "attempt": 1,
            "response_raw": trial["steps"][-1]["labels"][0], "timed_out": False, "rt": 500.5 + index,
            "created_at": "2026-11-21T10:00:00.000Z",
        }  # fmt: skip
        told[f"trial {post(f'{base}/trials', payload, **auth).status}"] += 1
    told.update(f"finish {post(f'{base}/finish', {'trials': TRIALS}, **auth).status}" for _ in range(2))
    return told


def check_store(target: Path | str, people: int) -> None:
    with open_store(target) as store, store.read() as connection:
        sessions = [row for row in q.sessions_overview(connection) if row["reader_kind"] == "human"]
        of_people = {row["session_id"] for row in sessions}
        keys = [
            (row["session_id"], row["trial_index"], row["attempt"])
            for row in q.trials_with_scores(connection)
            if row["session_id"] in of_people
        ]
    assert len(sessions) == people
    assert {row["state"] for row in sessions} == {"finished"}
    assert len(keys) == len(set(keys)) == people * TRIALS
    filled = Counter(row["list_id"] for row in sessions)
    assert len(filled) == 2 and max(filled.values()) - min(filled.values()) <= 1
    assert sorted(row["reader"] for row in sessions) == [f"P{number:03d}" for number in range(1, people + 1)]


@pytest.mark.parametrize("people", [20, pytest.param(200, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_many_at_once_who_send_all_twice_and_out_of_order_lose_nothing(
    folder, serve_process, caller_at, request, monkeypatch, kind, people
):
    target = str(request.getfixturevalue("postgres_url")) if kind == "postgresql" else str(folder)
    if kind == "postgresql":
        monkeypatch.setenv("WRODS_STORE", target)
    process = serve_process(folder)
    together = threading.Barrier(people)

    def run(number: int) -> Counter[str]:
        together.wait(timeout=120)
        return take_part(caller_at(process.port), number)

    with ThreadPoolExecutor(people) as pool:
        told = sum(pool.map(run, range(people)), Counter[str]())
    assert told == {
        "begin 201": people, "begin 200": people, "trial 201": people * TRIALS, "trial 200": people * TRIALS,
        "finish 200": people * 2,
    }  # fmt: skip
    process.kill()
    check_store(target, people)


def test_people_and_a_run_of_models_write_one_study_at_once(folder, serve_process, caller_at):
    people = 12
    process = serve_process(folder)
    command = [sys.executable, "-m", "experiment.cli", "run", str(folder)]
    models = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with ThreadPoolExecutor(people) as pool:
        each = pool.map(lambda number: take_part(caller_at(process.port), number), range(people))
        told = sum(each, Counter[str]())
    said, _ = models.communicate(timeout=300)
    assert models.returncode == 0, said
    assert told["trial 201"] == told["trial 200"] == people * TRIALS and told["finish 200"] == people * 2
    process.kill()
    assert "Dashboard" in process.said and "/api/" not in process.said, "requests are not logged"
    check_store(folder, people)
    with open_store(folder) as store, store.read() as connection:
        runs = [row for row in q.sessions_overview(connection) if row["reader_kind"] != "human"]
    assert len(runs) >= 12
    assert all(row["state"] == "finished" and row["n_trials"] == TRIALS for row in runs)


@pytest.mark.browser
def test_a_full_disk_is_a_wait_with_words_and_goes_on_when_there_is_room(make_study, serve_study, page):
    study = make_study(
        WITHOUT_PRACTICE, settings_of("recruit: link"), WITHOUT_BREAKS, items=word_items(TRIALS)
    )
    site = serve_study(study)

    def limit(pages: int) -> None:
        statement = f"PRAGMA max_page_count = {pages}"
        site.do(lambda connection: connection.exec_driver_sql(statement).close())

    into_block(page, site.address)
    item_shown(page)
    limit(site.do(lambda c: int(c.exec_driver_sql("PRAGMA page_count").scalar_one())))
    answer(page, TRIALS)
    page.get_by_text("Waiting for the connection. Your answers are saved on this computer.").wait_for()
    assert len(site.trials) < TRIALS
    limit(1_000_000)
    assert to_the_end(page, 0)
    assert [(row["trial_index"], row["attempt"]) for row in site.trials] == [(n, 1) for n in range(TRIALS)]
