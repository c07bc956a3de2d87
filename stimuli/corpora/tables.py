"""Reads the user's own materials from plain text, CSV, TSV, XLSX or JSONL, and reports how it understood them.

Encoding and delimiter are found and said; columns can be renamed; a bad row stops the reading or is listed with its
line while the others are read.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rapidfuzz.distance import OSA

from stimuli.corpora.corpus import json_object, opened
from stimuli.corpora.encodings import (
    OLD_WORKBOOK,
    WORKBOOK,
    DecodedFile,
    encoding_name,
    kind_of_bytes,
    read_decoded,
)
from stimuli.errors import UserError, missing_column, together, unknown_name

if TYPE_CHECKING:
    from _csv import Reader

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
class CellLine:
    """Cells of one line, as text without outer spaces."""

    number: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Rows under a header."""

    columns: tuple[str, ...]  # names in the header
    rows: tuple[tuple[int, Row], ...]  # line and cells by column
    bad: tuple[BadRow, ...]  # lines that do not fit the header


def under_header(lines: Iterable[CellLine | BadRow], path: Path) -> Grid:
    """Take the first filled line as the header and put the others under it."""
    header: list[str] = []
    at = 0
    filled: list[CellLine] = []
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
    fitting: list[CellLine] = []
    for line in filled:
        cells = [*line.cells[:width], *_without_empty_end(line.cells[width:])]
        if named <= len(cells) <= width:
            fitting.append(CellLine(line.number, (*cells, *[""] * (width - len(cells)))))
        else:
            mend = "Put a cell that holds the delimiter in double quotes."
            bad.append(BadRow(line.number, f"{len(cells)} cells under {named} columns", mend))
    retained = [
        place for place in range(width) if header[place] or any(line.cells[place] for line in fitting)
    ]
    columns = _names([header[place] for place in retained], fitting, retained, path, at)
    rows = [(line.number, [line.cells[place] for place in retained]) for line in fitting]
    return Grid(
        columns,
        tuple((number, dict(zip(columns, cells, strict=True))) for number, cells in rows),
        tuple(sorted(bad, key=lambda row: row.line)),
    )


def _without_empty_end(cells: Sequence[str]) -> list[str]:
    retained = list(cells)
    while retained and not retained[-1]:
        retained.pop()
    return retained


def _names(
    names: list[str], lines: Sequence[CellLine], places: Sequence[int], path: Path, header_line: int
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
                f"{path}, line {header_line}: column {name!r} occurs twice",
                mend="Give each column a different name.",
            )
    return tuple(names)


MOST_NAMED = 6


