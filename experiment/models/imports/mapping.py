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
from jsonschema.exceptions import ValidationError

from experiment.study.yaml_source import YamlSource, read_yaml
from stimuli.corpora.encodings import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError, did_you_mean, missing_column, nearest

Row = Mapping[str, Any]
_LONGEST_CELL = 2**31 - 1
"""Characters; Python's own limit of 131,072 is less than a long reply of a model has."""


@dataclass(frozen=True)
class Columns:
    """A mapping of columns, checked."""

    file: Path  # where it was read
    given: Mapping[str, Any]  # as written

    @property
    def reader_kind(self) -> str:
        """Who answered: human or model."""
        return str(self.given.get("reader_kind", "human"))

    def text(self, name: str, row: TableRow) -> str | None:
        """Return what a row says of one part; None where the mapping does not name it, or the row leaves it empty."""
        given = self.given.get(name)
        return None if given is None else self._value(given, row)

    def texts(self, name: str, row: TableRow) -> dict[str, str]:
        """Return what a row says of a part that has several fields."""
        found = {field: self._value(given, row) for field, given in self.given.get(name, {}).items()}
        return {field: value for field, value in found.items() if value is not None}

    def _value(self, given: Any, row: TableRow) -> str | None:
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
                mend=f"{did_you_mean(value, known)}Mapped are {', '.join(known)}; add {value!r} under map, or correct the row.",
            )
        return str(known[value])


@dataclass(frozen=True)
class TableRow:
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
        """Return a cell as text; None where it is empty."""
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
    """Read a mapping of columns; numbers, true and false in it are text, as they are written."""
    source = read_yaml(
        file, as_text=True, begin="Say what the columns of the table are: reader, item, response and more."
    )
    check_mapping(source)
    return Columns(file, source.data)


@dataclass
class ResponseFile:
    """A file of responses: its rows, one at a time, and its digest."""

    file: Path
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        with self.file.open("rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
        self.sha256 = digest.hexdigest()

    def rows(self) -> Iterator[TableRow]:
        """Iterate over rows of a CSV, TSV or JSONL file, gzipped or not; a ``.csv`` may have semicolons and decimal commas."""
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
                said = {",": "a comma", ";": "a semicolon", "\t": "a tab"}[mark]
                raise UserError(
                    f"{self.file.name}, line {reader.line_num} has another number of cells than the header",
                    mend=f"Cells are split at {said}: quote those that hold one, or correct the row.",
                )
            yield TableRow(self.file, reader.line_num, row, "," if mark == ";" else ".")

    def _refuse_doubles(self, names: Sequence[str]) -> None:
        """Refuse a header that names two columns alike: nothing tells which of them is meant."""
        first: dict[str, int] = {}
        for place, name in enumerate(names, 1):
            if name in first and name:
                raise UserError(
                    f"{self.file.name}: columns {first[name]} and {place} are both called {name!r}",
                    mend="Give each column a different name, or remove one.",
                )
            first[name] = place


def _once(where: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values, refusing a name that stands twice."""
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
    found = [fault for error in _validator().iter_errors(source.data) for fault in _deepest(error)]
    told = sorted({(source.line(_path(fault)), _say(source, fault)) for fault in found})
    if told:
        raise UserError("\n".join(text for _, text in told[:SHOWN_FAULTS]))


def _deepest(error: ValidationError) -> list[ValidationError]:
    """Follow a choice of forms into the one whose names a group of settings has; several forms at once are a fault of their own."""
    if error.validator != "anyOf" or not isinstance(error.instance, dict):
        return [error]
    names = set(error.instance)
    for form, faults in _forms(error):
        if names <= set(form.get("properties", ())) and set(form.get("required", ())) <= names:
            return [deeper for fault in faults for deeper in _deepest(fault)]
    return [error]


def _forms(error: ValidationError) -> list[tuple[Mapping[str, Any], list[ValidationError]]]:
    """Return the groups of settings that a choice of forms allows, those inside other choices too, each with what is wrong."""
    found: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[ValidationError]]] = {}

    def add(choice: ValidationError, before: tuple[Any, ...]) -> None:
        for fault in choice.context or ():
            place = (*before, fault.schema_path[0])
            if fault.validator == "anyOf" and list(fault.path) == []:
                add(fault, place)
                continue
            schema: Any = choice.validator_value
            form = schema[fault.schema_path[0]]
            if form.get("type") == "object":
                found.setdefault(place, (form, []))[1].append(fault)

    add(error, ())
    return list(found.values())


def _path(error: ValidationError) -> tuple[str | int, ...]:
    path = tuple(error.absolute_path)
    return (*path, _unknown(error)[0]) if error.validator == "additionalProperties" else path


def _unknown(error: ValidationError) -> list[str]:
    known = _known(error)
    instance: Any = error.instance
    return [name for name in instance if name not in known]


def _known(error: ValidationError) -> list[str]:
    schema: Any = error.schema
    return list(schema.get("properties", {}))


def _say(source: YamlSource, error: ValidationError) -> str:
    path, schema = _path(error), error.schema
    instance: Any = error.instance
    place = source.place(path)
    about = schema.get("description", "") if isinstance(schema, dict) else ""
    given = json.dumps(instance, ensure_ascii=False)
    rule: Any = error.validator_value
    if error.validator == "additionalProperties":
        known = _known(error)
        close = nearest(str(path[-1]), known)
        hint = f"did you mean {close!r}? " if close else ""
        return f"{place} does not belong in a mapping; {hint}allowed here: {', '.join(known)}"
    if error.validator == "required":
        missing = [name for name in rule if name not in dict(instance)]
        return f"{place}: {', '.join(missing)} is missing; it must be given"
    if error.validator == "enum":
        close = nearest(str(instance), rule)
        return f"{place} is {given}; allowed: {', '.join(rule)}" + (
            f". Did you mean {close!r}?" if close else ""
        )
    if path == ("rt",) and isinstance(instance, str):
        return f"{place} is {given}; it names a column and its unit: write `rt: {{column: {instance}, unit: ms}}`, or `unit: s`"
    if instance in (None, "", [], {}):
        return f"{place} is empty; it should be {_form(about, path)}, or be taken out"
    return f"{place} is {given}; it should be {_form(about, path)}"


def _form(about: str, path: tuple[str | int, ...]) -> str:
    """Return how a part is written."""
    if path[:1] == ("response",) and len(path) == 1:
        return (
            "a column with the answer (`key`, or `{column: key, map: {j: word, f: nonword}}`), or else `{correct: right}`, "
            "a 1/0 column"
        )
    if path[:1] in (("show",), ("intact",), ("condition",)) and len(path) == 1:
        return "a name and its column, as `{string: string}`"
    if path[-1:] == ("map",):
        return "values of the table and what they mean, as `{j: word, f: nonword}`"
    if path[:1] == ("choices",):
        return "a list of two or more options"
    if path[-1:] in (("value",), ("column",), ("source",), ("licence",)) or "map" in path:
        return "text"
    if path == ("rt",):
        return "a column and its unit, as `{column: rt, unit: ms}`"
    named = f" ({about})" if about else ""
    return f"a column, `{{column: NAME, map: {{VALUE: MEANING}}}}`, or `{{value: TEXT}}` for the same in all rows{named}"
