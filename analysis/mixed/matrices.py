"""Rows and matrices of a mixed model: X (n, p) as R's ``model.matrix`` makes it, Z (n, q) and Lambda(theta) in lme4's order.

R codes a factor inside a term by contrasts if an earlier term holds the rest of that term, and by one column per level
otherwise (``TermCode`` in R's model.c; Chambers and Hastie 1992, section 2.4.1); without an intercept the first factor
gets all its levels. Columns that repeat earlier ones are dropped and named, as in lme4; rows with missing values are counted.

Sigma = sigma^2 Lambda Lambda' (Bates et al. 2015, eq. 4), with one lower-triangular template per random term. The terms of
one grouping factor share a (k, k) matrix, block-diagonal over terms. The raw columns of a term are first made orthonormal,
which leaves the model unchanged and theta well scaled. Theta is not bounded: the deviance is even in every column's sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.arrays import Array, Index, Mask
from analysis.mixed.blocks import RandomEffectsBlock
from analysis.mixed.families import Family
from analysis.mixed.formula import (
    Formula,
    FormulaRandomTerm,
    FunctionCall,
    Name,
    Node,
    Note,
    Terms,
    as_r,
    bare,
    columns_of,
    read_expression,
)
from analysis.mixed.responses import check_response
from analysis.mixed.variables import Factor, Given, Numeric, Variable, Variables, is_numeric, level_name
from stimuli.errors import UserError, unknown_name

Vector = str | ArrayLike
"""Weights or offset: a column name, an expression of columns, or one number per row."""


@dataclass(frozen=True)
class GroupingFactor:
    """A grouping factor on the rows used."""

    name: str  # as lme4 names it
    codes: Index  # (n,): level of each row
    levels: tuple[str, ...]  # levels that occur, in the order of the codes


@dataclass(frozen=True)
class Frame:
    """The data that the matrices are made from."""

    data: pd.DataFrame  # complete rows only
    rows: Index  # (n,): their positions in the data given
    y: Array  # (n,): the response; of binomial models the proportion of successes, of ordinal ones the category from 0
    weights: Array  # (n,): prior weights; for counts the number of trials
    offset: Array  # (n,): known part of the linear predictor
    variables: Variables  # maker of the variables, carrying levels and contrasts
    success: str | None  # for a text response, the level whose probability is modelled
    notes: tuple[Note, ...]  # what the user should know, such as rows dropped
    categories: tuple[str, ...] = ()  # of an ordinal response, those that occur, in their order

    def grouping(self, term: FormulaRandomTerm) -> GroupingFactor:
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
        return GroupingFactor(term.name, (np.cumsum(occurs) - 1)[codes], tuple(labels[occurs]))


def _aligned(value: ArrayLike, data: pd.DataFrame, noun: str) -> pd.Series[Any]:
    """Return numbers given for the rows in their order."""
    if isinstance(value, pd.Series) and not value.index.equals(data.index):
        if not value.index.is_unique or set(value.index) != set(data.index):
            raise UserError(
                f"{noun} are a Series whose index is not that of the data",
                mend="Give a Series with the data's index, or plain numbers in the order of the rows.",
            )
        value = value.reindex(data.index)
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != (len(data),):
        raise UserError(
            f"{noun} have shape {numbers.shape}; the data have {len(data)} rows",
            mend=f"Give one number per row, or name a column as {noun}.",
        )
    return pd.Series(numbers, index=data.index)


def _numbers(node: Node, variables: Variables, data: pd.DataFrame, noun: str) -> Array:
    variable = variables.make(node)
    if not isinstance(variable, Numeric):
        levels = ", ".join(variable.levels[:4]) + (", …" if len(variable.levels) > 4 else "")
        raise _no_number(node, variables) or UserError(
            f"{noun} {as_r(node)!r} is not numeric; it holds {levels}", mend="Name a column of numbers."
        )
    return variable.values(data)[:, 0]


def _no_number(node: Node, variables: Variables) -> UserError | None:
    """Name the first of few texts among a column's numbers; None where most values are text, or the node is no column."""
    name = columns_of(node)[0] if len(columns_of(node)) == 1 else None
    data = variables.learn_from  # before rows are dropped, so that rows are those of the table given
    if name is None or name not in data:
        return None
    column = data[name]
    is_text = (pd.to_numeric(column.astype(str), errors="coerce").isna() & column.notna()).to_numpy()
    if not 0 < 2 * is_text.sum() < len(is_text):
        return None
    subject = "1 value is" if is_text.sum() == 1 else f"{int(is_text.sum())} values are"
    first = int(np.flatnonzero(is_text)[0])
    label = column.index[first]
    row = (
        f"row {int(label) + 1}" if pd.api.types.is_integer_dtype(column.index.dtype) else f"the row {label!r}"
    )
    return UserError(
        f"column {name!r} holds numbers, but {subject} no number: the first is "
        f"{column.iloc[first]!r} in {row}",
        mend="Correct it in the data, or leave the cell empty if there is no value: such rows are left out and counted.",
    )


