"""Response families and links of generalised models: densities in the mean, inverse links, and their derivatives.

A family has its log-density, the derivatives with respect to the mean, the expected information and, where it has a
dispersion, the derivatives with respect to the log of that; ``responses`` joins these to a link by the chain rule. The
dispersion d is phi of the Gamma and inverse Gaussian (variance phi V(mu) / w), theta of the negative binomial (variance
mu + mu^2 / theta) and the precision of the beta-binomial, the sum of the beta distribution's parameters.

Exact gradients of a deviance whose determinant holds the observed information need three derivatives of an inverse link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from analysis.arrays import Array
from stimuli.errors import UserError, unknown_name

Curve = Callable[[Array], Array]


@dataclass(frozen=True)
class Link:
    """A link function g with mu = g^-1(eta)."""

    name: str  # R's name; ``guess(0.5)`` and the like for links with a guess rate
    link: Curve  # link, inverse: g and its inverse
    inverse: Curve
    slope: Curve  # slope, curvature, third: first to third derivative of the inverse with respect to eta
    curvature: Curve
    third: Curve
    ratio: str | None = None  # what exp(difference on the link scale) is called, if it has a name
    guess: float = 0.0  # lower asymptote of the mean of a binary response; 0 for the usual links
    above: str = ""  # the link above the guess rate

    @property
    def base(self) -> str:
        """The link above the guess rate."""
        return self.above or self.name

    def __reduce__(self) -> tuple[Callable[..., Link | None], tuple[Any, ...]]:
        """Travel to other processes by name, as functions without one cannot."""
        return (guess_link, (self.guess, self.above)) if self.guess else (read_link, (self.name,))


def _identity(x: Array) -> Array:
    return np.asarray(x, dtype=float)


def _logistic_slope(eta: Array) -> Array:
    e = np.exp(-np.abs(eta))
    return np.asarray(e / (1.0 + e) ** 2)


def _normal_density(eta: Array) -> Array:
    return np.asarray(stats.norm.pdf(eta))


def _exp(eta: Array) -> Array:
    # Beyond this the mean overflows; a step that lands there is halved, not followed.
    return np.asarray(np.exp(np.minimum(eta, 700.0)))


def _gumbel_slope(eta: Array) -> Array:
    bounded = np.minimum(eta, 700.0)
    return np.asarray(np.exp(bounded - np.exp(bounded)))


def _power(order: float, scale: float = 1.0) -> Curve:
    """Return eta -> scale * eta^order, for links that are powers."""

    def curve(eta: Array) -> Array:
        # Outside the link's range the mean does not exist; nan is refused by every likelihood.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(scale * np.where(eta > 0.0, eta, np.nan) ** order)

    return curve


_LINKS = (
    Link("identity", _identity, _identity, np.ones_like, np.zeros_like, np.zeros_like),
    Link(
        "logit",
        special.logit,
        special.expit,
        _logistic_slope,
        lambda eta: -_logistic_slope(eta) * np.tanh(eta / 2.0),
        lambda eta: (slope := _logistic_slope(eta)) * (1.0 - 6.0 * slope),
        "odds ratio",
    ),
    Link("log", np.log, _exp, _exp, _exp, _exp, "ratio"),
    Link(
        "probit",
        special.ndtri,
        special.ndtr,
        _normal_density,
        lambda eta: -eta * _normal_density(eta),
        lambda eta: (eta**2 - 1.0) * _normal_density(eta),
    ),
    Link(
        "cloglog",
        lambda mu: np.log(-np.log1p(-mu)),
        lambda eta: -np.expm1(-_exp(eta)),
        _gumbel_slope,
        lambda eta: _gumbel_slope(eta) * (1.0 - _exp(eta)),
        lambda eta: _gumbel_slope(eta) * (1.0 - 3.0 * _exp(eta) + _exp(2.0 * eta)),
    ),
    Link("inverse", _power(-1.0), _power(-1.0), _power(-2.0, -1.0), _power(-3.0, 2.0), _power(-4.0, -6.0)),
    Link("1/mu^2", _power(-2.0), _power(-0.5), _power(-1.5, -0.5), _power(-2.5, 0.75), _power(-3.5, -1.875)),
)
LINKS: Mapping[str, Link] = {link.name: link for link in _LINKS}
BOUNDED_LINKS = ("identity", "inverse", "1/mu^2")
"""Links whose inverse leaves the positive numbers, so that a mean may not exist."""

_GUESS = re.compile(r"guess\(\s*(?P<rate>[^,)]*?)\s*(?:,\s*(?P<base>[^)]*?)\s*)?\)\Z")
_BINARY_LINKS = ("logit", "probit", "cloglog")


def guess_link(rate: float, base: str = "logit") -> Link:
    """Make a link with a lower asymptote, mu = g + (1 - g) F(eta), as psyphy's ``mafc`` links for 1 / g alternatives."""
    if not 0.0 < rate < 1.0:
        raise UserError(
            f"link guess({rate:g}): the guess rate is {rate:g}; a guess rate lies above 0 and below 1",
            mend=f"For m alternatives write 1 / m, for example guess(0.5) for two; for a rate of 0 write {base}.",
        )
    if base not in _BINARY_LINKS:
        raise unknown_name("link above the guess rate", base, _BINARY_LINKS)
    inner, share = LINKS[base], 1.0 - rate
    return Link(
        f"guess({rate:.15g})" if base == "logit" else f"guess({rate:.15g}, {base})",
        # A mean at or below the asymptote has no place on the scale; a start may fall there.
        lambda mu: inner.link(np.maximum((mu - rate) / share, 1e-3)),
        lambda eta: rate + share * inner.inverse(eta),
        lambda eta: share * inner.slope(eta),
        lambda eta: share * inner.curvature(eta),
        lambda eta: share * inner.third(eta),
        guess=rate,
        above=base,
    )


