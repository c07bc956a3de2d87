"""Puts an export in its place: written whole in a folder of its own, then moved file by file over what an earlier one left.

A reader of the folder thus meets the earlier export until the new one is complete, and an export that fails or is killed leaves the
earlier one as it was. What an export wrote stands in a list beside it, so that the next one takes away what it does not write again
(other forms, trainings, sessions that were withdrawn) and nothing else.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stimuli.errors import UserError

UNFINISHED = ".unfinished-export"
"""In the folder of an export, while it is written."""
LISTS = ("files.txt", "documentation/files.txt")
"""Where the list of an export's files stands; the second in Psych-DS."""


@contextmanager
def placed(folder: Path, *, replace: bool, listed_in: str = LISTS[0]) -> Iterator[Path]:
    """Lend an empty folder; when the block ends without an error, what it holds is the export in ``folder``.

    Parameters
    ----------
    folder : Path
        New or empty; made where it is not there.
    replace : bool
        It may hold something: files of an earlier export are replaced or taken away, others stay.
    listed_in : str
        One of :data:`LISTS`.

    Raises
    ------
    UserError
        The folder holds something and ``replace`` is False, or it is a file.
    """
    made = not folder.exists()
    if not made and (not folder.is_dir() or (_holds_something(folder) and not replace)):
        raise UserError(
            f"{folder} is not empty", mend="Give a new folder, or write over an export: --replace"
        )
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _move(unfinished, folder, listed_in)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if made:
            with suppress(OSError):  # it holds what was moved
                folder.rmdir()


def _holds_something(folder: Path) -> bool:
    return any(one.name != UNFINISHED for one in folder.iterdir())


def _move(unfinished: Path, folder: Path, listed_in: str) -> None:
    paths = [path.relative_to(unfinished) for path in sorted(unfinished.rglob("*"))]
    folders = [path for path in paths if (unfinished / path).is_dir()]
    files = {path.as_posix() for path in paths if path not in folders} | {listed_in}
    for path in folders:
        (folder / path).mkdir(exist_ok=True)
    earlier = _listed(folder)
    # from here on an end halfway leaves files of either export; all of them are in the list, for the next one
    _list(unfinished, folder / listed_in, files | earlier)
    for name in files - {listed_in}:
        # a name is taken over whatever rights the file had that bore it
        (unfinished / name).replace(folder / name)
    for name in earlier - files:
        (folder / name).unlink(missing_ok=True)
    for path in {parent for name in earlier - files for parent in Path(name).parents} - {Path(), *folders}:
        with suppress(OSError):  # it holds something else
            os.removedirs(folder / path)
    _list(unfinished, folder / listed_in, files)


def _list(unfinished: Path, file: Path, names: set[str]) -> None:
    written = unfinished / "list"
    written.write_text("".join(f"{name}\n" for name in sorted(names)), "utf-8")
    written.replace(file)


def _listed(folder: Path) -> set[str]:
    """Return the files that the earlier export in a folder names as its own, none of them outside the folder."""
    found: set[str] = set()
    for file in (folder / name for name in LISTS):
        if file.is_file():
            names = file.read_text("utf-8").splitlines()
            found |= {
                name for name in names if name and (folder / name).resolve().is_relative_to(folder.resolve())
            }
    return found
