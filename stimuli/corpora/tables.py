"""Reads the user's own materials from plain text, CSV, TSV, XLSX or JSONL, and tells how it understood them.

Encoding and delimiter are found and said; columns can be renamed; a bad row stops the reading or is listed with its
line while the others are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from stimuli.corpora.cells import BadRow, Grid, Line, Row, under_header
from stimuli.corpora.delimited import delimiter_name, find_delimiter, lines_of
from stimuli.corpora.encodings import Decoded, encoding_name, read_decoded
from stimuli.corpora.plain_texts import Unit, plain_texts
from stimuli.corpora.source_text import json_object
from stimuli.corpora.workbooks import read_sheet
from stimuli.errors import UserError, missing_column, together

Format = Literal["text", "csv", "tsv", "xlsx", "jsonl"]
OnBad = Literal["stop", "skip"]
TEXT_COLUMNS = ("item", "text")
_FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "text",
    "": "text",
}
_SHOWN = 3
_WIDEST = 60


@dataclass(frozen=True)
class TableDescription:
    """How a table was understood, to be shown to who gave it: a wrong guess has to meet the eye.

    Parameters
    ----------
    file : str
        Its name.
    format : str
        ``text``, ``csv``, ``tsv``, ``xlsx`` or ``jsonl``.
    encoding : str or None
        Python's name of the encoding; None for a workbook.
    known_by : str or None
        How the encoding is known, such as ``byte-order mark`` or ``guessed …``.
    delimiter : str or None
        The delimiter of CSV and TSV.
    columns : tuple of str
        Columns after renaming.
    rows : int
        How many rows were read.
    first : tuple of mapping
        The first three of them.
    notes : tuple of str
        What a reader may not expect.
    """

    file: str
    format: Format
    encoding: str | None
    known_by: str | None
    delimiter: str | None
    columns: tuple[str, ...]
    rows: int
    first: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the description as lines of text, the first rows last."""
        how = [self.format.upper() if self.format != "text" else "plain text"]
        if self.encoding:
            how.append(f"{encoding_name(self.encoding)} ({self.known_by})")
        if self.format in ("csv", "tsv"):
            how.append(f"delimiter: {delimiter_name(self.delimiter)}")
        rows = f"{self.rows} row{'' if self.rows == 1 else 's'}"
        told = [f"{self.file}: {', '.join(how)}; {rows}; columns {', '.join(self.columns)}"]
        told += [f"  note: {note}" for note in self.notes]
        for row in self.first:
            told.append("  " + " | ".join(f"{name}: {_short(value)}" for name, value in row.items()))
        return told


@dataclass(frozen=True, eq=False)
class Table(Sequence[Row]):
    """Rows of a table, and what came with them.

    Parameters
    ----------
    rows : tuple of Row
        A mapping a row. Cells of CSV, TSV and XLSX are text without outer spaces; JSONL keeps its values.
    numbers : tuple of int
        Line of each row in its file; row of the sheet in a workbook.
    bad : tuple of BadRow
        Rows that could not be read.
    description : TableDescription
        How the table was understood.
    """

    rows: tuple[Row, ...]
    numbers: tuple[int, ...]
    bad: tuple[BadRow, ...]
    description: TableDescription

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)


def read_table(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    on_bad: OnBad = "stop",
    form: Format | None = None,
    unit: Unit = "line",
    sheet: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    language: str | None = None,
) -> Table:
    """Read a table of materials."""
    if unit not in ("line", "paragraph"):
        raise UserError(f"unit is {unit!r}; a text is a line or a paragraph")
    given = columns or {}
    filled = [given.get(name, name) for name in required]
    asked = list(dict.fromkeys([*given.values(), *filled]))
    wanted = form or _FORMATS.get(path.suffix.lower(), "csv")
    found: Decoded | None = None
    notes: list[str] = []
    if wanted == "xlsx":
        read = read_sheet(path, sheet)
        grid, notes = under_header(read.lines, path), list(read.notes)
    else:
        found = read_decoded(path, encoding=encoding, language=language)
        if wanted == "text" and form is None and asked and (mark := _table_in_text(found.text, asked)):
            wanted, delimiter = "csv", delimiter or mark
        if wanted == "text":
            texts = [(n, {"item": str(n), "text": text}) for n, text in plain_texts(found.text, unit)]
            grid = Grid(TEXT_COLUMNS, tuple(texts), ())
        elif wanted == "jsonl":
            grid = _json_grid(found.text, path)
        else:
            tabbed = wanted == "tsv" and "\t" in found.text
            delimiter = delimiter or ("\t" if tabbed else find_delimiter(found.text, asked))
            grid = under_header(lines_of(found.text, delimiter), path)
        if found.is_guess and found.witnesses():
            notes.append(
                f"the encoding is guessed; do these words look right? {', '.join(found.witnesses())}"
            )
    if not grid.rows and not grid.bad:
        raise UserError(
            f"{path} holds no rows",
            mend="Fill it: a table with a line of column names and a row an item, or plain text, an item a line.",
        )
    grid = _renamed(_checked(grid, asked, filled, path, each_row=wanted == "jsonl"), given, path)
    if grid.bad and (on_bad == "stop" or not grid.rows):
        raise together([row.error(path) for row in grid.bad])
    rows = tuple(row for _, row in grid.rows)
    description = TableDescription(
        file=path.name,
        format=wanted,
        encoding=found.encoding if found else None,
        known_by=found.known_by if found else None,
        delimiter=delimiter if wanted in ("csv", "tsv") else None,
        columns=grid.columns,
        rows=len(rows),
        first=rows[:_SHOWN],
        notes=(*notes, *([f"{len(grid.bad)} bad rows are left out"] if grid.bad else [])),
    )
    return Table(rows, tuple(number for number, _ in grid.rows), grid.bad, description)


