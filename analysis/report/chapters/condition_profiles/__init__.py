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
    found: dict[str, list[tuple[Profiles, PeopleTold]]] = {}
    for factor, levels in tables.factors.items():
        if len(levels) < FEWEST_CONDITIONS:
            continue
        for measure in MEASURES:
            one = profiles(tables.trials, factor, list(levels), measure, study)
            if one is not None:
                found.setdefault(factor, []).append((one, told_of(one, study)))
    groups = [group for own in found.values() for one, _ in own for group in (one.group, *one.models)]
    blocks = [block for factor, own in found.items() for block in _of_factor(own, factor, material)]
    sources = ("finn2015", "spearman1910", "brown1910")
    return LAYOUT.chapter("profiles", blocks, groups, material.kinds, sources=sources)


def _of_factor(found: list[tuple[Profiles, PeopleTold]], factor: str, material: Material) -> Iterator[Block]:
    values: dict[str, Any] = {"factor": factor, "kinds": material.kinds}
    rows = [
        {"measure": one.measure, "profiles": one, "told": told, "who": told.identified} for one, told in found
    ]
    table = LAYOUT.table(
        "people",
        rows,
        f"profiles_{plain(factor)}",
        names=MEASURES,
        left=max(one.left_out for one, _ in found),
        measures=[one.measure for one, _ in found],
        **values,
    )
    yield from LAYOUT.blocks("people", table=table, rows=rows, **values)
    for one, told in found:
        if not one.models:
            continue
        name, where = f"profiles_models_{plain(factor)}", plane(one)
        figure = profile_plane(
            f"{name}_plane",
            (f"Condition profiles over {factor}", LAYOUT.sentences("plane", conditions=len(one.conditions))),
            (one.group, where.people),
            (one.models, where.models),
            where.shares,
            material.kinds,
        )
        known = told.typical[np.isfinite(told.typical)]
        low, middle, high = np.quantile(known, [0.05, 0.5, 0.95]) if len(known) else (np.nan,) * 3
        readers = [
            {"reader": model, "r": float(r), "below": float(below)}
            for model, r, below in zip(one.models, told.of_models, told.below, strict=True)
        ]
        people = {"reader": one.group, "people": len(known), "r": middle, "low": low, "high": high}
        unlike = len(told.typical) - len(known)
        laid = LAYOUT.table("models", [people, *readers], name, unlike=unlike, **values)
        yield from LAYOUT.blocks("models", table=laid, figure=figure)
