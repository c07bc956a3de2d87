"""What the columns of a table of responses are, as a small YAML file says it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from experiment.models.imports.mapping_format import check_mapping
from experiment.study.yaml_source import read_yaml
from stimuli.corpora.encodings import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError, did_you_mean, missing_column

Row = Mapping[str, Any]
_LONGEST_CELL = 2**31 - 1
"""Characters; Python's own limit of 131,072 is less than a long reply of a model has."""


@dataclass(frozen=True)
class Columns:
    """A mapping of columns, checked.

    Attributes
    ----------
    file : Path
        Where it was read.
    given : mapping
        As written.
    """

    file: Path
    given: Mapping[str, Any]

    @property
    def reader_kind(self) -> str:
        """Who answered: human or model."""
        return str(self.given.get("reader_kind", "human"))

    def text(self, name: str, row: Line) -> str | None:
        """Return what a row says of one part; None where the mapping does not name it, or the row leaves it empty.

        Raises
        ------
        UserError
            The column is not there, or its value is none of those mapped.
        """
        given = self.given.get(name)
        return None if given is None else self._value(given, row)

    def texts(self, name: str, row: Line) -> dict[str, str]:
        """Return what a row says of a part that has several fields."""
        found = {field: self._value(given, row) for field, given in self.given.get(name, {}).items()}
        return {field: value for field, value in found.items() if value is not None}

    def _value(self, given: Any, row: Line) -> str | None:
        if isinstance(given, Mapping) and "value" in given:
            return str(given["value"])
        column = str(given["column"] if isinstance(given, Mapping) else given)
        value = row.value(column)
        known = given.get("map") if isinstance(given, Mapping) else None
        if value is None or known is None:
            return value
        if value not in known:
            raise UserError(
                f"{row.where}: {column} is {value!r}, which {self.file.name} does not map",
                mend=f"{did_you_mean(value, known)}Mapped are {', '.join(known)}; add {value!r} under map, or mend the row.",
            )
        return str(known[value])


@dataclass(frozen=True)
class Line:
    """One row of a table, with its place, and the mark of its decimals."""

    file: Path
    number: int
    values: Row
    decimal_mark: str = "."

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file.name}, line {self.number}"

    def value(self, column: str) -> str | None:
        """Return a cell as text; None where it is empty.

        Raises
        ------
        UserError
            There is no such column.
        """
        if column not in self.values:
            raise missing_column(self.where, column, map(str, self.values))
        value = self.values[column]
        if value is None or value == "":
            return None
        return json.dumps(value) if isinstance(value, list | dict | bool) else str(value)

    def number_of(self, column: str) -> float | None:
        """Return a cell as a number.

        Raises
        ------
        UserError
            It is none.
        """
        text = self.value(column)
        if text is None:
            return None
        try:
            number = float(text if self.decimal_mark == "." else text.replace(self.decimal_mark, ".", 1))
        except ValueError:
            number = float("nan")
        if number != number or number in (float("inf"), float("-inf")):
            raise UserError(
                f"{self.where}: {column} is {text!r}; it must be a number", mend="Mend or empty the cell."
            )
        return number


def read_mapping(file: Path) -> Columns:
    """Read a mapping of columns; numbers, true and false in it are text, as they are written.

    Raises
    ------
    UserError
        It is no YAML, or says what a mapping does not.
    """
    source = read_yaml(
        file, as_text=True, begin="Say what the columns of the table are: reader, item, response and more."
    )
    check_mapping(source)
    return Columns(file, source.data)


@dataclass
class Source:
    """A file of responses: its rows, one at a time, and its digest."""

    file: Path
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        with self.file.open("rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
        self.sha256 = digest.hexdigest()

    def rows(self) -> Iterator[Line]:
        """Iterate over rows of a CSV, TSV or JSONL file, gzipped or not.

        Raises
        ------
        UserError
            A line is no JSON object, a name stands twice in it or in the header, a row has another number of cells than
            the header, or the text is not UTF-8.

        Notes
        -----
        A ``.csv`` whose header has semicolons and no comma is split at semicolons, as spreadsheets write it where numbers
        have a decimal comma; its numbers may have one.
        """
        name = self.file.name.removesuffix(".gz")
        opener: Any = gzip.open if self.file.suffix == ".gz" else open
        with opener(self.file, "rb") as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
            try:
                if kind_of_bytes(raw.peek(16)) is not None:
                    refuse_other_kinds(raw.read(), self.file)
                yield from (
                    self._lines(text) if name.endswith((".jsonl", ".ndjson")) else self._cells(text, name)
                )
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{self.file.name} is not UTF-8: {error.reason}",
                    mend="Save it as UTF-8; of a spreadsheet or a Parquet file, save the table as CSV.",
                ) from error
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise UserError(
                    f"{self.file.name} is no whole gzip file: {error}", mend="Copy or download it anew."
                ) from error

    def _lines(self, text: io.TextIOWrapper) -> Iterator[Line]:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                values = json.loads(
                    line, object_pairs_hook=partial(_once, f"{self.file.name}, line {number}")
                )
            except json.JSONDecodeError as error:
                raise UserError(
                    f"{self.file.name}, line {number}: {error.msg}", mend="Each line is one JSON object."
                ) from error
            if not isinstance(values, dict):
                raise UserError(
                    f"{self.file.name}, line {number} is no JSON object", mend="Write {…} on each line."
                )
            yield Line(self.file, number, values)

    def _cells(self, text: io.TextIOWrapper, name: str) -> Iterator[Line]:
        head = text.readline()
        text.seek(0)
        mark = "\t" if name.endswith(".tsv") else ";" if ";" in head and "," not in head else ","
        csv.field_size_limit(_LONGEST_CELL)
        reader = csv.DictReader(text, delimiter=mark)
        self._refuse_doubles(reader.fieldnames or ())
        for row in reader:
            if None in row or any(value is None for value in row.values()):
                said = {",": "a comma", ";": "a semicolon", "\t": "a tab"}[mark]
                raise UserError(
                    f"{self.file.name}, line {reader.line_num} has another number of cells than the header",
                    mend=f"Cells are split at {said}: quote those that hold one, or mend the row.",
                )
            yield Line(self.file, reader.line_num, row, "," if mark == ";" else ".")

    def _refuse_doubles(self, names: Sequence[str]) -> None:
        """Refuse a header that names two columns alike: nothing tells which of them is meant."""
        first: dict[str, int] = {}
        for place, name in enumerate(names, 1):
            if name in first and name:
                raise UserError(
                    f"{self.file.name}: columns {first[name]} and {place} are both called {name!r}",
                    mend="Give each column a name of its own, or take one out.",
                )
            first[name] = place


def _once(where: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values, refusing a name that stands twice."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise UserError(f"{where}: {name!r} stands twice", mend="Let each name stand once.")
        values[name] = value
    return values
