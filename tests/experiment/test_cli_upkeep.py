"""Backup, restore and withdrawal as a user gives them on the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner, Result

from experiment.cli import main
from experiment.configuration import config_file
from experiment.people.recruitment.admission import find_invitation
from experiment.people.recruitment.codes import recruitment_for
from experiment.store import open_store, records
from experiment.store.tables import sessions
from experiment.study import Study
from tests.experiment.commands import let_take_part, worked, wrods
from tests.experiment.test_simulated import TRUTH

READERS = 3
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def collected(make_study: Callable[..., Study]) -> Study:
    """Return a study in which three simulated readers took part through the real pages' interface."""
    study = make_study()
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    with open_store(study.folder) as store:
        let_take_part(study, store, readers=READERS)
    return study


def readers(study: Study) -> list[str]:
    with open_store(study.folder) as store, store.read() as connection:
        return sorted(str(row["reader"]) for row in records.sessions_overview(connection, study.id))


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
    assert alone.exit_code == 1 and "--yes" in alone.output
    assert len(readers(collected)) == READERS
    agreed = wrods("withdraw", collected.folder, "--participant", "S001", given="y\n")
    assert agreed.exit_code == 0 and "Erased" in agreed.output
    assert len(readers(collected)) == READERS - 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--platform-id"),
        (("--participant", "S001", "--platform-id", "x"), "--platform-id"),
        (("--again", "--backups", "/no/such/stick"), "/no/such/stick"),
    ],
)
def test_a_withdrawal_that_names_nobody_rightly_is_refused(collected, options, said):
    refused = wrods("withdraw", collected.folder, *options, "--yes")
    assert refused.exit_code == 2 and said in refused.output
    assert len(readers(collected)) == READERS


