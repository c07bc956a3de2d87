"""H-TEST beside letter geometry over two studies that the same readers took part in: Figure 5 and its numbers.

From a shell, after each study has its report (or an export)::

    python -m analysis.report.h_test_together rules letters --out figure-5

prints the table and writes it as CSV, with the figure as SVG and PNG, into the folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis import load
from analysis.figures import Drawing
from analysis.published.h_test_geometry import both_tests, geometry, printed_points
from analysis.published.h_test_tables import asked
from analysis.report.apa_tables import ApaTable
from analysis.report.chapters.h_test_geometry import beside_figure, beside_table
from stimuli.errors import UserError

_RANK = {"human": 0, "simulated": 1, "model": 2, "baseline": 3}


def together(tasks: Path, questions: Path) -> tuple[ApaTable, Drawing]:
    """Lay out both tests side by side and draw Figure 5.

    Parameters
    ----------
    tasks, questions : Path
        The study of the ten tasks and that of letter geometry: a folder with a report, or an export.

    Raises
    ------
    UserError
        A study asks something else, or no reader is in both.
    """
    sorted_lines = asked(load(tasks))
    if sorted_lines is None:
        raise UserError(
            f"{tasks} has none of H-TEST's tasks",
            mend="Give the study made with --part tasks first, and that made with --part geometry second.",
        )
    answered = geometry(load(questions))
    if answered is None:
        raise UserError(
            f"{questions} has no letter geometry",
            mend="Give the study made with --part tasks first, and that made with --part geometry second.",
        )
    points = sorted(both_tests(sorted_lines, answered), key=lambda one: (_RANK[one.kind], one.group))
    if not points:
        raise UserError(
            f"no reader of {tasks} is in {questions}",
            mend="Give the same models the same names in both studies, or let people take part in both.",
        )
    drawing, _, _ = beside_figure("h_test_geometry", points)
    return beside_table("h_test_geometry", points, printed_points()), drawing


def main(given: Sequence[str] | None = None) -> int:
    """Print the table, and write table and figure where ``--out`` says."""
    parser = argparse.ArgumentParser(prog="python -m analysis.report.h_test_together")
    parser.add_argument("tasks", type=Path, help="study of the ten tasks")
    parser.add_argument("geometry", type=Path, help="study of letter geometry")
    parser.add_argument("--out", type=Path, help="folder for the table and the figure")
    told = parser.parse_args(given)
    try:
        table, drawing = together(told.tasks, told.geometry)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(f"{table.title}\n")
    print("\n".join("  ".join(f"{cell:<24}" for cell in row) for row in (table.columns, *table.rows)))
    print(f"\n{table.note}\n\n{drawing.title}. {drawing.note}")
    if told.out is not None:
        table.save(told.out)
        drawing.save(told.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
