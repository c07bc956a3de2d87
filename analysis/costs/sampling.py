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
from analysis.whole_readers import draw

MOST_TRIALS = 20_000
"""Analysed trials of one group of participants."""


def fewer_participants(tables: Tables, most: int = MOST_TRIALS) -> tuple[Tables, tuple[str, ...]]:
    """Keep as many whole participants of each group as have at most so many analysed trials together."""
    trials = tables.trials
    people = trials["reader_kind"].isin(PARTICIPANT_KINDS)
    used = people & trials["excluded_reason"].isna()
    drawn = draw(trials.loc[used, "reader_group"], trials.loc[used, "reader"], most, fewest=2)
    if not drawn.thinned:
        return tables, ()
    gone = pd.MultiIndex.from_frame(
        trials.loc[used, ["reader_group", "reader"]][~drawn.kept].drop_duplicates()
    )
    names = pd.MultiIndex.from_frame(trials[["reader_group", "reader"]])
    remarks = tuple(
        f"{kept:,} of {there:,} participants are in it, whole and drawn by a stable hash: models of more than "
        f"{most:,} trials take hours and say little more."
        for kept, there in drawn.thinned.values()
    )
    return replace(tables, trials=trials[~(people & names.isin(gone))]), remarks
