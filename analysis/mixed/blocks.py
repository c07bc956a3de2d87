"""Penalised least squares over the random effects: H = Lambda' Z' W Z Lambda + I (Bates et al. 2015, eq. 16 to 21) in blocks.

Sorted by grouping factor, H splits into H11 (one small block per level of the largest factor), H12 and H22; eliminating the
first leaves a dense Schur complement of modest size, and gives what the gradients need: blocks of the inverse. Where most
levels of two factors never meet, Z' W Z is instead kept as one small block per pair of levels that occurs (``CellLayout``), so
that memory grows with the rows and not with the product of levels, and ``elimination`` factors H.

Shapes: n rows; q random effects, factor by factor and level by level; the first factor has m1 levels and k1 columns, together
q1 effects, and all others q2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from analysis.arrays import Array, Index
from analysis.mixed.elimination import (
    Factored,
    Indices,
    Structure,
    TooLarge,
    distinct,
    for_scipy,
    plan,
    transposed_times,
)
from stimuli.errors import UserError


@dataclass(frozen=True)
class RandomEffectsBlock:
    """The random-effects columns of one grouping factor, all its terms side by side."""

    codes: Index  # (n,): level of each row
    n_levels: int  # number of levels m
    columns: Array  # (n, k): raw design columns

    @property
    def width(self) -> int:
        """Columns per level, k."""
        return int(self.columns.shape[1])

    def matrix(self, columns: Array) -> sparse.csr_array:
        """Lay columns (n, k) out level by level, shape (n, m k)."""
        n, k = columns.shape
        places = self.codes[:, None] * k + np.arange(k)
        rows = np.repeat(np.arange(n), k)
        return sparse.csr_array((columns.ravel(), (rows, places.ravel())), shape=(n, self.n_levels * k))


Rows = slice | Index
Columns = tuple[Array | None, ...]
"""Columns of a factor in some rows, shapes (r,); None for one that is 1 in all of them."""


def _columns(block: RandomEffectsBlock, rows: Rows) -> Columns:
    columns = [np.ascontiguousarray(block.columns[rows, i]) for i in range(block.width)]
    return tuple(None if (column == 1.0).all() else column for column in columns)


@dataclass(frozen=True)
class LevelPair:
    """Levels of factors f <= g that occur together; each combination is a cell."""

    f: int  # f, g: the factors
    g: int
    count: int  # of the cells
    # (r,): the rows in which both have columns that are not all zero; the others add nothing to any cell
    together: Rows
    cell: Index  # (r,): cell of each of these rows
    one: Columns  # one, other: columns of f and of g in these rows
    other: Columns

    def entries(self) -> list[tuple[int, int]]:
        """Name the entries of a cell's block; of a symmetric one those on and above its diagonal."""
        first = range(len(self.one))
        return [(i, j) for i in first for j in range(i if self.f == self.g else 0, len(self.other))]

    def weighted(self, v: Array, i: int, j: int) -> Array:
        """Multiply numbers of these rows, shape (r,), by column i of f and column j of g."""
        for column in (self.one[i], self.other[j]):
            if column is not None:
                v = v * column
        return v


@dataclass(frozen=True)
class Products:
    """A = Z' W Z: per pair of factors the blocks (cells, k_f, k_g)."""

    layout: EffectsLayout
    blocks: tuple[Array, ...]

    def times(self, b: Array) -> Array:
        """Return A b for b of shape (q, c)."""
        layout, product = self.layout, np.zeros(b.shape)
        for pair, block in zip(layout.pairs, self.blocks, strict=True):
            f, g = layout.slices[pair.f], layout.slices[pair.g]
            if pair.f == pair.g:
                product[f] += _each(block, layout.part(b, pair.f)).reshape(-1, b.shape[1])
                continue
            across, back = layout.cross(pair, block, b[f], b[g])
            product[f] += across
            product[g] += back
        return product

    def penalised(self, lambdas: Sequence[Array]) -> list[Array]:
        """Blocks of H = Lambda' A Lambda + I."""
        blocks = []
        for pair, block in zip(self.layout.pairs, self.blocks, strict=True):
            kronecker = _kronecker(lambdas[pair.f], lambdas[pair.g])
            blocks.append((block.reshape(len(block), -1) @ kronecker).reshape(block.shape))
            if pair.f == pair.g:
                blocks[-1] += np.eye(len(lambdas[pair.f]))
        return blocks


