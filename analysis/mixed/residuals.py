"""Residuals of a fitted model, with the random effects at their modes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

from .result import Fit

Array = NDArray[np.float64]

KINDS = ("response", "pearson", "deviance")


def residuals(fit: Fit, kind: str = "response") -> Array:
    """Compute residuals for the rows used, in their order, as lme4 does.

    Parameters
    ----------
    fit : Fit
        A fitted model.
    kind : {'response', 'pearson', 'deviance'}
        y - mu; that times sqrt(w / V(mu)); or the signed root of each row's part of the deviance. Neither of the latter
        is divided by the residual standard deviation or the dispersion phi. Of an ordinal model y is the category's score
        and mu its expectation, and there is no deviance of a saturated model.

    Returns
    -------
    ndarray, shape (nobs,)

    Raises
    ------
    UserError
        For another kind, one that an ordinal model does not have, or deviance residuals of the betabinomial family or of times.
    """
    if kind not in KINDS:
        raise unknown_name("kind of residual", kind, KINDS)
    frame, family = fit.model.frame, fit.model.family
    y, w, mu = frame.y, frame.weights, fit.fitted
    if fit.cuts is not None:
        if kind == "deviance":
            raise UserError(
                "an ordinal model has no deviance residuals", mend="Ask for response or pearson residuals."
            )
        scores = fit.cuts.scores
        raw = scores[y.astype(int)] - mu
        variance = fit.cuts.probabilities(fit.eta)[0] @ scores**2 - mu**2
        return np.asarray(raw * (np.sqrt(w / variance) if kind == "pearson" else 1.0))
    raw = y - mu
    if fit.shape is not None and kind == "deviance":
        raise UserError(
            f"the {family.name} family has no deviance residuals", mend="Take Pearson's, kind='pearson'."
        )
    if kind == "response":
        return np.asarray(raw)
    # Theta of the negative binomial is part of the variance function; phi of others only a factor.
    d = fit.dispersion if family.dispersion == "theta" and fit.dispersion is not None else 1.0
    if family.dispersion == "precision":
        if kind == "deviance":
            raise UserError(
                "the betabinomial family has no deviance residuals", mend="Take Pearson's, kind='pearson'."
            )
        w = w / (1.0 + (w - 1.0) / (1.0 + (fit.dispersion or 0.0)))
    if kind == "pearson":
        variance = fit.shape.response.variance(fit.eta) if fit.shape else family.variance(mu, d)
        return np.asarray(raw * np.sqrt(w / variance))
    saturated = np.where(y > 0, y, 1e-300) if family.name in {"poisson", "negative.binomial"} else y
    with np.errstate(divide="ignore", invalid="ignore"):
        part = 2.0 * (family.density.loglik(y, saturated, w, d) - family.density.loglik(y, mu, w, d))
    return np.asarray(np.sign(raw) * np.sqrt(np.maximum(part, 0.0)))
