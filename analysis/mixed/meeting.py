"""What blocks leave among the later columns that they meet: products that are subtracted from a matrix, and its inverse's rows.

A block that meets few columns keeps the places of their pairs (``Pairs``). One that meets many keeps the columns alone
(``Cliques``): where a full matrix ends the values, whole parts of it are taken out and put back, those of all blocks that meet
nearly the same columns at once: what one of them lacks of the columns of all is an entry of zeros. Of columns before the full
matrix that many blocks meet, each with columns of its own in it, the pairs are listed once for all these blocks (``Shared``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Kind = TypeVar("Kind")

AT_ONCE = 4_000_000
"""Products of pairs of columns held at once."""
ROOM = 1.2
"""Columns that levels meet together, by those that one of them meets, up to which they are taken together."""
WORTH = 20_000
"""Products in a full matrix that take as long as taking a part out of it and putting it back."""
TRIED, TAKEN = 64, 0.5
"""After so many different sets of columns, with more groups than this share of them, no more are compared."""
SHARED = 8
"""Levels that meet nearly the same columns before the full matrix, and columns, from which pairs are listed once for all."""
COMPARED = 16
"""Groups with which a level's columns are compared, the last ones; of more, comparing takes longer than it saves."""


class Later(Protocol):
    """Where a symmetric matrix of order ``order`` keeps its values; the last are a full matrix of order ``full_order``."""

    order: int
    full_order: int

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
    """Levels that meet nearly the same columns of the full matrix at the end, and some before it.

    Attributes
    ----------
    levels : ndarray of int, shape (G,)
    entries : ndarray of int, shape (G, r)
        Their entries; where a level does not meet a column the number of all entries, which stands for zeros.
    before, within : ndarray of int, shapes (o,) and (r - o,)
        Which of the r columns lie before the full matrix, and in it.
    places : ndarray of int, shape (G, o, r) or (G, o, r - o)
        Where pairs of a column before the full matrix and any column, or one in it, are stored; any place where a level does
        not meet the column.
    columns : slice or ndarray of int
        Columns of the full matrix.
    is_shared : bool
        Whether pairs of two columns before the full matrix are those of a ``Shared``.
    """

    levels: Index
    entries: Index
    before: Index
    within: Index
    places: Index
    columns: slice | Index
    is_shared: bool

    def subtract(self, values: Array, part: Array, order: int) -> None:
        """Subtract (G, r, k) times its own transpose from the matrix, in place."""
        if len(self.before):
            other = part[:, self.within] if self.is_shared else part
            products = part[:, self.before] @ np.swapaxes(other, 1, 2)
            if not self.is_shared:
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
            across = own if self.is_shared else own[:, :, self.within]
            found[:, self.before] = own @ (e[:, self.within] if self.is_shared else e)
            found[:, self.within] += np.swapaxes(across, 1, 2) @ e[:, self.before]
        return found


@dataclass(frozen=True)
class Shared:
    """Levels that meet nearly the same columns before the full matrix.

    Attributes
    ----------
    levels : ndarray of int, shape (G,)
    entries : ndarray of int, shape (G, o)
        Their entries; where a level does not meet a column the number of all entries, which stands for zeros.
    places : ndarray of int, shape (o, o)
        Where pairs of these columns are stored; any place where no level meets both.
    """

    levels: Index
    entries: Index
    places: Index

    def subtract(self, values: Array, part: Array) -> None:
        """Subtract (G, o, k) times its own transpose from the matrix, in place."""
        columns = part.shape[1]
        flat = np.swapaxes(part, 1, 2).reshape(-1, columns)
        lower = np.tril_indices(columns)
        np.subtract.at(values, self.places[lower], (flat.T @ flat)[lower])

    def times(self, values: Array, e: Array) -> Array:
        """Multiply the matrix among the columns by e (G, o, k)."""
        many, columns, k = e.shape
        flat = np.swapaxes(e, 0, 1).reshape(columns, many * k)
        return np.swapaxes((values[self.places] @ flat).reshape(columns, many, k), 0, 1)


