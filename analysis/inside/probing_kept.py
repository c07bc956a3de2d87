"""What probes gave, kept layer by layer beside the states, so that a stopped report goes on and a second one computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.inside.probing_fit import ProbedLayer
from analysis.inside.remembered import RESULTS, fingerprint, keep, read
from analysis.names import plain

LAYOUT = 1
"""Another number makes what was kept before be computed again."""
_FIELDS = ("predicted", "controls", "penalties", "trained", "trained_controls")
_COUNTS = ("fits", "unconverged", "clipped")


def folder_of(states: Path, target: str, settings: Mapping[str, Any], parts: Sequence[Any]) -> Path:
    """Return the folder for the results of one probing, named by a hash of all that they are made of."""
    arrays = [one for one in parts if isinstance(one, np.ndarray)]
    lists = [list(one) for one in parts if not isinstance(one, np.ndarray)]
    mark = fingerprint({"layout": LAYOUT, **settings, "parts": lists}, *arrays)
    return states / RESULTS / f"probing_{plain(target)}_{mark[:16]}"


def read_layer(folder: Path, layer: int, rows: int) -> ProbedLayer | None:
    """Return the kept results of a layer; None where there are none, or none that can be read."""
    known = read(_path(folder, layer))
    if known is None or not {*_FIELDS, "counts"} <= set(known):
        return None
    counts = [int(one) for one in known["counts"]]
    if known["predicted"].shape != (rows,) or len(counts) != len(_COUNTS):
        return None
    given: dict[str, Any] = {
        **{name: known[name] for name in _FIELDS},
        **dict(zip(_COUNTS, counts, strict=True)),
    }
    return ProbedLayer(**given)


def keep_layer(folder: Path, layer: int, found: ProbedLayer) -> bool:
    """Keep the results of a layer, in one step; return whether that was possible."""
    arrays = {name: getattr(found, name) for name in _FIELDS}
    return keep(
        _path(folder, layer), {**arrays, "counts": np.array([getattr(found, one) for one in _COUNTS])}
    )


def _path(folder: Path, layer: int) -> Path:
    return folder / f"layer_{layer:02d}.npz"
