"""What each changed condition costs against the intact one, reader group by reader group: the letter-position profile.

Accuracy costs are percentage points lost; time costs are ratios of each participant to their own intact baseline, in
percent. Costs are never standardised by a spread, which would make a deterministic model's effect enormous.
Intervals are percentile bootstraps: over participants, or over items for a model or baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.descriptives import scored
from analysis.plan import Measure
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from stimuli.seeds import stable_seed

RESAMPLES = 2000
LETTER_POSITIONS = ("initial", "internal", "middle", "final")


@dataclass(frozen=True)
class Cost:
    """What one level costs one reader group."""

    group: str
    kind: str
    level: str
    cost: float  # percentage points of accuracy lost, or percent of time added
    low: float  # ends of the 95% bootstrap interval; nan where there are fewer than two units
    high: float
    units: int  # participants, or items, that saw both this level and the reference


def is_letter_position(levels: tuple[str, ...] | list[str]) -> bool:
    """Whether the levels of a factor (reference first) are letter positions of a word."""
    return sum(level in LETTER_POSITIONS for level in levels[1:]) >= 2


def costs(
    trials: pd.DataFrame, measure: Measure, factor: str, levels: tuple[str, ...], study: str
) -> list[Cost]:
    """Return the cost of every level but the reference for every reader group."""
    rows = scored(trials[trials[factor].notna()], measure)
    if rows.empty:
        return []
    kinds = kinds_of(rows)
    found = []
    for group in group_order(rows):
        person = kinds[group] in PARTICIPANT_KINDS
        if measure.logged and not person:
            continue
        own = rows[rows["reader_group"] == group]
        means = own.pivot_table(index="reader" if person else "item_id", columns=factor, values="value")
        if levels[0] not in means:
            continue
        for level in levels[1:]:
            if level not in means:
                continue
            differences = (means[level] - means[levels[0]]).dropna().to_numpy(dtype=float)
            if not len(differences):
                continue
            seed = stable_seed(study, "bootstrap", measure.name, factor, level, group)
            low, high = bootstrap_interval(differences, seed)
            ends = sorted((_as_cost(low, measure), _as_cost(high, measure)))
            cost = _as_cost(float(differences.mean()), measure)
            found.append(Cost(group, kinds[group], level, cost, ends[0], ends[1], len(differences)))
    return found


def _as_cost(difference: float, measure: Measure) -> float:
    return 100.0 * (float(np.exp(difference)) - 1.0) if measure.logged else -100.0 * difference


def bootstrap_interval(values: NDArray[np.float64], seed: int, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean; nan where there are fewer than two values."""
    if len(values) < 2:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).integers(0, len(values), size=(RESAMPLES, len(values)))
    ends = np.quantile(values[drawn].mean(axis=1), [0.5 - level / 2, 0.5 + level / 2])
    return float(ends[0]), float(ends[1])
