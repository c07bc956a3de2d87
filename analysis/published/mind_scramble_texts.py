"""How near changed texts are to intact ones (Mind Scramble, 2024, Table 4), as ``wrods score --similarity`` kept it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.measures.resampling import bootstrap, where_it_varies
from analysis.published.mind_scramble import EMBEDDED
from analysis.published.mind_scramble_floors import pair_values
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

STORED = "similarity.json"
UNITS = {
    "Character": tuple(name for name in EMBEDDED if not name.startswith(("WORD-", "SENT-"))),
    "Word": tuple(name for name in EMBEDDED if name.startswith("WORD-")),
    "Sentence": tuple(name for name in EMBEDDED if name.startswith("SENT-")),
}
"""Columns of Table 4 by the unit that changes; the paper's section 4.5 gives their means (CSQA: .885, .952 and .998)."""
_UP = 4
_FEWEST = 3


@dataclass(frozen=True)
class Near:
    """Cosines of one sort of text."""

    of: str  # ``text alone`` or ``whole prompt``
    means: dict[str, float]  # by level
    items: dict[str, dict[str, float]] = field(default_factory=dict)
    unrelated: tuple[float, ...] = ()
    pairs: int = 0  # pairs of different items that these come from
    with_all: bool = False  # whether each item was compared with all others
    texts: int = 0
    cut: int | None = None  # texts that are longer than the model reads

    @property
    def floor(self) -> float:
        """Mean cosine of texts that have nothing in common; nan where it was not taken."""
        return float(np.mean(self.unrelated)) if self.unrelated else math.nan

    def floor_ends(self, study: str) -> tuple[float, float]:
        """Return a 95% interval of the floor, by a bootstrap over items; nan with fewer than three."""
        values = np.array(self.unrelated, dtype=float)
        if self.with_all:
            if len(values) < _FEWEST:
                return math.nan, math.nan
            values = pair_values(values)
        ends = where_it_varies(
            bootstrap(
                values[:, None], lambda means: means[:, 0], stable_seed(study, "unrelated texts", self.of)
            )
        )
        return ends.low, ends.high

    def share(self, mean: float) -> float:
        """Return where a cosine lies between the floor (0) and 1 (100), percent; negative below the floor."""
        return 100 * (mean - self.floor) / (1 - self.floor) if self.floor < 1 else math.nan


@dataclass(frozen=True)
class UnitMean:
    """A unit's mean over operations and items, with 95% percentile bootstraps over items."""

    unit: str
    operations: int
    items: int
    mean: float
    low: float
    high: float
    above: float  # by how much it exceeds the unit before, of the same items; nan for the first
    above_low: float
    above_high: float


def stored_texts(folder: Path) -> tuple[str, tuple[Near, ...]] | None:
    """Read what ``wrods score STUDY --similarity`` kept of the texts shown; None without it."""
    here = folder.resolve()
    file = next((one / STORED for one in (here, *here.parents[:_UP]) if (one / STORED).is_file()), None)
    if file is None:
        return None
    try:
        told = json.loads(file.read_text("utf-8"))
        known, items = told.get("items"), file.with_name("items.jsonl")
        found = [_near("text alone", told)]
        if told.get("prompts"):
            found.append(_near("whole prompt", told["prompts"]))
        use = str(told["use"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} is not what wrods score --similarity keeps",
            mend="Run that command again, or remove the file.",
        ) from error
    if known is not None and items.is_file() and hashlib.sha256(items.read_bytes()).hexdigest() != known:
        raise UserError(
            f"{file} compares other items than the study has now", mend="Run wrods score --similarity again."
        )
    return use, tuple(found)


def _near(of: str, told: Mapping[str, Any]) -> Near:
    shown = {str(name).split("=")[-1].split(": ")[-1]: one for name, one in told["shown"].items()}
    cut, unrelated = told.get("cut"), told.get("unrelated") or {}
    return Near(
        of,
        {name: float(one["mean"]) for name, one in shown.items()},
        {
            name: {str(item): float(value) for item, value in zip(one["of"], one["cosines"], strict=True)}
            for name, one in shown.items()
            if "cosines" in one
        },
        tuple(float(one) for one in unrelated.get("cosines", ())),
        int(unrelated.get("pairs") or 0),
        "of" in unrelated,
        int(told.get("texts") or 0),
        None if cut is None else int(cut),
    )


def unit_means(near: Near, study: str) -> list[UnitMean]:
    """Average operations of each unit, item by item, over the items that have all of them; empty without single items."""
    units = {unit: [name for name in names if near.items.get(name)] for unit, names in UNITS.items()}
    units = {unit: names for unit, names in units.items() if names}
    everything = [set(near.items[name]) for names in units.values() for name in names]
    shared = sorted(set.intersection(*everything)) if everything else []
    if not shared:
        return []
    values = np.array(
        [
            [np.mean([near.items[name][item] for name in names]) for names in units.values()]
            for item in shared
        ],
        dtype=float,
    )
    seed = stable_seed(study, "units of texts", near.of)
    found = []
    for place, (unit, names) in enumerate(units.items()):
        own = where_it_varies(bootstrap(values[:, [place]], lambda means: means[:, 0], seed))
        above = (math.nan, math.nan, math.nan)
        if place:
            steps = values[:, [place]] - values[:, [place - 1]]
            ends = where_it_varies(bootstrap(steps, lambda means: means[:, 0], seed))
            above = (float(steps.mean()), ends.low, ends.high)
        mean = float(values[:, place].mean())
        found.append(UnitMean(unit, len(names), len(shared), mean, own.low, own.high, *above))
    return found