def _response(
    node: Node, family: Family, variables: Variables, data: pd.DataFrame
) -> tuple[Array, Array | None, str | None]:
    """Read the response: (y, trials or None, success level or None)."""
    if isinstance(node, FunctionCall) and node.function == "cbind":
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
    if isinstance(node, FunctionCall) and node.function == "cbind":
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
    present, places = np.unique(variable.codes(data), return_inverse=True)
    return places.astype(float), tuple(variable.shown[int(place)] for place in present)


def _is_in_order(node: Node, factor: Factor, variables: Variables, data: pd.DataFrame) -> bool:
    """Whether something says in which order the levels stand: the user, the column's type, or numbers."""
    if factor.condition is not None or factor.column in variables.levels:
        return True
    if isinstance(node, FunctionCall) and (
        bare(node.function) == "ordered" or "levels" in dict(node.keywords)
    ):
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
    vectors: dict[str, Node] = {}
    for name, value in (("weights", weights), ("offset", offset)):
        if isinstance(value, str):
            vectors[name] = read_expression(value)
        elif value is not None:
            # Numbers are a column under R's name for it.
            vectors[name] = Name(f"({name})")
            data = data.assign(**{f"({name})": _aligned(value, data, f"{name.rstrip('s')}s")})
    needed = [*formula.columns(), *(c for node in vectors.values() for c in columns_of(node))]
    needed = list(dict.fromkeys(needed))
    for name in needed:
        if name not in data.columns:
            raise unknown_name("column", name, list(data.columns))
    needed_data = _numbers_as_numbers(data[needed])
    missing = needed_data.isna()
    rows = np.flatnonzero(~missing.to_numpy().any(axis=1))
    counts = missing.sum()
    gaps = ", ".join(f"{str(name).strip('()')} in {int(k)}" for name, k in counts[counts > 0].items())
    notes = []
    if len(rows) < len(data):
        notes = [Note("rows_dropped", dropped=len(data) - len(rows), rows=len(data), columns=gaps)]
    if len(rows) == 0:
        raise UserError("no row is left to fit" + (f": {notes[0]}" if notes else "; the data are empty"))
    # Levels are those of the rows kept; transforms such as scale() learn from all rows that have the column, as in R.
    complete = (needed_data if len(rows) == len(needed_data) else needed_data.iloc[rows]).reset_index(
        drop=True
    )
    for label, column in complete.items():
        if is_numeric(column) and (bad := int(np.isinf(column.to_numpy(dtype=float)).sum())):
            raise UserError(
                f"column {label!r} is infinite in {bad} row{'' if bad == 1 else 's'}; a model needs finite numbers",
                mend="Leave these rows out, or write NA where there is no value.",
            )
    for name in (*(levels or {}), *(contrasts or {})):
        if name not in data.columns:
            raise unknown_name("column", name, list(data.columns))
    variables = Variables(complete, levels or {}, contrasts or {}, learn_from=needed_data)
    categories: tuple[str, ...] = ()
    trials, success = None, None
    if family.name == "ordinal":
        y, categories = _ordered(formula.response, variables, complete)
    else:
        y, trials, success = _response(formula.response, family, variables, complete)
    prior = _numbers(vectors["weights"], variables, complete, "weights") if "weights" in vectors else None
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
    total = np.zeros(len(complete))
    for node in (*formula.offsets, *([vectors["offset"]] if "offset" in vectors else [])):
        total = total + _numbers(node, variables, complete, "offset")
    w = trials if trials is not None else (np.ones(len(complete)) if prior is None else prior)
    return Frame(complete, rows, y, w, total, variables, success, (*notes, *variables.notes), categories)


