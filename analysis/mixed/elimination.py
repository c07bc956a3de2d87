"""Cholesky factors of large sparse symmetric matrices with a fixed pattern, and their inverse on that pattern.

Random effects make matrices in which the levels of one factor meet each other only through other factors. Such a factor is
eliminated in one stroke, level by level (``BlockStructure``), and what it leaves among the other factors is a smaller matrix
of the same kind: nested factors go one after another, until levels meet directly. What is left falls into groups that never meet
(``SortedStructure``), or is held densely (``DenseStructure``). The gradients of a deviance need H^-1 only where H is not
zero, which the same recursion gives backwards (Takahashi, Fagan and Chin 1973; Erisman and Tinney 1975).

A structure says where an entry is stored in a flat array of values; each entry of the lower triangle has one place. What is
held densely at the end are the last values. Blocks that meet many columns there (``Cliques``) subtract their products from it
as matrices, so that no list of pairs grows with the square of what a block meets.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack

from .components import MOST_PAIRED, Pattern, Sorting, distinct, sorting
from .meeting import AT_ONCE, Cliques, Pairs, Shared, cliques

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Indices = Index | NDArray[np.int32]

MOST_DENSE = 20_000
"""Order of the largest matrix that is held densely; 3.2 GB."""
FEW = 16
"""Later columns of a block up to which their pairs are always listed."""
MIRRORED = 256
"""Rows of a matrix that are mirrored at once."""


class TooLarge(MemoryError):
    """What is left among the later factors would not fit into memory.

    Attributes
    ----------
    order : int
        Its number of columns.
    eliminated : int
        Factors that went before, one after another.
    """

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.order = order
        self.eliminated = 0


class Factored(Protocol):
    """A factor of a symmetric positive definite matrix of order q."""

    logdet: float

    def solve(self, r: Array) -> Array:
        """Solve for right-hand sides of shape (q, c)."""

    def inverse(self, out: Array) -> None:
        """Put the inverse's entries at the places of the matrix's own, shape (size,)."""


class Structure(Protocol):
    """Where a symmetric matrix of order ``order`` keeps its ``size`` values.

    Attributes
    ----------
    full_order : int
        Order of the full matrix that is left at the end.
    eliminated : int
        Factors that go before, one after another.
    work : float
        Products that a factor and its inverse take, up to a constant.
    """

    order: int
    size: int
    full_order: int
    eliminated: int
    work: float

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries; (i, j) and (j, i) are one."""

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix of order ``full_order`` that the last values are; -1 for others."""

    def factor(self, values: Array) -> Factored:
        """Factor the matrix, whose values are used up; LinAlgError where it is not positive definite."""


class DenseStructure:
    """A full matrix; row i, column j <= i at i * order + j."""

    def __init__(self, order: int) -> None:
        if order > MOST_DENSE:
            raise TooLarge(order)
        self.order = self.full_order = order
        self.size = order * order
        self.eliminated, self.work = 0, float(order) ** 3

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        return np.maximum(rows, columns) * self.order + np.minimum(rows, columns)

    def in_full(self, columns: Index) -> Index:
        """Return them as they are."""
        return columns

    def factor(self, values: Array) -> Factored:
        """Factor by LAPACK."""
        return _DenseFactor(values.reshape(self.order, self.order).T)


class _DenseFactor:
    # The lower triangle by rows is the upper triangle by columns, which is LAPACK's order.
    def __init__(self, matrix: Array) -> None:
        if not len(matrix):
            self.upper, self.logdet = matrix, 0.0
            return
        self.upper, failed = lapack.dpotrf(matrix, lower=0, clean=0, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("not positive definite")
        self.logdet = 2.0 * float(np.log(np.diag(self.upper)).sum())

    def solve(self, r: Array) -> Array:
        if not len(self.upper):
            return r
        return np.asarray(lapack.dpotrs(self.upper, r, lower=0)[0])

    def inverse(self, out: Array) -> None:
        if not len(self.upper):
            return
        full = out.reshape(self.upper.shape)
        full[...] = self.upper.T
        full[...] = lapack.dpotri(full.T, lower=0, overwrite_c=1)[0].T
        for start in range(0, len(full), MIRRORED):
            end = start + MIRRORED
            full[:start, start:end] = full[start:end, :start].T
            square = full[start:end, start:end]
            square[...] = np.tril(square) + np.tril(square, -1).T


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
        self.full_order = rest.full_order
        self.eliminated = 1 + rest.eliminated
        counts = np.bincount(level, minlength=m)
        self.work = rest.work + k * float(counts @ counts)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.sparse_form = for_scipy(column), for_scipy(self.starts)
        self.buckets: list[Pairs] = []
        self.cliques: list[Cliques] = []
        self.shared: list[Shared] = []
        many = np.flatnonzero(counts > min(FEW, MOST_PAIRED))
        if len(many):
            self.cliques, self.shared = cliques(many, self.starts, column, rest, MOST_PAIRED)
        for one in self.cliques:
            counts[one.levels] = 0
        for r in np.unique(counts[counts > 0]).tolist():
            levels = np.flatnonzero(counts == r)
            lower, upper = np.tril_indices(r)
            step = max(1, AT_ONCE // len(lower))
            for some in np.split(levels, range(step, len(levels), step)):
                entries = self.starts[some][:, None] + np.arange(r)
                meets = column[entries]
                pairs = rest.locate(meets[:, lower].ravel(), meets[:, upper].ravel())
                self.buckets.append(Pairs(some, entries, pairs.reshape(len(some), -1)))

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

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix."""
        found = np.full(columns.shape, -1, dtype=np.intp)
        later = columns >= self.m * self.k
        found[later] = self.rest.in_full(columns[later] - self.m * self.k)
        return found

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
        # a last row of zeros: what a level does not meet of the columns of its clique
        self.padded = np.vstack([self.meets, np.zeros((1, k))]) if s.cliques else self.meets
        rest = values[s.at_rest :]
        # Bucket by bucket, but one sum over as many as may be held at once.
        places, products, held = [], [], 0
        for i, bucket in enumerate(s.buckets):
            products.append(bucket.products(self._left(self.inverse_lower, bucket)))
            places.append(bucket.pairs.ravel())
            held += len(products[-1])
            if held > AT_ONCE or i + 1 == len(s.buckets):
                rest -= np.bincount(np.concatenate(places), np.concatenate(products), len(rest))
                places, products, held = [], [], 0
        for clique in s.cliques:
            clique.subtract(rest, self._left(self.inverse_lower, clique), s.full_order)
        for shared in s.shared:
            shared.subtract(rest, self._left(self.inverse_lower, shared))
        self.later = s.rest.factor(rest)
        self.logdet += self.later.logdet

    def _left(self, blocks: Array, group: Pairs | Cliques | Shared) -> Array:
        """Multiply each level's block (k, k) and its entries: (G, r, k)."""
        at, entries = blocks[group.levels], self.padded[group.entries]
        return np.asarray(at * entries if self.structure.k == 1 else entries @ np.swapaxes(at, 1, 2))

    def solve(self, r: Array) -> Array:
        s = self.structure
        mk, c = s.m * s.k, r.shape[1]
        inverse = np.swapaxes(self.inverse_lower, 1, 2) @ self.inverse_lower
        meets = sparse.bsr_array(
            (self.meets[..., None], *s.sparse_form), shape=(mk, s.rest.order), blocksize=(s.k, 1)
        )
        first = (inverse @ r[:mk].reshape(s.m, s.k, c)).reshape(mk, c)
        below = transposed_times(self.meets[..., None], *s.sparse_form, s.rest.order, first)
        later = self.later.solve(r[mk:] - below)
        first -= (inverse @ (meets @ later).reshape(s.m, s.k, c)).reshape(mk, c)
        return np.concatenate([first, later])

    def inverse(self, out: Array) -> None:
        s = self.structure
        p22 = out[s.at_rest :]
        self.later.inverse(p22)
        p11: Array = np.swapaxes(self.inverse_lower, 1, 2) @ self.inverse_lower
        p12 = np.empty_like(self.padded)
        of_level = p11.copy()
        groups: list[Pairs | Cliques] = [*s.buckets, *s.cliques]
        for group in groups:
            e = self._left(of_level, group)
            meets = -group.times(p22, e, s.full_order)
            p12[group.entries] = meets
            p11[group.levels] -= np.swapaxes(e, 1, 2) @ meets
        for shared in s.shared:
            e = self._left(of_level, shared)
            meets = -shared.times(p22, e)
            p12[shared.entries] += meets
            p11[shared.levels] -= np.swapaxes(e, 1, 2) @ meets
        out[: s.at_entries] = p11.ravel()
        out[s.at_entries : s.at_rest] = p12[: len(self.meets)].ravel()


