"""Chapter on representations: how near hidden states stay to those of the intact text, by layer (Mind Scramble, RQ4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.inside import DIFFERENT, Panel, pattern_figures
from analysis.inside.pattern_similarity import (
    Cells,
    Halves,
    SeveralModels,
    TwoSets,
    accuracy_of,
    between_models,
    between_sets,
    cells,
    reliability,
    with_accuracy,
)
from analysis.inside.representations import Represented, represented
from analysis.measures.levels import levels_of
from analysis.mixed.inference import corrected
from analysis.names import plain
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.layout import Layout
from analysis.tables import Tables
from stimuli.seeds import stable_seed

LAYOUT = Layout(Path(__file__).parent)
PLACES = {
    "mean": "Means over all tokens of the prompt.",
    "regions": "Means over the words read, of which alone states were kept.",
    "last": "Of the prompt’s last token, of which alone states were kept; the paper takes means over tokens.",
}
_TOLD_IN_FULL = 4
"""Up to so many models are told one by one; of more, tables and figures tell."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of one map."""

    title: str
    found: Represented
    raw: Cells
    centred: Cells
    accuracy: Array  # by condition
    by_accuracy: tuple[float, float, int]  # Spearman's correlation over conditions, p, number of conditions
    halves: tuple[Halves, Halves]  # by both centrings


def write(material: Material) -> Chapter | None:
    """Write the chapter; None where no run kept hidden states, or no factor has an intact level."""
    tables = material.tables
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    blocks: list[Block] = []
    groups: list[str] = []
    for factor, names in tables.factors.items():
        present = [name for name in names if (used[factor] == name).any()]
        if len(present) < 2:
            continue
        does = levels_of(tables.items, factor, present, tables.dictionary.get("between"))
        found = represented(tables, does, material.told)
        if found:
            blocks += _of_factor(found, tables)
            groups += [one.group for one in found]
    if not blocks:
        return None
    return Chapter(
        "representations",
        "How near representations stay to the intact text",
        tuple(blocks),
        marks_of(tuple(dict.fromkeys(groups)), material.kinds),
        methods=(LAYOUT.sentences("methods"),),
        sources=("yu2024", "spearman1904", "spearman1910", "brown1910", "finn2015"),
    )


def _of_factor(found: Sequence[Represented], tables: Tables) -> Iterator[Block]:
    """Write maps, their reliability, and what is between data sets and between models."""
    study = str(tables.dictionary["study"])
    told = [_told(one, tables, study) for one in found]
    stem = plain(found[0].factor)
    values: dict[str, Any] = {
        "factor": found[0].factor,
        "intact": found[0].intact,
        "has_answers": any(np.isfinite(one.accuracy).any() for one in told),
    }
    maps = f"representations_map_{stem}"
    title, note = LAYOUT.caption("maps", **values)
    known = [one.halves[0].cosine for one in told if np.isfinite(one.halves[0].cosine)]
    every = np.concatenate([one.raw.value[:, :-1].ravel() for one in told])
    yield from LAYOUT.blocks(
        "maps",
        drawn=pattern_figures(maps, title, [_panel(one) for one in told], note),
        conditions=_condition_table(f"representations_{stem}", told, values),
        cells=LAYOUT.table(
            "cells",
            [row for one in told for row in _cell_rows(one)],
            f"representations_cells_{stem}",
            factor=found[0].factor,
        ),
        halves=_halves_table(f"representations_halves_{stem}", told),
        models=[_nearest(one) for one in told[:_TOLD_IN_FULL]],
        least=math.floor(min(known) * 1e4) / 1e4 if known else float("nan"),
        lowest=float(np.nanmin(every)),
        highest=float(np.nanmax(every)),
    )
    pairs = list(between_sets([(one.part, one) for one in found if one.part], study))
    if pairs:
        table = sets_table(f"representations_sets_{stem}", "One model’s maps in several data sets", pairs)
        yield from LAYOUT.blocks("sets", table=table)
    for part in dict.fromkeys(one.part for one in found):
        several = between_models([one for one in found if one.part == part], study)
        if several is not None:
            name = f"representations_models_{stem}" + (f"_{plain(part)}" if part else "")
            table = _models_table(name, several, part)
            yield from LAYOUT.blocks("models", table=table, found=several.identified, part=part)


def _told(one: Represented, tables: Tables, study: str) -> Told:
    seed = stable_seed(study, "representations", one.group, one.part)
    accuracy = accuracy_of(tables.trials, one)
    return Told(
        f"{one.group}, {one.part}" if one.part else one.group,
        one,
        cells(one.pattern.cosine, seed),
        cells(one.pattern.centred, seed),
        accuracy,
        with_accuracy(one, accuracy, study),
        reliability(one, study),
    )


def _panel(one: Told) -> Panel:
    pattern = one.found.pattern
    return Panel(
        one.title,
        pattern.conditions,
        one.raw.value[:, :-1],
        one.centred.value[:, :-1],
        pattern.apart,
        pattern.apart_centred,
        tuple(float(value) for value in one.accuracy) if np.isfinite(one.accuracy).any() else (),
    )


