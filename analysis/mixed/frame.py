"""The rows that a model is fitted to: columns found, missing rows dropped and counted, response and weights read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import UserError, unknown_name

from .expression import (
    Call,
    Name,
    Node,
    as_r,
    bare,
    columns_of,
    read_expression,
)
from .families import Family
from .formula import Formula, RandomTerm
from .responses import check_response
from .variables import Factor, Given, Numeric, Variables, is_numeric, level_name

Array = NDArray[np.float64]

Vector = str | ArrayLike
"""Weights or offset: a column name, an expression of columns, or one number per row."""


@dataclass(frozen=True)
class Grouping:
    """A grouping factor on the rows used."""

    name: str  # as lme4 names it
    codes: NDArray[np.intp]  # (n,): level of each row
    levels: tuple[str, ...]  # levels that occur, in the order of the codes


@dataclass(frozen=True)
class Frame:
    """What the matrices are made from."""

    data: pd.DataFrame  # complete rows only
    rows: NDArray[np.intp]  # (n,): their positions in the data given
    # (n,): the response; for binomial models the proportion of successes, for ordinal ones the category,
    # counted from 0
    y: Array
    weights: Array  # (n,): prior weights; for counts the number of trials
    offset: Array  # (n,): known part of the linear predictor
    variables: Variables  # maker of the variables, carrying levels and contrasts
    success: str | None  # for a text response, the level whose probability is modelled
    notes: tuple[str, ...]  # what the user should know, such as rows dropped
    categories: tuple[str, ...] = ()  # of an ordinal response, those that occur, in their order

    def grouping(self, term: RandomTerm) -> Grouping:
        """Find the levels of a random term's grouping factor on the rows used."""
        codes = np.zeros(len(self.data), dtype=np.intp)
        labels = np.array([""], dtype=object)
        for node in term.group:
            column = node.name if isinstance(node, Name) else columns_of(node)[0]
            factor = self.variables.factor(column)
            codes = codes * len(factor.levels) + factor.codes_of(self.variables.cells(column))
            inner = np.array(factor.levels, dtype=object)
            labels = (
                inner if labels.size == 1 and labels[0] == "" else (labels[:, None] + ":" + inner).ravel()
            )
        occurs = np.bincount(codes, minlength=len(labels)) > 0
        return Grouping(term.name, (np.cumsum(occurs) - 1)[codes], tuple(labels[occurs]))


def _aligned(
    value: Vector | None, data: pd.DataFrame, what: str
) -> tuple[Node | None, pd.Series[Any] | None]:
    if value is None:
        return None, None
    if isinstance(value, str):
        return read_expression(value), None
    if isinstance(value, pd.Series) and not value.index.equals(data.index):
        if not value.index.is_unique or set(value.index) != set(data.index):
            raise UserError(
                f"{what} are a Series whose index is not that of the data",
                mend="Give a Series with the data's index, or plain numbers in the order of the rows.",
            )
        value = value.reindex(data.index)
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != (len(data),):
        raise UserError(
            f"{what} have shape {numbers.shape}; the data have {len(data)} rows",
            mend=f"Give one number per row, or name a column as {what}.",
        )
    return None, pd.Series(numbers, index=data.index)


def _numbers(node: Node, variables: Variables, data: pd.DataFrame, what: str) -> Array:
    variable = variables.make(node)
    if not isinstance(variable, Numeric):
        levels = ", ".join(variable.levels[:4]) + (", …" if len(variable.levels) > 4 else "")
        raise _no_number(node, variables) or UserError(
            f"{what} {as_r(node)!r} is not numeric; it holds {levels}", mend="Name a column of numbers."
        )
    return variable.values(data)[:, 0]


def _no_number(node: Node, variables: Variables) -> UserError | None:
    """Name the first of few texts among a column's numbers; None where most values are text, or the node is no column."""
    name = columns_of(node)[0] if len(columns_of(node)) == 1 else None
    data = variables.learn_from  # before rows are dropped, so that rows are those of the table given
    if name is None or name not in data:
        return None
    given = data[name]
    odd = (pd.to_numeric(given.astype(str), errors="coerce").isna() & given.notna()).to_numpy()
    if not 0 < 2 * odd.sum() < len(odd):
        return None
    many = "1 value is" if odd.sum() == 1 else f"{int(odd.sum())} values are"
    first = int(np.flatnonzero(odd)[0])
    label = given.index[first]
    row = (
        f"row {int(label) + 1}" if pd.api.types.is_integer_dtype(given.index.dtype) else f"the row {label!r}"
    )
    return UserError(
        f"column {name!r} holds numbers, but {many} no number: the first is {given.iloc[first]!r} in {row}",
        mend="Mend it in the data, or leave the cell empty where there is no value: such rows are left out and counted.",
    )


