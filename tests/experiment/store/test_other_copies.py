"""Backups of several databases and other people's files share folders: each database changes and removes its own alone."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from experiment.integrity import maintenance as upkeep
from experiment.integrity import withdrawal as w
from experiment.people.serving_lock import serving
from experiment.store import open_store
from experiment.store.backups import back_up, marks_of
from stimuli.files import file_sha256
from tests.experiment.commands import wrods
from tests.experiment.postgres import new_database, tell
from tests.experiment.store.conftest import HERS, answer, begin

Make = Callable[..., dict[str, Any]]


def dumped(file: Path) -> str:
    """Return the whole text of a dump."""
    return subprocess.run(["pg_restore", "--file=-", file], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def foreign(folder: Path) -> Path:
    """Make somebody else's SQLite database, with a write-ahead log as its program keeps it."""
    file = folder / "hospital.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE patients (name TEXT)")
        connection.execute("INSERT INTO patients VALUES ('Bob')")
        connection.commit()
    return file


def test_somebody_elses_database_in_a_folder_of_backups_is_neither_changed_nor_reported(
    tmp_path, plan, make_trial, folder, foreign
):
    before = file_sha256(foreign)
    with open_store(tmp_path) as store:
        hers = answer(store, plan, make_trial)
        copy = back_up(store.address, folder, stem="positions")
        _, scrubbed = w.withdraw(store, "positions", tmp_path, [hers], actor="me", backups=[folder])
        assert (scrubbed.backups, scrubbed.left) == ([copy], [])
    assert file_sha256(foreign) == before
    assert sorted(file.name for file in folder.iterdir() if file != copy) == [
        "hospital.db",
        "positions-withdrawn.txt",
    ]


