"""Ordered responses: categories cut from a latent scale by thresholds, the cumulative (proportional odds) model.

With thresholds tau_1 < … < tau_J-1 and a link F^-1, P(y <= j) = F(tau_j - x'beta - z'b) (McCullagh 1980; ``clmm`` of R's
ordinal package). Here tau_j = c_j - beta_0 with centred c, sum c_j = 0, so that the intercept beta_0 of X is the mean of the
latent scale, and two categories are binomial regression. The parameters beside beta are the logs of the gaps
c_j+1 - c_j, which keep the thresholds in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from .links import Link

Array = NDArray[np.float64]

_BEYOND = 1e6
"""In place of the infinite thresholds below the first category and above the last."""
_SMALLEST = 1e-300


def centred_thresholds(log_gaps: Array) -> tuple[Array, Array]:
    """Return thresholds with mean zero, shape (J - 1,), and their derivatives by the log gaps, shape (J - 1, J - 2)."""
    gaps = np.exp(log_gaps)
    above = np.tri(len(gaps) + 1, len(gaps), -1)
    slopes = (above - above.mean(axis=0)) * gaps
    return slopes.sum(axis=1), slopes


@dataclass(frozen=True)
class _Piece:
    """The probability P = F(u) - F(v) of each row's category, and slopes of F at both ends divided by it; shape (n,) each."""

    loglik: Array
    upper: tuple[Array, Array, Array]
    lower: tuple[Array, Array, Array]


