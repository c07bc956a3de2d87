"""The profiled deviance of linear mixed models and its gradient.

Bates et al. (2015), eq. 34 (ML) and eq. 41 (REML): with H = Lambda' Z'WZ Lambda + I, the penalised residual sum of
squares r^2(theta) and R_X'R_X the information of beta,

    d(theta)   = log|H|                + n (1 + log(2 pi r^2 / n)) - sum log w
    d_R(theta) = log|H| + log|R_X|^2   + (n-p) (1 + log(2 pi r^2 / (n-p))) - sum log w.

All that depends on the data enters through cross-products formed once, so an evaluation costs nothing in n. The fixed
columns are made orthonormal and y replaced by its scaled least-squares residual, for accuracy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from analysis.arrays import Array
from analysis.mixed.blocks import EffectsLayout, Factor, make_layout
from analysis.mixed.matrices import Covariance, Frame, Matrices
from stimuli.errors import UserError

NO_RESIDUAL = 1e-10
"""Residual sum of squares per row, as a share of that of least squares, that is rounding error."""


@dataclass(frozen=True)
class LinearPoint:
    """The model at one theta, in the working scale of y and X."""

    logdet: float  # log|H|, plus log|R_X|^2 under REML
    logdet_slope: Array  # (theta,): its gradient
    rss: float  # r^2(theta)
    rss_slope: Array  # (theta,): its gradient
    information: Array  # (p, p): R_X' R_X = X' V^-1 X at sigma = 1
    beta: Array  # (p,): profiled coefficients
    u: Array  # spherical random effects


@dataclass(frozen=True)
class _Solved:
    """Parts of a solution for later use: the factor of H, sums of blocks of A Lambda P, and Z'W times the residual."""

    point: LinearPoint
    lambdas: list[Array]
    h: Factor
    traces: list[Array]
    z_residual: Array


