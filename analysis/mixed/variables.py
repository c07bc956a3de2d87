"""The variables of a formula: how each turns rows of data into numbers or into factor levels.

A numeric variable is evaluated by formulaic, which remembers what it learnt from the fitted data (the mean that
``scale()`` subtracts, the basis of ``poly()``), so the same variable evaluates a reference grid alike. A factor knows its
levels and its contrasts, which formulaic supplies too; R's coding rule lies in ``design``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from formulaic import model_matrix
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

from .coding import Coding, Given, read_coding
from .expression import Binary, Call, Literal, Name, Node, Paren, as_python, as_r, columns_of

Array = NDArray[np.float64]


def _log(x: Any, base: float | None = None) -> Any:
    return np.log(x) if base is None else np.log(x) / np.log(base)


_CONTEXT = {"log": _log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "exp": np.exp}
_CONTEXT |= {"expm1": np.expm1, "sqrt": np.sqrt, "abs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan}
_CONTEXT |= {"tanh": np.tanh, "round": np.round, "floor": np.floor, "ceiling": np.ceil, "ifelse": np.where}
_CONTEXT |= {"pmin": np.minimum, "pmax": np.maximum, "as_numeric": lambda x: np.asarray(x, dtype=float)}


def level_name(value: Any) -> str:
    """Write a cell as R writes it as a factor level: 95 for 95.0, TRUE for True."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | np.integer | np.floating):
        return f"{float(value):.15g}"
    return str(value)


def _alphabetical(text: str) -> tuple[str, str]:
    return text.casefold(), text.swapcase()


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column counts as numbers: not text, not categorical, not true/false."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def is_boolean(column: pd.Series[Any]) -> bool:
    """Whether a column holds truth values."""
    return bool(pd.api.types.is_bool_dtype(column))


def natural_levels(column: pd.Series[Any]) -> tuple[str, ...]:
    """List the levels that occur: categories in their order, numbers by size, text alphabetically."""
    present = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype):
        used = set(present.unique())
        return tuple(level_name(c) for c in column.cat.categories if c in used)
    values = list(present.unique())
    if is_numeric(column):
        return tuple(level_name(v) for v in sorted(values))
    return tuple(sorted((level_name(v) for v in values), key=_alphabetical))


@dataclass(frozen=True)
class Numeric:
    """A variable that yields numbers.

    Attributes
    ----------
    label : str
        As R prints it.
    node : Node
        Its expression.
    suffixes : tuple of str
        What R appends to the label for each column; ``('',)`` for one column.
    spec : formulaic ModelSpec or None
        Remembers stateful transforms; None for a bare column.
    """

    label: str
    node: Node
    suffixes: tuple[str, ...]
    spec: Any

    def values(self, data: pd.DataFrame) -> Array:
        """Evaluate on rows without missing cells; shape (n, columns)."""
        if self.spec is None:
            assert isinstance(self.node, Name)
            return np.asarray(data[self.node.name], dtype=float).reshape(-1, 1)
        cells = _plainly_named(self.node, data)
        return np.asarray(self.spec.get_model_matrix(cells, context=_CONTEXT), dtype=float)


@dataclass(frozen=True)
class Factor:
    """A variable that yields levels.

    Attributes
    ----------
    label : str
        As R prints it.
    column : str
        The column it reads.
    levels : tuple of str
        First is the reference under treatment contrasts.
    contrast : Coding
        How levels become columns.
    condition : Numeric or None
        For a comparison such as ``I(x > 2)``: yields 0 or 1, coded FALSE and TRUE.
    """

    label: str
    column: str
    levels: tuple[str, ...]
    contrast: Coding = field(default_factory=Coding)
    condition: Numeric | None = None

    def codes(self, data: pd.DataFrame) -> NDArray[np.intp]:
        """Positions in ``levels``; shape (n,).

        Raises
        ------
        UserError
            If a cell holds something that is no level.
        """
        if self.condition is not None:
            return np.asarray(self.condition.values(data)[:, 0], dtype=np.intp)
        cells, values = pd.factorize(data[self.column])
        place = {level: at for at, level in enumerate(self.levels)}
        names = [level_name(v) for v in values]
        for name in names:
            if name not in place:
                raise unknown_name(f"level of {self.column}", name, self.levels)
        return np.array([place[name] for name in names], dtype=np.intp)[cells]

    def coding(self) -> tuple[Array, tuple[str, ...]]:
        """Contrast matrix, shape (levels, levels - 1), and what R appends to the label for each column."""
        return self.contrast.matrix(self.levels), self.contrast.suffixes(self.levels)