def _response(
    node: Node, family: Family, variables: Variables, data: pd.DataFrame
) -> tuple[Array, Array | None, str | None]:
    """Read the response: (y, trials or None, success level or None)."""
    if isinstance(node, Call) and node.function == "cbind":
        if not family.takes_trials or len(node.arguments) != 2:
            raise UserError(
                f"response {as_r(node)!r}: cbind takes successes and failures and needs family binomial or betabinomial",
                mend="Write cbind(success, failure) with one of these families, or name one column as the response.",
            )
        success, failure = (_numbers(a, variables, data, "count") for a in node.arguments)
        for counts, part in ((success, node.arguments[0]), (failure, node.arguments[1])):
            bad = (counts < 0) | (counts != np.round(counts))
            if bad.any():
                raise UserError(
                    f"count {as_r(part)!r} holds {counts[bad][0]:g} in {int(bad.sum())} rows; counts are 0, 1, 2, …",
                    mend="cbind takes successes and failures, not successes and trials: cbind(k, n - k).",
                )
        trials = success + failure
        return np.divide(success, trials, out=np.zeros_like(trials), where=trials > 0), trials, None
    variable = variables.make(node)
    if isinstance(variable, Numeric):
        return _only_column(variable, data), None, None
    truth = variable.levels == ("FALSE", "TRUE")
    if (family.takes_trials and len(variable.levels) == 2) or (family.name == "gaussian" and truth):
        return variable.codes(data).astype(float), None, variable.levels[1]
    if (error := _no_number(node, variables)) is not None:
        raise error
    shown = ", ".join(variable.levels[:4]) + (", …" if len(variable.levels) > 4 else "")
    wanted = "numbers, or text with two levels" if family.takes_trials else "numbers"
    raise UserError(
        f"response {variable.label!r} is not numeric ({len(variable.levels)} levels: {shown})",
        mend=f"The {family.name} family takes {wanted}.",
    )


def _only_column(variable: Numeric, data: pd.DataFrame) -> Array:
    if len(variable.suffixes) > 1:
        raise UserError(
            f"response {variable.label!r} has {len(variable.suffixes)} columns; it may have one",
            mend="Fit one model per column.",
        )
    return variable.values(data)[:, 0]


def _ordered(node: Node, variables: Variables, data: pd.DataFrame) -> tuple[Array, tuple[str, ...]]:
    """Read ordered categories: (places from 0, names of those that occur)."""
    if isinstance(node, Call) and node.function == "cbind":
        raise UserError(
            f"response {as_r(node)!r}: cbind is for the binomial family",
            mend="Name one column of ordered categories.",
        )
    variable = variables.make(node)
    if isinstance(variable, Numeric):
        values, places = np.unique(_only_column(variable, data), return_inverse=True)
        return places.astype(float), tuple(level_name(v) for v in values)
    if not _is_in_order(node, variable, variables, data):
        if (error := _no_number(node, variables)) is not None:
            raise error
        shown = ", ".join(variable.levels[:6]) + (", …" if len(variable.levels) > 6 else "")
        raise UserError(
            f"response {variable.label!r} is text without an order ({shown}); the ordinal family takes ordered categories",
            mend=f"Name its categories from low to high: --levels {variable.column}={','.join(variable.levels[:6])} "
            "(levels= in Python), or give numbers.",
        )
    occurs, places = np.unique(variable.codes(data), return_inverse=True)
    return places.astype(float), tuple(variable.shown[int(at)] for at in occurs)


def _is_in_order(node: Node, factor: Factor, variables: Variables, data: pd.DataFrame) -> bool:
    """Whether something says in which order the levels stand: the user, the column's type, or numbers."""
    if factor.condition is not None or factor.column in variables.levels:
        return True
    if isinstance(node, Call) and (bare(node.function) == "ordered" or "levels" in dict(node.keywords)):
        return True
    column = data[factor.column]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return bool(column.cat.ordered)
    return is_numeric(column) or bool(pd.api.types.is_bool_dtype(column))


