"""Finds and reads the tables of a study, checks that they are what the contract says, and says whose rows they are."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from analysis.answers import without_valid_answers
from analysis.exclusions import NO_RESPONSE, flag_trials, newest_design, same_prompts, time_reasons
from analysis.factorial import cells_shown
from analysis.names import as_given
from analysis.plan import compared_together, crossed_name
from analysis.regions import planned_columns
from stimuli.errors import UserError, unknown_name

TRIALS, REGIONS, ITEMS, DICTIONARY = "trials.parquet", "regions.parquet", "items.parquet", "dictionary.json"
BATCH = 50_000
"""Rows read at a time where a table is read in batches."""

_LEVELS = re.compile(
    r"level of the factor (.+?)(?:, one for a whole session)?: (.+); the first is the reference$"
)
_GUARDED = re.compile(r"^'+(?=[=+\-@\t\r])")
_TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_LAG_S = 5.0

REQUIRED = {
    **dict.fromkeys(("study", "session_id", "reader_kind", "reader", "item_id"), "text"),
    **dict.fromkeys(("version", "trial_index", "attempt"), "number"),
    **dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot", "correct"), "boolean"),
    **dict.fromkeys(("response_status", "excluded_reason"), "text"),
}
OPTIONAL = {
    **dict.fromkeys(("design_hash", "set", "trial_type", "label_map", "choice_order", "context"), "text"),
    **dict.fromkeys(("answer", "response", "scorer", "block", "yoked_to", "step_name"), "text"),
    **dict.fromkeys(("rt", "reading_time", "surprisal", "score", "temperature", "replicate"), "number"),
    **dict.fromkeys(("prompt_variant", "list_id", "margin", "cost_usd"), "number"),
    **dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"), "number"),
    **dict.fromkeys(("latency_ms", "ttft_ms", "first_key_ms", "typing_ms", "hidden_ms"), "number"),
    **dict.fromkeys(("dropped_frames", "paste_count", "keyless_chars"), "number"),
    "timed": "boolean",
}
LONG = (
    *("response_raw", "work_key", "label_logprobs", "created_at", "received_at", "plugin_version", "dtype"),
    *("path", "onset_ts", "paint_ts", "response_ts", "handler_ts"),
)
"""Columns that differ in every row and that no measure needs; they are read when asked for."""
ADDED = (
    "reader_group",
    "flagged_reason",
    "rt_excluded",
    "reading_time_excluded",
    "same_prompt",
    "is_choice",
    "never_answered",
)
SAID = ("flagged_reason", "rt_excluded", "reading_time_excluded")
"""Why a session or trial was flagged, and why a time counts in no model of times: they are in the CSV file too."""
MAY_BE_EMPTY = {"correct", "excluded_reason", "item_id", "response_status", *OPTIONAL}
READER_KINDS = ("human", "model", "simulated", "baseline")
_PLACE = ["session_id", "trial_index", "attempt"]


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


@dataclass(frozen=True)
class Tables:
    """The tables of a study."""

    trials: pd.DataFrame  # one row per trial and attempt; see :func:`load` for its columns
    items: pd.DataFrame  # one row per item and condition; may be empty
    dictionary: dict[str, Any]  # factors, readers, plans, exclusions, truth, prose of columns
    source: TableSource  # where the files lie

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.source.folder

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on the tables: that they are older than the store, or that an export has no plan."""
        return self.source.remarks

    @property
    def factors(self) -> dict[str, list[str]]:
        """Levels of each factor, the reference first."""
        return {name: _levels(spec) for name, spec in self.dictionary["factors"].items()}

    @property
    def crossed(self) -> list[str]:
        """Columns of cells of two factors that are compared together."""
        pairs = compared_together(self.dictionary["planned"], self.factors)
        return [name for name in (crossed_name(*pair) for pair in pairs) if name in self.trials]

    def levels_of(self, factor: str) -> list[str]:
        """Return the levels of one factor, the reference first; a UserError names the nearest factor where there is none."""
        if factor not in self.factors:
            raise unknown_name("factor:", factor, self.factors)
        return self.factors[factor]

    @property
    def design_changed(self) -> bool:
        """Whether the study's current design differs from that of the newest sessions."""
        current = self.dictionary["design_hash"]
        collected = newest_design(self.trials, self.dictionary["collected_design_hash"])
        return current is not None and collected is not None and current != collected

    @cached_property
    def regions(self) -> pd.DataFrame:
        """One row per region of a trial, read when first asked for; see :func:`load` for its columns."""
        parts = list(self.region_batches())
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_REGION_COLUMNS)

    def region_batches(self) -> Iterator[pd.DataFrame]:
        """Read the regions table batch by batch, each row with what its trial says of it."""
        if self.source.regions is None:
            return
        types = self.source.types.get("regions")
        columns = ["reader_kind", "reader", "reader_group", "set", "item_id", "excluded_reason"]
        of_trial = self.trials[[*_PLACE, *columns, *self.factors]].rename(
            columns={"excluded_reason": "_trial_excluded"}
        )
        for batch in batches(self.source.regions, None, types):
            if not batch.num_rows or not set(_PLACE[:2]) <= set(batch.schema.names):
                continue
            yield _told(batch.to_pandas(), of_trial)


