"""Costs of people and models side by side: log ratios against each reader's own intact baseline, and profiles.

Milliseconds and bits cannot be subtracted, and standardising by a spread makes a deterministic model's effect enormous. The
natural logarithm of changed / intact has no unit; a profile divided by its own mean over the changed levels has not even a
size and shows only the shape: which levels cost more than the reader's average one. Intervals are percentile bootstraps over
participants and items at once for people, over items for a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.costs.units import UNITS, UnitCosts
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS, group_order
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CostProfile:
    """The cost profile of one reader group in one measure."""

    group: str
    kind: str
    measure: str
    profile: Profile  # log ratios
    without: int  # cells of reader, item and level that have no logarithm, since they cost 0

    @property
    def scaled(self) -> tuple[Array, Array]:
        """The profile and its draws, each divided by its own mean over the levels: shapes (k,) and (resamples, k)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = self.profile.estimate / self.profile.estimate.mean()
            return whole, self.profile.draws / self.profile.draws.mean(axis=1, keepdims=True)


def cost_profiles(costs: UnitCosts, *, study: str = "", resamples: int = RESAMPLES) -> list[CostProfile]:
    """Return every reader group's profile in every measure that it has intact and in another level."""
    found = []
    for measure, rows in costs.rows.groupby("measure", sort=False):
        for group in group_order(rows):
            own = rows[rows["reader_group"] == group]
            logged = own[own["value"].notna()]
            levels = tuple(level for level in costs.levels if (logged[costs.factor] == level).any())
            if len(levels) < 2 or levels[0] != costs.levels[0]:
                continue
            kind = str(own["reader_kind"].iloc[0])
            seed = stable_seed(study, "log ratio", str(measure), group)
            make = crossed_profile if kind in PARTICIPANT_KINDS else paired_profile
            try:
                profile = make(logged, costs.factor, levels, seed, resamples)
            except UserError:  # no item in two levels: nothing to divide by
                continue
            found.append(CostProfile(group, kind, str(measure), profile, len(own) - len(logged)))
    return found


def log_ratios(found: list[CostProfile], factor: str) -> pd.DataFrame:
    """Return the log ratios as a table."""
    rows = []
    for one in found:
        for place, level in enumerate(one.profile.levels):
            ends = one.profile.interval(place)
            estimate = float(one.profile.estimate[place])
            rows.append(
                {
                    "measure": one.measure,
                    "unit": UNITS[one.measure],
                    "reader_group": one.group,
                    "reader_kind": one.kind,
                    factor: level,
                    "log_ratio": estimate,
                    "low": ends.low,
                    "high": ends.high,
                    "percent": 100 * float(np.expm1(estimate)),
                    "participants": one.profile.participants,
                    "items": one.profile.items,
                    "without": one.without,
                    "resampled": one.profile.resampled,
                }
            )
    return pd.DataFrame(rows)


def profiles(found: list[CostProfile], factor: str, reference: tuple[str, str] | None = None) -> pd.DataFrame:
    """Return profiles scaled to their own mean, each beside the reference reader's."""
    chosen = next((one for one in found if _is_reference(one, reference)), None)
    if chosen is None and reference is not None:
        known = ", ".join(f"{one.group} {one.measure}" for one in found)
        raise UserError(f"no profile of {reference[0]} in {reference[1]}", mend=f"There are: {known}.")
    rows = []
    for one in found:
        if len(one.profile.levels) < 2:
            continue
        whole, draws = one.scaled
        mean = interval(one.profile.draws.mean(axis=1))
        alike = chosen is not None and chosen is not one and chosen.profile.levels == one.profile.levels
        other, other_draws = (
            chosen.scaled if alike and chosen is not None else (whole * np.nan, draws * np.nan)
        )
        for place, level in enumerate(one.profile.levels):
            ends, apart = interval(draws[:, place]), interval(draws[:, place] - other_draws[:, place])
            rows.append(
                {
                    "measure": one.measure,
                    "reader_group": one.group,
                    "reader_kind": one.kind,
                    factor: level,
                    "scaled": float(whole[place]),
                    "low": ends.low,
                    "high": ends.high,
                    "mean_log_ratio": float(one.profile.estimate.mean()),
                    "mean_low": mean.low,
                    "mean_high": mean.high,
                    "unsure": mean.includes_zero,
                    "difference": float(whole[place] - other[place]),
                    "difference_low": apart.low,
                    "difference_high": apart.high,
                }
            )
    return pd.DataFrame(rows)


def _is_reference(one: CostProfile, reference: tuple[str, str] | None) -> bool:
    if reference is None:
        return one.kind in PARTICIPANT_KINDS and len(one.profile.levels) > 1
    return (one.group, one.measure) == reference
