"""Nobody who was withdrawn or declined comes back with a backup, wherever it was, whatever was killed, whatever was restored."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import select

from experiment.integrity import maintenance as upkeep
from experiment.integrity import withdrawal as w
from experiment.people.recruitment.admission import invite, spend_invitation
from experiment.store import Store, open_store
from experiment.store import records as r
from experiment.store.assignment import next_reader
from experiment.store.backups import back_up
from experiment.store.restoring import restoring
from experiment.store.tables import invitations, sessions
from experiment.study import Study
from tests.experiment.commands import wrods
from tests.experiment.store.conftest import HERS, ROOT, answer, begin, do, files_with, sessions_in

Make = Callable[..., dict[str, Any]]


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def plan(plan: dict[str, Any]) -> dict[str, Any]:
    return plan | {"study": "small"}


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    (tmp_path / "stick").mkdir()
    return tmp_path / "stick"


@pytest.fixture
def study(make_study: Any) -> Study:
    return make_study()  # type: ignore[no-any-return]


@pytest.mark.parametrize("is_lost", [False, True])
def test_after_a_restore_every_place_is_known_from_before(study, plan, make_trial, stick, tmp_path, is_lost):
    with open_store(study.folder) as store:
        answer(store, plan, make_trial, "P001")
    first = Path(told(wrods("backup", study.folder, "--to", stick, "--json"))["file"])
    elsewhere = tmp_path / "drawer"
    elsewhere.mkdir()
    if not is_lost:
        told(wrods("backup", study.folder, "--to", elsewhere, "--json"))
        assert wrods("export", study.folder, "--out", tmp_path / "exported").exit_code == 0
    else:
        (study.folder / "study.db").write_bytes(b"lightning " * 900)
    told(wrods("restore", study.folder, first, "--yes", "--json"))
    result = wrods("withdraw", study.folder, "--participant", "P001", "--yes", "--json")
    done = json.loads(result.stdout)
    # nobody can look into the damaged database, so it is named
    assert ["study-damaged" in line for line in done["left"]] == [True] * is_lost, result.output
    assert str(first) in done["backups_cleaned"]
    assert files_with(stick, HERS) == files_with(elsewhere, HERS) == []
    assert is_lost or any("exported: " in line for line in done["beyond"])


def test_a_file_that_was_restored_from_anywhere_is_cleaned_with_the_others(study, plan, make_trial, tmp_path):
    with open_store(study.folder) as store:
        answer(store, plan, make_trial, "P001")
    moved = tmp_path / "desk" / "copy.db"
    moved.parent.mkdir()
    with open_store(study.folder) as store:
        back_up(store.address, moved, stem="study")
    told(wrods("restore", study.folder, moved, "--yes", "--json"))
    done = told(wrods("withdraw", study.folder, "--participant", "P001", "--yes", "--json"))
    assert str(moved) in done["backups_cleaned"] and files_with(tmp_path, HERS) == []


KILLED_RESTORE = (
    "import os, sys; from pathlib import Path; from experiment.store.restoring import check_backup, restoring\n"
    "db, copy = map(Path, sys.argv[1:])\n"
    "with restoring(db):\n check_backup(db, copy, 'small'); os.kill(os.getpid(), 9)"
)


def test_the_copy_of_a_killed_restore_is_removed_by_the_next_withdrawal(study, plan, make_trial):
    database = study.folder / "study.db"
    with open_store(study.folder) as store:
        answer(store, plan, make_trial, "P001")
        copy = back_up(store.address, study.folder / "backups", stem="study")
    subprocess.run([sys.executable, "-c", KILLED_RESTORE, str(database), str(copy)], cwd=ROOT, check=False)
    assert "study-restoring.db" in files_with(study.folder, HERS)
    told(wrods("withdraw", study.folder, "--participant", "P001", "--yes", "--json"))
    assert files_with(study.folder, HERS) == []


def test_somebody_who_withdraws_while_a_restore_asks_is_not_brought_back(
    study, plan, make_trial, monkeypatch
):
    with open_store(study.folder) as store:
        hers = answer(store, plan, make_trial, "P001")
        answer(store, plan, make_trial, "P002")
        copy = back_up(store.address, study.folder / "backups", stem="study")

    def meanwhile(*_: object, **__: object) -> bool:
        with open_store(study.folder) as other:
            _, scrubbed = w.withdraw(other, "small", study.folder, [hers], actor="me")
        assert any("study-restoring.db" in line for line in scrubbed.left)
        return True

    monkeypatch.setattr("click.confirm", meanwhile)
    done = wrods("restore", study.folder, copy)
    assert done.exit_code == 0, done.output
    assert [row["reader"] for row in sessions_in(study.folder)] == ["P002"]


def test_two_restores_at_once_are_refused(study, plan):
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
        copy = back_up(store.address, study.folder / "backups", stem="study")
    with restoring(study.folder / "study.db"):
        refused = wrods("restore", study.folder, copy, "--yes")
    assert refused.exit_code == 1 and "wrods restore" in refused.output


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_part_of_a_killed_backup_holds_nobodys_answers_either(study, plan, make_trial, is_whole):
    part = study.folder / "backups" / ".study-auto-20261121T140000Z.db.0123456789abcdef"
    with open_store(study.folder) as store:
        for reader in ("P001", "P002"):
            answer(store, plan, make_trial, reader)
        part.parent.mkdir()
        whole = back_up(store.address, study.folder / "whole.db", stem="study")
        if is_whole:
            whole.rename(part)
        else:
            write = (
                "import os, sqlite3, sys\n"
                "read, write = sqlite3.connect(sys.argv[1]), sqlite3.connect(sys.argv[2])\n"
                "write.execute('PRAGMA cache_size = 1')\n"
                "read.backup(write, pages=20, progress=lambda *_: os.kill(os.getpid(), 9))"
            )
            subprocess.run([sys.executable, "-c", write, str(whole), str(part)], check=False)
            whole.unlink()
    done = told(wrods("withdraw", study.folder, "--participant", "P001", "--yes", "--json"))
    assert done["left"] == []
    data = part.read_bytes()
    assert data.count(HERS.encode()) == int(is_whole), "his answer is still in it, hers is not"


def test_an_old_part_of_a_killed_backup_is_removed_in_time(study, plan, stick):
    mine = stick / ".small-auto-20261121T140000Z.db.0123456789abcdef"
    theirs = stick / ".large-auto-20261121T140000Z.db.0123456789abcdef"
    young = stick / ".small-auto-20261121T150000Z.db.0123456789abcdef"
    for file in (mine, theirs, young):
        file.touch()
        age = 0 if file == young else 2 * 86400
        os.utime(file, (time.time() - age,) * 2)
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
        upkeep.make_backups(upkeep.MaintainedStudy("small", study.folder, store, None), [stick])
    assert not mine.exists() and theirs.exists() and young.exists()


def bob(store: Store, plan: dict[str, Any], folder: Path) -> tuple[str, list[Path]]:
    """Invite Bob, replace his link, and let him begin; return his session and the backups made before each step."""
    copies = []
    for again in (False, True):
        (link,) = do(store, invite, "small", ["Bob the Builder"], base_url="http://x", days=None, again=again)
        copies.append(back_up(store.address, folder / "backups", stem="study"))
    token = link.link.partition("invitation=")[2]
    session = begin(store, plan, "P001")

    def bind(c: Any) -> None:
        r.add_person(c, "small", session, "invitation", "Bob the Builder")
        spend_invitation(c, "small", token, session)

    store.write(bind).result()
    return session, copies


@pytest.mark.parametrize("actor", ["me", "participant"])
def test_an_invited_name_leaves_backups_from_before_the_session_and_does_not_come_back(
    study, plan, tmp_path, actor
):
    with open_store(study.folder) as store:
        hers = begin(store, plan, "P009")
        session, copies = bob(store, plan, study.folder)
        drawer = tmp_path / "drawer"
        shutil.copytree(study.folder / "backups", drawer)
        w.withdraw(store, "small", study.folder, [session], actor=actor)
        assert files_with(study.folder, "Bob") == []
    told(wrods("restore", study.folder, drawer / copies[0].name, "--yes", "--json"))
    with open_store(study.folder) as store, store.read() as connection:
        assert connection.execute(select(invitations)).all() == []
        assert connection.scalars(select(sessions.c.session_id)).all() == [hers]


def test_the_file_of_personal_links_is_listed_as_not_erased(make_study, tmp_path):
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: link}\n"))
    names = tmp_path / "names.txt"
    names.write_text("Bob\nAda\n")
    asked = ("invite", study.folder, "--participants", names, "--base-url", "http://x")
    assert wrods(*asked).exit_code == 0
    assert wrods(*asked, "--again", "--out", tmp_path / "mine.csv").exit_code == 0
    done = wrods("withdraw", study.folder, "--participant", "Bob", "--yes", "--json")
    told_of = "\n".join(told(done)["beyond"])
    assert "invitations-" in told_of and f"{tmp_path / 'mine.csv'}: personal links" in told_of


def test_somebody_who_was_invited_and_never_began_is_withdrawn_by_name(study, plan):
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
        do(store, invite, "small", ["Bob the Builder", "Ada"], base_url="http://x", days=None)
        copy = back_up(store.address, study.folder / "backups", stem="study")
    asked = wrods("withdraw", study.folder, "--participant", "Bob the Builder", given="n\n")
    assert "Bob the Builder: " in asked.output
    done = told(wrods("withdraw", study.folder, "--participant", "Bob the Builder", "--yes", "--json"))
    assert done["links"] == 1 and done["backups_cleaned"] == [str(copy)]
    assert files_with(study.folder, "Bob") == []
    with open_store(study.folder) as store, store.read() as connection:
        assert list(connection.scalars(select(invitations.c.participant))) == ["Ada"]
        assert len(connection.scalars(select(sessions.c.session_id)).all()) == 1


def test_a_number_is_not_given_again_after_a_restore_of_an_older_backup(study, plan):
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
        copy = back_up(store.address, study.folder / "backups", stem="study")
        last = begin(store, plan, "P002")
        w.withdraw(store, "small", study.folder, [last], actor="me")
    back = told(wrods("restore", study.folder, copy, "--yes", "--json"))
    assert back["broken"] == {} and back["sessions"] == 1
    with open_store(study.folder) as store:
        assert do(store, next_reader, "small") == "P003"
    assert "Rows   holds" in wrods("freeze", study.folder, "--verify").output


def test_the_list_of_withdrawn_people_goes_with_the_backups(study, plan, make_trial, stick, tmp_path):
    drawer = tmp_path / "drawer"
    with open_store(study.folder) as store:
        hers = answer(store, plan, make_trial, "P001")
        answer(store, plan, make_trial, "P002")
        one = upkeep.MaintainedStudy("small", study.folder, store, None)
        upkeep.make_backups(one, [stick])
        shutil.copytree(stick, drawer)
        w.withdraw(store, "small", study.folder, [hers], actor="me")
        upkeep.make_backups(one, [stick])
    for lost in (*study.folder.glob("study.db*"), *(study.folder / "backups").iterdir()):
        lost.unlink()
    (copy,) = drawer.glob("*.db")
    shutil.copy(copy, stick / "old.db")
    back = wrods("restore", study.folder, stick / "old.db", "--yes", "--json")
    assert told(back)["withdrawn"] == 1 and "withdrawn.txt" not in back.stderr
    (study.folder / "study.db").unlink()
    shutil.rmtree(study.folder / "backups")
    alone = wrods("restore", study.folder, copy, "--yes", "--json")
    assert told(alone)["withdrawn"] == 0 and "withdrawn.txt" in alone.stderr


def test_an_empty_name_erases_nobody(study, plan):
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
    for name in ("participant", "platform-id", "session", "backups"):
        more = ["--again"] if name == "backups" else []
        refused = wrods("withdraw", study.folder, f"--{name}", " ", *more, "--yes")
        assert refused.exit_code == 2 and f"--{name}" in refused.output
    assert len(sessions_in(study.folder)) == 1


def test_a_file_that_is_no_database_is_named_with_a_remedy_that_fits(study, plan, stick):
    strange = stick / "strange.db"
    strange.write_bytes(b"no database at all, but long enough to be read" * 50)
    with open_store(study.folder) as store:
        begin(store, plan, "P001")
        (line,) = w.scrub(store, "small", study.folder, backups=[stick]).left
    assert line.startswith(str(strange)) and "-wal" in line
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(strange).execute("SELECT 1 FROM sqlite_master")