class EffectsLayout:
    """Positions of each grouping factor's effects, and products with the sparse Z that never form it."""

    def __init__(self, factors: Sequence[RandomEffectsBlock]) -> None:
        self.factors = tuple(factors)
        self.n = len(self.factors[0].codes)
        self.m1, self.k1 = self.factors[0].n_levels, self.factors[0].width
        ends = np.cumsum([f.n_levels * f.width for f in self.factors]).tolist()
        self.slices = [slice(*pair) for pair in pairwise([0, *ends])]
        self.q, self.q1, self.q2 = ends[-1], ends[0], ends[-1] - ends[0]

    @cached_property
    def pairs(self) -> tuple[LevelPair, ...]:
        """Pairs of factors, all levels of which may meet."""
        columns = [_columns(f, slice(None)) for f in self.factors]
        pairs = []
        for f, factor in enumerate(self.factors):
            pairs.append(LevelPair(f, f, factor.n_levels, slice(None), factor.codes, columns[f], columns[f]))
            for g, other in enumerate(self.factors[f + 1 :], start=f + 1):
                cell = factor.codes * other.n_levels + other.codes
                count = factor.n_levels * other.n_levels
                pairs.append(LevelPair(f, g, count, slice(None), cell, columns[f], columns[g]))
        return tuple(pairs)

    def part(self, b: Array, f: int) -> Array:
        """View the part of a (q, …) array of a factor as (m, k, …)."""
        return b[self.slices[f]].reshape(self.factors[f].n_levels, self.factors[f].width, *b.shape[1:])

    def view(self, matrix: Array, pair: LevelPair) -> Array:
        """View the part of a (q1, q2) or (q2, q2) matrix of a pair as blocks, (m_f, k, k) or (m_f, m_g, k_f, k_g)."""
        first, second = self.factors[pair.f], self.factors[pair.g]
        down, across = (
            slice(max(span.start - self.q1, 0), span.stop - self.q1 if span.start else None)
            for span in (self.slices[pair.f], self.slices[pair.g])
        )
        blocks = matrix[down, across].reshape(first.n_levels, first.width, second.n_levels, second.width)
        return np.einsum("iaib->iab", blocks) if pair.f == pair.g else blocks.transpose(0, 2, 1, 3)

    def cross(self, pair: LevelPair, block: Array, array: Array, other: Array) -> tuple[Array, Array]:
        """Multiply the matrix of two factors and (m_g k_g, c), and its transpose and (m_f k_f, c)."""
        f, g = self.factors[pair.f], self.factors[pair.g]
        blocks = block.reshape(f.n_levels, g.n_levels, f.width, g.width)
        matrix = blocks.transpose(0, 2, 1, 3).reshape(len(array), len(other))
        return matrix @ other, matrix.T @ array

    def products(self, w: Array) -> Products:
        """Form Z' W Z for weights of shape (n,)."""
        blocks = []
        for pair in self.pairs:
            weights = w[pair.together]
            block: Array = np.empty((pair.count, len(pair.one), len(pair.other)))
            for i, j in pair.entries():
                block[:, i, j] = np.bincount(pair.cell, pair.weighted(weights, i, j), pair.count)
                if pair.f == pair.g:
                    block[:, j, i] = block[:, i, j]
            blocks.append(block)
        return Products(self, tuple(blocks))

    def factor(self, a: Products, lambdas: Sequence[Array]) -> Factor:
        """Factor H = Lambda' A Lambda + I for A = Z' W Z, as ``products`` gave it."""
        return PenalisedCholesky(self, a, lambdas)

    def transpose_times(self, v: Array, groups: Index | None = None, n_groups: int = 1) -> Array:
        """Z' v for v (n,), or Z' diag(v) G, where G (n, n_groups) is 1 in a row's group, else 0."""
        result = np.empty((self.q, n_groups))
        for i, f in enumerate(self.factors):
            codes = f.codes if groups is None else f.codes * n_groups + groups
            for j in range(f.width):
                sums = np.bincount(codes, v * f.columns[:, j], f.n_levels * n_groups)
                self.part(result, i)[:, j] = sums.reshape(-1, n_groups)
        return result if groups is not None else result[:, 0]

    def transpose_times_columns(self, x: Array) -> Array:
        """Z' X for X of shape (n, r)."""
        result = np.empty((self.q, x.shape[1]))
        for j, column in enumerate(x.T):
            result[:, j] = self.transpose_times(column)
        return result

    def times(self, b: Array) -> Array:
        """Z b, shape (n,)."""
        total: Array = np.zeros(self.n)
        for i, f in enumerate(self.factors):
            total += np.einsum("nk,nk->n", f.columns, self.part(b, i)[f.codes])
        return total

    def scale(self, lambdas: Sequence[Array], b: Array, transpose: bool = False) -> Array:
        """Lambda b, or Lambda' b, for b of shape (q,) or (q, c)."""
        mats = [m.T for m in lambdas] if transpose else lambdas
        scaled = [_left(mat, self.part(b, f)).reshape(-1, *b.shape[1:]) for f, mat in enumerate(mats)]
        return np.concatenate(scaled)

    def moved(
        self, entries: Sequence[tuple[int, int, int]], lambdas: Sequence[Array], u: Array, v: Array
    ) -> Array:
        """Per entry (factor, i, j) of Lambda, with D its derivative, D u + Lambda D' v; shape (q, e)."""
        result = np.zeros((self.q, len(entries)))
        for position, (b, i, j) in enumerate(entries):
            target, from_u, from_v = self.part(result, b)[..., position], self.part(u, b), self.part(v, b)
            target[:, i] += from_u[:, j]
            target += np.multiply.outer(from_v[:, i], lambdas[b][:, j])
        return result

    def outer(self, s: Array, t: Array) -> list[Array]:
        """Sum over levels of s t' within each factor; one (k, k) array per factor, trailing axes contracted."""
        sums = []
        for f, factor in enumerate(self.factors):
            a, b = (np.moveaxis(self.part(v, f), 1, 0).reshape(factor.width, -1) for v in (s, t))
            sums.append(a @ b.T)
        return sums


