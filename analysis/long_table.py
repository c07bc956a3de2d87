"""Anybody's long table of trials, people alone or people and models, as the tables that a report is made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from analysis import apa
from analysis.exclusions import NO_RESPONSE
from analysis.frames import TAKEN
from analysis.plan import IN
from analysis.report import write_report
from analysis.report.write import dated_folder
from analysis.tables import DICTIONARY, TRIALS, load
from stimuli.corpora.tables import read_table
from stimuli.errors import UserError, did_you_mean, together, unknown_name

MOST_CONDITIONS = 4
MOST_LEVELS = 40
"""Levels above which a column is treated as a number or a name, not as a condition."""
MOST_VALUES = 3
"""Values that an error names."""
SECONDS_BELOW = 20.0
"""Median in milliseconds below which response times are taken for seconds."""
TRUE, FALSE = ("1", "1.0", "true", "t", "yes"), ("0", "0.0", "false", "f", "no")


class TableRoles(TypedDict, total=False):
    """The roles that a table may lack; see :func:`analyse`."""

    correct: str | None
    rt: str | None
    rating: str | None
    model: str | None
    seconds: bool


@dataclass(frozen=True)
class Roles:
    """The columns of a table by their roles."""

    participant: str
    item: str
    conditions: Mapping[str, Sequence[str]]  # levels, the reference first; none: those of the table
    correct: str | None = None  # 1 or 0; response times; numbers on a scale
    rt: str | None = None
    rating: str | None = None
    model: str | None = None  # ``COLUMN``, empty in rows of people, or ``COLUMN=VALUE,VALUE``
    seconds: bool = False  # whether times are in seconds, and not in milliseconds

    @property
    def model_column(self) -> str | None:
        """The column that says which rows are of a model."""
        return None if self.model is None else self.model.partition("=")[0].strip()

    def columns(self) -> list[tuple[str, str]]:
        """Return option and column of each role."""
        columns = {name: getattr(self, name) for name in ("participant", "item", "correct", "rt", "rating")}
        given = {**columns, "model": self.model_column}
        named = [(option, column) for option, column in given.items() if column is not None]
        return [*named, *(("condition", column) for column in self.conditions)]


def analyse(
    data: pd.DataFrame | str | PathLike[str],
    *,
    participant: str,
    item: str,
    condition: str | Sequence[str] | Mapping[str, Sequence[str]],
    out: str | PathLike[str] = "reports",
    **options: Unpack[TableRoles],
) -> Path:
    """Write a report on a table of trials.

    Parameters
    ----------
    data : DataFrame or path
        One row per trial. A file is CSV, TSV, XLSX or JSONL.
    participant, item : str
        Columns that name the person (or a model's session) and the item.
    condition : str, sequence of str, or mapping
        The column of the condition, or several; a mapping gives each its levels, the reference first.
    out : path
        The report goes to a new folder in it, named by date and time.
    **options
        correct : str
            Column with 1 or 0 (or true and false, or yes and no); empty cells are left out and counted.
        rt : str
            Column with response times in milliseconds; seconds with ``seconds=True``.
        rating : str
            Column with ratings, numbers on a scale.
        model : str
            ``COLUMN`` names the model in rows of models and is empty in those of people; with ``COLUMN=VALUE`` the rows that
            hold this value are of a model with that name; several values are joined by commas.

    Returns
    -------
    pathlib.Path
        The report's page.

    Raises
    ------
    UserError
        Names all problems of the table.
    """
    for name in options:
        if name not in TableRoles.__annotations__:
            raise unknown_name("option of analyse()", name, TableRoles.__annotations__)
    if isinstance(condition, str):
        condition = [condition]
    levels = condition if isinstance(condition, Mapping) else dict.fromkeys(condition, ())
    roles = Roles(participant, item, levels, **options)
    moment = datetime.now().astimezone()
    folder = hand_over_table(data, roles, dated_folder(out, moment) / "data", moment)
    return write_report(load(folder), Path(out), moment)


def hand_over_table(
    data: pd.DataFrame | str | PathLike[str], roles: Roles, folder: Path, moment: datetime
) -> Path:
    """Write the trials and the dictionary of a table into a folder and return it."""
    if isinstance(data, pd.DataFrame):
        name, cells = "table", data.reset_index(drop=True).rename(columns=str)
        lines = [f"row {number}" for number in range(1, len(cells) + 1)]
    else:
        read = read_table(Path(data))
        name, cells = Path(data).stem, pd.DataFrame(list(read.rows))
        lines = [f"line {number}" for number in read.numbers]
    table = _Table(cells, lines, roles)
    if problems := [*_problems_of_roles(roles, list(map(str, cells))), *table.problems()]:
        raise together(problems)
    trials = table.trials(name)
    folder.mkdir(parents=True, exist_ok=True)
    trials.to_parquet(folder / TRIALS, index=False)
    dictionary = _dictionary(trials, name, table.levels, moment)
    (folder / DICTIONARY).write_text(json.dumps(dictionary, ensure_ascii=False, indent=1), "utf-8")
    return folder


def _problems_of_roles(roles: Roles, columns: Sequence[str]) -> Iterator[UserError]:
    """Yield what is wrong with the columns that were named, apart from their cells."""
    if not roles.conditions:
        yield UserError("no condition is named", mend="Say which column holds it: --condition COLUMN.")
    if roles.correct is None and roles.rt is None and roles.rating is None:
        yield UserError(
            "no response is named",
            mend="Say which column holds it: --correct COLUMN, --rt COLUMN or --rating COLUMN.",
        )
    options: dict[str, list[str]] = {}
    for option, column in roles.columns():
        options.setdefault(column, []).append(option)
        if column not in columns:
            mend = f"{did_you_mean(column, columns)}Columns there: {', '.join(columns)}."
            yield UserError(f"--{option} {column}: the table has no such column", mend=mend)
    for column, named in options.items():
        if len(named) > 1 and set(named) != {"participant", "model"}:
            yield UserError(
                f"{column!r} is named as {' and as '.join(named)}", mend="Each of them has its own column."
            )
    for column in roles.conditions:
        if column in TAKEN:
            yield UserError(
                f"--condition {column}: the tables of wrods have a column with this name that means something else",
                mend=f"Rename the column, for example to {column}_condition.",
            )
        elif not column.replace(".", "_").isidentifier():
            plain = "_".join(re.findall(r"\w+", column)).lstrip("0123456789_") or "cond"
            yield UserError(
                f"--condition {column!r}: the name of a condition must consist of letters, digits, _ and ., and start with a letter",
                mend=f"Rename the column, for example to {plain}.",
            )
    if len(roles.conditions) > MOST_CONDITIONS:
        yield UserError(
            f"{len(roles.conditions)} conditions are named; at most {MOST_CONDITIONS} can be analysed together",
            mend="Leave out those that are not compared.",
        )


class _Table:
    """The cells of a table as text, and which rows are of models; no check reads a column that is not there."""

    def __init__(self, cells: pd.DataFrame, lines: Sequence[str], roles: Roles) -> None:
        self.roles, self.lines = roles, np.array(lines, dtype=object)
        self.cells = {column: _as_text(cells[column]) for _, column in roles.columns() if column in cells}
        self.models = self._models()
        self.is_model = self.models != ""
        self.levels = {
            column: list(map(str, given)) or sorted(set(self.cells[column]) - {""})
            for column, given in roles.conditions.items()
            if column in self.cells
        }

    def _models(self) -> pd.Series[str]:
        """Name the model of each row; empty in rows of people."""
        column = self.roles.model_column
        if column is None or column not in self.cells:
            return pd.Series("", index=range(len(self.lines)), dtype=object)
        values = self.cells[column]
        named_models = self._named_models()
        return values.where(values.isin(named_models), "") if named_models else values

    def _named_models(self) -> list[str]:
        names = (self.roles.model or "").partition("=")[2].split(",")
        return [name.strip() for name in names if name.strip()]

    def _where(self, rows: pd.Series[bool]) -> str:
        """Describe in how many rows something is, and which is the first."""
        positions = np.flatnonzero(rows.to_numpy())
        first = self.lines[positions[0]]
        return f"in {first}" if len(positions) == 1 else f"in {len(positions):,} rows (first: {first})"

    def _found(self, cells: pd.Series[str], rows: pd.Series[bool]) -> str:
        """Name the values in some rows, up to three of them, and where they are."""
        values = [repr(value) for value in pd.unique(cells[rows])]
        more = len(values) - MOST_VALUES
        if more > 0:
            values[MOST_VALUES:] = [apa.worded(more, "other value")]
        return f"{apa.listing(values)} {self._where(rows)}"

    def problems(self) -> Iterator[UserError]:
        """Yield everything that keeps the table from being analysed."""
        roles = self.roles
        if roles.participant in self.cells and (roles.model is None or roles.model_column in self.cells):
            yield from self._problems_of_readers()
        if roles.item in self.cells and (empty := self.cells[roles.item] == "").any():
            yield UserError(f"--item {roles.item}: empty {self._where(empty)}", mend="Fill the cells.")
        yield from self._problems_of_conditions()
        if roles.correct is not None and roles.correct in self.cells:
            cells = self.cells[roles.correct]
            invalid = (cells != "") & ~cells.str.lower().isin([*TRUE, *FALSE])
            if invalid.any():
                yield UserError(
                    f"--correct {self.roles.correct}: {self._found(cells, invalid)}; a cell must be 1, true, yes, 0, false, or no",
                    mend="Write 1 for a correct and 0 for a wrong response, or leave the cell empty.",
                )
        if roles.rt is not None and roles.rt in self.cells:
            yield from self._problems_of_times(roles.rt)
        if roles.rating is not None and roles.rating in self.cells:
            yield from self._not_numbers("rating", roles.rating)

    def _problems_of_readers(self) -> Iterator[UserError]:
        people = self.cells[self.roles.participant]
        empty = (people == "") & ~self.is_model
        if empty.any():
            yield UserError(
                f"--participant {self.roles.participant}: empty {self._where(empty)}",
                mend="Fill the cells, or say which rows are a model's: --model COLUMN=VALUE.",
            )
        column = self.roles.model_column
        values = set(self.cells[column]) - {""} if column is not None else set()
        for name in self._named_models():
            if name not in values:
                mend = f"{did_you_mean(name, values)}Values there: {', '.join(sorted(values)[:20])}."
                yield UserError(f"--model {self.roles.model}: no row has {name!r} in {column}", mend=mend)
        if column is not None and not self.is_model.any() and not self._named_models():
            yield UserError(
                f"--model {column}: empty in all rows", mend="Leave --model out where only people answered."
            )
        names = people[self.is_model & (people != self.models)]
        shared = sorted(set(names) & set(people[~self.is_model]) - {""})
        for name in shared[:3]:
            rows = self.is_model & (people == name)
            yield UserError(
                f"--participant {self.roles.participant}: {name!r} is a person, and {self._where(rows)} the model "
                f"{self.models[rows].iloc[0]!r}",
                mend="Give the model's rows another name in this column.",
            )
        reserved = sorted(set(self.models[self.is_model]) & {"human", "simulated"})
        for name in reserved:
            yield UserError(
                f"--model {self.roles.model}: a model cannot be named {name!r}", mend="Give it its own name."
            )
        if not self.is_model.any() and people[people != ""].nunique() == 1:
            yield UserError(
                f"--participant {self.roles.participant}: all rows are of {people.iloc[0]!r}",
                mend="Effects are estimated over participants; two are the fewest.",
            )

    def _problems_of_conditions(self) -> Iterator[UserError]:
        for column, levels in self.levels.items():
            option, cells = f"--condition {column}", self.cells[column]
            if (cells == "").any():
                yield UserError(
                    f"{option}: empty {self._where(cells == '')}",
                    mend="Fill the cells, or leave these rows out.",
                )
            invalid = (cells != "") & ~cells.isin(levels)
            if invalid.any():
                yield UserError(
                    f"{option}={','.join(levels)}: {self._found(cells, invalid)}, not one of these levels",
                    mend=f"The table has {', '.join(sorted(set(cells) - {''})[:20])}. Name all levels, or leave these rows out.",
                )
            absent = [level for level in levels if not (cells == level).any()]
            if absent:
                present = sorted(set(cells) - {""})
                mend = f"{did_you_mean(absent[0], present)}Levels there: {', '.join(present[:20])}."
                yield UserError(f"{option}: no row has the level {absent[0]!r}", mend=mend)
            elif len(levels) == 1:
                yield UserError(
                    f"{option}: all rows have {levels[0]!r}",
                    mend="A condition needs two levels to be compared.",
                )
            if len(levels) > MOST_LEVELS:
                yield UserError(
                    f"{option}: {len(levels):,} different values, such as {levels[0]!r}; a condition has at most {MOST_LEVELS} levels",
                    mend="Name the column of the condition; numbers can be grouped into a few levels.",
                )
            slashed = [level for level in levels if IN in level]
            if slashed and len(self.levels) > 1:
                yield UserError(
                    f"{option}: the level {slashed[0]!r} contains {IN!r}, which joins the levels of two conditions in tables",
                    mend="Write another sign.",
                )
            normalized: dict[str, str] = {}
            for level in levels[:MOST_LEVELS]:
                other = normalized.setdefault(
                    "".join(c if c.isalnum() else "_" for c in level).lower(), level
                )
                if other != level:
                    yield UserError(
                        f"{option}: {other!r} and {level!r} differ only in capitals, spaces or signs",
                        mend="Write them alike if they are one level, or else give one of them another name.",
                    )

    def _problems_of_times(self, column: str) -> Iterator[UserError]:
        yield from self._not_numbers("rt", column)
        cells = self.cells[column]
        times = pd.to_numeric(cells, errors="coerce")
        low = times <= 0
        if low.any():
            yield UserError(
                f"--rt {column}: {self._found(cells, low)}; a response time must be above 0",
                mend="Leave the cell empty where no time was measured.",
            )
        median = float(times[times > 0].median())
        if not self.roles.seconds and median < SECONDS_BELOW:
            yield UserError(
                f"--rt {column}: the median is {median:g}, which is too short for milliseconds",
                mend="If the times are in seconds, add --seconds.",
            )
        if self.roles.seconds and median > 1000 / SECONDS_BELOW * 10:
            yield UserError(
                f"--rt {column}: the median is {median:g}, which is too long for seconds",
                mend="Leave --seconds out.",
            )

    def _not_numbers(self, option: str, column: str) -> Iterator[UserError]:
        cells = self.cells[column]
        invalid = (cells != "") & ~np.isfinite(pd.to_numeric(cells, errors="coerce"))
        if invalid.any():
            yield UserError(
                f"--{option} {column}: {self._found(cells, invalid)}, not a number",
                mend="Write numbers with a decimal point, or leave the cell empty.",
            )

    def trials(self, study: str) -> pd.DataFrame:
        """Return the rows as a trials table."""
        roles, rows = self.roles, len(self.lines)
        people = self.cells[roles.participant]
        session = people.where(people != "", self.models)
        session = session.where(~self.is_model, "model:" + self.models + ":" + session)
        trials = pd.DataFrame(
            {
                "study": study,
                "version": 1,
                "session_id": session,
                "reader_kind": np.where(self.is_model, "model", "human"),
                "reader": self.models.where(self.is_model, people),
                "participant_id": people.where(~self.is_model, None),
                "trial_index": session.groupby(session).cumcount(),
                "attempt": 1,
                "set": "items",
                "item_id": self.cells[roles.item],
                **dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot"), False),
                "response_status": "valid",
            },
            index=range(rows),
        )
        trials["correct"] = np.nan
        if roles.correct is not None:
            cells = self.cells[roles.correct].str.lower()
            trials["correct"] = cells.isin(TRUE).astype(float).where(cells != "")
        if roles.rt is not None:
            times = pd.to_numeric(self.cells[roles.rt], errors="coerce") * (1000.0 if roles.seconds else 1.0)
            trials["rt"] = times.where(~self.is_model)
        if roles.rating is not None:
            trials["rating"] = pd.to_numeric(self.cells[roles.rating], errors="coerce")
        responses = [name for name in ("correct", "rt", "rating") if name in trials]
        missing = trials[responses].isna().all(axis=1)
        trials["excluded_reason"] = missing.map({True: NO_RESPONSE, False: None}).astype(object)
        return trials.assign(**{column: self.cells[column] for column in self.levels})


def _as_text(column: pd.Series[Any]) -> pd.Series[str]:
    """Return cells as text without outer spaces; whole numbers have no point, missing cells are empty."""
    missing = column.isna()
    if pd.api.types.is_float_dtype(column) and (column[~missing] % 1 == 0).all():
        column = column.astype("Int64")
    text = column.astype(str).str.strip().astype(object)
    return text.where(~missing & ~text.isin(["NA", "NaN"]), "")


def _dictionary(
    trials: pd.DataFrame, study: str, levels: Mapping[str, list[str]], created: datetime
) -> dict[str, Any]:
    """Return what a report needs to know in addition to the trials."""
    people = trials[trials["reader_kind"] == "human"].groupby("session_id").size()
    moment = created.isoformat(timespec="seconds")
    human = {"kind": "human", "sessions": len(people), "finished": len(people)}
    readers: dict[str, Any] = {"human": human} if len(people) else {}
    for name, rows in trials[trials["reader_kind"] == "model"].groupby("reader", sort=False):
        sessions = int(rows["session_id"].nunique())
        count = int(rows["excluded_reason"].isna().sum())
        calls = {"calls": count, "imported_calls": count, "first_call": moment, "last_call": moment}
        readers[str(name)] = {"kind": "model", "sessions": sessions, "finished": sessions, **calls}
    try:
        installed = version("wrods")
    except PackageNotFoundError:
        installed = None
    coded = {
        name: {"levels": level_names, "reference": level_names[0]} for name, level_names in levels.items()
    }
    trial_range = [int(people.min()), int(people.max())] if len(people) else None
    return {
        "study": study,
        "title": study,
        "versions": [],
        "factors": coded,
        "between": {},
        "readers": readers,
        "participants": {"imported": len(people), "imported_trials": trial_range},
        "created_at": moment,
        "wrods": installed,
    }