Variable = Numeric | Factor


def _is_comparison(node: Node) -> bool:
    match node:
        case Call("I", (inner,)) | Paren(inner):
            return _is_comparison(inner)
        case Binary(op, _, _):
            return op in {"==", "!=", "<", ">", "<=", ">="}
    return False


def _plain_names(node: Node) -> dict[str, str]:
    """Names under which formulaic sees the columns: none can be mistaken for a function or a part of one."""
    return {name: f"column_{i}_" for i, name in enumerate(columns_of(node))}


def _plainly_named(node: Node, data: pd.DataFrame) -> pd.DataFrame:
    names = _plain_names(node)
    return data[list(names)].rename(columns=names)


def _compared_with_text(node: Node) -> set[str]:
    """Columns that stand beside a quoted text in a comparison, and so may hold text."""
    match node:
        case Binary(op, Name(name), Literal(text)) | Binary(op, Literal(text), Name(name)):
            return {name} if op in {"==", "!="} and text[0] in "'\"" else set()
        case Binary(_, left, right):
            return _compared_with_text(left) | _compared_with_text(right)
        case Call(_, arguments, _):
            return set().union(*(_compared_with_text(a) for a in arguments))
        case Paren(inner):
            return _compared_with_text(inner)
    return set()


def _evaluated(node: Node, data: pd.DataFrame, label: str) -> Numeric:
    # Bare calls keep formulaic's stateful transforms; all else must not be read as formula algebra.
    text = as_python(node, _plain_names(node))
    source = f"0 + {text}" if isinstance(node, Call) else f"0 + I({text})"
    if _is_comparison(node):
        source = f"0 + I(({text}) * 1.0)"
    given = data[list(columns_of(node))].dropna()
    may_hold_text = _compared_with_text(node)
    for column in given.columns:
        if not is_numeric(given[column]) and not is_boolean(given[column]) and column not in may_hold_text:
            raise UserError(f"{label!r}: column {column!r} holds text; {label!r} needs numbers")
    complete = _plainly_named(node, given)
    try:
        with np.errstate(all="ignore"):
            matrix = model_matrix(source, complete, context=_CONTEXT, na_action="ignore")
    except Exception as error:
        raise UserError(f"{label!r} cannot be computed: {error}") from error
    values = np.asarray(matrix, dtype=float)
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        where = given[bad].iloc[0].to_dict()
        raise UserError(
            f"{label!r} is not a finite number in {int(bad.sum())} rows, first where "
            + ", ".join(f"{k} = {level_name(v)}" for k, v in where.items()),
            mend="Leave these rows out, or transform differently.",
        )
    width = values.shape[1]
    return Numeric(
        label, node, ("",) if width == 1 else tuple(str(i + 1) for i in range(width)), matrix.model_spec
    )


