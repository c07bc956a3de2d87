"""A weakly informative penalty on generalised models, for data that separate.

Where a combination of predictors tells successes from failures the likelihood has no maximum. Adding the log-density of a
weak prior gives one (Gelman et al. 2008; ``bglmer`` of the blme package does the same for mixed models). The priors are
normal, on predictors put to a common scale, and half-normal on the standard deviation that each random term gives the
linear predictor; both are quadratic in the parameters, so all derivatives stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .laplace import LaplaceDeviance
from .matrices import Matrices

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Penalty:
    """The standard deviations of the normal priors, on the link scale.

    Attributes
    ----------
    intercept : float
        Of the linear predictor where all columns have their means.
    coefficient : float
        Of a coefficient for a predictor scaled as Gelman et al. (2008) advise: two standard deviations apart, or from
        one value to the other where there are two.
    spread : float
        Of each random term's standard deviation, root mean square over rows; half-normal.
    """

    intercept: float = 10.0
    coefficient: float = 2.5
    spread: float = 2.5

    def __str__(self) -> str:
        return (
            f"normal({self.coefficient:g}) on coefficients per two standard deviations, normal({self.intercept:g}) on the "
            f"intercept, half-normal({self.spread:g}) on random standard deviations"
        )

    def on_coefficients(self, matrices: Matrices) -> Array:
        """Return P with penalty beta' P beta, in deviance units, shape (p, p)."""
        x, names = matrices.x, matrices.names
        size = 2.0 * x.std(axis=0)
        for j in range(x.shape[1]):
            values = np.unique(x[:, j])
            if len(values) == 2:
                size[j] = np.ptp(values)
        if "(Intercept)" not in names:
            # Without an intercept the columns hold cell means, which lie as far from zero as an intercept may.
            size = np.where(size > 0, size, np.abs(x).max(axis=0, initial=0.0))
            return np.diag((size / self.intercept) ** 2)
        at = names.index("(Intercept)")
        size[at] = 0.0
        centre = x.mean(axis=0)
        return np.asarray(
            np.diag((size / self.coefficient) ** 2) + np.outer(centre, centre) / self.intercept**2
        )


class PenalisedDeviance:
    """A deviance with the penalty added, over the same parameters.

    Parameters
    ----------
    objective : LaplaceDeviance
        The deviance.
    penalty : Penalty
        The priors.
    matrices : Matrices
        Where the scales come from.
    """

    def __init__(self, objective: LaplaceDeviance, penalty: Penalty, matrices: Matrices) -> None:
        self.objective = objective
        k, d = objective.covariance.size, objective.n_dispersion
        self._quadratic = np.zeros((k + d + objective.p,) * 2)
        # Columns of the random terms have mean square one, so the squares of theta sum to a term's mean variance.
        self._quadratic[np.arange(k), np.arange(k)] = 1.0 / penalty.spread**2
        back = objective.back
        self._quadratic[k + d :, k + d :] = back.T @ penalty.on_coefficients(matrices) @ back

    def value(self, x: Array) -> float:
        """Minus twice the log prior density at x, up to a constant."""
        return float(x @ self._quadratic @ x)

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Penalised deviance and gradient."""
        deviance, gradient = self.objective(x)
        return deviance + self.value(x), gradient + 2.0 * (self._quadratic @ x)

    def metric(self, x: Array) -> Array:
        """Approximate second derivatives, shape (d, d)."""
        return self.objective.metric(x) + 2.0 * self._quadratic

    def nearer(self, x: Array) -> Array:
        """Guess from a first guess, shape (d,)."""
        return self.objective.nearer(x)
