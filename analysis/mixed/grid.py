"""The reference grid: cells of the fixed part's columns, and the rows of X that predict them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

from .expression import Node, columns_of
from .result import Fit
from .variables import Factor, Numeric, level_name

Array = NDArray[np.float64]


def reference_grid(
    fit: Fit, wanted: list[str], values: dict[str, list[Any]]
) -> tuple[pd.DataFrame, list[str], int]:
    """Lay out all cells, those wanted varying fastest: (grid, columns wanted, number of cells wanted).

    Raises
    ------
    UserError
        For a column that is not in the fixed part.
    """
    for name in wanted:
        if name not in values:
            raise unknown_name("column of the fixed part", name, values)
        if wanted.count(name) > 1:
            raise UserError(
                f"{name!r} is named twice among the factors of the means", mend="Name each factor once."
            )
    order = [*wanted, *(c for c in values if c not in wanted)]
    # itertools.product varies its last argument fastest.
    cells = list(itertools.product(*(values[c] for c in reversed(order))))
    grid = pd.DataFrame(cells, columns=list(reversed(order)))[order] if order else pd.DataFrame(index=[0])
    return grid, wanted, int(np.prod([len(values[c]) for c in wanted])) if wanted else 1


def rows_of(fit: Fit, grid: pd.DataFrame) -> Array:
    """Rows of X for a grid, nan where the data cannot tell the cell's mean; shape (cells, p)."""
    matrices = fit.model.matrices
    whole = matrices.design.matrix(grid)
    kept = list(matrices.kept)
    rows = whole[:, kept]
    others = [j for j in range(whole.shape[1]) if j not in kept]
    # A cell mean is estimable only if the dropped columns take the value that the kept ones imply.
    lost = np.abs(whole[:, others] - rows @ matrices.alias).max(axis=1, initial=0.0) > 1e-6
    return np.where(lost[:, None], np.nan, rows)


def offset_of(fit: Fit, grid: pd.DataFrame) -> Array:
    """Known part of the linear predictor at a grid, shape (cells,).

    As in emmeans an offset counts by its mean over the rows fitted; but one whose columns are in the grid is computed there.
    """
    frame = fit.model.frame
    total = np.full(len(grid), float(frame.offset.mean()))
    for node in fit.model.offset_nodes:
        if set(columns_of(node)) <= set(grid.columns):
            variable = frame.variables.make(node)
            assert isinstance(variable, Numeric)
            total += variable.values(grid)[:, 0] - float(variable.values(frame.data).mean())
    return total


def averaged(rows: Array, size: int) -> Array:
    """Average with equal weights over what is not asked for: (cells, …) to (size, …)."""
    return np.asarray(rows.reshape(-1, size, *rows.shape[1:]).mean(axis=0))


def cells_of(grid: pd.DataFrame, wanted: list[str], size: int) -> pd.DataFrame:
    """Name the cells wanted, shape (size, columns wanted)."""
    return grid[wanted].iloc[:size].reset_index(drop=True)


def grid_values(fit: Fit, at: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Choose the values of every column of the fixed part: all levels, the mean, or those given.

    Raises
    ------
    UserError
        For a column or a level that does not exist.
    """
    values: dict[str, list[Any]] = {}
    data = fit.model.frame.data
    nodes: list[Node] = []
    for variable in fit.model.matrices.design.variables:
        if isinstance(variable, Factor) and variable.condition is None:
            values[variable.column] = list(variable.levels)
            continue
        nodes.append(variable.node if not isinstance(variable, Factor) else variable.condition.node)  # type: ignore[union-attr]
    offsets = [node for node in fit.model.offset_nodes if set(columns_of(node)) & set(at)]
    for node in [*nodes, *offsets]:
        for column in columns_of(node):
            cells = data[column]
            if not pd.api.types.is_numeric_dtype(cells):
                values.setdefault(column, list(fit.model.frame.variables.factor(column).levels))
                continue
            distinct = np.unique(cells.to_numpy(dtype=float))
            values.setdefault(column, distinct.tolist() if len(distinct) == 2 else [float(cells.mean())])
    for name, chosen in at.items():
        if name not in values:
            raise unknown_name("column of the fixed part", name, values)
        numeric = not all(isinstance(v, str) for v in values[name])
        several = list(chosen) if isinstance(chosen, list | tuple | np.ndarray) else [chosen]
        if numeric and not all(isinstance(v, int | float | np.number) for v in several):
            raise UserError(f"at {name} = {chosen!r}: {name} is a covariate", mend="Give numbers.")
        if not numeric:
            several = [level_name(v) for v in several]
            for level in several:
                if level not in values[name]:
                    raise unknown_name(f"level of {name}", level, values[name])
        values[name] = several
    return values
