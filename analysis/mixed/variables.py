"""Variables of a formula and their contrasts: numbers, or factors whose levels, codings and names are R's.

Functions of a whole column (``mean``, ``scale``, ``ns``) keep what they learnt from the rows fitted, so that a reference
grid and new rows are transformed alike. The spline bases are those of R's ``splines``: B-splines over boundary and inner
knots (de Boor 1978, chapter 9); a natural spline is the part of the cubic basis whose second derivative vanishes at both
ends, by the QR decomposition of the two constraints.
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from formulaic.transforms.contrasts import HelmertContrasts, PolyContrasts, SumContrasts, TreatmentContrasts
from formulaic.transforms.poly import poly
from formulaic.transforms.scale import scale
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.interpolate import BSpline

from analysis.arrays import Array, Index, Mask
from analysis.mixed.formula import (
    CONSTANTS,
    FACTOR_FUNCTIONS,
    SHORT_TRUTH,
    Binary,
    FunctionCall,
    Literal,
    MatrixColumn,
    Name,
    Node,
    Note,
    Paren,
    Unary,
    as_r,
    bare,
    children_of,
    columns_of,
    is_condition,
    nodes_of,
)
from stimuli.errors import UserError, did_you_mean, unknown_name


def _spline(
    data: ArrayLike,
    df: int | None = None,
    knots: ArrayLike | None = None,
    degree: int = 3,
    intercept: bool = False,
    Boundary_knots: Sequence[float] | None = None,
    *,
    name: str = "bs",
    _state: dict[str, Any],
) -> Array:
    """Evaluate a spline basis (n, df), R's ``bs`` or ``ns``; knots are learnt from the data fitted."""
    x = np.asarray(data, dtype=float)
    if "knots" not in _state:
        ends = (x.min(), x.max()) if Boundary_knots is None else Boundary_knots
        low, high = sorted(float(end) for end in ends)
        fewest = (1 if name == "ns" else degree) + int(intercept)
        if df is not None and df < fewest:
            raise UserError(
                f"{name}(df = {df}) is too few columns; this spline has at least {fewest}",
                mend=f"Ask for more degrees of freedom{'' if name == 'ns' else ', or a lower degree'}.",
            )
        shares = np.linspace(0.0, 1.0, (fewest if df is None else df) - fewest + 2)[1:-1]
        between = np.quantile(x[(x >= low) & (x <= high)], shares) if knots is None else np.ravel(knots)
        outside = between[(between <= low) | (between >= high)]
        if len(outside):
            raise UserError(
                f"{name}(): the knot {outside[0]:g} does not lie between the boundary knots {low:g} and {high:g}",
                mend="Give inner knots within the range of the data, or wider Boundary.knots.",
            )
        _state["knots"] = np.sort(np.concatenate([np.repeat([low, high], degree + 1), between]))
    all_knots, first = _state["knots"], 0 if intercept else 1
    spline = BSpline(all_knots, np.eye(len(all_knots) - degree - 1), degree)
    if name == "bs":
        return np.asarray(spline(x)[:, first:])
    inside = np.clip(x, *all_knots[[0, -1]])
    basis = spline(inside) + (x - inside)[:, None] * spline.derivative()(inside)
    rotation, _ = linalg.qr(spline.derivative(2)(all_knots[[0, -1]])[:, first:].T)
    return np.asarray((basis[:, first:] @ rotation)[:, 2:])


