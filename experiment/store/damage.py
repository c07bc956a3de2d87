"""Finds a damaged SQLite file before anybody reads or writes it, and names the backup to restore.

SQLite's ``quick_check`` reads every page and finds what is torn, missing or out of order. It cannot find a changed letter
inside an answer; the hash chains do (``wrods freeze --verify``).
"""

from __future__ import annotations

import shlex
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from experiment.store.backups import FOLDER, SQLITE_SUFFIX, Kept, backups_in, rows_of
from experiment.store.errors import DamagedStore
from stimuli.errors import UserError

DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
WITHIN_S = 5.0
"""How long a check may hold up whoever opens a store: several gigabytes from a fast disk, a few hundred megabytes from a slow one."""


def is_damage(error: BaseException | None) -> bool:
    """Return whether a database error reports a damaged file."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (getattr(cause, "sqlite_errorname", None) or "").startswith(DAMAGED)


def check_file(file: Path, *, within_s: float | None = WITHIN_S) -> bool:
    """Read every page of a SQLite file, and return whether the check was finished in time."""
    if not file.exists():
        if any(_has_sessions(kept.file) for kept in _copies(file)):
            raise damaged(file, "")
        return True
    if file.stat().st_size == 0 and _copies(file):
        raise damaged(file, "the file is empty")
    fault, is_finished = _quick_check(file, within_s)
    if fault is not None:
        raise damaged(file, fault)
    return is_finished


def _quick_check(file: Path, within_s: float | None) -> tuple[str | None, bool]:
    """Return what is wrong with a file (None: nothing was found) and whether all of it was read."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as reading:
            timer = threading.Timer(within_s or 0, reading.interrupt)
            timer.daemon = True
            if within_s is not None:
                timer.start()
            try:
                said = str(reading.execute("PRAGMA quick_check(1)").fetchone()[0])
            finally:
                timer.cancel()
    except sqlite3.DatabaseError as error:
        # whatever else keeps it from being read (a lock, the disk) is reported by whoever opens it next
        return (str(error), True) if is_damage(error) else (None, False)
    return (None if said == "ok" else said.splitlines()[-1]), True


def damaged(file: Path, fault: str) -> DamagedStore:
    """Build the error for a damaged or missing file: it names the newest sound backup and the command that restores it."""
    copies = _copies(file)
    unsound = 0
    for kept in reversed(copies):
        if _quick_check(kept.file, None) == (None, True):
            break
        unsound += 1
    else:
        kept = None
    folder = file.parent
    study = shlex.quote(str(folder)) if (folder / "study.yaml").is_file() else "STUDY"
    if kept is None:
        found = f"{folder / FOLDER} holds no sound backup"
        mend = f"Restore one from another place: wrods restore {study} FILE"
    else:
        when = "" if kept.made_at is None else f", made on {kept.made_at:%d %B %Y at %H:%M} UTC"
        newer = (
            f" ({unsound} newer {'backup is' if unsound == 1 else 'backups are'} damaged)" if unsound else ""
        )
        found = f"The newest sound backup is {kept.file.name}{when}{newer}"
        mend = f"Stop what uses the study, then run: wrods restore {study} {shlex.quote(str(kept.file))}"
    if file.exists():
        return DamagedStore(f"{file} is damaged ({fault}); it is not used. {found}.", mend=mend)
    mend += f"\nTo start over without these answers, move {folder / FOLDER} elsewhere first."
    return DamagedStore(f"{file} is missing, and backups of it hold sessions. {found}.", mend=mend)


def _has_sessions(copy: Path) -> bool:
    """Return whether a backup holds a session; one that cannot be read may hold some."""
    try:
        return next(rows_of(copy, {"sessions": ("session_id",)}), None) is not None
    except UserError:
        return True


def _copies(file: Path) -> list[Kept]:
    """Return the SQLite backups of a file, oldest first; a database that was set aside as damaged is none."""
    return [
        kept
        for kept in backups_in(file.parent / FOLDER)
        if kept.file.suffix == SQLITE_SUFFIX and f"{file.stem}-damaged-" not in kept.file.name
    ]
