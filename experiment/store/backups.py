"""Copies of a store that is in use, and which of them are kept.

SQLite is copied by its own backup interface, which gives the state of one moment while others write; PostgreSQL by
``pg_dump``. A copy is written under another name, checked, flushed to disk and only then given its name, so that a file
with a backup's name is a whole one.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from stimuli.errors import UserError
from stimuli.files import replacing

FOLDER = "backups"
KEPT_HOURS = 24
KEPT_DAYS = 7
SQLITE_SUFFIX = ".db"
POSTGRES_SUFFIX = ".dump"
_AUTOMATIC = re.compile(r"-auto-(\d{8}T\d{6})Z(?:-\d+)?\.(?:db|dump)$")


@dataclass(frozen=True)
class Kept:
    """A backup that lies in a folder: its file, and when it was made (UTC) if its name says so."""

    file: Path
    made_at: datetime | None


def back_up(address: URL, target: Path, *, stem: str, automatic: bool = False) -> Path:
    """Copy a database while it is in use, and return the copy.

    Parameters
    ----------
    address : URL
        Of the database.
    target : Path
        A folder (made if it is not there), in which the copy is named after the moment; or a file that ends in ``.db``
        or ``.dump`` and does not exist.
    stem : str
        How names of copies begin.
    automatic : bool
        The copy is one of a series of which :func:`rotate` keeps the newest.

    Raises
    ------
    UserError
        The file exists; the copy is not sound; ``pg_dump`` is missing or refuses.
    """
    is_sqlite = address.get_backend_name() == "sqlite"
    suffix = SQLITE_SUFFIX if is_sqlite else POSTGRES_SUFFIX
    file = _name(target, stem, suffix, automatic)
    with replacing(file, is_private=True) as part:  # answers of participants
        if is_sqlite:
            copy_sqlite(Path(address.database or ""), part)
        else:
            _dump_postgres(address, part)
    return file


def copy_sqlite(source: Path, copy: Path) -> None:
    """Copy a SQLite database of any state into a file of its own, without a write-ahead log, and check the copy.

    Raises
    ------
    UserError
        The source is no SQLite database or a damaged one.
    """
    try:
        reading = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        writing = sqlite3.connect(copy)
        try:
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
            said = str(writing.execute("PRAGMA integrity_check").fetchone()[0])
        finally:
            writing.close()
            reading.close()
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise UserError(
            f"{source} is no sound SQLite database: {said.splitlines()[0]}",
            mend="Take another copy.",
            exit_code=1,
        )


def backups_in(folder: Path) -> list[Kept]:
    """List the backups in a folder, oldest first; those of earlier versions and set-aside databases among them.

    A file of a later time than now was made before the clock was set back: it is older than the others.
    """
    now = time.time()

    def age(path: Path) -> tuple[bool, float]:
        made = path.stat().st_mtime
        return made <= now, made

    if not folder.is_dir():
        return []
    files = [
        path
        for path in folder.iterdir()
        if path.suffix in (SQLITE_SUFFIX, POSTGRES_SUFFIX) and not path.name.startswith(".")
    ]
    return [Kept(file, _moment(file)) for file in sorted(files, key=age)]


def rotate(folder: Path) -> list[Path]:
    """Remove the automatic backups that are no longer kept, and return them.

    Kept are the newest of each of the last 24 hours and of each of the last 7 days that have one. Copies made by hand
    are never removed, nor those of a clock that was set back, until their time comes.
    """
    now = datetime.now(UTC)
    automatic = [
        kept
        for kept in reversed(backups_in(folder))
        if kept.made_at is not None and kept.made_at <= now and _AUTOMATIC.search(kept.file.name)
    ]
    # newest first; of two in one second the file's own time decides
    series = sorted(automatic, key=lambda kept: kept.made_at or datetime.min, reverse=True)
    stay = {
        kept.file
        for kept in (*_newest(series, "%Y%m%dT%H", KEPT_HOURS), *_newest(series, "%Y%m%d", KEPT_DAYS))
    }
    removed = [kept.file for kept in series if kept.file not in stay]
    for file in removed:
        file.unlink(missing_ok=True)
    return removed


def run_postgres(program: str, address: URL, options: Sequence[str]) -> None:
    """Run ``pg_dump`` or ``pg_restore`` on a database; the password goes by the environment, never by the command line.

    Raises
    ------
    UserError
        The program is missing or fails.
    """
    found = shutil.which(program)
    if found is None:
        raise UserError(
            f"the store is a PostgreSQL database, and {program} is not installed",
            mend="Install PostgreSQL's client programs (Debian: apt install postgresql-client), or back the server up by "
            "its own means.",
            exit_code=1,
        )
    named = address.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    secret = {"PGPASSWORD": str(address.password)} if address.password else {}
    done = subprocess.run(
        [found, *options, f"--dbname={named}"], env={**os.environ, **secret}, capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        raise UserError(
            f"{program} failed: {said}", mend="Check the server and the versions of both.", exit_code=1
        )


def _dump_postgres(address: URL, part: Path) -> None:
    run_postgres("pg_dump", address, ["--format=custom", "--no-owner", f"--file={part}"])


def _name(target: Path, stem: str, suffix: str, automatic: bool) -> Path:
    if target.suffix in (SQLITE_SUFFIX, POSTGRES_SUFFIX) and not target.is_dir():
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
    found = re.search(r"-(\d{8}T\d{6})", file.name)
    return datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) if found else None


def _newest(series: Sequence[Kept], form: str, number: int) -> list[Kept]:
    """Return the newest backup of each hour (or day), for the newest so many hours (or days) that have one."""
    found: dict[str, Kept] = {}
    for kept in series:
        if kept.made_at is not None:
            found.setdefault(kept.made_at.strftime(form), kept)
    return list(found.values())[:number]
