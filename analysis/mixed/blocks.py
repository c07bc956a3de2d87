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
from itertools import pairwise

import numpy as np
from scipy import linalg, sparse

from analysis.arrays import Array, Index
from stimuli.errors import UserError

from .elimination import Factored, Indices, Structure, TooLarge, distinct, for_scipy, plan, transposed_times


@dataclass(frozen=True)
class Effects:
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


@dataclass(frozen=True)
class Products:
    """Z' W Z in blocks: ``a11`` (m1, k1, k1), ``a12`` (m1, k1, q2), ``a22`` (q2, q2)."""

    a11: Array
    a12: Array
    a22: Array

    def times(self, b: Array) -> Array:
        """Z' W Z b for b of shape (q, c)."""
        m1, k1, q2 = self.a12.shape
        first, rest = np.split(b, [m1 * k1])
        flat = self.a12.reshape(m1 * k1, q2)
        own = (self.a11 @ first.reshape(m1, k1, -1)).reshape(first.shape)
        return np.concatenate([own + flat @ rest, flat.T @ first + self.a22 @ rest])


class Layout:
    """Where each grouping factor's effects lie, and products with the sparse Z that never form it."""

    def __init__(self, factors: Sequence[Effects]) -> None:
        self.factors = tuple(factors)
        self.n = len(self.factors[0].codes)
        self.m1, self.k1 = self.factors[0].n_levels, self.factors[0].width
        ends = np.cumsum([f.n_levels * f.width for f in self.factors]).tolist()
        self.slices = [slice(*pair) for pair in pairwise([0, *ends])]
        self.q, self.q1, self.q2 = ends[-1], ends[0], ends[-1] - ends[0]

    def part(self, b: Array, f: int, skipped: int = 0) -> Array:
        """View the part of a (q, …) array, without its first rows that are skipped, of a factor as (m, k, …)."""
        at, factor = self.slices[f], self.factors[f]
        own = b[at.start - skipped : at.stop - skipped]
        return own.reshape(factor.n_levels, factor.width, *b.shape[1:])

    def _slot(self, f: int, k: int, skipped: int = 0) -> slice:
        """Places of a factor's column k at all levels."""
        at = self.slices[f]
        return slice(at.start + k - skipped, at.stop - skipped, self.factors[f].width)

    def products(self, w: Array) -> Blocks:
        """Form Z' W Z for weights of shape (n,)."""
        one = self.factors[0]
        a11 = np.empty((self.m1, self.k1, self.k1))
        a12 = np.empty((self.m1, self.k1, self.q2))
        a22 = np.zeros((self.q2, self.q2))
        for i in range(self.k1):
            wi = w * one.columns[:, i]
            for j in range(i, self.k1):
                a11[:, i, j] = a11[:, j, i] = np.bincount(one.codes, wi * one.columns[:, j], self.m1)
            for b, f in enumerate(self.factors[1:], start=1):
                for j in range(f.width):
                    a12[:, i, self._slot(b, j, self.q1)] = _sums(one, f, wi * f.columns[:, j])
        for b, f in enumerate(self.factors[1:], start=1):
            for c, g in enumerate(self.factors[b:], start=b):
                for i, j in np.ndindex(f.width, g.width):
                    v = w * f.columns[:, i] * g.columns[:, j]
                    sums = np.diag(np.bincount(f.codes, v, f.n_levels)) if b == c else _sums(f, g, v)
                    down, across = self._slot(b, i, self.q1), self._slot(c, j, self.q1)
                    a22[down, across], a22[across, down] = sums, sums.T
        return Products(a11, a12, a22)

    def factor(self, a: Blocks, lambdas: Sequence[Array]) -> Factor:
        """Factor H = Lambda' A Lambda + I for A = Z' W Z, as ``products`` gave it."""
        assert isinstance(a, Products)
        return PenalisedCholesky(self, a, lambdas)

    def transpose_times(self, v: Array, groups: Index | None = None, many: int = 1) -> Array:
        """Z' v for v of shape (n,), or Z' diag(v) G with G (n, many) 1 in the column of each row's group and 0 elsewhere."""
        result = np.empty((self.q, many))
        for i, f in enumerate(self.factors):
            codes = f.codes if groups is None else f.codes * many + groups
            for j in range(f.width):
                sums = np.bincount(codes, v * f.columns[:, j], f.n_levels * many)
                result[self._slot(i, j)] = sums.reshape(-1, many)
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

    def scale_right(self, array: Array, lambdas: Sequence[Array]) -> Array:
        """Multiply the last axis (q2) of an array by the block-diagonal Lambda of the other factors."""
        result = np.empty(array.shape)
        for f, at, lam in zip(self.factors[1:], self.slices[1:], lambdas[1:], strict=True):
            part = slice(at.start - self.q1, at.stop - self.q1)
            if f.width == 1:
                np.multiply(array[..., part], lam[0, 0], out=result[..., part])
                continue
            shaped = array[..., part].reshape(*array.shape[:-1], f.n_levels, f.width)
            result[..., part] = (shaped @ lam).reshape(*array.shape[:-1], -1)
        return result

    def moved(
        self, entries: Sequence[tuple[int, int, int]], lambdas: Sequence[Array], u: Array, v: Array
    ) -> Array:
        """Per entry (factor, i, j) of Lambda, with D its derivative, D u + Lambda D' v; shape (q, e)."""
        result = np.zeros((self.q, len(entries)))
        for at, (b, i, j) in enumerate(entries):
            to, from_u, from_v = self.part(result, b)[..., at], self.part(u, b), self.part(v, b)
            to[:, i] += from_u[:, j]
            to += np.multiply.outer(from_v[:, i], lambdas[b][:, j])
        return result

    def outer(self, s: Array, t: Array) -> list[Array]:
        """Sum over levels of s t' within each factor; one (k, k) array per factor, trailing axes contracted."""
        return [_outer(self.part(s, f), self.part(t, f)) for f in range(len(self.factors))]


