"""Draws whole participants and whole sessions of models, where there are more rows than an analysis can bear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import apa
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of
from analysis.tables import Tables
from stimuli.seeds import stable_seed


@dataclass(frozen=True)
class Drawn:
    """The rows that remain after sampling."""

    kept: NDArray[np.bool_]  # shape (rows,)
    units: dict[str, tuple[int, int]]  # drawn and available units of each reader group

    @property
    def thinned(self) -> dict[str, tuple[int, int]]:
        """Those groups of which some do not stay."""
        return {group: counts for group, counts in self.units.items() if counts[0] < counts[1]}

    def fewer(self) -> str:
        """Return ``3 of 9`` for all groups together."""
        drawn, total = (sum(counts[index] for counts in self.units.values()) for index in (0, 1))
        return f"{drawn:,} of {total:,}"


def units_of(rows: pd.DataFrame) -> pd.Series[str]:
    """Return what stays or goes as a whole: the reader of a participant's row, the session of a model's."""
    people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    return rows["session_id"].where(~people, rows["reader"]).astype(str)


def place_in_order(unit: str) -> float:
    """Return the place of a participant or session in the sampling order, from 0 to 1."""
    return stable_seed("drawn readers", unit) / 2.0**64


def draw(
    groups: pd.Series[str],
    units: pd.Series[str],
    most: int | Mapping[str, float],
    fewest: int | Mapping[str, int] = 1,
) -> Drawn:
    """Draw whole units until a group has as many rows as it may."""
    is_kept = np.zeros(len(groups), dtype=bool)
    names = units.astype(str)
    counts: dict[str, tuple[int, int]] = {}
    for group in groups.unique():
        in_group = (groups == group).to_numpy()
        sizes = names[in_group].value_counts()
        order = sorted(sizes.index, key=lambda name: (place_in_order(name), name))
        max_rows = most if isinstance(most, int) else most[group]
        minimum = fewest if isinstance(fewest, int) else fewest[group]
        count = min(len(order), max(minimum, int((sizes[order].cumsum() <= max_rows).sum())))
        is_kept[in_group] = names[in_group].isin(order[:count])
        counts[str(group)] = (count, len(order))
    return Drawn(is_kept, counts)


def shares(groups: pd.Series[str], most: int) -> dict[str, float]:
    """Return how many rows each group may keep where all together have at most ``most`` and none loses more than the others."""
    sizes = groups.value_counts()
    return {str(group): min(1.0, most / len(groups)) * float(size) for group, size in sizes.items()}


FEWEST = 20
"""Participants of a group that stay, however few trials a check may take."""


def drawn_readers(tables: Tables, most: int) -> tuple[Tables, str]:
    """Draw whole participants and whole sessions of models until about ``most`` analysed trials are left."""
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    if len(used) <= most:
        return tables, ""
    kinds = kinds_of(used)
    fewest = {group: FEWEST if kind in PARTICIPANT_KINDS else 1 for group, kind in kinds.items()}
    groups = used["reader_group"].astype(str)
    drawn = draw(groups, units_of(used), shares(groups, most), fewest)
    chosen = pd.MultiIndex.from_arrays([groups[drawn.kept], units_of(used)[drawn.kept]]).unique()
    is_kept = pd.MultiIndex.from_arrays([trials["reader_group"].astype(str), units_of(trials)]).isin(chosen)
    counts = []
    for group in group_order(used):
        count, total = drawn.units[group]
        noun = "participant" if kinds[group] in PARTICIPANT_KINDS else "session"
        counts.append(f"{headed(group)}: {apa.count(count)} of {apa.counted(total, noun)}")
    smaller = replace(tables, trials=trials[is_kept])
    left = int(smaller.trials["excluded_reason"].isna().sum())
    return smaller, (
        f"To limit computing time, this check used {apa.count(left)} of {apa.count(len(used))} analyzed trials, of whole "
        f"participants and sessions drawn by a stable hash ({'; '.join(counts)})."
    )
