"""Withdrawal of a participant's data: finds the sessions, reports what can and cannot be erased, and erases it.

The rows are erased first, in one transaction that leaves a tombstone (:func:`erase_rows`); then the bytes (:func:`scrub`): the
database is rewritten without the erased space, backups are opened and cleaned, hidden states are overwritten. A scrub covers
every erasure so far, so the next one completes one that was interrupted or could not reach a backup: ``wrods serve`` runs it at
its start and every hour (:func:`clean_up`), ``wrods withdraw --again`` at once.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, NullPool, create_engine, delete, event, func, or_, select
from sqlalchemy.exc import DBAPIError

from experiment.models import journal
from experiment.models.api.batch import forget_answers
from experiment.store import Store
from experiment.store.assignment import INVITED, NETWORK, TYPED
from experiment.store.backups import (
    FOLDER,
    DatabaseMarks,
    back_up,
    backups_in,
    is_dump,
    marks_in,
    marks_of,
    unfinished_in,
)
from experiment.store.database import from_json, to_json
from experiment.store.erasure import (
    DUE,
    Erased,
    clean_tombstones,
    copies_elsewhere,
    derived_sessions,
    erase_sessions,
    forget_names,
    note_cleaned,
    rewrite,
    what_is_due,
    withdrawn,
)
from experiment.store.records import PARTICIPANTS, SESSION_COLUMNS
from experiment.store.restoring import RESTORE, discard_abandoned
from experiment.store.tables import audit, calls, invitations, people, sessions, trials
from stimuli.audit.findings import counted
from stimuli.errors import UserError
from stimuli.files import replacing

_LOOK_ALIKES = str.maketrans("авекмнорстухіјѕ" + "αβεικμνορτυχ", "abekmhopctyxijs" + "abeikmnoptyx")
"""Cyrillic and Greek letters that look like Latin ones, in lower case."""


@dataclass(frozen=True)
class PersonSession:
    """A session of the withdrawing participant; ``person`` is the key in the store, ``known_as`` the external names."""

    session_id: str
    person: str
    reader: str
    participant_id: str | None
    state: str
    is_pilot: bool
    station: str | None
    began_at: str
    trials: int
    known_as: tuple[str, ...] = ()


class SeveralPersons(Exception):
    """The search matches more than one person; ``found`` has the sessions of all."""

    def __init__(self, person_sessions: Sequence[PersonSession]) -> None:
        super().__init__(f"{len({session.person for session in person_sessions})} persons")
        self.found = tuple(person_sessions)


def find_person(
    connection: Connection,
    study: str,
    *,
    participant: str | None = None,
    platform_id: str | None = None,
    session: str | None = None,
) -> list[PersonSession]:
    """Return all sessions of one person, found by number, platform id, or one of the sessions."""
    is_persons = (sessions.c.study == study, sessions.c.reader_kind.in_(PARTICIPANTS))
    query = select(sessions.c.session_id, sessions.c.person_key).where(*is_persons)
    if "" in (participant, platform_id, session):
        raise ValueError("an empty name fits everybody or nobody")

    def named(*which: ColumnElement[bool]) -> ColumnElement[bool]:
        return sessions.c.session_id.in_(select(people.c.session_id).where(people.c.study == study, *which))

    if participant is not None:
        query = query.where(
            or_(
                sessions.c.reader == participant,
                sessions.c.participant_id == participant,
                named(people.c.source.in_((TYPED, INVITED)), people.c.external_id == participant),
            )
        )
    elif platform_id is not None:
        query = query.where(named(people.c.external_id == platform_id))
    elif session is not None:
        query = query.where(sessions.c.session_id.startswith(session, autoescape=True))
    else:
        raise ValueError("a person is found by number, platform id, or session")
    matched = connection.execute(query).all()
    keys = {row.person_key for row in matched if row.person_key is not None}
    # no JSON: a session whose JSON is damaged can be withdrawn
    theirs = select(*(column for column in SESSION_COLUMNS if column is not sessions.c.label_map)).where(
        *is_persons,
        or_(sessions.c.person_key.in_(keys), sessions.c.session_id.in_([row.session_id for row in matched])),
    )
    found_sessions = [
        _found(connection, dict(row))
        for row in connection.execute(theirs.order_by(sessions.c.created_at)).mappings()
    ]
    if len({session.person for session in found_sessions}) > 1:
        raise SeveralPersons(found_sessions)
    return found_sessions


def look_alikes(connection: Connection, study: str, participant: str) -> list[str]:
    """Return the numbers and names of other participants that resemble one: ``p1`` and ``Р001`` for ``P001``."""
    of_persons = (sessions.c.study == study, sessions.c.reader_kind.in_(PARTICIPANTS))
    named = (people.c.study == study, people.c.source.in_((TYPED, INVITED)))
    queries = (
        select(sessions.c.reader).where(*of_persons),
        select(sessions.c.participant_id).where(*of_persons, sessions.c.participant_id.is_not(None)),
        select(people.c.external_id).where(*named),
        select(invitations.c.participant).where(invitations.c.study == study),
    )
    names = {str(name) for query in queries for name in connection.scalars(query)}
    return sorted(name for name in names - {participant} if _folded(name) == _folded(participant))


def unopened_links(connection: Connection, study: str, participant: str) -> list[str]:
    """Return the digests of a participant's personal links that have begun no session."""
    links = select(invitations.c.token_hash)
    return list(connection.scalars(links.filter_by(study=study, participant=participant, session_id=None)))


