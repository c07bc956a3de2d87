"""Observations under a family and a link: what the Laplace engine asks of a response at a linear predictor.

By the chain rule through mu (McCullagh and Nelder 1989, section 2.5), with l the log-density and ' the derivative with
respect to eta: l' = l_mu mu', l'' = l_mumu mu'^2 + l_mu mu'', and so on. The expected information is the working weight
of iterated least squares. The determinant of the Laplace approximation holds the expected information as lme4 takes it,
or the observed one as glmmTMB and the textbook take it; for canonical links they are the same.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stimuli.errors import UserError

from .families import Family
from .links import Link
from .ordered import OrderedResponse
from .times import TIMES, time_response

Array = NDArray[np.float64]

_EDGE = float(np.finfo(float).eps)
LARGEST_LOG = 40.0
"""Log dispersions beyond this are as good as infinite."""
MOST_CATEGORIES = 50
"""Most categories of an ordered response."""


class Response(Protocol):
    """What the Laplace engine asks of the observations; every array has shape (n,)."""

    canonical: bool

    @property
    def dispersion(self) -> Any:
        """The dispersion, a number; of ordered responses the log gaps between thresholds; of times see ``times``."""

    def saturated(self) -> Array:
        """Return the linear predictor of a model that nearly fits each observation."""

    def loglik(self, eta: Array) -> Array:
        """Log-likelihood per observation, all constants in."""

    def score(self, eta: Array) -> Array:
        """First derivative of the log-likelihood with respect to eta."""

    def weight(self, eta: Array) -> Array:
        """Return the expected information, the working weight of iterated least squares."""

    def observed(self, eta: Array) -> Array:
        """Minus the second derivative of the log-likelihood; equals ``weight`` for a canonical link."""

    def inside(self, eta: Array) -> Array:
        """Return the information that the Laplace determinant holds: ``weight`` or ``observed``."""

    def inside_slope(self, eta: Array) -> Array:
        """Differentiate ``inside`` with respect to eta."""

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return -2 log-likelihood of the model at the mode, and its derivative with respect to eta."""

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        """Differentiate log-likelihood, score and ``inside`` with respect to the log dispersion, or each of them."""

    def with_dispersion(self, log_dispersion: Array) -> Response:
        """Return the same observations at another dispersion, shape (dispersions,)."""