def _numbers_as_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Take columns of Python objects that are all numbers for numbers; refuse dates, which are neither numbers nor levels."""
    converted = {}
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
                converted[str(name)] = column.astype(float)
    return data.assign(**converted) if converted else data


RANK_TOLERANCE = 1e-7
"""R's tolerance for a column that others explain (``qr(X, tol = 1e-7)``)."""


@dataclass(frozen=True)
class MatrixDesign:
    """A recipe for a model matrix."""

    terms: Terms  # what the columns stand for
    variables: tuple[Variable, ...]  # parallel to ``terms.variables``
    full: frozenset[tuple[int, int]]  # (term, variable) pairs coded with a column for every level
    names: tuple[str, ...]  # column names, R's

    def matrix(self, data: pd.DataFrame) -> Array:
        """Evaluate on data without missing cells; shape (n, p)."""
        n = len(data)
        blocks = [np.ones((n, 1))] if self.terms.intercept else []
        evaluated: dict[tuple[int, bool], Array] = {}
        for t, term in enumerate(self.terms.terms):
            block = np.ones((n, 1))
            for v in sorted(term):
                key = (v, (t, v) in self.full)
                if key not in evaluated:
                    evaluated[key] = _columns(self.variables[v], data, key[1])
                # The earlier variable's columns run fastest.
                block = (evaluated[key][:, :, None] * block[:, None, :]).reshape(n, -1)
            blocks.append(block)
        return np.hstack(blocks) if blocks else np.empty((n, 0))

    def factors(self) -> dict[str, Factor]:
        """Return the factors among the variables, by column."""
        return {v.column: v for v in self.variables if isinstance(v, Factor) and v.condition is None}


def _columns(variable: Variable, data: pd.DataFrame, full: bool) -> Array:
    if isinstance(variable, Numeric):
        return variable.values(data)
    coding = np.eye(len(variable.levels)) if full else variable.coding()[0]
    return np.asarray(coding[variable.codes(data)])


def _column_names(variable: Variable, full: bool) -> list[str]:
    if isinstance(variable, Numeric):
        return [variable.label + s for s in variable.suffixes]
    suffixes = variable.shown if full else variable.coding()[1]
    return [variable.label + s for s in suffixes]


def make_design(terms: Terms, variables: Variables) -> MatrixDesign:
    """Decide the coding of every factor in every term."""
    design_variables = tuple(variables.make(node) for node in terms.variables)
    for variable in design_variables:
        if isinstance(variable, Factor) and len(variable.levels) < 2:
            raise UserError(
                f"{variable.label!r} has only the level {', '.join(variable.levels) or '(none)'} in the rows used",
                mend="A factor needs two levels or more; drop it from the formula or look at the missing rows.",
            )
    is_factor = [isinstance(v, Factor) for v in design_variables]
    full: set[tuple[int, int]] = set()
    for t, term in enumerate(terms.terms):
        for v in term:
            rest = term - {v}
            if is_factor[v] and rest and not any(rest <= earlier for earlier in terms.terms[:t]):
                full.add((t, v))
    if not terms.intercept:
        first = next(
            ((t, v) for t, term in enumerate(terms.terms) for v in sorted(term) if is_factor[v]), None
        )
        full |= {first} if first else set()
    names = ["(Intercept)"] if terms.intercept else []
    for t, term in enumerate(terms.terms):
        block = [""]
        for v in sorted(term):
            block = [
                f"{a}:{b}" if a else b
                for b in _column_names(design_variables[v], (t, v) in full)
                for a in block
            ]
        names += block
    return MatrixDesign(terms, design_variables, frozenset(full), tuple(names))


