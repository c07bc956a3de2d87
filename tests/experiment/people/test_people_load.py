"""Many at once, and a server that is killed while they answer."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from experiment.store import open_store
from experiment.store import queries as q
from stimuli.item import Item

ROOT = Path(__file__).resolve().parents[3]


def twenty_items() -> list[Item]:
    def item(number: int, level: str) -> Item:
        word = f"word{number:02d}"
        return Item(
            item_id=word, set_name="words", role="test", condition={"position": level}, shown={"word": f"{word} {level}"},
            intact={"word": word}, choices=(word, "other"), answer=word, covariates={"letters": 6},
            provenance={"source": "t", "source_id": word, "split": None, "licence": None, "operation": level, "seed": 7},
        )  # fmt: skip

    return [item(number, level) for number in range(20) for level in ("intact", "initial")]


@pytest.fixture
def long_study(make_study: Any) -> Any:
    practice = "  - practice: {items: practice.csv, feedback: true, pass: 50%}\n"
    return make_study((practice, ""), items=twenty_items())


@pytest.mark.parametrize("people", [10, pytest.param(50, marks=pytest.mark.full)])
def test_people_at_once_lose_no_trial_and_fill_lists_evenly(
    long_study: Any, serve_study: Any, people: int
) -> None:
    site = serve_study(long_study)
    together = threading.Barrier(people)

    def take_part(number: int) -> Counter[int]:
        together.wait(timeout=60)
        person = site.begin(participant=str(number))
        order = list(range(20)) + random.Random(number).sample(range(20), 5)
        random.Random(number).shuffle(order)
        statuses = Counter(person.answer(index).status for index in order)
        statuses[person.finish(20).status] += 1000
        return statuses

    with ThreadPoolExecutor(people) as pool:
        told = sum(pool.map(take_part, range(people)), Counter[int]())
    assert told == Counter({201: people * 20, 200: people * 5 + people * 1000})
    with site.store.read() as connection:
        sessions = q.sessions_overview(connection)
        keys = [(row["session_id"], row["trial_index"]) for row in q.trials_with_scores(connection)]
    assert len(keys) == len(set(keys)) == people * 20
    assert {row["state"] for row in sessions} == {"finished"}
    assert len({row["reader"] for row in sessions}) == people
    filled = Counter(row["list_id"] for row in sessions)
    assert max(filled.values()) - min(filled.values()) <= 1
    assert set(filled) == set(site.service.list_ids)


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run ``wrods serve`` as a process of its own on a free port."""
    command = [sys.executable, "-m", "experiment.cli", "serve", str(folder), "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"WRODS_PASSWORD": "p"}
    )
    assert process.stdout is not None
    try:
        port = next(int(found[1]) for line in process.stdout if (found := re.search(r":(\d+)/small/", line)))
        yield process, port
    finally:
        process.kill()
        process.communicate()


def answer_until_dead(caller: Any, confirmed: list[tuple[str, int]]) -> None:
    body = {"client_uuid": str(uuid.uuid4()), "participant": uuid.uuid4().hex}
    try:
        opened = caller.post("/api/small/sessions", body).body
        base, auth = (
            f"/api/small/sessions/{opened['session_id']}",
            {"Authorization": f"Bearer {opened['token']}"},
        )
        agreed = {"client_uuid": str(uuid.uuid4()), "kind": "consent", "detail": {"agreed": True}}
        caller.post(f"{base}/events", agreed, **auth)
        for attempt in range(1, 1000):
            for index in range(20):
                payload = {
                    "client_uuid": str(uuid.uuid4()), "trial_index": index, "attempt": attempt,
                    "response_raw": "x" * 300, "timed_out": False, "created_at": "2026-11-21T10:00:00Z",
                }  # fmt: skip
                if caller.post(f"{base}/trials", payload, **auth).status == 201:
                    confirmed.append((opened["session_id"], attempt * 100 + index))
    except (OSError, HTTPException):
        return  # the server is gone


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_server_ended_under_load_loses_nothing_that_it_confirmed(
    long_study: Any, caller_at: Any, end: signal.Signals
) -> None:
    confirmed: list[tuple[str, int]] = []
    with served(long_study.folder) as (process, port):
        threads = [
            threading.Thread(target=answer_until_dead, args=(caller_at(port), confirmed), daemon=True)
            for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        while len(confirmed) < 300:
            time.sleep(0.02)
        process.send_signal(end)
        process.wait(timeout=60)
        for thread in threads:
            thread.join(timeout=60)
    with open_store(long_study.folder) as store, store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        stored = {
            (row["session_id"], row["attempt"] * 100 + row["trial_index"])
            for row in q.trials_with_scores(connection)
        }
    assert len(confirmed) >= 300
    assert set(confirmed) <= stored
    assert (process.returncode == 0) == (end == signal.SIGTERM)
