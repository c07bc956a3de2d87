"""Where a reader's summaries or translations lie between saying the same of every text and its answer about the intact text.

Mind Scramble (2024, Table 2) compares each answer with the same reader's answer about the intact text. A reader who says one
sentence of every text then has a cosine of 1 throughout. The mean cosine of a reader's answers about *different* intact texts is the
floor of this measure, as that of different texts is of Table 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.measures.resampling import interval, resampled_means, where_it_varies
from analysis.published.mind_scramble import REORDERINGS, Values, kept
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

REORDERED = tuple(level for _, some in REORDERINGS for level in some)
LEAST_ROOM = 0.05
"""Percent between floor and 100 from which on a place between them means anything; less prints as 100.0 or all but."""
_FEWEST = 3


@dataclass(frozen=True)
class Above:
    """One reader's answers above their floor."""

    group: str
    items: int  # intact texts whose answer was compared with those about other texts
    mean: float
    floor: float
    share: float
    low: float
    high: float


def worth(values: Values, group: str) -> float:
    """Return what ranks a reader in a task: its mean over reorderings (of cosines, above the floor)."""
    mean = kept(values, group, REORDERED)[0]
    if not values.floors:
        return mean
    return _share(mean, _mean(values.floors[group])) if group in values.floors else math.nan


def floors(values: Values, study: str) -> list[Above]:
    """Return each reader's answers above their floor; empty where no floor was taken."""
    found = []
    for group, of_items in values.floors.items():
        mean, floor = kept(values, group, REORDERED)[0], _mean(of_items)
        drawn = drawn_worth(values, [group], stable_seed(study, "floor of answers", group))[:, 0]
        many = int(np.isfinite(of_items).sum())
        ends = where_it_varies(interval(drawn if many >= _FEWEST else np.empty(0)))
        found.append(Above(group, many, mean, floor, _share(mean, floor), ends.low, ends.high))
    return found


def drawn_worth(values: Values, groups: Sequence[str], seed: int) -> Array:
    """Return :func:`worth` in resamples of items; shape (resamples, groups)."""
    places = [values.levels.index(level) for level in REORDERED if level in values.levels]
    nothing = np.full(len(next(iter(values.of_items.values()))), math.nan)
    wide = np.hstack(
        [
            np.column_stack(
                [values.of_items[group][:, places], pair_values(values.floors.get(group, nothing))]
            )
            for group in groups
        ]
    )
    drawn = resampled_means(wide, seed).reshape(-1, len(groups), len(places) + 1)
    there = np.isfinite(drawn[:, :, :-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(there, drawn[:, :, :-1], 0.0).sum(axis=2) / there.sum(axis=2)
        room = 100.0 - drawn[:, :, -1]
        shares = np.where(room >= LEAST_ROOM, 100.0 * (1.0 - (100.0 - means) / room), math.nan)
    return np.asarray(shares if values.floors else means)


def pair_values(of_items: Array) -> Array:
    """Return jackknife pseudo-values of a mean over pairs: (2 (n − 1) h_i − n U)/(n − 2) (Arvesen, 1969)."""
    n = int(np.isfinite(of_items).sum())
    if n < _FEWEST:
        return of_items
    return np.asarray((2 * (n - 1) * of_items - n * np.nanmean(of_items)) / (n - 2))


def _share(mean: float, floor: float) -> float:
    room = 100.0 - floor
    return 100.0 * (1.0 - (100.0 - mean) / room) if room >= LEAST_ROOM else math.nan


def _mean(of_items: Array) -> float:
    return float(np.nanmean(of_items)) if np.isfinite(of_items).any() else math.nan
