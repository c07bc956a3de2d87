"""The same penalised least squares as ``blocks`` where most levels of two factors never meet: only the cells that occur.

For each pair of grouping factors, Z' W Z is kept as one small block per pair of levels that occurs in the rows, so memory
grows with the rows and not with the product of levels. ``elimination`` factors H; everything else reads as in ``blocks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stimuli.errors import UserError

from .blocks import Blocks, Effects, Factor, Layout, Vector
from .elimination import Factored, Indices, Structure, TooLarge, distinct, for_scipy, plan, transposed_times

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SMALL = 50_000
"""Pairs of random effects that dense blocks hold at once without a thought."""
LARGEST = 1e8
"""Pairs of random effects that dense blocks hold at most; 0.8 GB in each of a few arrays."""
GATHERED = 30.0
"""Cost of a product of gathered numbers in products of dense matrices."""


MUCH = 3_000
"""Columns left at the end from which another order of the factors is tried."""

Rows = slice | Index
Met = tuple[int, int, Rows, Index, Index, Index]
"""Two factors, the rows in which both have columns, the cell of each of these rows, and the cells' levels of either."""


@dataclass(frozen=True)
class Pair:
    """Levels of factors f <= g that meet."""

    f: int  # f, g: the factors
    g: int
    # (r,): the rows in which both have columns that are not all zero; the others add nothing to any cell
    together: Rows
    cell: Index  # (r,): cell of each of these rows
    # (cells,) and (m_f + 1,): level of g in each cell, sorted by the level of f, then that of g; where
    # each level of f begins
    sparse_form: tuple[Indices, Indices]
    places: Index  # (cells, k_f, k_g): where the cell's entries of H are stored
    # one, other: (r,): columns of f and of g in these rows; None for one that is 1 in all of them
    one: tuple[Array | None, ...]
    other: tuple[Array | None, ...]

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
class CellProducts:
    """Z' W Z: per pair of factors the blocks (cells, k_f, k_g)."""

    layout: CellLayout
    blocks: tuple[Array, ...]

    def times(self, b: Vector) -> Vector:
        """Z' W Z b for b of shapes (m1, k1, c) and (q2, c)."""
        layout = self.layout
        parts = layout.parts(b)
        sums = [np.zeros_like(p) for p in parts]
        for pair, block in zip(layout.pairs, self.blocks, strict=True):
            matrix = layout.matrix(pair, block)
            sums[pair.f] += matrix @ parts[pair.g]
            if pair.f != pair.g:
                many = layout.factors[pair.g].n_levels
                sums[pair.g] += transposed_times(block, *pair.sparse_form, many, parts[pair.f])
        return layout.vector(sums, b)


class CellLayout(Layout):
    """Products with Z where levels meet sparsely."""

    def __init__(self, factors: Sequence[Effects]) -> None:
        super().__init__(factors)
        self.ends = np.cumsum([f.n_levels * f.width for f in self.factors])
        met = []
        meets = np.zeros(len(self.factors))
        there = [np.asarray(f.columns.any(axis=1)) for f in self.factors]
        for f, one in enumerate(self.factors):
            for g in range(f, len(self.factors)):
                other = self.factors[g]
                both = np.asarray(there[f] & there[g])
                together: Rows = slice(None) if both.all() else np.flatnonzero(both)
                keys, cell = (
                    (np.arange(one.n_levels) * (one.n_levels + 1), one.codes[together])
                    if f == g
                    else _cells(one, other, together)
                )
                met.append((f, g, together, cell, *np.divmod(keys, other.n_levels)))
                if f != g:
                    meets[f] += len(keys) * other.width / one.n_levels
                    meets[g] += len(keys) * one.width / other.n_levels
        # whose levels meet fewest columns goes first; of two factors that is the one with most columns
        placed = _best(self.factors, met, np.argsort(meets, kind="stable").tolist())
        self.order, self.structure, self.pairs = placed.order, placed.structure, placed.pairs

    def parts(self, b: Vector) -> list[Array]:
        """Cut a vector over all effects into its factors', shapes (m k, c)."""
        c = b.first.shape[-1]
        return [b.first.reshape(-1, c), *np.split(b.rest, self.ends[:-1] - self.ends[0])[1:]]

    def vector(self, parts: Sequence[Array], like: Vector) -> Vector:
        """Put the factors' parts together again."""
        return Vector(
            parts[0].reshape(like.first.shape), np.concatenate([np.zeros_like(like.rest[:0]), *parts[1:]])
        )

    def matrix(self, pair: Pair, block: Array) -> sparse.bsr_array:
        """Lay a pair's blocks out as a sparse matrix of shape (m_f k_f, m_g k_g)."""
        one, other = self.factors[pair.f], self.factors[pair.g]
        shape = (one.n_levels * one.width, other.n_levels * other.width)
        return sparse.bsr_array((block, *pair.sparse_form), shape=shape, blocksize=block.shape[1:])

    def products(self, w: Array) -> Blocks:
        """Form Z' W Z for weights of shape (n,)."""
        blocks = []
        for pair in self.pairs:
            own = w[pair.together]
            block: Array = np.empty(pair.places.shape)
            for i, j in pair.entries():
                block[:, i, j] = np.bincount(pair.cell, pair.weighted(own, i, j), len(block))
                if pair.f == pair.g:
                    block[:, j, i] = block[:, i, j]
            blocks.append(block)
        return CellProducts(self, tuple(blocks))

    def factor(self, a: Blocks, lambdas: Sequence[Array]) -> Factor:
        """Factor H = Lambda' A Lambda + I for A = Z' W Z, as ``products`` gave it."""
        assert isinstance(a, CellProducts)
        return CellCholesky(self, a, lambdas)