def _folded(name: str) -> str:
    """Return a name without easily overlooked differences: case, width, invisible characters, spaces, zeros, alphabets."""
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_LOOK_ALIKES)
    plain = "".join(
        letter for letter in plain if unicodedata.category(letter) not in ("Cf", "Mn", "Zs", "Pd")
    )
    return re.sub(r"(?<!\d)0+(?=\d)", "", plain)


def _found(connection: Connection, row: Mapping[str, Any]) -> PersonSession:
    session_id = str(row["session_id"])
    trials_stored = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    named = select(people.c.source, people.c.external_id).where(people.c.session_id == session_id)
    names = connection.execute(named.where(people.c.source.not_in((TYPED, NETWORK))))
    same = ("session_id", "reader", "participant_id", "state", "is_pilot", "station")
    return PersonSession(
        **{name: row[name] for name in same},
        person=str(row["person_key"] or session_id),
        began_at=row["created_at"],
        trials=int(connection.scalar(trials_stored) or 0),
        known_as=tuple(f"{source} {external_id}" for source, external_id in names),
    )


TOMBSTONES = "withdrawn.txt"
"""File with ids of withdrawn sessions and digests of withdrawn links, next to the backups, so that a restore omits them."""
INVITED_TO = "invite"
"""Action of audit rows that name the file to which personal links were written."""

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Scope:
    """The extent of a withdrawal: what it erases, and what it cannot erase."""

    sessions: tuple[PersonSession, ...]
    links: tuple[str, ...]
    derived: int
    backups: tuple[Path, ...]
    states: tuple[Path, ...]
    beyond: tuple[str, ...]


@dataclass
class Scrubbed:
    """Result of cleaning the files."""

    backups: list[Path] = field(default_factory=list)
    state_rows: int = 0
    replies: int = 0
    left: list[str] = field(default_factory=list)


