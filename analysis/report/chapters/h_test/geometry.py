"""The chapter on letter geometry, and H-TEST beside it over two studies that the same readers took part in (Figure 5).

``wrods reproduce h-test rules letters`` makes a page of the latter, after each study has its report (or an export).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import apa, load
from analysis.figures import Drawing
from analysis.figures.h_test import geometry_figure
from analysis.names import upper_first
from analysis.published import h_test as paper
from analysis.readers import group_order, kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.chapters.h_test.pictures import (
    LAYOUT,
    Row,
    adjusted,
    bound_of,
    no_bound,
    parsers_blocks,
    pictures,
)
from analysis.report.studies_page import Page
from stimuli.errors import UserError

ALL = "All questions"
NAMES = {
    **{family: upper_first(family.replace("_", " or ")) for family in paper.FAMILIES},
    **{paper.ALL: ALL, "average": ALL},
}
ABOUT = Page(
    "H-TEST and letter geometry in these studies",
    "After Lee and Lim (2024), H-TEST, Figure 5.",
    "Numbers come from these studies’ own runs; those of models that the paper names are quoted.",
)
_RANK = {"human": 0, "simulated": 1, "model": 2, "baseline": 3}
_BOTH = "Give two studies: one made with --part tasks, the other with --part geometry."


def write(material: Material) -> Chapter | None:
    """Write right answers to letter geometry; None where a study asks none."""
    tables = material.tables
    rows = paper.geometry(tables)
    if rows is None:
        return None
    material.told("letter geometry")
    kinds = kinds_of(rows)
    groups = [group for group in group_order(rows) if kinds[group] != "baseline"]
    blocks: list[Block] = LAYOUT.blocks(
        "geometry",
        table=geometry_table("letter_geometry", rows, kinds),
        shares=[
            {"group": group, **vars(paper.share(rows[rows["reader_group"] == group]))} for group in groups
        ],
        alone=paper.by_option_alone(tables.items),
        kinds=kinds,
    )
    bound, why = bound_of(material), no_bound(material)
    blocks += pictures(rows, tables.dictionary["readers"], *bound, tasks=paper.FAMILIES, names=NAMES, why=why)
    if read := paper.both_parsers(rows, tables.folder, paper.FAMILIES, is_pooled=True):
        blocks += parsers_blocks("letter_geometry_parsers", read, kinds, NAMES)
    sources = ("lee2024htest", "benjamini1995")
    return LAYOUT.chapter("letter-geometry", blocks, kinds, kinds, part="geometry_", sources=sources)


def geometry_table(name: str, rows: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Show right answers by reader and kind of question, each against chance."""
    found: list[Row] = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        parts = {NAMES[family]: own[own["task"] == family] for family in paper.FAMILIES} | {ALL: own}
        found += [
            {"reader_group": group, "what": what, **vars(paper.share(part))}
            for what, part in parts.items()
            if len(part)
        ]
    # baselines are not data: their p values are adjusted only where nothing else is there
    counted = [one for one in found if kinds[one["reader_group"]] != "baseline"] or found
    counted = [one for one in counted if np.isfinite(one["p"])]
    told = {id(old): new["adjusted"] for old, new in zip(counted, adjusted(counted), strict=True)}
    cells = [one | {"adjusted": told.get(id(one), np.nan)} for one in found]
    return LAYOUT.table("letter_geometry", cells, name, kinds=kinds, chance=f"{100 * paper.CHANCE:.0f}")


def beside_table(name: str, points: Sequence[paper.Point], printed: Sequence[paper.Point]) -> ApaTable:
    """Show H-TEST and letter geometry of the study's readers, and below them the paper's printed numbers."""
    kinds = {one.group: one.kind for one in points}
    return LAYOUT.table("beside", map(vars, (*points, *printed)), name, kinds=kinds)


def beside_figure(
    name: str, points: Sequence[paper.Point], partial: Sequence[str] = ()
) -> tuple[Drawing, paper.Fitted | None, paper.Fitted | None]:
    """Draw Figure 5 with the study's readers over the paper's printed models, and return the two lines drawn."""
    printed = paper.printed_points()
    line, theirs = paper.fitted([one for one in points if one.kind == "model"]), paper.fitted(printed)
    caption = LAYOUT.caption("beside_figure", line=line, theirs=theirs, partial=partial)
    return geometry_figure(name, caption, points, printed, (line, theirs)), line, theirs


def together(
    folders: Sequence[Path], told: Callable[[str], None] = lambda _: None
) -> list[ApaTable | Drawing]:
    """Lay out both tests of two studies (or their exports) side by side and draw Figure 5; ``told`` hears remarks on them."""
    if len(folders) != 2:
        raise UserError(f"Figure 5 needs two studies; {len(folders)} given", mend=_BOTH)
    sorted_lines = answered = None
    for folder in folders:
        tables = load(folder)
        for remark in tables.remarks:
            told(remark)
        lines, questions = paper.asked(tables), paper.geometry(tables)
        if lines is None and questions is None:
            raise UserError(f"{folder} has neither H-TEST's tasks nor letter geometry", mend=_BOTH)
        sorted_lines, answered = lines or sorted_lines, answered if questions is None else questions
    if sorted_lines is None or answered is None:
        missing = "has H-TEST's tasks" if sorted_lines is None else "has letter geometry"
        raise UserError(f"neither of {folders[0]} and {folders[1]} {missing}", mend=_BOTH)
    points = sorted(paper.both_tests(sorted_lines, answered), key=lambda one: (_RANK[one.kind], one.group))
    found = {one.group for one in points}
    partial = sorted((set(sorted_lines.trials["reader_group"]) & set(answered["reader_group"])) - found)
    if partial:
        told(f"Excluded because not all tasks were answered: {apa.listing(partial)}.")
    if not points:
        raise UserError(
            f"no reader of {folders[0]} completed both tests, in {folders[1]} too",
            mend="Give the same models the same names in both studies, or let people take part in both.",
        )
    drawing, _, _ = beside_figure("figure_5", points, partial)
    return [drawing, beside_table("figure_5_numbers", points, paper.printed_points())]
