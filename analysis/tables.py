"""Reads the tables of a study, checks that they are what the contract says, and says whose rows they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from analysis.factorial import cells_shown
from analysis.names import as_given
from analysis.plan import compared_together, crossed_name
from analysis.preprocessing.exclusions import (
    NO_RESPONSE,
    flag_trials,
    newest_design,
    same_prompts,
    time_reasons,
)
from analysis.table_io import TableSource, as_frame, batches, column_names, find_tables, read_columns
from stimuli.errors import UserError, unknown_name

REQUIRED = {
    **dict.fromkeys(("study", "session_id", "reader_kind", "reader", "item_id"), "text"),
    **dict.fromkeys(("version", "trial_index", "attempt"), "number"),
    **dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot", "correct"), "boolean"),
    **dict.fromkeys(("response_status", "excluded_reason"), "text"),
}
OPTIONAL = {
    **dict.fromkeys(("design_hash", "set", "trial_type", "label_map", "choice_order", "context"), "text"),
    **dict.fromkeys(("answer", "response", "scorer", "block", "yoked_to"), "text"),
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
ADDED = ("reader_group", "flagged_reason", "rt_excluded", "reading_time_excluded", "same_prompt", "is_choice")
SAID = ("flagged_reason", "rt_excluded", "reading_time_excluded")
"""Why a session or trial was flagged, and why a time counts in no model of times: they are in the CSV file too."""
MAY_BE_EMPTY = {"correct", "excluded_reason", "item_id", "response_status", *OPTIONAL}
READER_KINDS = ("human", "model", "simulated", "baseline")
_PLACE = ["session_id", "trial_index", "attempt"]


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
        trial_type, context, prompt_variant, label_map      how it was asked, and how often
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
        ==================================================  =======================================================

        ``regions`` has one row per word or word group: ``session_id, trial_index, attempt, region`` (from 0), ``shown``,
        ``intact``, ``is_changed``, ``line``, ``onset_ts`` and ``rt`` (ms), ``surprisal`` (bits), ``tokens``,
        with the reader, item and factors of its trial; ``excluded_reason`` is its own (the study's bounds) or its trial's.

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
    trials = flag_trials(trials, factors, dictionary["collected_design_hash"])
    trials["same_prompt"] = same_prompts(trials, items, factors)
    trials["is_choice"] = trials["trial_type"].isin(dictionary["choice_types"])
    levels = {name: _levels(spec) for name, spec in dictionary["factors"].items()}
    pairs = compared_together(dictionary["planned"], levels)
    cells = {crossed_name(*pair): cells_shown(trials, pair) for pair in pairs}
    return Tables(trials.assign(**cells), items, dictionary, source)


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