def load(folder: str | Path, also: Collection[str] = ()) -> Tables:
    """Read and check the tables of a study.

    Parameters
    ----------
    folder : str or pathlib.Path
        A study's folder (the tables that its newest report handed over), a folder with a handover
        (``trials.parquet`` and ``dictionary.json``), or an export as csv, parquet or Psych-DS.
    also : collection of str
        Columns of :data:`LONG` to read too, such as ``label_logprobs``.

    Returns
    -------
    Tables
        ``trials`` has one row per trial and attempt of people and models alike:

        ==================================================  =======================================================
        column                                              what it holds
        ==================================================  =======================================================
        study, version, design_hash, session_id             which study and session
        reader_kind, reader, reader_group                   ``human``, ``model``, ``simulated`` or ``baseline``; its
                                                            number or name; ``human``, ``simulated`` or that name
        list_id, block, set, item_id, trial_index, attempt  which trial of which list; places count from 0
        one column per factor                               the level shown; None outside the design
        one column per two factors that are compared        the cell shown, such as ``word/plain`` of ``item_type × font``
        together
        trial_type, context, prompt_variant, label_map      how it was asked (a further answer: its step's name), and how
                                                            often
        choice_order, replicate, timed, yoked_to
        is_practice, is_filler, is_attention_check,         truth values
        is_pilot
        answer, response, response_status                   key, canonical response, ``valid`` or what it was instead
        correct                                             1 or 0; NaN unless valid
        score, scorer                                       0 to 1 (recovery, overlap; nats in teacher-forced ones)
        rt, reading_time, first_key_ms, typing_ms,          ms; people and simulated readers
        hidden_ms
        dropped_frames, paste_count, keyless_chars          counts; people
        prompt_tokens, cached_tokens, completion_tokens,    tokens; models
        reasoning_tokens
        latency_ms, ttft_ms                                 ms; models, null unless the trial ran alone (``--timing``)
        margin, surprisal, cost_usd, temperature            nats, bits, US dollars, number; models
        excluded_reason                                     why no model uses the trial; None where it is used
        flagged_reason                                      the study's own reason alone, as handed over
        rt_excluded, reading_time_excluded                  why the time counts in no model of times (the study's
                                                            bounds); the answer still counts
        same_prompt                                         number of the prompt that a deterministic model got: the same
                                                            in conditions that its prompt does not tell apart
        is_choice                                           whether the trial is answered with one of its labels
        never_answered                                      whether no analyzed answer of this reader group is valid
        region_time_REGION, surprisal_REGION,               ms and bits, summed over the words of each region that a plan
        entropy_REGION                                      names; NaN where a word has none or is excluded
        ==================================================  =======================================================

        ``regions`` has one row per word or word group: ``session_id, trial_index, attempt, region`` (from 0), ``shown``,
        ``intact``, ``is_changed``, ``line``, ``onset_ts`` and ``rt`` (ms), ``surprisal`` (bits), ``tokens``,
        ``entropy`` (bits) and ``region_names``, with the reader, item and factors of its trial; ``excluded_reason`` is its own
        (the study's bounds; ``is_excluded_itself``) or its trial's.

    Raises
    ------
    UserError
        Where a file or a column is missing, a column holds another type than the contract says, a factor
        has a level that the dictionary does not name, or a reader kind is unknown.

    Notes
    -----
    Of a million trials only the columns above are read, batch by batch; equal texts are kept once, so that a cell of a text
    column is one reference (8 bytes), and regions are not read before they are asked for. Memory thus grows with the number of
    trials by about 550 bytes each and not with what models wrote; ``tests/benchmarks/bench_analysis.py`` measures it.
    """
    if not isinstance(folder, str | PathLike):
        raise UserError(
            f"load: {folder!r} is no folder", mend="Give the path of a study or of what it exported."
        )
    source = find_tables(Path(folder))
    names = column_names(source.trials)
    for name in also:
        if name not in names:
            raise unknown_name(f"{source.trials}: column", name, names)
    unread = set(LONG) - set(also) - set(source.dictionary["factors"])
    columns = read_columns(
        source.trials, [name for name in names if name not in unread], source.types.get("trials")
    )
    dictionary = _completed(source.dictionary)
    trials = _checked(as_frame(columns), dictionary, source.trials)
    kind = trials["reader_kind"]
    trials["reader_group"] = kind.where(kind.isin(["human", "simulated"]), trials["reader"]).astype(object)
    is_flagged = trials["excluded_reason"].astype(bool) & (trials["excluded_reason"] != NO_RESPONSE)
    trials["flagged_reason"] = trials["excluded_reason"].where(is_flagged, None)
    for measure in ("rt", "reading_time"):
        trials[f"{measure}_excluded"] = time_reasons(trials, dictionary["exclude"], measure)
    items = pd.DataFrame()
    if source.items:
        items = as_frame(read_columns(source.items, None, source.types.get("items")))
    factors = list(dictionary["factors"])
    trials["is_choice"] = trials["trial_type"].isin(dictionary["choice_types"])
    # an analysis names trials by how they end, and further answers by their step
    trials["trial_type"] = trials["step_name"].where(trials["step_name"].notna(), trials["trial_type"])
    trials = flag_trials(trials, factors, dictionary["collected_design_hash"])
    trials["never_answered"] = without_valid_answers(trials)
    trials["same_prompt"] = same_prompts(trials, items, factors)
    levels = {name: _levels(spec) for name, spec in dictionary["factors"].items()}
    pairs = compared_together(dictionary["planned"], levels)
    cells = {crossed_name(*pair): cells_shown(trials, pair) for pair in pairs}
    tables = Tables(trials.assign(**cells), items, dictionary, source)
    needed = planned_columns(
        dict(dictionary["planned"]).values(),
        tables.trials,
        items,
        tables.region_batches(),
        factors=factors,
        language=str(dictionary["language"]),
    )
    return replace(tables, trials=tables.trials.assign(**needed))