@dataclass(frozen=True)
class _Placed:
    """Factors in the order in which they are eliminated, how H is factored then, and where its cells lie."""

    order: list[int]
    structure: Structure
    pairs: tuple[Pair, ...]


def _best(factors: Sequence[Effects], met: Sequence[Met], order: list[int]) -> _Placed:
    """Place in an order, or where much is left at the end once the largest factor of it is eliminated too, if that is less."""
    try:
        usual = _placed(factors, met, order)
    except TooLarge as fault:
        turned = _turned(factors, met, order, fault.eliminated)
        if turned == order:
            raise
        return _placed(factors, met, turned)
    if usual.structure.full_order < MUCH:
        return usual
    turned = _turned(factors, met, order, usual.structure.eliminated)
    if turned == order:
        return usual
    try:
        other = _placed(factors, met, turned)
    except TooLarge:
        return usual
    return min(usual, other, key=lambda one: one.structure.work)


def _placed(factors: Sequence[Effects], met: Sequence[Met], order: list[int]) -> _Placed:
    """Plan how H is factored in an order of the factors."""
    sizes = np.array([f.n_levels * f.width for f in factors])
    begins = np.empty(len(sizes), dtype=np.intp)
    begins[order] = np.cumsum(sizes[order]) - sizes[order]
    places = [_entries(factors, begins, pair) for pair in met]
    structure = plan(
        [(factors[f].n_levels, factors[f].width) for f in order],
        np.concatenate([down.ravel() for down, _ in places]),
        np.concatenate([across.ravel() for _, across in places]),
    )
    pairs = []
    for (f, g, together, cell, rows, columns), (down, across) in zip(met, places, strict=True):
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=factors[f].n_levels))])
        located = structure.locate(down.ravel(), across.ravel()).reshape(down.shape)
        one, other = (_columns(factors[each], together) for each in (f, g))
        form = for_scipy(columns), for_scipy(starts)
        pairs.append(Pair(f, g, together, cell, form, located, one, other))
    return _Placed(order, structure, tuple(pairs))


def _entries(factors: Sequence[Effects], begins: Index, met: Met) -> tuple[Index, Index]:
    """Return where the cells of two factors lie in H: rows and columns, shapes (cells, k_f, k_g)."""
    f, g, _, _, rows, columns = met
    one, other = factors[f].width, factors[g].width
    shape = (len(rows), one, other)
    down = begins[f] + rows[:, None] * one + np.arange(one)
    across = begins[g] + columns[:, None] * other + np.arange(other)
    return np.broadcast_to(down[:, :, None], shape), np.broadcast_to(across[:, None, :], shape)


def _turned(factors: Sequence[Effects], met: Sequence[Met], order: list[int], eliminated: int) -> list[int]:
    """Put the largest factor of those that are left at the end before the first one of which it meets several levels."""
    left = order[eliminated:]
    if not left:
        return order
    largest = max(left, key=lambda f: factors[f].n_levels * factors[f].width)
    many = factors[largest].n_levels
    crossed = {
        f + g - largest for f, g, _, _, rows, _ in met if largest in (f, g) and f != g and len(rows) > many
    }
    others = [f for f in order if f != largest]
    place = next((i for i, f in enumerate(others) if f in crossed), len(others))
    return [*others[:place], largest, *others[place:]]


