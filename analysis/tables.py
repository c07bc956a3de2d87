"""Reads the files that a study hands over, checks that they are what the contract says, and says whose rows they are.

Nothing here drops a row: every trial stays in the table, and a trial that no model may use says why in
``excluded_reason`` (see :mod:`analysis.exclusions`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from analysis.exclusions import flag_trials, newest_design
from stimuli.errors import UserError

TRIALS, REGIONS, ITEMS, DICTIONARY = "trials.parquet", "regions.parquet", "items.parquet", "dictionary.json"

REQUIRED = {
    "study": "text",
    "version": "number",
    "session_id": "text",
    "reader_kind": "text",
    "reader": "text",
    "trial_index": "number",
    "attempt": "number",
    "item_id": "text",
    "is_practice": "boolean",
    "is_filler": "boolean",
    "is_attention_check": "boolean",
    "is_pilot": "boolean",
    "response_status": "text",
    "correct": "boolean",
    "excluded_reason": "text",
}
OPTIONAL = {
    "design_hash": "text",
    "rt": "number",
    "reading_time": "number",
    "surprisal": "number",
    "score": "number",
    "temperature": "number",
    "replicate": "number",
    "prompt_variant": "number",
    "list_id": "number",
    "set": "text",
    "trial_type": "text",
    "label_map": "text",
    "response": "text",
    "context": "text",
    "timed": "boolean",
}
MAY_BE_EMPTY = {"correct", "excluded_reason", "item_id", "response_status", *OPTIONAL}
READER_KINDS = ("human", "model", "simulated", "baseline")


@dataclass(frozen=True)
class Tables:
    """What a study hands over.

    Attributes
    ----------
    trials : pandas.DataFrame
        One row per trial and attempt, with ``reader_group`` added and ``excluded_reason`` filled in.
    regions : pandas.DataFrame
        One row per region of a trial; may be empty.
    items : pandas.DataFrame
        One row per item and condition; may be empty.
    dictionary : dict
        Factors, readers, planned analyses, exclusion bounds, truth of simulated readers, prose of columns.
    folder : pathlib.Path
        Where the files lie.
    """

    trials: pd.DataFrame
    regions: pd.DataFrame
    items: pd.DataFrame
    dictionary: dict[str, Any]
    folder: Path

    @property
    def factors(self) -> dict[str, list[str]]:
        """Levels of each factor, the reference first."""
        return {name: _levels(spec) for name, spec in self.dictionary["factors"].items()}

    @property
    def design_changed(self) -> bool:
        """Whether the study's design now is another one than that of the newest sessions."""
        now = self.dictionary["design_hash"]
        collected = newest_design(self.trials, self.dictionary["collected_design_hash"])
        return now is not None and collected is not None and now != collected


def load(folder: str | Path) -> Tables:
    """Read and check the handover of a study.

    Parameters
    ----------
    folder : str or pathlib.Path
        Holds ``trials.parquet`` and ``dictionary.json``; ``regions.parquet`` and ``items.parquet`` where made.

    Returns
    -------
    Tables

    Raises
    ------
    UserError
        Where a file or a column is missing, a column holds another type than the contract says, a factor
        has a level that the dictionary does not name, or a reader kind is unknown.
    """
    folder = Path(folder)
    dictionary = _read_dictionary(folder / DICTIONARY)
    trials = _read_parquet(folder / TRIALS)
    if trials is None:
        raise UserError(
            f"{folder / TRIALS} is missing", mend="A report is made from a study or its handover folder."
        )
    trials = _checked(trials, dictionary, folder / TRIALS)
    trials["reader_group"] = reader_groups(trials)
    tables = Tables(
        trials=flag_trials(trials, list(dictionary["factors"]), dictionary["collected_design_hash"]),
        regions=_or_empty(_read_parquet(folder / REGIONS)),
        items=_or_empty(_read_parquet(folder / ITEMS)),
        dictionary=dictionary,
        folder=folder,
    )
    return tables


def write_trials_csv(tables: Tables, path: Path) -> None:
    """Write every trial as CSV with the types of the handed-over file, so that integers and truth values stay whole.

    Columns are those handed over and ``reader_group``; ``excluded_reason`` is the filled-in one. Truth values are
    ``TRUE`` and ``FALSE``, as in the CSV download.
    """
    table = pq.read_table(tables.folder / TRIALS)
    table = table.select([name for name in table.column_names if not name.startswith("__index_level_")])
    for name in ("excluded_reason", "reader_group"):
        column = pa.array([None if pd.isna(one) else str(one) for one in tables.trials[name]], pa.string())
        place = table.column_names.index(name) if name in table.column_names else table.num_columns
        table = table.remove_column(place) if place < table.num_columns else table
        table = table.add_column(place, name, column)
    for place, field in enumerate(table.schema):
        if pa.types.is_boolean(field.type):
            told = pc.if_else(table.column(place), "TRUE", "FALSE")
            table = table.set_column(place, field.name, told)
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))


