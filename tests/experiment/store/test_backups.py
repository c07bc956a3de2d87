"""A backup is whole whatever goes on beside it; a restore leaves the present database or the restored one, never less."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from experiment.integrity import maintenance as upkeep
from experiment.integrity import withdrawal as w
from experiment.store import Store, chain, open_store
from experiment.store import records as r
from experiment.store.backups import back_up, backups_in, copy_sqlite, rotate
from experiment.store.restoring import check_backup, contents, discard, take_place
from experiment.store.tables import people, trials
from stimuli.errors import UserError
from tests.experiment.store.conftest import ROOT, begin, do, sessions_in

Make = Callable[..., dict[str, Any]]


def add_trials(store: Store, make_trial: Make, session: str, indices: range) -> None:
    for index in indices:
        do(store, r.store_trial, make_trial(session, index))


def trials_in(target: Path | str) -> int:
    with open_store(target) as store, store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(trials)) or 0)


def test_a_backup_taken_while_trials_come_in_holds_every_trial_confirmed_before(tmp_path, plan, make_trial):
    with open_store(tmp_path) as store:
        session = begin(store, plan)
        add_trials(store, make_trial, session, range(50))
        more = threading.Thread(target=add_trials, args=(store, make_trial, session, range(50, 200)))
        more.start()
        copies = [back_up(store.address, tmp_path / "backups", stem="study") for _ in range(4)]
        more.join()
    counts = [trials_in(copy) for copy in copies]
    assert counts[0] >= 50 and counts == sorted(counts) and trials_in(tmp_path) == 200
    assert all(copy.stat().st_mode & 0o077 == 0 for copy in copies), "their owner alone can read them"
    assert len(list(copies[0].parent.iterdir())) == 4, "no copy needs a second file"
    for copy in copies:
        with open_store(copy) as backup, backup.read() as connection:
            assert chain.verify(connection, session).broken is None


def test_of_the_automatic_backups_24_hours_and_7_days_are_kept_and_none_made_by_hand(tmp_path):
    start = datetime(2026, 3, 1, 0, 30, tzinfo=UTC)
    for half_hours in range(2 * 24 * 10):
        (tmp_path / f"study-auto-{start + timedelta(minutes=30 * half_hours):%Y%m%dT%H%M%S}Z.db").touch()
    (tmp_path / "study-20260301T003000Z.db").touch()
    (tmp_path / "study-0001-20260301T003000.db").touch()
    rotate(tmp_path, "study", lambda _: True)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert "study-20260301T003000Z.db" in left and "study-0001-20260301T003000.db" in left
    assert len(left) - 2 == 24 + 5 and "study-auto-20260311T000000Z.db" in left
    assert "study-auto-20260305T233000Z.db" in left and "study-auto-20260304T233000Z.db" not in left
    assert rotate(tmp_path, "study", lambda _: True) == []


def test_backups_of_a_clock_that_was_set_back_are_older_than_all_and_push_none_out(tmp_path):
    ahead = datetime.now(UTC) + timedelta(days=400)
    for hours in range(24 * 9):
        moment = ahead + timedelta(hours=hours)
        file = tmp_path / f"study-auto-{moment:%Y%m%dT%H%M%S}Z.db"
        file.touch()
        os.utime(file, (moment.timestamp(), moment.timestamp()))
    true = tmp_path / f"study-auto-{datetime.now(UTC):%Y%m%dT%H%M%S}Z.db"
    true.touch()
    rotate(tmp_path, "study", lambda _: True)
    assert true.exists() and backups_in(tmp_path)[-1].file == true


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_restored_backup_takes_the_databases_place_and_the_former_one_is_kept_as_it_is(
    tmp_path, plan, make_trial, is_damaged
):
    with open_store(tmp_path) as store:
        session = begin(store, plan)
        add_trials(store, make_trial, session, range(5))
        copy = back_up(store.address, tmp_path / "backups", stem="study")
        add_trials(store, make_trial, session, range(5, 9))
    if is_damaged:
        (tmp_path / "study.db").write_bytes(b"lightning " * 900)
    checked = check_backup(tmp_path / "study.db", copy, "positions")
    assert (checked.backup.trials, checked.broken) == (5, {})
    assert (checked.present and checked.present.trials) == (None if is_damaged else 9)
    aside = take_place(tmp_path / "study.db", checked.ready)
    assert trials_in(tmp_path) == 5 and aside is not None
    assert aside.read_bytes().startswith(b"lightning") if is_damaged else trials_in(aside) == 9
    assert not list(tmp_path.glob("*restoring*"))


def test_a_backup_that_is_damaged_or_of_another_study_is_refused_and_nothing_changes(
    tmp_path, plan, make_trial
):
    with open_store(tmp_path) as store:
        session = begin(store, plan)
        add_trials(store, make_trial, session, range(40))
        copy = back_up(store.address, tmp_path / "backups", stem="study")
    damaged = tmp_path / "damaged.db"
    contents_of = bytearray(copy.read_bytes())
    contents_of[8192:40960] = os.urandom(40960 - 8192)
    damaged.write_bytes(contents_of)
    for file, study in ((damaged, "positions"), (copy, "garden"), (tmp_path / "none.db", "positions")):
        with pytest.raises(UserError, match=file.name if study == "positions" else study):
            check_backup(tmp_path / "study.db", file, study)
    assert not list(tmp_path.glob("*restoring*")) and trials_in(tmp_path) == 40
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE trials SET rt = 1 WHERE trial_index = 1")
    checked = check_backup(tmp_path / "study.db", copy, "positions")
    assert {one: broken.row for one, broken in checked.broken.items()} == {session: "trial 1 (attempt 1)"}
    discard(checked.ready)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_withdrawn_session_does_not_come_back_with_an_old_backup(tmp_path, plan, make_trial, is_damaged):
    with open_store(tmp_path) as store:
        hers, his = begin(store, plan, "P001"), begin(store, plan, "P002")
        add_trials(store, make_trial, hers, range(3))
        add_trials(store, make_trial, his, range(2))
        copy = back_up(store.address, tmp_path / "drawer", stem="study")
        w.withdraw(store, "positions", tmp_path, [hers], actor="participant")
    if is_damaged:
        (tmp_path / "study.db").write_bytes(b"lightning " * 900)
    checked = check_backup(tmp_path / "study.db", copy, "positions", gone=w.remembered(tmp_path))
    take_place(tmp_path / "study.db", checked.ready)
    with open_store(tmp_path) as store, store.read() as connection:
        assert checked.withdrawn == 1 and contents(connection, "positions").trials == 2
        found = chain.verify(connection, hers)
        assert found.broken is None and found.erased == found.rows


RESTORE = (
    "import sys; from pathlib import Path; from experiment.store.restoring import check_backup, take_place;"
    "db, copy = map(Path, sys.argv[1:]); print('on', flush=True);"
    "take_place(db, check_backup(db, copy, 'positions').ready)"
)


def test_a_restore_killed_at_any_moment_leaves_one_whole_database(tmp_path, plan, make_trial):
    with open_store(tmp_path) as store:
        session = begin(store, plan)
        add_trials(store, make_trial, session, range(20))
        copy = back_up(store.address, tmp_path / "backups", stem="study")
        add_trials(store, make_trial, session, range(20, 50))
    # the moments of one restore, from its first step to its end
    for delay in (0.0, 0.03, 0.08, 0.2):
        child = subprocess.Popen(
            [sys.executable, "-c", RESTORE, str(tmp_path / "study.db"), str(copy)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None and child.stdout.readline() == b"on\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert trials_in(tmp_path) in (20, 50)
        with open_store(tmp_path) as store, store.read() as connection:
            assert chain.verify(connection, session).broken is None
    last = check_backup(tmp_path / "study.db", copy, "positions")
    take_place(tmp_path / "study.db", last.ready)
    assert trials_in(tmp_path) == 20


def test_somebody_who_withdraws_while_a_copy_is_written_is_not_in_it(tmp_path, plan, monkeypatch):
    with open_store(tmp_path) as store:
        hers = begin(store, plan, "P001")
        begin(store, plan, "P002")
        copies: list[Path] = []

        def slowly(*given: Any, **options: Any) -> Path:
            copies.append(back_up(*given, **options))
            if len(copies) == 1:
                # the copy has her rows, and the withdrawal has looked for backups before it was there
                w.erase_rows(store, tmp_path, [hers], actor="participant")
            return copies[-1]

        monkeypatch.setattr(upkeep, "back_up", slowly)
        backups = tmp_path / "backups"
        backups.mkdir()
        file = upkeep.copy_of(store, "positions", backups, stem="study", actor="me")
    assert len(copies) == 2 and [one.file for one in backups_in(tmp_path / "backups")] == [file]
    assert len(sessions_in(file)) == 1


def kept(store: Store, folder: Path, days: float | None = None) -> upkeep.MaintainedStudy:
    return upkeep.MaintainedStudy("positions", folder, store, None if days is None else timedelta(days=days))


@pytest.mark.parametrize("place", ["in the way/stick", "media/stick"])
def test_a_second_place_that_cannot_be_written_is_told_and_the_first_is_served(tmp_path, place):
    noted: list[tuple[str, Exception | None]] = []
    (tmp_path / "in the way").write_text("a file")
    with open_store(tmp_path) as store:
        upkeep.Maintenance(
            [kept(store, tmp_path)], [tmp_path / place], print, lambda *one: noted.append(one)
        ).round()
    assert [(study, place in str(failure)) for study, failure in noted] == [("positions", True)]
    assert not (tmp_path / "media").exists(), "nothing is written to a disk that is not there"
    assert len(backups_in(tmp_path / "backups")) == 1


def test_platform_ids_are_forgotten_when_they_are_due_in_backups_too(tmp_path, plan):
    with open_store(tmp_path) as store:
        for name in ("old-id-0001", "new-id-0002"):
            session = begin(store, plan, name[-1])
            do(store, r.add_person, "positions", session, "prolific", name, {"PROLIFIC_PID": name})
        long_ago = "2026-01-01T00:00:00.000Z"
        old = update(people).filter_by(external_id="old-id-0001").values(created_at=long_ago)
        store.write(lambda c: c.execute(old).close()).result()
        copy = back_up(store.address, tmp_path / "backups", stem="study")
        assert upkeep.forget_platform_ids(kept(store, tmp_path, None)) == 0
        upkeep.Maintenance([kept(store, tmp_path, 30)], (), print, lambda *noted: None).round()
        for file in (tmp_path / "study.db", copy):
            assert b"old-id-0001" not in file.read_bytes()
        assert b"new-id-0002" in copy.read_bytes()
        with store.read() as connection:
            assert list(connection.scalars(select(people.c.external_id))) == ["new-id-0002"]


@pytest.mark.parametrize(
    ("text", "hours"),
    [("30 days", 720), ("1 day", 24), ("2 hours", 2), ("90 min", 1.5), ("2h", 2), ("1.5 d", 36)],
)
def test_long_durations_are_read_as_a_study_writes_them(text, hours):
    assert upkeep.long_duration(text) == timedelta(hours=hours)


def test_a_copy_that_cannot_be_written_names_its_folder_and_does_not_blame_the_database(tmp_path):
    open_store(tmp_path).close()
    with pytest.raises(UserError, match=re.escape(str(tmp_path / "away"))):
        copy_sqlite(tmp_path / "study.db", tmp_path / "away" / "study.db")


@pytest.mark.postgres
def test_without_pg_dump_a_backup_is_refused_with_a_way_out(postgres_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with open_store(postgres_url) as store, pytest.raises(UserError, match="pg_dump"):
        back_up(store.address, tmp_path / "away", stem="study")
    assert not list((tmp_path / "away").iterdir())
