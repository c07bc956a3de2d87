from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Connection, select, text

from experiment.models.journal import Journal
from experiment.store import StoreError, open_store
from experiment.store.backups import back_up
from experiment.store.database import address_of, check_place, file_system, make_engine
from experiment.store.store import MIGRATIONS, revision_of, upgrade
from experiment.store.tables import LATEST_REVISION, JsonOf, audit, metadata, runs, sessions
from stimuli.errors import UserError
from tests.experiment.store.conftest import begin, do, look, sessions_in


def test_migrations_make_exactly_the_tables_of_the_code(tmp_path):
    with open_store(tmp_path) as store, store.read() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)
        assert revision_of(connection) == LATEST_REVISION
    assert found == []
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == LATEST_REVISION


def test_only_the_owner_can_read_the_answers_and_every_commit_is_flushed(tmp_path):
    def pragmas(connection: Any) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    with open_store(tmp_path) as store:
        assert store.write(pragmas).result() == ["wal", 2, 1, 30_000]
        assert look(store, pragmas)[:3] == ["wal", 2, 1]
        assert sys.platform == "win32" or stat.S_IMODE(store.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("opened", [open_store, Journal])
def test_a_new_file_waits_for_the_program_that_is_making_it(tmp_path, opened):
    # a rollback journal, as a file has that another program has just made
    maker = sqlite3.connect(tmp_path / "study.db", isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.2, maker.rollback)
    done.start()
    with closing(opened(tmp_path)):
        done.join()
    maker.close()


@pytest.mark.parametrize("is_failing", [False, True])
def test_an_older_store_is_backed_up_then_upgraded_or_left_as_it_was(tmp_path, plan, is_failing):
    with open_store(tmp_path) as store:
        begin(store, plan, "P001")
    scripts = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, scripts)
    (scripts / "versions" / "9999_next.py").write_text(
        f"import sqlalchemy as sa\nfrom alembic import op\nrevision = '9999'\ndown_revision = '{LATEST_REVISION}'\n"
        "def upgrade():\n    op.add_column('sessions', sa.Column('mood', sa.Text))\n"
        + "    raise RuntimeError\n"
        * is_failing
    )
    engine = make_engine(address_of(tmp_path))
    if is_failing:
        with pytest.raises(RuntimeError):
            upgrade(engine, scripts=scripts, latest="9999")
        engine.dispose()
        assert [row["reader"] for row in sessions_in(tmp_path)] == ["P001"]
        return
    backup = upgrade(engine, scripts=scripts, latest="9999")
    with engine.connect() as connection:
        assert revision_of(connection) == "9999"
        assert connection.exec_driver_sql("SELECT reader, mood FROM sessions").all() == [("P001", None)]
    engine.dispose()
    assert backup is not None and backup.parent == tmp_path / "backups"
    copy = sqlite3.connect(backup)
    assert copy.execute("SELECT reader FROM sessions").fetchall() == [("P001",)]
    assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [(LATEST_REVISION,)]
    copy.close()
    with pytest.raises(UserError, match="pip install --upgrade wrods"):
        open_store(tmp_path)


def test_a_store_opens_and_is_read_while_another_program_writes(tmp_path):
    open_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "study.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with open_store(tmp_path) as store, store.read() as connection:
            assert revision_of(connection) == LATEST_REVISION


def test_a_store_of_the_first_release_keeps_its_rows(tmp_path):
    engine = make_engine(address_of(tmp_path))
    upgrade(engine, latest="0001")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO sessions (session_id, study, version, design_hash, reader_kind, reader, is_pilot, state, "
            "created_at, last_seen_at) VALUES ('s1', 'x', 1, 'h', 'human', 'P001', 0, 'finished', 't', 't')"
        )
        connection.exec_driver_sql(
            "INSERT INTO trials (session_id, trial_index, attempt, payload_hash, item_id, trial_type, is_practice, "
            "is_filler, is_attention_check, timed_out, created_at, received_at) "
            "VALUES ('s1', 0, 1, 'p', 'i', 'choose', 0, 0, 0, 0, 't', 't')"
        )
    engine.dispose()
    with open_store(tmp_path) as store, store.read() as connection:
        assert connection.exec_driver_sql("SELECT reader, lease FROM sessions").all() == [("P001", None)]
        assert connection.exec_driver_sql("SELECT item_id, hint_ms FROM trials").all() == [("i", None)]
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM ratings").scalar() == 0
    assert len(list((tmp_path / "backups").iterdir())) == 1


def test_a_database_of_something_else_is_left_alone(tmp_path):
    foreign = sqlite3.connect(tmp_path / "study.db")
    foreign.execute("CREATE TABLE recipes (name TEXT)")
    foreign.commit()
    foreign.close()
    with pytest.raises(UserError, match="recipes"):
        open_store(tmp_path)


