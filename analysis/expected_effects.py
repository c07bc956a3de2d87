"""What effects that simulated readers were given lead to in a model of one factor: lapses, tails and further factors included.

A study gives effects at the reference of all its factors, on the logit or the log scale. A model of one factor has an intercept
over the levels of the others; a lapse is right by chance; and the mean of the log of an ex-Gaussian time is not the log put in. So
an intercept is not the one put in, and effects may be smaller, however exact the whole path is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

Array = NDArray[np.float64]

_NODES = 60
"""Of both quadratures."""


def expected_levels(
    rows: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    given: Mapping[str, Any],
    lapses: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return what a mixed model of one factor should find in each of its levels."""
    fixed, moving = float(given["intercept"]), np.zeros(len(rows))
    for name, effects in given["effects"].items():
        if name == factor or name not in rows:
            continue
        values = rows[name].map({str(level): float(one) for level, one in effects.items()})
        values = values.fillna(0.0).to_numpy(dtype=float)
        if _taken_up(rows, name):
            fixed += float(values.mean())
        else:
            moving += values
    if given.get("learning"):
        moving += float(given["learning"]) * np.log1p(rows["before"].to_numpy(dtype=float))
    own = given["effects"].get(factor, {})
    predicted = _right if given["scale"] == "logit" else _mean_log
    return {
        level: predicted(fixed + float(own.get(level, 0.0)) + moving, rows, given, lapses or {})
        for level in levels
    }


def _taken_up(rows: pd.DataFrame, name: str) -> bool:
    return any((rows.groupby(unit)[name].nunique() <= 1).all() for unit in ("participant", "item"))


def _right(eta: Array, rows: pd.DataFrame, given: Mapping[str, Any], lapses: Mapping[str, Any]) -> float:
    """Return the log odds of a right answer where some trials are answered by chance."""
    rate = float(lapses.get("rate", 0.0))
    right = (1 - rate) * expit(eta)
    if rate:
        right = right + rate * rows["chance"].to_numpy(dtype=float)
    return float(logit(right.mean()))


def _mean_log(eta: Array, rows: pd.DataFrame, given: Mapping[str, Any], lapses: Mapping[str, Any]) -> float:
    """Return the mean log of times with an exponential tail, of which some are longer by a lapse."""
    spread = np.sqrt(
        sum(float(given.get(f"{of}_sd", 0.0)) ** 2 for of in ("participant", "item", "residual"))
    )
    slower = float(lapses.get("rate", 0.0)) * np.log(float(lapses.get("slower", 1.0)))
    tail = float(given.get("tail_ms", 0.0))
    if not tail:
        return float(eta.mean() + slower)
    z, of_z = np.polynomial.hermite_e.hermegauss(_NODES)
    t, of_t = np.polynomial.laguerre.laggauss(_NODES)
    grid = np.linspace(eta.min(), eta.max(), 41)
    logs = np.log(np.exp(grid[:, None, None] + spread * z[:, None]) + tail * t)
    means = np.einsum("gzt,z,t->g", logs, of_z / of_z.sum(), of_t)
    return float(np.interp(eta, grid, means).mean() + slower)