def _left(matrix: Array, array: Array) -> Array:
    """Multiply axis 1 of a (m, k) or (m, k, c) array by a (k, k) matrix."""
    if matrix.shape == (1, 1):
        return np.asarray(array * matrix[0, 0])
    return np.asarray(array @ matrix.T if array.ndim == 2 else matrix @ array)


def _kronecker(first: Array, second: Array) -> Array:
    """Return the Kronecker product of two square matrices: for small ones NumPy's own takes five times as long."""
    size = len(first) * len(second)
    return (first[:, None, :, None] * second[None, :, None, :]).reshape(size, size)


def _each(blocks: Array, array: Array) -> Array:
    """Multiply (m, k, k) blocks and a (m, k, c) array level by level; the loop over many blocks of one number is slow."""
    return np.asarray(blocks * array if blocks.shape[-1] == 1 else blocks @ array)


def _squares(a: Array, b: Array) -> Array:
    """Multiply (m, k, c) by the transpose of (m, k, c) level by level, shape (m, k, k)."""
    if a.shape[1] == 1:
        return np.asarray(np.einsum("mkc,mkc->mk", a, b)[..., None])
    return np.asarray(a @ np.swapaxes(b, 1, 2))


class PenalisedCholesky:
    """The factor of H at given Lambda, by blocks of the first factor and the dense Schur complement of the others."""

    def __init__(self, layout: EffectsLayout, a: Products, lambdas: Sequence[Array]) -> None:
        self.layout, self.a, self.lambdas = layout, a, lambdas
        m1, k1, q1, q2 = layout.m1, layout.k1, layout.q1, layout.q2
        h11, *others = a.penalised(lambdas)
        # LAPACK's loop over many blocks of one number is slow.
        l11 = np.linalg.cholesky(h11) if k1 > 1 else np.sqrt(h11)
        self.inverse_l11: Array = np.asarray(np.linalg.inv(l11) if k1 > 1 else 1.0 / l11, dtype=float)
        self.logdet = 2.0 * float(np.log(np.einsum("mkk->mk", l11)).sum())
        self.h12, schur = np.empty((m1, k1, q2)), np.zeros((q2, q2))
        for pair, block in zip(layout.pairs[1:], others, strict=True):
            view = layout.view(schur if pair.f else self.h12.reshape(q1, q2), pair)
            view[...] = block.reshape(view.shape)
        if q2:
            c = _each(self.inverse_l11, self.h12).reshape(q1, q2)
            schur -= c.T @ c
            # What is filled lies above the diagonal by rows, so below it by columns, which spares LAPACK a copy.
            self.l22, failed = linalg.lapack.dpotrf(schur.T, lower=1, overwrite_a=1)
            if failed:
                raise np.linalg.LinAlgError("not positive definite")
            self.logdet += 2.0 * float(np.log(np.diag(self.l22)).sum())

    def solve(self, r: Array) -> Array:
        """H^-1 r for r of shape (q,) or (q, c)."""
        if r.ndim == 1:
            return self.solve(r[:, None])[:, 0]
        q1, q2, c = self.layout.q1, self.layout.q2, r.shape[1]
        first, rest = r[:q1].reshape(self.layout.m1, self.layout.k1, c), r[q1:]
        inv = self.inverse_l11
        transposed = inv if self.layout.k1 == 1 else np.swapaxes(inv, 1, 2)
        x1 = _each(transposed, _each(inv, first))
        if q2:
            h12 = self.h12.reshape(-1, q2)
            rest = linalg.lapack.dpotrs(self.l22, rest - h12.T @ x1.reshape(-1, c), lower=1)[0]
            x1 = _each(transposed, _each(inv, first - (h12 @ rest).reshape(first.shape)))
        return np.concatenate([x1.reshape(q1, c), rest])

    def invert(self) -> Inverse:
        """Blocks of H^-1 that gradients need."""
        inv, q2 = self.inverse_l11, self.layout.q2
        p11 = inv * inv if self.layout.k1 == 1 else np.swapaxes(inv, 1, 2) @ inv
        if not q2:
            return Inverse(self, (p11,))
        lower, _ = linalg.lapack.dpotri(self.l22, lower=1)
        # Above the diagonal are the factor's zeros.
        p22 = lower + lower.T
        p22.flat[:: q2 + 1] /= 2.0
        e = _each(p11, self.h12)
        p12 = -(e.reshape(-1, q2) @ p22)
        views = [self.layout.view(p22 if pair.f else p12, pair) for pair in self.layout.pairs[1:]]
        first = p11 - _squares(p12.reshape(e.shape), e)
        return Inverse(self, (first, *(view.reshape(-1, *view.shape[-2:]) for view in views)))


