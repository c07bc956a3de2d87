"""Degrees of freedom of contrasts of fixed effects, and the F tests that go with them.

Satterthwaite's are those of lmerTest (Kuznetsova, Brockhoff and Christensen 2017): twice the squared variance of a
contrast over the variance of that variance, from derivatives in (theta, log sigma^2); for several contrasts at once by
Fai and Cornelius (1996). Kenward and Roger's lie in ``kenward_roger``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .linear import LinearDeviance
from .optimise import STEP, differences

Array = NDArray[np.float64]

RESIDUAL = "n - p"
"""Name of the degrees of freedom of a model without random effects, where Satterthwaite's are rows less coefficients."""


@dataclass(frozen=True)
class FTest:
    """A test that several contrasts are zero at once."""

    statistic: float  # F; scaled where the method scales it
    numerator: int  # independent contrasts
    # degrees of freedom; infinite for a Wald chi-squared test, whose statistic is F times ``numerator``
    denominator: float
    p: float  # upper tail


def f_tail(statistic: float, numerator: int, denominator: float) -> FTest:
    """Complete a test from its statistic."""
    wald = stats.chi2.sf(statistic * numerator, numerator)
    p = wald if np.isinf(denominator) else stats.f.sf(statistic, numerator, denominator)
    return FTest(statistic, numerator, denominator, float(p))


class DegreesOfFreedom(Protocol):
    """A way to give contrasts of the fixed effects their degrees of freedom."""

    @property
    def name(self) -> str:
        """Whose method it is, as tables say it."""

    def df(self, rows: Array, vcov: Array) -> Array:
        """Degrees of freedom of each row of an (r, p) contrast matrix, shape (r,)."""

    def f_test(self, rows: Array, estimate: Array, vcov: Array) -> FTest:
        """Test that ``rows @ beta``, estimated as ``estimate`` (r,), is zero; rows are linearly independent."""


@dataclass(frozen=True)
class Satterthwaite:
    """What Satterthwaite's degrees of freedom need; differentiated when they are first asked for."""

    model: LinearDeviance  # the deviance
    theta: Array  # (k,): estimated relative covariance parameters
    name: str = "Satterthwaite"

    @cached_property
    def _parts(self) -> tuple[Array, Array]:
        return _differentiated(self.model, self.theta)

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
        each = self.df(vectors.T @ rows, vcov)
        q = len(rows)
        if np.ptp(each) < 1e-8 * each.max():
            pooled = float(each.mean())
        elif each.min() <= 2.0:
            pooled = 2.0
        else:
            expected = float(np.sum(each / (each - 2.0)))
            pooled = 2.0 * expected / (expected - q)
        return f_tail(float(squares.mean()), q, pooled)


def _differentiated(model: LinearDeviance, theta: Array) -> tuple[Array, Array]:
    """Differentiate the unprofiled deviance and vcov(beta) at the optimum: (slopes, covariance)."""
    point = model.at(theta)
    scales = model.covariance.scales()
    sigma2 = point.rss / model.df
    vcov = model.sigma(point) ** 2 * model.variance(point)

    def both(at: Array) -> Array:
        there = model.at(at)
        slope = there.logdet_slope + there.rss_slope / sigma2
        return np.concatenate([slope, (model.sigma(point) ** 2 * model.variance(there)).ravel()])

    k, p = len(theta), model.p
    moved = differences(both, theta, STEP * scales) if k else np.empty((0, p * p))
    hessian = np.empty((k + 1, k + 1))
    hessian[:k, :k] = (moved[:, :k] + moved[:, :k].T) / 2.0
    hessian[:k, k] = hessian[k, :k] = -point.rss_slope / sigma2
    hessian[k, k] = model.df
    slopes = np.concatenate([moved[:, k:].reshape(k, p, p), vcov[None]])
    unit = np.append(scales, 1.0)
    scaled = positive_inverse(hessian * np.outer(unit, unit))
    return slopes, 2.0 * scaled * np.outer(unit, unit)


def positive_inverse(matrix: Array, share: float = 1e-8) -> Array:
    """Invert a symmetric matrix over the directions with positive curvature; a variance at zero leaves a flat one."""
    values, vectors = np.linalg.eigh(matrix)
    good = values > share * values.max(initial=0.0)
    return np.asarray((vectors[:, good] / values[good]) @ vectors[:, good].T)
