"""Numeric variables of a formula: expressions as formulaic computes them, under the names that R gives their columns.

Functions of a whole column (``mean``, ``scale``, ``ns``) keep what they learnt from the rows fitted, so that a reference
grid and new rows are transformed alike. The spline bases are those of R's ``splines``: B-splines over boundary and inner
knots (de Boor 1978, chapter 9); a natural spline is the part of the cubic basis whose second derivative vanishes at both
ends, by the QR decomposition of the two constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from formulaic import model_matrix
from formulaic.utils.stateful_transforms import stateful_transform
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.interpolate import BSpline

from stimuli.errors import UserError

from .expression import Binary, Call, Literal, Name, Node, as_python, as_r, columns_of, is_condition, nodes_of

Array = NDArray[np.float64]


def bs(
    data: Any,
    df: int | None = None,
    knots: ArrayLike | None = None,
    degree: int = 3,
    intercept: bool = False,
    Boundary_knots: Sequence[float] | None = None,
    _state: MutableMapping[str, Any] | None = None,
) -> Array:
    """Evaluate a B-spline basis, R's ``bs``; knots are learnt from the data fitted.

    Shapes: data (n,), returns (n, df).
    """
    x = np.asarray(data, dtype=float)
    state = {} if _state is None else _state
    if "knots" not in state:
        inner = None if df is None else df - (degree + 1) + int(not intercept)
        state["knots"] = _all_knots("bs", x, inner, df, knots, Boundary_knots, degree + 1)
    basis = _basis(state["knots"], degree)(x)
    return np.asarray(basis if intercept else basis[:, 1:])


def ns(
    data: Any,
    df: int | None = None,
    knots: ArrayLike | None = None,
    intercept: bool = False,
    Boundary_knots: Sequence[float] | None = None,
    _state: MutableMapping[str, Any] | None = None,
) -> Array:
    """Evaluate a natural cubic spline basis, R's ``ns``; knots are learnt from the data fitted.

    Shapes: data (n,), returns (n, df).
    """
    x = np.asarray(data, dtype=float)
    state = {} if _state is None else _state
    if "knots" not in state:
        inner = None if df is None else df - 1 - int(intercept)
        state["knots"] = _all_knots("ns", x, inner, df, knots, Boundary_knots, 4)
    spline = _basis(state["knots"], 3)
    ends = state["knots"][[0, -1]]
    inside = np.clip(x, *ends)
    basis = spline(inside) + (x - inside)[:, None] * spline.derivative()(inside)
    bent = spline.derivative(2)(ends)
    first = 0 if intercept else 1
    rotation, _ = linalg.qr(bent[:, first:].T)
    return np.asarray((basis[:, first:] @ rotation)[:, 2:])


def _all_knots(
    function: str,
    x: Array,
    inner: int | None,
    df: int | None,
    knots: ArrayLike | None,
    ends: Sequence[float] | None,
    order: int,
) -> Array:
    """Boundary knots ``order`` times each, with the inner knots between."""
    low, high = (float(x.min()), float(x.max())) if ends is None else sorted(float(e) for e in ends)
    if knots is not None:
        between = np.atleast_1d(np.asarray(knots, dtype=float))
    elif inner is None:
        between = np.empty(0)
    elif inner < 0:
        raise UserError(
            f"{function}(df = {df}) is too few columns; this spline has at least {df - inner if df else 1}",
            mend="Ask for more degrees of freedom, or a lower degree.",
        )
    else:
        within = x[(x >= low) & (x <= high)]
        between = np.quantile(within, np.linspace(0.0, 1.0, inner + 2)[1:-1])
    outside = between[(between <= low) | (between >= high)]
    if len(outside):
        raise UserError(
            f"{function}(): the knot {outside[0]:g} does not lie between the boundary knots {low:g} and {high:g}",
            mend="Give inner knots within the range of the data, or wider Boundary.knots.",
        )
    return np.sort(np.concatenate([np.full(order, low), np.full(order, high), between]))


def _basis(knots: Array, degree: int) -> BSpline:
    return BSpline(knots, np.eye(len(knots) - degree - 1), degree)


WHOLE_COLUMN = frozenset({"mean", "median", "sd", "min", "max"})
"""Functions of a whole column that are missing in R where a cell is, unless told ``na.rm = TRUE``."""


def level_name(value: Any) -> str:
    """Write a cell as R writes it as a factor level: 95 for 95.0, TRUE for True."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | np.integer | np.floating):
        return f"{float(value):.15g}"
    return str(value)


def _log(x: Any, base: float | None = None) -> Any:
    return np.log(x) if base is None else np.log(x) / np.log(base)


def _round(x: Any, digits: float = 0) -> Any:
    return np.round(x, int(digits))


def _remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have formulaic hand a function the mapping in which it keeps what it learnt."""
    return cast(Callable[..., Any], stateful_transform(function))


def _learnt(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Make a function of a whole column that remembers its value."""

    def whole(data: Any, na_rm: bool = False, _state: MutableMapping[str, Any] | None = None) -> Any:
        state = {} if _state is None else _state
        if "value" not in state:
            state["value"] = float(function(np.asarray(data, dtype=float)))
        return state["value"]

    return _remembering(whole)


def _flat(*parts: ArrayLike) -> Array:
    return np.concatenate([np.ravel(np.asarray(part)) for part in parts])


def _column_of(matrix: Any, number: int) -> Array:
    columns = np.asarray(matrix, dtype=float)
    columns = columns.reshape(len(columns), -1)
    if not 1 <= number <= columns.shape[1]:
        raise UserError(f"[, {number}]: there are {columns.shape[1]} columns", mend="Columns count from 1.")
    return columns[:, number - 1]


