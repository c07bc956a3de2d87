"""What blocks leave among the later columns that they meet: products that are subtracted from a matrix, and its inverse's rows.

A block that meets few columns keeps the places of their pairs (``Pairs``). One that meets many keeps the columns alone
(``Cliques``): where a full matrix ends the values, whole parts of it are taken out and put back, those of all blocks that meet
the same columns at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

AT_ONCE = 4_000_000
"""Products of pairs of columns held at once."""


class Later(Protocol):
    """Where a symmetric matrix keeps its values, the last of them those of a full matrix."""

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries; (i, j) and (j, i) are one."""

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in that full matrix; -1 for others."""


@dataclass(frozen=True)
class Pairs:
    """Levels that meet the same number r of later columns: their entries (G, r), places of the column pairs (G, r(r+1)/2)."""

    levels: Index
    entries: Index
    pairs: Index

    def products(self, part: Array) -> Array:
        """Multiply (G, r, k) by its own transpose, at the pairs."""
        r, k = part.shape[1:]
        product = part @ np.swapaxes(part, 1, 2) if k > 1 else part * np.swapaxes(part, 1, 2)
        return np.asarray(product.reshape(len(part), r * r)[:, _tril(r)].ravel())

    def times(self, values: Array, e: Array, order: int) -> Array:
        """Multiply the matrix among the columns by e (G, r, k)."""
        r = e.shape[1]
        return np.asarray(values[self.pairs][:, _symmetric(r)].reshape(-1, r, r) @ e)


@dataclass(frozen=True)
class Cliques:
    """Levels that meet the same columns of the full matrix at the end, and some before it.

    Attributes
    ----------
    levels : ndarray of int, shape (G,)
    entries : ndarray of int, shape (G, r)
        Their entries.
    before, within : ndarray of int, shapes (o,) and (r - o,)
        Which of the r columns lie before the full matrix, and in it.
    places : ndarray of int, shape (G, o, r)
        Where pairs with a column before the full matrix are stored.
    columns : slice or ndarray of int
        Columns of the full matrix.
    """

    levels: Index
    entries: Index
    before: Index
    within: Index
    places: Index
    columns: slice | Index

    def subtract(self, values: Array, part: Array, order: int) -> None:
        """Subtract (G, r, k) times its own transpose from the matrix, in place."""
        if len(self.before):
            own = part[:, self.before]
            products = own @ np.swapaxes(part, 1, 2)
            # a pair of columns before the full matrix has one place and stands here twice
            products[:, :, self.before] *= _lower_once(len(self.before))
            np.subtract.at(values, self.places.ravel(), products.ravel())
        if len(self.within):
            flat = np.swapaxes(part[:, self.within], 1, 2).reshape(-1, len(self.within))
            self._square(values, order, flat.T @ flat)

    def _square(self, values: Array, order: int, less: Array) -> None:
        full = values[len(values) - order**2 :].reshape(order, order)
        if isinstance(self.columns, slice):
            full[self.columns, self.columns] -= less
        else:
            full[np.ix_(self.columns, self.columns)] -= less

    def times(self, values: Array, e: Array, order: int) -> Array:
        """Multiply the matrix among the columns by e (G, r, k)."""
        full = values[len(values) - order**2 :].reshape(order, order)
        among = (
            full[self.columns, self.columns]
            if isinstance(self.columns, slice)
            else full[np.ix_(self.columns, self.columns)]
        )
        many, _, k = e.shape
        inside = len(self.within)
        flat = np.swapaxes(e[:, self.within], 0, 1).reshape(inside, many * k)
        found = np.empty_like(e)
        found[:, self.within] = np.swapaxes((among @ flat).reshape(inside, many, k), 0, 1)
        if len(self.before):
            own = values[self.places]
            found[:, self.before] = own @ e
            found[:, self.within] += np.swapaxes(own[:, :, self.within], 1, 2) @ e[:, self.before]
        return found


def cliques(levels: Index, entries: Index, meets: Index, rest: Later) -> list[Cliques]:
    """Gather levels that meet the same columns of the full matrix.

    Parameters
    ----------
    levels : ndarray of int, shape (G,)
    entries, meets : ndarray of int, shape (G, r)
        Entries of each level and the later columns that they stand for.
    rest : Later
        Where the later columns' matrix keeps its values.
    """
    full = rest.in_full(meets)
    alike: dict[bytes, list[int]] = {}
    for at, row in enumerate(full):
        alike.setdefault(row.tobytes(), []).append(at)
    found = []
    for members in alike.values():
        row = full[members[0]]
        before, within = np.flatnonzero(row < 0), np.flatnonzero(row >= 0)
        columns = row[within]
        is_range = len(columns) > 0 and bool((np.diff(columns) == 1).all())
        among = slice(int(columns[0]), int(columns[-1]) + 1) if is_range else columns
        step = max(1, AT_ONCE // (len(row) * max(len(before), 1)))
        for some in np.split(np.array(members), range(step, len(members), step)):
            shape = (len(some), len(before), len(row))
            high = np.broadcast_to(meets[some][:, before, None], shape)
            low = np.broadcast_to(meets[some][:, None, :], shape)
            places = rest.locate(high.ravel(), low.ravel()).reshape(shape)
            found.append(Cliques(levels[some], entries[some], before, within, places, among))
    return found


def _tril(r: int) -> Index:
    lower, upper = np.tril_indices(r)
    return (lower * r + upper).astype(np.intp)


def _lower_once(o: int) -> Array:
    """One below and on the diagonal, zero above."""
    return np.tril(np.ones((o, o)))


def _symmetric(r: int) -> Index:
    """Places in the list of lower-triangle pairs of all r * r pairs."""
    i, j = np.divmod(np.arange(r * r), r)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return np.asarray(high * (high + 1) // 2 + low, dtype=np.intp)
