"""Observations under a family and a link: what the Laplace engine asks of a response at a linear predictor eta.

By the chain rule through mu (McCullagh and Nelder 1989, section 2.5), with l the log-density and ' the derivative with
respect to eta: l' = l_mu mu', l'' = l_mumu mu'^2 + l_mu mu'', and so on. The determinant of the Laplace approximation holds
the expected information as lme4 takes it, or the observed one as glmmTMB and the textbook; for canonical links they are the
same.

Ordered responses are categories cut from a latent scale (McCullagh 1980; ``clmm`` of R's ordinal package): with thresholds
tau_1 < … < tau_J-1 and a link F^-1, P(y <= j) = F(tau_j - x'beta - z'b). Here tau_j = c_j - beta_0 with centred c, so that
the intercept beta_0 of X is the mean of the latent scale, and two categories are binomial regression. The parameters besides
beta are the logs of the gaps c_j+1 - c_j.

Response times are as in brms. Shifted lognormal: log(y - ndt) is normal with mean eta and standard deviation sigma; the shift
ndt lies between zero and the fastest response. Ex-Gaussian: y is a normal plus an exponential time of mean beta, and eta is
the mean of the sum. The parameters that are searched for are log sigma, and the logit of ndt / min(y) or log beta. These
log-likelihoods and those of ordered responses are concave in eta, so steps and determinant take the observed information.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

from analysis.arrays import Array, Mask
from analysis.mixed.families import Family, Link, log_choices
from analysis.mixed.formula import Note
from stimuli.errors import UserError

_EDGE = float(np.finfo(float).eps)
LARGEST_LOG = 40.0
"""Log dispersions beyond this are as good as infinite."""
MOST_CATEGORIES = 50
"""Most categories of an ordered response."""


class ResponseModel(ABC):
    """The observations at a linear predictor; every array has shape (n,)."""

    canonical = True  # whether the observed information serves as the working weight
    # a number; of ordered responses the log gaps between thresholds, of times the two parameters searched for
    dispersion: Any = 1.0

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

    def weight(self, eta: Array) -> Array:
        """Return the working weight of iterated least squares, the expected information where it differs."""
        return self.observed(eta)

    def inside(self, eta: Array) -> Array:
        """Return the information that the Laplace determinant holds: ``weight`` or ``observed``."""
        return self.observed(eta)

    @abstractmethod
    def inside_slope(self, eta: Array) -> Array:
        """Differentiate ``inside`` with respect to eta."""

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return -2 log-likelihood of the model at the mode, and its derivative with respect to eta."""
        return -2.0 * float(self.loglik(eta).sum()), -2.0 * self.score(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """Differentiate log-likelihood, score and ``inside`` with respect to the log dispersion, or each of them."""
        raise AssertionError("this family has no dispersion")

    def with_dispersion(self, log_dispersion: Array) -> ResponseModel:
        """Return the same observations at another dispersion, shape (dispersions,)."""
        raise AssertionError("this family has no dispersion")


class _FamilyResponse(ResponseModel):
    """Observations of a family with a density in the mean, under any link."""

    canonical = False

    def __init__(
        self,
        family: Family,
        link: Link,
        y: Array,
        weights: Array,
        observed: bool = False,
        log_dispersion: float = 0.0,
    ) -> None:
        self._family, self._link, self._y, self._w, self._observed = family, link, y, weights, observed
        self.dispersion = float(np.exp(np.clip(log_dispersion, -LARGEST_LOG, LARGEST_LOG)))

    def with_dispersion(self, log_dispersion: Array) -> _FamilyResponse:
        (log_d,) = log_dispersion
        return type(self)(self._family, self._link, self._y, self._w, self._observed, float(log_d))

    def saturated(self) -> Array:
        return self._link.link(self._family.start(self._y, np.maximum(self._w, 1e-8)))

    def mean(self, eta: Array) -> Array:
        mu = self._link.inverse(eta)
        if self._family.takes_trials:
            return np.clip(mu, _EDGE, 1.0 - _EDGE)
        # Identity and power links can leave the range; the likelihood there is none.
        return np.maximum(mu, _EDGE) if self._link.name == "log" else mu

    def loglik(self, eta: Array) -> Array:
        return self._family.loglik(self._y, self.mean(eta), self._w, self.dispersion)

    def score(self, eta: Array) -> Array:
        slopes = self._family.slopes(self._y, self.mean(eta), self._w, self.dispersion)
        return np.asarray(slopes.first * self._link.slope(eta))

    def weight(self, eta: Array) -> Array:
        information, _ = self._family.information(self.mean(eta), self._w, self.dispersion)
        return np.asarray(information * self._link.slope(eta) ** 2)

    def observed(self, eta: Array) -> Array:
        slopes = self._family.slopes(self._y, self.mean(eta), self._w, self.dispersion)
        bend = slopes.first * self._link.curvature(eta)
        return np.asarray(-slopes.second * self._link.slope(eta) ** 2 - bend)

    def inside(self, eta: Array) -> Array:
        return self.observed(eta) if self._observed else self.weight(eta)

    def inside_slope(self, eta: Array) -> Array:
        mu, first, second = self.mean(eta), self._link.slope(eta), self._link.curvature(eta)
        if self._observed:
            slopes = self._family.slopes(self._y, mu, self._w, self.dispersion)
            bend = 3.0 * slopes.second * first * second + slopes.first * self._link.third(eta)
            return np.asarray(-slopes.third * first**3 - bend)
        information, slope = self._family.information(mu, self._w, self.dispersion)
        return np.asarray(slope * first**3 + 2.0 * information * first * second)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        slopes = self._family.by_dispersion(self._y, self.mean(eta), self._w, self.dispersion)
        first, second = self._link.slope(eta), self._link.curvature(eta)
        observed = -slopes.second * first**2 - slopes.first * second
        inside = observed if self._observed else slopes.information * first**2
        return slopes.loglik, slopes.first * first, np.asarray(inside)


class _CanonicalResponse(_FamilyResponse):
    """Binomial counts under the logit and Poisson counts under the log, where b' = mu gives all derivatives."""

    canonical = True

    def __init__(self, family: Family, link: Link, y: Array, weights: Array) -> None:
        super().__init__(family, link, y, weights)
        self._constant = -weights * special.gammaln(y + 1.0)
        if family.takes_trials:
            self._constant = log_choices(weights, weights * y, weights - weights * y)

    def loglik(self, eta: Array) -> Array:
        if self._family.takes_trials:
            cumulant = np.asarray(np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta))))
        else:
            cumulant = self._link.inverse(eta)
        return np.asarray(self._w * (self._y * eta - cumulant) + self._constant)

    def score(self, eta: Array) -> Array:
        return np.asarray(self._w * (self._y - self._link.inverse(eta)))

    def weight(self, eta: Array) -> Array:
        return np.asarray(self._w * self._link.slope(eta))

    observed = inside = weight

    def inside_slope(self, eta: Array) -> Array:
        return np.asarray(self._w * self._link.curvature(eta))