WHOLE_COLUMN: Mapping[str, Callable[[Array], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "sd": lambda x: np.std(x, ddof=1),
    "min": np.min,
    "max": np.max,
}
"""Functions of a whole column that are missing in R where a cell is, unless told ``na.rm = TRUE``."""


def level_name(value: Any) -> str:
    """Write a cell as R writes it as a factor level: 95 for 95.0, TRUE for True."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | np.integer | np.floating):
        return f"{float(value):.15g}"
    return str(value)


def _of_column(name: str, data: ArrayLike, na_rm: bool = False, *, _state: dict[str, Any]) -> float:
    """Return a number that belongs to a whole column, the one of the rows fitted."""
    if "value" not in _state:
        _state["value"] = float(WHOLE_COLUMN[name](np.asarray(data, dtype=float)))
    return float(_state["value"])


def _flat(*parts: ArrayLike) -> Array:
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def _column_of(matrix: Any, number: int) -> Array:
    columns = np.asarray(matrix, dtype=float)
    columns = columns.reshape(len(columns), -1)
    if not 1 <= number <= columns.shape[1]:
        raise UserError(f"[, {number}]: there are {columns.shape[1]} columns", mend="Columns count from 1.")
    return columns[:, number - 1]


def _is_in(x: Iterable[Any], values: ArrayLike) -> Mask:
    wanted = {level_name(v) for v in np.ravel(np.asarray(values))}
    return np.array([level_name(v) in wanted for v in x], dtype=bool)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "I": lambda x: x,
    "log": lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base),
    **{
        function.__name__: function
        for function in (np.log2, np.log10, np.log1p, np.exp, np.expm1, np.sqrt, np.sign)
    },
    **{function.__name__: function for function in (np.sin, np.cos, np.tan, np.tanh, np.floor)},
    "abs": np.abs,
    "ceiling": np.ceil,
    "round": lambda x, digits=0: np.round(x, int(digits)),
    "ifelse": np.where,
    "pmin": lambda *parts: reduce(np.minimum, parts),
    "pmax": lambda *parts: reduce(np.maximum, parts),
    "as.numeric": lambda x: np.asarray(x, dtype=float),
    "as.integer": lambda x: np.trunc(np.asarray(x, dtype=float)),
    "as.logical": lambda x: np.asarray(x, dtype=float) != 0.0,
    "as.vector": _flat,
    "c": _flat,
    "dummy": lambda x, level: _is_in(x, [level]),
}
"""By R's name."""
_LEARNING: Mapping[str, Callable[..., Any]] = {
    **{name: partial(_of_column, name) for name in WHOLE_COLUMN},
    "bs": _spline,
    "ns": partial(_spline, name="ns"),
    "scale": scale,
    "poly": poly,
}
"""Functions that keep what they learn from the rows fitted; ``scale`` and ``poly`` are formulaic's."""
_MANY = {"c", "pmin", "pmax"}
"""Functions of any number of values."""
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(WHOLE_COLUMN, ("na.rm",)),
    "log": ("base",),
    "round": ("digits",),
    "ifelse": ("yes", "no"),
    "dummy": ("level",),
    "bs": ("df", "knots", "degree", "intercept", "Boundary.knots"),
    "ns": ("df", "knots", "intercept", "Boundary.knots"),
    "scale": ("center", "scale"),
    "poly": ("degree", "raw"),
}
"""What R's functions take after their first argument, in R's order."""


def _numbers(value: Any) -> Array:
    """Return a value as numbers, none where it is text or true/false."""
    numbers = np.ravel(np.asarray(value))
    return numbers.astype(float) if numbers.dtype.kind in "iuf" else np.empty(0)


def _is_count(value: Any) -> bool:
    numbers = _numbers(value)
    return len(numbers) == 1 and numbers[0] >= 1 and numbers[0] == round(numbers[0])


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("df", "degree"), (_is_count, "a whole number from 1 on")),
    **dict.fromkeys(("intercept", "raw", "na.rm"), (_is_truth, "TRUE or FALSE")),
    **dict.fromkeys(
        ("center", "scale"), (lambda v: _is_truth(v) or len(_numbers(v)) == 1, "TRUE, FALSE or a number")
    ),
    "digits": (lambda v: len(_numbers(v)) == 1, "a number"),
    "base": (
        lambda v: len(_numbers(v)) > 0 and bool(((_numbers(v) > 0) & (_numbers(v) != 1)).all()),
        "a positive number other than 1",
    ),
    "knots": (lambda v: len(_numbers(v)) > 0, "a number, or several as in c(1, 2)"),
    "Boundary.knots": (lambda v: len(np.unique(_numbers(v))) == 2, "two numbers, as in c(0, 10)"),
}
"""What the value of an argument must be, and this in words."""