def independent_columns(x: Array) -> list[int]:
    """Return the columns of x (n, p) that earlier ones do not explain, in order, by R's rule for rank."""
    orthonormal = np.empty(x.shape, order="F")
    independent: list[int] = []
    for j in range(x.shape[1]):
        column, basis = x[:, j], orthonormal[:, : len(independent)]
        size = float(np.linalg.norm(column))
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        rest_size = float(np.linalg.norm(rest))
        if size > 0 and rest_size > RANK_TOLERANCE * size:
            orthonormal[:, len(independent)] = rest / rest_size
            independent.append(j)
    return independent


SINGULAR = 1e-4
"""lme4's tolerance for a relative standard deviation that counts as zero."""


@lru_cache(maxsize=64)
def _lower_triangle(k: int) -> tuple[Index, Index]:
    columns, rows = np.triu_indices(k)
    return rows.astype(np.intp), columns.astype(np.intp)


@dataclass(frozen=True)
class TermCovariance:
    """One random term's place in theta and in its grouping factor's Lambda."""

    factor: int  # which grouping factor
    at: int  # first column within that factor
    names: tuple[str, ...]  # column names
    transform: Array  # (k, k): T with (columns used) = (raw columns) T; upper triangular
    theta: slice  # place in theta; the lower triangle, column by column
    n_levels: int  # levels of the grouping factor

    @property
    def width(self) -> int:
        """Columns k."""
        return len(self.names)

    @property
    def columns(self) -> slice:
        """Its columns among those of the grouping factor."""
        return slice(self.at, self.at + self.width)

    @property
    def positions(self) -> tuple[Index, Index]:
        """Rows and columns of the lower triangle, column-major."""
        return _lower_triangle(self.width)

    def template(self, theta: Array) -> Array:
        """Return the (k, k) lower-triangular factor for the columns used."""
        matrix = np.zeros((self.width, self.width))
        matrix[self.positions] = theta[self.theta]
        return matrix

    def relative_covariance(self, theta: Array) -> Array:
        """Lambda Lambda' for the raw columns, shape (k, k)."""
        raw = self.transform @ self.template(theta)
        return raw @ raw.T

    def _sizes(self, theta: Array) -> tuple[Array, Array]:
        """Relative standard deviations of the raw columns, and given the columns before, for columns of unit size."""
        raw = self.transform @ self.template(theta)
        scale = 1.0 / np.sqrt(np.sum(np.linalg.inv(self.transform) ** 2, axis=0))
        conditional = np.abs(np.diag(np.linalg.qr(raw.T, mode="r")))
        return np.sqrt(np.sum(raw**2, axis=1)) / scale, conditional / scale

    def is_singular(self, theta: Array) -> bool:
        """Whether some combination of the (unit-scaled) columns has a relative standard deviation near zero."""
        sizes = np.linalg.svd(self.template(theta), compute_uv=False)
        return bool(min(sizes.min(), self._sizes(theta)[1].min()) < SINGULAR)

    def lost(self, theta: Array) -> list[str]:
        """Describe what happened to each column whose variance was not estimated separately."""
        marginal, conditional = self._sizes(theta)
        sentences = []
        for j, name in enumerate(self.names):
            if marginal[j] < SINGULAR:
                sentences.append(f"{name} does not vary")
            elif conditional[j] < SINGULAR:
                sentences.append(f"{name} varies only along with {', '.join(self.names[:j])}")
        return sentences


