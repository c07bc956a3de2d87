"""Cholesky factors of large sparse symmetric matrices with a fixed pattern, and their inverse on that pattern.

Random effects make matrices in which the levels of one factor meet each other only through other factors. Such a factor is
eliminated in one stroke, level by level (``BlockStructure``), and what it leaves among the other factors is a smaller matrix
of the same kind: nested factors go one after another, until levels meet directly. What is left falls into groups that never meet
(``SortedStructure``), or is held densely (``DenseStructure``). The gradients of a deviance need H^-1 only where H is not
zero, which the same recursion gives backwards (Takahashi, Fagan and Chin 1973; Erisman and Tinney 1975).

A structure says where an entry is stored in a flat array of values; each entry of the lower triangle has one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack

from .components import Pattern, Sorting, sorting

Array = NDArray[np.float64]
Index = NDArray[np.intp]

AT_ONCE = 4_000_000
"""Products of pairs of columns held at once."""
MOST_DENSE = 20_000
"""Order of the largest matrix that is held densely; 3.2 GB."""


class TooLarge(MemoryError):
    """What is left among the later factors would not fit into memory.

    Attributes
    ----------
    order : int
        Its number of columns.
    """

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.order = order


class Factored(Protocol):
    """A factor of a symmetric positive definite matrix of order q."""

    logdet: float

    def solve(self, r: Array) -> Array:
        """Solve for right-hand sides of shape (q, c)."""

    def inverse(self) -> Array:
        """Return the inverse's entries at the places of the matrix's own, shape (size,)."""


class Structure(Protocol):
    """Where a symmetric matrix of order ``order`` keeps its ``size`` values."""

    order: int
    size: int

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries; (i, j) and (j, i) are one."""

    def factor(self, values: Array) -> Factored:
        """Factor the matrix; LinAlgError where it is not positive definite."""


class DenseStructure:
    """A full matrix; row i, column j <= i at i * order + j."""

    def __init__(self, order: int) -> None:
        if order > MOST_DENSE:
            raise TooLarge(order)
        self.order, self.size = order, order * order

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        return np.maximum(rows, columns) * self.order + np.minimum(rows, columns)

    def factor(self, values: Array) -> Factored:
        """Factor by LAPACK."""
        return _DenseFactor(values.reshape(self.order, self.order).T)


class _DenseFactor:
    # The lower triangle by rows is the upper triangle by columns, which is LAPACK's order.
    def __init__(self, matrix: Array) -> None:
        if not len(matrix):
            self.upper, self.logdet = matrix, 0.0
            return
        self.upper, failed = lapack.dpotrf(matrix, lower=0, clean=0)
        if failed:
            raise np.linalg.LinAlgError("not positive definite")
        self.logdet = 2.0 * float(np.log(np.diag(self.upper)).sum())

    def solve(self, r: Array) -> Array:
        if not len(self.upper):
            return r
        return np.asarray(lapack.dpotrs(self.upper, r, lower=0)[0])

    def inverse(self) -> Array:
        if not len(self.upper):
            return np.zeros(0)
        return np.asarray(lapack.dpotri(self.upper, lower=0)[0].T.ravel())


@dataclass(frozen=True)
class _Bucket:
    """Levels that meet the same number r of later columns: their entries (G, r), places of the column pairs (G, r(r+1)/2)."""

    levels: Index
    entries: Index
    pairs: Index


