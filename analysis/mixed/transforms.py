"""What R's functions compute when a formula calls them, as Python under formulaic's names.

Functions of a whole column (``mean``, ``scale``, ``ns``) keep what they learnt from the rows fitted, so that a reference
grid and new rows are transformed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, cast

import numpy as np
from formulaic.utils.stateful_transforms import stateful_transform
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import UserError

from .splines import bs, ns

Array = NDArray[np.float64]

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