def _arguments(node: FunctionCall, value: Callable[[Node], Any]) -> dict[str, Any]:
    """Evaluate what a call gives after its first argument, by R's names."""
    function, named = bare(node.function), dict(node.keywords)
    names = _ARGUMENTS.get(function, ())
    unfilled, positional = [name for name in names if name not in named], node.arguments[1:]
    unknown = [name for name in named if name not in names]
    if unknown or len(positional) > len(unfilled):
        described = repr(unknown[0]) if unknown else f"for {as_r(positional[len(unfilled)])}"
        hint = did_you_mean(unknown[0], names) if unknown else ""
        if function == "ns" and unknown == ["degree"]:
            hint = f"Write bs({as_r(node.arguments[0])}, degree = {as_r(named['degree'])}); natural splines are cubic. "
        takes = f"takes {', '.join(names)} after its first argument" if names else "takes one argument"
        takes = "takes values without names" if function in _MANY else takes
        raise UserError(
            f"{as_r(node)!r}: {function}() has no argument {described}", mend=f"{hint}{function}() {takes}."
        )
    named |= dict(zip(unfilled, positional, strict=False))
    if function == "ifelse" and len(named) < 2:
        raise UserError(
            f"{as_r(node)!r}: ifelse() takes a condition and two values",
            mend="Give the value where the condition holds, then the other, as in ifelse(trial > 20, 1, 0).",
        )
    values = {
        name: SHORT_TRUTH[argument] if argument in SHORT_TRUTH else value(argument)
        for name, argument in named.items()
    }
    for name, given in values.items():
        holds, rule = _RULES.get(name, (None, ""))
        if holds is not None and not holds(given):
            raise UserError(
                f"{as_r(node)!r}: {name} is {as_r(named[name])}; it must be {rule}",
                mend=f"Change {name}, or leave it out.",
            )
    return values


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
    "%%": operator.mod,
    "%/%": operator.floordiv,
    "&": operator.and_,
    "&&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "%in%": _is_in,
}

Learnt = dict[Node, dict[str, Any]]
"""What each call of an expression keeps from the rows fitted."""


def _value(node: Node, data: Any, learnt: Learnt) -> Any:
    """Evaluate an expression: a number, a text, or one value per row."""

    def value(part: Node) -> Any:
        return _value(part, data, learnt)

    match node:
        case Name(name):
            return CONSTANTS[name] if name in CONSTANTS else data[name]
        case Literal(text) if text[0] in "'\"":
            return text[1:-1]
        case Literal(text):
            number = text.rstrip("L")
            return int(number) if number.isdigit() else float(number)
        case FunctionCall(function, (first, *more), keywords) if bare(function) in {*_FUNCTIONS, *_LEARNING}:
            function = bare(function)
            if function in _MANY and not keywords:
                return _FUNCTIONS[function](value(first), *map(value, more))
            named = _arguments(node, value)
            if function in _LEARNING:
                named = {name.replace(".", "_"): argument for name, argument in named.items()}
                return _LEARNING[function](value(first), **named, _state=learnt.setdefault(node, {}))
            return _FUNCTIONS[function](
                value(first), *(named[name] for name in _ARGUMENTS.get(function, ()) if name in named)
            )
        case Binary("|" | "||", _, _):
            raise UserError(
                f"{as_r(node)!r}: lme4 takes | for the bar of a random-effects term, even inside functions",
                mend="Make a column, or rewrite it: !(a == 1 & b == 1) for a != 1 | b != 1.",
            )
        case Binary(":", Literal(low), Literal(high)) if low.isdigit() and high.isdigit():
            step = 1 if int(low) <= int(high) else -1
            return np.arange(int(low), int(high) + step, step)
        case Binary(op, left, right) if op in _OPERATORS:
            return _OPERATORS[op](value(left), value(right))
        case Unary("!", operand):
            return ~np.asarray(value(operand), dtype=bool)
        case Unary(op, operand):
            return -value(operand) if op == "-" else +value(operand)
        case MatrixColumn(inner, number):
            return _column_of(value(inner), int(number.rstrip("L")))
        case Paren(inner):
            return value(inner)
    raise UserError(
        f"{as_r(node)!r} cannot be computed row by row",
        mend="Inside I() and other functions use + - * / ^ and comparisons only.",
    )


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column counts as numbers: not text, not categorical, not true/false."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


@dataclass(frozen=True)
class Numeric:
    """A variable that yields numbers."""

    label: str  # as R prints it
    node: Node  # its expression
    suffixes: tuple[str, ...] = ("",)  # what R appends to the label for each column
    learnt: Learnt = field(default_factory=dict, compare=False)

    def values(self, data: pd.DataFrame) -> Array:
        """Evaluate on rows without missing cells; shape (n, columns)."""
        values = np.asarray(_value(self.node, data, self.learnt))
        if values.dtype.kind == "U":
            raise UserError(
                f"{self.label!r} gives text; a term like this needs numbers",
                mend="Give numbers, as in ifelse(trial > 20, 1, 0), or make a column.",
            )
        values = values.astype(float)
        return (values if values.ndim else np.full(len(data), values)).reshape(len(data), -1)


def _beside_text(node: Node) -> set[str]:
    """Columns that are compared with a quoted text, and so may hold text."""
    columns = set()
    for part in nodes_of(node):
        is_dummy = isinstance(part, FunctionCall) and part.function == "dummy"
        if is_dummy or (isinstance(part, Binary) and part.op in {"==", "!=", "%in%"}):
            names = {child.name for child in children_of(part) if isinstance(child, Name)}
            if any(isinstance(node, Literal) and node.text[0] in "'\"" for node in nodes_of(part)):
                columns |= names
    return columns


