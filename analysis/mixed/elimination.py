"""Cholesky factors of large sparse symmetric matrices with a fixed pattern, and their inverse on that pattern.

Random effects make matrices in which the levels of one factor meet each other only through other factors. Such a factor is
eliminated in one stroke, level by level (``BlockStructure``), and what it leaves among the other factors is a smaller matrix
of the same kind: nested factors go one after another, until levels meet directly. What is left falls into groups that never
meet (``SortedStructure``), or is held densely (``DenseStructure``). The gradients of a deviance need H^-1 only where H is
not zero, which the same recursion gives backwards (Takahashi, Fagan and Chin 1973; Erisman and Tinney 1975).

A structure says where an entry is stored in a flat array of values; each entry of the lower triangle has one place, and
what is held densely at the end are the last values. A block that meets few later columns keeps the places of their pairs
(``EliminationPairs``). Blocks that meet many keep the columns alone (``Cliques``): those that meet nearly the same columns of
the dense part subtract their product from it as one matrix. Pairs of columns before the dense part that many blocks meet are listed
once for all of them (``Shared``). Groups that never meet (an item's own levels, crossed within it) become diagonal blocks,
padded to the largest by columns of the identity, with a border for factors that tie all groups together (``Sorting``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph

from analysis.arrays import Array, Index, Mask

FEW = 200
"""Columns that are held densely without a thought."""
MOST_BORDERS = 2
"""Factors that are kept to the end, at most."""
SMALL_BLOCKS = 20.0
"""Cost of a product in many small blocks in products of one large matrix."""
MOST_PAIRED = 64
"""Later columns of a block whose pairs are listed; of blocks that meet more, no list is kept."""
TAKEN_OUT = 2.0
"""Cost of a product in a part taken out of one large matrix, likewise."""


@dataclass(frozen=True)
class SparsePattern:
    """Nonzero entries of a symmetric matrix of later columns."""

    blocks: Sequence[tuple[int, int]]  # factors in the order of the columns
    # block, column: sets of columns that meet one another: block number and column of each membership
    block: Index
    column: Index
    high: Index  # high, low: pairs that meet directly
    low: Index

    @property
    def order(self) -> int:
        """Number of columns."""
        return sum(m * k for m, k in self.blocks)


@dataclass(frozen=True)
class Sorting:
    """Columns sorted by component, the border last."""

    many: int  # many, width: components, and columns of the largest
    width: int
    # (order,): where each column goes among ``many * width`` padded columns and the border behind them
    places: Index
    component: Index  # component, border: which component meets which column of the border, sorted
    border: Index
    rest: int  # columns of the border

    @property
    def cost(self) -> float:
        """Products for a factor and its inverse, in those of a dense matrix."""
        columns_met = np.bincount(self.component, minlength=self.many).astype(float)
        costs = np.where(columns_met > MOST_PAIRED, TAKEN_OUT, SMALL_BLOCKS)
        inside = SMALL_BLOCKS * self.many * float(self.width) ** 3 + self.width * float(
            columns_met @ (costs * columns_met)
        )
        return inside + float(self.rest) ** 3


def distinct(keys: Index) -> Index:
    """Sort numbers and keep each once; for many different ones several times as fast as ``numpy.unique``."""
    ordered = np.sort(keys)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(keys) else ordered


def sorting(pattern: SparsePattern) -> Sorting | None:
    """Choose the border under which components are least work; None where one dense matrix is no more."""
    order = pattern.order
    if order <= FEW:
        return None
    best, least = None, float(order) ** 3
    factors = range(len(pattern.blocks))
    for size in range(min(MOST_BORDERS, len(pattern.blocks) - 1) + 1):
        for border in combinations(factors, size):
            candidate = _sorted(pattern, border)
            if candidate.cost < least:
                best, least = candidate, candidate.cost
    return best


def _sorted(pattern: SparsePattern, border_factors: tuple[int, ...]) -> Sorting:
    order = pattern.order
    is_border = np.concatenate(
        [np.full(m * k, f in border_factors) for f, (m, k) in enumerate(pattern.blocks)]
    )
    # sets of columns are nodes of the graph too, behind the columns
    sets = int(pattern.block.max()) + 1 if len(pattern.block) else 0
    ends = np.concatenate([pattern.column, pattern.high])
    others = np.concatenate([order + pattern.block, pattern.low])
    joins = ~is_border[ends] & ~is_border[np.where(others < order, others, ends)]
    graph = sparse.coo_array(
        (np.ones(int(joins.sum())), (ends[joins], others[joins])), shape=(order + sets, order + sets)
    )
    _, label = csgraph.connected_components(graph, directed=False)
    inner = np.flatnonzero(~is_border)
    numbers, component = np.unique(label[inner], return_inverse=True)
    sizes = np.bincount(component, minlength=len(numbers))
    width = int(sizes.max(initial=1))
    within = np.empty(len(inner), dtype=np.intp)
    by_component = np.argsort(component, kind="stable")
    within[by_component] = np.arange(len(inner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(order, dtype=np.intp)
    places[inner] = component * width + within
    border = np.flatnonzero(is_border)
    places[border] = len(numbers) * width + np.arange(len(border))
    number_of = np.full(order + sets, -1, dtype=np.intp)
    number_of[inner] = component
    has_component = np.isin(label[order:], numbers)
    number_of[order:][has_component] = np.searchsorted(numbers, label[order:][has_component])
    pairs = np.concatenate(
        [
            np.stack([number_of[others], ends])[:, is_border[ends]],
            np.stack([number_of[ends], others])[
                :, (others < order) & is_border[np.minimum(others, order - 1)]
            ],
        ],
        axis=1,
    )
    pairs = pairs[:, pairs[0] >= 0]
    keys = distinct(pairs[0] * order + places[pairs[1]] - len(numbers) * width)
    return Sorting(len(numbers), width, places, keys // order, keys % order, len(border))


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


@dataclass(frozen=True)
class EliminationPairs:
    """Levels that meet the same number r of later columns: their entries (G, r), places of the column pairs (G, r(r+1)/2)."""

    levels: Index
    entries: Index
    pairs: Index

    def products(self, part: Array) -> Array:
        """Multiply (G, r, k) by its own transpose, at the pairs."""
        r, k = part.shape[1:]
        lower, upper = np.tril_indices(r)
        product = part @ np.swapaxes(part, 1, 2) if k > 1 else part * np.swapaxes(part, 1, 2)
        return np.asarray(product.reshape(len(part), r * r)[:, lower * r + upper].ravel())

    def times(self, values: Array, e: Array, order: int) -> Array:
        """Multiply the matrix among the columns by e (G, r, k)."""
        i, j = np.indices((e.shape[1],) * 2)
        high, low = np.maximum(i, j), np.minimum(i, j)
        return np.asarray(values[self.pairs][:, high * (high + 1) // 2 + low] @ e)


@dataclass(frozen=True)
class Cliques:
    """Levels that meet nearly the same columns of the full matrix at the end, and some before it."""

    levels: Index  # (G,)
    entries: Index  # (G, r): theirs; the number of all entries, for zeros, where a level meets no column
    before: int  # o: how many of the r columns lie before the full matrix; the others lie in it
    # (G, o, r) or (G, o, r - o): where pairs of a column before the full matrix and any column, or one in it, are stored
    places: Index
    columns: slice | Index  # columns of the full matrix
    is_shared: bool  # whether pairs of two columns before the full matrix are those of a ``Shared``

    def subtract(self, values: Array, part: Array, order: int) -> None:
        """Subtract (G, r, k) times its own transpose from the matrix, in place."""
        o = self.before
        if o:
            products = part[:, :o] @ np.swapaxes(part[:, o:] if self.is_shared else part, 1, 2)
            if not self.is_shared:
                # a pair of columns before the full matrix has one place and stands here twice
                products[:, :, :o] *= np.tril(np.ones((o, o)))
            np.subtract.at(values, self.places.ravel(), products.ravel())
        if o < part.shape[1]:
            flat = np.swapaxes(part[:, o:], 1, 2).reshape(-1, part.shape[1] - o)
            full = values[len(values) - order**2 :].reshape(order, order)
            full[self._among] -= flat.T @ flat

    @property
    def _among(self) -> tuple[slice | Index, ...]:
        """Rows and columns of the full matrix, as an index."""
        return (self.columns,) * 2 if isinstance(self.columns, slice) else np.ix_(self.columns, self.columns)

    def times(self, values: Array, e: Array, order: int) -> Array:
        """Multiply the matrix among the columns by e (G, r, k)."""
        full = values[len(values) - order**2 :].reshape(order, order)
        (count, r, k), o = e.shape, self.before
        flat = np.swapaxes(e[:, o:], 0, 1).reshape(r - o, count * k)
        product = np.empty_like(e)
        product[:, o:] = np.swapaxes((full[self._among] @ flat).reshape(r - o, count, k), 0, 1)
        if o:
            blocks = values[self.places]
            across = blocks if self.is_shared else blocks[:, :, o:]
            product[:, :o] = blocks @ (e[:, o:] if self.is_shared else e)
            product[:, o:] += np.swapaxes(across, 1, 2) @ e[:, :o]
        return product


@dataclass(frozen=True)
class Shared:
    """Levels that meet nearly the same columns before the full matrix."""

    levels: Index  # (G,)
    entries: Index  # (G, o): as of ``Cliques``
    places: Index  # (o, o): where pairs of these columns are stored; any place where no level meets both

    def subtract(self, values: Array, part: Array, order: int) -> None:
        """Subtract (G, o, k) times its own transpose from the matrix, in place."""
        columns = part.shape[1]
        flat = np.swapaxes(part, 1, 2).reshape(-1, columns)
        lower = np.tril_indices(columns)
        np.subtract.at(values, self.places[lower], (flat.T @ flat)[lower])

    def times(self, values: Array, e: Array, order: int) -> Array:
        """Multiply the matrix among the columns by e (G, o, k)."""
        count, columns, k = e.shape
        flat = np.swapaxes(e, 0, 1).reshape(columns, count * k)
        return np.swapaxes((values[self.places] @ flat).reshape(columns, count, k), 0, 1)


def cliques(
    levels: Index, starts: Index, column: Index, rest: Structure, paired: int
) -> tuple[list[Cliques], list[Shared]]:
    """Gather levels (G,) that meet nearly the same columns of the full matrix, but those whose pairs are listed for less."""
    full = rest.in_full(column)
    shared = _share(levels, starts, column, full, rest)
    in_shared = {level for group in shared for level in group.levels.tolist()}
    by_columns: dict[tuple[tuple[int, bool], bytes], list[int]] = {}
    for level in levels.tolist():
        full_columns = full[starts[level] : starts[level + 1]]
        kind = int((full_columns < 0).sum()), level in in_shared
        by_columns.setdefault((kind, full_columns[full_columns >= 0].tobytes()), []).append(level)
    groups = []
    for (before, is_shared), columns, members in _gathered(by_columns, rest.full_order):
        is_worth = len(members) * len(columns) ** 2 >= WORTH and 4 * before <= len(columns)
        if not is_shared and not is_worth and before + len(columns) <= paired:
            continue
        entries = np.full((len(members), before + len(columns)), len(column), dtype=np.intp)
        for row, level in zip(entries, members, strict=True):
            positions = np.arange(starts[level], starts[level + 1])
            met = full[positions]
            row[:before] = positions[met < 0]
            row[before + np.searchsorted(columns, met[met >= 0])] = positions[met >= 0]
        is_range = len(columns) > 0 and bool((np.diff(columns) == 1).all())
        among = slice(int(columns[0]), int(columns[-1]) + 1) if is_range else columns
        step = max(1, AT_ONCE // (entries.shape[1] * max(before, 1)))
        for start in range(0, len(members), step):
            batch = entries[start : start + step]
            high, low = np.broadcast_arrays(
                batch[:, :before, None], batch[:, None, before:] if is_shared else batch[:, None, :]
            )
            exists, places = low < len(column), np.zeros(low.shape, dtype=np.intp)
            places[exists] = rest.locate(column[high[exists]], column[low[exists]])
            batch_levels = np.array(members[start : start + step], dtype=np.intp)
            groups.append(Cliques(batch_levels, batch, before, places, among, is_shared))
    return groups, shared


def _share(levels: Index, starts: Index, column: Index, full: Index, rest: Structure) -> list[Shared]:
    """Gather levels that meet nearly the same columns before the full matrix."""
    by_columns: dict[tuple[None, bytes], list[int]] = {}
    for level in levels.tolist():
        span = slice(starts[level], starts[level + 1])
        before = column[span][full[span] < 0]
        if len(before) >= SHARED:
            by_columns.setdefault((None, before.tobytes()), []).append(level)
    groups = []
    for _, columns, members in _gathered(by_columns, rest.order):
        if len(members) < SHARED:
            continue
        entries = np.full((len(members), len(columns)), len(column), dtype=np.intp)
        for row, level in zip(entries, members, strict=True):
            positions = np.arange(starts[level], starts[level + 1])
            positions = positions[full[positions] < 0]
            row[np.searchsorted(columns, column[positions])] = positions
        incidence = (entries < len(column)).astype(float)
        meet = incidence.T @ incidence > 0.0
        high, low = np.nonzero(meet)
        places = np.zeros(meet.shape, dtype=np.intp)
        places[meet] = rest.locate(columns[high], columns[low])
        groups.append(Shared(np.array(members, dtype=np.intp), entries, places))
    return groups


def _gathered(
    by_columns: dict[tuple[Kind, bytes], list[int]], order: int
) -> Iterator[tuple[Kind, Index, list[int]]]:
    """Yield levels of one kind that meet nearly the same of ``order`` columns: the kind, the columns, the levels."""
    # Columns of levels that are taken together are those of all of them, as long as they are few more than each one's own: rows
    # that are missing here and there do not part levels that would meet the same columns.
    groups: deque[_Group[Kind]] = deque()
    group_count = 0
    for tried, ((kind, key), members) in enumerate(by_columns.items()):
        columns = np.frombuffer(key, dtype=np.intp)
        for group in reversed(groups) if tried < TRIED or group_count <= TAKEN * tried else ():
            union = int(group.there.sum()) + len(columns) - int(group.there[columns].sum())
            if kind == group.kind and union <= ROOM * min(group.fewest, len(columns)):
                group.there[columns] = True
                group.levels += members
                group.fewest = min(group.fewest, len(columns))
                break
        else:
            is_met = np.zeros(order, dtype=bool)
            is_met[columns] = True
            groups.append(_Group(kind, is_met, list(members), len(columns)))
            group_count += 1
            if len(groups) > COMPARED:
                yield groups.popleft().found()
    for group in groups:
        yield group.found()


@dataclass
class _Group(Generic[Kind]):
    """Levels that are taken together so far: their kind, the columns, the fewest that a level meets."""

    kind: Kind
    there: Mask
    levels: list[int]
    fewest: int

    def found(self) -> tuple[Kind, Index, list[int]]:
        """Return what :func:`_gathered` yields."""
        return self.kind, np.flatnonzero(self.there), sorted(self.levels)


Indices = Index | NDArray[np.int32]

MOST_DENSE = 20_000
"""Order of the largest matrix that is held densely; 3.2 GB."""
ALWAYS_PAIRED = 16
"""Later columns of a block up to which their pairs are always listed."""
MIRRORED = 256
"""Rows of a matrix that are mirrored at once."""


class TooLarge(MemoryError):
    """The matrix that remains for the later factors would not fit into memory."""

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.order = order
        self.eliminated = 0


class DenseStructure:
    """A full matrix; row i, column j <= i at i * order + j.

    All structures have an ``order``, the ``size`` of their values, of which the last are a full matrix of order ``full_order``,
    the number of factors ``eliminated`` before it, and the products that a factor and its inverse take (``work``).
    """

    def __init__(self, order: int) -> None:
        if order > MOST_DENSE:
            raise TooLarge(order)
        self.order = self.full_order = order
        self.size = order * order
        self.eliminated, self.work = 0, float(order) ** 3

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries; (i, j) and (j, i) are one."""
        return np.maximum(rows, columns) * self.order + np.minimum(rows, columns)

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix at the end; -1 for others."""
        return columns

    def factor(self, values: Array) -> Factored:
        """Factor the matrix, whose values are used up; LinAlgError where it is not positive definite."""
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
    """Blocks of k columns that meet only later columns: (m, k, k) blocks, then (entries, k), then the later columns' own."""

    def __init__(self, m: int, k: int, level: Index, column: Index, rest: Structure) -> None:
        self.m, self.k, self.level, self.column, self.rest = m, k, level, column, rest
        self.order: int = m * k + rest.order
        self.at_entries = m * k * k
        self.at_rest = self.at_entries + len(level) * k
        self.size: int = self.at_rest + rest.size
        self._keys = level * max(rest.order, 1) + column
        self.full_order: int = rest.full_order
        self.eliminated: int = 1 + rest.eliminated
        counts = np.bincount(level, minlength=m)
        self.work: float = rest.work + k * float(counts @ counts)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.sparse_form = for_scipy(column), for_scipy(self.starts)
        self.buckets: list[EliminationPairs] = []
        self.cliques: list[Cliques] = []
        self.shared: list[Shared] = []
        wide_levels = np.flatnonzero(counts > min(ALWAYS_PAIRED, MOST_PAIRED))
        if len(wide_levels):
            self.cliques, self.shared = cliques(wide_levels, self.starts, column, rest, MOST_PAIRED)
        for clique in self.cliques:
            counts[clique.levels] = 0
        for r in np.unique(counts[counts > 0]).tolist():
            levels = np.flatnonzero(counts == r)
            lower, upper = np.tril_indices(r)
            step = max(1, AT_ONCE // len(lower))
            for batch in np.split(levels, range(step, len(levels), step)):
                entries = self.starts[batch][:, None] + np.arange(r)
                meets = column[entries]
                pairs = rest.locate(meets[:, lower].ravel(), meets[:, upper].ravel())
                self.buckets.append(EliminationPairs(batch, entries, pairs.reshape(len(batch), -1)))

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        high, low = np.maximum(rows, columns), np.minimum(rows, columns)
        mk, k = self.m * self.k, self.k
        places = low // k * k * k + high % k * k + low % k
        meets = (low < mk) & (high >= mk)
        keys = low[meets] // k * max(self.rest.order, 1) + high[meets] - mk
        places[meets] = self.at_entries + np.searchsorted(self._keys, keys) * k + low[meets] % k
        later = low >= mk
        places[later] = self.at_rest + self.rest.locate(high[later] - mk, low[later] - mk)
        return np.asarray(places, dtype=np.intp)

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix."""
        numbers = np.full(columns.shape, -1, dtype=np.intp)
        later = columns >= self.m * self.k
        numbers[later] = self.rest.in_full(columns[later] - self.m * self.k)
        return numbers

    def factor(self, values: Array) -> Factored:
        """Eliminate the blocks, then factor what they leave."""
        return _BlockFactor(self, values)


class _BlockFactor:
    def __init__(self, structure: BlockStructure, values: Array) -> None:
        s = self.structure = structure
        m, k = s.m, s.k
        lower = np.asarray(np.linalg.cholesky(values[: s.at_entries].reshape(m, k, k)), dtype=float)
        self.logdet: float = 2.0 * float(np.log(np.einsum("mkk->mk", lower)).sum())
        self.inverse_lower: Array = np.asarray(np.linalg.inv(lower) if k > 1 else 1.0 / lower, dtype=float)
        self.meets = values[s.at_entries : s.at_rest].reshape(-1, k)
        # a last row of zeros: what a level does not meet of the columns of its clique
        self.padded = np.vstack([self.meets, np.zeros((1, k))]) if s.cliques else self.meets
        rest = values[s.at_rest :]
        # Bucket by bucket, but one sum over as many as may be held at once.
        places, products, product_count = [], [], 0
        for i, bucket in enumerate(s.buckets):
            products.append(bucket.products(self._left(self.inverse_lower, bucket)))
            places.append(bucket.pairs.ravel())
            product_count += len(products[-1])
            if product_count > AT_ONCE or i + 1 == len(s.buckets):
                rest -= np.bincount(np.concatenate(places), np.concatenate(products), len(rest))
                places, products, product_count = [], [], 0
        groups: list[Cliques | Shared] = [*s.cliques, *s.shared]
        for group in groups:
            group.subtract(rest, self._left(self.inverse_lower, group), s.full_order)
        self.later = s.rest.factor(rest)
        self.logdet += self.later.logdet

    def _left(self, blocks: Array, group: EliminationPairs | Cliques | Shared) -> Array:
        """Multiply each level's block (k, k) and its entries: (G, r, k)."""
        level_blocks, entries = blocks[group.levels], self.padded[group.entries]
        return np.asarray(
            level_blocks * entries if self.structure.k == 1 else entries @ np.swapaxes(level_blocks, 1, 2)
        )

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
        p12 = np.zeros_like(self.padded)
        of_level = p11.copy()
        groups: list[EliminationPairs | Cliques | Shared] = [*s.buckets, *s.cliques, *s.shared]
        for group in groups:
            e = self._left(of_level, group)
            meets = -group.times(p22, e, s.full_order)
            p12[group.entries] += meets
            p11[group.levels] -= np.swapaxes(e, 1, 2) @ meets
        out[: s.at_entries] = p11.ravel()
        out[s.at_entries : s.at_rest] = p12[: len(self.meets)].ravel()


def for_scipy(indices: Index) -> Indices:
    """Return indices as scipy keeps them, so that it does not convert them for each product."""
    fits = indices.max(initial=0) <= np.iinfo(np.int32).max
    return indices.astype(np.int32) if fits else indices


def transposed_times(blocks: Array, columns: Indices, starts: Indices, n_levels: int, part: Array) -> Array:
    """Multiply the transpose of an (entries, k, l) block matrix, never made, and (m k, c): (n_levels l, c)."""
    _, k, width = blocks.shape
    product = np.zeros((n_levels * width, part.shape[1]))
    for i, j in np.ndindex(k, width):
        # read by columns, what is stored by rows is the transpose
        across = sparse.csc_array((blocks[:, i, j], columns, starts), shape=(n_levels, len(starts) - 1))
        product[j::width] += np.asarray(across @ part[i::k])
    return product


class SortedStructure(BlockStructure):
    """Columns in another order and padded to blocks of one width (``Sorting``)."""

    def __init__(self, order: int, arrangement: Sorting) -> None:
        super().__init__(
            arrangement.many,
            arrangement.width,
            arrangement.component,
            arrangement.border,
            DenseStructure(arrangement.rest),
        )
        padding = np.setdiff1d(np.arange(self.order), arrangement.places)
        self.padding = super().locate(padding, padding)
        self.padded, self.order, self.places, self.eliminated = self.order, order, arrangement.places, 0

    def locate(self, rows: Index, columns: Index) -> Index:
        """Places of entries."""
        return super().locate(self.places[rows], self.places[columns])

    def in_full(self, columns: Index) -> Index:
        """Numbers of columns in the full matrix."""
        return super().in_full(self.places[columns])

    def factor(self, values: Array) -> Factored:
        """Factor the padded matrix."""
        values[self.padding] = 1.0
        return _SortedFactor(self, values)


class _SortedFactor(_BlockFactor):
    structure: SortedStructure

    def solve(self, r: Array) -> Array:
        padded = np.zeros((self.structure.padded, r.shape[1]))
        padded[self.structure.places] = r
        return super().solve(padded)[self.structure.places]


def plan(blocks: list[tuple[int, int]], rows: Index, columns: Index) -> Structure:
    """Choose how to factor a matrix."""
    order = sum(m * k for m, k in blocks)
    if not blocks:
        return DenseStructure(0)
    m, k = blocks[0]
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    inside = high < m * k
    empty = np.zeros(0, dtype=np.intp)
    if (high[inside] // k != low[inside] // k).any():
        return _together(SparsePattern(blocks, empty, empty, high, low))
    later = order - m * k
    meets = (low < m * k) & ~inside
    keys = distinct(low[meets] // k * max(later, 1) + high[meets] - m * k)
    level, column = np.divmod(keys, max(later, 1))
    beyond = low >= m * k
    high, low = high[beyond] - m * k, low[beyond] - m * k
    try:
        is_alone = False
        if len(blocks) > 1:
            # Where no block meets two levels of the next factor, eliminating it leaves that factor in blocks.
            width = blocks[1][1]
            is_next = column < blocks[1][0] * width
            levels_met = np.unique(np.stack([level[is_next], column[is_next] // width]), axis=1)[0]
            is_alone = bool((np.bincount(levels_met) <= 1).all())
        if is_alone:
            high, low = _filled(high, low, level, column, later)
            rest = plan(blocks[1:], high, low)
        else:
            rest = _together(SparsePattern(blocks[1:], level, column, high, low))
    except TooLarge as fault:
        fault.eliminated += 1
        raise
    return BlockStructure(m, k, level, column, rest)


def _together(pattern: SparsePattern) -> Structure:
    """Hold columns that meet directly: by groups that never meet where there are such, else densely."""
    arrangement = sorting(pattern)
    return (
        DenseStructure(pattern.order) if arrangement is None else SortedStructure(pattern.order, arrangement)
    )


def _filled(high: Index, low: Index, level: Index, column: Index, order: int) -> tuple[Index, Index]:
    """Add to a pattern the pairs of columns that meet in a block."""
    counts = np.bincount(level)
    starts = np.cumsum(counts) - counts
    keys = [distinct(high * order + low)]
    for r in np.unique(counts[counts > 0]).tolist():
        i, j = np.tril_indices(r)
        levels = np.flatnonzero(counts == r)
        step = max(1, AT_ONCE // len(i))
        for batch in np.split(levels, range(step, len(levels), step)):
            columns_met = column[starts[batch][:, None] + np.arange(r)]
            keys.append(distinct((columns_met[:, i] * order + columns_met[:, j]).ravel()))
    pairs = np.divmod(distinct(np.concatenate(keys)), order)
    return pairs[0], pairs[1]


Factored = _DenseFactor | _BlockFactor
Structure = DenseStructure | BlockStructure
