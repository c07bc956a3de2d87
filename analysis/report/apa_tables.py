"""A table in APA style: bold number, italic title, three rules, a note; the same rows go to CSV, rounded and unrounded."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis import apa
from analysis.mixed import Fit
from analysis.names import as_given
from analysis.report.filters import Condition

_SYMBOL = re.compile(r"(b|SE|z|t|df|p|M|SD|n|OR|R²|r)( (\(.*|/.*|or [zt]|adjusted|exact|recovery))?")


MOST_COLUMNS, WIDEST, LONG_CELL = 9, 90, 30
"""Columns and letters across that a page holds in its usual type; cells of more letters wrap."""
_LETTERS_AS_WIDE = {"ijl.,:;!|'-()[] ": 0.55, "ftI": 0.7, "rsc*†": 0.9, "mw": 1.5, "MW": 1.75}
_LETTER_WIDTHS = {letter: width for letters, width in _LETTERS_AS_WIDE.items() for letter in letters}
"""Widths of letters of a serif font by that of a usual one."""
Cut = Callable[[int, bool, str], Iterable[str]]
"""Parts a cell into what stays on one line, by the place of its column, whether it is the head, and its text."""


class Head(tuple[str, ...]):
    """A row that heads the rows below it: one cell across the table, or a head for each column."""

    __slots__ = ()


@dataclass(frozen=True)
class Origin:
    """The source of a table's numbers."""

    fits: tuple[Fit, ...] = ()
    columns: tuple[str, ...] = ()
    rows: str = ""  # what conditions on columns do not say of which rows these are
    file: str = "trials.csv"
    where: tuple[Condition, ...] | None = None  # () is all rows; None: ``rows`` says it
    computed: str = ""
    seed: tuple[str, ...] = ()  # beside the study's name (stimuli.seeds.stable_seed)
    beside: tuple[str, ...] = ()  # files that tell more of each row


@dataclass(frozen=True)
class ApaTable:
    """A table of a report."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    origin: Origin | None = None  # None: the models of its chapter
    drawn: bool = False  # a figure or the text shows what it holds, so it is not printed
    withheld: str = ""  # why it is not printed, such as numbers that should not be read
    of_paper: bool = False  # of the paper that a study copies, or declared by the plan: always printed

    @property
    def has_heads(self) -> bool:
        """Whether rows are grouped under heads."""
        return any(isinstance(row, Head) for row in self.rows)

    @property
    def is_wide(self) -> bool:
        """Whether a page holds it in small type only: by its columns, and by what cells take that do not wrap."""
        widths = self.widths(lambda index, is_head, text: text.split() if is_head or not index else [text])
        return len(self.columns) > MOST_COLUMNS or sum(min(width, LONG_CELL) + 2 for width in widths) > WIDEST

    def widths(self, cut: Cut) -> list[float]:
        """Return the width of each column, in letters of average width; parts of a table may have separate heads."""
        rows, widths = [row for row in self.rows if len(row) > 1], []
        for index, column in enumerate(self.columns):
            pieces = [*cut(index, True, column)]
            for row in rows:
                pieces += cut(index, False, row[index]) if index < len(row) else ()
            widths.append(max(map(_reach, pieces), default=2.0))
        return widths

    def is_symbol(self, column: str) -> bool:
        """Whether a column head is a statistical symbol, be it with a word that says of what."""
        return _SYMBOL.fullmatch(column) is not None

    def save(self, folder: Path) -> Path:
        """Write ``name.csv``, as the page shows it, and ``name_full.csv``, unrounded; return the path of the first."""
        folder.mkdir(parents=True, exist_ok=True)
        name = as_given(self.name)
        path = folder / f"{name}.csv"
        _write(path, [self.columns, *self.rows])
        _write(folder / f"{name}_full.csv", self.unrounded())
        return path

    def unrounded(self) -> list[tuple[str, ...]]:
        """Return head and rows with every number as it was before rounding; an interval has a column for each end."""
        widths = [
            max((len(_values(row[index])) for row in self.rows if len(row) > index), default=0) or 1
            for index in range(len(self.columns))
        ]
        rows = [tuple(_spread_head(self.columns, widths))]
        for row in self.rows:
            if isinstance(row, Head):
                rows.append(tuple(_spread_head(row, widths)) if len(row) > 1 else (str(row[0]),))
            else:
                cells = (_spread(cell, width) for cell, width in zip(row, widths, strict=False))
                rows.append(tuple(text for texts in cells for text in texts))
        return rows


def _reach(text: str) -> float:
    return sum(_LETTER_WIDTHS.get(letter, 1.25 if letter.isupper() else 1.05) for letter in text)


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
        csv.writer(file).writerows([as_given(cell) for cell in row] for row in rows)


def decimals(se: float, fewest: int) -> int:
    """Return two decimals, or three where a standard error is below 0.05."""
    return fewest if not se < 0.05 else fewest + 1
