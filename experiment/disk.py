"""Free disk space, and byte counts as text."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(folder: Path) -> int:
    """Return the free bytes at a folder's location, even if it does not exist yet."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def gigabytes(number: float) -> str:
    """Return a number of bytes as text."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"
