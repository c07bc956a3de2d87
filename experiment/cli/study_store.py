"""Opens the store of a study for commands that work on collected data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.store import Store
    from experiment.study import Study


ADD_YES = "Add --yes to run the command without confirmation."


@dataclass(frozen=True)
class Opened:
    """A study and its store."""

    study: Study
    store: Store


@contextmanager
def opened_study(folder: Path) -> Iterator[Opened]:
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
        yield Opened(study, store)


def store_of(study: Study) -> Store | None:
    """Open the store of a study; None where it has none yet (a database by address always counts as one)."""
    from experiment.configuration import read_config, store_address
    from experiment.store import open_store
    from experiment.store.database import SQLITE_FILE
    from experiment.store.store import check_file

    address = store_address(read_config())
    if address is None and not (study.folder / SQLITE_FILE).is_file():
        check_file(study.folder / SQLITE_FILE)
        return None
    return open_store(address or study.folder)


def this_user() -> str:
    """Return who works at the command line, for the audit log."""
    import getpass

    try:
        return f"command line: {getpass.getuser()}"
    except (KeyError, OSError):
        return "command line"


def confirm(question: str, otherwise: str, mend: str = ADD_YES) -> None:
    """Ask whether to go on; raise what did not happen where the answer is no or nobody answers."""
    try:
        wanted = click.confirm(question, err=True)
    except click.Abort as unanswered:
        raise UserError(
            f"{otherwise}: the question was not answered",
            mend=mend,
            exit_code=1,
        ) from unanswered
    if not wanted:
        raise UserError(otherwise, exit_code=1)