class OrderedResponse:
    """Ordered categories at a linear predictor, see ``responses.Response``.

    The log-likelihood is concave for the links offered, so steps and determinant take the observed information, as ``clmm``
    does.

    Shapes: y (n,), weights (n,), log_gaps (J - 2,).
    """

    canonical = True

    def __init__(self, link: Link, y: Array, weights: Array, log_gaps: Array | None = None) -> None:
        self._link, self._y, self._w = link, y, weights
        self._category = y.astype(np.intp)
        if log_gaps is None:
            share = np.cumsum(np.bincount(self._category, weights))[:-1] / weights.sum()
            log_gaps = np.log(np.diff(link.link(share)))
        self.dispersion = log_gaps
        self.thresholds, self.slopes = centred_thresholds(log_gaps)
        self._ends = np.concatenate([[-_BEYOND], self.thresholds, [_BEYOND]])
        self._eta: Array | None = None

    def with_dispersion(self, log_dispersion: Array) -> OrderedResponse:
        """Return the same observations at other log gaps."""
        return OrderedResponse(self._link, self._y, self._w, log_dispersion)

    def saturated(self) -> Array:
        """Return a linear predictor in the middle of each row's category; two units beyond the thresholds at the ends."""
        inner = self.thresholds
        middles = [inner[0] - 2.0, *((low + high) / 2.0 for low, high in pairwise(inner)), inner[-1] + 2.0]
        return np.array(middles)[self._category]

    def _at(self, eta: Array) -> _Piece:
        if self._eta is not eta:
            self._eta, self._piece = eta, self._make(eta)
        return self._piece

    def _make(self, eta: Array) -> _Piece:
        link = self._link
        u, v = self._ends[self._category + 1] - eta, self._ends[self._category] - eta
        p = np.maximum(probability_between(link, v, u), _SMALLEST)
        upper, lower = ((link.slope(at) / p, link.curvature(at) / p, link.third(at) / p) for at in (u, v))
        return _Piece(np.where(p > _SMALLEST, np.log(p), -np.inf), upper, lower)

    def loglik(self, eta: Array) -> Array:
        """Log-likelihood per observation."""
        return np.asarray(self._w * self._at(eta).loglik)

    def score(self, eta: Array) -> Array:
        """First derivative of the log-likelihood with respect to eta."""
        (a, _, _), (b, _, _) = self._at(eta).upper, self._at(eta).lower
        return np.asarray(self._w * (b - a))

    def weight(self, eta: Array) -> Array:
        """Return the observed information."""
        (a, da, _), (b, db, _) = self._at(eta).upper, self._at(eta).lower
        return np.asarray(self._w * np.maximum((a - b) ** 2 - (da - db), 0.0))

    observed = inside = weight

    def inside_slope(self, eta: Array) -> Array:
        """Differentiate the information with respect to eta."""
        (a, da, dda), (b, db, ddb) = self._at(eta).upper, self._at(eta).lower
        r = a - b
        return np.asarray(self._w * ((dda - ddb) - 3.0 * r * (da - db) + 2.0 * r**3))

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return -2 log-likelihood and its derivative with respect to eta."""
        return -2.0 * float(self.loglik(eta).sum()), -2.0 * self.score(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """Differentiate log-likelihood, score and information with respect to the log gaps, shape (J - 2, n) each."""
        (a, da, dda), (b, db, ddb) = self._at(eta).upper, self._at(eta).lower
        r, bend = a - b, da - db
        by_upper = a, a * r - da, 2.0 * r * (da - a * r) - dda + a * bend
        by_lower = -b, db - b * r, 2.0 * r * (b * r - db) + ddb - b * bend
        none = np.zeros((1, len(self.dispersion)))
        moves = np.vstack([none, self.slopes, none])
        up, down = moves[self._category + 1].T, moves[self._category].T
        loglik, score, inside = (
            self._w * (up * above + down * below) for above, below in zip(by_upper, by_lower, strict=True)
        )
        return loglik, score, inside


def probability_between(link: Link, low: Array, high: Array) -> Array:
    """F(high) - F(low), from the upper tail where both lie there, so that no digits cancel."""
    # All links but cloglog are symmetric.
    rest = (
        (lambda x: np.exp(-np.exp(np.minimum(x, 700.0))))
        if link.name == "cloglog"
        else (lambda x: link.inverse(-x))
    )
    return np.where(low > 0.0, rest(low) - rest(high), link.inverse(high) - link.inverse(low))


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Where the latent scale is cut, with what later steps need of it."""

    categories: tuple[str, ...]  # in their order
    link: Link  # F^-1
    centred: Array  # (J - 1,): thresholds less their mean
    slopes: Array  # (J - 1, J - 2): their derivatives by the log gaps
    intercept: float  # minus their mean; the first of the coefficients
    vcov: Array  # (J - 2 + p, J - 2 + p): covariance of log gaps and coefficients

    @cached_property
    def table(self) -> pd.DataFrame:
        """The thresholds as ``clmm`` has them: term, estimate, se, ci_low, ci_high; shape (J - 1, 5)."""
        by_all = np.zeros((len(self.centred), len(self.vcov)))
        by_all[:, : self.slopes.shape[1]] = self.slopes
        by_all[:, self.slopes.shape[1]] = -1.0
        se = np.sqrt(np.einsum("ri,ij,rj->r", by_all, self.vcov, by_all))
        estimate, half = self.centred - self.intercept, stats.norm.isf(0.025) * se
        names = [f"{low}|{high}" for low, high in pairwise(self.categories)]
        return pd.DataFrame(
            {
                "term": names,
                "estimate": estimate,
                "se": se,
                "ci_low": estimate - half,
                "ci_high": estimate + half,
            }
        )

    @property
    def log_gaps(self) -> Array:
        """Logs of the distances between neighbours, shape (J - 2,)."""
        return np.log(np.diff(self.centred))

    @property
    def scores(self) -> Array:
        """Numbers that the categories stand for, shape (J,): their own, or 1 to J where they are words."""
        try:
            return np.array([float(name) for name in self.categories])
        except ValueError:
            return np.arange(1.0, len(self.categories) + 1.0)

    def expected(self, eta: Array) -> Array:
        """Mean score at linear predictors eta, shape (m,)."""
        return np.asarray(self.probabilities(eta)[0] @ self.scores)

    def probabilities(self, eta: Array) -> tuple[Array, Array, Array]:
        """Probability of every category at linear predictors eta, shape (m,), intercept included.

        Shapes: returns probabilities (m, J), by_eta (m, J), by_gaps (m, J, J - 2).
        """
        ends = np.concatenate([[-_BEYOND], self.centred, [_BEYOND]])[None, :] - eta[:, None]
        density = self.link.slope(ends)
        none = np.zeros((1, self.slopes.shape[1]))
        moved = density[:, :, None] * np.vstack([none, self.slopes, none])
        found = probability_between(self.link, ends[:, :-1], ends[:, 1:])
        return found, -np.diff(density, axis=1), np.diff(moved, axis=1)