class ProfiledResponse(_FamilyResponse):
    """Gamma and inverse Gaussian observations under lme4's criterion, which is not a likelihood.

    ``glmer`` finds the mode at dispersion one, puts phi = D / sum(w), D the deviance of the conditional means, into the
    log-density, and adds |u|^2 without dividing it by phi (``Laplace`` and ``aic`` in lme4's glmFamily.cpp and
    respModule.cpp). The criterion depends on the unit of the response.
    """

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return lme4's criterion without the determinant and |u|^2, and its derivative with respect to eta."""
        family, y, w = self._family, self._y, self._w
        mu, unit_weights = self.mean(eta), np.ones_like(w)
        gap = family.loglik(y, y, w, 1.0) - family.loglik(y, mu, w, 1.0)
        phi = 2.0 * float(gap.sum()) / float(w.sum())
        value = -2.0 * float((w * family.loglik(y, mu, unit_weights, phi)).sum()) + 2.0
        by_phi = -2.0 * float((w * family.by_dispersion(y, mu, unit_weights, phi).loglik).sum()) / phi
        return value, -2.0 * self.score(eta) * (1.0 / phi + by_phi / float(w.sum()))

    def sigma(self, eta: Array, penalty: float) -> float:
        """Return lme4's ``sigma``: the root of (Pearson's statistic + |u|^2) / n."""
        mu = self.mean(eta)
        pearson = float((self._w * (self._y - mu) ** 2 / self._family.variance(mu)).sum())
        return float(np.sqrt((pearson + penalty) / len(mu)))


