"""What a run tells while it goes on, and what it says where options do not go together."""

from __future__ import annotations

import os
import re
import signal
import sys
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from sqlalchemy import select, update

from experiment.cli.terminal import table
from experiment.models.runs.status import RunStatus, is_alive
from experiment.store import open_store, records
from experiment.store.records import EXCLUDED
from experiment.store.tables import runs
from tests.experiment.models.running import (
    HELD_S,
    TRIALS,
    begin,
    command,
    edit,
    invoke,
    of_store,
    remote,
    status_of,
    stored,
    wait_until,
    with_models,
)
from tests.scripted_openai import ScriptedOpenAI


def figures() -> list[RunStatus]:
    busy = RunStatus(
        "gpt-4.1-mini", "runs", 12000, 100, 3400, per_second=23.4, seconds_left=370.0, cost_usd=3.21
    )
    busy.tokens = {"prompt_tokens": 1_234_567, "completion_tokens": 34_567}
    busy.error_kinds = {"the server failed (500): upstream connect error or disconnect before headers": 3}
    busy.engine = (
        "87 of 100 at once, 12 waiting until 21:22:03: the server limits the rate (429), 34 tried again"
    )
    lost = RunStatus("hf:Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "failed", 12000)
    return [busy, lost, RunStatus("llama", "waits", 12000, waits="for its turn")]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_table_of_a_run_fits_every_terminal_with_its_numbers_whole(width):
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(table(figures(), width))
    lines = console.export_text().splitlines()
    assert all(len(one) <= width for one in lines)
    rows = {one.split()[0]: one for one in lines}
    assert all(part in rows["gpt-4.1-mini"] for part in ("3,500/12,000", "6 min", "3.21"))
    assert "3,500/36,000" in rows["together"]
    assert any("failed" in one and "FP8" in one for one in lines), "the end of a long name tells models apart"
    assert "3 × the server failed (500)" in "\n".join(lines)
    assert "llama: waits: for its turn" in lines
    assert ("1.27M" in rows["gpt-4.1-mini"]) == (width >= 80)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--base-url", "http://localhost:8000/v1"), "--base-url"),
        (("--engine", "ray"), "--engine ray"),
        (("--timing", "--batch"), "--batch"),
        (("--max-minutes", "nan"), "--max-minutes"),
        (("--workers", "2"), "--workers"),
        (("--max-cost", "5"), "5 USD"),
        (("--max-cost", "5 EUR"), "'5 EUR'"),
        (("--max-cost", "0 USD"), "'0 USD'"),
    ],
)
def test_options_that_would_do_nothing_are_refused_with_what_to_do(study, options, words):
    result = invoke("run", study, *options)
    assert result.exit_code == 2 and words in result.output and len(result.output.splitlines()) >= 2
    assert not (study / "study.db").exists()


def test_a_dry_run_says_where_requests_go_and_that_a_probe_comes_first(study):
    with_models(
        study,
        'api: {use: "openai:m", base_url: "http://127.0.0.1:9/v1"}',
        'guesser: {use: "baseline:random"}',
    )
    said = invoke("run", study, "--dry-run").stdout
    assert "POST http://127.0.0.1:9/v1/chat/completions" in said and said.count("tiny requests") == 1
    assert said.rstrip().endswith("Nothing was sent.") and not (study / "study.db").exists()


def test_status_tells_a_run_that_sleeps_from_one_that_works(study):
    assert invoke("run", study, "--max-trials", "10").exit_code == 0
    (row,) = of_store(study, runs.select())
    asleep = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    from experiment.models.runs.status import process_mark

    here = {"pid": os.getpid(), "ended_at": None, "seen_at": asleep, "state": "runs"}
    here["figures"] = row["figures"] | {"process": process_mark(os.getpid())}
    with open_store(study) as store:
        store.write(lambda connection: connection.execute(update(runs).values(**here))).result()
    said = invoke("status", study).stdout
    assert "10 of 96 trials" in said and "5 min" in said


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_the_table_while_models_work_and_the_outcome_at_the_end(study, server):
    import pty
    import subprocess

    server.delay = 0.05
    with_models(study, remote("one", server), 'guesser: {use: "baseline:random"}', budget="5 USD")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "30"}
    running = subprocess.Popen(
        command("run", study), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen = bytearray()
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    said = seen.decode("utf-8", "replace")
    assert running.wait(timeout=60) == 0, said
    assert "together" in said and "a second" in said and "/96" in said
    assert said.rindex(" block ") < said.rindex("Next: wrods report")


def test_answers_that_cannot_be_read_are_told_by_the_run_and_by_status_and_models_without_a_run_listed(study):
    with ScriptedOpenAI(answer=lambda body: "I could not say.") as vague:
        with_models(study, remote("vague", vague), remote("later", vague))
        run = invoke("run", study, "--model", "vague", "--max-trials", "12")
    status = invoke("status", study).output
    said = "12 refused of 12 answers"
    assert said in run.stderr and said in status and "later: " in status
    assert status_of(study)["not_run"] == ["later"]


def test_sessions_that_were_set_aside_are_named_and_not_counted(named):
    assert invoke("run", named, "--max-trials", "20").exit_code == 0
    edit(named, "temperature: 0,", "temperature: 0.7,")
    assert invoke("run", named, "--if-changed", "set_aside").exit_code == 0
    (one,) = status_of(named)["readers"]
    assert (one["sessions"], one["trials"], one["states"]) == (4, TRIALS, {"finished": 4})
    assert one["excluded"] == {"superseded by sessions under other settings": {"sessions": 4, "trials": 20}}
    said = " ".join(invoke("status", named).output.split())
    assert f"m (model): 4 sessions (4 finished), {TRIALS} trials" in said
    assert re.search(r"\b4 sessions .*\b20 trials \(superseded", said)


def test_an_excluded_trial_is_taken_from_what_counts(named):
    assert invoke("run", named).exit_code == 0
    first = stored(named)[0]
    with open_store(named) as store:
        store.write(
            lambda connection: records.add_flag(
                connection,
                first["session_id"],
                EXCLUDED,
                "a power cut",
                "tests",
                records.TrialPlace(first["trial_index"]),
            )
        ).result()
    (one,) = status_of(named)["readers"]
    assert (one["sessions"], one["trials"]) == (4, TRIALS - 1)
    assert one["excluded"] == {"a power cut": {"sessions": 0, "trials": 1}}


def test_a_killed_run_is_told_with_all_that_it_stored_and_held(study, server):
    with_models(study, remote("one", server), budget="5 USD")
    server.delay = 0.05
    process = begin("run", study)
    wait_until(lambda: len(server.requests) >= 40)
    begun = len(server.requests)
    server.delay = HELD_S  # the run is under way until it is killed, however slow this machine is
    wait_until(lambda: len(stored(study)) >= 20 and len(server.requests) > begun)
    assert status_of(study)["runs"][0]["alive"]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    count = len(stored(study))
    found = status_of(study)
    assert found["readers"][0]["trials"] == count
    (run,) = found["runs"]
    assert run["state"] == "killed" and run["stored_before"] + run["answered"] == count
    assert sum(run["response_statuses"].values()) == count
    (row,) = of_store(study, select(runs))
    assert not is_alive(row)
    assert not is_alive({**row, "pid": os.getpid()}), "this process began at another time"
    held = found["money"]
    assert held["may_have_been_spent_usd"] > 0 and held["set_aside_usd"] == 0
