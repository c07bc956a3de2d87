"""Opens the store of a study for commands that work on collected data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stimuli.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from experiment.store import Store
    from experiment.study import Study


@dataclass(frozen=True)
class OpenedStudy:
    """A study and its store."""

    study: Study
    store: Store


@contextmanager
def opened_study(folder: Path) -> Iterator[OpenedStudy]:
    """Open a study that has a store."""
    from experiment.checking import load_study

    study = load_study(folder)
    store = store_of(study)
    if store is None:
        raise UserError(
            f"{study.folder} has no answers yet",
            mend=f"Collect some with `wrods serve {folder}` or `wrods run {folder}`.",
        )
    with store:
        yield OpenedStudy(study, store)


def store_of(study: Study) -> Store | None:
    """Open the store of a study; None if it has none yet (a database by address always counts as one)."""
    from experiment.configuration import read_config, store_address
    from experiment.store.damage import check_file
    from experiment.store.database import SQLITE_FILE

    if store_address(read_config()) is None and not (study.folder / SQLITE_FILE).is_file():
        check_file(study.folder / SQLITE_FILE)
        return None
    return own_store(study)


def store_place(study: Study) -> str | Path:
    """Return the store's address in the user's settings, or else the study's folder."""
    from experiment.configuration import read_config, store_address

    return store_address(read_config()) or study.folder


def own_store(study: Study) -> Store:
    """Open the store of a study, creating it if necessary."""
    from experiment.store import open_store

    return open_store(store_place(study))


def note_action(
    store: Store, study: str, action: str, detail: Mapping[str, Any], session_id: str | None = None
) -> None:
    """Record an action at the command line in the audit log."""
    from experiment.store.records import add_audit

    def note(connection: Connection) -> None:
        add_audit(connection, this_user(), action, study=study, session_id=session_id, detail=dict(detail))

    store.write(note).result()


def this_user() -> str:
    """Return the user at the command line, for the audit log."""
    import getpass

    try:
        return f"command line: {getpass.getuser()}"
    except (KeyError, OSError):
        return "command line"