def evaluate(node: Node, data: pd.DataFrame, label: str) -> Numeric:
    """Make a numeric variable of an expression, learning from data."""
    for part in nodes_of(node):
        if (
            not isinstance(part, FunctionCall)
            or part.function not in WHOLE_COLUMN
            or "na.rm" in dict(part.keywords)
        ):
            continue
        gaps = int(data[list(columns_of(part))].isna().any(axis=1).sum())
        if gaps:
            raise UserError(
                f"{label!r}: {as_r(part)} is missing, since {gaps} rows are",
                mend=f"Write {as_r(part)[:-1]}, na.rm = TRUE), or leave these rows out of the file.",
            )
    given = data[list(columns_of(node))].dropna()
    may_hold_text = _beside_text(node)
    for column in given.columns:
        if (
            not is_numeric(given[column])
            and not pd.api.types.is_bool_dtype(given[column])
            and column not in may_hold_text
        ):
            raise UserError(
                f"{label!r}: column {column!r} holds text; {label!r} needs numbers",
                mend=f'Compare it with a level, for example {column} == "{given[column].iloc[0]}", or make a column.',
            )
    variable = Numeric(label, node)
    try:
        with np.errstate(all="ignore"):
            values = variable.values(given)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{label!r} cannot be computed: {error}",
            mend="Formulas take R's functions row by row; for anything else make a column.",
        ) from error
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        row = given[bad].iloc[0].to_dict()
        raise UserError(
            f"{label!r} is not a finite number in {int(bad.sum())} rows, first where "
            + ", ".join(f"{k} = {level_name(v)}" for k, v in row.items()),
            mend="Leave these rows out, or transform differently.",
        )
    width = values.shape[1]
    return variable if width == 1 else replace(variable, suffixes=tuple(str(i + 1) for i in range(width)))


Given = str | Sequence[Sequence[float]] | Mapping[str, Sequence[float]]
"""Contrasts as a user gives them: a name, one column of numbers a contrast, or such columns by name."""

_FORMULAIC = {
    "treatment": TreatmentContrasts,
    "sum": SumContrasts,
    "helmert": HelmertContrasts,
    "poly": PolyContrasts,
}
CONTRASTS = (*_FORMULAIC, "sdif")
"""Contrast codings by name, as R's contr.treatment, contr.sum, …"""
_POWERS = {1: ".L", 2: ".Q", 3: ".C"}


@dataclass(frozen=True)
class Coding:
    """A contrast coding of one factor."""

    name: str = "treatment"  # one of ``CONTRASTS``, or ``custom``
    columns: tuple[tuple[float, ...], ...] = ()  # the custom contrasts, each with one number per level
    names: tuple[str, ...] = ()  # names of the custom contrasts

    def matrix(self, levels: Sequence[str]) -> Array:
        """Contrast matrix, shape (levels, levels - 1)."""
        count = len(levels)
        if self.name == "custom":
            return np.array(self.columns, dtype=float).T
        if self.name == "sdif":
            j = np.arange(1.0, count)
            below = np.arange(1, count + 1)[:, None] > j
            return np.asarray(np.where(below, j / count, j / count - 1.0))
        return np.asarray(_FORMULAIC[self.name]().get_coding_matrix(list(levels)), dtype=float)

    def suffixes(self, levels: Sequence[str]) -> tuple[str, ...]:
        """Return what R appends to the factor's name for each column."""
        count = len(levels) - 1
        if self.name == "custom":
            return self.names
        if self.name == "treatment":
            return tuple(levels[1:])
        if self.name == "sdif":
            return tuple(f"{b}-{a}" for a, b in pairwise(levels))
        if self.name == "poly":
            return tuple(_POWERS.get(i + 1, f"^{i + 1}") for i in range(count))
        return tuple(str(i + 1) for i in range(count))