@dataclass(frozen=True)
class Inverse:
    """Blocks of P = H^-1: per pair of factors (cells, k_f, k_g)."""

    of: Factor
    blocks: tuple[Array, ...]

    def trace_terms(self) -> list[Array]:
        """Per factor the (k, k) sum over levels of the diagonal blocks of A Lambda P: half of log|H| by Lambda's entries."""
        factor = self.of
        sums = [np.zeros_like(lam) for lam in factor.lambdas]
        for pair, a, p in zip(factor.layout.pairs, factor.a.blocks, self.blocks, strict=True):
            products = (a.reshape(len(a), -1).T @ p.reshape(len(p), -1)).reshape(*a.shape[1:], *p.shape[1:])
            sums[pair.f] += np.einsum("ijkl,jl->ik", products, factor.lambdas[pair.g])
            if pair.f != pair.g:
                sums[pair.g] += np.einsum("lijk,lj->ik", products, factor.lambdas[pair.f])
        return sums

    def leverages(self) -> Array:
        """Row by row z' Lambda P Lambda' z, shape (n,)."""
        layout, lambdas = self.of.layout, self.of.lambdas
        total = np.zeros(layout.n)
        for pair, p in zip(layout.pairs, self.blocks, strict=True):
            kronecker = _kronecker(lambdas[pair.f], lambdas[pair.g])
            scaled = (p.reshape(len(p), -1) @ kronecker.T).reshape(p.shape)
            for i, j in pair.entries():
                table = scaled[:, i, j] * (1.0 if pair.f == pair.g and i == j else 2.0)
                total[pair.together] += pair.weighted(table[pair.cell], i, j)
        return total


SMALL = 50_000
"""Pairs of random effects that dense blocks hold at once without a thought."""
LARGEST = 1e8
"""Pairs of random effects that dense blocks hold at most; 0.8 GB in each of a few arrays."""
GATHERED = 30.0
"""Cost of a product of gathered numbers in products of dense matrices."""
MUCH = 3_000
"""Columns left at the end from which another order of the factors is tried."""

Met = tuple[int, int, Rows, Index, Index, Index]
"""Two factors, the rows in which both have columns, the cell of each of these rows, and the cells' levels of either."""