def misspelt(column: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from a column by capitals, blanks or a slip of one letter (two in six or more)."""
    plain = _plain(column)
    for name in known:
        most = 2 if len(name) >= 6 else 1 if len(name) >= 4 else 0
        if OSA.distance(plain, _plain(name)) <= most:
            return name
    return None


def _plain(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def unread_columns(place: str, columns: Collection[str], known: Collection[str]) -> list[str]:
    """Return what to say of the columns of a table that nothing reads; empty where all are read."""
    unread = [column for column in columns if column and column not in known]
    absent = [name for name in known if name not in columns]
    for column in unread:
        meant = misspelt(column, absent)
        if meant is not None:
            raise UserError(
                f"{place}: column {column!r} is not read; did you mean {meant!r}?",
                mend=f"Call it {meant!r}, or give it a name that is less like it.",
            )
    if not unread:
        return []
    more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
    return [f"columns that are not read: {', '.join(unread[:MOST_NAMED])}{more}"]


Unit = Literal["line", "paragraph"]
_LINE = re.compile(r"\r\n|\r|\n")


def plain_texts(text: str, unit: Unit) -> Iterator[tuple[int, str]]:
    """Yield each text with the line where it begins; a paragraph's lines are joined by a space."""
    gathered: list[str] = []
    begin = 0
    for number, raw in enumerate([*_LINE.split(text), ""], 1):
        line = raw.strip()
        if unit == "line":
            if line:
                yield number, line
        elif line:
            begin = begin if gathered else number
            gathered.append(line)
        elif gathered:
            yield begin, " ".join(gathered)
            gathered = []


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_LOOKED_AT = 200
_MEND_QUOTE = "Close the double quote, or take it out; inside a quoted cell write it twice."


def delimiter_name(delimiter: str | None) -> str:
    """Return the word for a delimiter."""
    return "none, one column" if delimiter is None else DELIMITERS.get(delimiter, repr(delimiter))


def find_delimiter(text: str, wanted: Sequence[str] = ()) -> str | None:
    """Find the delimiter of a table: comma, semicolon, tab or bar; None for a table of one column.

    Of several in the header, the one under which it has most of the wanted columns, then the one under which most lines have as many
    cells as the header, then the one that gives most cells.
    """
    tried: list[tuple[int, float, int, str]] = []
    for delimiter in DELIMITERS:
        lines = [line for line in islice(_parsed(text, delimiter), _LOOKED_AT) if any(_cells(line))]
        if not lines or isinstance(lines[0], BadRow) or len(lines[0].cells) < 2:
            continue
        header = lines[0].cells
        even = sum(len(_cells(line)) == len(header) for line in lines[1:])
        share = even / len(lines[1:]) if len(lines) > 1 else 1.0
        tried.append((sum(name in header for name in wanted), share, len(header), delimiter))
    return max(tried, key=lambda candidate: candidate[:3])[3] if tried else None


def lines_of(text: str, delimiter: str | None) -> Iterator[CellLine | BadRow]:
    """Yield the lines of a table; one that cannot be read as bad, where it begins."""
    return _parsed(text, delimiter or _absent_from(text))


def _parsed(text: str, delimiter: str) -> Iterator[CellLine | BadRow]:
    """Yield lines; where a stray quote would swallow lines that are rows as they stand, only its own line is bad."""
    written = list(io.StringIO(text, newline=""))
    width: int | None = None
    begin = 0
    reader = _reader(written, delimiter)
    start = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            end = start + reader.line_num
            if _are_rows(written[begin + 1 : end], delimiter, width):
                several = f"lines {begin + 2} to {end} are read as rows"
                regained = f"line {end} is read as a row" if end == begin + 2 else several
                why = f"a double quote is opened there and not closed; {regained}"
                yield BadRow(begin + 1, why, _MEND_QUOTE)
                begin = start = begin + 1
                reader = _reader(written[start:], delimiter)
            else:
                yield BadRow(begin + 1, _in_words(str(error), begin + 1, end), _MEND_QUOTE)
                begin = end
            continue
        width = width or len(cells)
        yield CellLine(begin + 1, tuple(cell.strip() for cell in cells))
        begin = start + reader.line_num


def _reader(written: list[str], delimiter: str) -> Reader:
    return csv.reader(written, delimiter=delimiter, strict=True)


def _are_rows(written: list[str], delimiter: str, width: int | None) -> bool:
    """Return whether lines are rows as wide as the header; the last may itself be broken."""
    if not written or width is None or width < 2:
        return False
    try:
        return all(len(cells) == width for cells in _reader(written[:-1], delimiter)) and (
            written[-1].count(delimiter) >= width - 1
        )
    except csv.Error:
        return False


def _absent_from(text: str) -> str:
    """Return a character that the text does not hold, for a table of one column."""
    private = (chr(code) for code in range(0xE000, 0xF900))
    return next(mark for mark in private if mark not in text)


def _in_words(error: str, begin: int, end: int) -> str:
    if "unexpected end" in error:
        lost = f"; lines {begin + 1} to {end} belong to it" if end > begin else ""
        return f"unexpected end of data: a double quote is opened and never closed{lost}"
    return error


def _cells(line: CellLine | BadRow) -> tuple[str, ...]:
    return line.cells if isinstance(line, CellLine) else ("bad",)


_ZEROS = re.compile(r"0+")
_FIXED = re.compile(r"(?P<group>#,##)?0(?:\.(?P<places>0+))?(?P<percent>%)?")


@dataclass(frozen=True)
class Sheet:
    """Lines of one sheet."""

    name: str  # the sheet
    lines: tuple[CellLine | BadRow, ...]  # rows by their numbers in the sheet
    notes: tuple[
        str, ...
    ]  # what a reader may not expect: other sheets with texts, dates rewritten, merged cells


def read_sheet(path: Path, sheet: str | None = None) -> Sheet:
    """Read a sheet of a workbook."""
    values, formulas = _opened(path, data_only=True), _opened(path, data_only=False)
    filled = [
        worksheet.title
        for worksheet in values.worksheets
        if any(cell.value is not None for row in formulas[worksheet.title].iter_rows() for cell in row)
    ]
    names = [worksheet.title for worksheet in values.worksheets]
    if sheet is not None and sheet not in names:
        raise unknown_name(f"sheet of {path}", sheet, names)
    visible = [name for name in filled if values[name].sheet_state == "visible"]
    if sheet is None and not filled:
        raise UserError(f"{path} holds no rows")
    name = sheet if sheet is not None else (visible or filled)[0]
    notes: list[str] = []
    others = [other for other in filled if other != name]
    if others and sheet is None:
        notes.append(f"sheet {name!r} is read; there are also {', '.join(map(repr, others))}")
    shown, dates = values[name], False
    lines: list[CellLine | BadRow] = []
    for row, meant in zip(shown.iter_rows(), formulas[name].iter_rows(), strict=True):
        lines.append(_line(row, meant))
        dates = dates or any(isinstance(cell.value, (datetime.date, datetime.time)) for cell in row)
    if dates:
        notes.append("dates and times are written like 2026-11-21 14:30:00")
    merged = [str(cells) for cells in formulas[name].merged_cells.ranges]
    if merged:
        notes.append(f"merged cells hold their text in the first cell only: {', '.join(merged[:5])}")
    hidden = [number for number, size in shown.row_dimensions.items() if size.hidden]
    if hidden:
        notes.append(f"hidden rows are read like others: {', '.join(map(str, hidden[:5]))}")
    return Sheet(name, tuple(lines), tuple(notes))


def _opened(path: Path, *, data_only: bool) -> Any:
    load_workbook = import_module("openpyxl").load_workbook  # slow to import, so not before it is needed
    damaged = UserError(
        f"{path} is no complete XLSX workbook", mend="Is the file cut off? Save it again, as XLSX or as CSV."
    )
    with opened(path) as stream:
        kind = kind_of_bytes(stream.read())
    if kind == OLD_WORKBOOK:
        raise UserError(f"{path} is {kind}", mend="Save it as XLSX without a password.")
    if kind is not None and kind != WORKBOOK and "ZIP" not in kind:
        raise UserError(f"{path} is {kind}, not an Excel workbook", mend="Save it as XLSX or as CSV.")
    try:
        return load_workbook(path, data_only=data_only)
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError, SyntaxError):
        raise damaged from None
    except Exception as error:
        if type(error).__module__.startswith(("openpyxl", "zlib", "lxml", "xml")):
            raise damaged from None
        raise


