"""Maintenance while a study is served: hourly backups, and deletion of data that are due.

One thread does both for all served studies, at its start, every hour, and at its end. A failure (a removed drive, a full disk)
is reported and retried the next time; it never disturbs participants.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, func, select

from experiment.integrity.withdrawal import (
    clean_up,
    forget_in_backups,
    is_copy,
    remember,
    remembered,
    share_list,
)
from experiment.store import Store
from experiment.store.backups import FOLDER, SUFFIXES, back_up, name_copy, rotate
from experiment.store.erasure import SERVER, forget_names, forget_undecided, note_due, withdrawn
from experiment.store.records import add_audit
from experiment.store.session_activity import stamp
from experiment.store.tables import tallies
from experiment.study import Study
from stimuli.errors import UserError

INTERVAL_S = 3600.0
UNDECIDED_FOR = timedelta(days=1)
"""Age after which a session without consent on its consent screen is deleted."""
_UNITS = {"min": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class MaintainedStudy:
    """A study to maintain: folder, store, and the time after which platform ids are deleted."""

    study: str
    folder: Path
    store: Store
    forget_after: timedelta | None


def kept(study: Study, store: Store) -> MaintainedStudy:
    """Return a study's maintenance settings."""
    given = study.get("participants", "privacy", "forget_platform_ids_after")
    return MaintainedStudy(
        study.id, study.folder, store, None if given is None else long_duration(str(given))
    )


def long_duration(text: str) -> timedelta:
    """Return a text such as ``30 days`` as a duration."""
    match = re.fullmatch(r"([0-9.]+) ?(min|h|d)(?:ours?|ays?)?", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time such as 30 days")
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


def make_backups(
    maintained: MaintainedStudy, places: Sequence[Path] = (), *, actor: str = SERVER
) -> list[Path]:
    """Back a study up into its folder ``backups/`` and further folders, and remove expired copies."""
    copies: list[Path] = []
    first_error: UserError | OSError | None = None
    backup_folder = maintained.folder / FOLDER
    backup_folder.mkdir(exist_ok=True)
    for folder in (backup_folder, *places):
        stem = "study" if folder == backup_folder else maintained.study
        try:
            file = copy_of(maintained.store, maintained.study, folder, stem=stem, actor=actor, automatic=True)
            rotate(folder, stem, lambda old: is_copy(maintained.store, old))
            with maintained.store.read() as connection:
                gone = [*withdrawn(connection), *remembered(maintained.folder)]
            share_list(folder, stem, gone)
        except (UserError, OSError) as error:
            first_error = first_error or error
            continue
        copies.append(file.resolve())
    if first_error is not None:
        raise first_error
    return copies


def copy_of(store: Store, study: str, place: Path, *, stem: str, actor: str, automatic: bool = False) -> Path:
    """Back a store up without participants who withdraw meanwhile (see :func:`~experiment.store.backups.back_up`).

    A withdrawal cleans existing backups but cannot find one that is being written. The location is recorded first, so that the
    copy, once restored, contains it.
    """
    is_file = place.suffix in SUFFIXES and not place.is_dir()
    folder = place.parent if is_file else place
    if not folder.is_dir():
        raise UserError(
            f"{folder} does not exist, so nothing was copied there",
            mend="Attach the disk, or create the folder.",
            exit_code=1,
        )
    while True:
        before = _withdrawn(store)
        file = name_copy(store.address, place, stem=stem, automatic=automatic)
        note_place(store, study, "backup", file, actor)
        back_up(store.address, file, stem=stem)
        if _withdrawn(store) == before:
            return file
        file.unlink()


def _withdrawn(store: Store) -> int:
    with store.read() as connection:
        counted = connection.scalar(select(func.coalesce(func.sum(tallies.c.number), 0)))
        return len(withdrawn(connection)) + int(counted or 0)


def note_place(store: Store, study: str, action: str, place: Path, actor: str) -> None:
    """Record where data were copied (``backup``, ``export`` or ``invite``), so that a withdrawal can name the places."""
    detail = {"to": str(place.resolve())}
    store.write(lambda connection: add_audit(connection, actor, action, study=study, detail=detail)).result()


def forget_platform_ids(maintained: MaintainedStudy, *, now: datetime | None = None) -> int:
    """Erase expired platform ids and invited names, backups included; return their number.

    The database's own files are cleaned by :func:`~experiment.integrity.withdrawal.clean_up`.
    """
    if maintained.forget_after is None:
        return 0
    before = (now or datetime.now(UTC)) - maintained.forget_after
    due = before.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def erase(connection: Connection) -> int:
        gone = forget_names(connection, maintained.study, due)
        if gone:
            add_audit(
                connection, SERVER, "forget_platform_ids", study=maintained.study, detail={"rows": gone}
            )
            note_due(connection, maintained.study)
        return int(gone)

    number = maintained.store.write(erase).result()
    forget_in_backups(maintained.store, maintained.study, maintained.folder, due)
    return number


def forget_undecided_sessions(maintained: MaintainedStudy, *, now: datetime | None = None) -> int:
    """Erase sessions left on the consent screen for a day; return their number. Files are cleaned afterwards."""
    due = stamp((now or datetime.now(UTC)) - UNDECIDED_FOR)
    gone = maintained.store.write(
        lambda connection: forget_undecided(connection, maintained.study, due)
    ).result()
    remember(maintained.folder, gone)
    return len(gone)


class Maintenance:
    """The thread that maintains served studies; a context manager."""

    def __init__(
        self,
        studies: Sequence[MaintainedStudy],
        places: Sequence[Path],
        tell: Callable[[str], None],
        note_backup: Callable[[str, Exception | None], None],
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._studies = tuple(studies)
        self._places = tuple(places)
        self._tell = tell
        self._note_backup = note_backup
        self._interval_s = interval_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="wrods-upkeep", daemon=True)

    def __enter__(self) -> Maintenance:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.round()

    def _work(self) -> None:
        self.round()
        while not self._end.wait(self._interval_s):
            self.round()

    def round(self) -> None:
        """Back every study up, delete what is due, and clean the files, once."""
        for study in self._studies:
            for subject, forget in (
                ("platform ids", forget_platform_ids),
                ("sessions left on the consent screen", forget_undecided_sessions),
            ):
                try:
                    forget(study)
                except Exception as error:
                    # whatever the error, participants are answering: report it and continue
                    self._tell(f"{study.study}: {subject} could not be forgotten: {error}")
            try:
                left = clean_up(study.store, study.study, study.folder)
            except Exception as error:
                left = [f"{study.study}: files were not cleaned of deleted answers: {error}"]
            for line in left:
                self._tell(line)
            failure: Exception | None = None
            try:
                make_backups(study, self._places)
            except Exception as error:
                failure = error
                study.store.check()  # a damaged file is one reason
            self._note_backup(study.study, failure)