@dataclass(frozen=True)
class SparsePair(LevelPair):
    """A pair that has few of its possible cells."""

    # (cells,) and (m_f + 1,): level of g in each cell, sorted by level of f, then of g; where each level of f begins
    sparse_form: tuple[Indices, Indices]
    places: Index  # (cells, k_f, k_g): where the cell's entries of H are stored


class CellLayout(EffectsLayout):
    """Products with Z where levels meet sparsely."""

    pairs: tuple[SparsePair, ...]

    def __init__(self, factors: Sequence[RandomEffectsBlock]) -> None:
        super().__init__(factors)
        meetings = []
        columns_met = np.zeros(len(self.factors))
        has_columns = [np.asarray(f.columns.any(axis=1)) for f in self.factors]
        for f, factor in enumerate(self.factors):
            for g in range(f, len(self.factors)):
                other = self.factors[g]
                in_both = np.asarray(has_columns[f] & has_columns[g])
                together: Rows = slice(None) if in_both.all() else np.flatnonzero(in_both)
                keys, cell = (
                    (np.arange(factor.n_levels) * (factor.n_levels + 1), factor.codes[together])
                    if f == g
                    else _cells(factor, other, together)
                )
                meetings.append((f, g, together, cell, *np.divmod(keys, other.n_levels)))
                if f != g:
                    columns_met[f] += len(keys) * other.width / factor.n_levels
                    columns_met[g] += len(keys) * factor.width / other.n_levels
        # whose levels meet fewest columns goes first; of two factors that is the one with most columns
        self.order, self.structure, self.pairs = _best(
            self.factors, meetings, np.argsort(columns_met, kind="stable").tolist()
        )
        effects = np.arange(self.q)
        self.permutation = np.concatenate([effects[self.slices[f]] for f in self.order])

    def cross(self, pair: LevelPair, block: Array, array: Array, other: Array) -> tuple[Array, Array]:
        """Multiply the sparse matrix of two factors and (m_g k_g, c), and its transpose and (m_f k_f, c)."""
        assert isinstance(pair, SparsePair)
        shape, levels = (len(array), len(other)), self.factors[pair.g].n_levels
        matrix = sparse.bsr_array((block, *pair.sparse_form), shape=shape, blocksize=block.shape[1:])
        return matrix @ other, transposed_times(block, *pair.sparse_form, levels, array)

    def factor(self, a: Products, lambdas: Sequence[Array]) -> Factor:
        """Factor H = Lambda' A Lambda + I for A = Z' W Z, as ``products`` gave it."""
        return CellCholesky(self, a, lambdas)


class _Placed(NamedTuple):
    """Factors in the order in which they are eliminated, how H is factored then, and where its cells lie."""

    order: list[int]
    structure: Structure
    pairs: tuple[SparsePair, ...]


def _best(factors: Sequence[RandomEffectsBlock], meetings: Sequence[Met], order: list[int]) -> _Placed:
    """Place in an order, or where much is left at the end once the largest factor of it is eliminated too, if that is less."""
    try:
        usual = _placed(factors, meetings, order)
    except TooLarge as fault:
        reordered = _turned(factors, meetings, order, fault.eliminated)
        if reordered == order:
            raise
        return _placed(factors, meetings, reordered)
    if usual.structure.full_order < MUCH:
        return usual
    reordered = _turned(factors, meetings, order, usual.structure.eliminated)
    if reordered == order:
        return usual
    try:
        alternative = _placed(factors, meetings, reordered)
    except TooLarge:
        return usual
    return min(usual, alternative, key=lambda placed: placed.structure.work)


def _placed(factors: Sequence[RandomEffectsBlock], meetings: Sequence[Met], order: list[int]) -> _Placed:
    """Plan how H is factored in an order of the factors."""
    sizes = np.array([f.n_levels * f.width for f in factors])
    offsets = np.empty(len(sizes), dtype=np.intp)
    offsets[order] = np.cumsum(sizes[order]) - sizes[order]
    places = []
    for f, g, _, _, rows, columns in meetings:
        first_width, second_width = factors[f].width, factors[g].width
        down = offsets[f] + rows[:, None, None] * first_width + np.arange(first_width)[:, None]
        across = offsets[g] + columns[:, None, None] * second_width + np.arange(second_width)
        places.append(np.broadcast_arrays(down, across))
    structure = plan(
        [(factors[f].n_levels, factors[f].width) for f in order],
        np.concatenate([down.ravel() for down, _ in places]),
        np.concatenate([across.ravel() for _, across in places]),
    )
    pairs = []
    for (f, g, together, cell, rows, columns), (down, across) in zip(meetings, places, strict=True):
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=factors[f].n_levels))])
        located = structure.locate(down.ravel(), across.ravel()).reshape(down.shape)
        first, second = (_columns(factors[index], together) for index in (f, g))
        form = for_scipy(columns), for_scipy(starts)
        pairs.append(SparsePair(f, g, len(rows), together, cell, first, second, form, located))
    return _Placed(order, structure, tuple(pairs))


