"""When participants and items have slopes of a factor: it varies within them, and each of its conditions has trials enough.

Of a rare outcome (a missing answer among fifty) most trials say nothing of how readers or items differ; there the trials that count
are those of the rarer outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

TRIALS_FOR_A_SLOPE = 2
TELLING = "trials_that_tell"
"""Column of a model's rows that is 0 where a trial does not count, since its outcome is the common one of a rare event."""


def trials_that_tell(rows: pd.DataFrame, by: Sequence[str]) -> pd.Series[Any]:
    """Count the trials of each group that tell how it differs from others: all, or those of a rare outcome."""
    grouped = rows.groupby(list(by), observed=True)
    return grouped[TELLING].sum() if TELLING in rows else grouped.size()


def is_enough(rows: pd.DataFrame, by: Sequence[str]) -> bool:
    """Whether the median group has the trials that a slope needs."""
    return bool(trials_that_tell(rows, by).median() >= TRIALS_FOR_A_SLOPE)


def said_few(rows: pd.DataFrame, noun: str) -> str:
    """Say that units have too few trials: ``fewer than 2 trials``, of rare outcomes ``… of the rarer outcome``."""
    rarer = " of the rarer outcome" if TELLING in rows and (rows[TELLING] == 0).any() else ""
    return f"fewer than {TRIALS_FOR_A_SLOPE} {noun}{rarer}"


def why_no_slope(people: pd.DataFrame, factor: str) -> str:
    """Say why participants have no slope of a factor; empty where they have one."""
    if not (people.groupby("participant")[factor].nunique() > 1).any():
        return f"Every participant is in one condition of {factor}, so the model has no slope of it by participant."
    if not is_enough(people, ["participant", factor]):
        few = said_few(people, "trials")
        return f"Participants have {few} per condition of {factor} (median), so the model has no slope of it by participant."
    return ""