def make_frame(
    formula: Formula,
    data: pd.DataFrame,
    family: Family,
    *,
    weights: Vector | None = None,
    offset: Vector | None = None,
    levels: Mapping[str, Sequence[str]] | None = None,
    contrasts: Mapping[str, Given] | None = None,
) -> Frame:
    """Collect the rows and vectors of a model. Shapes: data (rows, columns), weights, offset (rows,)."""
    if not isinstance(data, pd.DataFrame):
        raise UserError(
            f"the data are a {type(data).__name__}; a model takes a pandas DataFrame",
            mend="For a mapping of columns write pandas.DataFrame(data).",
        )
    duplicated = [str(c) for c in data.columns[data.columns.duplicated()]]
    if duplicated:
        raise UserError(f"the data have two columns named {duplicated[0]!r}", mend="Rename one of them.")
    if not all(isinstance(name, str) for name in data.columns):
        data = data.rename(columns=str)
    weight_node, weight_given = _aligned(weights, data, "weights")
    offset_node, offset_given = _aligned(offset, data, "offsets")
    extra = [n for n in (weight_node, offset_node) if n is not None]
    needed = list(dict.fromkeys([*formula.columns(), *(c for node in extra for c in columns_of(node))]))
    for name in needed:
        if name not in data.columns:
            raise unknown_name("column", name, list(data.columns))
    used = _numbers_as_numbers(data[needed])
    missing = used.isna()
    for name, given in (("weights", weight_given), ("offset", offset_given)):
        if given is not None:
            missing[name] = given.isna()
    rows = np.flatnonzero(~missing.to_numpy().any(axis=1))
    counts = missing.sum()
    why = ", ".join(f"{name} in {int(k)}" for name, k in counts[counts > 0].items())
    many = f"{len(data) - len(rows)} of {len(data)} rows"
    notes = [f"{many} dropped for missing values: {why}"] if len(rows) < len(data) else []
    if len(rows) == 0:
        raise UserError("no row is left to fit" + (f": {notes[0]}" if notes else "; the data are empty"))
    # Levels are those of the rows kept; transforms such as scale() learn from all rows that have the column, as in R.
    kept = (used if len(rows) == len(used) else used.iloc[rows]).reset_index(drop=True)
    _refuse_infinite(kept)
    for name in (*(levels or {}), *(contrasts or {})):
        if name not in data.columns:
            raise unknown_name("column", name, list(data.columns))
    variables = Variables(kept, levels or {}, contrasts or {}, learn_from=used)
    categories: tuple[str, ...] = ()
    trials, success = None, None
    if family.name == "ordinal":
        y, categories = _ordered(formula.response, variables, kept)
    else:
        y, trials, success = _response(formula.response, family, variables, kept)
    prior = _vector(weight_node, weight_given, rows, variables, kept, "weights")
    if prior is not None and (prior <= 0).any():
        raise UserError(
            f"weights hold {prior[prior <= 0][0]:g} in {int((prior <= 0).sum())} rows; weights are positive",
            mend="Leave out the rows that count for nothing.",
        )
    if prior is not None and trials is not None:
        raise UserError(
            "weights and cbind(success, failure) are both given",
            mend="cbind already says the number of trials.",
        )
    check_response(family, y, trials if trials is not None else prior, as_r(formula.response))
    shift = _vector(offset_node, offset_given, rows, variables, kept, "offset")
    total = np.zeros(len(kept)) if shift is None else shift
    for node in formula.offsets:
        total = total + _numbers(node, variables, kept, "offset")
    w = trials if trials is not None else (np.ones(len(kept)) if prior is None else prior)
    return Frame(kept, rows, y, w, total, variables, success, (*notes, *variables.notes), categories)


def _numbers_as_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Take columns of Python objects that are all numbers for numbers; refuse dates, which are neither numbers nor levels."""
    found = {}
    for name, column in data.items():
        if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
            raise UserError(
                f"column {name!r} holds dates or durations",
                mend="Make a column of numbers (days since the start), or of text for a factor.",
            )
        if column.dtype == object:
            cells = column.dropna()
            if len(cells) and all(
                isinstance(v, Number) and not isinstance(v, bool | np.bool_) for v in cells
            ):
                found[str(name)] = column.astype(float)
    return data.assign(**found) if found else data


def _vector(
    node: Node | None,
    given: pd.Series[Any] | None,
    rows: NDArray[np.intp],
    variables: Variables,
    kept: pd.DataFrame,
    what: str,
) -> Array | None:
    if node is not None:
        return _numbers(node, variables, kept, what)
    return None if given is None else given.to_numpy(dtype=float)[rows]


def _refuse_infinite(data: pd.DataFrame) -> None:
    for name, column in data.items():
        if is_numeric(column):
            bad = np.isinf(column.to_numpy(dtype=float))
            if bad.any():
                raise UserError(
                    f"column {name!r} is infinite in {int(bad.sum())} row{'' if bad.sum() == 1 else 's'}; "
                    "a model needs finite numbers",
                    mend="Leave these rows out, or write NA where there is no value.",
                )