def scope_of(
    store: Store,
    study: str,
    folder: Path,
    chosen: Sequence[PersonSession],
    *,
    links: Sequence[str] = (),
    backups: Iterable[Path] = (),
) -> Scope:
    """Return what the withdrawal of some sessions erases and what it cannot erase, without changing anything."""
    ids = [session.session_id for session in chosen]
    with store.read() as connection:
        derived = derived_sessions(connection, ids)
        asked = select(calls.c.requested_model).where(calls.c.session_id.in_([*ids, *derived]))
        models = sorted({model for model in connection.scalars(asked.distinct()) if model is not None})
        exported = _noted_places(connection, "export", study)
        invited = [Path(place) for place in _noted_places(connection, INVITED_TO, study)]
        folders, unreachable = _backup_folders(connection, store, folder, backups)
        ours = marks_in(connection)
        copies = copies_elsewhere(connection) if store.path is None else []
    beyond = [f"{place}: an export; delete it or export again" for place in exported if Path(place).exists()]
    beyond += [
        f"{path.parent.parent}: a report made before; delete it or make it again"
        for path in sorted(folder.glob("reports/*/data/trials.parquet"))
    ]
    beyond += [
        f"{file}: personal links, perhaps with names; delete what is in it of this person"
        for file in dict.fromkeys([*sorted(folder.glob("invitations-*.csv")), *invited])
        if file.exists()
    ]
    beyond += [
        f"{place}: backups that cannot be reached now (later: wrods withdraw --again)"
        for place in unreachable
    ]
    beyond += copies
    beyond += [f"{model}: its operator keeps what was sent to it" for model in models]
    if any((parent / ".git").exists() for parent in (folder.resolve(), *folder.resolve().parents)):
        beyond.append("the Git history that holds this folder, and its clones, if data were ever committed")
    beyond += [
        "copies that anyone made by hand: exports, reports, e-mails, backups of the whole computer",
        "records of the recruitment platform itself",
    ]
    return Scope(
        sessions=tuple(chosen),
        links=tuple(links),
        derived=len(derived),
        backups=tuple(file for place in folders for file in _copies(store, place) if _is_ours(file, ours)),
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
    """Erase the rows, then the bytes of sessions; return the results of both.

    The participant's page and the dashboard, which answer at once, call :func:`erase_rows` first; :func:`scrub` may follow in
    another thread.
    """
    erased = erase_rows(store, folder, session_ids, actor=actor)
    return erased, scrub(store, study, folder, backups=backups)


def erase_rows(store: Store, folder: Path, session_ids: Sequence[str], *, actor: str) -> Erased:
    """Erase the rows of sessions in one transaction, record their ids next to the backups, and return what was erased."""
    erased = store.write(lambda connection: erase_sessions(connection, session_ids, actor=actor)).result()
    remember(folder, [*erased.sessions, *erased.invitations])
    return erased


def clean_up(store: Store, study: str, folder: Path) -> list[str]:
    """Scrub if anything was erased since the last time; return a sentence on each remaining problem. One at a time per process."""
    with _ONE_AT_A_TIME:
        with store.read() as connection:
            is_due = bool(what_is_due(connection, study))
        left = scrub(store, study, folder).left if is_due else []
    return [f"{study}: not erased: {line} (to try again: wrods withdraw {folder} --again)" for line in left]


def scrub(store: Store, study: str, folder: Path, *, backups: Iterable[Path] = ()) -> Scrubbed:
    """Remove all bytes of erased sessions from the database's files, backups, hidden states and stored replies."""
    with store.read() as connection:
        due = what_is_due(connection, study)
        # a declined session has no tombstone, only a line next to the backups that may contain it
        gone = list(dict.fromkeys([*withdrawn(connection), *remembered(folder)]))
        folders, unreachable = _backup_folders(connection, store, folder, backups)
        ours = marks_in(connection)
    keys = {key for keys_due in due.values() for key in keys_due}
    done = Scrubbed(state_rows=erase_states(folder, keys))
    done.replies, unread = forget_answers(folder, keys), []
    try:
        done.replies += journal.forget(folder, keys)
    except UserError as fault:
        unread = [str(fault)]
    rewritten = rewrite(store.address)
    done.left += [*unread, *rewritten.left]
    done.left += [f"{backup_folder}: backups that cannot be reached now" for backup_folder in unreachable]
    if store.path is not None:
        done.left += discard_abandoned(store.path)
    remember(folder, gone)
    for backup_folder in folders:
        stem = "study" if backup_folder == (folder / FOLDER).resolve() else study
        _clean_folder(store, stem, backup_folder, ours, gone, done)
    if due and not (unread or rewritten.is_due):
        store.write(lambda connection: note_cleaned(connection, due)).result()
    return done


def _clean_folder(
    store: Store, stem: str, folder: Path, ours: DatabaseMarks, gone: Sequence[str], done: Scrubbed
) -> None:
    """Clean the copies of a database in a folder, and store the list of withdrawn ids next to them."""
    dumps: list[Path] = []
    are_here = False
    for file in _copies(store, folder):
        try:
            if file.name.startswith(".") and file.with_name(f"{file.name}-journal").exists():
                with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as plain:
                    plain.execute("BEGIN IMMEDIATE")
            copy_marks = marks_of(file)
            if not (copy_marks.is_copy_of(ours) or copy_marks.holds({*gone})):
                continue
            are_here = True
            if not is_dump(file):
                if clean_backup(file, gone):
                    done.backups.append(file)
            elif copy_marks.holds({*gone}):
                alone = copy_marks.sessions - ours.sessions - {*gone}
                if alone:
                    done.left.append(
                        f"{file}: it holds the answers, and {counted(len(alone), 'session')} that the database lacks, so it was "
                        "not replaced; delete it if these are not needed, or restore it, which erases the answers"
                    )
                else:
                    dumps.append(file)
        except (DBAPIError, sqlite3.Error, UserError, OSError) as error:
            done.left.append(_not_cleaned(file, error))
    if dumps:
        _dump_again(store, folder, stem, dumps, {*gone}, done)
    if are_here:
        try:
            share_list(folder, stem, gone)
        except OSError as error:
            done.left.append(f"{folder}: the list of withdrawn sessions could not be written there ({error})")


def _copies(store: Store, place: Path) -> list[Path]:
    """Return the files in a folder that may be copies of a database, including interrupted ones."""
    files = [*(backup.file for backup in backups_in(place)), *unfinished_in(place)]
    return [file for file in files if store.path is None or not is_dump(file)]


def _is_ours(file: Path, ours: DatabaseMarks) -> bool:
    try:
        return marks_of(file).is_copy_of(ours)
    except UserError:
        return False


def is_copy(store: Store, file: Path) -> bool:
    """Return whether a file is a copy of a store's database, of any time; False if it cannot be read."""
    with store.read() as connection:
        ours = marks_in(connection)
    return _is_ours(file, ours)


def _not_cleaned(file: Path, error: Exception) -> str:
    """Return why a file could not be cleaned, and the remedy."""
    why = error.message if isinstance(error, UserError) else str(error).splitlines()[0]
    if "locked" in why:
        return f"{file}: another program is using it; close that program"
    why = why.removeprefix(f"{file} ")
    return (
        f"{file}: it was not cleaned ({why}). If it is a copy of this study, delete it, with its -wal and -journal if there "
        "are any"
    )


CLEANING = "withdrawal"
"""Actor of changes to a backup during a withdrawal."""


def clean_backup(file: Path, gone: Sequence[str]) -> bool:
    """Erase withdrawn sessions from an SQLite backup of this or an earlier version; return whether it contained any."""

    def change(connection: Connection) -> bool:
        contained_any = bool(erase_sessions(connection, gone, actor=CLEANING).rows)
        contained_any = bool(clean_tombstones(connection)) or contained_any
        # only the active database records what is due
        connection.execute(delete(audit).where(audit.c.action == DUE))
        return contained_any

    return _change_backup(file, change)


def forget_in_backups(store: Store, study: str, folder: Path, due: str) -> None:
    """Erase names stored before a given time from every SQLite backup that can be reached."""
    with store.read() as connection:
        folders, _ = _backup_folders(connection, store, folder, ())
        ours = marks_in(connection)

    for file in (backup.file for place in folders for backup in backups_in(place)):
        if not is_dump(file) and _is_ours(file, ours):
            with suppress(DBAPIError, sqlite3.Error, OSError):
                _change_backup(file, lambda connection: forget_names(connection, study, due) > 0)


def _change_backup(file: Path, change: Callable[[Connection], bool]) -> bool:
    stamp = file.stat()
    engine = create_engine(
        f"sqlite:///{file}", json_serializer=to_json, json_deserializer=from_json, poolclass=NullPool
    )

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
    """Overwrite the hidden states of erased trials with zeros and remove them from the index; return the number of rows.

    Cached results of analyses next to them (``states/<run>/results``) are deleted too, and recomputed from the remaining rows.
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


def remember(folder: Path, gone: Iterable[str]) -> None:
    """Record withdrawn ids of sessions and digests of personal links next to the study's backups."""
    _add_lines(folder / FOLDER / TOMBSTONES, gone)


def share_list(place: Path, stem: str, gone: Iterable[str]) -> None:
    """Record the same next to backups whose names begin with a stem, for a restore from these alone."""
    _add_lines(place / (TOMBSTONES if stem == "study" else f"{stem}-{TOMBSTONES}"), gone)


def _add_lines(file: Path, gone: Iterable[str]) -> None:
    lines_before = set(_read_list(file))
    new = [line for line in gone if line not in lines_before]
    if new:
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in new)