def _sums(one: Effects, other: Effects, v: Array) -> Array:
    """Sum v (n,) over the rows in which levels of two factors meet, shape (m, m')."""
    flat = np.bincount(one.codes * other.n_levels + other.codes, v, one.n_levels * other.n_levels)
    return np.asarray(flat.reshape(one.n_levels, other.n_levels), dtype=float)


def _left(matrix: Array, array: Array) -> Array:
    """Multiply axis 1 of a (m, k) or (m, k, c) array by a (k, k) matrix."""
    if matrix.shape == (1, 1):
        return np.asarray(array * matrix[0, 0])
    return np.asarray(array @ matrix.T if array.ndim == 2 else matrix @ array)


def _each(blocks: Array, array: Array) -> Array:
    """Multiply (m, k, k) blocks and a (m, k, c) array level by level; the loop over many blocks of one number is slow."""
    return np.asarray(blocks * array if blocks.shape[-1] == 1 else blocks @ array)


def _squares(a: Array, b: Array) -> Array:
    """Multiply (m, k, c) by the transpose of (m, k, c) level by level, shape (m, k, k)."""
    if a.shape[1] == 1:
        return np.asarray(np.einsum("mkc,mkc->mk", a, b)[..., None])
    return np.asarray(a @ np.swapaxes(b, 1, 2))


def _outer(s: Array, t: Array) -> Array:
    if s.shape[1] == 1:
        axes = "mijk"[: s.ndim]
        return np.asarray(np.einsum(f"{axes},{axes}->", s, t)).reshape(1, 1)
    a = s.swapaxes(0, 1).reshape(s.shape[1], -1)
    b = t.swapaxes(0, 1).reshape(t.shape[1], -1)
    return np.asarray(a @ b.T)


class PenalisedCholesky:
    """The factor of H = Lambda' A Lambda + I at given Lambda."""

    def __init__(self, layout: Layout, a: Products, lambdas: Sequence[Array]) -> None:
        self.layout, self.a, self.lambdas = layout, a, lambdas
        l1 = lambdas[0]
        h11 = a.a11 * l1[0, 0] ** 2 if layout.k1 == 1 else l1.T @ a.a11 @ l1
        h11 += np.eye(layout.k1)
        # LAPACK's loop over many blocks of one number is slow.
        l11 = np.linalg.cholesky(h11) if layout.k1 > 1 else np.sqrt(h11)
        self.inverse_l11: Array = np.asarray(np.linalg.inv(l11) if layout.k1 > 1 else 1.0 / l11, dtype=float)
        self.logdet = 2.0 * float(np.log(np.einsum("mkk->mk", l11)).sum())
        # a12 Lambda2 serves again in the trace terms of the gradient.
        self.a12_scaled = layout.scale_right(a.a12, lambdas)
        self.h12 = _left(l1.T, self.a12_scaled)
        if layout.q2:
            c = _each(self.inverse_l11, self.h12).reshape(-1, layout.q2)
            self.a22_scaled = layout.scale_right(a.a22, lambdas)
            schur = layout.scale_right(self.a22_scaled.T, lambdas) - c.T @ c
            schur.flat[:: layout.q2 + 1] += 1.0
            # The symmetric matrix by columns is itself by rows, which spares LAPACK a copy.
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
        back = inv if self.layout.k1 == 1 else np.swapaxes(inv, 1, 2)
        x1 = _each(back, _each(inv, first))
        if q2:
            h12 = self.h12.reshape(-1, q2)
            rest = linalg.lapack.dpotrs(self.l22, rest - h12.T @ x1.reshape(-1, c), lower=1)[0]
            x1 = _each(back, _each(inv, first - (h12 @ rest).reshape(first.shape)))
        return np.concatenate([x1.reshape(q1, c), rest])

    def invert(self) -> InverseBlocks:
        """Blocks of H^-1 that gradients need."""
        inv = self.inverse_l11
        p11 = inv * inv if self.layout.k1 == 1 else np.swapaxes(inv, 1, 2) @ inv
        q2 = self.layout.q2
        if not q2:
            return InverseBlocks(self, p11, np.zeros_like(self.h12), np.zeros((0, 0)))
        lower, _ = linalg.lapack.dpotri(self.l22, lower=1)
        # Above the diagonal are the factor's zeros.
        p22 = lower + lower.T
        p22.flat[:: q2 + 1] /= 2.0
        e = _each(p11, self.h12)
        p12 = -(e.reshape(-1, q2) @ p22).reshape(e.shape)
        return InverseBlocks(self, p11 - _squares(p12, e), p12, p22)


