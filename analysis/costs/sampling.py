"""Whole participants drawn by a stable hash, where a study has more trials than a detailed analysis of its times can use.

Models of times on their own scale and analyses of single words take seconds for some ten thousand trials and hours for a
million, and are no surer of a condition for it once participants are many. Participants stay or go whole, so that nothing
that varies within one of them is thinned out; models of language stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables
from stimuli.seeds import stable_seed

MOST_TRIALS = 20_000
"""Analysed trials of one group of participants."""


def fewer_participants(tables: Tables, most: int = MOST_TRIALS) -> tuple[Tables, tuple[str, ...]]:
    """Keep as many whole participants of each group as have at most so many analysed trials together.

    Parameters
    ----------
    tables : Tables
    most : int
        Trials of one reader group; two participants stay in any case.

    Returns
    -------
    Tables
        The same where no group has more.
    tuple of str
        A sentence for each group that was thinned out.
    """
    trials = tables.trials
    people = trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used = people & trials["excluded_reason"].isna()
    gone: set[tuple[str, str]] = set()
    remarks = []
    for group, own in trials[used].groupby("reader_group", sort=False):
        if len(own) <= most:
            continue
        counts = own["reader"].value_counts()
        study = str(tables.dictionary["study"])
        order = sorted(counts.index, key=lambda one: stable_seed(study, "cost", str(group), str(one)))
        reached = counts.loc[order].cumsum().to_numpy()
        stay = max(2, int((reached <= most).sum()))
        gone |= {(str(group), str(one)) for one in order[stay:]}
        remarks.append(
            f"{stay:,} of {len(order):,} participants are in it, whole and drawn by a stable hash: models of more than "
            f"{most:,} trials take hours and say little more."
        )
    if not gone:
        return tables, ()
    names = pd.MultiIndex.from_arrays([trials["reader_group"].astype(str), trials["reader"].astype(str)])
    return replace(tables, trials=trials[~(people & names.isin(gone))]), tuple(remarks)
