"""Dependence of models' answers on the wording of prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.measures.accuracy import asked
from analysis.multiple_comparisons import with_adjusted
from analysis.report.blocks import Chapter, Draft, Material, ReportedFit
from analysis.report.layout import ChapterLayout
from analysis.report.subgroups import draft_of_part, parts_by
from analysis.robustness import asked_otherwise
from stimuli.errors import UserError

LAYOUT = ChapterLayout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write each model's variation by prompt variant, labels, order, session and item; None without a model."""
    kinds, tables, draft = material.kinds, material.tables, Draft()
    models = [group for group, kind in kinds.items() if kind == "model"]
    for factor in list(tables.factors)[:1] if models else ():
        for part in parts_by(factor, asked(tables.trials), tables):
            part_draft = _of_factor(replace(material, tables=part.of(tables)), factor, models)
            draft.add(draft_of_part(part_draft, part))
    return LAYOUT.chapter("asking", draft, kinds, kinds)


def _of_factor(material: Material, factor: str, models: list[str]) -> Draft:
    material.told("ways of asking")
    try:
        variation = asked_otherwise(material.tables, factor)
    except UserError as error:
        return Draft([LAYOUT.sentences("failed", why=error.message)])
    rows = variation.table[variation.table["reader_group"].isin(models)].reset_index(drop=True)
    climbed = {
        group: model for group, model in variation.models.items() if group in models and model.fit is not None
    }
    fits = {group: model.fit for group, model in climbed.items() if model.fit is not None}
    table = None
    if len(rows):
        rows = with_adjusted(rows)
        name = f"asked_{factor}"
        table = LAYOUT.table("asked", rows, name, tuple(fits.values()), factor=factor, kinds=material.kinds)
    blocks = LAYOUT.blocks(
        "results",
        varied=(rows["source"] != "item").any(),
        table=table,
        readers=[
            _of_reader(str(group), group_rows)
            for group, group_rows in rows.groupby("reader_group", sort=False)
        ],
        remarks=variation.remarks,
        steps=[f"{group}: {'; '.join(model.steps)}" for group, model in climbed.items()],
        kinds=material.kinds,
    )
    reported = [ReportedFit(f"correct responses of {group} by source", fit) for group, fit in fits.items()]
    return Draft(blocks, fits=reported)


def _of_reader(group: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the sources by which a model's answers differ, and those by which nothing is shown."""
    if "p_adjusted" not in rows:
        return {"group": group, "found": [], "rest": []}
    is_found = rows["p_adjusted"] < 0.05
    others = rows.loc[rows["p_adjusted"].notna() & ~is_found, "source"]
    return {
        "group": group,
        "found": rows[is_found].to_dict("records"),
        "rest": [str(source) for source in others],
    }