class LinearDeviance:
    """Deviance of a linear mixed model as a function of theta."""

    def __init__(self, frame: Frame, matrices: Matrices, reml: bool) -> None:
        self.reml = reml
        self.covariance: Covariance = matrices.covariance
        self.layout: EffectsLayout = make_layout(matrices.effects)
        root = np.sqrt(frame.weights)
        self.n, self.p = matrices.x.shape
        target = frame.y - frame.offset
        q, self.r = np.linalg.qr(root[:, None] * matrices.x)
        self.ols = linalg.solve_triangular(self.r, q.T @ (root * target)) if self.p else np.zeros(0)
        residual = target - matrices.x @ self.ols
        self.scale = float(np.sqrt(np.mean(frame.weights * residual**2))) or 1.0
        x = q / root[:, None]
        columns = np.column_stack([x, residual / self.scale])
        self.a = self.layout.products(frame.weights)
        weighted = np.asfortranarray(frame.weights[:, None] * columns)
        self.c = self.layout.transpose_times_columns(weighted)
        self.s = columns.T @ weighted
        log_weights = float(np.log(frame.weights).sum())
        self.df = self.n - self.p if reml else self.n
        self.constant = self.df * (1.0 + np.log(2.0 * np.pi / self.df)) - log_weights
        self.constant += 2.0 * self.df * np.log(self.scale)
        if reml and self.p:
            self.constant += 2.0 * float(np.log(np.abs(np.diag(self.r))).sum())
        self._met: dict[bytes, LinearPoint] = {}
        self._last: _Solved | None = None

    def at(self, theta: Array) -> LinearPoint:
        """Solve the penalised least-squares problem at one theta; points met lately are remembered."""
        key = np.round(theta / self.covariance.scales() * 1e10).tobytes()
        if key not in self._met:
            while len(self._met) > 4 * len(theta) + 4:
                del self._met[next(iter(self._met))]
            self._met[key] = self._solve(theta)
        return self._met[key]

    def _solve(self, theta: Array) -> LinearPoint:
        p = self.p
        lambdas = self.covariance.lambdas(theta)
        h = self.layout.factor(self.a, lambdas)
        scaled_c = self.layout.scale(lambdas, self.c, transpose=True)
        g = h.solve(scaled_c)
        residual_c = self.c - self.a.times(self.layout.scale(lambdas, g))
        s = self.s - scaled_c.T @ g
        s = (s + s.T) / 2.0
        information = s[:p, :p]
        factor = np.linalg.cholesky(information)
        beta = linalg.lapack.dpotrs(factor, s[:p, p], lower=1)[0] if p else np.zeros(0)
        rss = float(s[p, p] - s[:p, p] @ beta)
        contrast = np.append(-beta, 1.0)
        u, z_residual = g @ contrast, residual_c @ contrast
        rss_slope = -2.0 * self.covariance.gradient(self.layout.outer(z_residual, u))
        logdet = h.logdet
        traces = h.invert().trace_terms()
        slopes = [2.0 * b for b in traces]
        if self.reml and p:
            logdet += 2.0 * float(np.log(np.diag(factor)).sum())
            # Zeros for the response spare cutting the fixed columns out.
            inverse = np.zeros((p + 1, p + 1))
            inverse[:p, :p] = linalg.lapack.dpotrs(factor, np.eye(p), lower=1)[0]
            q = residual_c @ inverse
            slopes = [a - 2.0 * b for a, b in zip(slopes, self.layout.outer(q, g), strict=True)]
        point = LinearPoint(logdet, self.covariance.gradient(slopes), rss, rss_slope, information, beta, u)
        self._last = _Solved(point, lambdas, h, traces, z_residual)
        return point

    def nearer(self, theta: Array) -> Array:
        """Guess theta from the spread of the random effects at the first guess, Lambda = I."""
        # That spread is too large by about the variance of their errors, the blocks of P = H^-1 = I - A P.
        solution = self._solution(theta)
        levels = [f.n_levels for f in self.layout.factors]
        squares = self.layout.outer(solution.point.u, solution.point.u)
        sigma2 = max(solution.point.rss / self.df, NO_RESIDUAL)
        return self.covariance.from_moments(
            [
                _less(square / m / sigma2, np.eye(len(square)) - (trace + trace.T) / (2.0 * m))
                for square, trace, m in zip(squares, solution.traces, levels, strict=True)
            ]
        )

    def _solution(self, theta: Array) -> _Solved:
        point = self.at(theta)
        if self._last is None or self._last.point is not point:
            self._solve(theta)
        assert self._last is not None
        return self._last

    def metric(self, theta: Array) -> Array:
        """Average of observed and expected second derivatives of the deviance, shape (theta, theta)."""
        # The average information of Gilmour, Thompson and Cullis (1995): with f_i = dV/dtheta_i V^-1 (y - X beta), its
        # entries are f_i' P f_j / sigma^2, here with sigma profiled out. It needs solves only.
        last, p = self._solution(theta), self.p
        point = last.point
        derivatives = self.layout.moved(self.covariance.entries, last.lambdas, last.point.u, last.z_residual)
        products = self.a.times(derivatives)
        scaled = self.layout.scale(last.lambdas, products, transpose=True)
        solved = last.h.solve(scaled)
        squares = derivatives.T @ products - scaled.T @ solved
        if p:
            with_x = (self.c.T @ derivatives)[:p]
            with_x -= (self.layout.scale(last.lambdas, self.c, transpose=True).T @ solved)[:p]
            squares -= with_x.T @ np.linalg.solve(point.information, with_x)
        projections, sigma2 = last.z_residual @ derivatives, point.rss / self.df
        return np.asarray(squares / sigma2 - np.outer(projections, projections) / (sigma2**2 * self.df))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Profiled deviance and its gradient."""
        point = self.at(theta)
        if point.rss < NO_RESIDUAL * self.n:
            raise UserError(
                "the model reproduces the response exactly; no residual variance is left to estimate",
                mend="Look whether the response is a copy of a covariate or constant within groups.",
            )
        value = point.logdet + self.df * float(np.log(point.rss)) + self.constant
        return value, point.logdet_slope + self.df * point.rss_slope / point.rss

    def sigma(self, point: LinearPoint) -> float:
        """Residual standard deviation in the units of y."""
        return self.scale * float(np.sqrt(point.rss / self.df))

    def coefficients(self, point: LinearPoint) -> Array:
        """Return the fixed effects for the columns of X, shape (p,)."""
        if not self.p:
            return np.zeros(0)
        return self.ols + self.scale * linalg.solve_triangular(self.r, point.beta)

    def variance(self, point: LinearPoint) -> Array:
        """Covariance of the fixed effects at sigma = 1, shape (p, p)."""
        if not self.p:
            return np.zeros((0, 0))
        back = linalg.solve_triangular(self.r, np.eye(self.p))
        return np.asarray(back @ linalg.inv(point.information) @ back.T)

    def effects(self, point: LinearPoint, theta: Array) -> Array:
        """Random effects b = Lambda u for the columns of Z, in the units of y."""
        return self.layout.scale(self.covariance.lambdas(theta), point.u) * self.scale


def _less(spread: Array, error: Array) -> Array:
    """Take one covariance matrix from another, in no direction more than nine tenths of what is there."""
    size = np.maximum(np.trace(spread) / len(spread), 1e-10)
    root = np.linalg.cholesky(spread + 1e-8 * size * np.eye(len(spread)))
    half = np.linalg.solve(root, error)
    shares, axes = np.linalg.eigh(np.linalg.solve(root, half.T))
    back = root @ axes
    return np.asarray((back * np.clip(1.0 - shares, 0.1, 1.0)) @ back.T)