def _line(row: Any, meant: Any) -> CellLine | BadRow:
    number: int = row[0].row if row else 0
    cells: list[str] = []
    for cell, formula in zip(row, meant, strict=True):
        if cell.data_type == "e":
            return BadRow(number, f"cell {cell.coordinate} holds the error {cell.value}", "Mend the formula.")
        if cell.value is None and formula.data_type == "f":
            why = f"cell {cell.coordinate} holds a formula without its result"
            mend = "Open the workbook in a spreadsheet program and save it, or paste the values."
            return BadRow(number, why, mend)
        cells.append(as_seen(cell.value, cell.number_format).strip())
    return CellLine(number, tuple(cells))


def as_seen(value: Any, number_format: str = "General") -> str:
    """Write a cell's value as a spreadsheet shows it, as far as the format is a plain one of digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ") if value.time() != datetime.time(0) else value.date().isoformat()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (int, float)):
        return _number(value, number_format)
    return str(value)


def _number(value: int | float, number_format: str) -> str:
    number = Decimal(repr(value))
    if _ZEROS.fullmatch(number_format) and number == number.to_integral_value():
        return f"{'-' if number < 0 else ''}{abs(int(number)):0{len(number_format)}d}"
    form = _FIXED.fullmatch(number_format)
    if form:
        shifted = number * 100 if form["percent"] else number
        places = len(form["places"] or "")
        rounded = shifted.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        return f"{rounded:{',' if form['group'] else ''}f}{form['percent'] or ''}"
    if number == number.to_integral_value() and abs(number) < 10**15:
        return str(int(number))
    # Spreadsheets keep 15 digits and show no more.
    return f"{Decimal(f'{value:.15g}'):f}" if 1e-9 < abs(value) < 1e15 else f"{value:.15g}"


Format = Literal["text", "csv", "tsv", "xlsx", "jsonl"]
OnBad = Literal["stop", "skip"]
TEXT_COLUMNS = ("item", "text")
_FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".xlsx": "xlsx", ".xlsm": "xlsx", ".tsv": "tsv", ".tab": "tsv",
    ".txt": "text", "": "text",
}  # fmt: skip
_SHOWN = 3
_WIDEST = 60


@dataclass(frozen=True)
class TableDescription:
    """Format, encoding, columns and first rows of a table as it was read, to reveal wrong guesses."""

    file: str  # its name
    format: Format  # text, csv, tsv, xlsx or jsonl
    encoding: str | None  # Python's name of the encoding; None for a workbook
    known_by: str | None  # how the encoding is known, such as byte-order mark or guessed …
    delimiter: str | None  # the delimiter of CSV and TSV
    columns: tuple[str, ...]  # columns after renaming
    rows: int  # how many rows were read
    first: tuple[Mapping[str, Any], ...]  # the first three of them
    notes: tuple[str, ...] = ()  # what a reader may not expect

    def lines(self) -> list[str]:
        """Return the description as lines of text, the first rows last."""
        how = [self.format.upper() if self.format != "text" else "plain text"]
        if self.encoding:
            how.append(f"{encoding_name(self.encoding)} ({self.known_by})")
        if self.format in ("csv", "tsv"):
            how.append(f"delimiter: {delimiter_name(self.delimiter)}")
        rows = f"{self.rows} row{'' if self.rows == 1 else 's'}"
        lines = [f"{self.file}: {', '.join(how)}; {rows}; columns {', '.join(self.columns)}"]
        lines += [f"  note: {note}" for note in self.notes]
        for row in self.first:
            lines.append("  " + " | ".join(f"{name}: {_short(value)}" for name, value in row.items()))
        return lines


@dataclass(frozen=True, eq=False)
class CorpusTable(Sequence[Row]):
    """Rows of a table, and what came with them."""

    # a mapping a row. Cells of CSV, TSV and XLSX are text without outer spaces; JSONL keeps its values
    rows: tuple[Row, ...]
    numbers: tuple[int, ...]  # line of each row in its file; row of the sheet in a workbook
    bad: tuple[BadRow, ...]  # rows that could not be read
    description: TableDescription  # how the table was understood

    def __getitem__(self, place: Any) -> Any:
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
) -> CorpusTable:
    """Read a table of materials."""
    given = columns or {}
    filled = [given.get(name, name) for name in required]
    asked = list(dict.fromkeys([*given.values(), *filled]))
    wanted = form or _FORMATS.get(path.suffix.lower(), "csv")
    decoded: DecodedFile | None = None
    notes: list[str] = []
    if wanted == "xlsx":
        read = read_sheet(path, sheet)
        grid, notes = under_header(read.lines, path), list(read.notes)
    else:
        decoded = read_decoded(path, encoding=encoding, language=language)
        if wanted == "text" and form is None and asked and (mark := _table_in_text(decoded.text, asked)):
            wanted, delimiter = "csv", delimiter or mark
        if wanted == "text":
            texts = [(n, {"item": str(n), "text": text}) for n, text in plain_texts(decoded.text, unit)]
            grid = Grid(TEXT_COLUMNS, tuple(texts), ())
        elif wanted == "jsonl":
            grid = _json_grid(decoded.text, path)
        else:
            tabbed = wanted == "tsv" and "\t" in decoded.text
            delimiter = delimiter or ("\t" if tabbed else find_delimiter(decoded.text, asked))
            grid = under_header(lines_of(decoded.text, delimiter), path)
        if decoded.is_guess and decoded.witnesses():
            notes.append(
                f"the encoding is guessed; do these words look right? {', '.join(decoded.witnesses())}"
            )
    if not grid.rows and not grid.bad:
        raise UserError(
            f"{path} holds no rows",
            mend="Fill it: a table with a line of column names and one row per item, or plain text with one item per line.",
        )
    grid = _renamed(_checked(grid, asked, filled, path, each_row=wanted == "jsonl"), given, path)
    if grid.bad and (on_bad == "stop" or not grid.rows):
        raise together([row.error(path) for row in grid.bad])
    rows = tuple(row for _, row in grid.rows)
    description = TableDescription(
        file=path.name,
        format=wanted,
        encoding=decoded.encoding if decoded else None,
        known_by=decoded.known_by if decoded else None,
        delimiter=delimiter if wanted in ("csv", "tsv") else None,
        columns=grid.columns,
        rows=len(rows),
        first=rows[:_SHOWN],
        notes=(*notes, *([f"{len(grid.bad)} bad rows are left out"] if grid.bad else [])),
    )
    return CorpusTable(rows, tuple(number for number, _ in grid.rows), grid.bad, description)


def _table_in_text(text: str, asked: Sequence[str]) -> str | None:
    """Return the delimiter under which the first line of a text file names all the columns asked for."""
    delimiter = find_delimiter(text, asked)
    lines = (line.cells for line in lines_of(text, delimiter) if isinstance(line, CellLine))
    first = next(filter(any, lines), None)
    return delimiter if first is not None and set(asked) <= set(first) else None


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
    rows = (
        (number, {names.get(column, column): value for column, value in row.items()})
        for number, row in grid.rows
    )
    return Grid(tuple(names.get(column, column) for column in grid.columns), tuple(rows), grid.bad)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def is_plain_text(path: Path, asked: Sequence[str], *, encoding: str | None = None) -> bool:
    """Return whether a file is plain text by its suffix, without the requested columns in its first line."""
    if _FORMATS.get(path.suffix.lower()) != "text":
        return False
    return _table_in_text(read_decoded(path, encoding=encoding).text, asked) is None
