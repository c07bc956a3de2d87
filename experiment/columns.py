"""The columns of the trials and regions tables, from their one data file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Column:
    """One column: name, type (string, integer, number, boolean), unit or None, and meaning."""

    name: str
    type: str
    unit: str | None
    prose: str


@cache
def _columns(table: str) -> dict[str, Column]:
    given = json.loads(resources.files(__package__).joinpath("columns.json").read_text("utf-8"))
    return {row["name"]: Column(**row) for row in given[table]}


def trial_columns() -> dict[str, Column]:
    """Return the columns of the trials table in order, without the study's factors."""
    return dict(_columns("trials"))


def region_columns() -> dict[str, Column]:
    """Return the columns of the regions table in order."""
    return dict(_columns("regions"))