class Variables:
    """Makes the variables of one data set, each once, under the user's levels and contrasts.

    Parameters
    ----------
    data : DataFrame
        Rows to learn levels and transforms from.
    levels : mapping of str to sequence of str
        Levels by column; makes numeric columns factors.
    contrasts : mapping of str to contrasts
        By column a name, or one sequence of numbers a contrast; see ``coding.read_coding``.
    learn_from : DataFrame, optional
        Rows that transforms such as ``scale()`` learn from, missing cells allowed; default ``data``.

    Raises
    ------
    UserError
        If a contrast is not known, or the levels given do not cover the data.
    """

    def __init__(
        self,
        data: pd.DataFrame,
        levels: Mapping[str, Sequence[str]],
        contrasts: Mapping[str, Given],
        learn_from: pd.DataFrame | None = None,
    ) -> None:
        self.data = data
        self.learn_from = data if learn_from is None else learn_from
        self.levels: dict[str, tuple[str, ...]] = {}
        self.notes: list[str] = []
        self.contrasts = dict(contrasts)
        self._made: dict[str, Variable] = {}
        for name, wanted in levels.items():
            if name in data.columns:
                self.levels[name] = self._checked_levels(name, [level_name(v) for v in wanted])
        for name in self.contrasts:
            if name in data.columns:
                self.factor(name)

    def _checked_levels(self, name: str, wanted: list[str]) -> tuple[str, ...]:
        present = natural_levels(self.data[name])
        repeated = [v for v in wanted if wanted.count(v) > 1]
        if repeated:
            raise UserError(f"levels of {name}: {repeated[0]!r} is given twice")
        missing = [v for v in present if v not in wanted]
        if missing:
            shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
            raise UserError(
                f"column {name!r} also holds {shown}, not among the levels given ({', '.join(wanted)})",
                mend="Name every level, or leave those rows out of the file.",
            )
        absent = [v for v in wanted if v not in present]
        if absent:
            self.notes.append(
                f"levels of {name} that do not occur in the data are left out: {', '.join(absent)}"
            )
        return tuple(v for v in wanted if v in present)

    def factor(self, column: str, label: str | None = None) -> Factor:
        """Treat a column as a factor whatever it holds."""
        levels = self.levels.get(column) or natural_levels(self.data[column])
        coding = read_coding(column, self.contrasts.get(column, "treatment"), levels)
        return Factor(label or column, column, levels, coding)

    def make(self, node: Node) -> Variable:
        """Return the variable that an expression of the formula stands for."""
        label = as_r(node)
        if label not in self._made:
            self._made[label] = self._make(node, label)
        return self._made[label]

    def _make(self, node: Node, label: str) -> Variable:
        match node:
            case Name(name):
                column = self.data[name]
                wants_factor = name in self.levels or name in self.contrasts
                if is_numeric(column) and not wants_factor:
                    return Numeric(label, node, ("",), None)
                return self.factor(name, label)
            case Call("factor" | "as.factor" | "ordered" | "relevel" | "C"):
                return replace(self._made_factor(node), label=label)
            case Call("cbind" | "offset"):
                raise UserError(f"{label!r} does not belong on the right side of a formula term")
        numeric = _evaluated(node, self.learn_from, label)
        if _is_comparison(node):
            return Factor(label, label, ("FALSE", "TRUE"), condition=numeric)
        return numeric

    def _made_factor(self, node: Node) -> Factor:
        """Read ``factor(x)``, ``factor(x, levels = c(…))``, ``relevel(f, ref = "a")``, ``C(f, contr.sum)``."""
        match node:
            case Name(name):
                return self.factor(name)
            case Call("factor" | "as.factor", (inner,), ()):
                return self._made_factor(inner)
            case Call("ordered", (inner,), ()):
                return replace(self._made_factor(inner), contrast=Coding("poly"))
            case Call("factor", (inner,), (("levels", Call("c", given, ())),)):
                made = self._made_factor(inner)
                levels = self._checked_levels(made.column, [_literal(g) for g in given])
                return replace(made, levels=levels)
            case Call("relevel", (inner,), (("ref", reference),)) | Call("relevel", (inner, reference), ()):
                made, first = self._made_factor(inner), _literal(reference)
                if first not in made.levels:
                    raise unknown_name(f"level of {made.column}", first, made.levels)
                return replace(made, levels=(first, *(v for v in made.levels if v != first)))
            case Call("C", (inner, Name(name) | Literal(name)), ()):
                made = self._made_factor(inner)
                coding = read_coding(made.column, name.strip("'\""), made.levels)
                return replace(made, contrast=coding)
        raise UserError(
            f"{as_r(node)!r} is no factor that can be read here",
            mend='Available: factor(x), factor(x, levels = c("a", "b")), relevel(x, ref = "a"), C(x, contr.sum).',
        )


def _literal(node: Node) -> str:
    if isinstance(node, Literal):
        quoted = node.text[0] in "'\""
        return node.text[1:-1] if quoted else level_name(float(node.text.rstrip("L")))
    raise UserError(f"{as_r(node)!r} is no level", mend='Write a level in quotes, for example "intact".')