def _is_in(x: Iterable[Any], values: ArrayLike) -> NDArray[np.bool_]:
    wanted = {level_name(v) for v in np.ravel(np.asarray(values))}
    return np.array([level_name(v) in wanted for v in x], dtype=bool)


def _dummy(x: Iterable[Any], level: Any) -> Array:
    return np.array([level_name(v) == level_name(level) for v in x], dtype=float)


CONTEXT: Mapping[str, Callable[..., Any]] = {
    "log": _log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "round": _round,
    "floor": np.floor,
    "ceiling": np.ceil,
    "ifelse": np.where,
    "pmin": np.minimum,
    "pmax": np.maximum,
    "as_numeric": lambda x: np.asarray(x, dtype=float),
    "as_integer": lambda x: np.trunc(np.asarray(x, dtype=float)),
    "as_logical": lambda x: np.asarray(x, dtype=float) != 0.0,
    "as_vector": _flat,
    "c": _flat,
    "column_of": _column_of,
    "negated": lambda x: ~np.asarray(x, dtype=bool),
    "is_in": _is_in,
    "dummy": _dummy,
    "mean": _learnt(np.mean),
    "median": _learnt(np.median),
    "sd": _learnt(lambda x: np.std(x, ddof=1)),
    "min": _learnt(np.min),
    "max": _learnt(np.max),
    "bs": _remembering(bs),
    "ns": _remembering(ns),
}
"""By name as formulas are handed to formulaic, dots written as underscores; ``scale`` and ``poly`` are formulaic's own."""


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column counts as numbers: not text, not categorical, not true/false."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def is_boolean(column: pd.Series[Any]) -> bool:
    """Whether a column holds truth values."""
    return bool(pd.api.types.is_bool_dtype(column))


@dataclass(frozen=True)
class Numeric:
    """A variable that yields numbers."""

    label: str  # as R prints it
    node: Node  # its expression
    suffixes: tuple[str, ...]  # what R appends to the label for each column; ``('',)`` for one column
    spec: Any  # remembers stateful transforms; None for a bare column

    def values(self, data: pd.DataFrame) -> Array:
        """Evaluate on rows without missing cells; shape (n, columns)."""
        if self.spec is None:
            assert isinstance(self.node, Name)
            return np.asarray(data[self.node.name], dtype=float).reshape(-1, 1)
        cells = _plainly_named(self.node, data)
        return np.asarray(self.spec.get_model_matrix(cells, context=CONTEXT), dtype=float)


def _plain_names(node: Node) -> dict[str, str]:
    """Names under which formulaic sees the columns: none can be mistaken for a function or a part of one."""
    return {name: f"column_{i}_" for i, name in enumerate(columns_of(node))}


def _plainly_named(node: Node, data: pd.DataFrame) -> pd.DataFrame:
    names = _plain_names(node)
    return data[list(names)].rename(columns=names)


def _beside_text(node: Node) -> set[str]:
    """Columns that stand beside a quoted text in a comparison, and so may hold text."""
    found = set()
    for part in nodes_of(node):
        match part:
            case (
                Binary("==" | "!=", Name(name), Literal(text))
                | Binary("==" | "!=", Literal(text), Name(name))
                | Call("dummy", (Name(name), Literal(text)))
            ) if text[0] in "'\"":
                found.add(name)
            case Binary("%in%", Name(name), Call("c", (Literal(text), *_))) | Binary(
                "%in%", Name(name), Literal(text)
            ) if text[0] in "'\"":
                found.add(name)
    return found


def _refuse_what_is_missing_in_r(node: Node, data: pd.DataFrame, label: str) -> None:
    for part in nodes_of(node):
        if not isinstance(part, Call) or part.function not in WHOLE_COLUMN or "na.rm" in dict(part.keywords):
            continue
        gaps = int(data[list(columns_of(part))].isna().any(axis=1).sum())
        if gaps:
            raise UserError(
                f"{label!r}: {as_r(part)} is missing, since {gaps} rows are",
                mend=f"Write {as_r(part)[:-1]}, na.rm = TRUE), or leave these rows out of the file.",
            )


def evaluate(node: Node, data: pd.DataFrame, label: str) -> Numeric:
    """Make a numeric variable of an expression, learning from data."""
    # Bare calls keep formulaic's stateful transforms; all else must not be read as formula algebra.
    text = as_python(node, _plain_names(node))
    source = f"0 + {text}" if isinstance(node, Call) else f"0 + I({text})"
    if is_condition(node):
        source = f"0 + I(({text}) * 1.0)"
    _refuse_what_is_missing_in_r(node, data, label)
    given = data[list(columns_of(node))].dropna()
    may_hold_text = _beside_text(node)
    for column in given.columns:
        if not is_numeric(given[column]) and not is_boolean(given[column]) and column not in may_hold_text:
            raise UserError(
                f"{label!r}: column {column!r} holds text; {label!r} needs numbers",
                mend=f'Compare it with a level, for example {column} == "{given[column].iloc[0]}", or make a column.',
            )
    complete = _plainly_named(node, given)
    try:
        with np.errstate(all="ignore"):
            matrix = model_matrix(source, complete, context=CONTEXT, na_action="ignore")
    except UserError:
        raise
    except Exception as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        raise UserError(
            f"{label!r} cannot be computed: {error}",
            mend="Formulas take R's functions row by row; for anything else make a column.",
        ) from error
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
