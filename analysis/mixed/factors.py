"""Variables that yield levels: text and truth columns, numbers taken as factors, conditions, and numbers cut into intervals."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

from .coding import Coding
from .expression import Node
from .numeric import Numeric, is_numeric
from .transforms import level_name

Array = NDArray[np.float64]


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
class Cells:
    """A column's distinct values in order of appearance, and the place of each row's among them, shape (n,)."""

    places: NDArray[np.intp]
    values: list[Any]


def read_cells(column: pd.Series[Any]) -> Cells:
    """Find the distinct values of a column."""
    places, values = pd.factorize(column)
    return Cells(places, values.tolist())


def natural_levels(column: pd.Series[Any], cells: Cells | None = None) -> tuple[str, ...]:
    """List the levels that occur: categories in their order, numbers by size, text alphabetically."""
    values = (cells or read_cells(column)).values
    if isinstance(column.dtype, pd.CategoricalDtype):
        used = set(values)
        return tuple(level_name(c) for c in column.cat.categories if c in used)
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
class Cut:
    """Numbers cut into intervals, R's ``cut``.

    Attributes
    ----------
    numbers : Numeric
        What is cut.
    breaks : tuple of float
        Ends of the intervals, rising.
    right : bool
        Whether intervals are closed on the right.
    lowest : bool
        Whether the outermost end that would be open is closed.
    kept : tuple of int
        The intervals that occur; they are the levels.
    """

    numbers: Numeric
    breaks: tuple[float, ...]
    right: bool
    lowest: bool
    kept: tuple[int, ...] = ()

    @property
    def node(self) -> Node:
        """The expression that is cut."""
        return self.numbers.node

    def places(self, data: pd.DataFrame) -> NDArray[np.intp]:
        """Interval of each row, from 0; shape (n,).

        Raises
        ------
        UserError
            If a value lies in none.
        """
        x = self.numbers.values(data)[:, 0]
        at = np.searchsorted(self.breaks, x, side="left" if self.right else "right") - 1
        if self.lowest:
            at = np.where(
                x == self.breaks[0 if self.right else -1], 0 if self.right else len(self.breaks) - 2, at
            )
        outside = (at < 0) | (at > len(self.breaks) - 2)
        if outside.any():
            raise UserError(
                f"cut({self.numbers.label}): {x[outside][0]:g} lies in no interval, and so do {int(outside.sum())} rows in all",
                mend="Give wider breaks, or include.lowest = TRUE.",
            )
        return np.asarray(at, dtype=np.intp)

    def values(self, data: pd.DataFrame) -> Array:
        """Positions among the intervals that occur, shape (n, 1)."""
        place = {interval: at for at, interval in enumerate(self.kept)}
        places = self.places(data)
        for interval in np.unique(places):
            if int(interval) not in place:
                low, high = self.breaks[interval], self.breaks[interval + 1]
                raise UserError(
                    f"cut({self.numbers.label}): no row fitted lies between {low:g} and {high:g}",
                    mend="Predict for values of the intervals fitted.",
                )
        return np.array([[place[int(i)]] for i in places], dtype=float)


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
    condition : Numeric, Cut or None
        Yields positions in ``levels`` where these are no cells of the column: 0 or 1 for a comparison such as
        ``I(x > 2)``, coded FALSE and TRUE; intervals for ``cut()``.
    printed : tuple of str
        Other names of the levels, ``factor(x, labels = …)``; empty where they have none.
    """

    label: str
    column: str
    levels: tuple[str, ...]
    contrast: Coding = field(default_factory=Coding)
    condition: Numeric | Cut | None = None
    printed: tuple[str, ...] = ()

    def codes(self, data: pd.DataFrame) -> NDArray[np.intp]:
        """Positions in ``levels``; shape (n,).

        Raises
        ------
        UserError
            If a cell holds something that is no level.
        """
        if self.condition is not None:
            return np.asarray(self.condition.values(data)[:, 0], dtype=np.intp)
        return self.codes_of(read_cells(data[self.column]))

    def codes_of(self, cells: Cells) -> NDArray[np.intp]:
        """Positions in ``levels`` of a column's cells; shape (n,)."""
        place = {level: at for at, level in enumerate(self.levels)}
        names = [level_name(v) for v in cells.values]
        for name in names:
            if name not in place:
                raise unknown_name(f"level of {self.column}", name, self.levels)
        return np.array([place[name] for name in names], dtype=np.intp)[cells.places]

    def coding(self) -> tuple[Array, tuple[str, ...]]:
        """Contrast matrix, shape (levels, levels - 1), and what R appends to the label for each column."""
        return self.contrast.matrix(self.levels), self.contrast.suffixes(self.shown)

    @property
    def shown(self) -> tuple[str, ...]:
        """Levels as R's columns name them."""
        return self.printed or self.levels
