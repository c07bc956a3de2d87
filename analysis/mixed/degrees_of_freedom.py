"""Degrees of freedom of contrasts of fixed effects, and the F tests that go with them.

Satterthwaite's are those of lmerTest (Kuznetsova, Brockhoff and Christensen 2017): twice the squared variance of a
contrast over the variance of that variance, from derivatives in (theta, log sigma^2); for several contrasts at once by
Fai and Cornelius (1996). Kenward and Roger's are made by ``hypotheses.kenward_roger``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from analysis.arrays import Array
from analysis.mixed.deviance import LinearDeviance
from analysis.mixed.optimise import STEP, differences

RESIDUAL = "n - p"
"""Name of the degrees of freedom of a model without random effects, where Satterthwaite's are rows less coefficients."""


@dataclass(frozen=True)
class FTest:
    """A test that several contrasts are zero at once."""

    statistic: float  # F; scaled where the method scales it
    numerator: int  # independent contrasts
    denominator: float  # infinite for a Wald chi-squared test, whose statistic is F times ``numerator``
    p: float  # upper tail


def f_tail(statistic: float, numerator: int, denominator: float) -> FTest:
    """Complete a test from its statistic."""
    wald = stats.chi2.sf(statistic * numerator, numerator)
    p = wald if np.isinf(denominator) else stats.f.sf(statistic, numerator, denominator)
    return FTest(statistic, numerator, denominator, float(p))


@dataclass(frozen=True)
class Satterthwaite:
    """Quantities for Satterthwaite's degrees of freedom; the derivatives are computed at first use."""

    model: LinearDeviance  # the deviance
    theta: Array  # (k,): estimated relative covariance parameters
    name: str = "Satterthwaite"

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        """Differentiate the unprofiled deviance and vcov(beta) at the optimum: (slopes, covariance)."""
        model, theta = self.model, self.theta
        point, scales = model.at(theta), model.covariance.scales()
        sigma2, unscaled = point.rss / model.df, model.sigma(point) ** 2

        def both(x: Array) -> Array:
            moved_point = model.at(x)
            slope = moved_point.logdet_slope + moved_point.rss_slope / sigma2
            return np.concatenate([slope, (unscaled * model.variance(moved_point)).ravel()])

        k, p = len(theta), model.p
        derivatives = differences(both, theta, STEP * scales) if k else np.empty((0, p * p))
        hessian = np.empty((k + 1, k + 1))
        hessian[:k, :k] = (derivatives[:, :k] + derivatives[:, :k].T) / 2.0
        hessian[:k, k] = hessian[k, :k] = -point.rss_slope / sigma2
        hessian[k, k] = model.df
        slopes = np.concatenate([derivatives[:, k:].reshape(k, p, p), unscaled * model.variance(point)[None]])
        unit = np.append(scales, 1.0)
        return slopes, 2.0 * positive_inverse(hessian * np.outer(unit, unit)) * np.outer(unit, unit)

    def df(self, rows: Array, vcov: Array) -> Array:
        """Degrees of freedom of each row of an (r, p) contrast matrix, shape (r,)."""
        slopes, covariance = self._parts
        variance = np.einsum("ri,ij,rj->r", rows, vcov, rows)
        gradient = np.einsum("ri,dij,rj->rd", rows, slopes, rows)
        spread = np.einsum("rd,de,re->r", gradient, covariance, gradient)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2.0 * variance**2 / spread)

    def f_test(self, rows: Array, estimate: Array, vcov: Array) -> FTest:
        """Split into independent contrasts and pool their degrees of freedom (Fai and Cornelius 1996)."""
        values, vectors = np.linalg.eigh(rows @ vcov @ rows.T)
        squares = (vectors.T @ estimate) ** 2 / values
        df = self.df(vectors.T @ rows, vcov)
        q = len(rows)
        if np.ptp(df) < 1e-8 * df.max():
            pooled = float(df.mean())
        elif df.min() <= 2.0:
            pooled = 2.0
        else:
            expected = float(np.sum(df / (df - 2.0)))
            pooled = 2.0 * expected / (expected - q)
        return f_tail(float(squares.mean()), q, pooled)


@dataclass(frozen=True)
class KenwardRoger:
    """Quantities for Kenward and Roger's tests."""

    vcov: Array  # (p, p): adjusted covariance of the fixed effects, Phi_A
    unadjusted: Array  # (p, p): Phi
    slopes: Array  # (d, p, p): P_r
    covariance: Array  # (d, d): W, asymptotic covariance of the variance parameters
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


DegreesOfFreedom = Satterthwaite | KenwardRoger


def positive_inverse(matrix: Array, share: float = 1e-8) -> Array:
    """Invert a symmetric matrix over the directions with positive curvature; a variance at zero leaves a flat one."""
    values, vectors = np.linalg.eigh(matrix)
    is_positive = values > share * values.max(initial=0.0)
    return np.asarray((vectors[:, is_positive] / values[is_positive]) @ vectors[:, is_positive].T)
