"""Penalised least squares in blocks: the factor with most columns is block-diagonal, the others form one dense block.

With u the spherical random effects and Lambda the relative covariance factor, Bates et al. (2015, eq. 16 to 21) solve
systems in H = Lambda' Z' W Z Lambda + I. Sorted by grouping factor, H splits into H11 (one small block per level of the
largest factor), H12 and H22; eliminating the first leaves a dense Schur complement of modest size. That needs no sparse
library, and gives at once what the analytic gradients ask for: blocks of the inverse.

Shapes: n rows; the first factor has m1 levels and k1 columns; all others together q2 columns, level-major.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """The random-effects columns of one grouping factor, all its terms side by side."""

    codes: NDArray[np.intp]  # (n,): level of each row
    n_levels: int  # number of levels m
    columns: Array  # (n, k): raw design columns

    @property
    def width(self) -> int:
        """Columns per level, k."""
        return int(self.columns.shape[1])


@dataclass(frozen=True)
class Vector:
    """Something over all random effects: ``first`` (m1, k1, …) and ``rest`` (q2, …)."""

    first: Array
    rest: Array

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.first + other.first, self.rest + other.rest)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.first - other.first, self.rest - other.rest)

    def __mul__(self, scale: float) -> Vector:
        return Vector(self.first * scale, self.rest * scale)

    def combined(self, weights: Array) -> Vector:
        """Multiply the last axis by weights, (c,) or (c, d)."""
        m, k, c = self.first.shape
        first = self.first.reshape(m * k, c) @ weights
        return Vector(first.reshape(m, k, *weights.shape[1:]), self.rest @ weights)

    def dot(self, other: Vector) -> float:
        """Inner product over all effects."""
        return float(np.vdot(self.first, other.first) + np.vdot(self.rest, other.rest))


def gram(a: Vector, b: Vector) -> Array:
    """Multiply A' B over all effects, shape (c, d), for vectors with a last axis of c and of d."""
    c, d = a.first.shape[-1], b.first.shape[-1]
    return np.asarray(a.first.reshape(-1, c).T @ b.first.reshape(-1, d) + a.rest.T @ b.rest)


@dataclass(frozen=True)
class Products:
    """Z' W Z in blocks: ``a11`` (m1, k1, k1), ``a12`` (m1, k1, q2), ``a22`` (q2, q2)."""

    a11: Array
    a12: Array
    a22: Array

    def times(self, b: Vector) -> Vector:
        """Z' W Z b for b of shapes (m1, k1, c) and (q2, c)."""
        m1, k1, q2 = self.a12.shape
        first, c = self.a11 @ b.first, b.first.shape[-1]
        if not q2:
            return Vector(first, b.rest)
        flat = self.a12.reshape(m1 * k1, q2)
        first = first + (flat @ b.rest).reshape(m1, k1, c)
        return Vector(first, flat.T @ b.first.reshape(m1 * k1, c) + self.a22 @ b.rest)


class Blocks(Protocol):
    """Z' W Z, however it is kept."""

    def times(self, b: Vector) -> Vector:
        """Z' W Z b for b of shapes (m1, k1, c) and (q2, c)."""


class Inverse(Protocol):
    """H^-1 as far as gradients need it."""

    def trace_terms(self) -> list[Array]:
        """Per factor the (k, k) sum over levels of the diagonal blocks of A Lambda P."""

    def leverages(self) -> Array:
        """Row by row z' Lambda P Lambda' z, shape (n,)."""


class Factor(Protocol):
    """The factor of H = Lambda' A Lambda + I, however it is kept."""

    logdet: float

    def solve(self, r: Vector) -> Vector:
        """H^-1 r; r has shapes (m1, k1, c) and (q2, c), or without the last axis."""

    def invert(self) -> Inverse:
        """Blocks of H^-1."""