def read_coding(factor: str, given: Given, levels: Sequence[str]) -> Coding:
    """Check contrasts as a user gives them."""
    if isinstance(given, str):
        name = given.removeprefix("contr.")
        if name not in CONTRASTS:
            raise unknown_name(f"contrast of {factor}", name, CONTRASTS)
        return Coding(name)
    names = tuple(str(k) for k in given) if isinstance(given, Mapping) else ()
    raw = given.values() if isinstance(given, Mapping) else given
    columns = tuple(tuple(float(v) for v in column) for column in raw)
    n_contrasts = len(levels) - 1
    order = ", ".join(levels)
    for i, column in enumerate(columns):
        if len(column) != len(levels):
            raise UserError(
                f"contrast {i + 1} of {factor} has {len(column)} numbers; the factor has {len(levels)} levels ({order})",
                mend="Give one number per level, in the order of the levels.",
            )
    if len(columns) != n_contrasts:
        raise UserError(
            f"{factor} has {len(columns)} contrasts; a factor with {len(levels)} levels takes {n_contrasts}",
            mend="Add contrasts until every difference between levels is covered.",
        )
    square = np.column_stack([np.ones(len(levels)), np.array(columns).T])
    if not np.isfinite(square).all() or np.linalg.matrix_rank(square) < len(levels):
        raise UserError(
            f"the contrasts of {factor} do not tell its levels apart ({order})",
            mend="No contrast may be constant over levels or a combination of the others.",
        )
    return Coding("custom", columns, names or tuple(str(i + 1) for i in range(n_contrasts)))


_MARKS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
"""Marks in the order of the Unicode collation algorithm; they come before digits, digits before letters."""


def _alphabetical(text: str) -> tuple[list[tuple[int, int | str]], str, str]:
    """Sort key of a word as R has it: letters first, then accents, then small before capital letters."""
    letters: list[tuple[int, int | str]] = []
    for sign in unicodedata.normalize("NFKD", text).casefold():
        if sign in _MARKS:
            letters.append((0, _MARKS.index(sign)))
        elif not unicodedata.combining(sign):
            letters.append(
                (
                    1 if sign.isdigit() else 2 if sign.isalpha() else 0,
                    sign if sign.isalnum() else ord(sign) + 99,
                )
            )
    return letters, unicodedata.normalize("NFKD", text).casefold(), text.swapcase()


@dataclass(frozen=True)
class DistinctValues:
    """A column's distinct values in order of appearance, and the place of each row's among them, shape (n,)."""

    places: Index
    values: list[Any]


def read_cells(column: pd.Series[Any]) -> DistinctValues:
    """Find the distinct values of a column."""
    places, values = pd.factorize(column)
    return DistinctValues(places, values.tolist())


def natural_levels(column: pd.Series[Any], cells: DistinctValues | None = None) -> tuple[str, ...]:
    """List the levels that occur: categories in their order, numbers by size, text alphabetically."""
    values = (cells or read_cells(column)).values
    if isinstance(column.dtype, pd.CategoricalDtype):
        occurring = set(values)
        return tuple(level_name(c) for c in column.cat.categories if c in occurring)
    if is_numeric(column):
        return tuple(level_name(v) for v in sorted(values))
    return alphabetical([level_name(v) for v in values])


def alphabetical(levels: Sequence[str]) -> tuple[str, ...]:
    """Sort levels as R does, whatever their case, small letters first."""
    letters = "".join(levels)
    # Digits and small letters of ASCII stand in that order already, which spares making keys.
    plain = letters.isascii() and letters.isalnum() and letters == letters.lower()
    return tuple(sorted(levels) if plain else sorted(levels, key=_alphabetical))


@dataclass(frozen=True)
class CutNumbers:
    """Numbers cut into intervals, R's ``cut``."""

    numbers: Numeric  # what is cut
    breaks: tuple[float, ...]  # ends of the intervals, rising
    right: bool  # whether intervals are closed on the right
    lowest: bool  # whether the outermost end that would be open is closed
    kept: tuple[int, ...] = ()  # the intervals that occur; they are the levels

    @property
    def node(self) -> Node:
        """The expression that is cut."""
        return self.numbers.node

    def places(self, data: pd.DataFrame) -> Index:
        """Interval of each row, from 0; shape (n,)."""
        x = self.numbers.values(data)[:, 0]
        intervals = np.searchsorted(self.breaks, x, side="left" if self.right else "right") - 1
        if self.lowest:
            intervals = np.where(
                x == self.breaks[0 if self.right else -1],
                0 if self.right else len(self.breaks) - 2,
                intervals,
            )
        outside = (intervals < 0) | (intervals > len(self.breaks) - 2)
        if outside.any():
            raise UserError(
                f"cut({self.numbers.label}): {x[outside][0]:g} lies in no interval, and so do {int(outside.sum())} rows in all",
                mend="Give wider breaks, or include.lowest = TRUE.",
            )
        return np.asarray(intervals, dtype=np.intp)

    def values(self, data: pd.DataFrame) -> Array:
        """Positions among the intervals that occur, shape (n, 1)."""
        positions = {interval: position for position, interval in enumerate(self.kept)}
        intervals = self.places(data)
        for interval in np.unique(intervals):
            if int(interval) not in positions:
                low, high = self.breaks[interval], self.breaks[interval + 1]
                raise UserError(
                    f"cut({self.numbers.label}): no row fitted lies between {low:g} and {high:g}",
                    mend="Predict for values of the intervals fitted.",
                )
        return np.array([[positions[int(i)]] for i in intervals], dtype=float)