def test_a_backup_that_another_program_holds_is_not_said_to_be_worth_deleting(
    tmp_path, plan, make_trial, folder
):
    with open_store(tmp_path) as store:
        hers = answer(store, plan, make_trial)
        copy = back_up(store.address, folder, stem="positions")
        with closing(sqlite3.connect(copy, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            _, scrubbed = w.withdraw(store, "positions", tmp_path, [hers], actor="me", backups=[folder])
        assert [line.partition(": ")[0] for line in scrubbed.left] == [str(copy)]
        assert w.scrub(store, "positions", tmp_path, backups=[folder]).left == []
    assert HERS.encode() not in copy.read_bytes()


def test_studies_that_share_a_folder_keep_the_backups_of_each(tmp_path, plan):
    stick = tmp_path / "stick"
    stick.mkdir()
    # two copies in one hour: only the newer is kept
    earlier = [datetime(2026, 3, 1, 12, minute, tzinfo=UTC) for minute in (5, 10)]
    made: dict[str, list[Path]] = {}
    for study in ("lab1", "pro1"):
        (tmp_path / study).mkdir()
        with open_store(tmp_path / study) as store:
            begin(store, plan | {"study": study})
            made[study] = []
            for moment in earlier:
                file = stick / f"{study}-auto-{moment:%Y%m%dT%H%M%S}Z.db"
                back_up(store.address, file, stem=study)
                made[study].append(file)
    # of the same name, by another database that happens to have the same id
    (tmp_path / "other").mkdir()
    with open_store(tmp_path / "other") as store:
        begin(store, plan | {"study": "lab1"})
        another = back_up(store.address, stick / f"lab1-auto-{earlier[0]:%Y%m%dT%H%M%S}Z-9.db", stem="lab1")
    with open_store(tmp_path / "lab1") as store:
        upkeep.make_backups(upkeep.MaintainedStudy("lab1", tmp_path / "lab1", store, None), [stick])
    left = set(stick.iterdir())
    assert set(made["pro1"]) <= left and another in left
    assert set(made["lab1"]) & left == {made["lab1"][1]}


@pytest.fixture
def programs(require: Callable[[str, object, str], None]) -> None:
    require("postgres", shutil.which("pg_dump") and shutil.which("pg_restore"), "pg_dump is not installed")


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_a_withdrawal_replaces_dumps_of_its_own_database_alone(
    postgres_url, postgres_cluster, tmp_path, plan, make_trial, folder
):
    another = new_database(postgres_cluster)
    with open_store(another) as store:
        answer(store, plan | {"study": "pb"}, make_trial)
        theirs = back_up(store.address, folder, stem="pb")
    hospital = new_database(postgres_cluster)
    tell(
        hospital,
        "CREATE TABLE sessions (session_id text, study text)",
        "INSERT INTO sessions VALUES ('x', 'positions')",
    )
    foreign = folder / "hospital.dump"
    subprocess.run(["pg_dump", "--format=custom", f"--file={foreign}", f"--dbname={hospital}"], check=True)
    kept = {file: file_sha256(file) for file in (theirs, foreign)}
    with open_store(postgres_url) as store:
        answer(store, plan, make_trial, "P001")
        before = back_up(store.address, folder, stem="pa")
        hers = answer(store, plan, make_trial, "P002")
        old = back_up(store.address, folder, stem="pa")
        _, scrubbed = w.withdraw(store, "positions", tmp_path, [hers], actor="me", backups=[folder])
        assert not old.exists() and len(scrubbed.backups) == 1
        assert before.exists(), "a dump without the answers needs no replacement"
        assert scrubbed.backups[0].parent == folder and not marks_of(scrubbed.backups[0]).holds({hers})
        assert not any(str(folder) in line for line in scrubbed.left)
    assert {file: file_sha256(file) for file in kept} == kept


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_no_dump_is_removed_before_a_sound_one_is_there(
    postgres_url, tmp_path, plan, make_trial, folder, monkeypatch
):
    with open_store(postgres_url) as store:
        hers = answer(store, plan, make_trial)
        old = back_up(store.address, folder, stem="pa")
        programs = tmp_path / "programs"
        programs.mkdir()
        (programs / "pg_restore").symlink_to(str(shutil.which("pg_restore")))
        with monkeypatch.context() as path:
            path.setenv("PATH", str(programs))
            _, scrubbed = w.withdraw(store, "positions", tmp_path, [hers], actor="me", backups=[folder])
        assert old.exists()
        (line,) = [line for line in scrubbed.left if line.startswith(str(old))]
        assert "pg_dump" in line
        assert w.scrub(store, "positions", tmp_path, backups=[folder]).left == [] and not old.exists()


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_a_dump_with_sessions_that_the_database_lacks_is_kept_and_named(
    postgres_url, tmp_path, plan, make_trial, folder
):
    with open_store(postgres_url) as store:
        hers, his = answer(store, plan, make_trial, "P001"), answer(store, plan, make_trial, "P002")
        old = back_up(store.address, folder, stem="pa")
    # as after a restore of an older backup
    for table in ("trials", "chain", "sessions"):
        tell(postgres_url, f"DELETE FROM {table} WHERE session_id = '{his}'")
    with open_store(postgres_url) as store:
        _, scrubbed = w.withdraw(store, "positions", tmp_path, [hers], actor="me", backups=[folder])
    (line,) = scrubbed.left
    assert old.exists() and line.startswith(str(old)) and "1 session" in line


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_answers_are_erased_from_dumps_that_another_study_of_the_database_made(
    postgres_url, tmp_path, plan, make_trial
):
    folders = {study: tmp_path / study for study in ("pa", "pb")}
    with open_store(postgres_url) as store:
        hers = answer(store, plan | {"study": "pa"}, make_trial)
        for study, folder in folders.items():
            folder.mkdir()
            upkeep.make_backups(upkeep.MaintainedStudy(study, folder, store, None))
        _, scrubbed = w.withdraw(store, "pa", folders["pa"], [hers], actor="me")
        assert scrubbed.left == [] and len(scrubbed.backups) == 2
    for folder in folders.values():
        (dump,) = (folder / "backups").glob("*.dump")
        assert HERS not in dumped(dump)


@pytest.fixture
def two_studies(
    postgres_url: str, make_study: Any, plan: Any, make_trial: Make, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Any, Path]:
    """Return the address of a database of two studies, one of them, and a dump that has one session less of each."""
    study = make_study()
    monkeypatch.setenv("WRODS_STORE", postgres_url)
    with open_store(postgres_url) as store:
        for of in ("small", "large"):
            answer(store, plan | {"study": of}, make_trial, "P001")
        dump = back_up(store.address, study.folder / "backups", stem="study")
        for of in ("small", "large"):
            answer(store, plan | {"study": of}, make_trial, "P002")
    return postgres_url, study, dump


def sessions_in(address: str) -> int:
    with open_store(address) as store, store.read() as connection:
        return len(w.marks_in(connection).sessions)


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("study", ["small", "large"])
def test_a_dump_is_not_restored_while_any_study_of_the_database_is_served(two_studies, study, monkeypatch):
    address, small, dump = two_studies
    monkeypatch.setattr("experiment.store.restoring._ENDING_S", 0)
    url = make_url(address).set(drivername="postgresql+psycopg")
    with serving(url, study, b"key"):
        refused = wrods("restore", small.folder, dump, given="y\n")
    assert refused.exit_code == 1 and sessions_in(address) == 4
    assert "wrods serve on" in refused.output


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_restoring_a_dump_names_the_other_studies_and_asks_whatever_is_given(two_studies):
    address, small, dump = two_studies
    asked = wrods("restore", small.folder, dump, "--yes", given="n\n")
    assert asked.exit_code == 1 and sessions_in(address) == 4
    nobody = wrods("restore", small.folder, dump, "--yes")
    assert nobody.exit_code == 1 and sessions_in(address) == 4 and "--yes" not in nobody.output
    assert re.search(r"large.* 2 sessions .*\b1\b", asked.output)
    assert "1 session, 1 trial" in asked.output and " 2 sessions" in asked.output
    assert wrods("restore", small.folder, dump, "--yes", given="").exit_code == 1
    done = wrods("restore", small.folder, dump, given="y\n")
    assert done.exit_code == 0 and sessions_in(address) == 2, done.output


@pytest.mark.postgres
@pytest.mark.usefixtures("programs")
def test_a_dump_of_something_else_is_refused_before_anything_changes(
    two_studies, postgres_cluster, plan, make_trial, tmp_path
):
    address, small, _ = two_studies
    with open_store(new_database(postgres_cluster)) as store:
        answer(store, plan, make_trial)
        other = back_up(store.address, tmp_path / "other", stem="positions")
    no_dump = tmp_path / "no.dump"
    no_dump.write_bytes(b"no dump at all")
    for file, why in ((other, "positions"), (no_dump, "no.dump")):
        refused = wrods("restore", small.folder, file, "--yes")
        assert refused.exit_code in (1, 2) and why in refused.output, refused.output
    assert sessions_in(address) == 4
