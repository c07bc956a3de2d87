"""Runs come through whatever happens to them: kills, sleep, lost servers and databases, full disks; once each, paid once."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select, update
from sqlalchemy.exc import OperationalError

from experiment.checking import load_study
from experiment.models.leases import leased
from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
from experiment.store import open_store
from experiment.store.tables import calls, runs, sessions
from stimuli.errors import UserError
from tests.experiment.models.running import (
    TRIALS,
    begin,
    done,
    invoke,
    money,
    of_store,
    remote,
    spread,
    status_of,
    stored,
    wait_until,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI

BLOCKS = 4
IN_A_BLOCK = TRIALS // 4 // BLOCKS
COST = 10e-6
"""US dollars a token, as the tests' models cost."""

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc, sets limits of a process"
)


def is_exact(target: Path | str, models: int) -> bool:
    """Say whether every trial of every model is stored once, with one answered call, in finished sessions."""
    trials = stored(target)
    answered = Counter(
        row["work_key"] for row in of_store(target, select(calls)) if row["status"] == "answered"
    )
    states = {row["state"] for row in of_store(target, select(sessions.c.state))}
    keys = {trial["work_key"] for trial in trials}
    return (
        len(trials) == len(keys) == models * TRIALS
        and set(answered) == keys
        and set(answered.values()) == {1}
        and states == {"finished"}
    )


