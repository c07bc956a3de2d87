"""Lines of CSV and TSV files: the delimiter is found, quoted cells may hold anything, a broken line is named."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from stimuli.corpora.cells import BadRow, Line
from stimuli.errors import UserError

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_LOOKED_AT = 200
_MEND_QUOTE = "Close the double quote, or take it out; inside a quoted cell write it twice."


def delimiter_name(delimiter: str | None) -> str:
    """Return the word for a delimiter."""
    return "none, one column" if delimiter is None else DELIMITERS.get(delimiter, repr(delimiter))


def find_delimiter(text: str, wanted: Sequence[str] = ()) -> str | None:
    """Find the delimiter of a table: comma, semicolon, tab or bar; None for a table of one column.

    The one delimiter of the header is it. Of several, the one under which the header has most of the wanted
    columns, then the one under which most lines have as many cells as the header, then the one that gives most cells.
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
    return max(tried, key=lambda one: one[:3])[3] if tried else None


def lines_of(text: str, delimiter: str | None) -> Iterator[Line | BadRow]:
    """Yield the lines of a table; one that cannot be read as bad, where it begins.

    ``delimiter``: one character; None for one column.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise UserError(f"delimiter {delimiter!r} is not one character")
    return _parsed(text, delimiter or _absent_from(text))


def _parsed(text: str, delimiter: str) -> Iterator[Line | BadRow]:
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
                regained = (
                    f"line {end} is read as a row"
                    if end == begin + 2
                    else f"lines {begin + 2} to {end} are read as rows"
                )
                yield BadRow(
                    begin + 1,
                    f"a double quote is opened there and not closed; {regained}",
                    _MEND_QUOTE,
                )
                begin = start = begin + 1
                reader = _reader(written[start:], delimiter)
            else:
                yield BadRow(begin + 1, _in_words(str(error), begin + 1, end), _MEND_QUOTE)
                begin = end
            continue
        width = width or len(cells)
        yield Line(begin + 1, tuple(cell.strip() for cell in cells))
        begin = start + reader.line_num


def _reader(written: list[str], delimiter: str) -> Reader:
    return csv.reader(written, delimiter=delimiter, strict=True)


def _are_rows(written: list[str], delimiter: str, width: int | None) -> bool:
    """Tell whether lines are rows as wide as the header; the last may itself be broken.

    In a table of one column any line would be one, so there it is not to be told.
    """
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


def _cells(line: Line | BadRow) -> tuple[str, ...]:
    return line.cells if isinstance(line, Line) else ("bad",)
