"""Standard errors of a regression on words that hold whatever the spread of their times, with items as clusters.

Mean reading times spread more where they are longer, which is where surprisal is high: intervals that take the residual
variance to be the same everywhere are too narrow just for the slope of surprisal. The estimates are those of the linear mixed
model with items as random effects (generalised least squares under its variances); their covariance is the sandwich over
items with the correction G / (G - 1), intervals from t with G - 1 degrees of freedom (Liang & Zeger, 1986, Biometrika 73, 13-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.mixed import fit
from stimuli.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Slopes:
    """Slopes with their covariance over items."""

    names: tuple[str, ...]  # predictors, the intercept first
    estimate: Array  # shape (p,)
    cov: Array  # shape (p, p)
    items: int

    def of(self, names: Sequence[str]) -> tuple[float, float, float]:
        """Return the sum of several slopes and the ends of its 95% interval."""
        weights = np.array([float(name in names) for name in self.names])
        value = float(weights @ self.estimate)
        half = float(stats.t.ppf(0.975, self.items - 1) * np.sqrt(weights @ self.cov @ weights))
        return value, value - half, value + half


def clustered_slopes(
    rows: pd.DataFrame, response: str, predictors: Sequence[str], weights: str, random: str
) -> Slopes:
    """Regress a response on numeric predictors with items as clusters."""
    names = ("(Intercept)", *predictors)
    codes, items = pd.factorize(rows["item"])
    x = np.column_stack([np.ones(len(rows)), rows[list(predictors)].to_numpy(dtype=float)])
    if np.linalg.matrix_rank(x) < len(names):
        raise UserError("the predictors are linearly dependent", mend="Leave one of them out.")
    if len(items) <= len(names):
        raise UserError(f"{len(items)} items for {len(names)} coefficients", mend="Take fewer predictors.")
    y, w = rows[response].to_numpy(dtype=float), rows[weights].to_numpy(dtype=float)
    ratio = 0.0
    if random:
        model = fit(f"{response} ~ {' + '.join(predictors) or '1'} + {random}", rows, weights=weights)
        ratio = float(model.variance[0].cov[0, 0] / model.sigma**2)

    def whitened(column: Array) -> Array:
        """Multiply by the inverse of diag(1/w) + ratio 11', item by item (Sherman & Morrison)."""
        weighted = w * column
        share = np.bincount(codes, weighted) * ratio / (1.0 + ratio * np.bincount(codes, w))
        return np.asarray(weighted - w * share[codes])

    inner = np.column_stack([whitened(column) for column in x.T])
    bread = np.linalg.inv(x.T @ inner)
    beta = bread @ (inner.T @ y)
    scores = inner * (y - x @ beta)[:, None]
    sums = np.column_stack([np.bincount(codes, column) for column in scores.T])
    many = len(items)
    return Slopes(names, beta, bread @ (sums.T @ sums) @ bread * many / (many - 1), many)
