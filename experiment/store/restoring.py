"""Restores a study's database from a backup, and sets the current one aside.

The backup is copied next to the database, checked, upgraded to this version's tables and cleaned of withdrawn sessions; only
then does it take the database's name, atomically. A program killed at any moment leaves either the current database or the
restored one.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import URL, Connection, Engine, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from experiment.store.backups import FOLDER, back_up, copy_sqlite, rows_of, run_postgres
from experiment.store.chain import WITHDRAWN, Broken, chained_sessions, verify, withdrawn_sessions
from experiment.store.database import SQL, address_of, lock_for_change, make_engine
from experiment.store.erasure import UNINVITED, erase_sessions, withdrawn
from experiment.store.records import add_audit
from experiment.store.store import Store, open_store
from experiment.store.tables import LATEST_REVISION, audit, sessions, sign_ins, trials, versions
from stimuli.errors import UserError
from stimuli.files import settle

RESTORE = "restore"
"""The actor if nobody is named."""
_LOG_FILES = ("-wal", "-shm", "-journal")
_CARRIED = ("backup", "export", "invite", RESTORE, WITHDRAWN, UNINVITED)
"""Actions of audit rows that a restore copies from the current database: locations of data, and withdrawals."""
_COMPARED = {
    "alembic_version": ("version_num",),
    "sessions": ("session_id", "study", "last_seen_at"),
    "trials": ("session_id",),
    "versions": ("study",),
}
_ENDING_S = 3.0
"""Seconds for which PostgreSQL may still list a connection that was just closed."""


@dataclass(frozen=True)
class Contents:
    """Contents of a database for one study."""

    sessions: int
    trials: int
    newest: str | None


@dataclass(frozen=True)
class CheckedBackup:
    """A backup that was checked and prepared next to the database."""

    ready: Path
    backup: Contents
    present: Contents | None
    withdrawn: int
    broken: dict[str, Broken]
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Present:
    """Parts of the current database that a restore takes over: its contents, what was withdrawn, and rows of its audit."""

    contents: Contents | None = None
    gone: list[str] = field(default_factory=list)
    carried: list[Mapping[str, Any]] = field(default_factory=list)

    def with_gone(self, more: Sequence[str]) -> _Present:
        """Return the same parts with further withdrawn sessions."""
        return replace(self, gone=[*dict.fromkeys((*self.gone, *more))])


@dataclass(frozen=True)
class Comparison:
    """A dump compared with the PostgreSQL database that it would replace."""

    backup: Contents
    present: Contents
    others: dict[str, tuple[int, int]]


@contextmanager
def restoring(database: Path) -> Iterator[None]:
    """Hold the right to restore an SQLite database, so that nobody else removes the copy that is being prepared."""
    lock = _lock(database)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"another `wrods restore` of {database} is in progress",
            mend="Answer its question or cancel it first.",
            exit_code=1,
        ) from None
    try:
        yield
    finally:
        lock.release()


def discard_abandoned(database: Path) -> list[str]:
    """Remove the copy that a killed restore left behind; return a sentence if a restore is in progress."""
    ready = _ready(database)
    if not ready.exists():
        return []
    try:
        with _lock(database):
            _remove(ready)
    except Timeout:
        return [f"{ready}: a restore is in progress; answer its question or cancel it"]
    return []


def _ready(database: Path) -> Path:
    return database.with_name(f"{database.stem}-restoring.db")


def _lock(database: Path) -> FileLock:
    return FileLock(database.with_name(f"{database.name}.restoring.lock"), timeout=0)


def check_backup(
    database: Path, backup: Path, study: str, *, gone: Sequence[str] = (), actor: str = RESTORE
) -> CheckedBackup:
    """Copy a backup next to a database and check it: intact file, known tables, the right study, chains that verify."""
    if not backup.is_file():
        raise UserError(f"there is no backup {backup}", mend=f"Look in {database.parent / FOLDER}.")
    ready = _ready(database)
    _remove(ready)
    os.close(os.open(ready, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        copy_sqlite(backup, ready)
        present = _look(database, study).with_gone(gone)
        before = set((database.parent / FOLDER).glob("*"))
        with open_store(ready) as store:
            for made in set((database.parent / FOLDER).glob(f"{ready.stem}-*")) - before:
                made.unlink()  # the upgrade's own copy of a copy
            checked = _check(store, ready, study, present, actor, backup)
        with closing(sqlite3.connect(ready, isolation_level=None)) as plain:
            plain.execute("PRAGMA secure_delete = ON")
            plain.execute("PRAGMA journal_mode = DELETE").fetchone()
            plain.execute("VACUUM")
    except BaseException:
        _remove(ready)
        raise
    return checked


def take_place(database: Path, ready: Path) -> Path | None:
    """Replace the database by a checked copy; return where the former database was stored."""
    aside = _set_aside(database)
    settle(ready)
    ready.replace(database)
    settle(database.parent)
    return aside


def discard(ready: Path) -> None:
    """Remove a checked copy that is not needed."""
    _remove(ready)


def withdrawn_in(database: Path, study: str) -> list[str]:
    """Return what was withdrawn from an SQLite database so far; empty if it cannot be read."""
    return _look(database, study).gone


def compare_dump(address: URL, backup: Path, folder: Path, study: str) -> Comparison:
    """Compare a dump with the PostgreSQL database that it would replace, without changing anything."""
    if not backup.is_file():
        raise UserError(f"there is no backup {backup}", mend=f"Look in {folder / FOLDER}.")
    rows_by_table: dict[str, list[tuple[str, ...]]] = {name: [] for name in _COMPARED}
    for table, row in rows_of(backup, _COMPARED):
        rows_by_table[table].append(row)
    if rows_by_table["alembic_version"] > [(LATEST_REVISION,)]:
        raise UserError(f"{backup} was written by a newer version of wrods", mend="Update wrods first.")
    mine = {session: seen for session, of, seen in rows_by_table["sessions"] if of == study}
    dumped = Counter(of for _, of, _ in rows_by_table["sessions"])
    known = {of for (of,) in rows_by_table["versions"]} | dumped.keys()
    if study not in known:
        what = (
            f"the backup is of {', '.join(sorted(known))}, not of"
            if known
            else f"{backup} holds no sessions of"
        )
        raise UserError(f"{what} {study}", mend="Choose another file.")
    answered = sum(session in mine for (session,) in rows_by_table["trials"])
    with open_store(address.render_as_string(hide_password=False)) as store, store.read() as connection:
        present = contents(connection, study)
        now = Counter(connection.scalars(select(sessions.c.study)))
        others = {*now, *dumped, *connection.scalars(select(versions.c.study))} - {study}
    return Comparison(
        Contents(len(mine), answered, max(mine.values(), default=None)),
        present,
        {other: (now[other], dumped[other]) for other in sorted(others)},
    )


def restore_postgres(
    address: URL, backup: Path, folder: Path, study: str, *, gone: Sequence[str] = (), actor: str = RESTORE
) -> tuple[Path, CheckedBackup]:
    """Restore a PostgreSQL store from a dump in one transaction, after a dump of its current state.

    A dump contains the whole database: all studies in it are replaced (see :func:`compare_dump`).
    """
    compare_dump(address, backup, folder, study)
    with _alone(address) as engine:
        with engine.connect() as connection:
            present = _read_present(connection, study).with_gone(gone)
            # a table that was read in a transaction cannot be replaced until it ends
            connection.rollback()
        aside = back_up(address, folder / FOLDER, stem="study-before-restore")
        options = ["--single-transaction", "--clean", "--if-exists", "--no-owner", str(backup)]
        run_postgres("pg_restore", address, options)
    # older tables are upgraded under the same lock
    with open_store(address.render_as_string(hide_password=False)) as store:
        checked = _check(store, backup, study, present, actor, backup)
        detail = {"to": str(aside.resolve())}
        store.write(lambda c: add_audit(c, actor, "backup", study=study, detail=detail)).result()
    return aside, checked


@contextmanager
def _alone(address: URL) -> Iterator[Engine]:
    """Hold the lock that `wrods serve` waits for at its start, unless any program is connected to the database."""
    engine = make_engine(address)
    try:
        with engine.connect() as connection, connection.begin():
            lock_for_change(connection)
            until = time.monotonic() + _ENDING_S
            while (other := connection.execute(SQL["other_programs"]).first()) is not None:
                if time.monotonic() > until:
                    name = f" ({other.application_name})" if other.application_name else ""
                    raise UserError(
                        f"another program is connected to the database {address.database}: process {other.pid} of "
                        f"{other.usename}{name}, since {other.backend_start.astimezone(UTC):%d %B %Y, %H:%M} UTC",
                        mend="Stop `wrods serve` and `wrods run` of every study in this database, and other programs that use "
                        "it, then give the command again.",
                        exit_code=1,
                    )
                time.sleep(0.1)
            yield engine
    finally:
        engine.dispose()


def contents(connection: Connection, study: str) -> Contents:
    """Return the number of a study's rows in a database."""
    mine = select(sessions.c.session_id).where(sessions.c.study == study)
    return Contents(
        sessions=int(connection.scalar(select(func.count()).select_from(mine.subquery())) or 0),
        trials=int(connection.scalar(select(func.count()).where(trials.c.session_id.in_(mine))) or 0),
        newest=connection.scalar(select(func.max(sessions.c.last_seen_at)).where(sessions.c.study == study)),
    )


