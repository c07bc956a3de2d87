"""Files on disk: writes that a power cut leaves whole, names by content, and free space."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any


def free_bytes(folder: Path) -> int:
    """Return the free bytes at a folder's location, even if it does not exist yet."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def gigabytes(number: float) -> str:
    """Return a number of bytes as text."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replace_file(path: Path, content: str | bytes, *, is_private: bool = False) -> None:
    """Write a file atomically, so that readers see the old or the new content; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, is_private=is_private) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, *, is_private: bool = False) -> Iterator[Path]:
    """Yield an empty file in the same folder; at the end of the block it replaces the file, safely on disk."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if is_private else 0o666))
    try:
        if not is_private and path.exists():
            partial.chmod(stat.S_IMODE(path.stat().st_mode))
        yield partial
        settle(partial)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    settle(path.parent)


def overwrite(path: Path, replacement: str = "") -> None:
    """Replace a file, or delete it, and erase the bytes that it had, which another name may share."""
    with path.open("r+b") as opened:
        if replacement:
            replace_file(path, replacement)
        else:
            path.unlink()
        opened.write(b"\0" * os.fstat(opened.fileno()).st_size)
        opened.flush()
        os.fsync(opened.fileno())


def settle(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, is on disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        if path.is_dir():  # Windows opens no folder, and needs none
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as fault:
        if fault.errno not in (errno.EINVAL, errno.EBADF, errno.EACCES):
            raise
    finally:
        os.close(descriptor)


@functools.cache
def data_file(name: str) -> Any:
    """Return the content of a JSON file of this package, by its path within the package."""
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
