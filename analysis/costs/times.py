"""Distributions of response times by level, and contrasts on the logarithmic and the millisecond scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import expm1

import numpy as np
import pandas as pd

from analysis.arrays import Array
from analysis.costs.ratios import timed_trials
from analysis.plan import Measure, Plan
from analysis.plan_runner import analyse_time
from analysis.random_structure import MOST_COLUMNS_BESIDE
from analysis.readers import group_order, kinds_of
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError

FAMILIES = ("Gamma", "inverse.gaussian")
_COLUMNS = [
    *("contrast", "groups", "log_estimate", "log_low", "log_high", "log_p"),
    *("percent", "percent_low", "percent_high", "ms", "ms_low", "ms_high", "ms_p", "agree"),
]
_PERCENTS = {"percent": "log_estimate", "percent_low": "log_low", "percent_high": "log_high"}


@dataclass(frozen=True)
class TimeScales:
    """One comparison of times on both scales."""

    log: Analysis  # of log times, and of milliseconds
    own: Analysis
    table: pd.DataFrame


def time_scales(
    plan: Plan, tables: Tables, family: str = "Gamma", *, on_log: Analysis | None = None
) -> TimeScales:
    """Carry out a plan of ``rt`` or ``reading_time`` on both scales."""
    if plan.measure.unit != "ms":
        raise UserError(f"{plan.measure.noun} is no time", mend="Give a plan of rt or reading_time.")
    if family not in FAMILIES:
        raise UserError(f"family {family!r} for times", mend=f"Choose among {', '.join(FAMILIES)}.")
    name = plan.measure.name
    logged = replace(plan.measure, family="gaussian", logged=True, response=f"log_{name}", link=None)
    raw_measure = Measure(name, plan.measure.title, plan.measure.noun, family, False, "ms", name, "identity")
    if on_log is None:
        on_log = analyse_time(replace(plan, measure=logged), tables, most_columns=MOST_COLUMNS_BESIDE)
    # a bound is a ratio: it belongs to the log scale alone
    plain = replace(plan, name=f"{plan.name} (ms)", measure=raw_measure, equivalence=None)
    on_own = analyse_time(plain, tables, most_columns=MOST_COLUMNS_BESIDE)
    return TimeScales(on_log, on_own, _beside(on_log, on_own))


def _beside(on_log: Analysis, on_own: Analysis) -> pd.DataFrame:
    others = {(contrast.label, contrast.groups): contrast for contrast in on_own.contrasts}
    rows = []
    for contrast in on_log.contrasts:
        other = others.get((contrast.label, contrast.groups))
        log = _numbers(contrast, "log", "log_estimate")
        names = {
            "contrast": contrast.label,
            "groups": " − ".join(contrast.groups),
            "agree": _verdict(contrast, other),
        }
        percents = {prefix: 100 * expm1(log[name]) for prefix, name in _PERCENTS.items()}
        rows.append({**names, **log, **percents, **_numbers(other, "ms", "ms")})
    return pd.DataFrame(rows, columns=_COLUMNS)


def _numbers(contrast: Contrast | None, prefix: str, first: str) -> dict[str, float]:
    nan = float("nan")
    values = (
        (contrast.estimate, contrast.low, contrast.high, contrast.p)
        if contrast is not None and contrast.estimable
        else (nan,) * 4
    )
    return dict(zip((first, f"{prefix}_low", f"{prefix}_high", f"{prefix}_p"), values, strict=True))


def _verdict(contrast: Contrast, other: Contrast | None) -> str:
    if other is None or not (contrast.estimable and other.estimable):
        return "not estimable"
    first, second = (int(test.low > 0) - int(test.high < 0) for test in (contrast, other))
    if first == second:
        return "same"
    return "opposite" if first * second < 0 else "one scale only"


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
    rows = timed_trials(tables.trials, factor, measure)
    kinds = kinds_of(rows)
    spreads = []
    for group, level in product(group_order(rows), tables.levels_of(factor)):
        cell = rows[(rows["reader_group"] == group) & (rows[factor] == level)]
        if len(cell):
            times = cell[measure].to_numpy(dtype=float)
            medians = cell.groupby("reader")[measure].median().to_numpy(dtype=float)
            ends, (grid, density) = np.percentile(times, PERCENTILES), log_density(times)
            spread = TimeSpread(group, kinds[group], measure, level, ends, medians, grid, density, len(times))
            spreads.append(spread)
    return spreads


def log_density(times: Array) -> tuple[Array, Array]:
    """Return a grid of times and the density of their logarithms there: counts in bins, smoothed."""
    logs = np.log(times)
    spread = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
    iqr = float(np.subtract(*np.percentile(logs, [75, 25]))) / 1.349
    smallest = min(value for value in (spread, iqr, np.inf) if value > 0)
    width = 0.9 * smallest * len(logs) ** -0.2 if np.isfinite(smallest) else 0.02
    edges = np.linspace(logs.min() - 4 * width, logs.max() + 4 * width, _BINS + 1)
    step = float(edges[1] - edges[0])
    counts, _ = np.histogram(logs, edges)
    radius = max(1, min(_BINS // 2 - 1, int(np.ceil(4 * width / step))))
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    middles = (edges[:-1] + edges[1:]) / 2
    return np.exp(middles), smooth / (len(logs) * step)
