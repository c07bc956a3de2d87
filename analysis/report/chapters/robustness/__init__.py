"""One matrix in place of many tables: every planned contrast under every check, and what each check that differs found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis import apa
from analysis.names import upper_first
from analysis.readers import headed, spoken
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material
from analysis.report.layout import Layout
from analysis.report.results.tables import origin_of_contrasts
from analysis.results import Contrast
from analysis.robustness.matrix import ITEM_SETS, LIMITS, SAME, Cell, Matrix

LAYOUT = Layout(Path(__file__).parent)


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
                "name": upper_first(row.analysis.plan.name),
                "contrast": contrast_in_words(row.contrast),
                "found": [_numbers(name, cell) for name, cell in row.cells.items() if cell.outcome != SAME],
            }
            for row in checked
            if row.agreeing < len(row.cells)
        ],
        remarks=matrix.remarks,
        **{"ITEM_SETS": ITEM_SETS, "LIMITS": LIMITS},
    )
    groups = [group for row in matrix.rows for group in row.contrast.groups]
    sources = ("liang1986", "mancl2001", "steegen2016")
    return LAYOUT.chapter("robustness", blocks, groups, material.kinds, planned=True, sources=sources)


def matrix_table(matrix: Matrix) -> ApaTable:
    """Lay out contrasts by checks; a head for each analysis."""
    rows = [
        {
            "name": row.analysis.plan.name,
            "contrast": contrast_in_words(row.contrast),
            "outcomes": {name: cell.outcome for name, cell in row.cells.items()},
            "agreeing": row.agreeing,
        }
        for row in matrix.rows
    ]
    table = LAYOUT.table("matrix", rows, checks=matrix.checks)
    analyses = list({id(row.analysis): row.analysis for row in matrix.rows}.values())
    computed = "the contrasts again under each check; by wrods alone"
    return replace(table, origin=replace(origin_of_contrasts(analyses), computed=computed))


def contrast_in_words(one: Contrast) -> str:
    """Name a contrast with its readers: ``initial − internal, people vs. gpt``."""
    return f"{one.label}, {' vs. '.join([headed(one.groups[0]), *map(spoken, one.groups[1:])])}"


def _numbers(name: str, cell: Cell) -> dict[str, Any]:
    """Return a check with its estimate and interval in words."""
    places = 1 if abs(cell.estimate) >= 1 and name != ITEM_SETS else 2
    ends = apa.interval(cell.low, cell.high, places)
    return {"check": name, "cell": cell, "numbers": f"{apa.number(cell.estimate, places)} {ends}"}