class Covariance:
    """All random terms of a model."""

    def __init__(self, terms: Sequence[TermCovariance], widths: Sequence[int]) -> None:
        self.terms, self.widths = tuple(terms), tuple(widths)
        # factor, row and column in its Lambda of each entry of theta
        self.entries = [
            (term.factor, term.at + i, term.at + j)
            for term in self.terms
            for i, j in zip(*(places.tolist() for places in term.positions), strict=True)
        ]
        self.size = len(self.entries)
        levels = [np.repeat(t.n_levels, len(t.positions[0])) for t in self.terms]
        self._scales = 1.0 / np.sqrt(2.0 * np.concatenate([*levels, []]))

    def lambdas(self, theta: Array) -> list[Array]:
        """Per grouping factor the (k, k) Lambda."""
        mats = [np.zeros((k, k)) for k in self.widths]
        for (f, i, j), value in zip(self.entries, theta, strict=True):
            mats[f][i, j] = value
        return mats

    def gradient(self, slopes: Sequence[Array]) -> Array:
        """Collect derivatives with respect to Lambda's entries, one (k, k) array a factor, into theta's order."""
        return np.array([slopes[f][i, j] for f, i, j in self.entries], dtype=float)

    def diagonal(self) -> Mask:
        """Mask of the entries of theta on a template's diagonal."""
        return np.array([i == j for _, i, j in self.entries], dtype=bool)

    def start(self) -> Array:
        """Return unit relative standard deviations without correlation."""
        return self.diagonal().astype(float)

    def from_moments(self, moments: Sequence[Array]) -> Array:
        """Theta whose relative covariances are near given ones, (k, k) per grouping factor, and safely inside."""
        # Correlations are drawn halfway to zero, and no relative standard deviation is less than 0.03: a search that begins
        # on the boundary may stay there.
        roots = [np.zeros_like(moment) for moment in moments]
        for term in self.terms:
            moment = moments[term.factor][term.columns, term.columns]
            size = np.diag(np.maximum(np.diag(moment), 1e-3))
            roots[term.factor][term.columns, term.columns] = np.linalg.cholesky((moment + size) / 2.0)
        return self.gradient(roots)

    def scales(self) -> Array:
        """Rough size of one standard error of each entry of theta: 1 / sqrt(2 levels)."""
        return self._scales

    def with_positive_diagonal(self, theta: Array) -> Array:
        """Flip the sign of template columns whose diagonal entry is negative; the model is the same."""
        signs = [np.where(np.diag(mat) < 0, -1.0, 1.0) for mat in self.lambdas(theta)]
        return np.asarray(theta * np.array([signs[f][j] for f, _, j in self.entries], dtype=float))


def orthonormalising(columns: Array) -> Array:
    """Find T (k, k), upper triangular, such that (columns T) has orthonormal columns times sqrt(n)."""
    n, k = columns.shape
    size = np.sqrt(np.mean(columns**2, axis=0))
    size[size == 0] = 1.0
    if k == 1:
        return np.diag(1.0 / size)
    r = np.linalg.qr(columns / size, mode="r") / np.sqrt(n) if n >= k else np.zeros((k, k))
    pivots = np.diag(r)
    if np.abs(pivots).min() < 1e-6:
        return np.diag(1.0 / size)
    r = r * np.where(pivots < 0, -1.0, 1.0)[:, None]
    return np.asarray(np.linalg.inv(r) / size[:, None])


FEW_LEVELS = 3
"""Levels of a grouping factor up to which its variance is hardly estimated."""


