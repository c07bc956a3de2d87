"""What is left of an accuracy when text is scrambled, relative to intact text: three ratios with their bootstrap intervals.

Scrambled Bench's relative performance gain sets the floor at the accuracy with substituted evidence; TypoBench's retention
sets it at 0. A ratio whose denominator may be 0 says nothing, so each is flagged where the denominator's interval includes 0 or is
missing (of one item).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import Interval, interval, item_means, resampled_means
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

BELOW = "< 0"
"""What Scrambled Bench's tables print for a value below 0."""


def relative_gain(scrambled: float, intact: float, substituted: float) -> float:
    """Return 100 (scrambled − substituted) / (intact − substituted) (Cao et al., 2023)."""
    gap = intact - substituted
    return 100.0 * (scrambled - substituted) / gap if gap else float("nan")


def as_printed(value: float, decimals: int = 2) -> str:
    """Write a rate as Scrambled Bench's tables do: values below 0 as ``< 0``, a zero without a sign."""
    return BELOW if value < 0 else f"{abs(value):.{decimals}f}"


@dataclass(frozen=True)
class Retention:
    """TypoBench's retention of a model on a data set (Mind Scramble, arXiv:2410.01677, tables 1 and 3)."""

    absolute: float  # mean accuracy over the transforms, on the scale given
    relative: float  # the same as a percentage of the accuracy on intact text; nan where that is 0


def retention(intact: float, scrambled: Sequence[float]) -> Retention:
    """Return the mean over transforms, and that mean over the intact accuracy."""
    if not len(scrambled):
        raise UserError("retention over 0 transforms", mend="Give the accuracy under at least one.")
    mean = float(np.mean(scrambled))
    return Retention(mean, 100.0 * mean / intact if intact else float("nan"))


def item_accuracies(trials: pd.DataFrame, factor: str, levels: Sequence[str]) -> dict[str, Array]:
    """Return the share correct of each item in each level by reader group, failures counted as wrong."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    rows = asked(trials)
    present = set(rows[factor].dropna())
    for level in levels:
        if level not in present:
            raise unknown_name(f"{factor}: level", level, sorted(present))
    rows = rows[rows[factor].isin(levels)]
    means = item_means(rows, failures_as_wrong(rows), factor).reindex(columns=list(levels))
    return {str(group): own.to_numpy(dtype=float) for group, own in means.groupby(level=0, sort=False)}


def relative_gains(
    trials: pd.DataFrame,
    factor: str,
    *,
    intact: str,
    substituted: str,
    study: str = "",
    resamples: int = 2000,
) -> pd.DataFrame:
    """Return the relative performance gain of each reader group in each level of a factor."""
    levels = [str(level) for level in pd.unique(asked(trials)[factor].dropna())] if factor in trials else []
    levels = [intact, *(level for level in levels if level not in (intact, substituted)), substituted]
    found = []
    for group, values in item_accuracies(trials, factor, levels).items():
        means = 100.0 * _means(values)
        draws = 100.0 * resampled_means(values, stable_seed(study, "rpg", factor, group), resamples)
        gaps = _ends(draws[:, 0] - draws[:, -1], len(values))
        for place, level in enumerate(levels):
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = 100.0 * (draws[:, place] - draws[:, -1]) / (draws[:, 0] - draws[:, -1])
            ends = _ends(ratio, len(values))
            rpg = relative_gain(means[place], means[0], means[-1])
            found.append(
                {
                    GROUP: group,
                    factor: level,
                    "items": int(np.isfinite(values[:, place]).sum()),
                    "accuracy": float(means[place]),
                    "rpg": rpg,
                    "rpg_low": ends.low,
                    "rpg_high": ends.high,
                    "printed": as_printed(rpg),
                    "gap": float(means[0] - means[-1]),
                    "gap_low": gaps.low,
                    "gap_high": gaps.high,
                    "flagged": gaps.includes_zero,
                }
            )
    return pd.DataFrame(found)


def retentions(
    trials: pd.DataFrame,
    factor: str,
    *,
    intact: str,
    groups_of_levels: Mapping[str, Sequence[str]] | None = None,
    study: str = "",
    resamples: int = 2000,
) -> pd.DataFrame:
    """Return TypoBench's retention, absolute and relative, of each reader group."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    others = [str(one) for one in pd.unique(asked(trials)[factor].dropna()) if one != intact]
    wanted = groups_of_levels or {"all": others}
    levels = [intact, *dict.fromkeys(level for some in wanted.values() for level in some)]
    found = []
    for group, values in item_accuracies(trials, factor, levels).items():
        means = 100.0 * _means(values)
        draws = 100.0 * resampled_means(values, stable_seed(study, "retention", factor, group), resamples)
        base = _ends(draws[:, 0], len(values))
        for name, some in wanted.items():
            places = [levels.index(level) for level in some]
            kept = retention(float(means[0]), [float(means[place]) for place in places])
            absolute = draws[:, places].mean(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                relative = 100.0 * absolute / draws[:, 0]
            ends: dict[str, Any] = {}
            for what, drawn in (("absolute", absolute), ("relative", relative)):
                one = _ends(drawn, len(values))
                ends |= {f"{what}_low": one.low, f"{what}_high": one.high}
            found.append(
                {
                    GROUP: group,
                    "levels": name,
                    "intact": float(means[0]),
                    "absolute": kept.absolute,
                    "relative": kept.relative,
                    **ends,
                    "flagged": base.includes_zero,
                }
            )
    return pd.DataFrame(found)


def _means(values: Array) -> Array:
    """Average each level over the items that were seen in it; nan where none was."""
    seen = np.isfinite(values).sum(axis=0)
    sums = np.nansum(values, axis=0)
    return np.asarray(np.divide(sums, seen, out=np.full(len(sums), np.nan), where=seen > 0))


def _ends(draws: Array, units: int) -> Interval:
    return interval(draws) if units > 1 else Interval(float("nan"), float("nan"), 1.0)
