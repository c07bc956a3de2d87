"""Kenward and Roger's covariance of the fixed effects and their F tests, for linear mixed models fitted by REML.

With V = sum_r gamma_r G_r, linear in the variances and covariances gamma, and Phi = (X' V^-1 X)^-1 (Kenward and Roger
1997; Halekoh and Højsgaard 2014, whose pbkrtest this equals):

    P_r = -X' V^-1 G_r V^-1 X,   Q_rs = X' V^-1 G_r V^-1 G_s V^-1 X,
    W^-1 = I_rs = [tr(V^-1 G_r V^-1 G_s) - 2 tr(Phi Q_rs) + tr(Phi P_r Phi P_s)] / 2,
    Phi_A = Phi + 2 Phi [sum_rs W_rs (Q_rs - P_r Phi P_s)] Phi.

No matrix of rows by rows is formed: with K = Z' V^-1 Z (q x q) and C = Z' V^-1 X every product is a sum over blocks of
levels. Prior weights enter the residual part, which pbkrtest leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from stimuli.errors import UserError

from .degrees import FTest, f_tail
from .result import Fit

Array = NDArray[np.float64]

LARGEST = 8000
"""Random effects for which the dense q x q products are formed at most (half a gigabyte each)."""


@dataclass(frozen=True)
class KenwardRoger:
    """What Kenward and Roger's tests need.

    Attributes
    ----------
    vcov : ndarray, shape (p, p)
        Adjusted covariance of the fixed effects, Phi_A.
    unadjusted : ndarray, shape (p, p)
        Phi.
    slopes : ndarray, shape (d, p, p)
        P_r.
    covariance : ndarray, shape (d, d)
        W, asymptotic covariance of the variance parameters.
    """

    vcov: Array
    unadjusted: Array
    slopes: Array
    covariance: Array
    name: str = "Kenward-Roger"

    def df(self, rows: Array, vcov: Array) -> Array:
        """Degrees of freedom of each row of an (r, p) contrast matrix, shape (r,)."""
        return np.array([self._moments(row[None, :])[0] if row.any() else np.nan for row in rows])

    def f_test(self, rows: Array, estimate: Array, vcov: Array) -> FTest:
        """Kenward and Roger's scaled F."""
        q = len(rows)
        denominator, scale = self._moments(rows)
        wald = float(estimate @ np.linalg.solve(rows @ self.vcov @ rows.T, estimate)) / q
        return f_tail(scale * wald, q, denominator)

    def _moments(self, rows: Array) -> tuple[float, float]:
        """Match the first two moments of F: (degrees of freedom, scale of the statistic)."""
        q, phi = len(rows), self.unadjusted
        if not np.isfinite(rows).all():
            return np.nan, np.nan
        theta = rows.T @ np.linalg.solve(rows @ phi @ rows.T, rows)
        u = theta @ phi @ self.slopes @ phi
        traces = np.einsum("rii->r", u)
        a1 = float(traces @ self.covariance @ traces)
        a2 = float(np.einsum("rs,rij,sji->", self.covariance, u, u))
        if abs(a2) < 1e-300:
            return np.inf, 1.0
        b = (a1 + 6.0 * a2) / (2.0 * q)
        g = ((q + 1) * a1 - (q + 4) * a2) / ((q + 2) * a2)
        bottom = 3.0 * q + 2.0 * (1.0 - g)
        c1, c2, c3 = g / bottom, (q - g) / bottom, (q + 2 - g) / bottom
        v0, v1, v2 = 1.0 + c1 * b, 1.0 - c2 * b, 1.0 - c3 * b
        v0 = 0.0 if abs(v0) < 1e-10 else v0
        rest = 1.0 - a2 / q
        share = 1.0 if abs(rest) < 1e-14 and abs(v1) < 1e-14 else rest / v1
        rho = share**2 * v0 / v2 / q
        df = 4.0 + (q + 2.0) / (q * rho - 1.0)
        scale = 1.0 if abs(df - 2.0) < 1e-2 else df * rest / (df - 2.0)
        return float(df), float(scale)


def kenward_roger(fit: Fit) -> KenwardRoger:
    """Compute Kenward and Roger's adjustment of a fitted model.

    Parameters
    ----------
    fit : Fit
        A linear mixed model fitted by REML.

    Raises
    ------
    UserError
        If the model is generalised, was fitted by ML, or has more random effects than can be held densely.
    """
    if not fit.model.family.has_scale:
        raise UserError(
            f"Kenward-Roger degrees of freedom are for gaussian models; this one is {fit.family}",
            mend="Generalised models are tested by z, likelihood ratios or the parametric bootstrap.",
        )
    if not fit.variance:
        raise UserError(
            "the model has no random effects, so its degrees of freedom are exact: rows less coefficients",
            mend="Leave Kenward-Roger out.",
        )
    if fit.method != "REML":
        raise UserError(
            "Kenward-Roger's adjustment is derived for REML estimates; the model was fitted by ML",
            mend="Fit with reml=True (--reml).",
        )
    effects = fit.model.matrices.effects
    q = sum(e.n_levels * e.width for e in effects)
    if q > LARGEST:
        raise UserError(
            f"Kenward-Roger's products of {q} random effects do not fit; at most {LARGEST} do",
            mend="With so many levels Satterthwaite's degrees of freedom say the same.",
        )
    return _adjust(fit, _Pieces.of(fit))