class _CanonicalResponse:
    """Binomial counts under the logit and Poisson counts under the log, where b' = mu gives all derivatives."""

    canonical = True
    dispersion = 1.0

    def __init__(self, family: Family, link: Link, y: Array, weights: Array) -> None:
        self._family, self._link, self._y, self._w = family, link, y, weights
        self._binary = family.name == "binomial"
        if self._binary:
            success = weights * y
            self._constant = special.gammaln(weights + 1.0) - special.gammaln(success + 1.0)
            self._constant = self._constant - special.gammaln(weights - success + 1.0)
        else:
            self._constant = -weights * special.gammaln(y + 1.0)

    def saturated(self) -> Array:
        return _nearly_fitting(self._family, self._link, self._y, self._w)

    def _cumulant(self, eta: Array) -> Array:
        if self._binary:
            return np.asarray(np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta))))
        return self._link.inverse(eta)

    def loglik(self, eta: Array) -> Array:
        return np.asarray(self._w * (self._y * eta - self._cumulant(eta)) + self._constant)

    def score(self, eta: Array) -> Array:
        return np.asarray(self._w * (self._y - self._link.inverse(eta)))

    def weight(self, eta: Array) -> Array:
        return np.asarray(self._w * self._link.slope(eta))

    def observed(self, eta: Array) -> Array:
        return self.weight(eta)

    def inside(self, eta: Array) -> Array:
        return self.weight(eta)

    def inside_slope(self, eta: Array) -> Array:
        return np.asarray(self._w * self._link.curvature(eta))

    def deviance(self, eta: Array) -> tuple[float, Array]:
        return -2.0 * float(self.loglik(eta).sum()), -2.0 * self.score(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        raise AssertionError("these families have no dispersion")

    def with_dispersion(self, log_dispersion: Array) -> Response:
        raise AssertionError("these families have no dispersion")


def _nearly_fitting(family: Family, link: Link, y: Array, weights: Array) -> Array:
    return link.link(family.start(y, np.maximum(weights, 1e-8)))


class _GeneralResponse:
    """Observations of any family under any link. Shapes: y, weights (n,)."""

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

    def with_dispersion(self, log_dispersion: Array) -> _GeneralResponse:
        (log_d,) = log_dispersion
        return type(self)(self._family, self._link, self._y, self._w, self._observed, float(log_d))

    def saturated(self) -> Array:
        return _nearly_fitting(self._family, self._link, self._y, self._w)

    def mean(self, eta: Array) -> Array:
        mu = self._link.inverse(eta)
        if self._family.takes_trials:
            return np.clip(mu, _EDGE, 1.0 - _EDGE)
        # Identity and power links can leave the range; the likelihood there is none.
        return np.maximum(mu, _EDGE) if self._link.name == "log" else mu

    def loglik(self, eta: Array) -> Array:
        mu = self.mean(eta)
        return np.asarray(self._family.density.loglik(self._y, mu, self._w, self.dispersion))

    def score(self, eta: Array) -> Array:
        slopes = self._family.density.slopes(self._y, self.mean(eta), self._w, self.dispersion)
        return np.asarray(slopes.first * self._link.slope(eta))

    def weight(self, eta: Array) -> Array:
        information, _ = self._family.density.information(self.mean(eta), self._w, self.dispersion)
        return np.asarray(information * self._link.slope(eta) ** 2)

    def observed(self, eta: Array) -> Array:
        slopes = self._family.density.slopes(self._y, self.mean(eta), self._w, self.dispersion)
        return np.asarray(
            -slopes.second * self._link.slope(eta) ** 2 - slopes.first * self._link.curvature(eta)
        )

    def inside(self, eta: Array) -> Array:
        return self.observed(eta) if self._observed else self.weight(eta)

    def inside_slope(self, eta: Array) -> Array:
        mu, first, second = self.mean(eta), self._link.slope(eta), self._link.curvature(eta)
        if self._observed:
            slopes = self._family.density.slopes(self._y, mu, self._w, self.dispersion)
            bend = 3.0 * slopes.second * first * second + slopes.first * self._link.third(eta)
            return np.asarray(-slopes.third * first**3 - bend)
        information, slope = self._family.density.information(mu, self._w, self.dispersion)
        return np.asarray(slope * first**3 + 2.0 * information * first * second)

    def deviance(self, eta: Array) -> tuple[float, Array]:
        return -2.0 * float(self.loglik(eta).sum()), -2.0 * self.score(eta)

    def by_dispersion(self, eta: Array) -> tuple[Array, Array, Array]:
        dispersion = self._family.density.dispersion
        if dispersion is None:
            raise AssertionError(f"the {self._family.name} family has no dispersion")
        found = dispersion(self._y, self.mean(eta), self._w, self.dispersion)
        first, second = self._link.slope(eta), self._link.curvature(eta)
        inside = (
            -found.second * first**2 - found.first * second
            if self._observed
            else found.information * first**2
        )
        return found.loglik, found.first * first, np.asarray(inside)


class ProfiledResponse(_GeneralResponse):
    """Gamma and inverse Gaussian observations under lme4's criterion, which is no likelihood.

    ``glmer`` finds the mode at dispersion one, puts phi = D / sum(w), D the deviance of the conditional means, into the
    log-density, and adds |u|^2 without dividing it by phi (``Laplace`` and ``aic`` in lme4's glmFamily.cpp and
    respModule.cpp). The criterion depends on the unit of the response.
    """

    def deviance(self, eta: Array) -> tuple[float, Array]:
        """Return lme4's criterion without the determinant and |u|^2, and its derivative with respect to eta."""
        density, y, w = self._family.density, self._y, self._w
        mu = self.mean(eta)
        gap = density.loglik(y, y, w, 1.0) - density.loglik(y, mu, w, 1.0)
        phi = 2.0 * float(gap.sum()) / float(w.sum())
        assert density.dispersion is not None
        one = np.ones_like(w)
        value = -2.0 * float((w * density.loglik(y, mu, one, phi)).sum()) + 2.0
        by_phi = -2.0 * float((w * density.dispersion(y, mu, one, phi).loglik).sum()) / phi
        return value, -2.0 * self.score(eta) * (1.0 / phi + by_phi / float(w.sum()))

    def sigma(self, eta: Array, penalty: float) -> float:
        """Return lme4's ``sigma``: the root of (Pearson's statistic + |u|^2) / n."""
        mu = self.mean(eta)
        pearson = float((self._w * (self._y - mu) ** 2 / self._family.variance(mu)).sum())
        return float(np.sqrt((pearson + penalty) / len(mu)))


def make_response(
    family: Family, link: Link, y: Array, weights: Array, observed: bool = False, profiled: bool = False
) -> Response:
    """Tie a family and a link to the observations. Shapes: y (n,), weights (n,)."""
    if family.name == "ordinal":
        return OrderedResponse(link, y, weights)
    if family.name in TIMES:
        return time_response(family.name, y, weights)
    if (family.name, link.name) in {("binomial", "logit"), ("poisson", "log")}:
        return _CanonicalResponse(family, link, y, weights)
    kind = ProfiledResponse if profiled else _GeneralResponse
    return kind(family, link, y, weights, observed)


_RANGES = {
    "poisson": "the poisson family takes counts 0, 1, 2, …",
    "negative.binomial": "the negative.binomial family takes counts 0, 1, 2, …",
    "Gamma": "the Gamma family takes numbers above zero",
    "inverse.gaussian": "the inverse.gaussian family takes numbers above zero",
    "shifted_lognormal": "the shifted_lognormal family takes response times above zero",
    "exgaussian": "the exgaussian family takes response times above zero",
    "binomial": "the binomial family takes 0 and 1, proportions with weights, or cbind(success, failure)",
    "betabinomial": "the betabinomial family takes proportions with weights, or cbind(success, failure)",
}


def check_response(family: Family, y: Array, weights: Array | None, label: str) -> None:
    """Refuse observations that the family cannot have produced."""

    def refuse(bad: NDArray[np.bool_], rule: str, mend: str | None = None) -> None:
        if bad.any():
            raise UserError(
                f"response {label!r} holds {y[bad][0]:g} in {int(bad.sum())} of {len(y)} rows; {rule}",
                mend=mend,
            )

    name = family.name
    if name in {"poisson", "negative.binomial"}:
        refuse(
            (y < 0) | (y != np.round(y)),
            _RANGES[name],
            "For rates, give the counts and put the exposure into offset(log(exposure)).",
        )
    if name in {"Gamma", "inverse.gaussian", *TIMES}:
        refuse(
            y <= 0,
            _RANGES[name],
            "Leave out the rows that are no times (0 often codes a missing answer), or choose another family.",
        )
    if family.takes_trials:
        refuse((y < 0) | (y > 1), _RANGES[name])
        w = np.ones_like(y) if weights is None else weights
        success = w * y
        refuse(
            np.abs(success - np.round(success)) > 1e-3,
            "that is no whole number of successes",
            "Give the number of trials per row as weights, or write cbind(success, failure).",
        )
        if name == "betabinomial" and np.round(w).max(initial=0.0) < 2.0:
            raise UserError(
                f"response {label!r} has one trial in every row; the betabinomial family needs counts of several trials",
                mend="Choose the binomial family, or count successes and failures per participant and condition.",
            )
    if name == "ordinal":
        categories = int(y.max()) + 1
        if not 2 <= categories <= MOST_CATEGORIES:
            raise UserError(
                f"response {label!r} has {categories} different value{'' if categories == 1 else 's'}; "
                f"an ordinal model takes 2 to {MOST_CATEGORIES} ordered categories",
                mend="Cut it into categories, for example cut(x, 5), or choose another family."
                if categories > 1
                else "A response that never varies leaves nothing to explain.",
            )
    constant = len(y) > 0 and np.ptp(y) == 0
    says_nothing = {
        "poisson": (0.0,),
        "negative.binomial": (0.0,),
        "binomial": (0.0, 1.0),
        "betabinomial": (0.0, 1.0),
    }.get(name)
    if constant and (says_nothing is None or y[0] in says_nothing):
        raise UserError(f"response {label!r} is {y[0]:g} in every row; there is nothing to explain")
