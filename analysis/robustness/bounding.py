"""Keeps a check affordable: of a big study whole participants, and whole sessions of models, are drawn by a stable hash."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis import apa
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of
from analysis.tables import Tables
from stimuli.seeds import stable_seed

FEWEST = 20
"""Participants of a group that stay, however few trials a check may take."""


def drawn_readers(tables: Tables, most: int) -> tuple[Tables, str]:
    """Draw whole participants and whole sessions of models until about ``most`` analysed trials are left.

    Parameters
    ----------
    tables : Tables
    most : int
        Analysed trials above which is drawn; every reader group keeps the same share, at least 20 participants or one session.

    Returns
    -------
    tables : Tables
        The same ones where nothing had to be drawn.
    told : str
        How many were drawn of how many, in a sentence; empty where none were.
    """
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    if len(used) <= most:
        return tables, ""
    share, kinds, study = most / len(used), kinds_of(used), str(tables.dictionary["study"])
    kept = pd.Series(False, index=trials.index)
    told = []
    for group in group_order(used):
        person = kinds[group] in PARTICIPANT_KINDS
        column, noun = ("reader", "participant") if person else ("session_id", "session")
        names = used.loc[used["reader_group"] == group, column].unique()
        many = min(len(names), max(FEWEST if person else 1, round(share * len(names))))
        order = sorted(map(str, names), key=lambda name: stable_seed(study, "drawn readers", name))
        chosen = set(order[:many])
        kept |= (trials["reader_group"] == group) & trials[column].astype(str).isin(chosen)
        told.append(f"{headed(group)}: {apa.count(many)} of {apa.counted(len(names), noun)}")
    smaller = replace(tables, trials=trials[kept])
    left = int(smaller.trials["excluded_reason"].isna().sum())
    return smaller, (
        f"To stay quick this check took {apa.count(left)} of {apa.count(len(used))} analysed trials, of whole participants and "
        f"sessions drawn by a stable hash ({'; '.join(told)})."
    )