def write_trials_csv(tables: Tables, path: Path) -> None:
    """Write every trial as CSV with the exported types, ``reader_group``, :data:`SAID` and crossed cells, batch by batch."""
    types = tables.source.types.get("trials")
    writer: csv.CSVWriter | None = None
    start = 0
    with path.open("wb") as file:
        for batch in batches(tables.source.trials, None, types):
            table = pa.Table.from_batches([batch])
            for name in ("excluded_reason", "reader_group", *SAID, *tables.crossed):
                part = tables.trials[name].iloc[start : start + batch.num_rows]
                column = pa.array([None if pd.isna(value) else str(value) for value in part], pa.string())
                name = as_given(name)
                index = table.column_names.index(name) if name in table.column_names else table.num_columns
                table = table.remove_column(index) if index < table.num_columns else table
                table = table.add_column(index, name, column)
            for index, field in enumerate(table.schema):
                if pa.types.is_boolean(field.type):
                    texts = pc.if_else(table.column(index), "TRUE", "FALSE")
                    table = table.set_column(index, field.name, texts)
            writer = writer or csv.CSVWriter(
                file, table.schema, write_options=csv.WriteOptions(quoting_style="needed")
            )
            writer.write_table(table)
            start += batch.num_rows
        if writer is not None:
            writer.close()


