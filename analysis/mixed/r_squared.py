"""Explained variance of mixed models, and how much of the rest lies between groups.

Nakagawa and Schielzeth (2013), Johnson (2014, random slopes) and Nakagawa, Johnson and Schielzeth (2017): with the variance of
the fixed part var(X beta), that of the random part, the mean over rows of z' Sigma z, and that of observations on the
link scale, the marginal R^2 is the first over the sum, the conditional one the first two over the sum. An
observation-level random effect counts to the observations. Independent slopes (``||``) are summed term by term.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError

from .fitting import fit_model
from .prediction import random_columns
from .result import Fit

Array = NDArray[np.float64]

LATENT = {"logit": np.pi**2 / 3.0, "probit": 1.0, "cloglog": np.pi**2 / 6.0}
"""Variance of the latent error of binary and ordinal models, by link."""


@dataclass(frozen=True)
class RSquared:
    """Explained variance and its parts, in squared units of the linear predictor.

    Attributes
    ----------
    marginal, conditional : float
        Share of the fixed part; of fixed and random part.
    icc_adjusted, icc_unadjusted : float
        Share of the random part in what the fixed part leaves; in everything.
    fixed, random, observation : float
        The variances.
    basis : str
        Where the observations' variance comes from.
    """

    marginal: float
    conditional: float
    icc_adjusted: float
    icc_unadjusted: float
    fixed: float
    random: float
    observation: float
    basis: str


def r_squared(fit: Fit) -> RSquared:
    """Compute Nakagawa's R^2 and the intraclass correlations of a fitted model.

    Poisson, negative binomial, Gamma and inverse Gaussian models with log link take the lognormal approximation
    log(1 + V(mu) / mu^2) at mu = exp(intercept) of the model without predictors, as the R package performance does; other
    links the delta method there. Binomial and ordinal models take the variance of the latent error (pi^2 / 3 for the logit).

    Parameters
    ----------
    fit : Fit
        A fitted model.

    Raises
    ------
    UserError
        For the betabinomial family.
    """
    x = fit.model.matrices.x
    fixed = float(np.var(x @ fit.fixed["estimate"].to_numpy(dtype=float), ddof=1))
    random = by_observation = 0.0
    for component, (term, z) in zip(fit.variance, random_columns(fit), strict=True):
        mean = float(np.sum(component.cov * (z.T @ z)) / len(z))
        if term.n_levels == fit.nobs:
            by_observation += mean
        else:
            random += mean
    own, basis = _observation_variance(fit)
    observation = own + by_observation
    total = fixed + random + observation
    return RSquared(
        fixed / total,
        (fixed + random) / total,
        random / (random + observation),
        random / total,
        fixed,
        random,
        observation,
        basis + (" and the observation-level random effect" if by_observation else ""),
    )


def _observation_variance(fit: Fit) -> tuple[float, str]:
    family, link = fit.model.family, fit.model.link
    if family.has_scale:
        return fit.sigma**2, "the residual variance"
    if family.dispersion == "precision":
        raise UserError(
            "R squared is not defined for the betabinomial family",
            mend="Leave it out, or choose the binomial family.",
        )
    if family.name == "shifted_lognormal":
        return fit.sigma**2, "the variance of log(y - ndt)"
    if fit.shape is not None:
        return float(fit.shape.response.variance(np.zeros(1))[0]), "sigma squared plus beta squared"
    base = link.base
    if family.name in {"binomial", "ordinal"}:
        return LATENT[base], f"the latent error of the {base} link"
    null = _without_predictors(fit)
    eta = np.array([float(null.fixed["estimate"].iloc[0])])
    mu = link.inverse(eta)
    d = fit.dispersion if fit.dispersion is not None else 1.0
    phi = d if family.dispersion == "phi" else 1.0
    variance = phi * family.variance(mu, d)
    if base == "log":
        return float(np.log1p(variance / mu**2)[0]), "the lognormal approximation"
    return float((variance / link.slope(eta) ** 2)[0]), "the delta method"


def _without_predictors(fit: Fit) -> Fit:
    model = fit.model
    matrices = replace(model.matrices, x=np.ones((fit.nobs, 1)), names=("(Intercept)",))
    return fit_model(replace(model, matrices=matrices))
