"""Each model's condition × layer map, from the hidden states that a study has kept; what was computed once is found again.

States are means over the tokens of the prompt, as in Mind Scramble (2024); where a run kept none, means over the words read, else
those of the last token. One layer is in memory at a time, and of it a thousand rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.inside.kept import LAST, MEAN, REGIONS, Kept, kept_states
from analysis.inside.layers_done import LayersDone
from analysis.inside.patterns import LayerCosines, Pairs, Pattern, Reader, joined, layer_cosines, pair_rows
from analysis.inside.remembered import fingerprint, remembered
from analysis.measures.levels import Levels
from analysis.tables import Tables

Places = NDArray[np.intp]
States = NDArray[np.float32]

VERSION = 1
"""Of the computation; another one computes anew."""
POSITIONS = (MEAN, REGIONS, LAST)
FEWEST_ITEMS = 2


@dataclass(frozen=True, eq=False)
class Represented:
    """One model's map in one set of items."""

    group: str  # reader group
    run: str  # as `analysis.inside.kept.Kept` has them
    position: str
    part: str  # name of the set of items; empty where a study has one
    factor: str
    intact: str
    pattern: Pattern
    pairs: int
    other_wording: int

    @property
    def last_layer(self) -> int:
        """Number of the last block; 0 is what the embedding gives."""
        return self.pattern.layers - 1


def represented(
    tables: Tables, does: Levels, told: Callable[[str], None] = lambda _: None
) -> list[Represented]:
    """Return the map of every model with hidden states, by one factor."""
    if does.intact is None:
        return []
    found: list[Represented] = []
    seen: set[str] = set()
    for position in POSITIONS:
        kept = [one for one in kept_states(tables, position) if one.group not in seen]
        seen.update(one.group for one in kept)
        for one in kept:
            found += _of_model(one, does, tables.factors, told)
    return found


def _of_model(
    kept: Kept, does: Levels, factors: Mapping[str, Sequence[str]], told: Callable[[str], None]
) -> Iterator[Represented]:
    assert does.intact is not None
    rows = kept.rows
    others = tuple(
        name for name in factors if name != does.factor and name in rows and rows[name].nunique() > 1
    )
    order = [level for level in factors[does.factor] if level != does.intact]
    sets = list(dict.fromkeys(rows["set"].astype(str))) if "set" in rows else [""]
    parts = []
    for part in sets:
        own = rows[rows["set"].astype(str) == part] if "set" in rows else rows
        pairs = pair_rows(own.reset_index(drop=True), does.factor, does.intact, order, others)
        if len(pairs.items) >= FEWEST_ITEMS and pairs.conditions:
            parts.append((part, own.index.to_numpy(dtype=np.intp), pairs))
    for part, places, pairs in parts:
        what = f"representations of {kept.group}{f' in {part}' if len(parts) > 1 else ''}"
        yield Represented(
            kept.group,
            kept.run,
            kept.position,
            part if len(parts) > 1 else "",
            does.factor,
            does.intact,
            _pattern(kept, places, pairs, partial(_tell, told, what, kept.layers)),
            len(pairs.item),
            int((~pairs.same_wording).sum()),
        )


def _tell(told: Callable[[str], None], what: str, layers: int, number: int) -> None:
    told(LayersDone.before(what, number, layers))


def _pattern(kept: Kept, places: Places, pairs: Pairs, begins: Callable[[int], None]) -> Pattern:
    """Compute a model's map layer by layer, each kept as it is done; ``begins`` hears of each that was not kept before."""
    keys = kept.rows["work_key"].astype(str).to_numpy()[places]
    told = {
        "version": VERSION,
        "position": kept.position,
        "group": kept.group,
        "width": kept.width,
        "items": pairs.items,
        "conditions": pairs.conditions,
        "changed": [keys[place] for place in pairs.changed],
        "intact": [keys[place] for place in pairs.intact],
    }
    mark = fingerprint(told, pairs.item, pairs.condition)
    layers = []
    for number in range(kept.layers):

        def read(rows: Places, number: int = number) -> States:
            return kept.layer(number, places[rows])

        def compute(read: Reader = read, number: int = number) -> dict[str, NDArray[Any]]:
            begins(number)
            return _arrays(read, pairs)

        found = remembered(kept.folder, f"representations_layer_{number:02d}", mark, compute)
        apart, apart_centred = (float(one) for one in found["apart"])
        layers.append(LayerCosines(found["cosine"], found["centred"], apart, apart_centred))
    return joined(pairs.items, pairs.conditions, layers)


def _arrays(read: Reader, pairs: Pairs) -> dict[str, NDArray[Any]]:
    found = layer_cosines(read, pairs)
    return {
        "cosine": found.cosine,
        "centred": found.centred,
        "apart": np.array([found.apart, found.apart_centred]),
    }