def for_scipy(indices: Index) -> Indices:
    """Return indices as scipy keeps them, so that it does not convert them for each product."""
    fits = indices.max(initial=0) <= np.iinfo(np.int32).max
    return indices.astype(np.int32) if fits else indices


def transposed_times(blocks: Array, columns: Indices, starts: Indices, many: int, part: Array) -> Array:
    """Multiply the transpose of a sparse matrix of blocks, which is never made, and a dense one.

    Parameters
    ----------
    blocks : ndarray, shape (entries, k, l)
        By rows of blocks.
    columns : ndarray of int, shape (entries,)
        Column of each block, of ``many``.
    starts : ndarray of int, shape (m + 1,)
        Where each row's blocks begin.
    part : ndarray, shape (m k, c)

    Returns
    -------
    ndarray, shape (many l, c)
    """
    _, k, width = blocks.shape
    found = np.zeros((many * width, part.shape[1]))
    for i, j in np.ndindex(k, width):
        # read by columns, what is stored by rows is the transpose
        across = sparse.csc_array((blocks[:, i, j], columns, starts), shape=(many, len(starts) - 1))
        found[j::width] += np.asarray(across @ part[i::k])
    return found


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
        self.size, self.full_order = self.inner.size, self.inner.full_order
        self.eliminated, self.work = 0, self.inner.work
        padding = np.setdiff1d(np.arange(self.inner.order), self.places)
        self.padding = self.inner.locate(padding, padding)

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        return self.inner.locate(self.places[rows], self.places[columns])

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix."""
        return self.inner.in_full(self.places[columns])

    def factor(self, values: Array) -> Factored:
        """Factor the padded matrix."""
        values[self.padding] = 1.0
        return _SortedFactor(self, self.inner.factor(values))


class _SortedFactor:
    def __init__(self, structure: SortedStructure, inner: Factored) -> None:
        self.structure, self.inner, self.logdet = structure, inner, inner.logdet

    def solve(self, r: Array) -> Array:
        s = self.structure
        padded = np.zeros((s.inner.order, r.shape[1]))
        padded[s.places] = r
        return self.inner.solve(padded)[s.places]

    def inverse(self, out: Array) -> None:
        self.inner.inverse(out)


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
    keys = distinct(low[meets] // k * max(later, 1) + high[meets] - m * k)
    level, column = np.divmod(keys, max(later, 1))
    beyond = low >= m * k
    high, low = high[beyond] - m * k, low[beyond] - m * k
    try:
        if len(blocks) > 1 and _meet_alone(level, column, *blocks[1]):
            high, low = _filled(high, low, level, column, later)
            rest = plan(blocks[1:], high, low)
        else:
            rest = _together(Pattern(blocks[1:], level, column, high, low))
    except TooLarge as fault:
        fault.eliminated += 1
        raise
    return BlockStructure(m, k, level, column, rest)


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
    known = [distinct(high * order + low)]
    for r in np.unique(counts[counts > 0]).tolist():
        i, j = np.tril_indices(r)
        levels = np.flatnonzero(counts == r)
        step = max(1, AT_ONCE // len(i))
        for some in np.split(levels, range(step, len(levels), step)):
            met = column[starts[some][:, None] + np.arange(r)]
            known.append(distinct((met[:, i] * order + met[:, j]).ravel()))
    pairs = np.divmod(distinct(np.concatenate(known)), order)
    return pairs[0], pairs[1]
