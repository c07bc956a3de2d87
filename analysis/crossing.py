"""Two factors that are compared together: their cells, what a contrast weighs each cell with, and the slopes that they justify.

The cells stand as levels of one column named after both factors (``item_type × font`` with ``word/plain``, ``word/cursive`` …),
so that means, figures and what a model must leave out are of cells; the model itself has both factors and their interaction.
Columns of random slopes are centred, so that where correlations of slopes go neither of a factor's two levels scatters less than
the other for being the reference; of three or more the reference still does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.names import TIMES, plain
from analysis.slopes import is_enough, said_few, why_no_slope

IN = "/"
MOST_CELLS = 12
"""Cells of two factors whose interaction is tested although nobody planned it."""


def crossed_name(first: str, second: str) -> str:
    """Name the column of the cells of two factors."""
    return f"{first}{TIMES}{second}"


@dataclass(frozen=True)
class Crossing:
    """Two crossed factors.

    Attributes
    ----------
    factors : tuple of str
        The two, in the order of the plan.
    levels : tuple of tuple of str
        Levels of each, the reference first.
    """

    factors: tuple[str, str]
    levels: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def name(self) -> str:
        """Name of the column of cells."""
        return crossed_name(*self.factors)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every cell, that of both references first; the second factor varies fastest."""
        return tuple(cell_name(*pair) for pair in product(*self.levels))

    def pair_of(self, cell: str) -> tuple[str, str]:
        """Return the levels of both factors that a cell shows."""
        return dict(zip(self.cells, product(*self.levels), strict=True))[cell]

    def column(self, rows: pd.DataFrame) -> pd.Series[str]:
        """Return the cell of each row; None where a factor has no level."""
        return cells_shown(rows, self.factors)

    def among(self, cells: Collection[str]) -> Crossing:
        """Return the crossing of the levels that these cells show."""
        pairs = [pair for pair in product(*self.levels) if cell_name(*pair) in cells]
        first, second = (
            tuple(level for level in own if any(pair[place] == level for pair in pairs))
            for place, own in enumerate(self.levels)
        )
        return Crossing(self.factors, (first, second))

    def is_filled(self, cells: Collection[str]) -> bool:
        """Whether every cell is among these."""
        return set(self.cells) <= set(cells)

    def weights(self, first: str, second: str, at: Sequence[str]) -> dict[str, float]:
        """Return what a contrast weighs each cell with.

        Parameters
        ----------
        first, second : str
            Levels of one factor.
        at : sequence of str
            Levels of the other: none averages over all of them, one is the simple effect there, of two the difference between
            them is taken.

        Returns
        -------
        dict
            Cell → weight, cells of weight 0 left out.
        """
        turned = not self._is_of(first, second, at, 0)
        others = self.levels[0 if turned else 1]
        by_other = dict(zip(at, (1.0, -1.0), strict=False)) or dict.fromkeys(others, 1.0 / len(others))
        found = {}
        for level, sign in ((first, 1.0), (second, -1.0)):
            for other, share in by_other.items():
                found[cell_name(other, level) if turned else cell_name(level, other)] = sign * share
        return found

    def factor_of(self, first: str, second: str, at: Sequence[str] = ()) -> int:
        """Return which factor, 0 or 1, has the levels of a contrast, the other one those at which it is taken."""
        return 0 if self._is_of(first, second, at, 0) else 1

    def _is_of(self, first: str, second: str, at: Sequence[str], place: int) -> bool:
        return {first, second} <= set(self.levels[place]) and set(at) <= set(self.levels[1 - place])

    def slope_columns(self, kind: str = "", only: Collection[str] | None = None) -> tuple[str, ...]:
        """Name the centred columns of slopes: of each factor, then of the interaction.

        Parameters
        ----------
        kind : {'', 'people', 'model'}
            To whom they are confined.
        only : collection of str, optional
            Factors that have slopes; the interaction where both have.
        """
        own = set(self.factors if only is None else only)
        return tuple(name for name, parts in self._columns(kind).items() if {one for one, _ in parts} <= own)

    def main_columns(self, kind: str = "", only: Collection[str] | None = None) -> tuple[str, ...]:
        """Name those of the factors alone."""
        columns = self._columns(kind)
        return tuple(name for name in self.slope_columns(kind, only) if len(columns[name]) == 1)

    def values(self, cell: str, kind: str = "") -> dict[str, float]:
        """Return the value in a cell of every column of slopes, and of R's columns of treatment coding (``fontcursive``)."""
        shown = dict(zip(self.factors, self.pair_of(cell), strict=True))
        many = {factor: len(own) for factor, own in zip(self.factors, self.levels, strict=True)}
        found = {f"{factor}{level}": 1.0 for factor, level in shown.items()}
        for name, parts in self._columns(kind).items():
            found[name] = float(
                np.prod([float(shown[factor] == level) - 1.0 / many[factor] for factor, level in parts])
            )
        return found

    def slope_values(self, rows: pd.DataFrame, kind: str = "") -> dict[str, NDArray[np.float64]]:
        """Return the columns of slopes of all rows, each of shape (rows,); within the kind alone, 0 elsewhere."""
        by_cell = {cell: self.values(cell, kind) for cell in self.cells}
        confined = rows[kind].to_numpy(dtype=float) if kind else np.ones(len(rows))
        return {
            name: rows[self.name]
            .map({cell: own[name] for cell, own in by_cell.items()})
            .to_numpy(dtype=float)
            * confined
            for name in self._columns(kind)
        }

    def in_words(self) -> dict[str, str]:
        """Name every column of slopes and of treatment coding in words: ``transposed vs. word``, ``transposed × cursive``."""
        reference = dict(zip(self.factors, (own[0] for own in self.levels), strict=True))
        found = {}
        for kind in ("", "people", "model"):
            for name, parts in self._columns(kind).items():
                told = TIMES.join(level for _, level in parts)
                alone = f"{told} vs. {reference[parts[0][0]]}" if len(parts) == 1 else told
                found[name] = found[":".join(f"{factor}{level}" for factor, level in parts)] = alone
        return found

    def _columns(self, kind: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return every column with the factors and levels that it is the product of."""
        head = [kind] if kind else []
        mains = [
            ((factor, level),)
            for factor, own in zip(self.factors, self.levels, strict=True)
            for level in own[1:]
        ]
        both = [
            ((self.factors[0], a), (self.factors[1], b))
            for a in self.levels[0][1:]
            for b in self.levels[1][1:]
        ]
        return {plain(*head, *(word for part in parts for word in part)): parts for parts in [*mains, *both]}


def cell_name(first: str, second: str) -> str:
    """Name a cell by the levels that it shows."""
    return f"{first}{IN}{second}"


def cells_shown(rows: pd.DataFrame, factors: tuple[str, str]) -> pd.Series[str]:
    """Return the cell of two factors that each row shows; None where one of them has no level. Equal texts are kept once."""
    (one, firsts), (other, seconds) = (pd.factorize(rows[factor]) for factor in factors)
    names = [cell_name(str(a), str(b)) for a, b in product(firsts, seconds)]
    codes = np.where((one < 0) | (other < 0), len(names), one * len(seconds) + other)
    found = np.array([*names, None], dtype=object)[codes]
    return pd.Series(found, index=rows.index, name=crossed_name(*factors), dtype=object)


@dataclass(frozen=True)
class Slopes:
    """Which slopes the data of participants or items can carry.

    Attributes
    ----------
    text : str
        As a formula has them while correlations are estimated (``item_type * font``); empty for none.
    columns : tuple of str
        The centred columns that stand for them.
    remarks : tuple of str
        Why some are left out.
    """

    text: str
    columns: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def slopes_of(rows: pd.DataFrame, crossing: Crossing, kind: str = "") -> Slopes:
    """Return the slopes of both factors and of their interaction that vary within participants, with trials enough.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of participants alone.
    crossing : Crossing
        Of the levels in the model.
    kind : {'', 'people', 'model'}
        To whom the columns are confined; formulas with both kinds of reader have columns in the place of factors.
    """
    why = {one: why_no_slope(rows, one) for one in crossing.factors}
    remarks = [one for one in why.values() if one]
    enough = [one for one in crossing.factors if not why[one]]
    is_crossed = len(enough) == 2 and crossing.is_filled(set(rows[crossing.name]))
    both = is_crossed and is_enough(rows, ["participant", *crossing.factors])
    if len(enough) == 2 and not both:
        lacking = (
            f"Participants have {said_few(rows, 'trials')} per cell (median)"
            if is_crossed
            else f"Not every cell of {crossing.name} has trials"
        )
        remarks.append(f"{lacking}, so the model has no slope of the interaction by participant.")
    columns = (crossing.slope_columns if both else crossing.main_columns)(kind, enough)
    text = " + ".join(columns) if kind else (" * " if both else " + ").join(enough)
    return Slopes(text, columns, tuple(remarks))


def is_crossed(spec: Mapping[str, Any]) -> bool:
    """Whether a planned analysis, as the study writes it, compares two factors together."""
    return isinstance(spec.get("compare"), list | tuple)


def compared_together(
    planned: Mapping[str, Mapping[str, Any]], factors: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the pairs of factors whose cells are compared: those of plans; without any plan all that are small enough.

    Parameters
    ----------
    planned : mapping
        The planned analyses as the study writes them.
    factors : mapping
        Levels of each factor.
    """
    if planned:
        pairs = [tuple(map(str, spec["compare"])) for spec in planned.values() if is_crossed(spec)]
        found = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2 and set(pair) <= set(factors)]
        return list(dict.fromkeys(found))
    return [
        (one, other)
        for one, other in combinations(factors, 2)
        if min(len(factors[one]), len(factors[other])) > 1
        and len(factors[one]) * len(factors[other]) <= MOST_CELLS
    ]
