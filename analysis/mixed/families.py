"""Response families of generalised linear mixed models, as densities in the mean.

A family says its log-density, the derivatives with respect to the mean, the expected information and, where it has a
dispersion, the derivatives with respect to the log of that; ``responses`` joins these to a link by the chain rule. A new
family is one more entry in ``FAMILIES``.

The dispersion d is phi of the Gamma and inverse Gaussian (variance phi V(mu) / w), theta of the negative binomial
(variance mu + mu^2 / theta) and the precision of the beta-binomial, the sum of the beta distribution's parameters; the
other families have none, and d is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stimuli.errors import unknown_name

from .links import LINKS, Link, read_link
from .times import TIMES

Array = NDArray[np.float64]

__all__ = ["FAMILIES", "LINKS", "Density", "Family", "Link", "choose_family"]


@dataclass(frozen=True)
class Slopes:
    """Derivatives of a log-density with respect to mu, each of shape (n,)."""

    first: Array
    second: Array
    third: Array


@dataclass(frozen=True)
class DispersionSlopes:
    """Derivatives with respect to log d: of the log-density, of its first two slopes in mu, of the information."""

    loglik: Array
    first: Array
    second: Array
    information: Array


@dataclass(frozen=True)
class Density:
    """The log-density of a family as a function of y, mu, prior weights w and dispersion d; arrays have shape (n,)."""

    loglik: Callable[[Array, Array, Array, float], Array]  # (y, mu, w, d) -> log-density, all constants in
    slopes: Callable[[Array, Array, Array, float], Slopes]  # (y, mu, w, d) -> ``Slopes``
    # (mu, w, d) -> expected information about mu and its derivative with respect to mu
    information: Callable[[Array, Array, float], tuple[Array, Array]]
    # (y, mu, w, d) -> ``DispersionSlopes``
    dispersion: Callable[[Array, Array, Array, float], DispersionSlopes] | None = None


@dataclass(frozen=True)
class Family:
    """A family of response distributions."""

    name: str  # R's name
    links: tuple[str, ...]  # links that can be fitted, the canonical one (R's default) first
    # (mu, d) -> V(mu), to be multiplied by phi and divided by the prior weight
    variance: Callable[..., Array]
    start: Callable[[Array, Array], Array]  # (y, w) -> a first guess of mu, inside the family's range
    density: Density  # the log-density and its derivatives
    # what is estimated beside the coefficients; None for the linear model too, which profiles sigma out
    dispersion: str | None = None
    positive: bool = False  # whether means are above zero
    takes_trials: bool = False  # whether a response is the share of successes among trials
    # whether this is the linear mixed model, with a residual standard deviation that is profiled out
    has_scale: bool = False

    def __reduce__(self) -> tuple[Callable[[str, bool], Family], tuple[str, bool]]:
        """Travel to other processes by name, as functions without one cannot."""
        return _named_family, (self.name, self.has_scale)


def _named_family(name: str, has_scale: bool) -> Family:
    return CURVED_GAUSSIAN if name == "gaussian" and not has_scale else FAMILIES[name]


def _binomial() -> Density:
    def loglik(y: Array, mu: Array, w: Array, d: float) -> Array:
        success = w * y
        constant = special.gammaln(w + 1.0) - special.gammaln(success + 1.0)
        constant = constant - special.gammaln(w - success + 1.0)
        return np.asarray(w * (special.xlogy(y, mu) + special.xlog1py(1.0 - y, -mu)) + constant)

    def slopes(y: Array, mu: Array, w: Array, d: float) -> Slopes:
        rest, failure = 1.0 - mu, 1.0 - y
        return Slopes(
            w * (y / mu - failure / rest),
            -w * (y / mu**2 + failure / rest**2),
            2.0 * w * (y / mu**3 - failure / rest**3),
        )

    def information(mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        v = mu * (1.0 - mu)
        return w / v, -w * (1.0 - 2.0 * mu) / v**2

    return Density(loglik, slopes, information)


def _poisson() -> Density:
    return Density(
        lambda y, mu, w, d: w * (special.xlogy(y, mu) - mu - special.gammaln(y + 1.0)),
        lambda y, mu, w, d: Slopes(w * (y / mu - 1.0), -w * y / mu**2, 2.0 * w * y / mu**3),
        lambda mu, w, d: (w / mu, -w / mu**2),
    )


def _negative_binomial() -> Density:
    # Variance mu + mu^2 / theta (Venables and Ripley 2002, section 7.4; MASS::negative.binomial).

    def loglik(y: Array, mu: Array, w: Array, d: float) -> Array:
        # log choose(y + d - 1, y), which as a difference of log-gammas would lose digits where theta is large.
        choose = -special.betaln(d, y + 1.0) - np.log(y + d)
        return np.asarray(w * (choose + special.xlogy(y, mu / (mu + d)) - d * np.log1p(mu / d)))

    def slopes(y: Array, mu: Array, w: Array, d: float) -> Slopes:
        both = mu + d
        return Slopes(
            w * d * (y - mu) / (mu * both),
            w * ((y + d) / both**2 - y / mu**2),
            2.0 * w * (y / mu**3 - (y + d) / both**3),
        )

    def information(mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        v = mu + mu**2 / d
        return w / v, -w * (1.0 + 2.0 * mu / d) / v**2

    def dispersion(y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        both = mu + d
        rise = special.digamma(y + d) - special.digamma(d)
        if d > 1e4:
            # The difference loses its digits where d is large, as for counts that are nearly Poisson; its series does not.
            rise = np.log1p(y / d) + y / (2.0 * d * (d + y)) + (1.0 / d**2 - 1.0 / (d + y) ** 2) / 12.0
        return DispersionSlopes(
            w * d * (rise - np.log1p(mu / d) + (mu - y) / both),
            w * d * (y - mu) / both**2,
            w * d * (mu - 2.0 * y - d) / both**3,
            w * d / both**2,
        )

    return Density(loglik, slopes, information, dispersion)


def _elsewhere(*_: Any) -> Any:
    raise AssertionError(
        "ordered.OrderedResponse and times.TimeResponse have the likelihoods of these families"
    )


def _beta_binomial() -> Density:
    # With r = 1 / d: P(s of n) = choose(n, s) prod_{k<s} (mu + k r) prod_{k<n-s} (1 - mu + k r) / prod_{k<n} (1 + k r), which
    # loses no digits where d is large, as differences of log-gammas would.

    def rungs(count: Array, base: Array, step: float) -> tuple[NDArray[np.intp], Array, Array]:
        many = np.round(count).astype(np.intp)
        rows = np.repeat(np.arange(len(many)), many)
        k = (np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)).astype(float)
        return rows, k, base[rows] + k * step

    def both(
        y: Array, mu: Array, w: Array, d: float, term: Callable[[Array, Array], Array]
    ) -> tuple[Array, Array]:
        found = []
        for count, base in ((w * y, mu), (w - w * y, 1.0 - mu)):
            rows, k, rung = rungs(count, base, 1.0 / d)
            found.append(np.asarray(np.bincount(rows, term(k, rung), len(y)), dtype=float))
        return found[0], found[1]

    def loglik(y: Array, mu: Array, w: Array, d: float) -> Array:
        choose = special.gammaln(w + 1.0) - special.gammaln(w * y + 1.0) - special.gammaln(w - w * y + 1.0)
        rows, _, rung = rungs(w, np.ones_like(mu), 1.0 / d)
        return np.asarray(
            choose + sum(both(y, mu, w, d, lambda k, v: np.log(v))) - np.bincount(rows, np.log(rung), len(y))
        )

    def slopes(y: Array, mu: Array, w: Array, d: float) -> Slopes:
        (s1, f1), (s2, f2), (s3, f3) = (
            both(y, mu, w, d, lambda k, v, power=power: v**-power)  # type: ignore[misc]
            for power in (1.0, 2.0, 3.0)
        )
        return Slopes(s1 - f1, -s2 - f2, 2.0 * (s3 - f3))

    def information(mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        # That of the mean and variance, a little below Fisher's; it only guides the search.
        v = mu * (1.0 - mu)
        i = w / (v * (1.0 + (w - 1.0) / (1.0 + d)))
        return i, -i * (1.0 - 2.0 * mu) / v

    def dispersion(y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        (s1, f1), (s2, f2), (s3, f3) = (
            both(y, mu, w, d, lambda k, v, power=power: k * v**-power)  # type: ignore[misc]
            for power in (1.0, 2.0, 3.0)
        )
        rows, k, rung = rungs(w, np.ones_like(mu), 1.0 / d)
        more = (w - 1.0) / (1.0 + d)
        return DispersionSlopes(
            -(s1 + f1 - np.bincount(rows, k / rung, len(y))) / d,
            (s2 - f2) / d,
            -2.0 * (s3 + f3) / d,
            information(mu, w, d)[0] * more / (1.0 + more) * d / (1.0 + d),
        )

    return Density(loglik, slopes, information, dispersion)


def _precision(
    power: float, kernel: Callable[[Array, Array, Array], tuple[Array, Array]], positive: bool = True
) -> Density:
    """Make an exponential dispersion family of precision a = w / phi and variance function mu^power.

    ``kernel`` is (y, mu, a) -> log-density and its derivative with respect to log a; the derivative with respect to mu
    is a (y - mu) / mu^power. ``positive`` tells whether means must be above zero.
    """

    def slopes(y: Array, mu: Array, w: Array, d: float) -> Slopes:
        a = w / d * mu**-power
        if not power:
            return Slopes(a * (y - mu), -a, np.zeros_like(mu))
        gap = (y - mu) / mu
        return Slopes(
            a * (y - mu),
            -a * (1.0 + power * gap),
            a / mu * power * (2.0 + (power + 1.0) * gap),
        )

    def information(mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        i = w / d * mu**-power
        return i, -power * i / mu if power else np.zeros_like(mu)

    def dispersion(y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        # All slopes in mu are proportional to a, and d log a = -d log phi.
        found = slopes(y, mu, w, d)
        with np.errstate(invalid="ignore"):
            by_log = kernel(y, mu, w / d)[1]
        return DispersionSlopes(-by_log, -found.first, -found.second, -information(mu, w, d)[0])

    def loglik(y: Array, mu: Array, w: Array, d: float) -> Array:
        # A mean outside the range is refused by the search, as any point without a likelihood; so is one so near the
        # end of the range that a term overflows.
        possible = mu > 0.0 if positive else np.isfinite(mu)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = kernel(y, np.where(possible, mu, 1.0), w / d)[0]
        return np.where(possible & ~np.isnan(found), found, -np.inf)

    return Density(loglik, slopes, information, dispersion)


def _gaussian_kernel(y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
    half = a * (y - mu) ** 2 / 2.0
    return 0.5 * np.log(a / (2.0 * np.pi)) - half, 0.5 - half


def _gamma_kernel(y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
    ratio = y / mu
    shape = 1.0 + np.log(ratio) - ratio
    return (
        a * shape + (a * np.log(a) - a - special.gammaln(a)) - np.log(y),
        a * (shape + np.log(a) - special.digamma(a)),
    )


def _inverse_gaussian_kernel(y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
    # The squares bound the search: past 1e154 they are no number, and a mean is refused where its score would vanish.
    half = a * (y - mu) ** 2 / (2.0 * mu**2 * y)
    return 0.5 * np.log(a / (2.0 * np.pi * y**3)) - half, 0.5 - half


FAMILIES: Mapping[str, Family] = {
    "gaussian": Family(
        "gaussian",
        ("identity", "log", "inverse"),
        lambda mu, d=1.0: np.ones_like(mu),
        lambda y, w: y,
        _precision(0.0, _gaussian_kernel, positive=False),
        has_scale=True,
    ),
    "binomial": Family(
        "binomial",
        ("logit", "probit", "cloglog"),
        lambda mu, d=1.0: mu * (1.0 - mu),
        lambda y, w: (w * y + 0.5) / (w + 1.0),
        _binomial(),
        takes_trials=True,
    ),
    "betabinomial": Family(
        "betabinomial",
        ("logit", "probit", "cloglog"),
        lambda mu, d=1.0: mu * (1.0 - mu),
        lambda y, w: (w * y + 0.5) / (w + 1.0),
        _beta_binomial(),
        "precision",
        takes_trials=True,
    ),
    "poisson": Family(
        "poisson",
        ("log",),
        lambda mu, d=1.0: np.asarray(mu, dtype=float),
        lambda y, w: y + 0.1,
        _poisson(),
    ),
    "negative.binomial": Family(
        "negative.binomial",
        ("log",),
        lambda mu, d=1.0: mu + mu**2 / d,
        lambda y, w: y + 0.1,
        _negative_binomial(),
        "theta",
    ),
    "Gamma": Family(
        "Gamma",
        ("inverse", "identity", "log"),
        lambda mu, d=1.0: mu**2,
        lambda y, w: y,
        _precision(2.0, _gamma_kernel),
        "phi",
        positive=True,
    ),
    "inverse.gaussian": Family(
        "inverse.gaussian",
        ("1/mu^2", "identity", "log", "inverse"),
        lambda mu, d=1.0: mu**3,
        lambda y, w: y,
        _precision(3.0, _inverse_gaussian_kernel),
        "phi",
        positive=True,
    ),
    "ordinal": Family(
        "ordinal",
        ("logit", "probit", "cloglog"),
        _elsewhere,
        _elsewhere,
        Density(_elsewhere, _elsewhere, _elsewhere),
        "thresholds",
    ),
    **{
        name: Family(
            name, ("identity",), _elsewhere, _elsewhere, Density(_elsewhere, _elsewhere, _elsewhere), "shape"
        )
        for name in TIMES
    },
}

CURVED_GAUSSIAN = replace(
    FAMILIES["gaussian"],
    # Log and inverse take positive means, the response need not be positive.
    start=lambda y, w: np.maximum(y, 0.1 * max(float(np.mean(y)), float(np.std(y)))),
    dispersion="phi",
    has_scale=False,
)
"""The gaussian family under a link other than the identity; phi is the residual variance."""

_ALIASES = {
    "gamma": "Gamma",
    "nbinom2": "negative.binomial",
    "negbin": "negative.binomial",
    "cumulative": "ordinal",
    "beta.binomial": "betabinomial",
    "shifted.lognormal": "shifted_lognormal",
}
GUESS = "guess(0.5)"
"""How the link with a guess rate is offered to users."""


def choose_family(name: str, link: str | None = None) -> tuple[Family, Link]:
    """Look up a family and one of its links."""
    plain = name.replace("_", ".").replace(" ", ".")
    known = plain if plain in FAMILIES else _ALIASES.get(plain.lower(), plain.lower())
    if known not in FAMILIES:
        raise unknown_name("family", name, FAMILIES)
    family = FAMILIES[known]
    found = read_link(link or family.links[0])
    takes_guesses = family.name == "binomial"
    if found is None or (found.name not in family.links and not (takes_guesses and found.guess)):
        offered = (*family.links, GUESS) if takes_guesses else family.links
        raise unknown_name(f"link of the {known} family", str(link), offered)
    if family.has_scale and found.name != "identity":
        return CURVED_GAUSSIAN, found
    return family, found