def interval_names(breaks: Sequence[float], right: bool, lowest: bool, digits: int = 3) -> tuple[str, ...]:
    """Name intervals as R does, with as many digits as tell the breaks apart."""
    texts = [f"{b:.{digits}g}" for b in breaks]
    while len(set(texts)) < len(texts) and digits < 12:
        digits += 1
        texts = [f"{b:.{digits}g}" for b in breaks]
    names = [f"({a},{b}]" if right else f"[{a},{b})" for a, b in pairwise(texts)]
    if lowest and right:
        names[0] = "[" + names[0][1:]
    elif lowest:
        names[-1] = names[-1][:-1] + "]"
    return tuple(names)


@dataclass(frozen=True)
class Factor:
    """A variable that yields levels."""

    label: str  # as R prints it
    column: str  # the column it reads
    levels: tuple[str, ...]  # first is the reference under treatment contrasts
    contrast: Coding = field(default_factory=Coding)  # how levels become columns
    # yields positions in ``levels``: 0 or 1 for a comparison such as ``I(x > 2)``, intervals for ``cut()``
    condition: Numeric | CutNumbers | None = None
    printed: tuple[str, ...] = ()  # other names of the levels, ``factor(x, labels = …)``

    def codes(self, data: pd.DataFrame) -> Index:
        """Positions in ``levels``; shape (n,)."""
        if self.condition is not None:
            return np.asarray(self.condition.values(data)[:, 0], dtype=np.intp)
        return self.codes_of(read_cells(data[self.column]))

    def codes_of(self, cells: DistinctValues) -> Index:
        """Positions in ``levels`` of a column's cells; shape (n,)."""
        positions = {level: position for position, level in enumerate(self.levels)}
        names = [level_name(v) for v in cells.values]
        for name in names:
            if name not in positions:
                raise unknown_name(f"level of {self.column}", name, self.levels)
        return np.array([positions[name] for name in names], dtype=np.intp)[cells.places]

    def coding(self) -> tuple[Array, tuple[str, ...]]:
        """Contrast matrix, shape (levels, levels - 1), and what R appends to the label for each column."""
        return self.contrast.matrix(self.levels), self.contrast.suffixes(self.shown)

    @property
    def shown(self) -> tuple[str, ...]:
        """Levels as R's columns name them."""
        return self.printed or self.levels


Variable = Numeric | Factor


