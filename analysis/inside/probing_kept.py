"""What probes gave, kept layer by layer beside the states, so that a stopped report goes on and a second one computes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.inside.probing_fit import ProbedLayer
from analysis.names import plain

LAYOUT = 1
"""Another number makes what was kept before be computed again."""
RESULTS = "results"
_FIELDS = ("predicted", "controls", "penalties", "trained", "trained_controls")
_COUNTS = ("fits", "unconverged", "clipped")


def folder_of(states: Path, target: str, settings: Mapping[str, Any], parts: Sequence[Any]) -> Path:
    """Return the folder for the results of one probing, named by a hash of all that they are made of.

    Parameters
    ----------
    states : Path
        ``states/<run>``.
    target : str
    settings : mapping
        What can be written as JSON.
    parts : sequence of list of str or ndarray
        Keys of trials, labels, folds … in the order of rows.
    """
    made = hashlib.sha256(json.dumps({"layout": LAYOUT, **settings}, sort_keys=True).encode())
    for part in parts:
        if isinstance(part, np.ndarray):
            made.update(f"{part.dtype.str}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        else:
            made.update(json.dumps(list(part), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return states / RESULTS / f"probing_{plain(target)}_{made.hexdigest()[:16]}"


def read_layer(folder: Path, layer: int, rows: int) -> ProbedLayer | None:
    """Return the kept results of a layer; None where there are none, or none that can be read."""
    path = _path(folder, layer)
    try:
        with np.load(path, allow_pickle=False) as kept:
            fields: dict[str, NDArray[Any]] = {name: kept[name] for name in _FIELDS}
            counts = [int(one) for one in kept["counts"]]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if fields["predicted"].shape != (rows,) or len(counts) != len(_COUNTS):
        return None
    given: dict[str, Any] = {**fields, **dict(zip(_COUNTS, counts, strict=True))}
    return ProbedLayer(**given)


def keep_layer(folder: Path, layer: int, found: ProbedLayer) -> bool:
    """Keep the results of a layer, in one step; return whether that was possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".layer_{layer:02d}.{os.getpid()}.new"
        with beside.open("wb") as file:
            counts = np.array([getattr(found, one) for one in _COUNTS])
            np.savez_compressed(file, counts=counts, **{one: getattr(found, one) for one in _FIELDS})
        beside.replace(_path(folder, layer))
    except OSError:
        return False
    return True


def _path(folder: Path, layer: int) -> Path:
    return folder / f"layer_{layer:02d}.npz"
