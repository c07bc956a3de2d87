"""A table as lines of text cells under a header: what CSV and XLSX have in common, and where a line is bad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stimuli.errors import UserError

Row = dict[str, Any]


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read."""

    line: int  # line of the file where it begins; row of the sheet in a workbook
    reason: str  # what is wrong, in one sentence
    mend: str | None = None  # what to do about it

    def error(self, path: Path) -> UserError:
        """Build the error for a table that must have no bad rows."""
        return UserError(f"{path}, line {self.line}: {self.reason}", mend=self.mend)


@dataclass(frozen=True)
class Line:
    """Cells of one line, as text without outer spaces."""

    number: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Rows under a header."""

    columns: tuple[str, ...]  # names in the header
    rows: tuple[tuple[int, Row], ...]  # line and cells by column
    bad: tuple[BadRow, ...]  # lines that do not fit the header


def under_header(lines: Iterable[Line | BadRow], path: Path) -> Grid:
    """Take the first filled line as the header and put the others under it."""
    header: list[str] = []
    at = 0
    filled: list[Line] = []
    bad: list[BadRow] = []
    for line in lines:
        if isinstance(line, BadRow):
            if not header:
                raise line.error(path)
            bad.append(line)
        elif not any(line.cells):
            continue
        elif not header:
            header, at = list(line.cells), line.number
        else:
            filled.append(line)
    width, named = len(header), len(_without_empty_end(header))
    fitting: list[Line] = []
    for line in filled:
        cells = [*line.cells[:width], *_without_empty_end(line.cells[width:])]
        if named <= len(cells) <= width:
            fitting.append(Line(line.number, (*cells, *[""] * (width - len(cells)))))
        else:
            bad.append(
                BadRow(
                    line.number,
                    f"{len(cells)} cells under {named} columns",
                    "Put a cell that holds the delimiter in double quotes.",
                )
            )
    kept = [place for place in range(width) if header[place] or any(line.cells[place] for line in fitting)]
    columns = _names([header[place] for place in kept], fitting, kept, path, at)
    return Grid(
        columns,
        tuple(
            (line.number, dict(zip(columns, (line.cells[place] for place in kept), strict=True)))
            for line in fitting
        ),
        tuple(sorted(bad, key=lambda row: row.line)),
    )


def _without_empty_end(cells: Sequence[str]) -> list[str]:
    kept = list(cells)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _names(
    names: list[str], lines: Sequence[Line], places: Sequence[int], path: Path, header_line: int
) -> tuple[str, ...]:
    for name, place in zip(names, places, strict=True):
        if not name:
            line = next(line for line in lines if line.cells[place])
            raise UserError(
                f"{path}, line {header_line}: a column has no name, "
                f"but holds {line.cells[place]!r} in line {line.number}",
                mend="Name it in the first line, or empty it.",
            )
        if names.count(name) > 1:
            raise UserError(
                f"{path}, line {header_line}: column {name!r} stands there twice",
                mend="Give each column a name of its own.",
            )
    return tuple(names)