_BEYOND = 1e6
"""Replaces the infinite thresholds below the first category and above the last."""
_SMALLEST = 1e-300


class OrderedResponse(ResponseModel):
    """Ordered categories. Shapes: y (n,), weights (n,), log_gaps (J - 2,)."""

    def __init__(self, link: Link, y: Array, weights: Array, log_gaps: Array | None = None) -> None:
        self._link, self._y, self._w = link, y, weights
        self._category = y.astype(np.intp)
        if log_gaps is None:
            share = np.cumsum(np.bincount(self._category, weights))[:-1] / weights.sum()
            log_gaps = np.log(np.diff(link.link(share)))
        self.dispersion = log_gaps
        gaps = np.exp(log_gaps)
        above = np.tri(len(gaps) + 1, len(gaps), -1)
        # thresholds with mean zero, shape (J - 1,), and their derivatives by the log gaps, shape (J - 1, J - 2)
        self.slopes = (above - above.mean(axis=0)) * gaps
        self.thresholds = self.slopes.sum(axis=1)
        self._ends = np.concatenate([[-_BEYOND], self.thresholds, [_BEYOND]])
        self._eta: Array | None = None

    def with_dispersion(self, log_dispersion: Array) -> OrderedResponse:
        """Return the same observations at other log gaps."""
        return OrderedResponse(self._link, self._y, self._w, log_dispersion)

    def saturated(self) -> Array:
        """Return the middle of each row's category; two units beyond the thresholds at the ends."""
        inner = self.thresholds
        middles = [inner[0] - 2.0, *((low + high) / 2.0 for low, high in pairwise(inner)), inner[-1] + 2.0]
        return np.array(middles)[self._category]

    def _at(self, eta: Array) -> tuple[Array, Any, Any]:
        """Log P of P = F(u) - F(v), the probability of each row's category, and slopes of F at u and at v divided by P."""
        if self._eta is not eta:
            self._eta, link = eta, self._link
            u, v = self._ends[self._category + 1] - eta, self._ends[self._category] - eta
            p = np.maximum(probability_between(link, v, u), _SMALLEST)
            upper, lower = (
                (link.slope(end) / p, link.curvature(end) / p, link.third(end) / p) for end in (u, v)
            )
            self._piece = np.where(p > _SMALLEST, np.log(p), -np.inf), upper, lower
        return self._piece

    def loglik(self, eta: Array) -> Array:
        """Log-likelihood per observation."""
        return np.asarray(self._w * self._at(eta)[0])

    def score(self, eta: Array) -> Array:
        """First derivative of the log-likelihood with respect to eta."""
        _, (a, _, _), (b, _, _) = self._at(eta)
        return np.asarray(self._w * (b - a))

    def observed(self, eta: Array) -> Array:
        """Return the observed information."""
        _, (a, da, _), (b, db, _) = self._at(eta)
        return np.asarray(self._w * np.maximum((a - b) ** 2 - (da - db), 0.0))

    def inside_slope(self, eta: Array) -> Array:
        """Differentiate the information with respect to eta."""
        _, (a, da, dda), (b, db, ddb) = self._at(eta)
        r = a - b
        return np.asarray(self._w * ((dda - ddb) - 3.0 * r * (da - db) + 2.0 * r**3))

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """Differentiate log-likelihood, score and information with respect to the log gaps, shape (J - 2, n) each."""
        _, (a, da, dda), (b, db, ddb) = self._at(eta)
        r, bend = a - b, da - db
        by_upper = a, a * r - da, 2.0 * r * (da - a * r) - dda + a * bend
        by_lower = -b, db - b * r, 2.0 * r * (b * r - db) + ddb - b * bend
        zeros = np.zeros((1, len(self.dispersion)))
        moves = np.vstack([zeros, self.slopes, zeros])
        up, down = moves[self._category + 1].T, moves[self._category].T
        loglik, score, inside = (
            self._w * (up * above + down * below) for above, below in zip(by_upper, by_lower, strict=True)
        )
        return loglik, score, inside