def reader_groups(trials: pd.DataFrame) -> pd.Series[str]:
    """Return the reader group of each trial: ``human``, ``simulated``, or the name of the model or baseline."""
    kind = trials["reader_kind"]
    return kind.where(kind.isin(["human", "simulated"]), trials["reader"]).astype(object)


def _levels(spec: dict[str, Any]) -> list[str]:
    levels = [str(level) for level in spec["levels"]]
    reference = spec.get("reference")
    if reference is None or str(reference) not in levels:
        return levels
    return [str(reference), *(level for level in levels if level != str(reference))]


def _read_dictionary(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(
            f"{path} is missing", mend="It is written beside trials.parquet; hand the study over again."
        )
    try:
        dictionary = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", mend="Hand the study over again.") from error
    if not isinstance(dictionary, dict) or not isinstance(dictionary.get("factors"), dict):
        raise UserError(f"{path} has no 'factors'", mend="Hand the study over again.")
    given: dict[str, Any] = {
        "study": "",
        "title": "",
        "versions": [],
        "language": "",
        "readers": {},
        "planned": {},
        "exclude": {},
        "truth": None,
        "columns": {},
        "design_hash": None,
        "collected_design_hash": None,
    }
    given.update({key: value for key, value in dictionary.items() if value is not None})
    for name, spec in given["factors"].items():
        if not isinstance(spec, dict) or len(spec.get("levels", [])) < 1:
            raise UserError(f"{path}: factor {name!r} has no levels", mend="Hand the study over again.")
    return given


def _read_parquet(path: Path) -> pd.DataFrame | None:
    if not path.is_file():
        return None
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not a readable Parquet file: {error}") from error


def _or_empty(table: pd.DataFrame | None) -> pd.DataFrame:
    return pd.DataFrame() if table is None else table


def _checked(trials: pd.DataFrame, dictionary: dict[str, Any], path: Path) -> pd.DataFrame:
    trials = trials.reset_index(drop=True).copy()
    for name, kind in REQUIRED.items():
        if name not in trials.columns:
            raise UserError(
                f"{path}: column {name!r} is missing", mend="The contract page lists the columns."
            )
        trials[name] = _typed(trials[name], kind, path)
    for name, kind in OPTIONAL.items():
        trials[name] = (
            _typed(trials[name], kind, path) if name in trials.columns else _empty(len(trials), kind)
        )
    for name, spec in dictionary["factors"].items():
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
    strangers = set(trials["reader_kind"]) - set(READER_KINDS)
    if strangers:
        raise UserError(
            f"{path}: column 'reader_kind' holds {sorted(strangers)[0]!r}",
            mend=f"A reader is one of {', '.join(READER_KINDS)}.",
        )
    return trials


def _typed(column: pd.Series[Any], kind: str, path: Path) -> pd.Series[Any]:
    name = str(column.name)
    if column.isna().any() and name not in MAY_BE_EMPTY:
        raise UserError(
            f"{path}: column {name!r} is empty in {int(column.isna().sum())} of {len(column)} rows"
        )
    if kind == "text":
        return _text(column)
    wrong = UserError(f"{path}: column {name!r} holds {str(column.dtype)!r} values, not {kind} ones")
    if kind == "boolean":
        known = column.dropna()
        if not known.map(lambda value: value in (True, False)).all():
            raise wrong
        numbers = column.map(lambda value: float("nan") if pd.isna(value) else float(value)).astype(float)
        return numbers if name == "correct" else numbers.fillna(0.0).astype(bool)
    try:
        return pd.to_numeric(column).astype(float)
    except (TypeError, ValueError) as error:
        raise wrong from error


def _text(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.map(lambda value: None if pd.isna(value) else str(value)).astype(object)


def _empty(rows: int, kind: str) -> pd.Series[Any]:
    if kind == "boolean":
        return pd.Series([False] * rows, dtype=bool)
    return pd.Series([float("nan")] * rows) if kind == "number" else pd.Series([None] * rows, dtype=object)