def remembered(folder: Path) -> list[str]:
    """Return the withdrawn ids recorded next to the study's backups."""
    return _read_list(folder / FOLDER / TOMBSTONES)


def lists_for(folder: Path, backup: Path, study: str) -> list[Path]:
    """Return the existing lists of withdrawn ids: next to the study's backups, and next to a backup."""
    backup_folder = backup.resolve().parent
    lists = (
        folder / FOLDER / TOMBSTONES,
        backup_folder / TOMBSTONES,
        backup_folder / f"{study}-{TOMBSTONES}",
    )
    return [file for file in lists if file.is_file()]


def listed(lists: Iterable[Path]) -> list[str]:
    """Return the ids in lists of withdrawn ids."""
    return list(dict.fromkeys(line for file in lists for line in _read_list(file)))


def _read_list(file: Path) -> list[str]:
    return file.read_text("utf-8", errors="replace").split() if file.is_file() else []


def _dump_again(
    store: Store, folder: Path, stem: str, dumps: Sequence[Path], gone: set[str], done: Scrubbed
) -> None:
    """Replace dumps that contain withdrawn data, and cannot be edited, by one of the current database."""
    try:
        dump = back_up(store.address, folder, stem=stem)
        if marks_of(dump).holds(gone):
            raise UserError(f"{dump} holds answers that were withdrawn since", exit_code=1)
    except (UserError, OSError) as error:
        why = error.message if isinstance(error, UserError) else str(error)
        done.left += [
            f"{file}: it holds the answers and was not replaced, because no new dump could be made ({why}); delete it once you "
            "have another backup"
            for file in dumps
        ]
        return
    done.backups.append(dump)
    for file in dumps:
        file.unlink(missing_ok=True)


def _noted_places(
    connection: Connection, action: str, study: str | None = None, key: str = "to"
) -> list[str]:
    query = select(audit.c.detail).where(audit.c.action == action)
    query = query if study is None else query.where(audit.c.study == study)
    details: Iterable[Mapping[str, Any] | None] = connection.scalars(query)
    return list(dict.fromkeys(str(detail[key]) for detail in details if detail and detail.get(key)))


def _backup_folders(
    connection: Connection, store: Store, folder: Path, further: Iterable[Path]
) -> tuple[list[Path], list[Path]]:
    """Return the folders that may contain backups of the whole database, and those that cannot be reached now."""
    noted = [*_noted_places(connection, "backup"), *_noted_places(connection, RESTORE, key="from")]
    own_folders = [folder / FOLDER] if store.path is None else [folder / FOLDER, store.path.parent / FOLDER]
    every = [path.resolve() for path in (*own_folders, *further, *(Path(place).parent for place in noted))]
    distinct = list(dict.fromkeys(every))
    optional = {path.resolve() for path in own_folders}
    return [p for p in distinct if p.is_dir()], [p for p in distinct if not p.is_dir() and p not in optional]
