"""Response times with two parameters beside the mean: the shifted lognormal and the ex-Gaussian, as in brms.

Shifted lognormal: log(y - ndt) is normal with mean eta and standard deviation sigma; the shift ndt lies between zero and the
fastest response. Ex-Gaussian: y is a normal plus an exponential time of mean beta, and eta is the mean of the sum. Both
log-likelihoods are concave in eta. The parameters that are searched for are log sigma, and the logit of ndt / min(y) or log beta.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

Array = NDArray[np.float64]

TIMES = ("shifted_lognormal", "exgaussian")
_FARTHEST = 40.0
"""Parameters searched for beyond this are as good as infinite."""
_MOST_NORMAL, _LEAST_NORMAL = 1e3, 1e-3
"""Bounds of sigma / beta of the ex-Gaussian, beyond which it is as good as normal, or exponential."""


class TimeResponse(ABC):
    """Response times at a linear predictor, see ``responses.Response``; weights multiply the log-likelihood.

    Shapes: y, weights (n,), searched (2,).
    """

    canonical = True
    terms: tuple[str, str]

    def __init__(self, y: Array, weights: Array, searched: Array | None = None) -> None:
        self._y, self._w = y, weights
        self.dispersion = np.clip(self._guess() if searched is None else searched, -_FARTHEST, _FARTHEST)
        self.sigma = float(np.exp(self.dispersion[0]))
        self._take(float(self.dispersion[1]))

    def with_dispersion(self, searched: Array) -> TimeResponse:
        """Return the same times at other parameters."""
        return type(self)(self._y, self._w, searched)

    def weight(self, eta: Array) -> Array:
        """Return the observed information."""
        return self.observed(eta)

    def inside(self, eta: Array) -> Array:
        """Return the observed information."""
        return self.observed(eta)

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return -2 log-likelihood and its derivative with respect to eta."""
        return -2.0 * float(self.loglik(eta).sum()), -2.0 * self.score(eta)

    @abstractmethod
    def _guess(self) -> Array: ...

    @abstractmethod
    def _take(self, second: float) -> None: ...

    @property
    @abstractmethod
    def natural(self) -> tuple[Array, Array]:
        """The parameters as they are reported, and their derivatives by those searched for; shape (2,) each."""

    @abstractmethod
    def saturated(self) -> Array:
        """Return the linear predictor of a model that nearly fits each observation."""

    @abstractmethod
    def loglik(self, eta: Array) -> Array:
        """Log-likelihood per observation, all constants in."""

    @abstractmethod
    def score(self, eta: Array) -> Array:
        """First derivative of the log-likelihood with respect to eta."""

    @abstractmethod
    def observed(self, eta: Array) -> Array:
        """Minus the second derivative of the log-likelihood."""

    @abstractmethod
    def inside_slope(self, eta: Array) -> Array:
        """Differentiate the information with respect to eta."""

    @abstractmethod
    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """Differentiate log-likelihood, score and information by the parameters searched for, shape (2, n) each."""

    @abstractmethod
    def mean(self, eta: Array) -> tuple[Array, Array, Array]:
        """Mean time, shape (m,), its derivative by eta, and by the parameters searched for, shape (m, 2)."""

    @abstractmethod
    def variance(self, eta: Array) -> Array:
        """Variance of a time."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, eta: Array) -> Array:
        """Draw times."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Say where the data do not determine the second parameter."""


