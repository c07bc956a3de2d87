"""H-TEST beside letter geometry over two studies that the same readers took part in: Figure 5 and its numbers.

``wrods reproduce h-test rules letters`` makes a page of them, after each study has its report (or an export).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from analysis import apa, load
from analysis.figures import Drawing
from analysis.published.h_test_geometry import both_tests, geometry, printed_points
from analysis.published.h_test_tables import asked
from analysis.report.apa_tables import ApaTable
from analysis.report.chapters.h_test_geometry import beside_figure, beside_table
from analysis.report.studies_page import Page
from stimuli.errors import UserError

_RANK = {"human": 0, "simulated": 1, "model": 2, "baseline": 3}


ABOUT = Page(
    "H-TEST beside letter geometry in these studies",
    "After Lee and Lim (2024), H-TEST, Figure 5.",
    "Numbers are from these studies’ own runs but for those of models that the paper names, which are quoted.",
)
_BOTH = "Give two studies: one made with --part tasks, the other with --part geometry."


def together(
    folders: Sequence[Path], told: Callable[[str], None] = lambda _: None
) -> list[ApaTable | Drawing]:
    """Lay out both tests side by side and draw Figure 5.

    Parameters
    ----------
    folders : sequence of Path
        The study of the tasks and that of letter geometry, in either order: folders with a report, or exports.
    told : callable
        Called with what must be said of the studies: that tables are older than the store, and which readers are left out.

    Raises
    ------
    UserError
        There are not two studies, one of each kind, or no reader is in both.
    """
    if len(folders) != 2:
        raise UserError(f"Figure 5 is of two studies; {len(folders)} given", mend=_BOTH)
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
    left_out = f"Left out, for not all tasks were answered: {apa.listing(partial)}." if partial else ""
    if left_out:
        told(left_out)
    if not points:
        raise UserError(
            f"no reader of {folders[0]} answered both tests whole, in {folders[1]} too",
            mend="Give the same models the same names in both studies, or let people take part in both.",
        )
    drawing, _, _ = beside_figure("figure_5", points)
    drawing = replace(drawing, note=f"{drawing.note} {left_out}".strip())
    return [drawing, beside_table("figure_5_numbers", points, printed_points())]
