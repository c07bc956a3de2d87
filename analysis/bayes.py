"""Bayes factors and posterior intervals of tested differences (Dienes & Mclatchie, 2018), by Gauss-Legendre sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize, stats

from analysis.arrays import Array
from analysis.plan import Prior
from analysis.results import Contrast

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_REACH = 2.0 ** np.arange(-3, 24)


@dataclass(frozen=True)
class Posterior:
    """The posterior distribution of a difference under the declared prior."""

    factor: float
    median: float  # with the central 95% interval; on the side of the direction
    low: float
    high: float
    within: float | None  # factor on the odds of a difference inside the bound (Morey & Rouder, 2011)


def posterior_of(contrast: Contrast, prior: Prior) -> Posterior:
    """Return the Bayes factor and the posterior of an estimable contrast."""
    bound = None if contrast.equivalence is None else contrast.equivalence.half_width
    return _posterior(
        contrast.estimate,
        contrast.se,
        np.inf if contrast.df is None else contrast.df,
        contrast.side,
        prior,
        bound,
    )


@lru_cache(maxsize=4096)
def _posterior(b: float, se: float, df: float, side: int, prior: Prior, bound: float | None) -> Posterior:
    belief: Any = (
        stats.norm(scale=prior.scale) if np.isinf(prior.df) else stats.t(prior.df, scale=prior.scale)
    )
    data: Any = stats.norm(b, se) if np.isinf(df) else stats.t(df, b, se)
    steps = np.concatenate([b + se * _REACH, b - se * _REACH, prior.scale * _REACH, -prior.scale * _REACH])
    ends = np.unique(np.concatenate([steps, [0.0, b], [] if bound is None else [-bound, bound]]))
    ends = ends if not side else ends[side * ends >= 0]
    top = float(data.logpdf(b))

    def mass(low: Array, high: Array) -> Array:
        """Prior times likelihood between points, in units of the largest likelihood."""
        half = (high - low)[:, None] / 2.0
        points = low[:, None] + half * (1.0 + _NODES)
        return np.asarray(
            (half * _WEIGHTS * np.exp(belief.logpdf(points) + data.logpdf(points) - top)).sum(1)
        )

    pieces = mass(ends[:-1], ends[1:])
    reached = np.concatenate([[0.0], np.cumsum(pieces)])

    def quantile(share: float) -> float:
        target = share * reached[-1]
        index = int(np.clip(np.searchsorted(reached, target) - 1, 0, len(pieces) - 1))
        low = ends[index : index + 1]
        return float(
            optimize.brentq(
                lambda x: reached[index] + float(mass(low, np.array([x]))[0]) - target,
                low[0],
                ends[index + 1],
            )
        )

    within = None
    if bound is not None and not side:
        inside = float(reached[np.searchsorted(ends, bound)] - reached[np.searchsorted(ends, -bound)])
        prior_inside = 1.0 - 2.0 * float(belief.sf(bound))
        within = inside / float(reached[-1] - inside) * (1.0 - prior_inside) / prior_inside
    with np.errstate(over="ignore"):
        factor = float((2.0 if side else 1.0) * reached[-1] * np.exp(top - data.logpdf(0.0)))
    return Posterior(factor, quantile(0.5), quantile(0.025), quantile(0.975), within)
