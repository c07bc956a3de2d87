"""Chapter on representations: similarity of hidden states to those of the intact text by layer (Mind Scramble, RQ4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arrays import Array
from analysis.measures.levels import levels_of
from analysis.measures.pattern_similarity import MapReliability
from analysis.mixed.inference import corrected
from analysis.names import plain
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.tables import Tables
from experiment.papers.inside.chapters.layers import layer_maps
from experiment.papers.inside.chapters.layers.layer_figures import DIFFERENT, Panel, pattern_figures
from stimuli.seeds import stable_seed

LAYOUT = ChapterLayout(Path(__file__).parent)
_TOLD_IN_FULL = 4  # up to so many models are told one by one; of more, tables and figures tell


@dataclass(frozen=True, eq=False)
class MapReport:
    """Results of one map."""

    title: str
    found: layer_maps.Represented
    raw: layer_maps.MapIntervals
    centred: layer_maps.MapIntervals
    accuracy: Array  # by condition
    by_accuracy: tuple[float, float, int]  # Spearman's correlation over conditions, p, number of conditions
    halves: tuple[MapReliability, MapReliability]  # by both centrings


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
        found = layer_maps.represented(tables, does, material.told)
        if found:
            blocks += _of_factor(found, tables)
            groups += [one.group for one in found]
    sources = ("yu2024", "spearman1904", "spearman1910", "brown1910", "finn2015")
    return LAYOUT.chapter("representations", blocks, groups, material.kinds, sources=sources)


def _of_factor(found: Sequence[layer_maps.Represented], tables: Tables) -> Iterator[Block]:
    """Write maps, their reliability, and what is between data sets and between models."""
    study = str(tables.dictionary["study"])
    told = [_told(one, tables, study) for one in found]
    stem = plain(found[0].factor)
    values: dict[str, Any] = {
        "factor": found[0].factor,
        "intact": found[0].intact,
        "has_answers": any(np.isfinite(one.accuracy).any() for one in told),
    }
    title, note = LAYOUT.caption("maps", **values)
    known = [one.halves[0].cosine for one in told if np.isfinite(one.halves[0].cosine)]
    every = np.concatenate([one.raw.value[:, :-1].ravel() for one in told])
    yield from LAYOUT.blocks(
        "maps",
        drawn=pattern_figures(f"representations_map_{stem}", title, [_panel(one) for one in told], note),
        conditions=LAYOUT.table(
            "conditions",
            [row for one in told for row in _rows(one, [-1])],
            f"representations_{stem}",
            places=list(dict.fromkeys(one.found.position for one in told)),
            wording=sum(one.found.other_wording for one in told),
            pairs=sum(one.found.pairs for one in told),
            **values,
        ),
        cells=LAYOUT.table(
            "cells",
            [row for one in told for row in _rows(one, range(one.found.pattern.layers))],
            f"representations_cells_{stem}",
            **values,
        ),
        halves=LAYOUT.table(
            "halves",
            [vars(one) for one in told],
            f"representations_halves_{stem}",
            least=min(one.by_accuracy[2] for one in told),
            **values,
        ),
        models=[_nearest(one) for one in told[:_TOLD_IN_FULL]],
        least=math.floor(min(known) * 1e4) / 1e4 if known else float("nan"),
        lowest=float(np.nanmin(every)),
        highest=float(np.nanmax(every)),
    )
    pairs = list(layer_maps.between_sets([(one.part, one) for one in found if one.part], study))
    if pairs:
        table = sets_table(f"representations_sets_{stem}", "One model's maps in several data sets", pairs)
        yield from LAYOUT.blocks("sets", table=table)
    for part in dict.fromkeys(one.part for one in found):
        several = layer_maps.between_models([one for one in found if one.part == part], study)
        if several is not None:
            name = f"representations_models_{stem}" + (f"_{plain(part)}" if part else "")
            table = _models_table(name, several, part)
            yield from LAYOUT.blocks("models", table=table, found=several.identified, part=part)


def _told(one: layer_maps.Represented, tables: Tables, study: str) -> MapReport:
    seed = stable_seed(study, "representations", one.group, one.part)
    accuracy = layer_maps.accuracy_of(tables.trials, one)
    return MapReport(
        f"{one.group}, {one.part}" if one.part else one.group,
        one,
        layer_maps.cells(one.pattern.cosine, seed),
        layer_maps.cells(one.pattern.centred, seed),
        accuracy,
        layer_maps.with_accuracy(one, accuracy, study),
        layer_maps.reliability(one, study),
    )


def _panel(report: MapReport) -> Panel:
    pattern = report.found.pattern
    return Panel(
        report.title,
        pattern.conditions,
        report.raw.value[:, :-1],
        report.centred.value[:, :-1],
        pattern.apart,
        pattern.apart_centred,
        tuple(float(value) for value in report.accuracy) if np.isfinite(report.accuracy).any() else (),
    )


def _nearest(report: MapReport) -> dict[str, Any]:
    """Return the conditions from the farthest to the nearest with their cosines, and what different items have."""
    pattern = report.found.pattern
    ordered = [
        {
            "name": pattern.conditions[int(at)],
            "raw": report.raw.value[at, -1],
            "centred": report.centred.value[at, -1],
        }
        for at in np.argsort(report.centred.value[:, -1])
    ]
    apart = {"apart": float(pattern.apart.mean()), "apart_centred": float(pattern.apart_centred.mean())}
    return {"title": report.title, "ordered": ordered, "by_accuracy": report.by_accuracy, **apart}


def _at(part: layer_maps.MapIntervals, place: int, layer: int) -> tuple[float, float, float]:
    return part.value[place, layer], part.low[place, layer], part.high[place, layer]


def _rows(report: MapReport, layers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield a model's cosines by condition at some layers (-1: means over all), with what different items have."""
    pattern, head = report.found.pattern, {"head": report.title}
    for place, condition in enumerate(pattern.conditions):
        known = {
            "condition": condition,
            "items": int(report.raw.items[place]),
            "accuracy": report.accuracy[place],
        }
        for at in layers:
            cosines = {"raw": _at(report.raw, place, at), "centred": _at(report.centred, place, at)}
            yield {**head, **known, "layer": at, **cosines}
    known = {"condition": DIFFERENT, "items": len(pattern.items), "accuracy": None}
    for at in layers:
        raw, centred = (own.mean() if at < 0 else own[at] for own in (pattern.apart, pattern.apart_centred))
        yield {**head, **known, "layer": at, "raw": [float(raw)], "centred": [float(centred)]}


def sets_table(name: str, title: str, found: Sequence[layer_maps.TwoSets]) -> ApaTable:
    """Return the similarity of one model's maps in two data sets: the paper's cosine and centred correlations."""
    models = list(dict.fromkeys(one.model for one in found))
    rows = [vars(one) for one in sorted(found, key=lambda one: models.index(one.model))]
    least, is_exact = max(one.found.least_p for one in found), all(one.found.exact for one in found)
    return LAYOUT.table("sets", rows, name, title=title, is_exact=is_exact, orders_number=round(1 / least))


def _models_table(name: str, found: layer_maps.SeveralModels, part: str) -> ApaTable:
    """Return the similarity of the maps of each two models, and that of halves of one model's items for comparison."""
    pairs = list(combinations(range(len(found.models)), 2))
    adjusted = corrected(np.array([found.layers.p[pair] for pair in pairs]), "holm")
    rows = [{"one": one, "other": two, "adjusted": p} for (one, two), p in zip(pairs, adjusted, strict=True)]
    return LAYOUT.table("models", rows, name, found=found, part=part)
