"""Backups of a store in use, and their rotation.

SQLite is copied with its backup interface, which gives a consistent state while others write; PostgreSQL with ``pg_dump``. A
copy is written under another name, checked, flushed to disk and only then renamed, so that a file with a backup's name is
complete.

A folder may contain other files and other databases' backups. :func:`marks_of` reads from a file what identifies it as a copy
of a database; other files are never changed or removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import URL, Connection, select

from experiment.store.chain import WITHDRAWN, withdrawn_sessions
from experiment.store.database import is_damage
from experiment.store.tables import invitations, sessions, versions
from stimuli.errors import UserError
from stimuli.files import replacing

FOLDER = "backups"
KEPT_HOURS = 24
KEPT_DAYS = 7
SQLITE_SUFFIX = ".db"
POSTGRES_SUFFIX = ".dump"
SUFFIXES = (SQLITE_SUFFIX, POSTGRES_SUFFIX)
UNFINISHED_FOR = timedelta(days=1)
"""Age of the last write after which a copy counts as interrupted."""
_COPY = re.compile(rb'COPY (?:[^ ]+\.)?"?(\w+)"? \((.*)\) FROM stdin;\n')
_UNFINISHED = re.compile(r"\.(.+\.(?:db|dump))\.[0-9a-f]{16}")


@dataclass(frozen=True)
class StoredBackup:
    """A backup in a folder: its file, and when it was made (UTC) if its name includes it."""

    file: Path
    made_at: datetime | None


@dataclass(frozen=True)
class DatabaseMarks:
    """Ids in a database and its copies, and in no other database."""

    sessions: frozenset[str] = frozenset()
    withdrawn: frozenset[str] = frozenset()
    invitations: frozenset[str] = frozenset()
    versions: frozenset[tuple[str, ...]] = frozenset()

    def is_copy_of(self, other: DatabaseMarks) -> bool:
        """Return whether one database is a copy of the other, at any times."""
        return bool(
            (self.sessions | self.withdrawn) & (other.sessions | other.withdrawn)
            or self.invitations & other.invitations
            or self.versions & other.versions
        )

    def holds(self, withdrawn: set[str]) -> bool:
        """Return whether a session or a personal link is among those that were withdrawn."""
        return bool(self.sessions & withdrawn or self.invitations & withdrawn)


def marks_in(connection: Connection) -> DatabaseMarks:
    """Return the marks of the database in use."""
    return DatabaseMarks(
        frozenset(connection.scalars(select(sessions.c.session_id))),
        frozenset(withdrawn_sessions(connection)),
        frozenset(connection.scalars(select(invitations.c.token_hash))),
        frozenset(
            (row.study, str(row.version), row.created_at)
            for row in connection.execute(select(versions.c.study, versions.c.version, versions.c.created_at))
        ),
    )


def marks_of(file: Path) -> DatabaseMarks:
    """Return the marks of an SQLite file or a PostgreSQL dump of any origin; the file is only read."""
    rows_by_table: dict[str, list[tuple[str, ...]]] = {name: [] for name in _MARKED}
    for table, row in rows_of(file, _MARKED):
        rows_by_table[table].append(row)
    return DatabaseMarks(
        frozenset(session for (session,) in rows_by_table["sessions"]),
        frozenset(session for session, action in rows_by_table["audit"] if action == WITHDRAWN),
        frozenset(token for (token,) in rows_by_table["invitations"]),
        frozenset(rows_by_table["versions"]),
    )


_MARKED = {
    "sessions": ("session_id",),
    "audit": ("session_id", "action"),
    "invitations": ("token_hash",),
    "versions": ("study", "version", "created_at"),
}


def rows_of(file: Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield rows of an SQLite file or a dump: the table of each, and its columns as texts."""
    return (_dumped_rows if is_dump(file) else _sqlite_rows)(file, wanted)