@pytest.mark.full
def test_however_often_it_is_killed_each_trial_is_stored_once_and_no_money_is_forgotten(study, server):
    server.delay = 0.02
    with_models(study, remote("one", server), remote("two", server), budget="1 USD")
    draw = random.Random(3)
    for _ in range(4):
        running = begin("run", study)
        before = len(server.requests)
        most = before + draw.randrange(1, max(2, (2 * TRIALS - before) // 2))
        wait_until(lambda: len(server.requests) >= most or running.poll() is not None)  # noqa: B023
        time.sleep(draw.random() / 5)
        running.kill()
        running.communicate(timeout=60)
        if study.joinpath("study.db").exists():
            assert spread(study, 2) <= IN_A_BLOCK + 5, "a block, and trials of the probe"
    result = invoke("run", study)
    assert result.exit_code == 0, result.output
    assert is_exact(study, 2)
    spent = money(study)
    billed = COST * sum(tokens_of(body, server) for body in server.requests)
    paid = sum(row["cost_usd"] for row in of_store(study, select(calls)))
    assert paid <= spent.spent + 1e-9 and spent.set_aside == pytest.approx(0)
    assert spent.spent <= billed + 1e-9 <= spent.spent + spent.unknown + 2e-9 <= 1.0


def tokens_of(body: dict[str, Any], server: ScriptedOpenAI) -> int:
    """Return what the server counts for a request."""
    usage = json.loads(server.whole("/v1/chat/completions", body, "Yes"))["usage"]
    return int(usage["prompt_tokens"] + usage["completion_tokens"])


@pytest.mark.full
def test_local_models_that_take_turns_are_within_one_block_whenever_they_are_stopped(
    study, plain_model, chat_model
):
    pytest.importorskip("torch")
    with_models(study, f'base: {{use: "hf:{plain_model}"}}', f'chat: {{use: "hf:{chat_model}"}}')
    trials = 2 * 2 * TRIALS  # each sentence is read, each question answered
    for part, number in ((0.2, signal.SIGTERM), (0.6, signal.SIGKILL)):
        running = begin("run", study)
        wait_until(lambda: running.poll() is not None or (study / "study.db").exists())  # noqa: B023
        wait_until(lambda: running.poll() is not None or count_of(study) >= part * trials)  # noqa: B023
        running.send_signal(number)
        said = running.communicate(timeout=120)[1]
        assert "Traceback" not in said
        assert spread(study, 2) <= 2 * IN_A_BLOCK, done(study)
    assert invoke("run", study).exit_code == 0
    assert set(map(len, done(study).values())) == {4 * BLOCKS}
    assert len(stored(study)) == len({row["work_key"] for row in stored(study)})


def count_of(folder: Path) -> int:
    try:
        return sum(sum(counts.values()) for counts in done(folder).values())
    except UserError:
        return 0


@pytest.mark.full
def test_a_slow_request_holds_a_model_up_only_once_it_is_a_whole_block_behind(study, server):
    slow = load_study(study).items[0].shown["question"]
    with_models(study, remote("one", server, "price: free, timeout: 600"))
    server.always[slow] = "stall"
    running = begin("run", study)
    wait_until(lambda: len(server.requests) >= TRIALS // 4)
    time.sleep(1.0)
    asked = len(server.requests)
    running.kill()
    running.communicate(timeout=60)
    assert asked < TRIALS and spread(study, 1) <= IN_A_BLOCK
    server.always.clear()
    assert invoke("run", study).exit_code == 0 and is_exact(study, 1)


@pytest.mark.full
def test_a_server_that_goes_away_and_comes_back_is_waited_for(study, server):
    first = ScriptedOpenAI(answer=lambda body: "Yes", delay=0.03)
    with first:
        with_models(study, remote("one", first, "price: free"))
        running = begin("run", study)
        wait_until(lambda: len(first.requests) >= 30)
    time.sleep(1.0)
    assert running.poll() is None, "the run waits for its server"
    with ScriptedOpenAI(
        answer=lambda body: "Yes", port=int(first.url.split(":")[2].partition("/")[0])
    ) as second:
        said = running.communicate(timeout=120)
        assert running.returncode == 0, said
        assert is_exact(study, 1)
        assert len(second.requests) < TRIALS, "what was answered before is not asked again"


def test_a_run_whose_server_never_answers_can_be_interrupted(study):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(20)
        port = silent.getsockname()[1]
        with_models(study, f'api: {{use: "openai:m", base_url: "http://127.0.0.1:{port}/v1", timeout: 600}}')
        running = begin("run", study)
        asked, _ = silent.accept()
        asked.recv(1)
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[1]
        asked.close()
    assert running.returncode == 1 and "Stopped." in said and "Traceback" not in said


def suspend(pid, study):
    """Stop a process between two writes: one that is stopped in a transaction keeps the database from everybody."""
    for _ in range(50):
        os.kill(pid, signal.SIGSTOP)
        try:
            for file in ("study.db", "call-journal.db"):
                with closing(sqlite3.connect(study / file, timeout=0, isolation_level=None)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("ROLLBACK")
            return
        except sqlite3.OperationalError:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.02)
    raise AssertionError("the process is always in a transaction")


@pytest.mark.full
@on_linux
def test_a_process_that_sleeps_longer_than_every_time_out_goes_on_where_it_was(study, server):
    server.delay = 0.05
    with_models(study, remote("one", server, "price: {input: 10, output: 10}, timeout: 1"), budget="5 USD")
    running = begin("run", study)
    wait_until(lambda: len(server.requests) >= 30)
    suspend(running.pid, study)
    time.sleep(4.0)
    asleep = status_of(study)["runs"][0]
    assert asleep["alive"] and asleep["state"] in ("probe", "runs")
    sent = len(server.requests)
    assert invoke("run", study).exit_code == 1 and len(server.requests) == sent
    os.kill(running.pid, signal.SIGCONT)
    said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert is_exact(study, 1)


def test_a_clock_that_was_set_back_does_not_hide_the_last_run(study):
    assert invoke("run", study, "--max-trials", "10").exit_code == 0
    later = (datetime.now(UTC) + timedelta(hours=3)).isoformat()
    with open_store(study) as store:
        store.write(lambda connection: connection.execute(update(runs).values(began_at=later))).result()
    assert invoke("run", study).exit_code == 0
    assert [(run["state"], run["answered"]) for run in status_of(study)["runs"]] == [
        ("finished", TRIALS - 10)
    ]


@pytest.mark.full
@on_linux
def test_a_disk_that_is_full_for_a_while_loses_nothing(study, server):
    """A limit on the size of files stands for the disk; the system refuses writes beyond it alike."""
    with_models(study, remote("one", server, "price: free"))
    assert invoke("run", study, "--max-trials", "1").exit_code == 0
    server.delay = 0.02
    running = begin("run", study)
    wait_until(lambda: len(server.requests) >= 20)
    full = max(file.stat().st_size for file in study.glob("study.db*"))
    before = resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
    time.sleep(3.0)
    assert running.poll() is None, running.communicate()
    assert len(server.requests) < TRIALS, "nothing more is asked that could not be kept"
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, before)
    said = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert is_exact(study, 1) and len(server.requests) == TRIALS, "nothing was asked twice"


def test_reads_and_commits_that_the_database_breaks_off_are_made_again_and_count_once(study, server):
    """It commits and the connection breaks before it can say so; and it is away when the run reads."""
    loaded = load_study(study)
    price = {"input": 10, "output": 10}
    given = {"use": "openai:m", "base_url": server.url, "price": price, "cache": False, "probe": False}
    with open_store(study) as store:
        run = CommandRun(loaded, store, RunOptions(version=version_of(loaded, store)))
        dialect, known, read = store._writing.dialect, run._begin, store.read
        commit = dialect.do_commit
        commits, reads = [1, 2, 3], [1, 2, 3]

        def commit_and_break(connection: Any) -> None:
            commit(connection)
            if len(server.requests) > 30 and commits:
                commits.pop()
                raise dialect.dbapi.OperationalError("the connection was lost")

        def break_or_read() -> Any:
            if reads:
                reads.pop()
                raise OperationalError("SELECT", {}, Exception("the server closed the connection"))
            return read()

        def begun(*arguments: Any) -> Any:
            found = known(*arguments)
            store.read, dialect.do_commit = break_or_read, commit_and_break  # type: ignore[method-assign]
            return found

        run._begin = begun  # type: ignore[method-assign]
        (outcome,) = run.run({"m": given})
        dialect.do_commit = commit
    assert not commits and not reads and outcome.is_whole and outcome.answered == TRIALS
    assert is_exact(study, 1)
    assert outcome.cost_usd == pytest.approx(sum(row["cost_usd"] for row in of_store(study, select(calls))))


def test_a_model_that_runs_out_of_money_holds_up_no_other(study, server):
    dear = "price: {input: 1000, output: 1000}, max_tokens: 10"
    with_models(
        study, remote("dear", server, dear), remote("cheap", server, "price: {input: 0.001, output: 0.001}")
    )
    result = invoke("run", study, "--max-cost", "4 USD", "--json")
    by_name = {one["reader"]: one for one in json.loads(result.stdout)["models"]}
    assert 0 < by_name["dear"]["left"] < TRIALS and by_name["cheap"]["left"] == 0
    assert sum(one["cost_usd"] for one in by_name.values()) <= 4


# PostgreSQL


END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
def outside(postgres_url):
    """A connection to the database beside those of runs."""
    engine = create_engine(
        postgres_url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.postgres
def test_a_run_on_postgresql_survives_lost_connections_and_goes_on_after_a_kill(
    study, server, postgres_url, outside, monkeypatch
):
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    server.delay = 0.02
    with_models(study, remote("one", server), remote("two", server), budget="5 USD")
    running = begin("run", study)
    for most in (30, 60):
        wait_until(lambda: len(server.requests) >= most)  # noqa: B023
        outside.exec_driver_sql(END_ALL)
    wait_until(lambda: len(server.requests) >= 90)
    assert running.poll() is None
    running.kill()
    running.communicate(timeout=60)
    assert spread(postgres_url, 2) <= IN_A_BLOCK + 5
    result = invoke("run", study)
    assert result.exit_code == 0, result.output
    assert is_exact(postgres_url, 2)
    assert {run["state"] for run in status_of(study)["runs"]} == {"finished"}


@pytest.mark.full
@pytest.mark.postgres
def test_a_lease_whose_connection_broke_is_taken_anew_unless_another_run_has_it(postgres_url, outside):
    told_why: list[str] = []
    with leased(postgres_url, "s", "m", lost=told_why.append, look_s=0.2):
        outside.exec_driver_sql(END_ALL)
        time.sleep(1.0)
        with pytest.raises(UserError, match=r"\bm\b"), leased(postgres_url, "s", "m"):
            pass
        assert told_why == []
    with leased(postgres_url, "s", "m", lost=told_why.append, look_s=3.0):
        outside.exec_driver_sql(END_ALL)
        with leased(postgres_url, "s", "m"):
            wait_until(lambda: bool(told_why))
    with leased(postgres_url, "s", "m"):
        pass