def mapping_in(text: object) -> dict[str, Any]:
    """Read a cell of the items table that holds a mapping as JSON; empty where there is none."""
    try:
        mapping = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return mapping if isinstance(mapping, dict) else {}


def joined(left: pd.Series[Any], right: pd.Series[Any], sign: str = ":") -> pd.Series[Any]:
    """Return ``left:right`` of each row; equal texts are one object, which keeps a million rows small."""
    (left_codes, left_values), (right_codes, right_values) = (
        pd.factorize(column, use_na_sentinel=False) for column in (left, right)
    )
    pairs, inverse = np.unique(left_codes * len(right_values) + right_codes, return_inverse=True)
    texts = [
        f"{left_values[pair // len(right_values)]}{sign}{right_values[pair % len(right_values)]}"
        for pair in pairs
    ]
    return pd.Series(np.array(texts, dtype=object)[inverse], index=left.index)


def item_names(rows: pd.DataFrame) -> pd.Series[str]:
    """Name items so that equal names in several sets stay apart."""
    return joined(rows["set"].fillna("None"), rows["item_id"], "/")


_REGION_COLUMNS = [
    *(*_PLACE, "region", "shown", "intact", "is_changed", "line", "onset_ts", "rt", "surprisal", "tokens"),
    *("entropy", "region_names", "is_excluded_itself"),
]


def _told(regions: pd.DataFrame, of_trial: pd.DataFrame) -> pd.DataFrame:
    """Add the trial's reader, item, condition and reason to each region."""
    keys = [name for name in _PLACE if name in regions]
    regions = regions.assign(**{name: regions[name].astype(float) for name in keys if name != "session_id"})
    regions["session_id"] = regions["session_id"].astype(object)
    trials = of_trial if len(keys) == len(_PLACE) else of_trial.drop_duplicates(keys).drop(columns="attempt")
    joined = regions.merge(trials, on=keys, how="left")
    reason = joined.get("excluded_reason", pd.Series(None, joined.index, dtype=object)).astype(object)
    reason = reason.where(reason.notna(), None)
    joined["is_excluded_itself"] = reason.notna()
    joined["excluded_reason"] = reason.mask(reason.isna(), joined.pop("_trial_excluded"))
    return joined


def _levels(spec: dict[str, Any]) -> list[str]:
    levels = [str(level) for level in spec["levels"]]
    reference = spec.get("reference")
    if reference is None or str(reference) not in levels:
        return levels
    return [str(reference), *(level for level in levels if level != str(reference))]


def _completed(dictionary: dict[str, Any]) -> dict[str, Any]:
    """Return the dictionary of a study with everything that may be missing in it."""
    defaults: dict[str, Any] = {
        **dict.fromkeys(("study", "title", "language"), ""),
        **{name: {} for name in ("readers", "planned", "exclude", "columns")},
        **dict.fromkeys(("truth", "design_hash", "collected_design_hash")),
        "versions": [],
        "choice_types": ["choose"],
    }
    return defaults | {key: value for key, value in dictionary.items() if value is not None}


