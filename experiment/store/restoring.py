"""Puts a backup in the place of a study's database, keeping the present one aside.

The backup is copied, checked, brought to this version's tables and freed of withdrawn sessions beside the database;
only then does it take the database's name, in one step. A program killed at any moment leaves either the present database
or the restored one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, Connection, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from experiment.store.backups import FOLDER, back_up, copy_sqlite, run_postgres
from experiment.store.chain import Broken, chained_sessions, verify, withdrawn_sessions
from experiment.store.database import address_of
from experiment.store.erasure import erase_sessions
from experiment.store.records import add_audit
from experiment.store.store import Store, open_store
from experiment.store.tables import sessions, sign_ins, trials, versions
from stimuli.errors import UserError
from stimuli.files import settle

RESTORE = "restore"
"""Who acts where nobody is named."""
_LOG_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Contents:
    """What a database holds of a study."""

    sessions: int
    trials: int
    newest: str | None


@dataclass(frozen=True)
class Checked:
    """A backup that was checked and made ready beside the database.

    Attributes
    ----------
    ready : Path
        The copy that will take the database's place.
    backup, present : Contents
        What each holds; ``present`` is None where the present database is missing or cannot be read.
    withdrawn : int
        Sessions in the backup that were withdrawn since, and are erased from the copy.
    broken : dict of str to Broken
        Sessions whose chain does not verify, with the first fault.
    """

    ready: Path
    backup: Contents
    present: Contents | None
    withdrawn: int
    broken: dict[str, Broken]


def check_backup(
    database: Path, backup: Path, study: str, *, gone: Sequence[str] = (), actor: str = RESTORE
) -> Checked:
    """Copy a backup beside a database and check it: sound file, known tables, the right study, chains that verify.

    Parameters
    ----------
    database : Path
        The study's database file; it is only read.
    backup : Path
        A SQLite backup of this or an earlier version.
    study : str
        The study's id.
    gone : sequence of str
        Withdrawn sessions beside those whose tombstones the present database holds.

    Raises
    ------
    UserError
        The backup is missing, damaged, of a newer version or of another study.
    """
    if not backup.is_file():
        raise UserError(f"there is no backup {backup}", mend=f"Look in {database.parent / FOLDER}.")
    ready = database.with_name(f"{database.stem}-restoring.db")
    _remove(ready)
    os.close(os.open(ready, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        copy_sqlite(backup, ready)
        present, erased = _look(database, study)
        before = set((database.parent / FOLDER).glob("*"))
        with open_store(ready) as store:
            for made in set((database.parent / FOLDER).glob(f"{ready.stem}-*")) - before:
                made.unlink()  # the upgrade's own copy of a copy
            checked = _check(store, ready, study, present, [*dict.fromkeys((*erased, *gone))], actor)
            store.write(
                lambda c: add_audit(c, actor, "restore", study=study, detail={"from": str(backup)})
            ).result()
        _one_file(ready)
    except BaseException:
        _remove(ready)
        raise
    return checked


def take_place(database: Path, ready: Path) -> Path | None:
    """Let a checked copy take the database's place, and return where the former database was kept.

    Raises
    ------
    UserError
        Another program has the database open.
    """
    aside = _set_aside(database)
    settle(ready)
    ready.replace(database)
    settle(database.parent)
    return aside


def discard(ready: Path) -> None:
    """Remove a checked copy that is not wanted."""
    _remove(ready)


def restore_postgres(
    address: URL, backup: Path, folder: Path, study: str, *, gone: Sequence[str] = (), actor: str = RESTORE
) -> tuple[Path, Checked]:
    """Restore a PostgreSQL store from a dump in one transaction, after a dump of its present state.

    Returns
    -------
    tuple of Path and Checked
        The dump of the state before, and what the store holds now (``ready`` is the dump that was restored).

    Raises
    ------
    UserError
        The dump is missing or refused; PostgreSQL's programs are missing.
    """
    if not backup.is_file():
        raise UserError(f"there is no backup {backup}", mend=f"Look in {folder / FOLDER}.")
    text = address.render_as_string(hide_password=False)
    with open_store(text) as store, store.read() as connection:
        erased = withdrawn_sessions(connection)
        present = contents(connection, study)
    aside = back_up(address, folder / FOLDER, stem="study-before-restore")
    options = ["--single-transaction", "--clean", "--if-exists", "--no-owner", str(backup)]
    run_postgres("pg_restore", address, options)
    with open_store(text) as store:
        checked = _check(store, backup, study, present, [*dict.fromkeys((*erased, *gone))], actor)
        store.write(
            lambda c: add_audit(c, actor, "restore", study=study, detail={"from": str(backup)})
        ).result()
    return aside, checked


def contents(connection: Connection, study: str) -> Contents:
    """Count what a database holds of a study."""
    mine = select(sessions.c.session_id).where(sessions.c.study == study)
    return Contents(
        sessions=int(connection.scalar(select(func.count()).select_from(mine.subquery())) or 0),
        trials=int(connection.scalar(select(func.count()).where(trials.c.session_id.in_(mine))) or 0),
        newest=connection.scalar(select(func.max(sessions.c.last_seen_at)).where(sessions.c.study == study)),
    )


def _check(
    store: Store, ready: Path, study: str, present: Contents | None, gone: Sequence[str], actor: str
) -> Checked:
    with store.read() as connection:
        known = list(connection.scalars(select(versions.c.study).distinct()))
        known += list(connection.scalars(select(sessions.c.study).distinct()))
        here = set(connection.scalars(select(sessions.c.session_id))) & set(gone)
    if known and study not in known:
        raise UserError(
            f"the backup is of {', '.join(sorted(set(known)))}, not of {study}", mend="Choose another file."
        )
    if here:
        erase = _erasing(sorted(here), actor)
        store.write(erase).result()
    # what has ended since the backup stays ended
    store.write(lambda connection: connection.execute(delete(sign_ins)).close()).result()
    with store.read() as connection:
        found = {one: verify(connection, one) for one in chained_sessions(connection, study)}
        # sessions from before there were chains have none, which is no damage
        broken = {
            one: told.broken
            for one, told in found.items()
            if told.broken is not None and told.head is not None
        }
        return Checked(ready, contents(connection, study), present, len(here), broken)


def _erasing(session_ids: Sequence[str], actor: str) -> Callable[[Connection], None]:
    def erase(connection: Connection) -> None:
        erase_sessions(connection, session_ids, actor=actor)

    return erase


def _look(database: Path, study: str) -> tuple[Contents | None, list[str]]:
    """Return what the present database holds and whom it knows to be withdrawn, if it can be read."""
    if not database.exists():
        return None, []
    try:
        with open_store(database) as store, store.read() as connection:
            return contents(connection, study), withdrawn_sessions(connection)
    except (UserError, SQLAlchemyError, sqlite3.Error):
        return None, []


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
    """Keep a database that cannot be read, as it is, with what belongs to it."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = folder / f"{database.stem}-damaged-{moment}.db"
    for ending in _LOG_FILES:
        log = database.with_name(database.name + ending)
        if log.exists():
            log.replace(aside.with_name(aside.name + ending))
    database.replace(aside)
    return aside


def _one_file(ready: Path) -> None:
    with closing(sqlite3.connect(ready, isolation_level=None)) as plain:
        plain.execute("PRAGMA secure_delete = ON")
        plain.execute("PRAGMA journal_mode = DELETE").fetchone()
        plain.execute("VACUUM")


def _remove(ready: Path) -> None:
    for ending in ("", *_LOG_FILES):
        ready.with_name(ready.name + ending).unlink(missing_ok=True)