class Variables:
    """Makes the variables of one data set, each once, under the user's levels and contrasts."""

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
        self.notes: list[Note] = []
        self.contrasts = dict(contrasts)
        self._made: dict[str, Variable] = {}
        self._cells: dict[str, DistinctValues] = {}
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
        if absent := tuple(v for v in wanted if v not in present):
            self.notes.append(Note("levels_absent", factor=name, levels=absent))
        return tuple(v for v in wanted if v in present)

    def factor(self, column: str, label: str | None = None) -> Factor:
        """Treat a column as a factor whatever it holds."""
        levels = self.levels.get(column) or natural_levels(self.data[column], self.cells(column))
        default = "poly" if self.is_ordered(column) else "treatment"
        coding = read_coding(column, self.contrasts.get(column, default), levels)
        return Factor(label or column, column, levels, coding)

    def is_ordered(self, column: str) -> bool:
        """Whether a column holds ordered categories and no levels were given: R's ordered factor, with polynomial contrasts."""
        kind = self.data[column].dtype
        return column not in self.levels and isinstance(kind, pd.CategoricalDtype) and bool(kind.ordered)

    def cells(self, column: str) -> DistinctValues:
        """Return the distinct values of a column of the data, found once."""
        if column not in self._cells:
            self._cells[column] = read_cells(self.data[column])
        return self._cells[column]

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
                    return Numeric(label, node)
                return self.factor(name, label)
            case FunctionCall(function, _, _) if bare(function) in FACTOR_FUNCTIONS:
                return replace(self._read_factor(node), label=label)
            case FunctionCall("cbind" | "offset"):
                raise UserError(
                    f"{label!r} does not belong on the right side of a formula term",
                    mend="cbind(success, failure) is a response; add offset() as a separate term.",
                )
            case FunctionCall(function, _, _) if function in WHOLE_COLUMN:
                raise UserError(
                    f"{label!r} is one number, not one for each row",
                    mend=f"Do arithmetic with it inside I(), for example I({columns_of(node)[0]} - {label}).",
                )
            case FunctionCall("poly", (_, Name() | FunctionCall(), *_), _):
                raise UserError(
                    f"{label!r}: polynomials of several variables are not read",
                    mend="Write poly(x, 2) * poly(z, 2), or poly(x, 2) + poly(z, 2) + x:z.",
                )
            case FunctionCall("dummy", arguments, keywords) if len(arguments) != 2 or keywords:
                raise UserError(
                    f"{label!r}: dummy() takes a factor and one level",
                    mend='Write one for each level: dummy(cond, "intact") + dummy(cond, "initial").',
                )
        numeric = evaluate(node, self.learn_from, label)
        if is_condition(node):
            return Factor(label, label, ("FALSE", "TRUE"), condition=numeric)
        return numeric

    def _read_factor(self, node: Node) -> Factor:
        """Read ``factor(x)``, ``relevel(f, ref = "a")``, ``C(f, contr.sum)``, ``cut(x, 3)`` and their like."""
        match node:
            case Name(name):
                return self.factor(name)
            case FunctionCall("as.factor" | "droplevels", (inner,), ()):
                return self._read_factor(inner)
            case FunctionCall("as.character", (inner,), ()):
                factor = self._read_factor(inner)
                return replace(factor, levels=alphabetical(factor.levels), contrast=Coding(), printed=())
            case FunctionCall("factor" | "ordered" as function, (inner, *more), keywords):
                # R's order of arguments: x, levels, labels.
                arguments = dict(zip(("levels", "labels"), more, strict=False)) | dict(keywords)
                if len(more) <= 2 and set(arguments) <= {"levels", "labels", "ordered"}:
                    return self._given_levels(inner, arguments, function == "ordered")
            case FunctionCall("relevel", (inner,), (("ref", reference),)) | FunctionCall(
                "relevel", (inner, reference), ()
            ):
                factor, level = self._read_factor(inner), _literals(reference)[0]
                if level not in factor.shown:
                    raise unknown_name(f"level of {factor.column}", level, factor.shown)
                position = factor.shown.index(level)
                order = [position, *(i for i in range(len(factor.levels)) if i != position)]
                return replace(
                    factor,
                    levels=tuple(factor.levels[i] for i in order),
                    printed=tuple(factor.printed[i] for i in order) if factor.printed else (),
                )
            case FunctionCall("C", (inner, contrast), keywords):
                factor = self._read_factor(inner)
                return replace(factor, contrast=_named_contrast(factor, contrast, dict(keywords)))
            case FunctionCall("cut", (inner, breaks, *more), keywords):
                arguments = dict(zip(("labels", "include.lowest", "right"), more, strict=False))
                arguments |= dict(keywords)
                return self._cut(inner, breaks, arguments)
            case FunctionCall("cut", (inner,), (("breaks", breaks), *more)):
                return self._cut(inner, breaks, dict(more))
        raise UserError(
            f"{as_r(node)!r} is no factor that can be read here",
            mend='Available: factor(x), factor(x, levels = c("a", "b"), labels = c("A", "B")), ordered(x), '
            'relevel(x, ref = "a"), C(x, contr.sum), cut(x, 3).',
        )

    def _given_levels(self, inner: Node, arguments: Mapping[str, Node], in_order: bool) -> Factor:
        factor = self._read_factor(inner)
        wanted = list(factor.levels)
        if "levels" in arguments:
            wanted = _literals(arguments["levels"])
            levels = self._checked_levels(factor.column, wanted)
            factor = replace(factor, levels=levels, printed=())
        if "labels" in arguments:
            labels = _literals(arguments["labels"])
            if len(labels) != len(wanted) or len(set(labels)) < len(labels):
                raise UserError(
                    f"factor labels {', '.join(labels)}: {factor.column} has the levels {', '.join(wanted)}",
                    mend="Give one label per level, each another.",
                )
            names = dict(zip(wanted, labels, strict=True))
            factor = replace(factor, printed=tuple(names[level] for level in factor.levels))
        if in_order or _truth(arguments.get("ordered")):
            factor = replace(factor, contrast=Coding("poly"))
        return factor

    def _cut(self, inner: Node, breaks: Node, arguments: Mapping[str, Node]) -> Factor:
        unknown = set(arguments) - {"labels", "right", "include.lowest"}
        if unknown:
            raise unknown_name(
                "argument of cut", min(unknown), ("breaks", "labels", "right", "include.lowest")
            )
        label = as_r(inner)
        numbers = self.make(inner)
        if not isinstance(numbers, Numeric) or len(numbers.suffixes) > 1:
            raise UserError(f"cut({label}): {label} is no column of numbers", mend="Cut numbers.")
        x = numbers.values(self.learn_from[list(columns_of(inner))].dropna())[:, 0]
        right, lowest = _truth(arguments.get("right"), True), _truth(arguments.get("include.lowest"))
        cut = CutNumbers(numbers, _breaks(breaks, float(x.min()), float(x.max())), right, lowest)
        names = interval_names(cut.breaks, right, lowest)
        if "labels" in arguments:
            names = tuple(_literals(arguments["labels"]))
            if len(names) != len(cut.breaks) - 1:
                raise UserError(
                    f"cut({label}) has {len(cut.breaks) - 1} intervals and {len(names)} labels",
                    mend="Give one label per interval.",
                )
        intervals = tuple(int(i) for i in sorted(set(cut.places(self.data))))
        return Factor(
            label, label, tuple(names[i] for i in intervals), condition=replace(cut, kept=intervals)
        )


