"""How much room there is on a disk, and how bytes are said."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(folder: Path) -> int:
    """Return how many bytes are free where a folder lies, or will lie."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def gigabytes(number: float) -> str:
    """Return bytes as people say them."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:.1f} MB"