@dataclass(frozen=True)
class InverseBlocks:
    """Blocks of P = H^-1: ``p11`` (m1, k1, k1) diagonal blocks, ``p12`` (m1, k1, q2), ``p22`` (q2, q2)."""

    of: PenalisedCholesky
    p11: Array
    p12: Array
    p22: Array

    def trace_terms(self) -> list[Array]:
        """Per factor the (k, k) sum over levels of the diagonal blocks of A Lambda P: half of log|H| by Lambda's entries."""
        of, layout = self.of, self.of.layout
        if layout.k1 == 1:
            first = _outer(of.a.a11, self.p11) * of.lambdas[0]
        else:
            first = np.einsum("mik,mkj->ij", of.a.a11 @ of.lambdas[0], self.p11)
        if not layout.q2:
            return [first]
        first = first + _outer(of.a12_scaled, self.p12)
        # Row (l, k) of A21 Lambda1, laid beside P12: contract over the first factor's effects.
        a21 = _left(of.lambdas[0].T, of.a.a12).reshape(-1, layout.q2).T
        p21 = self.p12.reshape(-1, layout.q2).T
        sums = [first]
        for b in range(1, len(layout.factors)):
            sums.append(
                _outer(layout.part(a21, b, layout.q1), layout.part(p21, b, layout.q1))
                + _outer(layout.part(of.a22_scaled, b, layout.q1), layout.part(self.p22, b, layout.q1))
            )
        return sums

    def leverages(self) -> Array:
        """Row by row z' Lambda P Lambda' z, shape (n,)."""
        layout, lambdas = self.of.layout, self.of.lambdas
        rows = [f.columns @ lam for f, lam in zip(layout.factors, lambdas, strict=True)]
        one = layout.factors[0]
        total = np.einsum("ni,nij,nj->n", rows[0], self.p11[one.codes], rows[0], optimize=True)
        for b, f in enumerate(layout.factors[1:], start=1):
            own = layout.part(np.moveaxis(self.p12, 2, 0), b, layout.q1)[f.codes, :, one.codes]
            total += 2.0 * np.einsum("nj,nji,ni->n", rows[b], own, rows[0], optimize=True)
            square = np.moveaxis(layout.part(self.p22, b, layout.q1), 2, 0)
            for c, g in enumerate(layout.factors[b:], start=b):
                own = layout.part(square, c, layout.q1)[g.codes, :, f.codes]
                twice = 1.0 if b == c else 2.0
                total += twice * np.einsum("nj,nji,ni->n", rows[c], own, rows[b], optimize=True)
        return np.asarray(total)


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

    def times(self, b: Array) -> Array:
        """Z' W Z b for b of shape (q, c)."""
        layout = self.layout
        parts = [b[at] for at in layout.slices]
        sums = [np.zeros_like(p) for p in parts]
        for pair, block in zip(layout.pairs, self.blocks, strict=True):
            matrix = layout.matrix(pair, block)
            sums[pair.f] += matrix @ parts[pair.g]
            if pair.f != pair.g:
                many = layout.factors[pair.g].n_levels
                sums[pair.g] += transposed_times(block, *pair.sparse_form, many, parts[pair.f])
        return np.concatenate(sums)


class CellLayout(Layout):
    """Products with Z where levels meet sparsely."""

    def __init__(self, factors: Sequence[Effects]) -> None:
        super().__init__(factors)
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
        every = np.arange(self.q)
        self.permutation = np.concatenate([every[self.slices[f]] for f in self.order])

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
    """Cells of two factors, and the cell of each row in which both have columns; one of zeros if they are never together."""
    keys = one.codes[together] * other.n_levels + other.codes[together]
    if not len(keys):
        return np.zeros(1, dtype=np.intp), keys
    return np.unique(keys, return_inverse=True)


def _columns(of: Effects, rows: Rows) -> tuple[Array | None, ...]:
    """Columns of a factor in some rows, shapes (r,); None for one that is 1 in all of them."""
    found = [np.ascontiguousarray(of.columns[rows, i]) for i in range(of.width)]
    return tuple(None if (one == 1.0).all() else one for one in found)


class CellCholesky:
    """The factor of H = Lambda' A Lambda + I at given Lambda; see ``PenalisedCholesky``."""

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

    def solve(self, r: Array) -> Array:
        """H^-1 r for r of shape (q,) or (q, c)."""
        if r.ndim == 1:
            return self.solve(r[:, None])[:, 0]
        x = np.empty(r.shape)
        x[self.layout.permutation] = self.factored.solve(r[self.layout.permutation])
        return x

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


Blocks = Products | CellProducts
Factor = PenalisedCholesky | CellCholesky
