"""Bootstraps over units (items or participants) of ratios and shares, with the memory of a few hundred resamples at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.arrays import Array
from stimuli.errors import UserError

RESAMPLES = 2000
FEWEST_UNITS = 3
"""Of fewer, resampling cannot tell how far other units would be off: there is no interval."""
_ROUNDING = 1e-9
CELLS = 4_000_000
"""Resamples x units that are held at a time: 32 MB."""


@dataclass(frozen=True)
class BootstrapInterval:
    """A percentile interval of a bootstrap."""

    low: float
    high: float
    undefined: float = 0.0  # share of resamples in which the statistic has no value

    @property
    def includes_zero(self) -> bool:
        """Whether 0 lies in the interval; an interval that is not there includes everything."""
        return not (self.low > 0 or self.high < 0)


def where_it_varies(ends: BootstrapInterval) -> BootstrapInterval:
    """Return an interval, or none where all resamples have one value: they cannot say how far other units would be off."""
    if ends.high - ends.low > _ROUNDING:
        return ends
    return BootstrapInterval(float("nan"), float("nan"), ends.undefined)


def means(values: NDArray[np.floating]) -> Array:
    """Average over the first axis, ignoring nan, shape (units, …) to (…); nan if there is no value."""
    is_finite = np.isfinite(values)
    counts = is_finite.sum(axis=0)
    total = np.where(is_finite, values, 0.0).sum(axis=0, dtype=float)
    return np.asarray(np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0))


def resampled_means(values: Array, seed: int, resamples: int = RESAMPLES) -> Array:
    """Resample units with replacement and average each column over the drawn units that have a value; nan of few units."""
    present = np.isfinite(values).astype(float)
    return resampled_ratios(np.where(present > 0, values, 0.0), present, seed, resamples)


def resampled_ratios(sums: Array, counts: Array, seed: int, resamples: int = RESAMPLES) -> Array:
    """Resample units (rows) with replacement and divide the total of each column of sums by that of counts; nan of few units."""
    units = len(sums)
    if units == 0:
        raise UserError("a bootstrap over 0 units", mend="Give trials of at least one item or participant.")
    if units < FEWEST_UNITS:
        return np.full((resamples, *sums.shape[1:]), np.nan)
    random = np.random.default_rng(seed)
    at_once = max(1, CELLS // units)
    ratios = []
    for start in range(0, resamples, at_once):
        drawn = draw_units(random, units, min(at_once, resamples - start))
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios.append((drawn @ sums) / (drawn @ counts))
    return np.concatenate(ratios)


def draw_units(random: np.random.Generator, units: int, resamples: int) -> Array:
    """Return how often each unit is drawn in each resample, shape (resamples, units)."""
    return random.multinomial(units, np.full(units, 1.0 / units), size=resamples).astype(float)


def percentile_ends(draws: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Return both ends of percentile intervals, shape (resamples, …) to (…) each; nan where no resample has a value."""
    flat = draws.reshape(len(draws), -1)
    has_value = np.isfinite(flat).any(axis=0)
    ends = np.full((2, flat.shape[1]), np.nan)
    tail = (1 - level) / 2
    if has_value.any():
        ends[:, has_value] = np.nanquantile(flat[:, has_value], [tail, 1 - tail], axis=0)
    low, high = ends.reshape(2, *draws.shape[1:])
    return low, high


def interval(draws: Array, level: float = 0.95) -> BootstrapInterval:
    """Return the percentile interval of bootstrap draws, shape (resamples,); undefined draws (nan, inf) are counted."""
    defined = draws[np.isfinite(draws)]
    undefined = 1.0 - len(defined) / len(draws) if len(draws) else 1.0
    if undefined > 0.5 or len(defined) < 2:
        return BootstrapInterval(float("nan"), float("nan"), undefined)
    low, high = np.quantile(defined, [0.5 - level / 2, 0.5 + level / 2])
    return BootstrapInterval(float(low), float(high), undefined)


def with_ends(name: str, draws: Array) -> dict[str, float]:
    """Return an estimate, the first of the draws, and the ends of its 95% interval under ``name``, ``name_low``, ``name_high``."""
    ends = interval(draws[1:])
    return {name: float(draws[0]), f"{name}_low": ends.low, f"{name}_high": ends.high}


def bootstrap(
    values: Array,
    statistic: Callable[[Array], Array],
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> BootstrapInterval:
    """Return the percentile interval of a statistic of column means."""
    if not len(values):
        return BootstrapInterval(float("nan"), float("nan"), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return interval(statistic(resampled_means(values, seed, resamples)), level)


def mean_of(values: Array) -> float:
    """Return the mean, ignoring nan; nan if there is no value."""
    return float(means(values.ravel()))


def mean_ends(values: Array, seed: int) -> BootstrapInterval:
    """Return the bootstrap interval of a mean over units, shape (units,); none where all resamples have one value."""
    return where_it_varies(bootstrap(values[:, None], lambda means: means[:, 0], seed))


def item_means(rows: pd.DataFrame, value: pd.Series[Any], factor: str) -> pd.DataFrame:
    """Return the mean of each reader group's item in each level: what is drawn when items are resampled."""
    keys = [rows[name] for name in ("reader_group", "set", "item_id", factor)]
    return value.groupby(keys, dropna=False, observed=True).mean().unstack()


def spearman_brown(r: Array) -> Array:
    """Step a correlation of halves up to the whole, 2r / (1 + r); nan where r is -1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(r > -1, 2 * r / (1 + r), np.nan))
