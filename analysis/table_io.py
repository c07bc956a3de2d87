"""Finds and reads the tables of a study's analysis export or data export, column by column and batch by batch."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from stimuli.errors import UserError

TRIALS, REGIONS, ITEMS, DICTIONARY = "trials.parquet", "regions.parquet", "items.parquet", "dictionary.json"
BATCH = 50_000
"""Rows read at a time where a table is read in batches."""

_LEVELS = re.compile(
    r"level of the factor (.+?)(?:, one for a whole session)?: (.+); the first is the reference$"
)
_GUARDED = re.compile(r"^'+(?=[=+\-@\t\r])")
_TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_LAG_S = 5.0


@dataclass(frozen=True)
class TableSource:
    """The location of one study's tables."""

    folder: Path  # the folder with the tables
    trials: Path  # the file of trials, Parquet or CSV
    regions: Path | None  # None where there is no such file
    items: Path | None
    dictionary: dict[str, Any]  # ``dictionary.json``, or what an export's codebook and plan say of it
    types: dict[str, dict[str, str]]  # types of columns (string, integer, number, boolean) by table, for CSV
    remarks: tuple[str, ...] = ()  # what a reader of the tables should know about where they come from


def find_tables(folder: Path) -> TableSource:
    """Find the tables in a study's folder, an analysis export, or a data export."""
    if (folder / "study.yaml").is_file() and not (folder / TRIALS).is_file():
        return _of_study(folder)
    if (folder / DICTIONARY).is_file():
        return _of_handover(folder)
    if (codebook := _codebook(folder)) is not None:
        return _of_export(folder, codebook)
    raise UserError(
        f"{folder / DICTIONARY} is missing",
        mend="Give a study's folder, a folder that `wrods report` wrote, or an export as csv, parquet or psych-ds.",
    )


def _of_study(folder: Path) -> TableSource:
    candidates = [*folder.glob(f"reports/*/data/{DICTIONARY}"), *folder.glob(f"handover/{DICTIONARY}")]
    dictionaries = sorted(candidates, key=lambda file: file.stat().st_mtime)
    if not dictionaries:
        raise UserError(
            f"{folder} is a study whose tables were never exported",
            mend=f"Run `wrods report {folder}`, or export it: `wrods export {folder} --format parquet --out DIR`.",
        )
    newest = dictionaries[-1]
    source = _of_handover(newest.parent)
    if _is_older(source.dictionary.get("created_at"), folder / "study.db"):
        remark = f"{folder / 'study.db'} has trials that are newer than its exported tables ({newest.parent})"
        source = replace(source, remarks=(*source.remarks, remark))
    return source


def _is_older(created: object, store: Path) -> bool:
    """Return whether the study's store holds trials newer than the analysis export, without a lock; False if unknown."""
    try:
        moment = datetime.fromisoformat(str(created))
        log = store.with_name(f"{store.name}-wal")
        if log.is_file() and log.stat().st_size and log.stat().st_mtime > moment.timestamp() + _LAG_S:
            return True
        with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as opened:
            (newest,) = opened.execute("SELECT max(received_at) FROM trials").fetchone()
        return newest is not None and datetime.fromisoformat(str(newest)) > moment + timedelta(seconds=1)
    except (sqlite3.Error, OSError, ValueError, TypeError):
        return False


def _of_handover(folder: Path) -> TableSource:
    dictionary = _read_json(folder / DICTIONARY)
    if not isinstance(dictionary.get("factors"), dict):
        raise UserError(f"{folder / DICTIONARY} has no 'factors'", mend="Export the study again.")
    for name, spec in dictionary["factors"].items():
        if not isinstance(spec, dict) or len(spec.get("levels", [])) < 1:
            raise UserError(
                f"{folder / DICTIONARY}: factor {name!r} has no levels", mend="Export the study again."
            )
    if not (folder / TRIALS).is_file():
        raise UserError(
            f"{folder / TRIALS} is missing", mend="A report is made from a study or its folder handover/."
        )
    files = {name: folder / name if (folder / name).is_file() else None for name in (REGIONS, ITEMS)}
    return TableSource(folder, folder / TRIALS, files[REGIONS], files[ITEMS], dictionary, {})