def _check(
    store: Store, ready: Path, study: str, present: _Present, actor: str, backup: Path
) -> CheckedBackup:
    with store.read() as connection:
        known = list(connection.scalars(select(versions.c.study).distinct()))
        known += list(connection.scalars(select(sessions.c.study).distinct()))
        here = set(connection.scalars(select(sessions.c.session_id))) & set(present.gone)
    if study not in known:
        what = (
            f"the backup is of {', '.join(sorted(set(known)))}, not" if known else f"{backup} holds nothing"
        )
        raise UserError(f"{what} of {study}", mend="Choose another file.")

    def bring_up_to_date(connection: Connection) -> None:
        erase_sessions(connection, present.gone, actor=actor)
        there = {_said(dict(row)) for row in connection.execute(_CARRIED_ROWS).mappings()}
        stones = set(withdrawn_sessions(connection))
        new = [
            {name: value for name, value in row.items() if name != "audit_id"}
            for row in present.carried
            if _said(row) not in there and not (row["action"] == WITHDRAWN and row["session_id"] in stones)
        ]
        if new:
            connection.execute(audit.insert(), new)
        # what has ended since the backup stays ended
        connection.execute(delete(sign_ins))
        add_audit(connection, actor, RESTORE, study=study, detail={"from": str(backup.resolve())})

    store.write(bring_up_to_date).result()
    with store.read() as connection:
        verified = {session: verify(connection, session) for session in chained_sessions(connection, study)}
        # sessions older than chains have none, which is not damage
        broken = {
            session: result.broken
            for session, result in verified.items()
            if result.broken is not None and result.head is not None
        }
        return CheckedBackup(
            ready, contents(connection, study), present.contents, len(here), broken, frozenset(present.gone)
        )