def _checked(trials: pd.DataFrame, dictionary: dict[str, Any], path: Path) -> pd.DataFrame:
    for name, kind in REQUIRED.items():
        if name not in trials.columns:
            raise UserError(
                f"{path}: column {name!r} is missing",
                mend="docs/contracts.md names the columns of a trials table.",
            )
        trials[name] = _typed(trials[name], kind, path)
    absent = {
        name: pd.Series(np.full(len(trials), *_EMPTY[kind]))
        for name, kind in OPTIONAL.items()
        if name not in trials
    }
    for name, kind in OPTIONAL.items():
        if name not in absent:
            trials[name] = _typed(trials[name], kind, path)
    trials = trials.assign(**absent)
    for name, spec in dictionary["factors"].items():
        if name in ADDED:
            raise UserError(f"{path}: a factor is named {name!r}, which is a column that load adds")
        if name not in trials.columns:
            raise UserError(f"{path}: column {name!r} is missing, which dictionary.json names as a factor")
        trials[name] = _text(trials[name])
        newest = trials["version"] == trials["version"].max()
        unknown = set(trials.loc[newest, name].dropna()) - set(_levels(spec))
        if unknown:
            raise UserError(
                f"{path}: column {name!r} holds {sorted(unknown)[0]!r}, which is no level of that factor",
                mend=f"Its levels are {', '.join(_levels(spec))}.",
            )
    unknown_kinds = set(trials["reader_kind"]) - set(READER_KINDS)
    if unknown_kinds:
        raise UserError(
            f"{path}: column 'reader_kind' holds {sorted(unknown_kinds)[0]!r}",
            mend=f"A reader is one of {', '.join(READER_KINDS)}.",
        )
    return trials


def _typed(column: pd.Series[Any], kind: str, path: Path) -> pd.Series[Any]:
    name = str(column.name)
    missing = column.isna()
    if missing.any() and name not in MAY_BE_EMPTY:
        raise UserError(f"{path}: column {name!r} is empty in {int(missing.sum())} of {len(column)} rows")
    if kind == "text":
        return _text(column)
    if kind == "boolean":
        invalid = ~missing & ~column.isin([True, False])
        if invalid.any():
            raise _odd_value(column, invalid, "true or false, or 1 or 0", path)
        numbers = column.astype(object).where(~missing, np.nan).astype(float)
        return numbers if name == "correct" else numbers.fillna(0.0).astype(bool)
    try:
        return pd.to_numeric(column).astype(float)
    except (TypeError, ValueError) as error:
        invalid = ~missing & pd.to_numeric(column, errors="coerce").isna()
        raise _odd_value(column, invalid, "a number", path) from error


def _odd_value(column: pd.Series[Any], invalid: pd.Series[bool], expected: str, path: Path) -> UserError:
    """Return the error on values of another type than their column's, which names the first of them."""
    extent = f"in {int(invalid.sum()):,} of {len(column):,} rows, such as" if invalid.sum() > 1 else "in"
    row = int(np.flatnonzero(invalid.to_numpy())[0]) + 1
    value = column.iloc[row - 1]
    return UserError(
        f"{path}: column {str(column.name)!r} holds something else than {expected} {extent} row {row:,}: {value!r}",
        mend="Write what the column is to hold, or leave the cell empty where it may be.",
    )


def _text(column: pd.Series[Any]) -> pd.Series[Any]:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if column.dtype == object and kind in ("string", "empty"):
        is_none = all(value is None for value in column[column.isna()])
        return column if kind == "string" and is_none else column.where(column.notna(), None)
    shared: dict[Any, str] = {}
    texts = [None if pd.isna(value) else shared.setdefault(value, str(value)) for value in column]
    return pd.Series(texts, index=column.index, name=column.name, dtype=object)


_EMPTY: dict[str, tuple[Any, type]] = {
    "boolean": (False, bool),
    "number": (np.nan, float),
    "text": (None, object),
}
"""Value and type of a column that a table lacks."""