class Layout:
    """Where each grouping factor's effects lie, and products with the sparse Z that never form it."""

    def __init__(self, factors: Sequence[Effects]) -> None:
        self.factors = tuple(factors)
        self.n = len(self.factors[0].codes)
        self.m1, self.k1 = self.factors[0].n_levels, self.factors[0].width
        sizes = [f.n_levels * f.width for f in self.factors[1:]]
        self.offsets = [0, *np.cumsum(sizes, dtype=int).tolist()][: len(sizes)]
        self.q2 = sum(sizes)

    def block(self, array: Array, b: int) -> Array:
        """View the part of a (q2, …) array that belongs to factor b >= 1 as (m, k, …)."""
        f = self.factors[b]
        start = self.offsets[b - 1]
        return array[start : start + f.n_levels * f.width].reshape(f.n_levels, f.width, *array.shape[1:])

    def _slot(self, b: int, k: int) -> slice:
        f = self.factors[b]
        start = self.offsets[b - 1]
        return slice(start + k, start + f.n_levels * f.width, f.width)

    def zeros(self) -> Vector:
        """Return zeros over all effects."""
        return Vector(np.zeros((self.m1, self.k1)), np.zeros(self.q2))

    def products(self, w: Array) -> Blocks:
        """Form Z' W Z for weights of shape (n,)."""
        one = self.factors[0]
        a11 = np.empty((self.m1, self.k1, self.k1))
        a12 = np.empty((self.m1, self.k1, self.q2))
        a22 = np.zeros((self.q2, self.q2))
        for i in range(self.k1):
            wi = w * one.columns[:, i]
            for j in range(i, self.k1):
                a11[:, i, j] = np.bincount(one.codes, wi * one.columns[:, j], self.m1)
                a11[:, j, i] = a11[:, i, j]
            for b in range(1, len(self.factors)):
                f = self.factors[b]
                flat = one.codes * f.n_levels + f.codes
                for j in range(f.width):
                    sums = np.bincount(flat, wi * f.columns[:, j], self.m1 * f.n_levels)
                    a12[:, i, self._slot(b, j)] = sums.reshape(self.m1, f.n_levels)
        for b in range(1, len(self.factors)):
            for c in range(b, len(self.factors)):
                self._pair(a22, w, b, c)
        return Products(a11, a12, a22)

    def factor(self, a: Blocks, lambdas: Sequence[Array]) -> Factor:
        """Factor H = Lambda' A Lambda + I for A = Z' W Z, as ``products`` gave it."""
        assert isinstance(a, Products)
        return PenalisedCholesky(self, a, lambdas)

    def _pair(self, a22: Array, w: Array, b: int, c: int) -> None:
        f, g = self.factors[b], self.factors[c]
        flat = f.codes * g.n_levels + g.codes
        for i in range(f.width):
            wi = w * f.columns[:, i]
            for j in range(g.width):
                if b == c:
                    sums = np.diag(np.bincount(f.codes, wi * g.columns[:, j], f.n_levels))
                else:
                    sums = np.bincount(flat, wi * g.columns[:, j], f.n_levels * g.n_levels).reshape(
                        f.n_levels, g.n_levels
                    )
                a22[self._slot(b, i), self._slot(c, j)] = sums
                a22[self._slot(c, j), self._slot(b, i)] = sums.T

    def transpose_times(self, v: Array) -> Vector:
        """Z' v for v of shape (n,)."""
        one = self.factors[0]
        first: Array = np.stack(
            [np.bincount(one.codes, v * one.columns[:, i], self.m1) for i in range(self.k1)], axis=1
        )
        rest = np.empty(self.q2)
        for b in range(1, len(self.factors)):
            f = self.factors[b]
            for j in range(f.width):
                rest[self._slot(b, j)] = np.bincount(f.codes, v * f.columns[:, j], f.n_levels)
        return Vector(first, rest)

    def transpose_times_columns(self, x: Array) -> Vector:
        """Z' X for X of shape (n, r)."""
        parts = [self.transpose_times(x[:, j]) for j in range(x.shape[1])]
        if not parts:
            return Vector(np.zeros((self.m1, self.k1, 0)), np.zeros((self.q2, 0)))
        return Vector(np.stack([p.first for p in parts], axis=-1), np.stack([p.rest for p in parts], axis=-1))

    def transpose_times_groups(self, v: Array, groups: NDArray[np.intp], many: int) -> Vector:
        """Z' diag(v) G for v of shape (n,) and G (n, many), 1 in the column of each row's group and 0 elsewhere."""

        def sums(f: Effects, j: int) -> Array:
            flat = np.bincount(f.codes * many + groups, v * f.columns[:, j], f.n_levels * many)
            return np.asarray(flat.reshape(f.n_levels, many), dtype=float)

        one = self.factors[0]
        first: Array = np.stack([sums(one, j) for j in range(self.k1)], axis=1)
        rest = np.empty((self.q2, many))
        for b, f in enumerate(self.factors[1:], start=1):
            for j in range(f.width):
                rest[self._slot(b, j)] = sums(f, j)
        return Vector(first, rest)

    def times(self, b: Vector) -> Array:
        """Z b, shape (n,)."""
        one = self.factors[0]
        total: Array = np.einsum("nk,nk->n", one.columns, b.first[one.codes])
        for i in range(1, len(self.factors)):
            f = self.factors[i]
            total += np.einsum("nk,nk->n", f.columns, self.block(b.rest, i)[f.codes])
        return total

    def scale(self, lambdas: Sequence[Array], b: Vector, transpose: bool = False) -> Vector:
        """Lambda b, or Lambda' b; trailing axes of b are kept."""
        mats = [m.T for m in lambdas] if transpose else list(lambdas)
        first = _left(mats[0], b.first)
        rest = np.empty_like(b.rest)
        for i in range(1, len(self.factors)):
            self.block(rest, i)[...] = _left(mats[i], self.block(b.rest, i))
        return Vector(first, rest)

    def scale_right(self, array: Array, lambdas: Sequence[Array]) -> Array:
        """Multiply the last axis (q2) of an array by the block-diagonal Lambda of the other factors."""
        result = np.empty_like(array)
        for i in range(1, len(self.factors)):
            f = self.factors[i]
            part = slice(self.offsets[i - 1], self.offsets[i - 1] + f.n_levels * f.width)
            if f.width == 1:
                np.multiply(array[..., part], lambdas[i][0, 0], out=result[..., part])
                continue
            shaped = array[..., part].reshape(*array.shape[:-1], f.n_levels, f.width)
            result[..., part] = (shaped @ lambdas[i]).reshape(*array.shape[:-1], f.n_levels * f.width)
        return result

    def moved(
        self, entries: Sequence[tuple[int, int, int]], lambdas: Sequence[Array], u: Vector, v: Vector
    ) -> Vector:
        """Per entry (factor, i, j) of Lambda, with D its derivative, D u + Lambda D' v; shapes (m1, k1, e), (q2, e)."""
        result = Vector(np.zeros((self.m1, self.k1, len(entries))), np.zeros((self.q2, len(entries))))
        for at, (b, i, j) in enumerate(entries):
            to = (result.first if b == 0 else self.block(result.rest, b))[..., at]
            from_u = u.first if b == 0 else self.block(u.rest, b)
            from_v = v.first if b == 0 else self.block(v.rest, b)
            to[:, i] += from_u[:, j]
            to += np.multiply.outer(from_v[:, i], lambdas[b][:, j])
        return result

    def outer(self, s: Vector, t: Vector) -> list[Array]:
        """Sum over levels of s t' within each factor; one (k, k) array per factor, trailing axes contracted."""
        sums = [_outer(s.first, t.first)]
        sums += [_outer(self.block(s.rest, i), self.block(t.rest, i)) for i in range(1, len(self.factors))]
        return sums


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
            h22 = layout.scale(
                lambdas, Vector(np.zeros((1, layout.k1)), self.a22_scaled), transpose=True
            ).rest
            schur = h22 - c.T @ c
            schur.flat[:: layout.q2 + 1] += 1.0
            # The symmetric matrix by columns is itself by rows, which spares LAPACK a copy.
            self.l22, failed = linalg.lapack.dpotrf(schur.T, lower=1, overwrite_a=1)
            if failed:
                raise np.linalg.LinAlgError("not positive definite")
            self.logdet += 2.0 * float(np.log(np.diag(self.l22)).sum())

    def solve(self, r: Vector) -> Vector:
        """H^-1 r; r has shapes (m1, k1, c) and (q2, c), or without the last axis."""
        flat = r.first.ndim == 2
        first = r.first[..., None] if flat else r.first
        rest = r.rest[..., None] if flat else r.rest
        q2, c = self.layout.q2, first.shape[-1]
        inv = self.inverse_l11
        back = inv if self.layout.k1 == 1 else np.swapaxes(inv, 1, 2)
        x1 = _each(back, _each(inv, first))
        if q2:
            h12 = self.h12.reshape(-1, q2)
            x2 = linalg.lapack.dpotrs(self.l22, rest - h12.T @ x1.reshape(-1, c), lower=1)[0]
            x1 = _each(back, _each(inv, first - (h12 @ x2).reshape(first.shape)))
        else:
            x2 = rest
        return Vector(x1[..., 0], x2[..., 0]) if flat else Vector(x1, x2)

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
        """Per factor the (k, k) sum over levels of the diagonal blocks of A Lambda P.

        Half the derivative of log|H| with respect to the entries of that factor's Lambda.
        """
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
                _outer(layout.block(a21, b), layout.block(p21, b))
                + _outer(layout.block(of.a22_scaled, b), layout.block(self.p22, b))
            )
        return sums

    def leverages(self) -> Array:
        """Row by row z' Lambda P Lambda' z, shape (n,)."""
        layout, lambdas = self.of.layout, self.of.lambdas
        rows = [f.columns @ lam for f, lam in zip(layout.factors, lambdas, strict=True)]
        one = layout.factors[0]
        total = np.einsum("ni,nij,nj->n", rows[0], self.p11[one.codes], rows[0], optimize=True)
        for b in range(1, len(layout.factors)):
            f = layout.factors[b]
            start, size = layout.offsets[b - 1], f.n_levels * f.width
            part = self.p12[:, :, start : start + size].reshape(layout.m1, layout.k1, f.n_levels, f.width)
            cross = part[one.codes, :, f.codes, :]
            total += 2.0 * np.einsum("ni,nij,nj->n", rows[0], cross, rows[b], optimize=True)
            for c in range(b, len(layout.factors)):
                g = layout.factors[c]
                at = layout.offsets[c - 1]
                square = self.p22[start : start + size, at : at + g.n_levels * g.width]
                pick = square.reshape(f.n_levels, f.width, g.n_levels, g.width)[f.codes, :, g.codes, :]
                twice = 1.0 if b == c else 2.0
                total += twice * np.einsum("ni,nij,nj->n", rows[b], pick, rows[c], optimize=True)
        return np.asarray(total)