class BlockStructure:
    """Blocks of k columns that meet only later columns: (m, k, k) blocks, then (entries, k), then the later columns' own.

    Parameters
    ----------
    m, k : int
        Number and width of the blocks.
    level, column : ndarray of int, shape (entries,)
        Which block meets which later column, sorted by block, then column.
    rest : Structure
        Of the later columns, with a place for each pair that meets in a block.
    """

    def __init__(self, m: int, k: int, level: Index, column: Index, rest: Structure) -> None:
        self.m, self.k, self.level, self.column, self.rest = m, k, level, column, rest
        self.order = m * k + rest.order
        self.at_entries = m * k * k
        self.at_rest = self.at_entries + len(level) * k
        self.size = self.at_rest + rest.size
        self._keys = level * max(rest.order, 1) + column
        counts = np.bincount(level, minlength=m)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.buckets = []
        for r in np.unique(counts[counts > 0]).tolist():
            lower, upper = np.tril_indices(r)
            levels = np.flatnonzero(counts == r)
            step = max(1, AT_ONCE // len(lower))
            for some in np.split(levels, range(step, len(levels), step)):
                entries = self.starts[some][:, None] + np.arange(r)
                meets = column[entries]
                pairs = rest.locate(meets[:, lower].ravel(), meets[:, upper].ravel())
                self.buckets.append(_Bucket(some, entries, pairs.reshape(len(some), -1)))

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        high, low = np.maximum(rows, columns), np.minimum(rows, columns)
        mk, k = self.m * self.k, self.k
        found = low // k * k * k + high % k * k + low % k
        meets = (low < mk) & (high >= mk)
        keys = low[meets] // k * max(self.rest.order, 1) + high[meets] - mk
        found[meets] = self.at_entries + np.searchsorted(self._keys, keys) * k + low[meets] % k
        later = low >= mk
        found[later] = self.at_rest + self.rest.locate(high[later] - mk, low[later] - mk)
        return np.asarray(found, dtype=np.intp)

    def factor(self, values: Array) -> Factored:
        """Eliminate the blocks, then factor what they leave."""
        return _BlockFactor(self, values)


class _BlockFactor:
    def __init__(self, structure: BlockStructure, values: Array) -> None:
        s = self.structure = structure
        m, k = s.m, s.k
        lower = np.asarray(np.linalg.cholesky(values[: s.at_entries].reshape(m, k, k)), dtype=float)
        self.logdet = 2.0 * float(np.log(np.einsum("mkk->mk", lower)).sum())
        self.inverse_lower: Array = np.asarray(np.linalg.inv(lower) if k > 1 else 1.0 / lower, dtype=float)
        self.meets = values[s.at_entries : s.at_rest].reshape(-1, k)
        halved = self._left(self.inverse_lower, self.meets)
        rest = values[s.at_rest :].copy()
        # Bucket by bucket, but one sum over as many as may be held at once.
        places, products, held = [], [], 0
        for i, bucket in enumerate(s.buckets):
            part = halved[bucket.entries]
            r = part.shape[1]
            product = part @ np.swapaxes(part, 1, 2) if k > 1 else part * np.swapaxes(part, 1, 2)
            products.append(product.reshape(len(part), r * r)[:, _tril(r)].ravel())
            places.append(bucket.pairs.ravel())
            held += len(products[-1])
            if held > AT_ONCE or i + 1 == len(s.buckets):
                rest -= np.bincount(np.concatenate(places), np.concatenate(products), len(rest))
                places, products, held = [], [], 0
        self.later = s.rest.factor(rest)
        self.logdet += self.later.logdet

    def _left(self, blocks: Array, entries: Array) -> Array:
        at = blocks[self.structure.level]
        return np.asarray(at[:, 0] * entries if self.structure.k == 1 else (at @ entries[..., None])[..., 0])

    def solve(self, r: Array) -> Array:
        s = self.structure
        mk, c = s.m * s.k, r.shape[1]
        inverse = np.swapaxes(self.inverse_lower, 1, 2) @ self.inverse_lower
        meets = sparse.bsr_array(
            (self.meets[..., None], s.column, s.starts), shape=(mk, s.rest.order), blocksize=(s.k, 1)
        )
        first = (inverse @ r[:mk].reshape(s.m, s.k, c)).reshape(mk, c)
        later = self.later.solve(r[mk:] - meets.T @ first)
        first -= (inverse @ (meets @ later).reshape(s.m, s.k, c)).reshape(mk, c)
        return np.concatenate([first, later])

    def inverse(self) -> Array:
        s = self.structure
        p22 = self.later.inverse()
        p11: Array = np.swapaxes(self.inverse_lower, 1, 2) @ self.inverse_lower
        solved = self._left(p11, self.meets)
        p12 = np.empty_like(solved)
        for bucket in s.buckets:
            r = bucket.entries.shape[1]
            among = p22[bucket.pairs][:, _symmetric(r)].reshape(-1, r, r)
            e = solved[bucket.entries]
            meets = -(among @ e)
            p12[bucket.entries] = meets
            p11[bucket.levels] -= np.swapaxes(e, 1, 2) @ meets
        return np.concatenate([p11.ravel(), p12.ravel(), p22])


class SortedStructure:
    """Columns in another order and padded to blocks of one width; see ``components``.

    Parameters
    ----------
    order : int
        Number of columns.
    found : Sorting
        Where they go.
    """

    def __init__(self, order: int, found: Sorting) -> None:
        self.order, self.places = order, found.places
        self.inner = BlockStructure(
            found.many, found.width, found.component, found.border, DenseStructure(found.rest)
        )
        self.size = self.inner.size
        padding = np.setdiff1d(np.arange(self.inner.order), self.places)
        self.padding = self.inner.locate(padding, padding)

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        return self.inner.locate(self.places[rows], self.places[columns])

    def factor(self, values: Array) -> Factored:
        """Factor the padded matrix."""
        padded = values.copy()
        padded[self.padding] = 1.0
        return _SortedFactor(self, self.inner.factor(padded))


class _SortedFactor:
    def __init__(self, structure: SortedStructure, inner: Factored) -> None:
        self.structure, self.inner, self.logdet = structure, inner, inner.logdet

    def solve(self, r: Array) -> Array:
        s = self.structure
        padded = np.zeros((s.inner.order, r.shape[1]))
        padded[s.places] = r
        return self.inner.solve(padded)[s.places]

    def inverse(self) -> Array:
        return self.inner.inverse()


def _tril(r: int) -> Index:
    lower, upper = np.tril_indices(r)
    return (lower * r + upper).astype(np.intp)


def _symmetric(r: int) -> Index:
    """Places in the list of lower-triangle pairs of all r * r pairs."""
    i, j = np.divmod(np.arange(r * r), r)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return np.asarray(high * (high + 1) // 2 + low, dtype=np.intp)


def plan(blocks: list[tuple[int, int]], rows: Index, columns: Index) -> Structure:
    """Choose how to factor a matrix.

    Parameters
    ----------
    blocks : list of (levels, width)
        The factors, in the order of the columns.
    rows, columns : ndarray of int
        Entries that are not zero, at least those of the lower triangle.

    Raises
    ------
    TooLarge
        If the part that meets directly has more than ``MOST_DENSE`` columns.
    """
    order = sum(m * k for m, k in blocks)
    if not blocks:
        return DenseStructure(0)
    m, k = blocks[0]
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    inside = high < m * k
    none = np.zeros(0, dtype=np.intp)
    if (high[inside] // k != low[inside] // k).any():
        return _together(Pattern(blocks, none, none, high, low))
    later = order - m * k
    meets = (low < m * k) & ~inside
    keys = np.unique(low[meets] // k * max(later, 1) + high[meets] - m * k)
    level, column = np.divmod(keys, max(later, 1))
    beyond = low >= m * k
    high, low = high[beyond] - m * k, low[beyond] - m * k
    if len(blocks) > 1 and _meet_alone(level, column, *blocks[1]):
        high, low = _filled(high, low, level, column, later)
        return BlockStructure(m, k, level, column, plan(blocks[1:], high, low))
    return BlockStructure(m, k, level, column, _together(Pattern(blocks[1:], level, column, high, low)))


def _together(pattern: Pattern) -> Structure:
    """Hold columns that meet directly: by groups that never meet where there are such, else densely."""
    found = sorting(pattern)
    return DenseStructure(pattern.order) if found is None else SortedStructure(pattern.order, found)


def _meet_alone(level: Index, column: Index, m: int, k: int) -> bool:
    """Whether no block meets two levels of the next factor, so that eliminating it leaves that factor in blocks."""
    own = column < m * k
    met = np.unique(np.stack([level[own], column[own] // k]), axis=1)[0]
    return bool((np.bincount(met) <= 1).all())


def _filled(high: Index, low: Index, level: Index, column: Index, order: int) -> tuple[Index, Index]:
    """Add to a pattern the pairs of columns that meet in a block."""
    counts = np.bincount(level)
    starts = np.cumsum(counts) - counts
    known = [high * order + low]
    for r in np.unique(counts[counts > 0]).tolist():
        i, j = np.tril_indices(r)
        met = column[starts[counts == r][:, None] + np.arange(r)]
        known.append(np.unique(met[:, i] * order + met[:, j]))
    pairs = np.divmod(np.unique(np.concatenate(known)), order)
    return pairs[0], pairs[1]