def _of_export(folder: Path, codebook: Path) -> TableSource:
    types, factors = _read_codebook(codebook)
    trials = _table_file(folder, "trials")
    if trials is None:
        raise UserError(
            f"{folder} holds a codebook and no trials table; an export for jsPsych has none",
            mend="Export the study again, as csv, parquet or psych-ds.",
        )
    plans = (file for file in (folder / "plan.json", folder / "analysis" / "plan.json") if file.is_file())
    plan = next(map(_read_json, plans), {})
    entries = {name: value for name, value in plan.items() if name not in ("reference", "coding")}
    dictionary = {"planned": {}, "exclude": {}, "between": {}, **entries, "factors": factors}
    remarks = () if plan else (
        "the export holds no analysis plan (plan.json): bounds of times and planned comparisons are not known",
    )  # fmt: skip
    regions, items = (_table_file(folder, name) for name in ("regions", "items"))
    return TableSource(folder, trials, regions, items, dictionary, types, remarks)


def _codebook(folder: Path) -> Path | None:
    files = (folder / "codebook.md", folder / "documentation" / "codebook.md")
    return next((file for file in files if file.is_file()), None)


def _table_file(folder: Path, name: str) -> Path | None:
    plain = [folder / f"{name}.parquet", folder / f"{name}.csv"]
    letters = re.sub(r"[^a-zA-Z0-9]", "", name)
    dataset = sorted((folder / "data").glob(f"*_description-{letters}_data.csv"))
    return next((file for file in (*plain, *dataset) if file.is_file()), None)


def table_beside(folder: Path, name: str) -> pd.DataFrame | None:
    """Read a table that accompanies the trials of some studies, from either export; None if it is absent."""
    file = _table_file(folder, name)
    if file is None:
        return None
    codebook = _codebook(folder) if file.suffix == ".csv" else None
    types = None if codebook is None else _read_codebook(codebook)[0].get(name)
    return as_frame(read_columns(file, types=types))


def found_above(folder: Path, name: str) -> Path | None:
    """Return what the study in which tables lie has at a place, looked for from their folder up; None where there is nothing."""
    start = folder.resolve()
    return next((parent / name for parent in (start, *start.parents[:4]) if (parent / name).exists()), None)


def joined_beside(trials: pd.DataFrame, folder: Path, name: str) -> pd.DataFrame | None:
    """Return the trials with rows in an accompanying table, joined with these; None if there is no such table."""
    table = table_beside(folder, name)
    if table is None:
        return None
    numbers = {"trial_index": float, "attempt": float}
    return trials.astype(numbers).merge(table.astype(numbers), on=["session_id", *numbers])


def _read_codebook(file: Path) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Any]]]:
    """Read types of columns by table, and factors with levels, from an export's codebook."""
    types: dict[str, dict[str, str]] = {}
    factors: dict[str, dict[str, Any]] = {}
    table = ""
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("## "):
            table = line.removeprefix("## ").strip()
            types[table] = {}
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| `") else []
        if len(cells) < 4:
            continue
        name = cells[0].strip("`| ")
        types[table][name] = cells[1]
        match = _LEVELS.fullmatch(cells[-1].rstrip("| "))
        if table == "trials" and match:
            levels = match[2].split(", ")
            factors[name] = {"levels": levels, "reference": levels[0]}
    return types, factors


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not JSON: {error}", mend="Export the study again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} has no 'factors'", mend="Export the study again.")
    return content


def column_names(file: Path) -> list[str]:
    """Return the names of a table's columns."""
    if file.suffix == ".csv":
        with csv.open_csv(file) as opened:
            return list(opened.schema.names)
    try:
        names = pq.read_schema(file).names
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is not a readable Parquet file: {error}") from error
    return [name for name in names if not name.startswith("__index_level_")]


