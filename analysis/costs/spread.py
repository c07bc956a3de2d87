"""How times are distributed in each condition: percentiles, a smooth curve on the log scale, and participants' medians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import not_failed
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables

Array = NDArray[np.float64]

PERCENTILES = (5, 10, 25, 50, 75, 90, 95)
_BINS = 512


@dataclass(frozen=True, eq=False)
class TimeSpread:
    """The times of one group of participants in one condition."""

    group: str
    kind: str
    measure: str
    level: str
    percentiles: Array  # shape (7,): of all times together, ms; `PERCENTILES`
    medians: Array  # shape (participants,): of each participant, ms
    grid: Array
    density: Array  # shape (bins,)
    trials: int


def time_spreads(tables: Tables, factor: str, measure: str) -> list[TimeSpread]:
    """Describe each group's times in every level: valid answers within the study's bounds."""
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used &= not_failed(trials) & trials["item_id"].notna() & trials[f"{measure}_excluded"].isna()
    rows = trials.loc[
        used & (trials[measure] > 0), ["reader_group", "reader_kind", "reader", factor, measure]
    ]
    found = []
    for group in group_order(rows):
        of_group = rows[rows["reader_group"] == group]
        for level in tables.levels_of(factor):
            own = of_group[of_group[factor] == level]
            if len(own):
                found.append(_spread(own, group, measure, level))
    return found


def _spread(own: pd.DataFrame, group: str, measure: str, level: str) -> TimeSpread:
    times = own[measure].to_numpy(dtype=float)
    grid, density = log_density(times)
    medians = own.groupby("reader")[measure].median().to_numpy(dtype=float)
    kind = str(own["reader_kind"].iloc[0])
    return TimeSpread(
        group, kind, measure, level, np.percentile(times, PERCENTILES), medians, grid, density, len(times)
    )


def log_density(times: Array) -> tuple[Array, Array]:
    """Return a grid of times and the density of their logarithms there: counts in bins, smoothed."""
    logs = np.log(times)
    spread = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
    iqr = float(np.subtract(*np.percentile(logs, [75, 25]))) / 1.349
    least = min(value for value in (spread, iqr, np.inf) if value > 0)
    width = 0.9 * least * len(logs) ** -0.2 if np.isfinite(least) else 0.02
    edges = np.linspace(logs.min() - 4 * width, logs.max() + 4 * width, _BINS + 1)
    step = float(edges[1] - edges[0])
    counts, _ = np.histogram(logs, edges)
    reach = max(1, min(_BINS // 2 - 1, int(np.ceil(4 * width / step))))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    middles = (edges[:-1] + edges[1:]) / 2
    return np.exp(middles), smooth / (len(logs) * step)
