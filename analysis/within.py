"""Which trials an unplanned comparison stays within, so that it does not pool what sessions were asked in different ways.

Where each session holds one level of another factor (with or without solved examples; one scramble of several), trials of its
levels differ in more than the compared conditions, and a model of the compared factor alone would put the other's effect down to
sessions. Such a comparison is made within each level by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.plan import Plan, Within


def parted_by_sessions(rows: pd.DataFrame, factor: str, factors: Mapping[str, Sequence[str]]) -> list[Within]:
    """Return the parts of trials within which levels of a factor are compared."""
    seen = rows[rows[factor].notna()]
    apart = [name for name in factors if name != factor and _parts_sessions(seen, name)]
    if not apart:
        return [()]
    several = seen.groupby(apart, sort=False, observed=True)[factor].nunique()
    found = [
        tuple(zip(apart, map(str, levels if isinstance(levels, tuple) else (levels,)), strict=True))
        for levels in several[several > 1].index
    ]
    ranks = {name: {level: place for place, level in enumerate(map(str, factors[name]))} for name in apart}
    found.sort(key=lambda within: [ranks[name].get(level, len(ranks[name])) for name, level in within])
    return found or [()]


def _parts_sessions(rows: pd.DataFrame, name: str) -> bool:
    """Whether every session holds one level of a factor, and not all the same."""
    if name not in rows or rows[name].nunique() < 2 or rows[name].isna().any():
        return False
    return bool((rows.groupby("session_id")[name].nunique() == 1).all())


def shown(rows: pd.DataFrame, within: Within) -> pd.Series[bool]:
    """Mark the rows that show these levels."""
    kept = pd.Series(True, index=rows.index)
    for factor, level in within:
        kept &= rows[factor] == level
    return kept


def held_by(plan: Plan, trials: pd.DataFrame) -> pd.Series[bool]:
    """Mark the trials that are of a plan's kind and show its levels of other factors."""
    kept = shown(trials, plan.within)
    return kept if plan.trials is None else kept & (trials["trial_type"] == plan.trials)


def said(within: Within) -> str:
    """Say the levels in words, for the name of an analysis: ``examples few-shot``; empty for all trials."""
    return ", ".join(f"{factor} {level}" for factor, level in within)


def of_trials(trials: str | None, within: Within) -> str:
    """Say behind a name of which trials it is: `` (choose, examples few-shot)``; empty for all."""
    told = ", ".join(one for one in (trials, said(within)) if one)
    return f" ({told})" if told else ""
