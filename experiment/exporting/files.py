"""Writes one table into one CSV or Parquet file, with the memory of one batch.

Cells of a CSV file are protected from being read as formulas by a spreadsheet. Text that begins with ``=``, ``+``, ``-``, ``@``
or ``|`` (also full-width), with ``%=``, a tab or a line end gets a leading apostrophe, even after blanks, zero-width characters
or apostrophes; reading the file removes one. Numbers and Booleans are written unchanged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiment.columns import Column

_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u2066-\u206f\ufeff]"
"""Blanks and zero-width characters, which some spreadsheets remove before they read a cell."""
_BEGINNING = rf"(?:[\t\r\n\x0b\x0c\x85\u2028\u2029\ufeff]|{_UNSEEN}*(?:[=+\-@|＝＋－＠｜−]|[%％][=＝]))"
_FORMULA = re.compile(f"'*{_BEGINNING}")
_GUARDED = re.compile(f"'+{_BEGINNING}")


def cell(value: object, *, is_text: bool) -> object:
    """Return the content of a cell: empty for null, TRUE and FALSE for Booleans."""
    if value is None:
        return ""
    if isinstance(value, str):
        # nearly every text begins with a letter or a digit, and needs no search
        is_formula = is_text and not value[:1].isalnum() and _FORMULA.match(value)
        return f"'{value}" if is_formula else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return value


def text_of(given: str) -> str:
    """Return the text that :func:`cell` was given for a cell."""
    return given[1:] if _GUARDED.match(given) else given


def line(values: Iterable[object]) -> str:
    """Return one line of a CSV file with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(list(values))
    return text.getvalue()


BATCH = 5000
ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


def write_csv(file: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a CSV file in UTF-8 with a header row, and return the number of rows below it."""
    number = 0
    kinds = [(name, column.type == "string") for name, column in columns.items()]
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\r\n")
        writer.writerow([cell(name, is_text=True) for name in columns])
        for row in rows:
            writer.writerow([cell(row.get(name), is_text=is_text) for name, is_text in kinds])
            number += 1
    return number


def read_csv(file: Path, columns: Mapping[str, Column]) -> Iterator[dict[str, Any]]:
    """Yield the rows of an exported CSV file: texts without apostrophes, numbers, Booleans; empty cells are null."""
    with file.open("r", encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            yield {text_of(name): _value(given, columns[text_of(name)].type) for name, given in row.items()}


def write_parquet(file: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a Parquet file in batches, and return the number of its rows."""
    number = 0
    schema = pa.schema([(name, ARROW[column.type]) for name, column in columns.items()])
    with pq.ParquetWriter(file, schema) as writer:
        source = iter(rows)
        while batch := list(islice(source, BATCH)):
            arrays = [
                pa.array([row.get(name) for row in batch], field.type)
                for name, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            number += len(batch)
    return number


def _value(given: str, kind: str) -> Any:
    if given == "":
        return None
    if kind == "boolean":
        return given == "TRUE"
    if kind == "string":
        return text_of(given)
    return int(given) if kind == "integer" else float(given)