def _breaks(node: Node, low: float, high: float) -> tuple[float, ...]:
    """Read the breaks of ``cut``: given, or so many intervals of one width, a thousandth of the range beyond it."""
    breaks = [float(v) for v in _literals(node)]
    if len(breaks) > 1:
        if len(set(breaks)) < len(breaks):
            raise UserError(f"cut: the breaks {as_r(node)} repeat", mend="Give each break once.")
        return tuple(sorted(breaks))
    count = int(breaks[0])
    if count < 2:
        raise UserError(
            f"cut: {as_r(node)} intervals", mend="Cut into two intervals or more, or give breaks."
        )
    ends = [low + (high - low) * i / count for i in range(count + 1)]
    ends[0], ends[-1] = low - (high - low) / 1000.0, high + (high - low) / 1000.0
    return tuple(ends)


def _named_contrast(factor: Factor, node: Node, options: Mapping[str, Node]) -> Coding:
    """Read the contrast of ``C()``: a name, or R's contrast function called, with the base of treatment contrasts."""
    name, base = "", options.get("base")
    match node:
        case Name(text):
            name = text
        case Literal(text):
            name = text.strip("'\"")
        case FunctionCall(function, _, keywords) if bare(function).startswith("contr."):
            name, base = bare(function), dict(keywords).get("base", base)
    if not name or set(options) - {"base"}:
        raise UserError(
            f"C({factor.label}, {as_r(node)}) is not a known contrast",
            mend=f"Name one, for example C({factor.label}, contr.sum); give your own numbers in the option contrasts.",
        )
    coding = read_coding(factor.column, name, factor.levels)
    if base is None:
        return coding
    count, number = len(factor.levels), int(float(_literals(base)[0]))
    if coding.name != "treatment" or not 1 <= number <= count:
        raise UserError(
            f"base = {number} of {factor.label}: it is the number of a level, 1 to {count}, "
            "of treatment contrasts",
            mend=f'Or write relevel({factor.label}, ref = "{factor.levels[-1]}").',
        )
    others = [i for i in range(count) if i != number - 1]
    columns = tuple(tuple(float(i == j) for i in range(count)) for j in others)
    # R numbers the columns when it was called by their count, and so does C().
    return Coding("custom", columns, tuple(str(j + 1) for j in others))


def _truth(node: Node | None, default: bool = False) -> bool:
    if node is None:
        return default
    truth = SHORT_TRUTH.get(node, CONSTANTS.get(as_r(node)))
    if isinstance(truth, bool):
        return truth
    raise UserError(f"{as_r(node)!r} is neither TRUE nor FALSE", mend="Write TRUE or FALSE.")


def _literals(node: Node) -> list[str]:
    """Read ``c("a", "b")``, ``1:4`` or one value."""
    match node:
        case FunctionCall("c", arguments, ()):
            return [value for argument in arguments for value in _literals(argument)]
        case Literal() | Name() | Unary("-", Literal() | Name()) | Binary(":", _, _) if not columns_of(node):
            with suppress(TypeError):
                return [level_name(value) for value in np.ravel(_value(node, {}, {})).tolist()]
    raise UserError(f"{as_r(node)!r} is no level", mend='Write a level in quotes, for example "intact".')
