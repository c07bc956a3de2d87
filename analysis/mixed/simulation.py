"""New responses from a fitted model, for bootstrap, power and checks of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError
from stimuli.seeds import stable_seed

from .result import Fit

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, Array, Array, float], Array]


def _gaussian(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    return mu + rng.normal(size=len(mu)) * np.sqrt(d / w)


def _binomial(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    trials = np.round(w).astype(int)
    return np.asarray(rng.binomial(trials, np.clip(mu, 0.0, 1.0)) / np.maximum(trials, 1), dtype=float)


def _beta_binomial(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    inside = np.clip(mu, 1e-12, 1.0 - 1e-12)
    return _binomial(rng, rng.beta(inside * d, (1.0 - inside) * d), w, d)


def _poisson(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    return rng.poisson(mu).astype(float)


def _negative_binomial(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    return rng.poisson(rng.gamma(d, mu / d)).astype(float)


def _gamma(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    return np.asarray(rng.gamma(w / d, mu * d / w))


def _inverse_gaussian(rng: np.random.Generator, mu: Array, w: Array, d: float) -> Array:
    return np.asarray(rng.wald(mu, w / d))


DRAWS: Mapping[str, Draw] = {
    "gaussian": _gaussian,
    "binomial": _binomial,
    "betabinomial": _beta_binomial,
    "poisson": _poisson,
    "negative.binomial": _negative_binomial,
    "Gamma": _gamma,
    "inverse.gaussian": _inverse_gaussian,
}
"""Per family (generator, mu, prior weights, dispersion) -> responses; the gaussian's dispersion is sigma^2."""


def effects_unit(fit: Fit) -> float:
    """Return the factor between relative and absolute standard deviations of the random effects."""
    model = fit.model
    relative = model.family.has_scale or model.criterion.dispersion == "glmer"
    return fit.sigma if relative else 1.0


def simulate(
    fit: Fit, count: int = 1, *, seed: int | str = 0, conditional: bool = False
) -> NDArray[np.float64]:
    """Draw responses from a fitted model.

    Parameters
    ----------
    fit : Fit
        The model.
    count : int
        How many data sets.
    seed : int or str
        Another one gives other draws; the same one the same, on every machine.
    conditional : bool
        Keep the random effects at their modes; else draw new ones (lme4's ``use.u``).

    Returns
    -------
    ndarray, shape (nobs, count)
        For the rows used, in their order, as in ``fit.model.frame.y``: proportions of successes for binomial models, places of
        categories from 0 for ordinal ones.

    Raises
    ------
    UserError
        If fewer than one data set is asked for, or a mean lies outside the family's range (identity link).
    """
    if count < 1:
        raise UserError(f"count is {count}; at least one data set can be drawn")
    rng = np.random.default_rng(stable_seed("mixed model", "simulate", seed))
    model = fit.model
    frame, matrices = model.frame, model.matrices
    fixed = frame.offset + matrices.x @ fit.fixed["estimate"].to_numpy(dtype=float)
    lambdas = matrices.covariance.lambdas(fit.theta)
    unit = effects_unit(fit)
    dispersion = fit.sigma**2 if model.family.has_scale else (fit.dispersion or 1.0)
    result = np.empty((fit.nobs, count))
    for column in range(count):
        eta = fit.eta
        if not conditional:
            eta = fixed.copy()
            for effect, lam in zip(matrices.effects, lambdas, strict=True):
                b = unit * rng.normal(size=(effect.n_levels, effect.width)) @ lam.T
                eta += np.einsum("nk,nk->n", effect.columns, b[effect.codes])
        if fit.cuts is not None:
            above = np.cumsum(fit.cuts.probabilities(eta)[0], axis=1)[:, :-1]
            result[:, column] = (rng.random(fit.nobs)[:, None] > above).sum(axis=1)
            continue
        if fit.shape is not None:
            result[:, column] = fit.shape.response.draw(rng, eta)
            continue
        mu = model.link.inverse(eta)
        if model.family.positive and not np.all(mu > 0):
            raise UserError(
                f"the {model.link.name} link gives a mean of {mu.min():.4g}; {model.family.name} means are positive",
                mend="Simulate with conditional=True, or fit with the log link.",
                exit_code=1,
            )
        result[:, column] = DRAWS[model.family.name](rng, mu, frame.weights, dispersion)
    return result
