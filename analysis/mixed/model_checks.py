"""Checks of a fitted model: residuals against data simulated from it, and how far each unit moves its fixed effects.

A simulated residual is the place of an observation among new data of the same row, with new random effects (Dunn & Smyth, 1996;
Hartig's DHARMa): uniform from 0 to 1 if the model holds. Residuals of a participant hang together, so their tests compare the
statistic of the data with that of each simulated data set instead of taking residuals as independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from stimuli.errors import UserError
from stimuli.seeds import stable_seed

from .prediction import effects_unit, simulate
from .result import Fit

Array = NDArray[np.float64]

SIMULATIONS = 250
MOST_CELLS = 10_000_000
"""Rows times simulations; of more rows there are fewer simulations."""


@dataclass(frozen=True)
class SimulatedResiduals:
    """Places of the observations among simulated ones, with three tests."""

    residuals: Array  # (nobs,): from 0 to 1, in the order of the rows used
    # distance, p_uniform: Kolmogorov and Smirnov's distance from uniform residuals, and its p
    distance: float
    p_uniform: float
    # dispersion, p_dispersion: variance about the simulated means, divided by that of simulated data, and
    # its two-sided p
    dispersion: float
    p_dispersion: float
    outliers: int  # observations beyond all simulated ones of their row, with the p of so many
    p_outliers: float
    simulations: int


def simulated_residuals(fit: Fit, count: int = SIMULATIONS, *, seed: int | str = 0) -> SimulatedResiduals:
    """Compare each observation with simulated ones of its row.

    Parameters
    ----------
    fit : Fit
    count : int
        Data sets; fewer where rows are very many.
    seed : int or str
        Of the simulations, and of what breaks ties of discrete responses.
    """
    count = max(20, min(count, MOST_CELLS // fit.nobs))
    every = np.column_stack([fit.model.frame.y, simulate(fit, count, seed=seed)])
    means = every[:, 1:].mean(axis=1)
    spread = ((every - means[:, None]) ** 2).mean(axis=0)
    rng = np.random.default_rng(stable_seed("mixed model", "residuals", seed))
    # ties are broken at random: of discrete responses, the residual is drawn from the step of the distribution function
    ties = 1e-7 * max(float(np.ptp(every)), 1e-12) * rng.random(every.shape)
    ranks = np.argsort(np.argsort(every + ties, axis=1), axis=1)
    outside = ((ranks == 0) | (ranks == count)).sum(axis=0)
    places: Array = (ranks + rng.random(every.shape)) / (count + 1)
    residuals = places[:, 0].copy()
    places.sort(axis=0)
    steps = np.arange(fit.nobs + 1)[:, None] / fit.nobs
    distance = np.maximum((steps[1:] - places).max(axis=0), (places - steps[:-1]).max(axis=0))

    def beyond(values: Array) -> float:
        return float((1 + (values[1:] >= values[0]).sum()) / (count + 1))

    return SimulatedResiduals(
        residuals,
        float(distance[0]),
        beyond(distance),
        float(spread[0] / spread[1:].mean()),
        min(1.0, 2 * min(beyond(spread), beyond(-spread))),
        int(outside[0]),
        beyond(outside.astype(float)),
        count,
    )


def influence(fit: Fit, grouping: str) -> pd.DataFrame:
    """Return by how much the fixed effects change if a unit is left out, shape (levels, p), at the variances of the fit.

    Exact for a linear mixed model of given variances; one step from the fit for others (Cook, 1986). With P = V^-1 - V^-1 X
    (X' V^-1 X)^-1 X' V^-1, leaving out rows D changes beta by -(X' V^-1 X)^-1 X' V^-1_D (P_DD)^-1 (V^-1 r)_D.

    Parameters
    ----------
    fit : Fit
    grouping : str
        A grouping factor of the model.
    """
    matrices, family, frame = fit.model.matrices, fit.model.family, fit.model.frame
    units = next((one for one in matrices.groupings if one.name == grouping), None)
    if units is None or fit.cuts is not None:
        why = "an ordinal model has no such step" if units is not None else f"the model has no {grouping!r}"
        raise UserError(f"influence: {why}", mend=f"Grouping factors: {', '.join(fit.groups) or 'none'}.")
    dispersion = fit.dispersion if fit.dispersion is not None else 1.0
    slope = fit.model.link.slope(fit.eta)
    precision = frame.weights / family.variance(fit.fitted, dispersion)
    precision = precision / (fit.sigma**2 if family.has_scale else 1.0)
    score, w = precision * (frame.y - fit.fitted) * slope, precision * slope**2
    zl = _random_columns(fit)
    factor = cho_factor(np.eye(zl.shape[1]) + (zl.T @ zl.multiply(w[:, None])).toarray())
    weighed = zl.multiply(w[:, None]).tocsr()
    x, vcov = matrices.x, fit.vcov.to_numpy()
    inverse_x = w[:, None] * x - weighed @ cho_solve(factor, weighed.T @ x)
    changes = []
    order = np.argsort(units.codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(units.codes[order])) + 1):
        own, xd = weighed[rows].toarray(), inverse_x[rows]
        left = np.diag(w[rows]) - own @ cho_solve(factor, own.T) - xd @ vcov @ xd.T
        changes.append(-vcov @ xd.T @ np.linalg.lstsq(left, score[rows], rcond=1e-10)[0])
    return pd.DataFrame(np.array(changes), index=list(units.levels), columns=list(fit.vcov.columns))


def _random_columns(fit: Fit) -> sparse.csr_array:
    """Return Z Lambda with the scale of the random effects, shape (nobs, q)."""
    matrices, unit, parts = fit.model.matrices, effects_unit(fit), []
    rows = np.arange(fit.nobs)
    for effect, lam in zip(matrices.effects, matrices.covariance.lambdas(fit.theta), strict=True):
        values = unit * effect.columns @ lam
        columns = effect.codes[:, None] * effect.width + np.arange(effect.width)
        places = (np.repeat(rows, effect.width), columns.ravel())
        parts.append(
            sparse.coo_array((values.ravel(), places), shape=(fit.nobs, effect.n_levels * effect.width))
        )
    return sparse.hstack(parts, format="csr")
