"""Withdraws a participant's data: finds the sessions, says what can be erased and what lies beyond reach, and erases it.

The rows go first, in one transaction that leaves a tombstone (:func:`erase_rows`); then the bytes (:func:`scrub`): the
database is rewritten without the space that the rows took, backups are opened and cleaned, hidden states are overwritten.
A scrub covers every erasure so far, so one that was cut off, or a backup that was out of reach, is made good by the next:
``wrods serve`` asks at its start and every hour (:func:`clean_up`), ``wrods withdraw --again`` at once.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, NullPool, create_engine, delete, event, select
from sqlalchemy.exc import DBAPIError

from experiment.custody.persons import Found
from experiment.models.api.forgetting import forget_replies
from experiment.store import Store
from experiment.store.backups import FOLDER, POSTGRES_SUFFIX, back_up, backups_in
from experiment.store.chain import withdrawn_sessions
from experiment.store.database import to_json
from experiment.store.erasure import (
    DUE,
    Erased,
    clean_tombstones,
    derived_sessions,
    erase_sessions,
    forget_names,
    note_cleaned,
    what_is_due,
)
from experiment.store.rewriting import copies_elsewhere, rewrite
from experiment.store.tables import audit, calls
from stimuli.errors import UserError
from stimuli.files import replacing

TOMBSTONES = "withdrawn.txt"
"""Ids of withdrawn sessions beside the backups, so that a restored backup does not bring them back."""

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Scope:
    """What a withdrawal erases, and what it cannot reach.

    Attributes
    ----------
    sessions : tuple of Found
    derived : int
        Sessions in which a model read the participant's answers.
    backups : tuple of Path
        Backups that are opened and cleaned (or, as PostgreSQL dumps, made again).
    states : tuple of Path
        Folders of hidden states that are searched.
    beyond : tuple of str
        What lies beyond reach, a sentence each.
    """

    sessions: tuple[Found, ...]
    derived: int
    backups: tuple[Path, ...]
    states: tuple[Path, ...]
    beyond: tuple[str, ...]


@dataclass
class Scrubbed:
    """What became of the bytes.

    Attributes
    ----------
    backups : list of Path
        Backups that were cleaned, or made again.
    state_rows, replies : int
        Rows of hidden states that were overwritten; replies that were erased from the cache and from batches.
    left : list of str
        What was not erased, a sentence each.
    """

    backups: list[Path] = field(default_factory=list)
    state_rows: int = 0
    replies: int = 0
    left: list[str] = field(default_factory=list)


def scope_of(
    store: Store, study: str, folder: Path, chosen: Sequence[Found], *, backups: Iterable[Path] = ()
) -> Scope:
    """Say what the withdrawal of some sessions erases and what it cannot reach, changing nothing.

    Parameters
    ----------
    store : Store
        The study's.
    study : str
        Its id.
    folder : Path
        Its folder.
    chosen : sequence of Found
        The person's sessions.
    backups : iterable of Path
        Further folders with backups.
    """
    ids = [one.session_id for one in chosen]
    with store.read() as connection:
        derived = derived_sessions(connection, ids)
        asked = sorted(
            set(
                connection.scalars(
                    select(calls.c.requested_model).where(
                        calls.c.session_id.in_([*ids, *derived]), calls.c.requested_model.is_not(None)
                    )
                )
            )
        )
        exported = _noted_places(connection, study, "export")
        folders, unreachable = _backup_folders(connection, study, folder, backups)
        copies = copies_elsewhere(connection) if store.path is None else []
    beyond = [f"{place}: an export; delete it or export again" for place in exported if Path(place).exists()]
    beyond += [
        f"{path.parent.parent}: a report made before; delete it or make it again"
        for path in sorted(folder.glob("reports/*/data/trials.parquet"))
    ]
    beyond += [
        f"{place}: backups that cannot be reached now (later: wrods withdraw --again)"
        for place in unreachable
    ]
    beyond += copies
    beyond += [f"{model}: what was sent to it stays with whoever runs it" for model in asked]
    if any((parent / ".git").exists() for parent in (folder.resolve(), *folder.resolve().parents)):
        beyond.append("the Git history that holds this folder, and its clones, if data were ever committed")
    beyond += [
        "copies that anyone made by hand: exports, reports, mails, backups of the whole computer",
        "records of the recruitment platform itself",
    ]
    return Scope(
        sessions=tuple(chosen),
        derived=len(derived),
        backups=tuple(kept.file for place in folders for kept in backups_in(place)),
        states=tuple(sorted(path.parent for path in folder.glob("states/*/index.parquet"))),
        beyond=tuple(beyond),
    )


def withdraw(
    store: Store,
    study: str,
    folder: Path,
    session_ids: Sequence[str],
    *,
    actor: str,
    backups: Iterable[Path] = (),
) -> tuple[Erased, Scrubbed]:
    """Erase sessions: their rows, then their bytes.

    For the participant's page and the dashboard, which answer at once, :func:`erase_rows` comes first and
    :func:`scrub` may follow in another thread.

    Parameters
    ----------
    store : Store
        The study's.
    study : str
        Its id.
    folder : Path
        Its folder.
    session_ids : sequence of str
        The sessions.
    actor : str
        Who asked: ``participant``, or the account's name.
    backups : iterable of Path
        Further folders with backups.
    """
    erased = erase_rows(store, folder, session_ids, actor=actor)
    return erased, scrub(store, study, folder, backups=backups)


def erase_rows(store: Store, folder: Path, session_ids: Sequence[str], *, actor: str) -> Erased:
    """Erase the rows of sessions in one transaction and note their ids beside the backups."""
    erased = store.write(lambda connection: erase_sessions(connection, session_ids, actor=actor)).result()
    remember(folder, erased.sessions)
    return erased


def clean_up(store: Store, study: str, folder: Path) -> list[str]:
    """Scrub if something was erased since the last time, and return what is left, a sentence each; one at a time in a process."""
    with _ONE_AT_A_TIME:
        with store.read() as connection:
            is_due = bool(what_is_due(connection, study))
        left = scrub(store, study, folder).left if is_due else []
    return [f"{study}: not erased: {line} (to try again: wrods withdraw {folder} --again)" for line in left]


def scrub(store: Store, study: str, folder: Path, *, backups: Iterable[Path] = ()) -> Scrubbed:
    """Leave no bytes of erased sessions in the database's files, the backups, the hidden states and the stored replies.

    Parameters
    ----------
    store : Store
        The study's; another process may be using it.
    study : str
        Its id.
    folder : Path
        Its folder.
    backups : iterable of Path
        Further folders with backups.
    """
    with store.read() as connection:
        due = what_is_due(connection, study)
        # who declined has no tombstone, only a note beside the backups that may still hold the session
        gone = list(dict.fromkeys([*withdrawn_sessions(connection), *remembered(folder)]))
        folders, unreachable = _backup_folders(connection, study, folder, backups)
    keys = {key for some in due.values() for key in some}
    done = Scrubbed(state_rows=erase_states(folder, keys))
    done.replies, unread = forget_replies(folder, keys)
    rewritten = rewrite(store.address)
    done.left += [*unread, *rewritten.left]
    done.left += [f"{place}: backups that cannot be reached now" for place in unreachable]
    for place in folders:
        for kept in backups_in(place):
            if kept.file.suffix == POSTGRES_SUFFIX:
                continue
            try:
                if clean_backup(kept.file, gone):
                    done.backups.append(kept.file)
            except (DBAPIError, sqlite3.Error, UserError) as error:
                done.left.append(
                    f"{kept.file}: could not be cleaned ({str(error).splitlines()[0]}); delete it, with its "
                    "-wal and -journal if there are any"
                )
    if store.path is None:
        _dump_again(store, folders, done)
    if due and not (unread or rewritten.is_due):
        store.write(lambda connection: note_cleaned(connection, due)).result()
    return done


CLEANING = "withdrawal"
"""Who acts in a backup from which somebody is withdrawn."""


def clean_backup(file: Path, gone: Sequence[str]) -> bool:
    """Erase withdrawn sessions from a backup (SQLite, of this or an earlier version); say whether it held any."""

    def change(connection: Connection) -> bool:
        held = bool(erase_sessions(connection, gone, actor=CLEANING).rows)
        held = bool(clean_tombstones(connection)) or held
        # what is due is a matter of the database that is in use
        connection.execute(delete(audit).where(audit.c.action == DUE))
        return held

    return _change_backup(file, change)


def forget_in_backups(store: Store, study: str, folder: Path, due: str) -> None:
    """Erase the names that were stored before a moment from every backup that can be reached."""
    with store.read() as connection:
        folders, _ = _backup_folders(connection, study, folder, ())

    for place in folders:
        for kept in backups_in(place):
            if kept.file.suffix != POSTGRES_SUFFIX:
                with suppress(DBAPIError, sqlite3.Error):
                    _change_backup(kept.file, lambda connection: forget_names(connection, study, due) > 0)


def _change_backup(file: Path, change: Callable[[Connection], bool]) -> bool:
    stamp = file.stat()
    engine = create_engine(f"sqlite:///{file}", json_serializer=to_json, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def _settings(opened: sqlite3.Connection, _record: Any) -> None:
        opened.isolation_level = None
        opened.execute("PRAGMA journal_mode = DELETE")
        opened.execute("PRAGMA secure_delete = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            changed = change(connection)
    finally:
        engine.dispose()
    if changed:
        with closing(sqlite3.connect(file, isolation_level=None)) as plain:
            plain.execute("VACUUM")
    os.utime(file, (stamp.st_atime, stamp.st_mtime))
    return changed


def erase_states(folder: Path, work_keys: set[str]) -> int:
    """Overwrite the hidden states of erased trials with zeros and take them out of the index; return the rows.

    What analyses kept beside them (``states/<run>/results``) goes too, and is computed anew from what is left.

    Parameters
    ----------
    folder : Path
        The study's, with ``states/<run>/index.parquet`` (work_key, row, position) and ``layer_NN.npy``.
    work_keys : set of str
        The erased trials.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    for index in sorted(folder.glob("states/*/index.parquet")) if work_keys else ():
        table = pq.read_table(index)
        keys = table.column("work_key").to_pylist()
        rows = [
            int(row)
            for key, row in zip(keys, table.column("row").to_pylist(), strict=True)
            if key in work_keys
        ]
        if not rows:
            continue
        for layer in sorted(index.parent.glob("layer_*.npy")):
            states = np.load(layer, mmap_mode="r+")
            states[rows] = 0
            states.flush()
        with replacing(index) as part:
            pq.write_table(table.filter(pa.array([key not in work_keys for key in keys])), part)
        shutil.rmtree(index.parent / "results", ignore_errors=True)
        number += len(rows)
    return number


