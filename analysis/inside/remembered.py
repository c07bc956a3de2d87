"""Results that take long, kept beside the hidden states that they were computed from: a second report computes nothing again.

A result lies in ``states/<run>/results`` under a name and the hash of all that it hangs on (which states, which settings, which
version of the computation), so that a wrong one is never found. Whoever computes layer by layer keeps layer by layer, and a
program that is stopped loses one layer.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.files import replacing

RESULTS = "results"

Arrays = dict[str, NDArray[Any]]


def fingerprint(told: Mapping[str, Any], *arrays: NDArray[Any]) -> str:
    """Return a hash of settings (JSON) and of arrays with their shapes and types."""
    said = hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8"))
    for one in arrays:
        said.update(f"|{one.dtype.str}{one.shape}|".encode())
        said.update(np.ascontiguousarray(one).tobytes())
    return said.hexdigest()


def remembered(folder: Path, name: str, mark: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return what was computed before, else compute it and keep it."""
    file = folder / RESULTS / f"{name}-{mark[:20]}.npz"
    known = read(file)
    if known is None:
        known = compute()
        keep(file, known)
    return known


def read(file: Path) -> Arrays | None:
    """Return the arrays of a file; None where there is none, or none that can be read."""
    try:
        with np.load(file, allow_pickle=False) as known:
            return {key: known[key] for key in known.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError):
        return None


def keep(file: Path, found: Arrays) -> bool:
    """Write arrays to a file in one step; return whether that was possible."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as begun, begun.open("wb") as opened:
            np.savez_compressed(opened, allow_pickle=False, **found)
    except OSError:
        return False
    return True
