"""Backup, restore and withdrawal as a user gives them on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from experiment.demo.tour import LocalServer, fill
from experiment.store import open_store, queries
from experiment.study import Study
from tests.experiment.commands import wrods
from tests.experiment.test_simulated import TRUTH

READERS = 3
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def collected(make_study: Callable[..., Study]) -> Study:
    """Return a study in which three simulated readers took part through the real pages' interface."""
    study = make_study()
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    with open_store(study.folder) as store, LocalServer(study, store) as server:
        fill(study, server.links, readers=READERS, pause=0, told=lambda _: None)
    return study


def readers(study: Study) -> list[str]:
    with open_store(study.folder) as store, store.read() as connection:
        return sorted(str(row["reader"]) for row in queries.sessions_overview(connection, study.id))


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_withdrawal_asks_first_and_says_what_lies_beyond_reach(collected):
    asked = wrods("withdraw", collected.folder, "--participant", "S001", given="n\n")
    assert asked.exit_code == 1
    for part in (
        "Will be erased",
        "S001: session",
        "Not erased",
        "recruitment platform",
        "Permanently erase this?",
    ):
        assert part in asked.output
    assert len(readers(collected)) == READERS
    alone = wrods("withdraw", collected.folder, "--participant", "S001", given="")
    assert alone.exit_code == 1 and "nothing was erased" in alone.output and "--yes" in alone.output
    assert len(readers(collected)) == READERS
    agreed = wrods("withdraw", collected.folder, "--participant", "S001", given="y\n")
    assert agreed.exit_code == 0 and "Erased" in agreed.output
    assert len(readers(collected)) == READERS - 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "named in exactly one way"),
        (("--participant", "S001", "--platform-id", "x"), "named in exactly one way"),
        (("--station", "4"), "named in exactly one way"),
        (("--station", "4", "--at", "noon"), "is not a time"),
        (("--again", "--backups", "/no/such/stick"), "no such folder"),
    ],
)
def test_a_withdrawal_that_names_nobody_rightly_is_refused(collected, options, said):
    refused = wrods("withdraw", collected.folder, *options, "--yes")
    assert refused.exit_code == 2 and said in refused.output
    assert len(readers(collected)) == READERS


def test_restore_shows_both_and_asks(collected, tmp_path):
    stick = tmp_path / "stick"
    missing = wrods("backup", collected.folder, "--to", stick)
    assert missing.exit_code == 1 and "stick does not exist" in missing.output and not stick.exists()
    stick.mkdir()
    copy = told(wrods("backup", collected.folder, "--to", stick, "--json"))["file"]
    told(wrods("withdraw", collected.folder, "--participant", "S001", "--yes", "--json"))
    asked = wrods("restore", collected.folder, copy, given="n\n")
    assert asked.exit_code == 1 and "Backup:" in asked.output and "Current: 2 sessions" in asked.output
    nobody = wrods("restore", collected.folder, copy)
    assert nobody.exit_code == 1 and "nothing was replaced: the question was not answered" in nobody.output
    assert not list(collected.folder.glob("*restoring.db*"))


@contextmanager
def serving(study: Study, *options: object) -> Iterator[subprocess.Popen[str]]:
    """Serve a study in a process of its own, as `wrods serve` does, until the block ends."""
    server = subprocess.Popen(
        [sys.executable, "-m", "experiment.cli", "serve", str(study.folder), "--port", "0", "--no-browser", *map(str, options)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if "Ctrl-C stops the server" in line:
                break
        yield server
    finally:
        server.kill()
        server.wait()


def wait_for(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def test_a_served_study_keeps_backups_and_takes_a_withdrawal_but_no_restore(collected, tmp_path):
    stick = tmp_path / "stick"
    stick.mkdir()

    def copies() -> list[Path]:
        return sorted(stick.glob("*.db"))

    with serving(collected, "--backup-to", stick) as server:
        wait_for(lambda: len(copies()) == 1)
        refused = wrods("restore", collected.folder, copies()[0], "--yes")
        assert refused.exit_code == 1 and "another program has" in refused.output
        done = told(wrods("withdraw", collected.folder, "--participant", "S002", "--yes", "--json"))
        assert done["left"] == [] and str(copies()[0]) in done["backups_cleaned"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert readers(collected) == ["S001", "S003"]
    # the copy of the end is the one of its hour that is kept
    with open_store(copies()[-1]) as store, store.read() as connection:
        assert len(queries.sessions_overview(connection, collected.id)) == READERS - 1


def test_a_server_killed_outright_leaves_a_backup_that_can_be_restored(collected):
    folder = collected.folder / "backups"
    with serving(collected) as server:
        wait_for(lambda: any(folder.glob("study-auto-*.db")))
        server.kill()
        server.wait()
    (copy,) = folder.glob("study-auto-*.db")
    (collected.folder / "study.db").write_bytes(b"lightning " * 900)
    back = told(wrods("restore", collected.folder, copy, "--yes", "--json"))
    assert back["sessions"] == READERS and back["broken"] == {}
    assert readers(collected) == ["S001", "S002", "S003"]
