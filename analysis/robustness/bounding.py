"""Keeps a check affordable: of a big study whole participants, and whole sessions of models, are drawn by a stable hash."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis import apa
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of
from analysis.tables import Tables
from analysis.whole_readers import draw, shares, units_of

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
    kept = pd.MultiIndex.from_arrays([trials["reader_group"].astype(str), units_of(trials)]).isin(chosen)
    told = []
    for group in group_order(used):
        many, there = drawn.units[group]
        noun = "participant" if kinds[group] in PARTICIPANT_KINDS else "session"
        told.append(f"{headed(group)}: {apa.count(many)} of {apa.counted(there, noun)}")
    smaller = replace(tables, trials=trials[kept])
    left = int(smaller.trials["excluded_reason"].isna().sum())
    return smaller, (
        f"To stay quick this check took {apa.count(left)} of {apa.count(len(used))} analysed trials, of whole participants and "
        f"sessions drawn by a stable hash ({'; '.join(told)})."
    )
