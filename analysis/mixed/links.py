"""Link functions of generalised linear mixed models: the inverse and its first three derivatives.

Derivatives to the third order are what exact gradients of a deviance ask for whose determinant holds the observed
information. A link with a fixed lower asymptote takes its guess rate as a number: ``guess(0.5)`` for two alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from stimuli.errors import UserError, unknown_name

Array = NDArray[np.float64]
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

    @property
    def base(self) -> str:
        """The link above the guess rate."""
        found = _GUESS.match(self.name)
        return (found["base"] or "logit") if found else self.name

    def __reduce__(self) -> tuple[Callable[[str, float], Link], tuple[str, float]]:
        """Travel to other processes by name, as functions without one cannot."""
        return _named_link, (self.base, self.guess)


def _named_link(base: str, guess: float) -> Link:
    return guess_link(guess, base) if guess else LINKS[base]


def _identity(x: Array) -> Array:
    return np.asarray(x, dtype=float)


def _logistic_slope(eta: Array) -> Array:
    e = np.exp(-np.abs(eta))
    return np.asarray(e / (1.0 + e) ** 2)


def _logistic_curvature(eta: Array) -> Array:
    return np.asarray(-_logistic_slope(eta) * np.tanh(eta / 2.0))


def _logistic_third(eta: Array) -> Array:
    slope = _logistic_slope(eta)
    return np.asarray(slope * (1.0 - 6.0 * slope))


def _normal_density(eta: Array) -> Array:
    return np.asarray(stats.norm.pdf(eta))


def _exp(eta: Array) -> Array:
    # Beyond this the mean overflows; a step that lands there is halved, not followed.
    return np.asarray(np.exp(np.minimum(eta, 700.0)))


def _gumbel_slope(eta: Array) -> Array:
    at = np.minimum(eta, 700.0)
    return np.asarray(np.exp(at - np.exp(at)))


def _power(order: float, *factors: float) -> Curve:
    """Return eta -> (product of factors) eta^order, for links that are powers."""
    scale = float(np.prod(factors))

    def curve(eta: Array) -> Array:
        # Outside the link's range the mean does not exist; nan is refused by every likelihood.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(scale * np.where(eta > 0.0, eta, np.nan) ** order)

    return curve


LINKS: Mapping[str, Link] = {
    "identity": Link("identity", _identity, _identity, np.ones_like, np.zeros_like, np.zeros_like),
    "logit": Link(
        "logit",
        special.logit,
        special.expit,
        _logistic_slope,
        _logistic_curvature,
        _logistic_third,
        "odds ratio",
    ),
    "log": Link("log", np.log, _exp, _exp, _exp, _exp, "ratio"),
    "probit": Link(
        "probit",
        special.ndtri,
        special.ndtr,
        _normal_density,
        lambda eta: -eta * _normal_density(eta),
        lambda eta: (eta**2 - 1.0) * _normal_density(eta),
    ),
    "cloglog": Link(
        "cloglog",
        lambda mu: np.log(-np.log1p(-mu)),
        lambda eta: -np.expm1(-_exp(eta)),
        _gumbel_slope,
        lambda eta: _gumbel_slope(eta) * (1.0 - _exp(eta)),
        lambda eta: _gumbel_slope(eta) * (1.0 - 3.0 * _exp(eta) + _exp(np.minimum(2.0 * eta, 700.0))),
    ),
    "inverse": Link(
        "inverse", _power(-1.0), _power(-1.0), _power(-2.0, -1.0), _power(-3.0, 2.0), _power(-4.0, -6.0)
    ),
    "1/mu^2": Link(
        "1/mu^2", _power(-2.0), _power(-0.5), _power(-1.5, -0.5), _power(-2.5, 0.75), _power(-3.5, -1.875)
    ),
}

BOUNDED_LINKS = ("identity", "inverse", "1/mu^2")
"""Links whose inverse leaves the positive numbers, so that a mean may not exist."""

_GUESS = re.compile(r"guess\(\s*(?P<rate>[^,)]*?)\s*(?:,\s*(?P<base>[^)]*?)\s*)?\)\Z")
_GUESS_BASES = ("logit", "probit", "cloglog")


def guess_link(rate: float, base: str = "logit") -> Link:
    """Make a link with a lower asymptote: mu = g + (1 - g) F(eta), the psychometric function of forced choice.

    The same as psyphy's ``mafc.logit`` and ``mafc.probit`` with g = 1 / m for m alternatives.
    """
    if not 0.0 < rate < 1.0:
        raise UserError(
            f"link guess({rate:g}): the guess rate is {rate:g}; a guess rate lies above 0 and below 1",
            mend=f"For m alternatives write 1 / m, for example guess(0.5) for two; for a rate of 0 write {base}.",
        )
    if base not in _GUESS_BASES:
        raise unknown_name("link above the guess rate", base, _GUESS_BASES)
    inner, share = LINKS[base], 1.0 - rate
    name = f"guess({rate:.15g})" if base == "logit" else f"guess({rate:.15g}, {base})"

    def link(mu: Array) -> Array:
        # A mean at or below the asymptote has no place on the scale; a start may fall there.
        return inner.link(np.maximum((mu - rate) / share, 1e-3))

    return Link(
        name,
        link,
        lambda eta: rate + share * inner.inverse(eta),
        lambda eta: share * inner.slope(eta),
        lambda eta: share * inner.curvature(eta),
        lambda eta: share * inner.third(eta),
        None,
        rate,
    )


def read_link(text: str) -> Link | None:
    """Read a link as a user writes it; None where there is no such link."""
    if text in LINKS:
        return LINKS[text]
    if not text.startswith("guess"):
        return None
    found = _GUESS.match(text)
    rate = _fraction(found["rate"]) if found else None
    if found is None or rate is None:
        raise UserError(
            f"link {text!r} is not of the form guess(rate) or guess(rate, link)",
            mend="For example guess(0.5), guess(1/3) or guess(0.25, probit).",
        )
    return guess_link(rate, found["base"] or "logit")


def _fraction(text: str) -> float | None:
    above, _, below = text.partition("/")
    try:
        return float(above) / float(below or "1")
    except (ValueError, ZeroDivisionError):
        return None
