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
    every_map: list[layer_maps.Represented] = []
    for factor, names in tables.factors.items():
        present = [name for name in names if (used[factor] == name).any()]
        if len(present) < 2:
            continue
        meanings = levels_of(tables.items, factor, present, tables.dictionary.get("between"))
        maps = layer_maps.represented(tables, meanings, material.told)
        if maps:
            blocks += _of_factor(maps, tables)
            groups += [model_map.group for model_map in maps]
            every_map += maps
    methods = LAYOUT.sentences(
        "methods",
        places={model_map.position for model_map in every_map},
        models=len(set(groups)),
        sets=len({model_map.part for model_map in every_map}),
    )
    return LAYOUT.chapter("representations", blocks, groups, material.kinds, [methods])


def _of_factor(maps: Sequence[layer_maps.Represented], tables: Tables) -> Iterator[Block]:
    """Write maps, their reliability, and what is between data sets and between models."""
    study = str(tables.dictionary["study"])
    reports = [_told(model_map, tables, study) for model_map in maps]
    stem = plain(maps[0].factor)
    values: dict[str, Any] = {
        "factor": maps[0].factor,
        "intact": maps[0].intact,
        "has_answers": any(np.isfinite(report.accuracy).any() for report in reports),
        "equal": sorted(set.intersection(*(set(_equal_layers(report)) for report in reports))),
    }
    title, note = LAYOUT.caption("maps", **values)
    reliabilities = [report.halves[0].cosine for report in reports if np.isfinite(report.halves[0].cosine)]
    cosines = np.concatenate([report.raw.value[:, :-1].ravel() for report in reports])
    yield from LAYOUT.blocks(
        "maps",
        drawn=pattern_figures(
            f"representations_map_{stem}", title, [_panel(report) for report in reports], note
        ),
        conditions=LAYOUT.table(
            "conditions",
            [row for report in reports for row in _rows(report, [-1])],
            f"representations_{stem}",
            places=list(dict.fromkeys(report.found.position for report in reports)),
            wording=sum(report.found.other_wording for report in reports),
            pairs=sum(report.found.pairs for report in reports),
            **values,
        ),
        cells=LAYOUT.table(
            "cells",
            [row for report in reports for row in _rows(report, range(report.found.pattern.layers))],
            f"representations_cells_{stem}",
            **values,
        ),
        halves=LAYOUT.table(
            "halves",
            [vars(report) for report in reports],
            f"representations_halves_{stem}",
            least=min(report.by_accuracy[2] for report in reports),
            **values,
        ),
        models=[_nearest(report) for report in reports[:_TOLD_IN_FULL]],
        least=math.floor(min(reliabilities) * 1e4) / 1e4 if reliabilities else float("nan"),
        lowest=float(np.nanmin(cosines)),
        highest=float(np.nanmax(cosines)),
    )
    pairs = list(
        layer_maps.between_sets([(model_map.part, model_map) for model_map in maps if model_map.part], study)
    )
    if pairs:
        table = sets_table(f"representations_sets_{stem}", "One model's maps in several data sets", pairs)
        yield from LAYOUT.blocks("sets", table=table)
    for part in dict.fromkeys(model_map.part for model_map in maps):
        several = layer_maps.between_models(
            [model_map for model_map in maps if model_map.part == part], study
        )
        if several is not None:
            name = f"representations_models_{stem}" + (f"_{plain(part)}" if part else "")
            table = _models_table(name, several, part)
            yield from LAYOUT.blocks("models", table=table, found=several.identified, part=part)


def _told(model_map: layer_maps.Represented, tables: Tables, study: str) -> MapReport:
    seed = stable_seed(study, "representations", model_map.group, model_map.part)
    accuracy = layer_maps.accuracy_of(tables.trials, model_map)
    return MapReport(
        f"{model_map.group}, {model_map.part}" if model_map.part else model_map.group,
        model_map,
        layer_maps.cells(model_map.pattern.cosine, seed),
        layer_maps.cells(model_map.pattern.centred, seed),
        accuracy,
        layer_maps.with_accuracy(model_map, accuracy, study),
        layer_maps.reliability(model_map, study),
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


def _equal_layers(report: MapReport) -> list[int]:
    """Return the layers in which all states of a model are equal, so that none has a centred cosine."""
    is_without = np.isnan(report.centred.value[:, :-1]).all(axis=0)
    return [int(layer) for layer in np.flatnonzero(is_without)]


def _nearest(report: MapReport) -> dict[str, Any]:
    """Return the conditions from the farthest to the nearest with their cosines, and what different items have."""
    pattern = report.found.pattern
    raw, centred = report.raw.value[:, -1], report.centred.value[:, -1]
    ordered = [
        {"name": pattern.conditions[int(at)], "raw": raw[at], "centred": centred[at]}
        for at in np.argsort(centred if np.isfinite(centred).any() else raw)
    ]
    names = ("apart", "apart_centred")
    apart = {name: float(layer_maps.over_layers(getattr(pattern, name))) for name in names}
    return {"title": report.title, "ordered": ordered, "by_accuracy": report.by_accuracy, **apart}


def _at(part: layer_maps.MapIntervals, index: int, layer: int) -> tuple[float, float, float]:
    return part.value[index, layer], part.low[index, layer], part.high[index, layer]


def _rows(report: MapReport, layers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield a model's cosines by condition at some layers (-1: means over all), with what different items have."""
    pattern, head = report.found.pattern, {"head": report.title}
    for index, condition in enumerate(pattern.conditions):
        facts = {
            "condition": condition,
            "items": int(report.raw.items[index]),
            "accuracy": report.accuracy[index],
        }
        for at in layers:
            cosines = {"raw": _at(report.raw, index, at), "centred": _at(report.centred, index, at)}
            yield {**head, **facts, "layer": at, **cosines}
    facts = {"condition": DIFFERENT, "items": len(pattern.items), "accuracy": None}
    for at in layers:
        raw, centred = (
            layer_maps.over_layers(values) if at < 0 else values[at]
            for values in (pattern.apart, pattern.apart_centred)
        )
        yield {**head, **facts, "layer": at, "raw": [float(raw)], "centred": [float(centred)]}


def sets_table(name: str, title: str, pairs: Sequence[layer_maps.TwoSets]) -> ApaTable:
    """Return the similarity of one model's maps in two data sets: the paper's cosine and centred correlations."""
    models = list(dict.fromkeys(pair.model for pair in pairs))
    rows = [vars(pair) for pair in sorted(pairs, key=lambda pair: models.index(pair.model))]
    least, is_exact = max(pair.found.least_p for pair in pairs), all(pair.found.exact for pair in pairs)
    return LAYOUT.table("sets", rows, name, title=title, is_exact=is_exact, orders_number=round(1 / least))


def _models_table(name: str, several: layer_maps.SeveralModels, part: str) -> ApaTable:
    """Return the similarity of the maps of each two models, and that of halves of one model's items for comparison."""
    pairs = list(combinations(range(len(several.models)), 2))
    adjusted = corrected(np.array([several.layers.p[pair] for pair in pairs]), "holm")
    rows = [
        {"one": first, "other": second, "adjusted": p}
        for (first, second), p in zip(pairs, adjusted, strict=True)
    ]
    return LAYOUT.table("models", rows, name, found=several, part=part)