_CARRIED_ROWS = select(audit).where(audit.c.action.in_(_CARRIED)).order_by(audit.c.audit_id)


def _said(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("at", "actor", "action", "study", "session_id", "detail"))


def _look(database: Path, study: str) -> _Present:
    """Return what a restore takes from an SQLite database; empty if it cannot be read."""
    if not database.exists():
        return _Present()
    try:
        with open_store(database) as store, store.read() as connection:
            return _read_present(connection, study)
    except (UserError, SQLAlchemyError, sqlite3.Error):
        return _Present()


def _read_present(connection: Connection, study: str) -> _Present:
    rows: list[Mapping[str, Any]] = [dict(row) for row in connection.execute(_CARRIED_ROWS).mappings()]
    return _Present(contents(connection, study), withdrawn(connection), rows)


def _set_aside(database: Path) -> Path | None:
    if not database.exists():
        return None
    folder = database.parent / FOLDER
    folder.mkdir(exist_ok=True)
    try:
        with closing(sqlite3.connect(database, timeout=2, isolation_level=None)) as plain:
            # leaves one file, and fails while any other program has the database open
            plain.execute("PRAGMA journal_mode = DELETE").fetchone()
        return back_up(address_of(database), folder, stem=f"{database.stem}-before-restore")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise UserError(
                f"another program has {database} open",
                mend="Stop `wrods serve` and `wrods run` of this study first, then give the command again.",
                exit_code=1,
            ) from error
        return _move_aside(database, folder)
    except (sqlite3.DatabaseError, UserError):
        return _move_aside(database, folder)


def _move_aside(database: Path, folder: Path) -> Path:
    """Move an unreadable database and its companion files aside, unchanged; return its new path."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = folder / f"{database.stem}-damaged-{moment}.db"
    for ending in _LOG_FILES:
        log = database.with_name(database.name + ending)
        if log.exists():
            log.replace(aside.with_name(aside.name + ending))
    database.replace(aside)
    return aside


def _remove(ready: Path) -> None:
    for ending in ("", *_LOG_FILES):
        ready.with_name(ready.name + ending).unlink(missing_ok=True)
