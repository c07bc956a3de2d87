"""The columns of a table of responses, as described by a small YAML file and checked against its schema.

Each error names file, line, value, rule and the nearest name.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from experiment.study.format import schema_faults
from experiment.study.yaml_source import YamlSource, read_yaml
from stimuli.corpora.encodings import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError, did_you_mean, missing_column

Row = Mapping[str, Any]
_LONGEST_CELL = 2**31 - 1
"""Longest cell in characters; Python's own limit of 131,072 is too small for long replies of models."""


@dataclass(frozen=True)
class Columns:
    """A validated mapping of columns."""

    file: Path  # the mapping's file
    given: Mapping[str, Any]  # as written

    @property
    def reader_kind(self) -> str:
        """The kind of reader: human or model."""
        return str(self.given.get("reader_kind", "human"))

    def text(self, name: str, row: TableRow) -> str | None:
        """Return a row's value for one field; None if the mapping does not include it, or the cell is empty."""
        given = self.given.get(name)
        return None if given is None else self._value(given, row)

    def texts(self, name: str, row: TableRow) -> dict[str, str]:
        """Return a row's values for a field with several parts."""
        values = {field: self._value(given, row) for field, given in self.given.get(name, {}).items()}
        return {field: value for field, value in values.items() if value is not None}

    def _value(self, given: Any, row: TableRow) -> str | None:
        if isinstance(given, Mapping) and "value" in given:
            return str(given["value"])
        column = str(given["column"] if isinstance(given, Mapping) else given)
        value = row.value(column)
        mapping = given.get("map") if isinstance(given, Mapping) else None
        if value is None or mapping is None:
            return value
        if value not in mapping:
            raise UserError(
                f"{row.where}: {column} is {value!r}, which {self.file.name} does not map",
                mend=f"{did_you_mean(value, mapping)}Mapped are {', '.join(mapping)}; add {value!r} under map, or correct the row.",
            )
        return str(mapping[value])


@dataclass(frozen=True)
class TableRow:
    """One row of a table, with its position and the table's decimal separator."""

    file: Path
    number: int
    values: Row
    decimal_mark: str = "."

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file.name}, line {self.number}"

    def value(self, column: str) -> str | None:
        """Return a cell as text; None if it is empty."""
        if column not in self.values:
            raise missing_column(self.where, column, map(str, self.values))
        value = self.values[column]
        if value is None or value == "":
            return None
        return json.dumps(value) if isinstance(value, list | dict | bool) else str(value)

    def number_of(self, column: str) -> float | None:
        """Return a cell as a number."""
        text = self.value(column)
        if text is None:
            return None
        try:
            number = float(text if self.decimal_mark == "." else text.replace(self.decimal_mark, ".", 1))
        except ValueError:
            number = float("nan")
        if number != number or number in (float("inf"), float("-inf")):
            raise UserError(
                f"{self.where}: {column} is {text!r}; it must be a number", mend="Correct or empty the cell."
            )
        return number


def read_mapping(file: Path) -> Columns:
    """Return a mapping of columns; its numbers, true and false are text, as written."""
    source = read_yaml(
        file, as_text=True, begin="Say what the columns of the table are: reader, item, response and more."
    )
    check_mapping(source)
    return Columns(file, source.data)


@dataclass
class ResponseFile:
    """A file of responses: an iterator over its rows, and its digest."""

    file: Path
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        with self.file.open("rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
        self.sha256 = digest.hexdigest()

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows of a CSV, TSV or JSONL file, gzipped or not; a ``.csv`` may have semicolons and decimal commas."""
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
                    f"{self.file.name} is not a complete gzip file: {error}",
                    mend="Copy or download it again.",
                ) from error

    def _lines(self, text: io.TextIOWrapper) -> Iterator[TableRow]:
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
                    f"{self.file.name}, line {number} is not a JSON object", mend="Write {…} on each line."
                )
            yield TableRow(self.file, number, values)

    def _cells(self, text: io.TextIOWrapper, name: str) -> Iterator[TableRow]:
        head = text.readline()
        text.seek(0)
        mark = "\t" if name.endswith(".tsv") else ";" if ";" in head and "," not in head else ","
        csv.field_size_limit(_LONGEST_CELL)
        reader = csv.DictReader(text, delimiter=mark)
        self._refuse_doubles(reader.fieldnames or ())
        for row in reader:
            if None in row or any(value is None for value in row.values()):
                separator = {",": "a comma", ";": "a semicolon", "\t": "a tab"}[mark]
                raise UserError(
                    f"{self.file.name}, line {reader.line_num} has another number of cells than the header",
                    mend=f"Cells are split at {separator}: quote those that hold one, or correct the row.",
                )
            yield TableRow(self.file, reader.line_num, row, "," if mark == ";" else ".")

    def _refuse_doubles(self, names: Sequence[str]) -> None:
        """Raise an error if a header has two columns with the same name."""
        first: dict[str, int] = {}
        for place, name in enumerate(names, 1):
            if name in first and name:
                raise UserError(
                    f"{self.file.name}: columns {first[name]} and {place} are both called {name!r}",
                    mend="Give each column a different name, or remove one.",
                )
            first[name] = place


def _once(where: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from names and values; raise an error for duplicate names."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise UserError(f"{where}: {name!r} is used twice", mend="Use each name once.")
        values[name] = value
    return values


SHOWN_FAULTS = 8


@cache
def _validator() -> Draft202012Validator:
    text = resources.files(__package__).joinpath("mapping.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def check_mapping(source: YamlSource) -> None:
    """Raise one UserError that lists the errors of a mapping in the order of its lines."""
    if not isinstance(source.data, dict):
        raise UserError(
            f"{source.file.name} holds no mapping of columns",
            mend="Write a part of a mapping on each line: `reader: participant`, `item: base`, `response: key`.",
        )
    faults = sorted(
        {(source.line(path), message) for _, path, message in schema_faults(source, _validator())}
    )
    if faults:
        raise UserError("\n".join(text for _, text in faults[:SHOWN_FAULTS]))