def is_dump(file: Path) -> bool:
    """Return whether a file is a PostgreSQL dump, by its name."""
    unfinished = _UNFINISHED.fullmatch(file.name)
    return (unfinished[1] if unfinished else file.name).endswith(POSTGRES_SUFFIX)


def _sqlite_rows(file: Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    wal = file.with_name(f"{file.name}-wal")
    # without a log, not even SQLite's own companion files are created next to the database
    how = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True, timeout=30)) as reading:
            for table, columns in wanted.items():
                there = {str(row[1]) for row in reading.execute(f"PRAGMA table_info({table})")}
                if there.issuperset(columns):
                    for row in reading.execute(f"SELECT {', '.join(columns)} FROM {table}"):
                        yield table, tuple(map(str, row))
    except sqlite3.Error as error:
        raise UserError(f"{file} cannot be read: {error}", mend="Check the file.", exit_code=1) from error


def _dumped_rows(file: Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    tables = [f"--table={name}" for name in wanted]
    command = [_program("pg_restore"), "--data-only", *tables, "--file=-", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout is not None and reading.stderr is not None
        table, places = "", None
        for line in reading.stdout:
            if begun := _COPY.fullmatch(line):
                table, names = (part.decode(errors="replace").replace('"', "") for part in begun.groups())
                places = _places_of(wanted.get(table, ()), names.split(", "))
            elif line == b"\\.\n":
                places = None
            elif places is not None:
                values = line.decode(errors="replace").rstrip("\n").split("\t")
                yield table, tuple(values[place] for place in places)
        complaints = reading.stderr.read().decode(errors="replace").strip().splitlines()
    if reading.returncode:
        why = complaints[0] if complaints else f"exit code {reading.returncode}"
        raise UserError(f"{file} cannot be read: {why}", mend="Check the file.", exit_code=1)


def _places_of(columns: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """Return the indices of columns among names; None if one is missing, or none is wanted."""
    return [names.index(column) for column in columns] if columns and set(columns) <= set(names) else None


def back_up(address: URL, target: Path, *, stem: str, automatic: bool = False) -> Path:
    """Copy a database while it is in use, and return the copy."""
    is_sqlite = address.get_backend_name() == "sqlite"
    file = name_copy(address, target, stem=stem, automatic=automatic)
    with replacing(file, is_private=True) as part:  # answers of participants
        if is_sqlite:
            copy_sqlite(Path(address.database or ""), part)
        else:
            run_postgres("pg_dump", address, ["--format=custom", "--no-owner", f"--file={part}"])
    return file


def copy_sqlite(source: Path, copy: Path) -> None:
    """Copy an SQLite database in any state into one file, without a write-ahead log, and check the copy."""
    try:
        reading = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        writing = sqlite3.connect(copy)
        try:
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
            result = str(writing.execute("PRAGMA integrity_check").fetchone()[0])
        finally:
            writing.close()
            reading.close()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise UserError(
                f"{source} could not be copied to {copy.parent}: {error}",
                mend="Check that the folder may be written and that its disk is not full.",
                exit_code=1,
            ) from error
        result = str(error)
    if result != "ok":
        raise UserError(
            f"{source} is no sound SQLite database: {result.splitlines()[0]}",
            mend="Take another copy.",
            exit_code=1,
        )


def backups_in(folder: Path) -> list[StoredBackup]:
    """Return the backups in a folder, oldest first, including those of earlier versions and set-aside databases.

    A file with a future time was made before the clock was set back: it counts as older than the others.
    """
    now = time.time()

    def age(path: Path) -> tuple[bool, float]:
        made = path.stat().st_mtime
        return made <= now, made

    paths = folder.iterdir() if folder.is_dir() else ()
    files = [path for path in paths if path.suffix in SUFFIXES and not path.name.startswith(".")]
    return [StoredBackup(file, _moment(file)) for file in sorted(files, key=age)]


def unfinished_in(folder: Path) -> list[Path]:
    """Return the copies in a folder that are being written, or were when their program was killed."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in files if _UNFINISHED.fullmatch(path.name)]


def rotate(folder: Path, stem: str, is_ours: Callable[[Path], bool]) -> list[Path]:
    """Remove the expired automatic backups of one database, and return them.

    Retained are the newest of each of the last 24 hours and of each of the last 7 days that have one. Manual copies are never
    removed, nor those from a clock that was set back, until their time comes. Interrupted copies are removed after a day.
    """
    now = datetime.now(UTC)
    automatic = re.compile(rf"{re.escape(stem)}-auto-\d{{8}}T\d{{6}}Z(?:-\d+)?\.(?:db|dump)")
    series = [
        backup
        for backup in reversed(backups_in(folder))
        if backup.made_at is not None and backup.made_at <= now and automatic.fullmatch(backup.file.name)
    ]
    # newest first; of two in one second the file's own time decides
    series.sort(key=lambda backup: backup.made_at or datetime.min, reverse=True)
    kept = (*_newest(series, "%Y%m%dT%H", KEPT_HOURS), *_newest(series, "%Y%m%d", KEPT_DAYS))
    stay = {backup.file for backup in kept}
    removed = [backup.file for backup in series if backup.file not in stay and is_ours(backup.file)]
    for part in unfinished_in(folder):
        of = _UNFINISHED.fullmatch(part.name)
        is_old = time.time() - part.stat().st_mtime > UNFINISHED_FOR.total_seconds()
        if is_old and of is not None and automatic.fullmatch(of[1]):
            removed += [part, *(part.with_name(part.name + log) for log in ("-wal", "-shm", "-journal"))]
    for file in removed:
        file.unlink(missing_ok=True)
    return removed


def run_postgres(program: str, address: URL, options: Sequence[str]) -> None:
    """Run ``pg_dump`` or ``pg_restore`` on a database; the password is passed in the environment, never on the command line."""
    executable = _program(program)
    named = address.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    secret = {"PGPASSWORD": str(address.password)} if address.password else {}
    done = subprocess.run(
        [executable, *options, f"--dbname={named}"],
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        message = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise UserError(
            f"{program} failed: {message}", mend="Check the server and the versions of both.", exit_code=1
        )


def _program(name: str) -> str:
    executable = shutil.which(name)
    if executable is None:
        raise UserError(
            f"the store is a PostgreSQL database, and {name} is not installed",
            mend="Install PostgreSQL's client programs (Debian: apt install postgresql-client), or back the server up by "
            "its own means.",
            exit_code=1,
        )
    return executable


def name_copy(address: URL, target: Path, *, stem: str, automatic: bool = False) -> Path:
    """Return the file that :func:`back_up` writes next; its folder is created if missing."""
    suffix = SQLITE_SUFFIX if address.get_backend_name() == "sqlite" else POSTGRES_SUFFIX
    if target.suffix in SUFFIXES and not target.is_dir():
        if target.suffix != suffix:
            raise UserError(
                f"{target} should end in {suffix}", mend=f"Give a folder, or a name that ends in {suffix}."
            )
        if target.exists():
            raise UserError(
                f"{target} exists; a backup is never written over", mend="Give a folder or a new name."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        return target
    target.mkdir(parents=True, exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    start = f"{stem}-auto-{moment}" if automatic else f"{stem}-{moment}"
    names = (start if again == 1 else f"{start}-{again}" for again in range(1, 10_000))
    return next(target / f"{name}{suffix}" for name in names if not (target / f"{name}{suffix}").exists())


def _moment(file: Path) -> datetime | None:
    match = re.search(r"-(\d{8}T\d{6})", file.name)
    return datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) if match else None


def _newest(series: Sequence[StoredBackup], form: str, number: int) -> list[StoredBackup]:
    """Return the newest backup of each hour (or day), for the last ``number`` hours (or days) that have one."""
    by_period: dict[str, StoredBackup] = {}
    for backup in series:
        if backup.made_at is not None:
            by_period.setdefault(backup.made_at.strftime(form), backup)
    return list(by_period.values())[:number]
