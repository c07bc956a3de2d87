"""Says whether a folder is a safe home for SQLite.

A database on a network share has no trustworthy locks, and a sync program that copies it while it is written
leaves copies without their write-ahead log. Both lose data silently, so both are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from stimuli.errors import UserError

MOUNTS = Path("/proc/mounts")


@cache
def _known() -> Mapping[str, Mapping[str, str]]:
    text = resources.files(__package__).joinpath("synced_folders.json").read_text("utf-8")
    known: Mapping[str, Mapping[str, str]] = json.loads(text)
    return known


def _unescape(mount_point: str) -> str:
    # /proc/mounts writes blanks, tabs, newlines and backslashes as octal numbers
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        mount_point = mount_point.replace(code, character)
    return mount_point


def file_system(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system that holds an absolute folder.

    Parameters
    ----------
    folder : Path
        An absolute path without links.
    mounts : str
        The text of ``/proc/mounts``; a later line covers an earlier one with the same mount point.
    """
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescape(fields[1]))
        if (folder == point or point in folder.parents) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), fields[2])
    return None if best is None else best[1]


def synced_by(folder: Path) -> str | None:
    """Return the name of the sync service whose folder this path lies in, judged by folder names."""
    known = _known()
    for part in folder.parts:
        name = part.casefold()
        if name in known["folders"]:
            return known["folders"][name]
        for prefix, service in known["folder_prefixes"].items():
            if name.startswith(prefix):
                return service
    return None


def check_place(database: Path, *, mounts: Path = MOUNTS) -> None:
    """Refuse a place where SQLite loses data.

    Raises
    ------
    UserError
        The folder belongs to a sync service or lies on a network file system.
    """
    folder = database.expanduser().resolve().parent
    service = synced_by(folder)
    if service is None and mounts.exists():
        kind = file_system(folder, mounts.read_text("utf-8", errors="replace"))
        network = _known()["file_systems"].get(kind or "")
        service = None if network is None else f"a network file system ({network})"
    if service is not None:
        raise UserError(
            f"{folder} is kept by {service}; a study's database can be damaged there",
            mend="Move the study to a folder on this computer's own disk, or give a PostgreSQL address "
            "(store in config.toml, or WRODS_STORE).",
        )
