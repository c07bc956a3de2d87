"""Import a table of responses as sessions of a study, with its lists and row order; items come from the study or the table.

Each reader's rows become one session with its own plan, so that models can take the same strings in the same order (``models:
yoke: human``). A session is named by study and reader: importing a table again adds nothing, and a different answer in the same
place is refused. Every row is read before the first is stored, and all are stored or none.

Each error names file, line, value, rule and the nearest name.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

from jsonschema import Draft202012Validator

from experiment.lists import blocks_showing
from experiment.models.imports.fixations import Fixation
from experiment.models.imports.writing import (
    OPERATION,
    TOKENS,
    GivenSession,
    GivenSource,
    Import,
    ImportedResponse,
    is_imported,
    items_for,
    refuse,
)
from experiment.store import Store
from experiment.study import Study
from experiment.study.format import schema_faults
from experiment.study.yaml_source import read_yaml
from experiment.trials import answering_step, choice_settings
from stimuli.corpora.encodings import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError, did_you_mean, missing_column
from stimuli.item import Item

Row = Mapping[str, Any]
_LONGEST_CELL = 2**31 - 1
"""Longest cell in characters; Python's own limit of 131,072 is too small for long replies of models."""

SHOWN_FAULTS = 8
SET = "imported"
DEFAULT_SESSION = "1"
SHORT_MS, LONG_MS = 20.0, 120_000.0
"""Median response times in ms beyond these give a warning: nobody answers in 20 ms, and two minutes are long for one trial."""
_Key = tuple[str, str, tuple[tuple[str, str], ...]]
_Known = dict[str, list[Item]]
"""The items of a study, by id."""


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
    if not isinstance(source.data, dict):
        raise UserError(
            f"{file.name} holds no mapping of columns",
            mend="Write a part of a mapping on each line: `reader: participant`, `item: base`, `response: key`.",
        )
    schema = json.loads(resources.files(__package__).joinpath("mapping.schema.json").read_text("utf-8"))
    faults = {
        (source.line(path), text) for _, path, text in schema_faults(source, Draft202012Validator(schema))
    }
    if faults:
        raise UserError("\n".join(text for _, text in sorted(faults)[:SHOWN_FAULTS]))
    if "response" not in source.data and "fixation" not in source.data:
        raise UserError(
            f"{file.name} lacks 'response', the column with the answers",
            mend="Write `response: COLUMN`; of a table with a fixation in each row, `fixation: {word: COLUMN, duration: COLUMN}`.",
        )
    if "step" in source.data and (other := {"fixation", "further"} & set(source.data)):
        raise UserError(
            f"{source.place(('step',))}: with {' and '.join(sorted(other))}, further answers have no rows of their own",
            mend="Name their columns under `further`, and take `step` out.",
        )
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
        first: dict[str, int] = {}
        for place, column in enumerate(reader.fieldnames or (), 1):
            if column in first and column:
                raise UserError(
                    f"{self.file.name}: columns {first[column]} and {place} are both called {column!r}",
                    mend="Give each column a different name, or remove one.",
                )
            first[column] = place
        for row in reader:
            if None in row or any(value is None for value in row.values()):
                separator = {",": "a comma", ";": "a semicolon", "\t": "a tab"}[mark]
                raise UserError(
                    f"{self.file.name}, line {reader.line_num} has another number of cells than the header",
                    mend=f"Cells are split at {separator}: quote those that hold one, or correct the row.",
                )
            yield TableRow(self.file, reader.line_num, row, "," if mark == ";" else ".")


