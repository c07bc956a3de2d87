"""Times and surprisal word by word around the named regions that a study plans, by the factors that are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.costs.words import TIME, region_profile
from analysis.figures.cost import reading_profile_figures
from analysis.names import plain
from analysis.readers import group_order
from analysis.report.blocks import Chapter, Draft, Material
from analysis.report.layout import ChapterLayout

LAYOUT = ChapterLayout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write the chapter; None without a planned region whose words have times or surprisal."""
    draft = Draft()
    groups: list[str] = []
    for factor, region in _compared(material).items():
        material.told(f"words around the {region} region by {factor}")
        profile = region_profile(material.tables, factor, region)
        if profile.table.empty:
            continue
        name = plain("regions", factor)
        rows = [
            row | {"intervals": list(dict.fromkeys(reader_rows["interval"]))}
            for _, reader_rows in profile.table.groupby(["measure", "reader_group"], sort=False)
            for row in reader_rows.drop(columns="interval").to_dict("records")
        ]
        values: dict[str, Any] = {"factor": factor, "region": region, "kinds": material.kinds, "time": TIME}
        table = LAYOUT.table("profile", rows, name, **values)
        figures = reading_profile_figures(name, profile)
        draft.blocks += LAYOUT.blocks(
            "profile",
            figures=figures,
            table=replace(table, drawn=bool(figures)),
            regions=list(profile.regions),
            **values,
        )
        groups += group_order(profile.table)
    return LAYOUT.chapter("regions", draft, groups, material.kinds, [])


def _compared(material: Material) -> dict[str, str]:
    """Return each factor that a plan of regions compares, with the first region of the first such plan."""
    compared: dict[str, str] = {}
    for analysis in material.analyses:
        plan = analysis.plan
        if plan.measure.region is not None and plan.planned:
            for factor in (plan.factor,) if plan.crossing is None else plan.crossing.factors:
                compared.setdefault(factor, plan.measure.region)
    return compared