def probability_between(link: Link, low: Array, high: Array) -> Array:
    """F(high) - F(low), from the upper tail where both lie there, so that no digits cancel."""

    def above(x: Array) -> Array:
        # All links but cloglog are symmetric.
        return np.exp(-np.exp(np.minimum(x, 700.0))) if link.name == "cloglog" else link.inverse(-x)

    return np.where(low > 0.0, above(low) - above(high), link.inverse(high) - link.inverse(low))


def _table(terms: Any, estimate: Array, se: Array, low: Array, high: Array) -> pd.DataFrame:
    return pd.DataFrame({"term": terms, "estimate": estimate, "se": se, "ci_low": low, "ci_high": high})


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Cut points of the latent scale, with what later steps need."""

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
        return _table(names, estimate, se, estimate - half, estimate + half)

    @property
    def scores(self) -> Array:
        """Numbers that the categories stand for, shape (J,): their own, or 1 to J where they are words."""
        try:
            return np.array([float(name) for name in self.categories])
        except ValueError:
            return np.arange(1.0, len(self.categories) + 1.0)

    def probabilities(self, eta: Array) -> tuple[Array, Array, Array]:
        """Probability of every category at eta (m,), shape (m, J); derivatives by eta (m, J), by log gaps (m, J, J - 2)."""
        ends = np.concatenate([[-_BEYOND], self.centred, [_BEYOND]])[None, :] - eta[:, None]
        density = self.link.slope(ends)
        zeros = np.zeros((1, self.slopes.shape[1]))
        moved = density[:, :, None] * np.vstack([zeros, self.slopes, zeros])
        probabilities = probability_between(self.link, ends[:, :-1], ends[:, 1:])
        return probabilities, -np.diff(density, axis=1), np.diff(moved, axis=1)


class TimeResponse(ResponseModel):
    """Response times; weights multiply the log-likelihood. Shapes: y, weights (n,), searched (2,)."""

    terms: tuple[str, str]

    def __init__(self, y: Array, weights: Array, searched: Array | None = None) -> None:
        self._y, self._w = y, weights
        self.dispersion = np.clip(self._guess() if searched is None else searched, -LARGEST_LOG, LARGEST_LOG)
        self.sigma = float(np.exp(self.dispersion[0]))
        self._take(float(self.dispersion[1]))

    def with_dispersion(self, log_dispersion: Array) -> TimeResponse:
        """Return the same times at other parameters."""
        return type(self)(self._y, self._w, log_dispersion)

    @abstractmethod
    def _guess(self) -> Array: ...

    @abstractmethod
    def _take(self, second: float) -> None: ...

    @property
    @abstractmethod
    def natural(self) -> tuple[Array, Array]:
        """The parameters as they are reported, and their derivatives by those searched for; shape (2,) each."""

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
    def notes(self) -> list[Note]:
        """Report where the data do not determine the second parameter."""


class _ShiftedLognormal(TimeResponse):
    terms = ("sigma", "ndt")

    def _guess(self) -> Array:
        # The likelihood is unbounded as the shift reaches the fastest time (Hill 1963); the maximum wanted is the one inside.
        candidates = []
        for share in np.linspace(0.05, 0.95, 19):
            log = np.log(self._y - share * self._y.min())
            mean = np.average(log, weights=self._w)
            log_sd = 0.5 * np.log(np.average((log - mean) ** 2, weights=self._w))
            candidates.append((log_sd + mean, log_sd, special.logit(share)))
        return np.array(min(candidates)[1:])

    def _take(self, second: float) -> None:
        least = float(self._y.min())
        self._rise = least * float(special.expit(second) * special.expit(-second))
        self.shift = least * float(special.expit(second))
        self._above = (self._y - least) + least * float(special.expit(-second))
        self._log = np.log(self._above)

    @property
    def natural(self) -> tuple[Array, Array]:
        return np.array([self.sigma, self.shift]), np.array([self.sigma, self._rise])

    def saturated(self) -> Array:
        return self._log

    def loglik(self, eta: Array) -> Array:
        return np.asarray(self._w * (stats.norm.logpdf(self._log, eta, self.sigma) - self._log))

    def score(self, eta: Array) -> Array:
        return np.asarray(self._w * (self._log - eta) / self.sigma**2)

    def observed(self, eta: Array) -> Array:
        return self._w / self.sigma**2

    def inside_slope(self, eta: Array) -> Array:
        return np.zeros_like(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        e, precision = (self._log - eta) / self.sigma, self.sigma**-2
        moved = self._rise / self._above
        return (
            self._w * np.stack([e**2 - 1.0, (1.0 + e / self.sigma) * moved]),
            self._w * np.stack([-2.0 * e / self.sigma, -precision * moved]),
            self._w * np.stack([np.full_like(e, -2.0 * precision), np.zeros_like(e)]),
        )

    def mean(self, eta: Array) -> tuple[Array, Array, Array]:
        above = np.exp(eta + self.sigma**2 / 2.0)
        return self.shift + above, above, np.stack([self.sigma**2 * above, np.full_like(eta, self._rise)], 1)

    def variance(self, eta: Array) -> Array:
        return np.asarray(np.expm1(self.sigma**2) * np.exp(2.0 * eta + self.sigma**2))

    def draw(self, rng: np.random.Generator, eta: Array) -> Array:
        return np.asarray(self.shift + rng.lognormal(eta, self.sigma))

    def notes(self) -> list[Note]:
        share = self.shift / float(self._y.min())
        if 0.01 <= share <= 0.999:
            return []
        end = "zero, so a lognormal model without shift fits as well"
        end = end if share < 0.01 else "the fastest response"
        return [Note("shift_at_end", shift=self.shift, end=end)]


class _ExGaussian(TimeResponse):
    terms = ("sigma", "beta")

    def _guess(self) -> Array:
        mean = np.average(self._y, weights=self._w)
        sd = float(np.sqrt(np.average((self._y - mean) ** 2, weights=self._w)))
        skew = float(np.average(((self._y - mean) / sd) ** 3, weights=self._w))
        share = np.clip(np.cbrt(skew / 2.0), 0.3, 0.95)
        return np.log(sd * np.array([np.sqrt(1.0 - share**2), share]))

    def _take(self, second: float) -> None:
        # Bounds of sigma / beta beyond which the distribution is as good as normal, or exponential.
        self.k = float(np.clip(self.sigma / np.exp(second), 1e-3, 1e3))
        self.beta = self.sigma / self.k
        self._eta: Array | None = None

    @property
    def natural(self) -> tuple[Array, Array]:
        return np.array([self.sigma, self.beta]), np.array([self.sigma, self.beta])

    def saturated(self) -> Array:
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
        # below the normal's reach from erfcx, so that no terms cancel
        r, k = self._at(eta)[0], self.k
        z = r - k
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            low = np.log(special.erfcx(-z / np.sqrt(2.0)) / 2.0) - r**2 / 2.0
            log_density = np.where(z < 0.0, low, k**2 / 2.0 - r * k + special.log_ndtr(z))
        return np.asarray(self._w * (log_density - np.log(self.beta)))

    def score(self, eta: Array) -> Array:
        return np.asarray(self._w * (self.k - self._at(eta)[1]) / self.sigma)

    def observed(self, eta: Array) -> Array:
        return np.asarray(self._w * np.maximum(-self._at(eta)[2], 0.0) / self.sigma**2)

    def inside_slope(self, eta: Array) -> Array:
        return np.asarray(self._w * self._at(eta)[3] / self.sigma**3)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        (r, h, h1, h2), k, sigma = self._at(eta), self.k, self.sigma
        up, both = r + k, 1.0 / k + k
        return (
            self._w * np.stack([k**2 - h * up, h * both + r * k - k**2 - 2.0]),
            self._w * np.stack([h + h1 * up, -k - h1 * both]) / sigma,
            self._w * np.stack([h2 * up + 2.0 * h1, -h2 * both]) / sigma**2,
        )

    def mean(self, eta: Array) -> tuple[Array, Array, Array]:
        return eta, np.ones_like(eta), np.zeros((len(eta), 2))

    def variance(self, eta: Array) -> Array:
        return np.full_like(eta, self.sigma**2 + self.beta**2)

    def draw(self, rng: np.random.Generator, eta: Array) -> Array:
        n = len(eta)
        return np.asarray(eta + self.sigma * rng.normal(size=n) + self.beta * (rng.exponential(size=n) - 1.0))

    def notes(self) -> list[Note]:
        if 0.05 <= self.k <= 20.0:
            return []
        which = "normal, and the gaussian family fits as well" if self.k > 1.0 else "a shifted exponential"
        return [Note("simpler_times", sigma=self.sigma, beta=self.beta, which=which)]


TIME_RESPONSES: dict[str, type[TimeResponse]] = {
    "shifted_lognormal": _ShiftedLognormal,
    "exgaussian": _ExGaussian,
}


@dataclass(frozen=True, eq=False)
class Shape:
    """The fitted distribution of times; ``vcov`` (2 + p, 2 + p) is of the parameters searched for and the coefficients."""

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
        low, high = (response.with_dispersion(response.dispersion + side * half) for side in (-1.0, 1.0))
        return _table(response.terms, estimate, slope * searched_se, low.natural[0], high.natural[0])


def make_response(
    family: Family, link: Link, y: Array, weights: Array, observed: bool = False, profiled: bool = False
) -> ResponseModel:
    """Tie a family and a link to the observations. Shapes: y (n,), weights (n,)."""
    if family.name == "ordinal":
        return OrderedResponse(link, y, weights)
    if family.name in TIME_RESPONSES:
        return TIME_RESPONSES[family.name](y, weights)
    if (family.name, link.name) in {("binomial", "logit"), ("poisson", "log")}:
        return _CanonicalResponse(family, link, y, weights)
    return (ProfiledResponse if profiled else _FamilyResponse)(family, link, y, weights, observed)


_TAKES = {
    "poisson": "counts 0, 1, 2, …",
    "negative.binomial": "counts 0, 1, 2, …",
    "Gamma": "numbers above zero",
    "inverse.gaussian": "numbers above zero",
    "shifted_lognormal": "response times above zero",
    "exgaussian": "response times above zero",
    "binomial": "0 and 1, proportions with weights, or cbind(success, failure)",
    "betabinomial": "proportions with weights, or cbind(success, failure)",
}


def check_response(family: Family, y: Array, weights: Array | None, label: str) -> None:
    """Refuse observations that the family cannot have produced."""
    name = family.name

    def refuse(bad: Mask, mend: str | None = None, rule: str | None = None) -> None:
        if bad.any():
            rule = rule or f"the {name} family takes {_TAKES[name]}"
            raise UserError(
                f"response {label!r} holds {y[bad][0]:g} in {int(bad.sum())} of {len(y)} rows; {rule}",
                mend=mend,
            )

    is_count = name in {"poisson", "negative.binomial"}
    if is_count:
        rates = "For rates, give the counts and put the exposure into offset(log(exposure))."
        refuse((y < 0) | (y != np.round(y)), rates)
    if family.positive or family.dispersion == "shape":
        refuse(
            y <= 0,
            "Leave out the rows that are no times (0 often codes a missing answer), or choose another family.",
        )
    if family.takes_trials:
        refuse((y < 0) | (y > 1))
        w = np.ones_like(y) if weights is None else weights
        refuse(
            np.abs(w * y - np.round(w * y)) > 1e-3,
            "Give the number of trials per row as weights, or write cbind(success, failure).",
            "that is no whole number of successes",
        )
        if name == "betabinomial" and np.round(w).max(initial=0.0) < 2.0:
            raise UserError(
                f"response {label!r} has one trial in every row; the betabinomial family needs counts of several trials",
                mend="Choose the binomial family, or count successes and failures per participant and condition.",
            )
    categories = int(y.max()) + 1 if name == "ordinal" else 2
    if not 2 <= categories <= MOST_CATEGORIES:
        raise UserError(
            f"response {label!r} has {categories} different value{'' if categories == 1 else 's'}; "
            f"an ordinal model takes 2 to {MOST_CATEGORIES} ordered categories",
            mend="Cut it into categories, for example cut(x, 5), or choose another family."
            if categories > 1
            else "A response that never varies leaves nothing to explain.",
        )
    says_nothing = (0.0, 1.0) if family.takes_trials else (0.0,) if is_count else None
    if len(y) > 0 and np.ptp(y) == 0 and (says_nothing is None or y[0] in says_nothing):
        raise UserError(f"response {label!r} is {y[0]:g} in every row; there is nothing to explain")