def remember(folder: Path, session_ids: Iterable[str]) -> None:
    """Note ids of withdrawn sessions beside the study's backups."""
    place = folder / FOLDER / TOMBSTONES
    new = [one for one in session_ids if one not in remembered(folder)]
    if new:
        place.parent.mkdir(exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.writelines(f"{one}\n" for one in new)


def remembered(folder: Path) -> list[str]:
    """Return the ids of withdrawn sessions that are noted beside the study's backups."""
    place = folder / FOLDER / TOMBSTONES
    return place.read_text("utf-8").split() if place.exists() else []


def _dump_again(store: Store, folders: Sequence[Path], done: Scrubbed) -> None:
    """Replace the dumps of a PostgreSQL store, which cannot be edited, by one of its state now."""
    for place in folders:
        old = [kept.file for kept in backups_in(place) if kept.file.suffix == POSTGRES_SUFFIX]
        if old:
            try:
                done.backups.append(back_up(store.address, place, stem="study"))
            except UserError as error:
                done.left.append(f"{place}: {error.message}; the dumps there were deleted all the same")
            for file in old:
                file.unlink(missing_ok=True)


def _noted_places(connection: Connection, study: str, action: str) -> list[str]:
    query = select(audit.c.detail).where(audit.c.action == action, audit.c.study == study)
    details: Iterable[Mapping[str, Any] | None] = connection.scalars(query)
    return list(dict.fromkeys(str(detail["to"]) for detail in details if detail and detail.get("to")))


def _backup_folders(
    connection: Connection, study: str, folder: Path, further: Iterable[Path]
) -> tuple[list[Path], list[Path]]:
    """Return the folders in which backups lie, and those that cannot be reached now."""
    noted = [Path(place).parent for place in _noted_places(connection, study, "backup")]
    every = list(dict.fromkeys(path.resolve() for path in (folder / FOLDER, *further, *noted)))
    own = (folder / FOLDER).resolve()
    return [p for p in every if p.is_dir()], [p for p in every if not p.is_dir() and p != own]
