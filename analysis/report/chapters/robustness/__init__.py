"""One matrix instead of many tables: every planned contrast under every check, and the result of each check that differs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis import apa, robustness
from analysis.plan import Measure
from analysis.readers import PARTICIPANT_KINDS, spoken
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material
from analysis.report.grades import FOUND
from analysis.report.layout import ChapterLayout
from analysis.report.results.tables import origin_of_contrasts
from analysis.report.terms import contrast_in_words

UNDER = {
    robustness.SCALE: "in log odds",
    robustness.LINEAR: "in a linear mixed model",
    robustness.CUMULATIVE: "in a cumulative link model",
    robustness.BY_PARTICIPANTS: "with standard errors clustered by participants",
    robustness.BY_ITEMS: "with standard errors clustered by items",
    robustness.LIMITS: "under other time limits",
    robustness.MILLISECONDS: "in milliseconds",
    robustness.ANSWERS: "with another selection of answers",
    robustness.FAILED: "with other scoring of failures",
    robustness.SCORED: "with other scoring of words",
    robustness.SESSIONS: "with another selection of sessions",
}
LAYOUT = ChapterLayout(
    Path(__file__).parent,
    FOUND=FOUND,
    NAMED=(robustness.ITEM_SETS, robustness.SCORED),
    UNDER=UNDER,
    kinds_of_check=robustness,
)


def write(material: Material) -> Chapter | None:
    """Write the matrix, or None where nothing could be checked."""
    matrix = material.matrix
    if not matrix.checks:
        return None
    checked = [row for row in matrix.rows if row.cells]
    blocks = LAYOUT.blocks(
        "matrix",
        table=matrix_table(matrix),
        agreeing=sum(row.agreeing == len(row.cells) for row in checked),
        checked=len(checked),
        differing=[
            {
                "name": row.analysis.plan.name,
                "contrast": contrast_in_words(row.contrast),
                "found": [
                    {"check": name, "cell": cell, "numbers": _numbers(name, cell, row.analysis.plan.measure)}
                    for name, cell in row.cells.items()
                    if cell.outcome != robustness.SAME
                ],
            }
            for row in checked
            if row.agreeing < len(row.cells)
        ],
        remarks=matrix.remarks,
    )
    groups = [group for row in matrix.rows for group in row.contrast.groups]
    forms = {cell.of for row in checked for cell in row.cells.values()} - {1}
    companions = {
        name: {group for row in checked if name in row.cells for group in row.analysis.of_model.groups}
        for name in (robustness.SCALE, robustness.LINEAR)
    }
    are_people = {material.kinds[group] in PARTICIPANT_KINDS for group in groups}
    methods = LAYOUT.sentences(
        "methods",
        of_people={
            name: f" of {apa.listing(sorted(map(spoken, groups)))}"
            if groups and all(material.kinds[group] in PARTICIPANT_KINDS for group in groups)
            else ""
            for name, groups in companions.items()
        },
        checks=matrix.checks,
        has_logistic=any(
            robustness.SCALE in row.cells and not math.isnan(row.cells[robustness.SCALE].low)
            for row in checked
        ),
        has_reversed=any(row.contrast.reverses for row in checked),
        of_people_alone=are_people == {True},
        of_models_alone=are_people == {False},
        few_forms=min(forms, default=np.inf) <= robustness.FEW_FORMS,
        many_forms=max(forms, default=0) > robustness.FEW_FORMS,
        most_few=apa.spelled(robustness.FEW_FORMS),
    )
    return LAYOUT.chapter("robustness", blocks, groups, material.kinds, (methods,), planned=True)


def matrix_table(matrix: robustness.Matrix) -> ApaTable:
    """Lay out contrasts by checks; a head for each analysis."""
    rows = [
        {
            "name": row.analysis.plan.heading,
            "contrast": contrast_in_words(row.contrast),
            "outcomes": {name: cell.outcome for name, cell in row.cells.items()},
            "agreeing": row.agreeing,
        }
        for row in matrix.rows
    ]
    table = LAYOUT.table("matrix", rows, checks=matrix.checks, item_sets=robustness.ITEM_SETS)
    analyses = list({id(row.analysis): row.analysis for row in matrix.rows}.values())
    computed = "the contrasts again under each check; by wrods alone"
    return replace(table, origin=replace(origin_of_contrasts(analyses), computed=computed))


def _numbers(name: str, cell: robustness.CheckOutcome, measure: Measure) -> str:
    """Return a check's estimate with its unit and interval, with as many decimals as its scale has elsewhere in the report."""
    before, after, places = "", " points", 1
    if name == robustness.MILLISECONDS:
        after = " ms"
    elif measure.logged:
        is_log = name in (robustness.BY_PARTICIPANTS, robustness.BY_ITEMS, robustness.ITEM_SETS)
        before, after, places = ("b = ", "", 3) if is_log else ("", "%", 1)
    elif name == robustness.SCALE or measure.scale != "points":
        before, after, places = "b = ", "", 2
    ends = f" {apa.interval(cell.low, cell.high, places)}" if not math.isnan(cell.low) else ""
    return f"{before}{apa.number(cell.estimate, places)}{after}{ends}"
