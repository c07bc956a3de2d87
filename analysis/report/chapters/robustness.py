"""One matrix in place of many tables: every planned contrast under every check, and what each check that differs found."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup, escape

from analysis import apa
from analysis.readers import headed, spoken
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material, marks_of
from analysis.report.results.tables import origin_of_contrasts
from analysis.results import Contrast
from analysis.robustness.matrix import ITEM_SETS, LIMITS, SAME, Cell, Checked, Matrix

NOT_APPLICABLE = "·"
METHOD = (
    "Each planned contrast was estimated again by a mixed model of people (accuracy in log odds, ratings linearly), by "
    "generalized estimating equations with standard errors clustered by participants or by items (Liang & Zeger, 1986; "
    "bias-reduced below 50 clusters: Mancl & DeRouen, 2001), without each set of items, and under other usual preparations of the "
    "data (a multiverse; Steegen et al., 2016), one choice at a time: other limits of times, times in milliseconds, other "
    "answers, other scoring of failures, and other sessions. Preparations compare means over participants, or over a model’s "
    "items, with Student’s intervals. Of many rules of one kind a majority decides."
)
_SOURCES = ("liang1986", "mancl2001", "steegen2016")


def write(material: Material) -> Chapter | None:
    """Write the matrix, or None where nothing could be checked."""
    matrix = material.matrix
    if not matrix.checks:
        return None
    said = [_differing(row) for row in matrix.rows if row.cells and row.agreeing < len(row.cells)]
    agreeing = sum(row.agreeing == len(row.cells) for row in matrix.rows if row.cells)
    checked = sum(bool(row.cells) for row in matrix.rows)
    opening = f"All checks agree with {apa.count(agreeing)} of {apa.counted(checked, 'planned contrast')} ([[table:matrix]])."
    groups = dict.fromkeys(group for row in matrix.rows for group in row.contrast.groups)
    return Chapter(
        "robustness",
        "Robustness",
        (
            Markup(opening),
            matrix_table(matrix),
            *(escape(one) for one in said),
            *(escape(one) for one in matrix.remarks),
        ),
        marks=marks_of(tuple(groups), material.kinds),
        planned=True,
        methods=(escape(METHOD),),
        sources=_SOURCES,
    )


def matrix_table(matrix: Matrix) -> ApaTable:
    """Lay out contrasts by checks; a head for each analysis."""
    checks = matrix.checks
    rows: list[tuple[str, ...]] = []
    analysis = None
    for row in matrix.rows:
        if row.analysis is not analysis:
            analysis = row.analysis
            rows.append(Head([f"{analysis.plan.name[0].upper()}{analysis.plan.name[1:]}"]))
        cells = [row.cells[name].outcome if name in row.cells else NOT_APPLICABLE for name in checks]
        counts = (apa.count(row.agreeing), apa.count(len(row.cells)))
        rows.append((contrast_in_words(row.contrast), *cells, *counts))
    note = (
        "Same: the check's interval leads to the planned conclusion; weaker: it includes zero where the planned test is significant; "
        f"reversed: the estimate has the other sign; appears: it excludes zero where the planned test is not significant; "
        f"{NOT_APPLICABLE}: the check does not apply. Leaving out items also costs precision."
    )
    analyses = list({id(row.analysis): row.analysis for row in matrix.rows}.values())
    computed = "the planned contrasts again under each check; by wrods alone"
    origin = replace(origin_of_contrasts(analyses), computed=computed)
    return ApaTable(
        "matrix",
        "Planned contrasts under each check",
        ("Contrast", *checks, "Agree", "Checks"),
        tuple(rows),
        note,
        origin,
    )


def contrast_in_words(one: Contrast) -> str:
    """Name a contrast with its readers: ``initial − internal, people vs. gpt``."""
    return f"{one.label}, {readers_in_words(one.groups)}"


def readers_in_words(groups: tuple[str, ...]) -> str:
    """Name the reader, or the two readers, of a contrast."""
    return " vs. ".join([headed(groups[0]), *(spoken(one) for one in groups[1:])])


def _differing(row: Checked) -> str:
    """Say which checks of a contrast differ, with their numbers."""
    told = [
        f"{cell.outcome} {_form(name, cell)} ({_numbers(row, name, cell)})"
        for name, cell in row.cells.items()
        if cell.outcome != SAME
    ]
    plan = row.analysis.plan
    return f"{plan.name[0].upper()}{plan.name[1:]}, {contrast_in_words(row.contrast)}: {'; '.join(told)}."


def _form(name: str, cell: Cell) -> str:
    if name == ITEM_SETS:
        return cell.where
    which = f" ({cell.differing} of {cell.of} rules)" if cell.of > 1 and name == LIMITS else ""
    return f"under {name[0].lower()}{name[1:]}{which}"


def _numbers(row: Checked, name: str, cell: Cell) -> str:
    places = 1 if abs(cell.estimate) >= 1 and name != ITEM_SETS else 2
    return f"{apa.number(cell.estimate, places)} {apa.interval(cell.low, cell.high, places)}"
