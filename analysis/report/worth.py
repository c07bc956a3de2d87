"""Decides which tables and figures are printed: those that contain variation and that no other table shows.

A refused table or figure keeps its number and its file; the report lists it with the reason under "Tables and figures in files".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from analysis import apa
from analysis.figures import Drawing
from analysis.report.apa_tables import ApaTable, Head

MOST_EMPTY, MOST_SHOWN = 0.6, 0.6
"""Shares of cells that are empty, and of numbers that one printed table holds already, above which a table is not printed."""
FEWEST_NUMBERS = 5
"""A table of fewer numbers is told apart from others by them alone and never counts as shown."""
LONGEST = 24
"""Rows above which a table is in its file only; no journal would print it."""


def refusal(table: ApaTable, printed: Collection[ApaTable]) -> str:
    """Return why a table is not worth printing; empty if it is, as is any that is laid out as in a paper or declared by the plan."""
    if table.of_paper:
        return ""
    rows = [row for row in table.rows if not isinstance(row, Head)]
    if table.withheld:
        return table.withheld
    if table.drawn:
        return "a figure shows these numbers"
    if len(rows) > LONGEST:
        return f"{len(rows)} rows"
    if len(rows) < 2:
        return "one row" if rows else "no rows"
    cells = list(_cells(table))
    if sum(cell in ("", apa.MISSING) for cell in cells) > MOST_EMPTY * len(cells):
        return "most cells are empty"
    columns = [
        [str(row[index]) for row in rows if len(row) > index] for index in range(1, len(table.columns))
    ]
    if not any(len(set(column)) > 1 for column in columns):
        return "nothing varies"
    numbers = numbers_in(table)
    if len(numbers) >= FEWEST_NUMBERS:
        for other in printed:
            if len(numbers & numbers_in(other)) >= MOST_SHOWN * len(numbers):
                return f"most of its numbers are in the table “{other.title}”"
    return ""


def _cells(table: ApaTable) -> Iterator[str]:
    """Yield the cells behind the first of each row, as many as the columns of its part of the table have heads."""
    width = len(table.columns)
    for row in table.rows:
        if isinstance(row, Head):
            named = sum(map(bool, row))
            width = named if named > 1 else len(table.columns)
        else:
            yield from (str(cell).strip() for cell in row[1:width])


def numbers_in(table: ApaTable) -> set[str]:
    """Return the numbers of a table as they are printed; whole numbers and zeros, which many tables share, are left out."""
    texts = (str(cell).split(" [")[0] for row in table.rows if not isinstance(row, Head) for cell in row[1:])
    return {cell for cell in texts if "." in cell and set(cell) & set("123456789")}


def refusal_of_figure(drawing: Drawing) -> str:
    """Return why a figure is not worth printing: it is empty, or holds one point; empty if it is worth it."""
    points = 0
    for axes in drawing.figure.axes:
        if axes.images or axes.patches:
            return ""
        points += sum(_points(line.get_xydata()) for line in axes.lines)
        points += sum(_points(collection.get_offsets()) for collection in axes.collections)
        points += sum(
            len(np.atleast_1d(path.vertices)) > 4
            for collection in axes.collections
            for path in collection.get_paths()
        )
    return "" if points > 1 else "no more than one point" if points else "it is empty"


def _points(values: object) -> int:
    points: np.ndarray = np.atleast_2d(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
    return int(np.isfinite(points).all(axis=1).sum()) if points.shape[1] == 2 else 0