@pytest.mark.parametrize("kept", ["junk", "a piece", "zeros in the middle of its head"])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path, kept):
    open_store(tmp_path).close()
    file = tmp_path / "study.db"
    whole = file.read_bytes()
    damaged = {
        "junk": b"junk\n",
        "a piece": whole[: len(whole) // 2],
        "zeros in the middle of its head": whole[:100] + bytes(4096) + whole[4196:],
    }[kept]
    file.write_bytes(damaged)
    with pytest.raises(UserError, match=r"study\.db") as refused:
        open_store(tmp_path)
    assert str(tmp_path / "backups") in str(refused.value)
    assert file.read_bytes() == damaged


COLUMNS_OF_JSON = [
    column for table in metadata.sorted_tables for column in table.columns if isinstance(column.type, JsonOf)
]


OTHER_KIND = {dict: "[]", list: "5"}
OTHER_SHAPE = {
    sessions.c.plan: (
        '{"screens":5}',
        '{"screens":[5]}',
        '{"screens":[{"trials":[5]}]}',
        '{"screens":[{"trials":[{"trial_index":[]}]}]}',
        '{"screens":[{"trials":[{"steps":5}]}]}',
        '{"screens":[{"pages":"x"}]}',
        '{"if_interrupted":5}',
    ),
    runs.c.figures: ('{"number":"x"}', '{"stored_before":[]}', '{"tokens":{"prompt_tokens":{}}}'),
    audit.c.detail: (
        '{"engine":5}',
        '{"engine":{"parameters":"x"}}',
        '{"numbers":[]}',
        '{"work_keys":5}',
        '{"token_hash":[]}',
        '{"tries":{}}',
    ),
}
FOREIGN = [(column, value) for column in COLUMNS_OF_JSON for value in ("{", OTHER_KIND[column.type.kind])]
FOREIGN += [(column, value) for column, values in OTHER_SHAPE.items() for value in values]


def spoil(connection: Connection, column: Column[Any], session_id: str, value: str) -> None:
    """Write a text into a JSON column of a session's row, as somebody who edits the database."""
    table = column.table
    if table is sessions:
        change = f"UPDATE sessions SET {column.name} = :value WHERE session_id = :session_id"
        connection.execute(text(change), {"value": value, "session_id": session_id})
        return
    example: dict[type, Any] = {int: 1, float: 1.0, bool: True}
    row = {
        other.name: example.get(other.type.python_type, "x")
        for other in table.columns
        if other is not column and not (other.nullable or isinstance(other.type, JsonOf))
    } | {column.name: value}
    if "session_id" in table.columns:
        row["session_id"] = session_id
    names = ", ".join(row)
    connection.execute(
        text(f"INSERT INTO {table.name} ({names}) VALUES (:{names.replace(', ', ', :')})"), row
    )


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_json_that_wrods_did_not_write_is_named_with_its_row(tmp_path, request, plan, kind):
    target = tmp_path if kind == "sqlite" else request.getfixturevalue("postgres_url")
    plan = plan | {"screens": []}
    with open_store(target) as store:
        for column, value in FOREIGN:
            if kind == "postgresql" and value == "{":
                continue  # which PostgreSQL refuses
            hurt, sound = (begin(store, plan, reader) for reader in ("P001", "P002"))
            do(store, spoil, column, hurt, value)
            with pytest.raises(StoreError) as refused, store.read() as connection:
                connection.execute(select(column)).all()
            writing = store.write(lambda c, column=column: c.execute(select(column)).all())
            with pytest.raises(StoreError, match=f"{column.table.name}.{column.name}"):
                writing.result()
            assert store.trouble is None, "every other row can be read and written"
            said = str(refused.value)
            assert f"{column.table.name}.{column.name}" in said and sound not in said, value
            if "session_id" in column.table.columns and column.table is not audit:
                assert f"--session {hurt}" in said and "P001" in said, (column, value)
            every = reversed(metadata.sorted_tables)
            store.write(lambda c, every=every: [c.execute(table.delete()) for table in every]).result()


@pytest.mark.parametrize("column", [sessions.c.plan, audit.c.detail], ids=str)
def test_the_backup_from_before_json_was_changed_is_named(tmp_path, plan, column):
    with open_store(tmp_path) as store:
        hurt = begin(store, plan, "P001")
        kept = back_up(store.address, tmp_path / "backups", stem="study")
        do(store, spoil, column, hurt, "{")
        back_up(store.address, tmp_path / "backups", stem="study")  # holds the same fault
        with pytest.raises(StoreError) as refused, store.read() as connection:
            connection.execute(select(column)).all()
    assert str(kept) in str(refused.value) and str(tmp_path / "study.db") in str(refused.value)


def test_a_file_that_another_program_holds_is_not_called_damaged(tmp_path, monkeypatch):
    for module in ("database", "damage"):
        monkeypatch.setattr(f"experiment.store.{module}.BUSY_TIMEOUT_S", 0)
    open_store(tmp_path).close()
    holder = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match=r"database is locked(.|\n)*program"):
        open_store(tmp_path)
    holder.close()


def test_a_server_that_does_not_answer_is_named_without_the_password():
    pytest.importorskip("psycopg")
    with pytest.raises(UserError, match=r"'study' at 127\.0\.0\.1:1") as refused:
        open_store("postgresql://nobody:verysecret@127.0.0.1:1/study")
    assert "verysecret" not in str(refused.value)
    with pytest.raises(UserError, match="mysql"):
        open_store("mysql://me@host/data")


@given(st.text(), st.text(min_size=1).map(lambda name: "/" + name.replace("\0", "")))
def test_no_mount_table_breaks_the_reading(mounts, folder):
    found = file_system(Path(folder), mounts)
    assert found is None or found in mounts


def test_a_synced_or_network_folder_is_refused_with_a_mend(tmp_path):
    synced = tmp_path / "Dropbox"
    synced.mkdir()
    with pytest.raises(UserError, match="Dropbox") as refused:
        open_store(synced)
    assert "PostgreSQL" in str(refused.value)
    assert not list(synced.iterdir())
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} nfs rw 0 0\n")
    with pytest.raises(UserError, match="NFS"):
        check_place(tmp_path / "study.db", mounts=mounts)