def _table_in_text(text: str, asked: Sequence[str]) -> str | None:
    """Return the delimiter under which the first line of a text file names all the columns asked for."""
    delimiter = find_delimiter(text, asked)
    first = next(
        (line for line in lines_of(text, delimiter) if isinstance(line, Line) and any(line.cells)), None
    )
    return delimiter if first is not None and set(asked) <= set(first.cells) else None


def _json_grid(text: str, path: Path) -> Grid:
    rows: list[tuple[int, Row]] = []
    bad: list[BadRow] = []
    columns: dict[str, None] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json_object(line.encode("utf-8", "surrogatepass"), where)
        except UserError as error:
            cut = "Is the file cut off?" if number == len(lines) else error.mend
            bad.append(BadRow(number, error.message.removeprefix(f"{where}: "), cut))
            continue
        columns.update(dict.fromkeys(row))
        rows.append((number, row))
    return Grid(tuple(columns), tuple(rows), tuple(bad))


def _checked(grid: Grid, asked: Sequence[str], filled: Sequence[str], path: Path, *, each_row: bool) -> Grid:
    """Set rows aside that lack a column or are empty where they must not be."""
    if not each_row:
        for column in asked:
            if column not in grid.columns:
                error = missing_column(str(path), column, grid.columns)
                raise UserError(
                    error.message, mend=f"{error.mend} Map one of another name: columns: {{{column}: NAME}}."
                )
    rows: list[tuple[int, Row]] = []
    bad = list(grid.bad)
    for number, row in grid.rows:
        missing = next((column for column in asked if column not in row), None)
        empty = next((column for column in filled if row.get(column) in ("", None)), None)
        if missing is not None:
            error = missing_column("", missing, row)
            bad.append(BadRow(number, error.message.removeprefix(": "), error.mend))
        elif empty is not None:
            bad.append(BadRow(number, f"{empty!r} is empty", "Fill it, or take the row out."))
        else:
            rows.append((number, row))
    return Grid(grid.columns, tuple(rows), tuple(sorted(bad, key=lambda row: row.line)))


def _renamed(grid: Grid, columns: Mapping[str, str], path: Path) -> Grid:
    names = {column: name for name, column in columns.items()}
    for column, name in names.items():
        if name != column and name in grid.columns and name not in names:
            raise UserError(
                f"{path}: column {column!r} is to be called {name!r}, but there is a column of that name",
                mend=f"Rename the column {name!r} as well, or take it out of the table.",
            )
    return Grid(
        tuple(names.get(column, column) for column in grid.columns),
        tuple(
            (number, {names.get(column, column): value for column, value in row.items()})
            for number, row in grid.rows
        ),
        grid.bad,
    )


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def is_plain_text(path: Path, asked: Sequence[str], *, encoding: str | None = None) -> bool:
    """Tell whether a file is plain text: its suffix says so and its first line does not name the columns asked for."""
    if _FORMATS.get(path.suffix.lower()) != "text":
        return False
    return _table_in_text(read_decoded(path, encoding=encoding).text, asked) is None


def describe_table(path: Path, **reading: Any) -> TableDescription:
    """Tell how a table is understood: its format, encoding, delimiter, columns, rows, and the first three of them."""
    return read_table(path, **{"on_bad": "skip", **reading}).description