@dataclass(frozen=True)
class Matrices:
    """Everything that the deviance is a function of."""

    x: Array  # (n, p): fixed-effects columns, dependent ones dropped
    names: tuple[str, ...]  # their names
    dropped: tuple[str, ...]  # names of dependent columns
    kept: tuple[int, ...]  # positions of the columns of ``x`` among all columns of ``design``
    alias: Array  # (p, dropped): the dropped columns as combinations of ``x``
    design: MatrixDesign  # makes the fixed columns for other rows
    # per grouping factor, most columns first; a column of zeros where there is none
    effects: tuple[RandomEffectsBlock, ...]
    groupings: tuple[GroupingFactor, ...]  # parallel to ``effects``; empty where there is none
    covariance: Covariance  # terms in lme4's order
    labels: tuple[str, ...]  # grouping name per term, ``g.1`` for the second term on g
    notes: tuple[Note, ...]  # what was dropped

    @property
    def groups(self) -> dict[str, int]:
        """Number of levels by grouping factor, in lme4's order."""
        order = dict.fromkeys(t.factor for t in self.covariance.terms)
        return {self.groupings[f].name: len(self.groupings[f].levels) for f in order}


def make_matrices(formula: Formula, frame: Frame, family: Family) -> Matrices:
    """Make the model matrices."""
    design = make_design(formula.fixed, frame.variables)
    if family.dispersion == "thresholds" and not formula.fixed.intercept:
        raise UserError(
            f"{formula.text!r} leaves the intercept out; an ordinal model has thresholds in its place",
            mend="Write it without 0 + (or - 1).",
        )
    all_columns = design.matrix(frame.data)
    independent = independent_columns(all_columns)
    dropped = tuple(design.names[j] for j in range(all_columns.shape[1]) if j not in independent)
    notes = []
    if dropped:
        counted = f"{len(dropped)} column{'' if len(dropped) == 1 else 's'}"
        notes.append(Note("columns_dropped", counted=counted, columns=dropped))
    if len(independent) >= len(frame.y):
        largest = max(
            (v for v in design.variables if isinstance(v, Factor)), key=lambda v: len(v.levels), default=None
        )
        hint = (
            f"; {largest.label} is a factor with {len(largest.levels)} levels" if largest is not None else ""
        )
        raise UserError(
            f"{len(independent)} fixed effects cannot be estimated from {len(frame.y)} rows{hint}",
            mend="Use fewer terms, or make a column of numbers of one that should be no factor.",
        )

    groupings = [frame.grouping(term) for term in formula.random]
    designs = [make_design(term.design, frame.variables) for term in formula.random]
    for term, grouping, term_design in zip(formula.random, groupings, designs, strict=True):
        _check_grouping(term.text(), grouping, len(term_design.names), frame, family)
    raw = [d.matrix(frame.data) for d in designs]
    # Most levels first; lme4 reverses an ascending sort, ties included, and leaves descending lists alone.
    level_counts = [len(g.levels) for g in groupings]
    order = list(range(len(groupings)))
    if level_counts != sorted(level_counts, reverse=True):
        order = sorted(order, key=lambda i: level_counts[i])[::-1]

    # Terms that share a grouping factor share a block.
    by_name = {g.name: g for g in groupings}
    sizes = dict.fromkeys(by_name, 0)
    for grouping, block in zip(groupings, raw, strict=True):
        sizes[grouping.name] -= len(grouping.levels) * block.shape[1]
    unique = sorted(by_name, key=sizes.__getitem__)
    columns: dict[str, list[Array]] = {name: [] for name in unique}
    terms: list[TermCovariance] = []
    labels: list[str] = []
    at_theta = 0
    for i in order:
        name = groupings[i].name
        transform = orthonormalising(raw[i])
        k = raw[i].shape[1]
        first_column = sum(c.shape[1] for c in columns[name])
        theta = slice(at_theta, at_theta + k * (k + 1) // 2)
        levels = len(groupings[i].levels)
        terms.append(
            TermCovariance(unique.index(name), first_column, designs[i].names, transform, theta, levels)
        )
        labels.append(f"{name}.{len(columns[name])}" if columns[name] else name)
        columns[name].append(raw[i] @ transform)
        at_theta = theta.stop
    effects = tuple(
        RandomEffectsBlock(by_name[name].codes, len(by_name[name].levels), np.hstack(columns[name]))
        for name in unique
    )
    if not effects:
        # Without random effects one that is zero in every row stands in, so that no deviance needs a second form.
        n = len(frame.y)
        effects = (RandomEffectsBlock(np.zeros(n, dtype=np.intp), 1, np.zeros((n, 1))),)
    notes += _repeated(formula, designs, raw, groupings) + _scarce(groupings)
    return Matrices(
        x=all_columns[:, independent],
        names=tuple(design.names[j] for j in independent),
        dropped=dropped,
        kept=tuple(independent),
        alias=np.asarray(
            np.linalg.lstsq(
                all_columns[:, independent], np.delete(all_columns, independent, axis=1), rcond=None
            )[0]
        ),
        design=design,
        effects=effects,
        groupings=tuple(by_name[name] for name in unique),
        covariance=Covariance(terms, [e.width for e in effects]),
        labels=tuple(labels),
        notes=tuple(notes),
    )


def _repeated(
    formula: Formula, designs: list[MatrixDesign], raw: list[Array], groupings: list[GroupingFactor]
) -> list[Note]:
    """Report random effects that no data could distinguish."""
    notes = []
    for i, (term, columns) in enumerate(zip(formula.random, raw, strict=True)):
        independent = independent_columns(columns)
        repeating = tuple(name for j, name in enumerate(designs[i].names) if j not in independent)
        if repeating:
            notes.append(Note("columns_repeated", term=term.text(), columns=repeating))
        for j, other in enumerate(formula.random):
            if i == j or groupings[i].name != groupings[j].name or not _holds(raw[j], columns):
                continue
            if not _holds(columns, raw[j]):
                notes.append(Note("term_within", term=term.text(), other=other.text()))
            elif j < i:
                notes.append(Note("term_twice", term=term.text(), other=other.text()))
    return notes


def _holds(columns: Array, others: Array) -> bool:
    """Return whether all ``others`` are combinations of ``columns``, both of shape (n, k)."""
    return len(independent_columns(np.hstack([columns, others]))) == len(independent_columns(columns))


def _scarce(groupings: list[GroupingFactor]) -> list[Note]:
    """Report factors with too few levels for a variance, and levels that occur in one row, unless all do."""
    unique = list({g.name: g for g in groupings}.values())
    notes = [
        Note(
            "few_levels", group=g.name, count=len(g.levels), counted="two" if len(g.levels) == 2 else "three"
        )
        for g in unique
        if len(g.levels) <= FEW_LEVELS
    ]
    for grouping in unique:
        counts = np.bincount(grouping.codes, minlength=len(grouping.levels))
        single_levels = [grouping.levels[i] for i in np.flatnonzero(counts == 1)]
        if single_levels and len(single_levels) < len(counts):
            shown = ", ".join(single_levels[:4]) + (", …" if len(single_levels) > 4 else "")
            levels = "level is" if len(single_levels) == 1 else "levels are"
            values = {"group": grouping.name, "once": len(single_levels), "of": len(counts)}
            notes.append(Note("seen_once", **values, levels=levels, names=shown))
    return notes


def _check_grouping(term: str, grouping: GroupingFactor, width: int, frame: Frame, family: Family) -> None:
    m, n = len(grouping.levels), len(frame.y)
    if m < 2:
        raise UserError(
            f"grouping factor {grouping.name!r} in ({term}) has only the level {grouping.levels[0]!r}",
            mend="A random effect needs two levels or more.",
        )
    if m == n and family.has_scale:
        raise UserError(
            f"grouping factor {grouping.name!r} in ({term}) has as many levels as there are rows ({n}); "
            "its variance cannot be distinguished from the residual",
            mend="Drop the term, or group by something that repeats.",
        )
    if width * m >= n and family.has_scale:
        raise UserError(
            f"({term}) has {width * m} random effects ({width} columns by {m} levels) for {n} rows; "
            "they cannot be distinguished from the residual",
            mend="Use fewer slopes in this term.",
        )