def _nearest(one: Told) -> dict[str, Any]:
    """Return which condition is nearest and farthest, and what different items have."""
    pattern = one.found.pattern
    order = np.argsort(one.centred.value[:, -1])
    far, near = (
        {
            "name": pattern.conditions[int(place)],
            "raw": one.raw.value[place, -1],
            "centred": one.centred.value[place, -1],
        }
        for place in (order[0], order[-1])
    )
    rho, p, _ = one.by_accuracy
    apart = {"apart": float(pattern.apart.mean()), "apart_centred": float(pattern.apart_centred.mean())}
    return {
        "title": one.title,
        "far": far,
        "near": near,
        "is_one": len(order) == 1,
        "rho": rho,
        "p": p,
        **apart,
    }


def _at(part: Cells, place: int, layer: int) -> tuple[float, float, float]:
    return part.value[place, layer], part.low[place, layer], part.high[place, layer]


def _condition_table(name: str, told: Sequence[Told], values: dict[str, Any]) -> ApaTable:
    """Lay out each model's cosines by condition, averaged over layers, with what different items have."""
    rows: list[dict[str, Any]] = []
    for one in told:
        pattern = one.found.pattern
        rows += [
            {
                **{"head": one.title, "condition": condition, "items": int(one.raw.items[place])},
                **{"raw": _at(one.raw, place, -1), "centred": _at(one.centred, place, -1)},
                "accuracy": one.accuracy[place],
            }
            for place, condition in enumerate(pattern.conditions)
        ]
        apart = {"raw": [float(pattern.apart.mean())], "centred": [float(pattern.apart_centred.mean())]}
        items = len(pattern.items)
        rows.append({"head": one.title, "condition": DIFFERENT, "items": items, **apart, "accuracy": None})
    return LAYOUT.table(
        "conditions",
        rows,
        name,
        places=" ".join(dict.fromkeys(PLACES.get(one.found.position, "") for one in told)),
        wording=sum(one.found.other_wording for one in told),
        pairs=sum(one.found.pairs for one in told),
        **values,
    )


def _cell_rows(one: Told) -> Iterator[dict[str, Any]]:
    """Yield every cell of a map."""
    pattern = one.found.pattern
    for place, condition in enumerate(pattern.conditions):
        for layer in range(pattern.layers):
            cells = {"raw": _at(one.raw, place, layer), "centred": _at(one.centred, place, layer)}
            yield {"head": one.title, "condition": condition, "layer": str(layer), **cells}
    for layer, (raw, centred) in enumerate(zip(pattern.apart, pattern.apart_centred, strict=True)):
        apart = {"raw": [raw], "centred": [centred]}
        yield {"head": one.title, "condition": DIFFERENT, "layer": str(layer), **apart}


def _halves_table(name: str, told: Sequence[Told]) -> ApaTable:
    """Lay out how reliable each map is, and whether it goes with accuracy."""
    rows = []
    for one in told:
        (layers, both), (rho, p, _) = one.halves, one.by_accuracy
        rows.append({"title": one.title, "layers": layers, "both": both, "rho": rho, "p": p})
    least = min(one.by_accuracy[2] for one in told)
    return LAYOUT.table("halves", rows, name, factor=told[0].found.factor, least=least)


def sets_table(name: str, title: str, found: Sequence[TwoSets]) -> ApaTable:
    """Lay out how alike one model's maps in two data sets are: the paper's cosine beside centred correlations."""
    models = list(dict.fromkeys(one.model for one in found))
    is_exact = all(one.found.exact for one in found)
    return LAYOUT.table(
        "sets",
        [vars(one) for one in sorted(found, key=lambda one: models.index(one.model))],
        name,
        title=title,
        orders="all orders of the conditions" if is_exact else "9,999 random orders",
        orders_number=apa.count(round(1 / max(one.found.least_p for one in found))),
    )


def _models_table(name: str, found: SeveralModels, part: str) -> ApaTable:
    """Lay out how alike the maps of every two models are, against how alike those of halves of one model's items are."""
    pairs = list(combinations(range(len(found.models)), 2))
    adjusted = corrected(np.array([found.layers.p[pair] for pair in pairs]), "holm")
    rows = [
        {
            "names": f"{found.models[one]}, {found.models[other]}",
            "cosine": found.cosine[one, other],
            "r": found.r[one, other],
            "r_both": found.r_both[one, other],
            "between": found.layers.r[one, other],
            "first": found.layers.r[one, one],
            "second": found.layers.r[other, other],
            "corrected": found.layers.corrected[one, other],
            "corrected_both": found.both.corrected[one, other],
            "p": found.layers.p[one, other],
            "adjusted": float(p),
        }
        for (one, other), p in zip(pairs, adjusted, strict=True)
    ]
    return LAYOUT.table("models", rows, name, found=found, part=part)