def _cells(one: Effects, other: Effects, together: Rows) -> tuple[Index, Index]:
    """Cells of two factors, and the cell of each row in which both have columns.

    A term that is confined to some rows (``0 + model | session``) makes none in the others. Factors that are never together have
    one cell, of zeros.
    """
    keys = one.codes[together] * other.n_levels + other.codes[together]
    if not len(keys):
        return np.zeros(1, dtype=np.intp), keys
    return np.unique(keys, return_inverse=True)


def _columns(of: Effects, rows: Rows) -> tuple[Array | None, ...]:
    """Columns of a factor in some rows, shapes (r,); None for one that is 1 in all of them."""
    found = [np.ascontiguousarray(of.columns[rows, i]) for i in range(of.width)]
    return tuple(None if (one == 1.0).all() else one for one in found)


class CellCholesky:
    """The factor of H = Lambda' A Lambda + I at given Lambda; see ``blocks.PenalisedCholesky``."""

    def __init__(self, layout: CellLayout, a: CellProducts, lambdas: Sequence[Array]) -> None:
        self.layout, self.a, self.lambdas = layout, a, lambdas
        values = np.zeros(layout.structure.size)
        for pair, block in zip(layout.pairs, a.blocks, strict=True):
            scaled = lambdas[pair.f].T @ block @ lambdas[pair.g]
            if pair.f == pair.g:
                scaled = scaled + np.eye(len(lambdas[pair.f]))
            values[pair.places] = scaled
        self.factored: Factored = layout.structure.factor(values)
        self.logdet = self.factored.logdet

    def solve(self, r: Vector) -> Vector:
        """H^-1 r; r has shapes (m1, k1, c) and (q2, c), or without the last axis."""
        flat = r.first.ndim == 2
        whole = Vector(r.first[..., None], r.rest[..., None]) if flat else r
        layout = self.layout
        parts = layout.parts(whole)
        x = self.factored.solve(np.concatenate([parts[f] for f in layout.order]))
        ends = np.cumsum([len(parts[f]) for f in layout.order])
        solved = dict(zip(layout.order, np.split(x, ends[:-1]), strict=True))
        found = layout.vector([solved[f] for f in range(len(parts))], whole)
        return Vector(found.first[..., 0], found.rest[..., 0]) if flat else found

    def invert(self) -> CellInverse:
        """Blocks of H^-1 that gradients need."""
        values = np.empty(self.layout.structure.size)
        self.factored.inverse(values)
        return CellInverse(self, tuple(values[pair.places] for pair in self.layout.pairs))


@dataclass(frozen=True)
class CellInverse:
    """Blocks of P = H^-1: per pair of factors (cells, k_f, k_g)."""

    of: CellCholesky
    blocks: tuple[Array, ...]

    def trace_terms(self) -> list[Array]:
        """Per factor the (k, k) sum over levels of the diagonal blocks of A Lambda P."""
        of = self.of
        sums = [np.zeros_like(lam) for lam in of.lambdas]
        for pair, a, p in zip(of.layout.pairs, of.a.blocks, self.blocks, strict=True):
            sums[pair.f] += np.einsum("cij,ckj->ik", a @ of.lambdas[pair.g], p, optimize=True)
            if pair.f != pair.g:
                sums[pair.g] += np.einsum("cji,cjk->ik", of.lambdas[pair.f].T @ a, p, optimize=True)
        return sums

    def leverages(self) -> Array:
        """Row by row z' Lambda P Lambda' z, shape (n,)."""
        of, layout = self.of, self.of.layout
        total = np.zeros(layout.n)
        for pair, p in zip(layout.pairs, self.blocks, strict=True):
            scaled = of.lambdas[pair.f] @ p @ of.lambdas[pair.g].T
            for i, j in pair.entries():
                once = pair.f == pair.g and i == j
                table = scaled[:, i, j] * (1.0 if once else 2.0)
                total[pair.together] += pair.weighted(table[pair.cell], i, j)
        return total


def make_layout(factors: Sequence[Effects]) -> Layout:
    """Choose dense blocks or cells, whichever is less work."""
    one = factors[0]
    q1, q2 = one.n_levels * one.width, sum(f.n_levels * f.width for f in factors[1:])
    if q1 * q2 < SMALL:
        return Layout(factors)
    met = np.zeros(one.n_levels)
    for f in factors[1:]:
        both = one.columns.any(axis=1) & f.columns.any(axis=1)
        cells = distinct((one.codes * f.n_levels + f.codes)[both])
        met += f.width * np.bincount(cells // f.n_levels, minlength=one.n_levels)
    full = q1 * float(q2) ** 2
    present = one.width * float(met @ met)
    if present * GATHERED > full and q1 * q2 <= LARGEST:
        return Layout(factors)
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
