"""Whether the shape of a person's profile over conditions is the person's own, and where models lie among people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from analysis.figures.fidelity import profile_plane
from analysis.measures.condition_profiles import (
    FEWEST_CONDITIONS,
    PeopleTold,
    Profiles,
    plane,
    profiles,
    told_of,
)
from analysis.names import plain
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout

LAYOUT = ChapterLayout(Path(__file__).parent)
MEASURES = {
    "correct": "proportion correct (failures as wrong)",
    "rt": "mean log response time of valid answers",
}


def write(material: Material) -> Chapter | None:
    """Write the chapter; None without enough people who saw several items in each of three conditions or more."""
    tables = material.tables
    study = str(tables.dictionary["study"])
    by_factor: dict[str, list[tuple[Profiles, PeopleTold]]] = {}
    for factor, levels in tables.factors.items():
        if len(levels) < FEWEST_CONDITIONS:
            continue
        for measure in MEASURES:
            result = profiles(tables.trials, factor, list(levels), measure, study)
            if result is not None:
                by_factor.setdefault(factor, []).append((result, told_of(result, study)))
    groups = [
        group
        for results in by_factor.values()
        for result, _ in results
        for group in (result.group, *result.models)
    ]
    blocks = [
        block for factor, results in by_factor.items() for block in _of_factor(results, factor, material)
    ]
    return LAYOUT.chapter("profiles", blocks, groups, material.kinds)


def _of_factor(
    results: list[tuple[Profiles, PeopleTold]], factor: str, material: Material
) -> Iterator[Block]:
    values: dict[str, Any] = {"factor": factor, "kinds": material.kinds}
    rows = [
        {"measure": result.measure, "profiles": result, "told": summary, "who": summary.identified}
        for result, summary in results
    ]
    table = LAYOUT.table(
        "people",
        rows,
        f"profiles_{plain(factor)}",
        names=MEASURES,
        left=max(result.left_out for result, _ in results),
        measures=[result.measure for result, _ in results],
        **values,
    )
    yield from LAYOUT.blocks("people", table=table, rows=rows, **values)
    for result, summary in results:
        if not result.models:
            continue
        name, where = f"profiles_models_{plain(factor)}", plane(result)
        figure = profile_plane(
            f"{name}_plane",
            (
                f"Condition profiles over {factor}",
                LAYOUT.sentences("plane", conditions=len(result.conditions)),
            ),
            (result.group, where.people),
            (result.models, where.models),
            where.shares,
            material.kinds,
        )
        typical = summary.typical[np.isfinite(summary.typical)]
        low, middle, high = np.quantile(typical, [0.05, 0.5, 0.95]) if len(typical) else (np.nan,) * 3
        readers = [
            {"reader": model, "r": float(r), "below": float(below)}
            for model, r, below in zip(result.models, summary.of_models, summary.below, strict=True)
        ]
        people = {"reader": result.group, "people": len(typical), "r": middle, "low": low, "high": high}
        unlike = len(summary.typical) - len(typical)
        models_table = LAYOUT.table("models", [people, *readers], name, unlike=unlike, **values)
        yield from LAYOUT.blocks("models", table=models_table, figure=figure)