def _once(where: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from names and values; raise an error for duplicate names."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise UserError(f"{where}: {name!r} is used twice", mend="Use each name once.")
        values[name] = value
    return values


def read_responses(
    study: Study, store: Store | None, sources: Sequence[ResponseFile], columns: Columns
) -> Import:
    """Return an import of tables with the same columns; a study without items gets them from all tables. Nothing is written."""
    tables = [_Table(study, source, columns) for source in sources]
    items = items_for(study, store, [source.file for source in sources], lambda: _items_of(tables))
    plain = _plain(columns.given)
    sessions_of_tables = _sessions_of(tables, items.study.items)
    given = [
        GivenSource(
            table.source.file.name,
            table.source.sha256,
            sessions,
            {"imported": {"source": table.source.file.name, "sha256": table.source.sha256, "columns": plain}},
            table.remarks(sessions),
        )
        for table, sessions in zip(tables, sessions_of_tables, strict=True)
    ]
    return Import(
        items, given, columns.reader_kind, asks_further=not {"step", "further"}.isdisjoint(columns.given)
    )


def _sessions_of(tables: Sequence[_Table], items: Iterable[Item]) -> list[list[GivenSession]]:
    """Return the sessions of tables; raise one error for all rows that are not valid, each different fault once."""
    items_by_id: _Known = {}
    for item in items:
        items_by_id.setdefault(item.item_id, []).append(item)
    sessions = [table.sessions(items_by_id) for table in tables]
    refuse([fault for table in tables for _, fault in sorted(table.faults.items())])
    return sessions


def _items_of(tables: Sequence[_Table]) -> list[Item]:
    """Return the items in the tables, in the order of their first appearance."""
    items: dict[_Key, Item] = {}
    for table in tables:
        if "show" not in table.columns.given:
            raise UserError(
                f"{table.study.folder.name} has no items and {table.columns.file.name} does not say what was shown",
                mend="Give `show` (field to column), or build the study's items first.",
            )
        for row in table.rows:
            with table.checking(row):
                if table.columns.text("step", row) is not None:
                    continue
                item = _item_of(table.study, table.columns, row)
                key = (item.set_name, item.item_id, tuple(sorted(item.condition.items())))
                first = items.setdefault(key, item)
                if (first.shown, first.answer) != (item.shown, item.answer):
                    raise UserError(
                        f"{row.where}: item {item.item_id!r} shows {dict(item.shown)} here and {dict(first.shown)} before "
                        "in the same condition",
                        mend="Let `item` and `condition` name columns that tell apart what was shown.",
                    )
    if any(table.faults for table in tables):
        _sessions_of(tables, items.values())
    return list(items.values())


class _Table:
    """A table that is read once."""

    def __init__(self, study: Study, source: ResponseFile, columns: Columns) -> None:
        self.study, self.source, self.columns = study, source, columns
        self.rows = list(source.rows())
        self.faults: dict[int, UserError] = {}  # the first of each row, by its number
        if not self.rows:
            raise UserError(
                f"{source.file.name} has no rows", mend="Give a table with a header and a row a response."
            )

    @contextmanager
    def checking(self, row: TableRow) -> Iterator[None]:
        """Keep the error that a row raises, so that the next one is read."""
        try:
            yield
        except UserError as fault:
            self.faults.setdefault(row.number, fault)

    def sessions(self, items_by_id: _Known) -> list[GivenSession]:
        """Return the readers' sessions in the order of their first appearance, without rows that have faults."""
        by_session: dict[tuple[str, str], list[TableRow]] = {}
        for row in self.rows:
            with self.checking(row):
                name = (
                    _needed(self.columns, "reader", row),
                    self.columns.text("session", row) or DEFAULT_SESSION,
                )
                by_session.setdefault(name, []).append(row)
        sessions = []
        for number, ((reader, key), rows) in enumerate(by_session.items(), 1):
            list_id, responses = number, []
            with self.checking(rows[0]):
                list_id = self._list(reader, rows, number)
            for trial in self._trials(rows):
                with self.checking(trial[0]):
                    responses.extend(self._trial(trial, items_by_id))
            sessions.append(GivenSession(reader, key, list_id, responses))
        return sessions

    def _trials(self, rows: Sequence[TableRow]) -> Iterator[list[TableRow]]:
        """Yield the rows of each trial: one, or all fixations of an item in a condition, in the order of their first rows."""
        if "fixation" not in self.columns.given:
            yield from ([row] for row in rows)
            return
        trials: dict[tuple[object, ...], list[TableRow]] = {}
        for row in rows:
            with self.checking(row):
                names = [self.columns.text(name, row) for name in ("set", "item")]
                trials.setdefault((*names, *self.columns.texts("condition", row).values()), []).append(row)
        yield from trials.values()

    def _trial(self, rows: Sequence[TableRow], items_by_id: _Known) -> list[ImportedResponse]:
        """Return a trial's own answer and the further ones in columns of its first row."""
        response = _given(self.study, self.columns, rows[0], items_by_id)
        further = self.columns.texts("further", rows[0]).items()
        behind = [
            ImportedResponse(response.where, response.item, answer, step=step) for step, answer in further
        ]
        given = self.columns.given.get("fixation")
        return [response if given is None else replace(response, fixations=_fixations(given, rows)), *behind]

    def _list(self, reader: str, rows: Sequence[TableRow], number: int) -> int:
        listed = self.columns.text("list", rows[0])
        for row in rows[1:]:
            other = self.columns.text("list", row)
            if other != listed:
                raise UserError(
                    f"{row.where}: {reader} is on list {other or '(empty)'} here and on list {listed or '(empty)'} in "
                    f"line {rows[0].number}; a session has one list",
                    mend="Where readers worked through several lists, name the column that tells their sessions apart under "
                    "`session` (it may be that of the list).",
                )
        if listed is None:
            return number
        list_number = _counted(listed)
        if not list_number:
            raise UserError(
                f"{rows[0].where}: the list is {listed!r}; it must be a whole number from 1",
                mend="Map what the table calls its lists to 1, 2, … under `list`.",
            )
        return list_number

    def remarks(self, given: Sequence[GivenSession]) -> list[str]:
        """Return warnings if response times have an implausible magnitude, since their unit may be wrong."""
        if "rt" not in self.columns.given:
            return []
        times = [
            response.rt for session in given for response in session.responses if response.rt is not None
        ]
        column, unit = self.columns.given["rt"]["column"], self.columns.given["rt"]["unit"]
        if not times or SHORT_MS <= (middle := median(times)) <= LONG_MS:
            return []
        other = {("s", True): "ms", ("ms", False): "s"}.get((unit, middle > LONG_MS))
        mend = (
            f"If it holds {other}, write `unit: {other}` in {self.columns.file.name} and import into a new study folder."
            if other
            else "Look whether it holds what it should."
        )
        return [
            f"half of the response times are over {middle:,.10g} ms, with {column} read as {unit}. {mend}"
        ]


def _item_of(study: Study, columns: Columns, row: TableRow) -> Item:
    condition = columns.texts("condition", row)
    _check_condition(study, condition, row)
    item_id = _needed(columns, "item", row)
    set_name = columns.text("set", row) or SET
    choices = columns.given.get("choices") or _labels(study, set_name)
    return Item(
        item_id=item_id,
        set_name=set_name,
        role="test",
        condition=condition,
        shown=columns.texts("show", row),
        intact=columns.texts("intact", row),
        choices=None if choices is None else tuple(choices),
        answer=columns.text("answer", row),
        provenance={
            "source": str(columns.given.get("source", row.file.name)), "source_id": item_id, "split": None,
            "licence": columns.given.get("licence"), "operation": OPERATION, "seed": None,
        },
    )  # fmt: skip


def _check_condition(study: Study, condition: Mapping[str, str], row: TableRow) -> None:
    for factor, levels in study.factors.items():
        level = condition.get(factor)
        if level is None or level not in levels:
            problem = "leaves it empty" if level is None else f"has {level!r}"
            raise UserError(
                f"{row.where} {problem} for the factor {factor}",
                mend=f"Levels are {', '.join(levels)}; map the values of the table to them under `condition`.",
            )


def _given(study: Study, columns: Columns, row: TableRow, items_by_id: _Known) -> ImportedResponse:
    condition = columns.texts("condition", row)
    _check_condition(study, condition, row)
    item_id = _needed(columns, "item", row)
    set_name = columns.text("set", row)
    fitting = [
        item
        for item in items_by_id.get(item_id, ())
        if (set_name is None or item.set_name == set_name) and item.condition == condition
    ]
    if len(fitting) != 1:
        what = "no item" if not fitting else f"{len(fitting)} items"
        raise UserError(
            f"{row.where}: the study has {what} {item_id!r} in the condition {condition}",
            mend="The study's items were made from the table that was imported first. Import both tables with one command into "
            "a new study folder, or let `item`, `set` and `condition` name what items.jsonl has."
            if is_imported(study.items)
            else "Let `item`, `set` and `condition` name what the study's items.jsonl has.",
        )
    item, step = fitting[0], columns.text("step", row)
    shown = columns.texts("show", row)
    if any(item.shown.get(name) != text for name, text in shown.items()):
        raise UserError(
            f"{row.where}: {shown} was shown, and the study's item {item_id!r} shows {dict(item.shown)}",
            mend="Import into the study that showed these items.",
        )
    rt = None
    if "rt" in columns.given:
        rt = row.number_of(columns.given["rt"]["column"])
        if rt is not None and columns.given["rt"]["unit"] == "s":
            rt = round(1000 * rt, 6)
        if rt is not None and rt < 0:
            raise UserError(f"{row.where}: a response time of {rt} ms", mend="Correct or empty the cell.")
    more = {name: _whole(columns, name, row) for name in TOKENS if name in columns.given}
    return ImportedResponse(
        row.where, item, _response(study, columns, row, item) if step is None else _further_response(columns, row), rt,
        more, prompt=columns.text("prompt", row), prediction=columns.text("prediction", row), step=step,
    )  # fmt: skip


def _fixations(given: Mapping[str, Any], rows: Sequence[TableRow]) -> tuple[Fixation, ...]:
    """Return the fixations of a trial in the order of time."""
    in_ms = 1000.0 if given.get("unit") == "s" else 1.0
    first = int(given.get("first", 1))
    timed: list[tuple[float, Fixation]] = []
    for number, row in enumerate(rows):
        duration = row.number_of(given["duration"])
        start = row.number_of(given["start"]) if "start" in given else float(number)
        if duration is None or duration <= 0 or start is None:
            raise UserError(
                f"{row.where}: a fixation needs a duration above 0"
                + (" and a start" if "start" in given else ""),
                mend="Fill the cell, or leave the row out.",
            )
        area = _counted(row.value(given["word"]) or "")
        word = None if area is None or area < first else area - first
        timed.append((start, Fixation(word, duration * in_ms)))
    return tuple(
        fixation for _, fixation in sorted(timed, key=lambda start_and_fixation: start_and_fixation[0])
    )


def _response(study: Study, columns: Columns, row: TableRow, item: Item) -> str | None:
    given = columns.given.get("response")
    if given is None:
        return None
    if not (isinstance(given, Mapping) and "correct" in given):
        return columns.text("response", row)
    is_correct = row.value(str(given["correct"]))
    if is_correct is None:
        return None
    if is_correct not in ("0", "1", "0.0", "1.0", "true", "false", "True", "False", "TRUE", "FALSE"):
        raise UserError(
            f"{row.where}: {given['correct']} is {is_correct!r}; it must be 1 or 0",
            mend="Correct or empty the cell.",
        )
    labels = _two_labels(study, item)
    is_right = is_correct.lower() in ("1", "1.0", "true")
    if item.answer not in labels:
        raise UserError(
            f"{row.where}: the answer {item.answer!r} is none of the labels {' and '.join(labels)}"
        )
    return next(label for label in labels if (label == item.answer) == is_right)


def _further_response(columns: Columns, row: TableRow) -> str | None:
    """Return a further answer: codes of the trials' own answers may have no meaning there, so that others stay as they are."""
    given = columns.given["response"]
    if isinstance(given, Mapping) and "correct" in given:
        raise UserError(
            f"{row.where} has a further answer, and {given['correct']} only says whether the trial's own answer was right",
            mend="Name a column that has both answers under `response`.",
        )
    codes = given.get("map", {}) if isinstance(given, Mapping) else {}
    value = columns.text("response", row) if not codes else row.value(str(given["column"]))
    return value if value is None else str(codes.get(value, value))


def _labels(study: Study, set_name: str) -> tuple[str, ...] | None:
    """Return the labels of a set's trials; None if they come with the item or nothing is chosen."""
    blocks = [screen["block"] for screen in study.get("procedure") if "block" in screen]
    showing = blocks_showing(study, set_name)
    keys = choice_settings(answering_step(blocks[showing[0]]["trial"])).get("keys") if showing else None
    return tuple(map(str, keys)) if isinstance(keys, dict) else None


def _two_labels(study: Study, item: Item) -> tuple[str, ...]:
    labels = _labels(study, item.set_name)
    if labels is None or len(labels) != 2:
        raise UserError(
            f"{study.place('procedure')}: whether an answer was right tells the answer only where there are two labels",
            mend="Map the column with the answers themselves under `response`.",
        )
    return labels


def _needed(columns: Columns, name: str, row: TableRow) -> str:
    value = columns.text(name, row)
    if value is None:
        raise UserError(f"{row.where} has no {name}", mend="Fill the cell, or leave the row out.")
    return value


def _whole(columns: Columns, name: str, row: TableRow) -> int | None:
    text = columns.text(name, row)
    if text is None:
        return None
    number = _counted(text)
    if number is None:
        raise UserError(
            f"{row.where}: {name} is {text!r}; it must be a whole number", mend="Correct or empty the cell."
        )
    return number


def _counted(text: str) -> int | None:
    """Return a non-negative whole number, also as spreadsheets write it (3.0); None for other text."""
    match = re.fullmatch(r"([0-9]{1,15})(?:\.0+)?", text)
    return None if match is None else int(match[1])


def _plain(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {str(key): _plain(value) for key, value in given.items()}
    return [_plain(value) for value in given] if isinstance(given, list) else given