def read_link(text: str) -> Link | None:
    """Read a link as a user writes it; None where there is no such link."""
    if text in LINKS or not text.startswith("guess"):
        return LINKS.get(text)
    try:
        match = _GUESS.match(text)
        numerator, _, denominator = (match["rate"] if match else "").partition("/")
        rate = float(numerator) / float(denominator or "1")
    except (ValueError, ZeroDivisionError):
        raise UserError(
            f"link {text!r} is not of the form guess(rate) or guess(rate, link)",
            mend="For example guess(0.5), guess(1/3) or guess(0.25, probit).",
        ) from None
    return guess_link(rate, (match["base"] if match else None) or "logit")


class DensitySlopes(NamedTuple):
    """Derivatives of a log-density with respect to mu, each of shape (n,)."""

    first: Array
    second: Array
    third: Array


class DispersionSlopes(NamedTuple):
    """Derivatives with respect to log d: of the log-density, of its first two slopes in mu, of the information."""

    loglik: Array
    first: Array
    second: Array
    information: Array


class Family:
    """A family of response distributions; y, mu and prior weights w have shape (n,), the dispersion d is one number."""

    def __init__(self, name: str, links: tuple[str, ...], dispersion: str | None = None) -> None:
        self.name = name  # R's
        self.links = links  # links that can be fitted, the canonical one (R's default) first
        # what is estimated beside the coefficients; None for the linear model too, which profiles sigma out
        self.dispersion = dispersion
        self.positive = False  # whether means are above zero
        self.takes_trials = links == _BINARY_LINKS and dispersion != "thresholds"  # y: share of successes
        # whether this is the linear mixed model, with a residual standard deviation that is profiled out
        self.has_scale = False

    def variance(self, mu: Array, d: float = 1.0) -> Array:
        """V(mu), to be multiplied by phi and divided by the prior weight."""
        raise NotImplementedError(self.name)

    def start(self, y: Array, w: Array) -> Array:
        """Return a first guess of mu inside the family's range."""
        return y

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        """Draw responses; the gaussian's dispersion is sigma^2."""
        raise NotImplementedError(self.name)

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        """Log-density, all constants in."""
        raise NotImplementedError(self.name)

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        """Differentiate the log-density with respect to mu."""
        raise NotImplementedError(self.name)

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        """Return the expected information about mu and its derivative with respect to mu."""
        raise NotImplementedError(self.name)

    def by_dispersion(self, y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        """Differentiate with respect to log d."""
        raise NotImplementedError(self.name)


class _Binomial(Family):
    def variance(self, mu: Array, d: float = 1.0) -> Array:
        return mu * (1.0 - mu)

    def start(self, y: Array, w: Array) -> Array:
        return (w * y + 0.5) / (w + 1.0)

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        trials = np.round(w).astype(int)
        return np.asarray(rng.binomial(trials, np.clip(mu, 0.0, 1.0)) / np.maximum(trials, 1), dtype=float)

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        return np.asarray(
            w * (special.xlogy(y, mu) + special.xlog1py(1.0 - y, -mu)) + log_choices(w, w * y, w - w * y)
        )

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        complement, failure = 1.0 - mu, 1.0 - y
        return DensitySlopes(
            w * (y / mu - failure / complement),
            -w * (y / mu**2 + failure / complement**2),
            2.0 * w * (y / mu**3 - failure / complement**3),
        )

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        v = mu * (1.0 - mu)
        return w / v, -w * (1.0 - 2.0 * mu) / v**2


def log_choices(trials: Array, success: Array, failure: Array) -> Array:
    """Log of the binomial coefficient."""
    log_ratio = special.gammaln(trials + 1.0) - special.gammaln(success + 1.0)
    return np.asarray(log_ratio - special.gammaln(failure + 1.0))


class _BetaBinomial(_Binomial):
    # With r = 1 / d: P(s of n) = choose(n, s) prod_{k<s} (mu + k r) prod_{k<n-s} (1 - mu + k r) / prod_{k<n} (1 + k r), which
    # loses no digits where d is large, as differences of log-gammas would.

    def _sum(self, count: Array, base: Array, d: float, term: Callable[[Array, Array], Array]) -> Array:
        counts = np.round(count).astype(np.intp)
        rows = np.repeat(np.arange(len(counts)), counts)
        k = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)).astype(float)
        rung = base[rows] + k * (1.0 / d)
        return np.asarray(np.bincount(rows, term(k, rung), len(counts)), dtype=float)

    def _both(
        self, y: Array, mu: Array, w: Array, d: float, term: Callable[[Array, Array], Array]
    ) -> tuple[Array, Array]:
        return self._sum(w * y, mu, d, term), self._sum(w - w * y, 1.0 - mu, d, term)

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        inside = np.clip(mu, 1e-12, 1.0 - 1e-12)
        return super().draw(rng, rng.beta(inside * d, (1.0 - inside) * d), w, d)

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        log_numerator = sum(self._both(y, mu, w, d, lambda k, rung: np.log(rung)))
        log_denominator = self._sum(w, np.ones_like(mu), d, lambda k, rung: np.log(rung))
        return np.asarray(log_choices(w, w * y, w - w * y) + log_numerator - log_denominator)

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        (s1, f1), (s2, f2), (s3, f3) = (
            self._both(y, mu, w, d, lambda k, rung, power=power: rung**-power)  # type: ignore[misc]
            for power in (1.0, 2.0, 3.0)
        )
        return DensitySlopes(s1 - f1, -s2 - f2, 2.0 * (s3 - f3))

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        # That of the mean and variance, a little below Fisher's; it only guides the search.
        v = mu * (1.0 - mu)
        i = w / (v * (1.0 + (w - 1.0) / (1.0 + d)))
        return i, -i * (1.0 - 2.0 * mu) / v

    def by_dispersion(self, y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        (s1, f1), (s2, f2), (s3, f3) = (
            self._both(y, mu, w, d, lambda k, rung, power=power: k * rung**-power)  # type: ignore[misc]
            for power in (1.0, 2.0, 3.0)
        )
        excess = (w - 1.0) / (1.0 + d)
        return DispersionSlopes(
            -(s1 + f1 - self._sum(w, np.ones_like(mu), d, lambda k, rung: k / rung)) / d,
            (s2 - f2) / d,
            -2.0 * (s3 + f3) / d,
            self.information(mu, w, d)[0] * excess / (1.0 + excess) * d / (1.0 + d),
        )


class _Poisson(Family):
    def variance(self, mu: Array, d: float = 1.0) -> Array:
        return np.asarray(mu, dtype=float)

    def start(self, y: Array, w: Array) -> Array:
        return y + 0.1

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        return rng.poisson(mu).astype(float)

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        return np.asarray(w * (special.xlogy(y, mu) - mu - special.gammaln(y + 1.0)))

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        return DensitySlopes(w * (y / mu - 1.0), -w * y / mu**2, 2.0 * w * y / mu**3)

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        return w / mu, -w / mu**2


class _NegativeBinomial(_Poisson):
    # Variance mu + mu^2 / theta (Venables and Ripley 2002, section 7.4; MASS::negative.binomial).

    def variance(self, mu: Array, d: float = 1.0) -> Array:
        return mu + mu**2 / d

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        return rng.poisson(rng.gamma(d, mu / d)).astype(float)

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        # log choose(y + d - 1, y), which as a difference of log-gammas would lose digits where theta is large.
        choose = -special.betaln(d, y + 1.0) - np.log(y + d)
        return np.asarray(w * (choose + special.xlogy(y, mu / (mu + d)) - d * np.log1p(mu / d)))

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        total = mu + d
        return DensitySlopes(
            w * d * (y - mu) / (mu * total),
            w * ((y + d) / total**2 - y / mu**2),
            2.0 * w * (y / mu**3 - (y + d) / total**3),
        )

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        v = mu + mu**2 / d
        return w / v, -w * (1.0 + 2.0 * mu / d) / v**2

    def by_dispersion(self, y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        total = mu + d
        rise = special.digamma(y + d) - special.digamma(d)
        if d > 1e4:
            # The difference loses its digits where d is large, as for counts that are nearly Poisson; its series does not.
            rise = np.log1p(y / d) + y / (2.0 * d * (d + y)) + (1.0 / d**2 - 1.0 / (d + y) ** 2) / 12.0
        return DispersionSlopes(
            w * d * (rise - np.log1p(mu / d) + (mu - y) / total),
            w * d * (y - mu) / total**2,
            w * d * (mu - 2.0 * y - d) / total**3,
            w * d / total**2,
        )


class _Gaussian(Family):
    """An exponential dispersion family of precision a = w / phi and variance function mu^power; here power is 0."""

    power = 0.0

    def __init__(self, name: str, links: tuple[str, ...], dispersion: str | None = "phi") -> None:
        super().__init__(name, links, dispersion)
        self.positive, self.has_scale = self.power > 0.0, dispersion is None

    def kernel(self, y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
        """Log-density and its derivative with respect to log a."""
        half = a * (y - mu) ** 2 / 2.0
        return 0.5 * np.log(a / (2.0 * np.pi)) - half, 0.5 - half

    def variance(self, mu: Array, d: float = 1.0) -> Array:
        return np.asarray(mu**self.power)

    def start(self, y: Array, w: Array) -> Array:
        if self.positive or self.has_scale:
            return y
        # Log and inverse take positive means, the response need not be positive.
        return np.maximum(y, 0.1 * max(float(np.mean(y)), float(np.std(y))))

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        return mu + rng.normal(size=len(mu)) * np.sqrt(d / w)

    def slopes(self, y: Array, mu: Array, w: Array, d: float) -> DensitySlopes:
        a, power = w / d * mu**-self.power, self.power
        if not power:
            return DensitySlopes(a * (y - mu), -a, np.zeros_like(mu))
        gap = (y - mu) / mu
        return DensitySlopes(
            a * (y - mu), -a * (1.0 + power * gap), a / mu * power * (2.0 + (power + 1.0) * gap)
        )

    def information(self, mu: Array, w: Array, d: float) -> tuple[Array, Array]:
        i = w / d * mu**-self.power
        return i, -self.power * i / mu if self.power else np.zeros_like(mu)

    def by_dispersion(self, y: Array, mu: Array, w: Array, d: float) -> DispersionSlopes:
        # All slopes in mu are proportional to a, and d log a = -d log phi.
        slopes = self.slopes(y, mu, w, d)
        with np.errstate(invalid="ignore"):
            by_log = self.kernel(y, mu, w / d)[1]
        return DispersionSlopes(-by_log, -slopes.first, -slopes.second, -self.information(mu, w, d)[0])

    def loglik(self, y: Array, mu: Array, w: Array, d: float) -> Array:
        # A mean outside the range is refused by the search, as any point without a likelihood; so is one so near the
        # end of the range that a term overflows.
        possible = mu > 0.0 if self.positive else np.isfinite(mu)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            log_density = self.kernel(y, np.where(possible, mu, 1.0), w / d)[0]
        return np.where(possible & ~np.isnan(log_density), log_density, -np.inf)


class _Gamma(_Gaussian):
    power = 2.0

    def kernel(self, y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
        ratio = y / mu
        shape = 1.0 + np.log(ratio) - ratio
        return (
            a * shape + (a * np.log(a) - a - special.gammaln(a)) - np.log(y),
            a * (shape + np.log(a) - special.digamma(a)),
        )

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        return np.asarray(rng.gamma(w / d, mu * d / w))


class _InverseGaussian(_Gaussian):
    power = 3.0

    def kernel(self, y: Array, mu: Array, a: Array) -> tuple[Array, Array]:
        # The squares bound the search: past 1e154 they are no number, and a mean is refused where its score would vanish.
        half = a * (y - mu) ** 2 / (2.0 * mu**2 * y)
        return 0.5 * np.log(a / (2.0 * np.pi * y**3)) - half, 0.5 - half

    def draw(self, rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
        return np.asarray(rng.wald(mu, w / d))


TIMES = ("shifted_lognormal", "exgaussian")
_FAMILIES = (
    _Gaussian("gaussian", ("identity", "log", "inverse"), None),
    _Binomial("binomial", _BINARY_LINKS),
    _BetaBinomial("betabinomial", _BINARY_LINKS, "precision"),
    _Poisson("poisson", ("log",)),
    _NegativeBinomial("negative.binomial", ("log",), "theta"),
    _Gamma("Gamma", ("inverse", "identity", "log")),
    _InverseGaussian("inverse.gaussian", ("1/mu^2", "identity", "log", "inverse")),
    Family("ordinal", _BINARY_LINKS, "thresholds"),
    *(Family(name, ("identity",), "shape") for name in TIMES),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in _FAMILIES}

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
    family_name = plain if plain in FAMILIES else _ALIASES.get(plain.lower(), plain.lower())
    if family_name not in FAMILIES:
        raise unknown_name("family", name, FAMILIES)
    family = FAMILIES[family_name]
    chosen_link = read_link(link or family.links[0])
    takes_guesses = family.name == "binomial"
    if chosen_link is None or (
        chosen_link.name not in family.links and not (takes_guesses and chosen_link.guess)
    ):
        offered = (*family.links, GUESS) if takes_guesses else family.links
        raise unknown_name(f"link of the {family_name} family", str(link), offered)
    if family.has_scale and chosen_link.name != "identity":
        return _Gaussian(family.name, family.links), chosen_link
    return family, chosen_link
