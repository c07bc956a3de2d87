"""Pictures, sounds and films of a study: files in its folder that columns of the materials name (``materials: media``).

Items store the hash of each file, so that a file that changes after the build is noticed, and pages load it under that name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from stimuli.errors import UserError, together
from stimuli.item import Item

KEY = "media"
"""Key of an item with what is known of its files, by field."""
CHOICES = "choices"
"""The column of choices, which can be files: buttons with pictures."""
SUFFIXES: Mapping[str, Mapping[str, str]] = {
    "image": {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"},
    "audio": {".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".m4a": "audio/mp4"},
    "video": {".mp4": "video/mp4", ".webm": "video/webm"},
}
"""Suffixes of the files of each kind, with the type under which they are sent; every browser shows them."""
BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".webp": (b"RIFF",),
    ".wav": (b"RIFF",),
    ".ogg": (b"OggS",),
    ".mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    ".webm": (b"\x1aE\xdf\xa3",),
}
"""First bytes of files of some suffixes."""
LARGEST = 20_000_000
"""Bytes of the largest file."""


def description_of(field: str) -> str:
    """Return the column that describes the files of a field in words."""
    return f"{field}_text"


def with_media(folder: Path, fields: Mapping[str, str], items: Sequence[Item]) -> list[Item]:
    """Return items with kind, name, hash and description of their files; ``fields`` that name files have their kind."""
    faults: dict[str, UserError] = {}
    made = []
    for item in items:
        files: dict[str, dict[str, Any]] = {}
        for field, kind, name, text in _named_files(item, fields):
            try:
                digest = digest_of(folder, name, kind)
            except UserError as fault:
                faults.setdefault(name, UserError(f"item {item.item_id!r}: {fault.message}", mend=fault.mend))
                continue
            files[field] = {"kind": kind, "file": name, "sha256": digest, "text": text}
        made.append(replace(item, key={**item.key, KEY: files}) if files else item)
    if faults:
        raise together(list(faults.values()))
    return made


def _named_files(item: Item, fields: Mapping[str, str]) -> Iterator[tuple[str, str, str, str | None]]:
    """Yield field, kind, name and description of the files that an item's fields and choices name."""
    for field, kind in fields.items():
        described = item.shown.get(description_of(field)) or None
        if field == CHOICES:
            told = [part.strip() for part in described.split("|")] if described else []
            names = list(item.choices or ())
            if told and len(told) != len(names):
                raise UserError(
                    f"item {item.item_id!r} has {len(names)} choices and {len(told)} descriptions of them",
                    mend=f"Part the descriptions in {description_of(field)!r} by |, one for each choice.",
                )
            for number, name in enumerate(names):
                yield choice_field(name), kind, name, told[number] if told else None
        elif item.shown.get(field):
            yield field, kind, item.shown[field], described


def choice_field(name: str) -> str:
    """Return the field under which an item keeps the file of a choice."""
    return f"{CHOICES}: {name}"


def digest_of(folder: Path, name: str, kind: str) -> str:
    """Return the SHA-256 of a file in a study's folder, whose contents must be of a kind."""
    path, suffixes = folder / name, SUFFIXES[kind]
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"the {kind} {name!r} is outside of the study's folder", mend="Copy it into the study's folder."
        )
    if not path.is_file():
        raise UserError(
            f"the {kind} {name!r} is not in the study's folder", mend="Copy it there, or correct its name."
        )
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise UserError(
            f"{name!r} is no {kind} that every browser shows",
            mend=f"Convert it to one of: {', '.join(suffixes)}.",
        )
    status = path.stat()
    if status.st_size > LARGEST:
        raise UserError(
            f"{name!r} has {status.st_size / 1e6:.0f} MB; a file has {LARGEST // 1_000_000} MB at most",
            mend="Reduce its size or quality.",
        )
    return _digest(path, suffix, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=65_536)
def _digest(path: Path, suffix: str, size: int, changed: int) -> str:
    contents = path.read_bytes()
    beginnings = BEGINNINGS.get(suffix, (b"",))
    if not contents.startswith(beginnings) or (suffix in (".mp4", ".m4a") and contents[4:8] != b"ftyp"):
        raise UserError(
            f"{path.name!r} does not begin like a {suffix.removeprefix('.').upper()} file",
            mend="Save it again in the format of its name.",
        )
    return hashlib.sha256(contents).hexdigest()


def served_name(file: Mapping[str, Any]) -> str:
    """Return the name under which pages load a file (``sha256``, ``file``): its hash, which says nothing about the item."""
    return f"{file['sha256'][:32]}{Path(file['file']).suffix.lower()}"


def served_files(folder: Path, items: Iterable[Item]) -> dict[str, Path]:
    """Return the files of items by the names under which pages load them; each must be there as it was built."""
    served: dict[str, Path] = {}
    faults: dict[str, UserError] = {}
    for file in (file for item in items for file in item.key.get(KEY, {}).values()):
        name = file["file"]
        if served.setdefault(served_name(file), folder / name) and name not in faults:
            try:
                is_same = digest_of(folder, name, file["kind"]) == file["sha256"]
            except UserError as fault:
                faults[name] = fault
                continue
            if not is_same:
                mend = f"Run `wrods build {folder}`, or bring the earlier file back."
                faults[name] = UserError(f"the {file['kind']} {name!r} was edited after the build", mend=mend)
    if faults:
        raise together(list(faults.values()))
    return served


_PATHS: dict[str, Path] = {}


def remember_files(folder: Path, items: Iterable[Item]) -> None:
    """Note where the files of items are, for :func:`contents_of`; the names are hashes, the same for all studies."""
    _PATHS.update(
        (served_name(file), folder / file["file"])
        for item in items
        for file in item.key.get(KEY, {}).values()
    )


@lru_cache(maxsize=256)
def contents_of(name: str) -> bytes:
    """Return a file of a study that was planned in this process, by the name under which pages load it."""
    path = _PATHS.get(name)
    contents = path.read_bytes() if path is not None and path.is_file() else b""
    if not hashlib.sha256(contents).hexdigest().startswith(Path(name).stem):
        raise UserError(
            f"the file {path or name} of the materials is missing or was edited after the build",
            mend="Bring it back, or run `wrods build` again.",
        )
    return contents


def shown_files(item: Item, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return the files of an item's fields as a step in a plan has them: kind, name for pages, and description."""
    files = item.key.get(KEY, {})
    return [
        {"kind": files[field]["kind"], "name": served_name(files[field]), "text": files[field]["text"]}
        for field in fields
        if field in files
    ]
