"""The rows of an exported table from which a number is computed: conditions that people can read and programs apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

_TRUTHS = {"TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class Where:
    """A condition on one column."""

    column: str
    values: tuple[str, ...] = ("",)  # as the CSV file writes them; "" is an empty cell
    but: bool = False  # the cell is none of them
    above: float | None = None  # instead of values: the cell is a number above this

    def said(self) -> str:
        """State it in words."""
        if self.above is not None:
            return f"{self.column} above {self.above:g}"
        values = " or ".join(value or "empty" for value in self.values)
        return f"{self.column} {'not ' if self.but else ''}{values}"

    def told(self) -> dict[str, Any]:
        """State it as ``numbers.json`` does."""
        if self.above is not None:
            return {"column": self.column, "above": self.above}
        return {"column": self.column, "not" if self.but else "is": list(self.values)}

    def holds(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Mark the rows that meet the condition; a missing column counts as empty."""
        cells = rows[self.column] if self.column in rows else pd.Series(None, index=rows.index, dtype=object)
        if self.above is not None:
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
            mask: pd.Series[bool] = pd.Series(np.asarray(numbers > self.above, dtype=bool), index=rows.index)
            return mask
        values = [*self.values, *(_TRUTHS[value] for value in self.values if value in _TRUTHS)]
        matches = cells.isin(values)
        if "" in self.values:
            matches |= cells.isna()
        return ~matches if self.but else matches


@dataclass(frozen=True)
class Either:
    """Conditions of which at least one holds."""

    parts: tuple[Where, ...]

    def said(self) -> str:
        """State it in words."""
        return " or ".join(part.said() for part in self.parts)

    def told(self) -> dict[str, Any]:
        """State it as ``numbers.json`` does."""
        return {"any": [part.told() for part in self.parts]}

    def holds(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Mark the rows that meet at least one of the conditions."""
        mask: pd.Series[bool] = self.parts[0].holds(rows)
        for part in self.parts[1:]:
            mask |= part.holds(rows)
        return mask


Condition = Where | Either


def where(column: str, *values: str) -> Where:
    """Return the condition that a cell is one of these."""
    return Where(column, values)


def empty(column: str) -> Where:
    """Return the condition that a cell is empty."""
    return Where(column)


def filled(*columns: str) -> tuple[Where, ...]:
    """Return the conditions that cells are not empty."""
    return tuple(Where(column, but=True) for column in columns)


def above(column: str, limit: float = 0.0) -> Where:
    """Return the condition that a cell is a number above a limit."""
    return Where(column, above=limit)


USED = empty("excluded_reason")
"""Trials that count."""
NOT_UNJUDGED = Either((Where("response_status", ("valid",), but=True), *filled("correct")))
"""Not a valid answer of which nothing says whether it is right."""
JUDGED: tuple[Condition, ...] = (USED, *filled("response_status"), NOT_UNJUDGED)
"""Trials that count and asked for an answer that is right or wrong; a failed answer is one."""
PEOPLE = where("reader_kind", "human", "simulated")
MACHINES = where("reader_kind", "model", "baseline")


def timed_well(*measures: str) -> tuple[Condition, ...]:
    """Return the conditions under which a trial's time counts; of several measures, under which one of them does."""
    common = (USED, where("response_status", "valid", ""))
    if len(measures) > 1:
        return (*common, Either(tuple(above(measure) for measure in measures)))
    return (*common, above(measures[0]), empty(f"{measures[0]}_excluded"))


def many(rows: pd.DataFrame, conditions: Sequence[Condition]) -> int:
    """Count the rows that meet all conditions."""
    mask = np.ones(len(rows), dtype=bool)
    for condition in conditions:
        mask &= condition.holds(rows).to_numpy(dtype=bool)
    return int(mask.sum())
