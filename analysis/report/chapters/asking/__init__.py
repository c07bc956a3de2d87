"""How much models' answers depend on how they were asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.families import with_adjusted
from analysis.measures.accuracy import asked
from analysis.report.blocks import Block, Chapter, Material, ReportedFit
from analysis.report.layout import Layout
from analysis.report.parted import of_part, parts_by
from analysis.robustness import asked_otherwise
from stimuli.errors import UserError

LAYOUT = Layout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write each model's variation by prompt variant, labels, order, session and item; None without a model."""
    reported: list[ReportedFit] = []
    blocks = list(_blocks(material, reported))
    return LAYOUT.chapter("asking", blocks, material.kinds, material.kinds, fits=tuple(reported))


def _blocks(material: Material, reported: list[ReportedFit]) -> Iterator[Block]:
    kinds = material.kinds
    models = [group for group, kind in kinds.items() if kind == "model"]
    if not models:
        return
    tables = material.tables
    for factor in list(tables.factors)[:1]:
        for part in parts_by(factor, asked(tables.trials), tables):
            own: list[ReportedFit] = []
            there = replace(material, tables=part.of(tables))
            yield from of_part(_of_factor(there, factor, models, own), part)
            reported += [replace(one, title=f"{one.title}{part.told}") for one in own]


def _of_factor(
    material: Material, factor: str, models: list[str], reported: list[ReportedFit]
) -> Iterator[Block]:
    material.told("ways of asking")
    try:
        found = asked_otherwise(material.tables, factor)
    except UserError as error:
        yield LAYOUT.sentences("failed", why=error.message)
        return
    rows = found.table[found.table["reader_group"].isin(models)].reset_index(drop=True)
    climbed = {group: one for group, one in found.models.items() if group in models and one.fit is not None}
    fits = {group: one.fit for group, one in climbed.items() if one.fit is not None}
    reported += [ReportedFit(f"right answers of {group} by source", fit) for group, fit in fits.items()]
    table = None
    if len(rows):
        rows = with_adjusted(rows)
        name = f"asked_{factor}"
        table = LAYOUT.table("asked", rows, name, tuple(fits.values()), factor=factor, kinds=material.kinds)
    yield from LAYOUT.blocks(
        "results",
        varied=(rows["source"] != "item").any(),
        table=table,
        readers=[_of_reader(str(group), own) for group, own in rows.groupby("reader_group", sort=False)],
        remarks=found.remarks,
        steps=[f"{group}: {'; '.join(one.steps)}" for group, one in climbed.items()],
        kinds=material.kinds,
    )


def _of_reader(group: str, own: pd.DataFrame) -> dict[str, Any]:
    """Return the sources by which a model's answers differ, and those by which nothing is shown."""
    if "p_adjusted" not in own:
        return {"group": group, "found": [], "rest": []}
    is_found = own["p_adjusted"] < 0.05
    rest = own.loc[own["p_adjusted"].notna() & ~is_found, "source"]
    return {"group": group, "found": own[is_found].to_dict("records"), "rest": [str(one) for one in rest]}
