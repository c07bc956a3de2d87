"""A damaged database: no command reads or serves it, and each names the backup that is sound and how to restore it."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from experiment.people.server import StudyServer
from experiment.store import DamagedStore, Store, open_store
from experiment.store import records as r
from experiment.store.damage import check_file
from experiment.study import Study
from tests.experiment.commands import worked, wrods
from tests.experiment.store.conftest import begin, do

PAGE = 4096
COMMANDS = [
    ("status", "--json"), ("export", "--out", "data"), ("backup",), ("run", "--model", "baseline:random"),
    ("withdraw", "--participant", "P0", "--yes"),
    ("serve", "--no-browser", "--port", "0"),
]  # fmt: skip


def damage(file: Path, *, pages: slice = slice(1, None)) -> None:
    """Write nonsense over pages of a database, as a failing disk does."""
    with closing(sqlite3.connect(file)) as plain:
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = file.stat().st_size
    with file.open("r+b") as stream:
        for page in range(size // PAGE)[pages]:
            stream.seek(page * PAGE)
            stream.write(b"\xa5" * PAGE)


def backups_of(study: Study, number: int) -> list[Path]:
    """Make backups as a server makes them, an hour apart, each with one session more than the one before."""
    folder = study.folder / "backups"
    folder.mkdir()
    made = []
    for hour in range(number):
        with open_store(study.folder) as store:
            plan = {"study": study.id, "version": 1, "design_hash": "d", "list_id": 1, "screens": []}
            begin(store, plan, f"P{hour}")
            file = folder / f"study-auto-20261121T{10 + hour}0000Z.db"
            with (
                closing(sqlite3.connect(study.folder / "study.db")) as live,
                closing(sqlite3.connect(file)) as copy,
            ):
                live.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
        made.append(file)
    return made


def test_no_command_uses_a_damaged_database_or_begins_a_lost_one_anew_and_each_names_the_sound_backup(
    make_study,
):
    study = make_study()
    (backup,) = backups_of(study, 1)
    file = study.folder / "study.db"
    for lose in (damage, Path.unlink):
        lose(file)
        left = file.exists() and file.read_bytes()
        for command in COMMANDS:
            done = wrods(command[0], study.folder, *command[1:])
            assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
            assert "Traceback" not in done.output
            assert f"wrods restore {study.folder} {backup}" in done.output
            assert (file.exists() and file.read_bytes()) == left, "nobody else is given the number P001"
    backup.rename(study.folder / "elsewhere.db")
    open_store(study.folder).close()


def test_the_command_that_is_named_brings_the_newest_sound_backup_back(make_study):
    study = make_study()
    oldest, middle, newest = backups_of(study, 3)
    damage(newest)
    (study.folder / "backups" / "study-auto-20261121T130000Z.db").write_bytes(b"cut off")
    # SQLite takes both for new databases
    for hour, cut in ((14, b""), (15, b"x")):
        (study.folder / "backups" / f"study-auto-20261121T{hour}0000Z.db").write_bytes(cut)
    damage(study.folder / "study.db")
    said = wrods("status", study.folder).output
    assert re.search(rf"{middle.name}.* 21 November 2026 at 11:00 UTC.*\b4\b", said, re.DOTALL)
    assert oldest.name not in said
    named = re.search(r"wrods (restore .*)", said)
    assert named is not None
    worked(*shlex.split(named[1]), "--yes")
    worked("status", study.folder)
    with open_store(study.folder) as store, store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar_one() == 2


def test_a_server_whose_database_is_damaged_does_not_end_with_the_promise_that_all_is_stored(
    make_study, monkeypatch
):
    study = make_study()
    backups_of(study, 1)

    opened: list[Store] = []

    def open_and_keep(*told: Any, **options: Any) -> Store:
        opened.append(open_store(*told, **options))
        return opened[-1]

    def run(_: StudyServer) -> None:
        damage(study.folder / "study.db")
        opened[-1].check()

    monkeypatch.setattr("experiment.store.open_store", open_and_keep)
    monkeypatch.setattr(StudyServer, "run", run)
    done = wrods("serve", study.folder, "--no-browser", "--port", "0")
    assert done.exit_code == 1 and "Traceback" not in done.output
    after, _, error = done.output.rpartition("Error: ")
    said = after.rpartition("Ctrl-C")[2].splitlines()[1:]
    assert all(line.startswith((f"{study.id}: ", "  ")) for line in said) and study.id in error


@pytest.mark.parametrize("command", [("export", "--out", "data"), ("freeze", "--verify")], ids=" ".join)
def test_a_command_that_meets_json_that_wrods_did_not_write_names_the_session_and_what_can_be_done(
    make_study, monkeypatch, command
):
    study = make_study()
    monkeypatch.chdir(study.folder)
    (backup,) = backups_of(study, 1)
    with open_store(study.folder) as store:
        plan = {"study": study.id, "version": 1, "design_hash": "d", "list_id": 1, "screens": []}
        sound = begin(store, plan, "P7")
    with closing(sqlite3.connect(study.folder / "study.db")) as editing, editing:
        editing.execute(
            "UPDATE sessions SET client = '{', plan = '[]', label_map = 5 WHERE session_id != ?", (sound,)
        )
    done = wrods(command[0], study.folder, *command[1:])
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    for column in ("plan", "client", "label_map"):
        assert f"sessions.{column}" in done.output and "P0" in done.output
    assert f"wrods restore {study.folder} {backup}" in done.output and sound not in done.output
    named = re.search(r"wrods (withdraw .*)", done.output)
    assert named is not None and wrods(*shlex.split(named[1]), "--yes").exit_code == 0
    assert "not JSON" not in wrods(command[0], study.folder, *command[1:]).output


def test_damage_in_a_models_session_offers_no_withdrawal(make_study):
    study = make_study()
    with open_store(study.folder) as store:
        plan = {"study": study.id, "version": 1, "design_hash": "d", "list_id": 1, "screens": []}
        do(store, r.create_session, plan, reader_kind="model", reader="gpt")
    with closing(sqlite3.connect(study.folder / "study.db")) as editing, editing:
        editing.execute("UPDATE sessions SET client = '[]'")
    said = wrods("export", study.folder, "--out", study.folder / "data").output
    assert "sessions.client " in said and "(gpt)" in said
    assert "wrods restore" in said and "wrods withdraw" not in said, "which erases participants only"


def test_where_no_backup_is_sound_the_message_says_so(make_study):
    study = make_study()
    (backup,) = backups_of(study, 1)
    damage(backup)
    damage(study.folder / "study.db")
    said = wrods("status", study.folder).output
    assert f"wrods restore {study.folder} FILE" in said


def test_an_empty_file_is_no_backup(make_study):
    study = make_study()
    backups_of(study, 1)
    empty = study.folder / "empty.db"
    empty.write_bytes(b"")
    done = wrods("restore", study.folder, empty, "--yes")
    assert done.exit_code and f"holds nothing of {study.id}" in done.output
    with open_store(study.folder) as store, store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar_one() == 1


@pytest.mark.parametrize("command", [one for one in COMMANDS if one[0] in ("run", "serve")], ids=" ".join)
def test_a_database_on_a_disk_that_is_not_attached_is_not_begun_anew(make_study, tmp_path, command):
    study = make_study()
    elsewhere = tmp_path / "disk" / "study.db"
    (study.folder / "study.db").symlink_to(elsewhere)
    done = wrods(command[0], study.folder, *command[1:])
    assert done.exit_code == 1 and str(elsewhere) in done.output
    assert not elsewhere.parent.exists()


@pytest.mark.parametrize("cut", [b"", b"x"])
def test_a_database_cut_to_nothing_is_not_taken_for_a_new_one(make_study, cut):
    study = make_study()
    backups_of(study, 1)
    file = study.folder / "study.db"
    file.write_bytes(cut)
    with pytest.raises(DamagedStore, match=r"study\.db"):
        open_store(study.folder)
    assert file.read_bytes() == cut
    shutil.rmtree(study.folder / "backups")
    open_store(study.folder).close()


def test_a_set_aside_database_is_never_offered_as_a_backup(make_study):
    study = make_study()
    (backup,) = backups_of(study, 1)
    shutil.copy(backup, backup.with_name("study-damaged-20261121T150000Z.db"))
    damage(study.folder / "study.db")
    with pytest.raises(DamagedStore, match=re.escape(backup.name)):
        open_store(study.folder)


def test_the_check_of_a_large_file_is_given_up_in_time_and_made_up_for_later(make_study, monkeypatch):
    study = make_study()
    backups_of(study, 1)
    file = study.folder / "study.db"
    with open_store(study.folder) as store:
        store.write(lambda c: c.exec_driver_sql("CREATE TABLE filler (text)").close()).result()
        fill = (
            "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
            "INSERT INTO filler SELECT hex(randomblob(1000)) FROM n"
        )
        store.write(lambda c: c.exec_driver_sql(fill).close()).result()

    class TimeIsOver(threading.Timer):
        """Interrupts the check at its first step, whatever else the machine is doing."""

        def start(self) -> None:
            self.function.__self__.set_progress_handler(lambda: True, 1)

    with monkeypatch.context() as over:
        over.setattr("experiment.store.damage.threading.Timer", TimeIsOver)
        assert check_file(file) is False
    assert check_file(file, within_s=None) is True
    damage(file, pages=slice(5_000, None))
    # the time is over before the check comes to the damage
    monkeypatch.setattr(
        "experiment.store.store.check_file",
        lambda file, *, within_s: within_s is None and check_file(file, within_s=None),
    )
    with open_store(study.folder) as store:
        assert not store.is_checked and store.trouble is None
        store.check()
        assert store.is_checked and isinstance(store.trouble, DamagedStore)
        with pytest.raises(DamagedStore), store.read():
            pass


def test_a_store_that_turns_out_damaged_takes_nothing_more(make_study):
    study = make_study()
    (backup,) = backups_of(study, 1)
    with open_store(study.folder) as store:
        damage(study.folder / "study.db")
        store._reading.dispose()  # what a connection still holds in memory hides the damage
        with pytest.raises(DamagedStore, match=re.escape(str(backup.name))), store.read() as connection:
            connection.exec_driver_sql("SELECT * FROM sessions").all()
        present = (study.folder / "study.db").read_bytes()
        refused = store.write(lambda c: c.exec_driver_sql("DELETE FROM audit").close())
        with pytest.raises(DamagedStore, match=r"study\.db"):
            refused.result()
        assert isinstance(store.trouble, DamagedStore)
        assert (study.folder / "study.db").read_bytes() == present