def test_restore_shows_both_and_asks(collected, tmp_path):
    stick = tmp_path / "stick"
    missing = wrods("backup", collected.folder, "--to", stick)
    assert missing.exit_code == 1 and str(stick) in missing.output and not stick.exists()
    stick.mkdir()
    copy = told(wrods("backup", collected.folder, "--to", stick, "--json"))["file"]
    told(wrods("withdraw", collected.folder, "--participant", "S001", "--yes", "--json"))
    asked = wrods("restore", collected.folder, copy, given="n\n")
    assert asked.exit_code == 1 and " 2 sessions" in asked.output
    nobody = wrods("restore", collected.folder, copy)
    assert nobody.exit_code == 1 and "--yes" in nobody.output
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
            if "Ctrl-C" in line:
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
        assert refused.exit_code == 1 and "study.db" in refused.output
        done = told(wrods("withdraw", collected.folder, "--participant", "S002", "--yes", "--json"))
        assert done["left"] == [] and str(copies()[0]) in done["backups_cleaned"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert readers(collected) == ["S001", "S003"]
    # the copy of the end is the one of its hour that is kept
    with open_store(copies()[-1]) as store, store.read() as connection:
        assert len(records.sessions_overview(connection, collected.id)) == READERS - 1


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


MakeStudy = Callable[..., Study]
EXPORT = (
    "Submission id,Participant id,Status,Time taken,Completion code,Shoe size\nsub-1,p1,{status},600,C1,43\n"
)


def recruiting(make_study: MakeStudy, recruit: str) -> Study:
    return make_study(("seed: 7\n", f"seed: 7\nparticipants: {{recruit: {recruit}, wanted: 8}}\n"))


def configure(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text, "utf-8")
    config_file().chmod(0o600)


def a_finished_session(study: Study) -> str:
    from experiment.lists import list_ids
    from experiment.procedure import plan_session

    plan = plan_session(study, study.items, list_id=list_ids(study, study.items)[0])

    def add(connection: Any) -> str:
        session_id = records.create_session(connection, plan, reader_kind="human", reader="P001")
        records.add_person(connection, study.id, session_id, "prolific", "p1", {"SESSION_ID": "sub-1"})
        records.finish_session(connection, session_id, completion_code="C1")
        return session_id

    with open_store(study.folder) as store:
        return store.write(add).result()


def test_links_are_written_once_for_their_owner_alone(make_study, tmp_path):
    study = recruiting(make_study, "link")
    named = tmp_path / "people.csv"
    named.write_text("participant,mail\n=cmd(),x\nAda,y\n", "utf-8")
    out = tmp_path / "links.csv"
    base = ("--base-url", "https://lab.example.org/", "--days", "14")
    told = worked("invite", study.folder, "--participants", named, *base, "--out", out)
    rows = list(csv.DictReader(out.open(encoding="utf-8", newline="")))
    assert [row["participant"] for row in rows] == ["'=cmd()", "Ada"], "a spreadsheet must not run a name"
    assert out.stat().st_mode & 0o077 == 0
    assert rows[1]["link"].startswith("https://lab.example.org/small/?invitation=")
    assert rows[1]["link"].partition("invitation=")[2] not in told.output
    with open_store(study.folder) as store, store.read() as connection:
        found = find_invitation(connection, "small", rows[1]["link"].partition("invitation=")[2])
    assert (found.standing, found.participant) == ("open", "Ada")
    again = wrods("invite", study.folder, "--participants", named, *base, "--out", tmp_path / "other.csv")
    assert again.exit_code == 2 and "--again" in again.output


def test_reconcile_tells_whom_to_approve_and_gives_places_back(make_study, tmp_path):
    study = recruiting(make_study, "prolific")
    session_id = a_finished_session(study)
    file, approve = tmp_path / "export.csv", tmp_path / "approve.csv"
    file.write_text(EXPORT.format(status="AWAITING REVIEW"), "utf-8")
    approve.write_text("of yesterday\n")
    approve.chmod(0o644)
    configure('[recruitment.small]\nreward = "2.50 GBP"\n')
    told = worked("reconcile", study.folder, file, "--approve-csv", approve)
    assert "Approve: 1" in told.output and "15.00 GBP" in told.output
    assert ": Shoe size" in told.output
    assert approve.read_text("utf-8") == "p1\n"
    assert approve.stat().st_mode & 0o077 == 0, "it names people"
    file.write_text(EXPORT.format(status="RETURNED"), "utf-8")
    counts = json.loads(wrods("reconcile", study.folder, file, "--json").output)
    assert counts["counts"]["returned"] == 1 and counts["imported"]["returned"] == 1
    with open_store(study.folder) as store, store.read() as connection:
        states = connection.execute(sessions.select().where(sessions.c.session_id == session_id)).all()
    assert [row.state for row in states] == ["returned"]


def test_check_tells_which_codes_the_config_lacks(make_study):
    study = recruiting(make_study, "prolific")
    told = worked("check", study.folder)
    assert "[recruitment.small]" in told.output and 'complete = "…"' in told.output
    assert str(config_file()) in told.output
    configure("[recruitment.small]\n" + "".join(
        f'{name} = "C{place}X"\n'
        for place, name in enumerate(("complete", "no_consent", "screened_out", "failed_checks"))
    ))  # fmt: skip
    assert "[recruitment.small]" not in wrods("check", study.folder).output


def test_serve_tells_the_platforms_link_and_looks_from_outside(make_study):
    study = recruiting(make_study, "prolific")
    words = ["-m", "experiment.cli", "serve", str(study.folder), "--port", "0", "--no-browser"]
    serving = subprocess.Popen(
        [sys.executable, *words, "--public", "https://no-such-name.invalid"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    ending = threading.Timer(60, serving.kill)  # a line that never comes ends the output
    ending.start()
    told = ""
    try:
        for line in serving.stdout or ():
            told += line
            if "FAIL" in line:
                break
    finally:
        ending.cancel()
        serving.terminate()
        serving.wait(timeout=20)
    assert "https://no-such-name.invalid/small/?PROLIFIC_PID={{%PROLIFIC_PID%}}" in told
    assert 'complete = "…"' in told
    assert "https://no-such-name.invalid" in told.partition("FAIL")[2]


def test_signed_links_are_written_for_ids_and_need_a_key(make_study, monkeypatch, tmp_path):
    from experiment.people.recruitment.return_links import check_own

    monkeypatch.delenv("WRODS_SECRET", raising=False)
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: link}\n"))
    ids, out = tmp_path / "ids.csv", tmp_path / "links.csv"
    ids.write_text("participant\nA17\npanel 18/ä\n", "utf-8")
    command = ["invite", str(study.folder), "--signed", "--base-url", "https://x.org", "--out", str(out)]
    invoke = CliRunner().invoke
    assert "link_key" in invoke(main, [*command, "--participants", str(ids), "--days", "2"]).output
    assert "--signed needs" in invoke(main, [*command, "--number", "3", "--days", "2"]).output
    assert "--signed needs" in invoke(main, [*command, "--participants", str(ids)]).output
    monkeypatch.setenv("WRODS_SECRET", "k" * 24)
    done = invoke(main, [*command, "--participants", str(ids), "--days", "2"])
    assert done.exit_code == 0 and "2 signed links" in done.output
    rows = list(csv.DictReader(io.StringIO(out.read_text("utf-8"))))
    key = recruitment_for(study, {}).link_key
    for row, name in zip(rows, ("A17", "panel 18/ä"), strict=True):
        given = dict(parse_qsl(urlsplit(row["link"]).query))
        assert row["participant"] == given["id"] == name
        assert check_own(key, "small", given).standing == "valid"