class ShiftedLognormal(TimeResponse):
    """log(y - ndt) ~ N(eta, sigma)."""

    terms = ("sigma", "ndt")

    def _guess(self) -> Array:
        # The likelihood is unbounded as the shift reaches the fastest time (Hill 1963); the maximum wanted is the one inside.
        found = []
        for share in np.linspace(0.05, 0.95, 19):
            log = np.log(self._y - share * self._y.min())
            mean = np.average(log, weights=self._w)
            log_sd = 0.5 * np.log(np.average((log - mean) ** 2, weights=self._w))
            found.append((log_sd + mean, log_sd, special.logit(share)))
        return np.array(min(found)[1:])

    def _take(self, second: float) -> None:
        least = float(self._y.min())
        self._rise = least * float(special.expit(second) * special.expit(-second))
        self.shift = least * float(special.expit(second))
        self._above = (self._y - least) + least * float(special.expit(-second))
        self._log = np.log(self._above)

    @property
    def natural(self) -> tuple[Array, Array]:
        """Sigma and the shift."""
        return np.array([self.sigma, self.shift]), np.array([self.sigma, self._rise])

    def saturated(self) -> Array:
        """Log of the time above the shift."""
        return self._log

    def loglik(self, eta: Array) -> Array:
        """Return the normal log-density of the log, less the log."""
        return np.asarray(self._w * (stats.norm.logpdf(self._log, eta, self.sigma) - self._log))

    def score(self, eta: Array) -> Array:
        """Standardised residual over sigma."""
        return np.asarray(self._w * (self._log - eta) / self.sigma**2)

    def observed(self, eta: Array) -> Array:
        """One over sigma squared."""
        return self._w / self.sigma**2

    def inside_slope(self, eta: Array) -> Array:
        """Zero."""
        return np.zeros_like(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """By log sigma and the logit of ndt / min(y)."""
        e, precision = (self._log - eta) / self.sigma, self.sigma**-2
        moved = self._rise / self._above
        return (
            self._w * np.stack([e**2 - 1.0, (1.0 + e / self.sigma) * moved]),
            self._w * np.stack([-2.0 * e / self.sigma, -precision * moved]),
            self._w * np.stack([np.full_like(e, -2.0 * precision), np.zeros_like(e)]),
        )

    def mean(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return ndt + exp(eta + sigma^2 / 2)."""
        above = np.exp(eta + self.sigma**2 / 2.0)
        return self.shift + above, above, np.stack([self.sigma**2 * above, np.full_like(eta, self._rise)], 1)

    def variance(self, eta: Array) -> Array:
        """Of the lognormal."""
        return np.asarray(np.expm1(self.sigma**2) * np.exp(2.0 * eta + self.sigma**2))

    def draw(self, rng: np.random.Generator, eta: Array) -> Array:
        """Draw times."""
        return np.asarray(self.shift + rng.lognormal(eta, self.sigma))

    def notes(self) -> list[str]:
        """Say that the shift is at an end of its range."""
        share = self.shift / float(self._y.min())
        if 0.01 <= share <= 0.999:
            return []
        end = (
            "zero, so a lognormal model without shift fits as well"
            if share < 0.01
            else "the fastest response"
        )
        return [
            f"the shift ndt, {self.shift:.4g}, is at the end of its range, {end}; it has no standard error"
        ]


class ExGaussian(TimeResponse):
    """y ~ N(eta - beta, sigma) + exponential of mean beta."""

    terms = ("sigma", "beta")

    def _guess(self) -> Array:
        mean = np.average(self._y, weights=self._w)
        sd = float(np.sqrt(np.average((self._y - mean) ** 2, weights=self._w)))
        skew = float(np.average(((self._y - mean) / sd) ** 3, weights=self._w))
        share = np.clip(np.cbrt(skew / 2.0), 0.3, 0.95)
        return np.log(sd * np.array([np.sqrt(1.0 - share**2), share]))

    def _take(self, second: float) -> None:
        self.k = float(np.clip(self.sigma / np.exp(second), _LEAST_NORMAL, _MOST_NORMAL))
        self.beta = self.sigma / self.k
        self._eta: Array | None = None

    @property
    def natural(self) -> tuple[Array, Array]:
        """Sigma and beta."""
        return np.array([self.sigma, self.beta]), np.array([self.sigma, self.beta])

    def saturated(self) -> Array:
        """Return the times."""
        return self._y

    def _at(self, eta: Array) -> tuple[Array, Array, Array, Array]:
        """Return r = (y - eta + beta) / sigma, and the first three derivatives of log Phi(r - k)."""
        if self._eta is not eta:
            r = (self._y - eta + self.beta) / self.sigma
            z = r - self.k
            # erfcx overflows to infinity for large z, where the derivatives vanish.
            with np.errstate(over="ignore"):
                h = np.sqrt(2.0 / np.pi) / special.erfcx(-z / np.sqrt(2.0))
            x = 1.0 / np.minimum(z, -1.0)
            # z + h, far below zero by its series, where the difference loses its digits.
            gap = np.where(z < -40.0, -x + 2.0 * x**3 - 10.0 * x**5 + 74.0 * x**7, z + h)
            first = -h * gap
            self._eta, self._found = eta, (r, h, first, -first * gap - h * (1.0 + first))
        return self._found

    def loglik(self, eta: Array) -> Array:
        """Log-density, below the normal's reach from erfcx so that no terms cancel."""
        r, k = self._at(eta)[0], self.k
        z = r - k
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            low = np.log(special.erfcx(-z / np.sqrt(2.0)) / 2.0) - r**2 / 2.0
            found = np.where(z < 0.0, low, k**2 / 2.0 - r * k + special.log_ndtr(z))
        return np.asarray(self._w * (found - np.log(self.beta)))

    def score(self, eta: Array) -> Array:
        """1 / beta less the hazard's part."""
        return np.asarray(self._w * (self.k - self._at(eta)[1]) / self.sigma)

    def observed(self, eta: Array) -> Array:
        """Minus the second derivative."""
        return np.asarray(self._w * np.maximum(-self._at(eta)[2], 0.0) / self.sigma**2)

    def inside_slope(self, eta: Array) -> Array:
        """Differentiate the information with respect to eta."""
        return np.asarray(self._w * self._at(eta)[3] / self.sigma**3)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """By log sigma and log beta."""
        (r, h, h1, h2), k, sigma = self._at(eta), self.k, self.sigma
        up, both = r + k, 1.0 / k + k
        return (
            self._w * np.stack([k**2 - h * up, h * both + r * k - k**2 - 2.0]),
            self._w * np.stack([h + h1 * up, -k - h1 * both]) / sigma,
            self._w * np.stack([h2 * up + 2.0 * h1, -h2 * both]) / sigma**2,
        )

    def mean(self, eta: Array) -> tuple[Array, Array, Array]:
        """Eta itself."""
        return eta, np.ones_like(eta), np.zeros((len(eta), 2))

    def variance(self, eta: Array) -> Array:
        """sigma^2 + beta^2."""
        return np.full_like(eta, self.sigma**2 + self.beta**2)

    def draw(self, rng: np.random.Generator, eta: Array) -> Array:
        """Draw times."""
        n = len(eta)
        return np.asarray(eta + self.sigma * rng.normal(size=n) + self.beta * (rng.exponential(size=n) - 1.0))

    def notes(self) -> list[str]:
        """Say that the times are as good as normal, or as exponential."""
        if 0.05 <= self.k <= 20.0:
            return []
        which = "normal, and the gaussian family fits as well" if self.k > 1.0 else "a shifted exponential"
        return [f"sigma is {self.sigma:.4g} and beta {self.beta:.4g}: the times are as good as {which}"]


def time_response(family: str, y: Array, weights: Array) -> TimeResponse:
    """Return the response of one of the families ``TIMES``."""
    return (ShiftedLognormal if family == "shifted_lognormal" else ExGaussian)(y, weights)


@dataclass(frozen=True, eq=False)
class Shape:
    """The fitted distribution of times.

    ``vcov`` is the covariance of the two parameters searched for and the coefficients, shape (2 + p, 2 + p).
    """

    response: TimeResponse
    vcov: Array

    @property
    def table(self) -> pd.DataFrame:
        """Sigma and ndt or beta: term, estimate, se, ci_low, ci_high, nan at the end of a range; intervals are not symmetric."""
        response = self.response
        estimate, slope = response.natural
        searched_se = np.sqrt(np.diag(self.vcov)[:2])
        if response.notes():
            searched_se[:] = np.nan
        half = stats.norm.isf(0.025) * searched_se
        low, high = (
            response.with_dispersion(response.dispersion + side * half).natural[0] for side in (-1.0, 1.0)
        )
        return pd.DataFrame(
            {
                "term": response.terms,
                "estimate": estimate,
                "se": slope * searched_se,
                "ci_low": low,
                "ci_high": high,
            }
        )
