"""A table in APA style: bold number, italic title, three rules, a note; the same rows go to CSV, rounded and unrounded."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis import apa
from analysis.mixed import Fit
from analysis.report.filters import Condition

_SYMBOL = re.compile(r"(b|SE|z|t|df|p|M|SD|n|OR|R²|r)( (\(.*|/.*|or [zt]|adjusted|exact|recovery))?")


NOT_ESTIMABLE = f"A row of en dashes ({apa.MISSING}) is not estimable: the data do not determine that effect."


MOST_COLUMNS, WIDEST, LONG_CELL = 9, 90, 30
"""Columns and letters across that a page holds in its usual type; cells of more letters wrap."""


class Head(tuple[str, ...]):
    """A row that heads the rows below it: one cell across the table, or a head for each column."""

    __slots__ = ()


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a table come from.

    Attributes
    ----------
    fits : tuple of analysis.mixed.Fit
        Models of the report; their rows lie in ``models/`` and their R lines in ``models.R``.
    columns : tuple of str
        Columns of ``trials.csv`` (or of the file that ``file`` names).
    rows : str
        What else is to be said of which rows these are, in words.
    file : str
        ``trials.csv``, ``regions.csv.gz`` or ``items.csv``, which the report writes beside it where a table names it.
    where : tuple of Condition or None
        Which rows of the file; ``()`` is all of them, None: ``rows`` says it. The report counts them.
    computed : str
        What is made of these rows, or of the models, in words.
    seed : tuple of str
        What the seed of its random draws is made of, beside the name of the study (:func:`stimuli.seeds.stable_seed`).
    beside : tuple of str
        Other files that tell something of each row: ``items.csv``.
    """

    fits: tuple[Fit, ...] = ()
    columns: tuple[str, ...] = ()
    rows: str = ""
    file: str = "trials.csv"
    where: tuple[Condition, ...] | None = None
    computed: str = ""
    seed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class ApaTable:
    """A table of a report.

    Attributes
    ----------
    name : str
        File name without ending.
    title : str
    columns : tuple of str
        Head of each column; statistical symbols are set in italics.
    rows : tuple of tuple of str
        A ``Head`` among them heads the rows below it. Cells that :mod:`analysis.apa` wrote keep their numbers, which go
        unrounded into ``name_full.csv``.
    note : str
    drawn : bool
        Whether a figure beside it, or the text, shows what it holds: the report then names its file instead of printing it.
    of_paper : bool
        Whether it is a table of the paper that a study copies, or declared by the plan: such a one is always printed.
    origin : Origin or None
        None: the report names the models of its chapter.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    origin: Origin | None = None
    drawn: bool = False
    of_paper: bool = False

    @property
    def has_heads(self) -> bool:
        """Whether rows are grouped under heads."""
        return any(isinstance(row, Head) for row in self.rows)

    @property
    def is_wide(self) -> bool:
        """Whether a page holds it in small type only: by its columns, and by what cells take that do not wrap."""
        rows = [row for row in self.rows if len(row) == len(self.columns)]
        taken = 0
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in rows]
            words = [word for text in (column, *(cells if place == 0 else ())) for word in text.split()]
            lengths = map(len, words if place == 0 else [*words, *cells])
            taken += min(max(lengths, default=0), LONG_CELL) + 2
        return len(self.columns) > MOST_COLUMNS or taken > WIDEST

    def is_symbol(self, column: str) -> bool:
        """Whether a column head is a statistical symbol, be it with a word that says of what."""
        return _SYMBOL.fullmatch(column) is not None

    def reworded(self, said: Callable[[str], str]) -> ApaTable:
        """Return the table with every text put through ``said``; numbers keep what they were before rounding."""

        def row(cells: tuple[str, ...]) -> tuple[str, ...]:
            told = tuple(one if isinstance(one, apa.Written) else said(one) for one in cells)
            return Head(told) if isinstance(cells, Head) else told

        return replace(
            self,
            title=said(self.title),
            columns=row(self.columns),
            rows=tuple(row(one) for one in self.rows),
            note=said(self.note),
        )

    def save(self, folder: Path) -> Path:
        """Write ``name.csv``, as the page shows it, and ``name_full.csv``, unrounded; return the path of the first."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.csv"
        _write(path, [self.columns, *self.rows])
        _write(folder / f"{self.name}_full.csv", self.unrounded())
        return path

    def unrounded(self) -> list[tuple[str, ...]]:
        """Return head and rows with every number as it was before rounding; an interval has a column for each end.

        A cell that holds no number, or that was not written by :mod:`analysis.apa`, stands as it is.
        """
        widths = [
            max((len(_values(row[place])) for row in self.rows if len(row) > place), default=0) or 1
            for place in range(len(self.columns))
        ]
        rows = [tuple(_spread_head(self.columns, widths))]
        for row in self.rows:
            if isinstance(row, Head):
                rows.append(tuple(_spread_head(row, widths)) if len(row) > 1 else (str(row[0]),))
            else:
                rows.append(
                    tuple(
                        text
                        for cell, width in zip(row, widths, strict=False)
                        for text in _spread(cell, width)
                    )
                )
        return rows


def _values(cell: str) -> tuple[float, ...]:
    return cell.values if isinstance(cell, apa.Written) else ()


def _spread(cell: str, width: int) -> list[str]:
    values = _values(cell)
    if not values:
        return [str(cell)] + [""] * (width - 1)
    texts = ["" if math.isnan(value) else f"{value:.12g}" for value in values]
    return [""] * (width - len(texts)) + texts if len(texts) < width else texts


def _spread_head(cells: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    """Name the columns that a column of intervals becomes."""
    for cell, width in zip(cells, widths, strict=False):
        name = str(cell)
        ends = [f"{name} low", f"{name} high"] if name else ["", ""]
        yield from {1: [name], 2: ends, 3: [name, *ends]}.get(
            width, [f"{name} {n + 1}" for n in range(width)]
        )


def _write(path: Path, rows: list[tuple[str, ...]]) -> None:
    """Write CSV in UTF-8 with the mark by which spreadsheets know it."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(rows)


def as_percent(log_ratio: float) -> float:
    """Turn a difference of logs into percent."""
    return 100.0 * (float(np.exp(log_ratio)) - 1.0)


def decimals(se: float, fewest: int) -> int:
    """Return two decimals, or three where a standard error is below 0.05."""
    return fewest if not se < 0.05 else fewest + 1