def batches(
    file: Path, columns: Collection[str] | None = None, types: dict[str, str] | None = None, rows: int = BATCH
) -> Iterator[pa.RecordBatch]:
    """Read a table in batches, in order, with the memory of one."""
    chosen = [name for name in column_names(file) if columns is None or name in columns]
    try:
        if file.suffix != ".csv":
            with pq.ParquetFile(file) as opened:
                yield from opened.iter_batches(batch_size=rows, columns=chosen)
            return
        column_types = {name: _TYPES[(types or {}).get(name, "string")] for name in chosen}
        convert = csv.ConvertOptions(
            column_types=column_types, include_columns=chosen, null_values=[""], strings_can_be_null=True,
            quoted_strings_can_be_null=True, true_values=["TRUE"], false_values=["FALSE"],
        )  # fmt: skip
        parse = csv.ParseOptions(newlines_in_values=True)
        read = csv.ReadOptions(block_size=16 << 20)
        with csv.open_csv(file, read, parse, convert) as blocks:
            for block in blocks:
                yield _without_guards(block)
    except (OSError, ValueError, pa.ArrowInvalid) as error:
        raise UserError(f"{file} cannot be read: {error}", mend="Export the study again.") from error


def _without_guards(block: pa.RecordBatch) -> pa.RecordBatch:
    """Take away the apostrophe that keeps a spreadsheet from running a cell."""
    columns = []
    for index, field in enumerate(block.schema):
        column = block.column(index)
        if pa.types.is_string(field.type):
            texts = column.to_pylist()
            if any(text is not None and _GUARDED.match(text) for text in texts):
                texts = [text[1:] if text is not None and _GUARDED.match(text) else text for text in texts]
                column = pa.array(texts, pa.string())
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=block.schema)


def read_columns(
    file: Path, columns: Collection[str] | None = None, types: dict[str, str] | None = None
) -> dict[str, pa.ChunkedArray]:
    """Read columns of a table whole; equal texts of a column are kept once (dictionary encoding, batch by batch)."""
    parts: dict[str, list[pa.Array]] = {}
    for batch in batches(file, columns, types):
        for index, field in enumerate(batch.schema):
            column = batch.column(index)
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
                column = column.dictionary_encode()
            parts.setdefault(field.name, []).append(column)
    if not parts:
        names = [name for name in column_names(file) if columns is None or name in columns]
        return {name: pa.chunked_array([pa.array([], pa.null())]) for name in names}
    return {name: pa.chunked_array(chunks).unify_dictionaries() for name, chunks in parts.items()}


def as_series(name: str, column: pa.ChunkedArray) -> pd.Series[Any]:
    """Turn a column into a series: text as objects that equal cells share, numbers as floats, truth values as objects."""
    if pa.types.is_dictionary(column.type):
        chunks = column.chunks
        values = (
            np.array([*chunks[0].dictionary.to_pylist(), None], dtype=object) if chunks else np.array([None])
        )
        codes = [np.asarray(chunk.indices.fill_null(len(values) - 1), dtype=np.int64) for chunk in chunks]
        return pd.Series(values[np.concatenate(codes)] if codes else [], name=name, dtype=object)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        try:
            return pd.Series(column.cast(pa.float64()).to_numpy(zero_copy_only=False), name=name)
        except pa.ArrowInvalid:  # a seed of 64 bits is no float
            return pd.Series(column.to_pylist(), name=name, dtype=object)
    return pd.Series(column.to_pylist(), name=name, dtype=object)


def as_frame(columns: dict[str, pa.ChunkedArray]) -> pd.DataFrame:
    """Turn columns into a table; each is let go of as soon as it is turned."""
    series = {}
    for name in list(columns):
        series[name] = as_series(name, columns.pop(name))
    return pd.DataFrame(series, copy=False)
