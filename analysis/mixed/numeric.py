"""Variables that yield numbers: a column, or an expression that formulaic evaluates.

formulaic remembers what an expression learnt from the fitted data (the mean that ``scale()`` subtracts, the knots of
``ns()``), so the same variable evaluates a reference grid alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from formulaic import model_matrix
from numpy.typing import NDArray

from stimuli.errors import UserError

from .deparse import as_python, as_r
from .expression import (
    Binary,
    Call,
    Literal,
    Name,
    Node,
    columns_of,
    is_condition,
    nodes_of,
)
from .transforms import CONTEXT, WHOLE_COLUMN, level_name

Array = NDArray[np.float64]


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column counts as numbers: not text, not categorical, not true/false."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def is_boolean(column: pd.Series[Any]) -> bool:
    """Whether a column holds truth values."""
    return bool(pd.api.types.is_bool_dtype(column))


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
    """Make a numeric variable of an expression, learning from data.

    Parameters
    ----------
    node : Node
        The expression.
    data : DataFrame
        Rows to learn from; those with missing cells are passed over.
    label : str
        The expression as R prints it.

    Raises
    ------
    UserError
        If a column holds text, or a row's value is no finite number.
    """
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
