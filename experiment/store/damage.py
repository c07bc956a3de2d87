"""Damaged databases: how they are found, and what can be done about them.

SQLite's ``quick_check`` reads every page of a file and finds what is torn, missing or out of order. It cannot find a changed
letter inside an answer; the hash chains do (``wrods freeze --verify``). JSON that wrods did not write, as after an edit by hand,
is found when it is read.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from experiment.store.backups import FOLDER, SQLITE_SUFFIX, StoredBackup, backups_in, rows_of
from experiment.store.database import BUSY_TIMEOUT_S, DamagedStore, StoreError, is_damage, make_engine
from experiment.store.records import PARTICIPANTS
from experiment.store.tables import SHAPES, JsonOf, audit, metadata
from stimuli.audit.findings import counted
from stimuli.errors import UserError

WITHIN_S = 5.0
"""Seconds that a check may delay opening a store: several gigabytes from a fast disk, a few hundred megabytes from a slow one."""

SMALLEST_PAGE = 512


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
        uri = f"{file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as reading:
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
    copies, folder, study = _copies(file), file.parent / FOLDER, _study_argument(file)
    backup = next((copy for copy in reversed(copies) if _is_sound(copy.file)), None)
    if backup is None:
        remedy = f"{folder} holds no sound backup"
        mend = f"Restore one from another place: wrods restore {study} FILE"
    else:
        unsound = len(copies) - 1 - copies.index(backup)
        are = "backup is" if unsound == 1 else "backups are"
        newer = f" ({unsound} newer {are} damaged)" if unsound else ""
        remedy = f"The newest sound backup is {backup.file.name}{_made(backup)}{newer}"
        mend = f"Stop what uses the study, then run: wrods restore {study} {shlex.quote(str(backup.file))}"
    if file.exists():
        return DamagedStore(f"{file} is damaged ({fault}); it is not used. {remedy}.", mend=mend)
    mend += f"\n  To start over without these answers, move {folder} elsewhere first."
    return DamagedStore(f"{file} is missing, and backups of it hold sessions. {remedy}.", mend=mend)


def _made(backup: StoredBackup) -> str:
    return "" if backup.made_at is None else f", made on {backup.made_at:%d %B %Y at %H:%M} UTC"


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
NAMES: Mapping[type, str] = {dict: "object", list: "array"}
"""What the databases call the kinds of JSON."""


def unreadable_json(address: URL) -> StoreError:
    """Build the error for JSON that wrods did not write: it names the rows, and the backup or the commands that help."""
    if address.get_backend_name() == "sqlite":
        return _unreadable_in_file(Path(address.database or ""))
    engine = make_engine(address, read_only=True)
    try:
        with engine.connect() as connection:
            found, number = _foreign_json(connection.exec_driver_sql, is_sqlite=False)
    finally:
        engine.dispose()
    return _unreadable(f"the database {address.database}", found, number, "STUDY", None)


def _unreadable_in_file(file: Path) -> StoreError:
    with closing(_open(file)) as reading:
        found, number = _foreign_json(reading.execute)
    kept = next((one for one in reversed(_copies(file)) if _is_sound(one.file) and _is_valid(one.file)), None)
    return _unreadable(str(file), found, number, _study_argument(file), kept)


def _unreadable(
    database: str, found: Sequence[tuple[str, str | None]], number: int, study: str, kept: StoredBackup | None
) -> StoreError:
    named = [value for value, _ in found[:MOST_NAMED]]
    more = [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    mend = "If the database was edited by hand, undo that change.\n  "
    if kept is None:
        mend += f"Or restore a backup without it: wrods restore {study} FILE"
    else:
        mend += (
            f"The newest backup without this fault is {kept.file.name}{_made(kept)}. "
            f"To go back to it, stop what uses the study, then run: wrods restore {study} {shlex.quote(str(kept.file))}"
        )
    held = sorted({session for _, session in found if session is not None})
    if all(session is not None for _, session in found):
        erase = "".join(f"\n  wrods withdraw {study} --session {session}" for session in held)
        others = counted(number - len(held), "other session")
        mend += f"\n  To keep the answers of the {others} as they are, erase these instead, also from backups:{erase}"
    return StoreError(
        f"{database} holds text that is not JSON, or JSON of another kind than wrods writes: {', '.join([*named, *more])}",
        mend=mend,
    )


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=30)


def _is_valid(file: Path) -> bool:
    with closing(_open(file)) as reading:
        return not _foreign_json(reading.execute)[0]


def _foreign_json(
    run: Callable[[str], Any], *, is_sqlite: bool = True
) -> tuple[list[tuple[str, str | None]], int]:
    """Return the values that wrods did not write, named by column, row and session, and the number of participants' sessions.

    Each value is given with its session if a withdrawal erases it.
    """
    readers = {
        of: (reader, kind) for of, reader, kind in run("SELECT session_id, reader, reader_kind FROM sessions")
    }
    found = []
    for table in metadata.sorted_tables:
        there = (
            {str(row[1]) for row in run(f"PRAGMA table_info({table.name})")}
            if is_sqlite
            else {*table.c.keys()}
        )
        session = "session_id" if "session_id" in there and table is not audit else "NULL"
        keys = [column.name for column in table.primary_key if column.name != "session_id"]
        for column in table.columns:
            if not isinstance(column.type, JsonOf) or column.name not in there:
                continue
            name = column.name
            # of a column with a shape, all is read: SQL knows the outermost kind only
            valid = "'null'" if column.type.shape in SHAPES else f"'null', '{NAMES[column.type.kind]}'"
            # SQLite refuses some of what Python writes and reads, such as NaN
            doubtful = (
                f"CASE WHEN typeof({name}) = 'text' AND json_valid({name}) THEN json_type({name}) "
                f"WHEN {name} IS NOT NULL THEN '' END"
                if is_sqlite
                else f"json_typeof({name})"
            )
            rows = run(
                f"SELECT {', '.join([session, f'CAST({name} AS TEXT)', *keys])} FROM {table.name} "
                f"WHERE {doubtful} NOT IN ({valid})"
            )
            for of, text, *key in rows:
                if not _is_read(column.type, text):
                    row = ", ".join(f"{part} {value}" for part, value in zip(keys, key, strict=True))
                    reader, of_kind = readers.get(of, (None, None))
                    place = f"{table.name}.{name}" + (f" ({row})" if row else "")
                    named = place if reader is None else f"{place} of session {of} ({reader})"
                    found.append((named, of if of_kind in PARTICIPANTS else None))
    return found, sum(kind in PARTICIPANTS for _, kind in readers.values())


def _is_read(kind: JsonOf, text: str) -> bool:
    try:
        return kind.admits(json.loads(text))
    except ValueError:
        return False