def _turned(
    factors: Sequence[RandomEffectsBlock], meetings: Sequence[Met], order: list[int], eliminated: int
) -> list[int]:
    """Put the largest factor of those that are left at the end before the first one of which it meets several levels."""
    remaining = order[eliminated:]
    if not remaining:
        return order
    largest = max(remaining, key=lambda f: factors[f].n_levels * factors[f].width)
    level_count = factors[largest].n_levels
    crossed = {
        f + g - largest
        for f, g, _, _, rows, _ in meetings
        if largest in (f, g) and f != g and len(rows) > level_count
    }
    others = [f for f in order if f != largest]
    position = next((i for i, f in enumerate(others) if f in crossed), len(others))
    return [*others[:position], largest, *others[position:]]


def _cells(block: RandomEffectsBlock, other: RandomEffectsBlock, together: Rows) -> tuple[Index, Index]:
    """Cells of two factors, and the cell of each row in which both have columns; one of zeros if they are never together."""
    keys = block.codes[together] * other.n_levels + other.codes[together]
    if not len(keys):
        return np.zeros(1, dtype=np.intp), keys
    return np.unique(keys, return_inverse=True)


class CellCholesky:
    """The factor of H at given Lambda, by ``elimination``."""

    def __init__(self, layout: CellLayout, a: Products, lambdas: Sequence[Array]) -> None:
        self.layout, self.a, self.lambdas = layout, a, lambdas
        values = np.zeros(layout.structure.size)
        for pair, block in zip(layout.pairs, a.penalised(lambdas), strict=True):
            values[pair.places] = block
        self.factored: Factored = layout.structure.factor(values)
        self.logdet = self.factored.logdet

    def solve(self, r: Array) -> Array:
        """H^-1 r for r of shape (q,) or (q, c)."""
        if r.ndim == 1:
            return self.solve(r[:, None])[:, 0]
        x = np.empty(r.shape)
        x[self.layout.permutation] = self.factored.solve(r[self.layout.permutation])
        return x

    def invert(self) -> Inverse:
        """Blocks of H^-1 that gradients need."""
        values = np.empty(self.layout.structure.size)
        self.factored.inverse(values)
        return Inverse(self, tuple(values[pair.places] for pair in self.layout.pairs))


def make_layout(factors: Sequence[RandomEffectsBlock]) -> EffectsLayout:
    """Choose dense blocks or cells, whichever is less work."""
    first = factors[0]
    q1, q2 = first.n_levels * first.width, sum(f.n_levels * f.width for f in factors[1:])
    if q1 * q2 < SMALL:
        return EffectsLayout(factors)
    columns_met = np.zeros(first.n_levels)
    for f in factors[1:]:
        in_both = first.columns.any(axis=1) & f.columns.any(axis=1)
        cells = distinct((first.codes * f.n_levels + f.codes)[in_both])
        columns_met += f.width * np.bincount(cells // f.n_levels, minlength=first.n_levels)
    full = q1 * float(q2) ** 2
    present = first.width * float(columns_met @ columns_met)
    if present * GATHERED > full and q1 * q2 <= LARGEST:
        return EffectsLayout(factors)
    try:
        return CellLayout(factors)
    except TooLarge as fault:
        sizes = " and ".join(str(f.n_levels * f.width) for f in factors)
        raise UserError(
            f"the grouping factors have {sizes} random effects; without the first, {fault.order} of them meet one another, "
            f"whose products would fill {8e-9 * fault.order**2:.0f} GB",
            mend="Drop the term with most levels after the first, or fit a subset of the rows.",
            exit_code=1,
        ) from fault


Factor = PenalisedCholesky | CellCholesky
