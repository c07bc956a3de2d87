"""Sheets of XLSX workbooks, cells as text as they are seen: 007 stays 007, 3 is no 3.0, dates become 2026-11-21."""

from __future__ import annotations

import datetime
import re
import zipfile
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from stimuli.corpora.cells import BadRow, Line
from stimuli.corpora.file_kinds import OLD_WORKBOOK, WORKBOOK, kind_of_bytes
from stimuli.errors import UserError, unknown_name

_ZEROS = re.compile(r"0+")
_FIXED = re.compile(r"(?P<group>#,##)?0(?:\.(?P<places>0+))?(?P<percent>%)?")


@dataclass(frozen=True)
class Sheet:
    """Lines of one sheet.

    Parameters
    ----------
    name : str
        The sheet.
    lines : tuple of Line or BadRow
        Rows by their numbers in the sheet.
    notes : tuple of str
        What a reader may not expect: other sheets with texts, dates rewritten, merged cells.
    """

    name: str
    lines: tuple[Line | BadRow, ...]
    notes: tuple[str, ...]


def read_sheet(path: Path, sheet: str | None = None) -> Sheet:
    """Read a sheet of a workbook."""
    values, formulas = _opened(path, data_only=True), _opened(path, data_only=False)
    filled = [one.title for one in values.worksheets if _is_filled(formulas[one.title])]
    names = [one.title for one in values.worksheets]
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
    lines: list[Line | BadRow] = []
    for row, meant in zip(shown.iter_rows(), formulas[name].iter_rows(), strict=True):
        line = _line(row, meant)
        lines.append(line)
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
    try:
        with path.open("rb") as stream:
            kind = kind_of_bytes(stream.read())
        if kind == OLD_WORKBOOK:
            raise UserError(f"{path} is {kind}", mend="Save it as XLSX without a password.")
        if kind is not None and kind != WORKBOOK and "ZIP" not in kind:
            raise UserError(f"{path} is {kind}, not an Excel workbook", mend="Save it as XLSX or as CSV.")
        return load_workbook(path, data_only=data_only)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a table") from None
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError, SyntaxError):
        raise damaged from None
    except Exception as error:
        if type(error).__module__.startswith(("openpyxl", "zlib", "lxml", "xml")):
            raise damaged from None
        raise


def _is_filled(sheet: Any) -> bool:
    return any(cell.value is not None for row in sheet.iter_rows() for cell in row)


def _line(row: Any, meant: Any) -> Line | BadRow:
    number: int = row[0].row if row else 0
    cells: list[str] = []
    for cell, formula in zip(row, meant, strict=True):
        if cell.data_type == "e":
            return BadRow(number, f"cell {cell.coordinate} holds the error {cell.value}", "Mend the formula.")
        if cell.value is None and formula.data_type == "f":
            return BadRow(
                number,
                f"cell {cell.coordinate} holds a formula without its result",
                "Open the workbook in a spreadsheet program and save it, or paste the values.",
            )
        cells.append(as_seen(cell.value, cell.number_format).strip())
    return Line(number, tuple(cells))


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
