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
from analysis.intervals import OF_SHARES
from analysis.mixed.inference import corrected
from analysis.published.h_test import ALL as EVERY
from analysis.published.h_test import (
    CHANCE,
    FAMILIES,
    Fitted,
    Point,
    asked,
    both_parsers,
    both_tests,
    by_option_alone,
    fitted,
    geometry,
    printed_points,
    share,
)
from analysis.readers import group_order, kinds_of, marked
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.h_test.pictures import LAYOUT, bound_of, no_bound, parsers_blocks, pictures
from analysis.report.studies_page import Page
from stimuli.errors import UserError

ALL = "All questions"
NAMES = {
    **{family: family.replace("_", " or ").capitalize() for family in FAMILIES},
    **{EVERY: ALL, "average": ALL},
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
    rows = geometry(material.tables)
    if rows is None:
        return None
    material.told("letter geometry")
    kinds = kinds_of(rows)
    groups = [group for group in group_order(rows) if kinds[group] != "baseline"]
    blocks: list[Block] = LAYOUT.blocks(
        "geometry",
        table=geometry_table("letter_geometry", rows, kinds),
        shares=[{"group": group, **vars(share(rows[rows["reader_group"] == group]))} for group in groups],
        alone=by_option_alone(material.tables.items),
        kinds=kinds,
    )
    blocks += pictures(
        rows,
        material.tables.dictionary["readers"],
        *bound_of(material),
        name="letter_geometry_pictures",
        tasks=FAMILIES,
        names=NAMES,
        noun="kind",
        why=no_bound(material),
    )
    if read := both_parsers(rows, material.tables.folder, FAMILIES, is_pooled=True):
        blocks += parsers_blocks("letter_geometry_parsers", read, kinds, NAMES)
    return Chapter(
        "letter-geometry",
        "Letter geometry",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(LAYOUT.sentences("geometry_methods"),),
        sources=("lee2024htest", "benjamini1995"),
    )


def geometry_table(name: str, rows: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Show right answers by reader and kind of question, each against chance."""
    found = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        parts = {NAMES[family]: own[own["task"] == family] for family in FAMILIES} | {ALL: own}
        found += [
            {"reader_group": group, "what": what, **vars(share(part))}
            for what, part in parts.items()
            if len(part)
        ]
    p = np.array([one["p"] for one in found], dtype=np.float64)
    # baselines are not data: their p values are adjusted only where nothing else is there
    counts = np.array([kinds[str(one["reader_group"])] != "baseline" for one in found])
    told = np.isfinite(p) & (counts if counts.any() else True)
    adjusted = np.full(len(p), np.nan)
    adjusted[told] = corrected(p[told], "BH")
    cells = [one | {"adjusted": float(value)} for one, value in zip(found, adjusted, strict=True)]
    return LAYOUT.table("letter_geometry", cells, name, kinds=kinds, chance=f"{100 * CHANCE:.0f}")


def beside_table(name: str, points: Sequence[Point], printed: Sequence[Point]) -> ApaTable:
    """Show H-TEST and letter geometry of the study's readers, and below them the paper's printed numbers."""
    rows = [
        vars(one)
        | {"reader": marked(one.group, one.kind), "part": "" if one.kind else "As printed in the paper"}
        for one in (*points, *printed)
    ]
    return LAYOUT.table("beside", rows, name, of_shares=OF_SHARES)


def beside_figure(
    name: str, points: Sequence[Point], partial: Sequence[str] = ()
) -> tuple[Drawing, Fitted | None, Fitted | None]:
    """Draw Figure 5 with the study's readers over the paper's printed models, and return the two lines drawn."""
    printed = printed_points()
    line, theirs = fitted([one for one in points if one.kind == "model"]), fitted(printed)
    caption = LAYOUT.caption("beside_figure", line=line, theirs=theirs, partial=partial, of_shares=OF_SHARES)
    return geometry_figure(name, caption, points, printed, (line, theirs)), line, theirs


def together(
    folders: Sequence[Path], told: Callable[[str], None] = lambda _: None
) -> list[ApaTable | Drawing]:
    """Lay out both tests side by side and draw Figure 5.

    Parameters
    ----------
    folders : sequence of Path
        The study of the tasks and that of letter geometry, in either order: folders with a report, or exports.
    told : callable
        Called with remarks on the studies: that tables are older than the store, and which readers are left out.

    Raises
    ------
    UserError
        There are not two studies, one of each kind, or no reader is in both.
    """
    if len(folders) != 2:
        raise UserError(f"Figure 5 needs two studies; {len(folders)} given", mend=_BOTH)
    sorted_lines = answered = None
    for folder in folders:
        tables = load(folder)
        for remark in tables.remarks:
            told(remark)
        lines, questions = asked(tables), geometry(tables)
        if lines is None and questions is None:
            raise UserError(f"{folder} has neither H-TEST's tasks nor letter geometry", mend=_BOTH)
        sorted_lines, answered = lines or sorted_lines, answered if questions is None else questions
    if sorted_lines is None or answered is None:
        missing = "has H-TEST's tasks" if sorted_lines is None else "has letter geometry"
        raise UserError(f"neither of {folders[0]} and {folders[1]} {missing}", mend=_BOTH)
    points = sorted(both_tests(sorted_lines, answered), key=lambda one: (_RANK[one.kind], one.group))
    found = {one.group for one in points}
    partial = sorted((set(sorted_lines.trials["reader_group"]) & set(answered["reader_group"])) - found)
    if partial:
        told(f"Left out because not all tasks were answered: {apa.listing(partial)}.")
    if not points:
        raise UserError(
            f"no reader of {folders[0]} completed both tests, in {folders[1]} too",
            mend="Give the same models the same names in both studies, or let people take part in both.",
        )
    drawing, _, _ = beside_figure("figure_5", points, partial)
    return [drawing, beside_table("figure_5_numbers", points, printed_points())]
