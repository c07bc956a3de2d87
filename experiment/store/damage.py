"""Damaged databases: how they are found, and what can be done about them.

SQLite's ``quick_check`` reads every page of a file and finds what is torn, missing or out of order. It cannot find a changed
letter inside an answer; the hash chains do (``wrods freeze --verify``). Text in a JSON column that is no JSON, as after an
edit by hand, is found when it is read.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlalchemy import JSON
from sqlalchemy.exc import DBAPIError

from experiment.store.backups import FOLDER, SQLITE_SUFFIX, StoredBackup, backups_in, rows_of
from experiment.store.database import DamagedStore, StoreError
from experiment.store.tables import audit, metadata
from stimuli.audit.findings import counted
from stimuli.errors import UserError

DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
WITHIN_S = 5.0
"""Seconds that a check may delay opening a store: several gigabytes from a fast disk, a few hundred megabytes from a slow one."""

SMALLEST_PAGE = 512


def is_damage(error: BaseException | None) -> bool:
    """Return whether a database error reports a damaged file."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (getattr(cause, "sqlite_errorname", None) or "").startswith(DAMAGED)


def check_file(file: Path, *, within_s: float | None = WITHIN_S) -> bool:
    """Read every page of an SQLite file; return whether the check was finished in time."""
    if not file.exists():
        if any(_has_sessions(backup.file) for backup in _copies(file)):
            raise damaged(file, "")
        return True
    if _is_empty(file) and _copies(file):
        raise damaged(file, "the file is empty")
    fault, is_finished = _quick_check(file, within_s)
    if fault is not None:
        raise damaged(file, fault)
    return is_finished


def _is_empty(file: Path) -> bool:
    """Return whether a file is smaller than the smallest page, which SQLite treats as a valid new database."""
    return file.stat().st_size < SMALLEST_PAGE


def _quick_check(file: Path, within_s: float | None) -> tuple[str | None, bool]:
    """Return what is wrong with a file (None: nothing found) and whether all of it was read."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as reading:
            timer = threading.Timer(within_s or 0, reading.interrupt)
            timer.daemon = True
            if within_s is not None:
                timer.start()
            try:
                result = str(reading.execute("PRAGMA quick_check(1)").fetchone()[0])
            finally:
                timer.cancel()
    except sqlite3.DatabaseError as error:
        # other obstacles (a lock, the disk) are reported when the file is opened next
        return (str(error), True) if is_damage(error) else (None, False)
    return (None if result == "ok" else result.splitlines()[-1]), True


def damaged(file: Path, fault: str) -> DamagedStore:
    """Return the error for a damaged or missing file, with the newest intact backup and the command that restores it."""
    copies = _copies(file)
    unsound = 0
    for backup in reversed(copies):
        if _is_sound(backup.file):
            break
        unsound += 1
    else:
        backup = None
    folder = file.parent
    study = _study_argument(file)
    if backup is None:
        remedy = f"{folder / FOLDER} holds no sound backup"
        mend = f"Restore one from another place: wrods restore {study} FILE"
    else:
        when = "" if backup.made_at is None else f", made on {backup.made_at:%d %B %Y at %H:%M} UTC"
        newer = (
            f" ({unsound} newer {'backup is' if unsound == 1 else 'backups are'} damaged)" if unsound else ""
        )
        remedy = f"The newest sound backup is {backup.file.name}{when}{newer}"
        mend = f"Stop what uses the study, then run: wrods restore {study} {shlex.quote(str(backup.file))}"
    if file.exists():
        return DamagedStore(f"{file} is damaged ({fault}); it is not used. {remedy}.", mend=mend)
    mend += f"\nTo start over without these answers, move {folder / FOLDER} elsewhere first."
    return DamagedStore(f"{file} is missing, and backups of it hold sessions. {remedy}.", mend=mend)


def _is_sound(copy: Path) -> bool:
    """Return whether a backup is an intact SQLite file."""
    return not _is_empty(copy) and _quick_check(copy, None) == (None, True)


def _study_argument(file: Path) -> str:
    """Return the study of a database as a command names it."""
    return shlex.quote(str(file.parent)) if (file.parent / "study.yaml").is_file() else "STUDY"


def _has_sessions(copy: Path) -> bool:
    """Return whether a backup contains a session; an unreadable one may."""
    try:
        return next(rows_of(copy, {"sessions": ("session_id",)}), None) is not None
    except UserError:
        return True


def _copies(file: Path) -> list[StoredBackup]:
    """Return the SQLite backups of a file, oldest first, without a database set aside as damaged."""
    return [
        backup
        for backup in backups_in(file.parent / FOLDER)
        if backup.file.suffix == SQLITE_SUFFIX and f"{file.stem}-damaged-" not in backup.file.name
    ]


MOST_NAMED = 10


def unreadable_json(file: Path) -> StoreError:
    """Build the error for a SQLite file: it names the rows, and the backup or the commands that help."""
    with closing(_open(file)) as reading:
        found = list(_rows(reading))
        readers = dict(reading.execute("SELECT session_id, reader FROM sessions").fetchall())
    named = [
        f"{row} of session {session} ({readers[session]})" if session in readers else row
        for row, session in found[:MOST_NAMED]
    ]
    more = [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    study = _study_argument(file)
    kept = next((one for one in reversed(_copies(file)) if _is_sound(one.file) and _is_valid(one.file)), None)
    if kept is None:
        mend = f"Restore a backup from another place: wrods restore {study} FILE"
    else:
        made = "" if kept.made_at is None else f", made on {kept.made_at:%d %B %Y at %H:%M} UTC"
        mend = (
            f"The newest backup without this fault is {kept.file.name}{made}. "
            f"To go back to it, stop what uses the study, then run: wrods restore {study} {shlex.quote(str(kept.file))}"
        )
    held = {session for _, session in found}
    if held <= readers.keys():
        erase = "".join(f"\nwrods withdraw {study} --session {session}" for session in sorted(map(str, held)))
        others = counted(len(readers) - len(held), "other session")
        mend += f"\nTo keep the answers of the {others} as they are, erase these instead, which also erases them from backups:{erase}"
    return StoreError(f"{file} holds text that is not JSON: {', '.join([*named, *more])}", mend=mend)


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=30)


def _is_valid(file: Path) -> bool:
    with closing(_open(file)) as reading:
        return next(_rows(reading), None) is None


def _rows(reading: sqlite3.Connection) -> Iterator[tuple[str, str | None]]:
    """Iterate over the values that are not JSON: column and row of each, and its session if a withdrawal erases the row."""
    for table in metadata.sorted_tables:
        there = {str(row[1]) for row in reading.execute(f"PRAGMA table_info({table.name})")}
        session = "session_id" if "session_id" in there and table is not audit else "NULL"
        for column in table.columns:
            if isinstance(column.type, JSON) and column.name in there:
                # SQLite refuses some of what Python writes and reads, such as NaN
                doubtful = f"{column.name} IS NOT NULL AND NOT json_valid({column.name})"
                found = reading.execute(
                    f"SELECT rowid, {session}, {column.name} FROM {table.name} WHERE {doubtful}"
                )
                yield from (
                    (f"{table.name}.{column.name} (row {row})", of)
                    for row, of, text in found
                    if not _is_json(text)
                )


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