def cliques(
    levels: Index, starts: Index, column: Index, rest: Later, paired: int
) -> tuple[list[Cliques], list[Shared]]:
    """Gather levels that meet nearly the same columns of the full matrix; those whose pairs are listed for less stay out.

    Parameters
    ----------
    levels : ndarray of int, shape (G,)
    starts : ndarray of int, shape (m + 1,)
        Where the entries of each level begin, and where those of the last end.
    column : ndarray of int, shape (entries,)
        The later column of each entry.
    rest : Later
        Where the later columns' matrix keeps its values.
    paired : int
        Most columns of a level that may stay out.
    """
    full = rest.in_full(column)
    shared = _share(levels, starts, column, full, rest)
    in_shared = {level for one in shared for level in one.levels.tolist()}
    alike: dict[tuple[tuple[int, bool], bytes], list[int]] = {}
    for level in levels.tolist():
        own = full[starts[level] : starts[level + 1]]
        kind = int((own < 0).sum()), level in in_shared
        alike.setdefault((kind, own[own >= 0].tobytes()), []).append(level)
    found = []
    for (before, is_shared), columns, members in _together(alike, rest.full_order):
        is_worth = len(members) * len(columns) ** 2 >= WORTH and 4 * before <= len(columns)
        if not is_shared and not is_worth and before + len(columns) <= paired:
            continue
        entries = np.full((len(members), before + len(columns)), len(column), dtype=np.intp)
        for row, level in zip(entries, members, strict=True):
            at = np.arange(starts[level], starts[level + 1])
            met = full[at]
            row[:before] = at[met < 0]
            row[before + np.searchsorted(columns, met[met >= 0])] = at[met >= 0]
        is_range = len(columns) > 0 and bool((np.diff(columns) == 1).all())
        among = slice(int(columns[0]), int(columns[-1]) + 1) if is_range else columns
        within = np.arange(before, entries.shape[1])
        step = max(1, AT_ONCE // (entries.shape[1] * max(before, 1)))
        for start in range(0, len(members), step):
            some = entries[start : start + step]
            places = _places(some[:, :before], some[:, within] if is_shared else some, column, rest)
            own_levels = np.array(members[start : start + step], dtype=np.intp)
            found.append(Cliques(own_levels, some, np.arange(before), within, places, among, is_shared))
    return found, shared


def _share(levels: Index, starts: Index, column: Index, full: Index, rest: Later) -> list[Shared]:
    """Gather levels that meet nearly the same columns before the full matrix."""
    alike: dict[tuple[None, bytes], list[int]] = {}
    for level in levels.tolist():
        own = slice(starts[level], starts[level + 1])
        before = column[own][full[own] < 0]
        if len(before) >= SHARED:
            alike.setdefault((None, before.tobytes()), []).append(level)
    found = []
    for _, columns, members in _together(alike, rest.order):
        if len(members) < SHARED:
            continue
        entries = np.full((len(members), len(columns)), len(column), dtype=np.intp)
        for row, level in zip(entries, members, strict=True):
            at = np.arange(starts[level], starts[level + 1])
            at = at[full[at] < 0]
            row[np.searchsorted(columns, column[at])] = at
        there = (entries < len(column)).astype(float)
        meet = there.T @ there > 0.0
        high, low = np.nonzero(meet)
        places = np.zeros(meet.shape, dtype=np.intp)
        places[meet] = rest.locate(columns[high], columns[low])
        found.append(Shared(np.array(members, dtype=np.intp), entries, places))
    return found


def _places(before: Index, entries: Index, column: Index, rest: Later) -> Index:
    """Places of pairs of entries (G, o), all there, and entries (G, r), shape (G, o, r)."""
    shape = (*before.shape, entries.shape[1])
    places = np.zeros(shape, dtype=np.intp)
    low = np.broadcast_to(entries[:, None, :], shape)
    there = low < len(column)
    high = np.broadcast_to(before[:, :, None], shape)
    places[there] = rest.locate(column[high[there]], column[low[there]])
    return places


def _together(
    alike: dict[tuple[Kind, bytes], list[int]], order: int
) -> Iterator[tuple[Kind, Index, list[int]]]:
    """Yield levels of one kind that meet nearly the same of ``order`` columns: the kind, the columns, the levels.

    Columns of levels that are taken together are those of all of them, as long as they are few more than each one's own: rows
    that are missing here and there do not part levels that would meet the same columns.
    """
    groups: deque[_Group[Kind]] = deque()
    made = 0
    for tried, ((kind, key), members) in enumerate(alike.items()):
        columns = np.frombuffer(key, dtype=np.intp)
        compared = groups if tried < TRIED or made <= TAKEN * tried else ()
        near = next((one for one in reversed(compared) if one.has_room(kind, columns)), None)
        if near is not None:
            near.there[columns] = True
            near.levels += members
            near.fewest = min(near.fewest, len(columns))
            continue
        there = np.zeros(order, dtype=bool)
        there[columns] = True
        groups.append(_Group(kind, there, list(members), len(columns)))
        made += 1
        if len(groups) > COMPARED:
            yield groups.popleft().found()
    for one in groups:
        yield one.found()


@dataclass
class _Group(Generic[Kind]):
    """Levels that are taken together so far: their kind, the columns, the fewest that a level meets."""

    kind: Kind
    there: NDArray[np.bool_]
    levels: list[int]
    fewest: int

    def has_room(self, kind: Kind, columns: Index) -> bool:
        """Whether levels that meet these columns can be taken in."""
        union = int(self.there.sum()) + len(columns) - int(self.there[columns].sum())
        return kind == self.kind and union <= ROOM * min(self.fewest, len(columns))

    def found(self) -> tuple[Kind, Index, list[int]]:
        """Return what :func:`_together` yields."""
        return self.kind, np.flatnonzero(self.there), sorted(self.levels)


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