@dataclass(frozen=True)
class _Pieces:
    """Products with V^-1, in units where V is the covariance of y: K, K N, C, N'C, X-parts of the residual."""

    k: Array
    kn: Array
    c: Array
    d: Array
    residual_p: Array
    residual_q: Array
    residual_trace: float
    blocks: list[tuple[NDArray[np.intp], NDArray[np.intp]]]

    @classmethod
    def of(cls, fit: Fit) -> _Pieces:
        matrices = fit.model.matrices
        weights = fit.model.frame.weights / fit.sigma**2
        z, starts = _columns(fit)
        lambdas = matrices.covariance.lambdas(fit.theta)
        levels = [e.n_levels for e in matrices.effects]
        relative = sparse.block_diag(
            [sparse.kron(sparse.identity(m), lam) for m, lam in zip(levels, lambdas, strict=True)],
            format="csr",
        )
        factor = fit.sigma * relative
        wz = z.multiply(weights[:, None]).tocsr()
        a = (z.T @ wz).toarray()
        h = factor.T @ (factor.T @ a).T
        h.flat[:: len(h) + 1] += 1.0
        lower = linalg.cholesky(h, lower=True, overwrite_a=True, check_finite=False)
        # M = Lambda H^-1 Lambda', so M A = half' half with half on the columns of Lambda.
        half = linalg.solve_triangular(lower, factor.T.toarray(), lower=True, check_finite=False)
        m = half.T @ half
        ma = m @ a
        n = np.eye(len(a)) - ma
        k = a @ n
        k = (k + k.T) / 2.0
        x = matrices.x
        rest = x - z @ (m @ (wz.T @ x))
        c = wz.T @ rest
        gram = rest.T @ (weights[:, None] * rest)
        blocks = []
        for term in matrices.covariance.terms:
            effect = matrices.effects[term.factor]
            base = starts[term.factor] + np.arange(effect.n_levels) * effect.width + term.at
            for i in range(term.width):
                for j in range(i + 1):
                    blocks.append((base + i, base + j))
        trace = len(x) - 2.0 * float(np.trace(ma)) + float(np.sum(ma * ma.T))
        return cls(k, k @ n, c, n.T @ c, -gram, gram - c.T @ m @ c, trace, blocks)


def _columns(fit: Fit) -> tuple[sparse.csr_array, list[int]]:
    """Z as a sparse matrix (n, q), level by level within each factor, and where each factor begins."""
    effects = fit.model.matrices.effects
    n, parts, starts, at = fit.nobs, [], [], 0
    for effect in effects:
        place = effect.codes[:, None] * effect.width + np.arange(effect.width)
        rows = np.repeat(np.arange(n), effect.width)
        size = effect.n_levels * effect.width
        parts.append(sparse.csr_array((effect.columns.ravel(), (rows, place.ravel())), shape=(n, size)))
        starts.append(at)
        at += size
    return sparse.csr_array(sparse.hstack(parts, format="csr")), starts


def _orders(
    block: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Z_a Z_b' and, for a covariance, its transpose too."""
    a, b = block
    return [(a, b)] if np.array_equal(a, b) else [(a, b), (b, a)]


def _adjust(fit: Fit, at: _Pieces) -> KenwardRoger:
    phi = fit.vcov.to_numpy()
    d, p = len(at.blocks) + 1, len(phi)
    slopes, second, traces = np.empty((d, p, p)), np.empty((d, d, p, p)), np.empty((d, d))
    orders = [_orders(block) for block in at.blocks]
    for r, mine in enumerate(orders):
        slopes[r] = -sum(at.c[a].T @ at.c[b] for a, b in mine)
        second[r, -1] = sum(at.c[a].T @ at.d[b] for a, b in mine)
        second[-1, r] = second[r, -1].T
        traces[r, -1] = traces[-1, r] = sum(float(at.kn[a, b].sum()) for a, b in mine)
        for s, other in enumerate(orders[: r + 1]):
            pairs = [(a, b, c, e) for a, b in mine for c, e in other]
            second[r, s] = sum(at.c[a].T @ at.k[np.ix_(b, c)] @ at.c[e] for a, b, c, e in pairs)
            second[s, r] = second[r, s].T
            traces[r, s] = sum(float(np.sum(at.k[np.ix_(e, a)] * at.k[np.ix_(c, b)])) for a, b, c, e in pairs)
            traces[s, r] = traces[r, s]
    slopes[-1], second[-1, -1], traces[-1, -1] = at.residual_p, at.residual_q, at.residual_trace
    moved = phi @ slopes
    information = (
        traces - 2.0 * np.einsum("ij,rsij->rs", phi, second) + np.einsum("rij,sji->rs", moved, moved)
    )
    size = np.sqrt(np.abs(np.diag(information)))
    size[size == 0] = 1.0
    covariance = 2.0 * np.linalg.pinv(information / np.outer(size, size), rcond=1e-10, hermitian=True)
    covariance /= np.outer(size, size)
    inner = np.einsum("rs,rsij->ij", covariance, second) - np.einsum(
        "rs,rij,jk,skl->il", covariance, slopes, phi, slopes, optimize=True
    )
    adjusted = phi + 2.0 * phi @ inner @ phi
    return KenwardRoger((adjusted + adjusted.T) / 2.0, phi, slopes, covariance)
