"""Where a model's surprisal rises when letters change: in the changed words themselves, or in the intact words after them.

Of a model that reads from left to right, words before the first change have the same surprisal as in the intact text. All that a
change adds lies in the words that it changes and in those behind the first of them, whose context it has made harder to follow.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables, item_names

CHANGED, AFTER = "bits_changed", "bits_after"
_TRIAL = ["session_id", "trial_index", "attempt"]
_READ = {"is_changed", "surprisal"}


def surprisal_parts(tables: Tables) -> dict[str, Tables]:
    """Return the tables twice, with the surprisal of a part of each text instead of the whole."""
    words = _changed_words(tables)
    if words.empty:
        return {}
    sums = _sums(tables, words)
    if sums.empty:
        return {}
    key = pd.MultiIndex.from_frame(tables.trials[_TRIAL])
    return {
        name: replace(tables, trials=tables.trials.assign(surprisal=sums[name].reindex(key).to_numpy()))
        for name in (CHANGED, AFTER)
    }


def _changed_words(tables: Tables) -> pd.Series[int]:
    """Return the numbers of the regions that some condition changes, by item."""
    parts = []
    for batch in tables.region_batches():
        if "is_changed" in batch:
            own = batch[batch["is_changed"].fillna(False).astype(bool)]
            parts.append(pd.DataFrame({"item": item_names(own), "region": own["region"]}).drop_duplicates())
    if not parts:
        return pd.Series(dtype=int)
    return pd.concat(parts).drop_duplicates().set_index("item")["region"].astype(int)


def _sums(tables: Tables, words: pd.Series[int]) -> pd.DataFrame:
    """Sum models' surprisal over the words of ``words`` and over the others behind the first of them, trial by trial."""
    known = set(zip(words.index, words, strict=True))
    first = words.groupby(level=0).min()
    parts = []
    for batch in tables.region_batches():
        if not set(batch) >= _READ:
            continue
        own = batch[batch["surprisal"].notna() & ~batch["reader_kind"].isin(PARTICIPANT_KINDS)]
        own = own.assign(item=item_names(own))
        own = own[own["item"].isin(first.index)]
        if own.empty:
            continue
        region = own["region"].astype(int)
        changed = pd.Series(
            [one in known for one in zip(own["item"], region, strict=True)], index=own.index, dtype=bool
        )
        after = ~changed & (region > own["item"].map(first))
        told = own[_TRIAL].assign(
            **{CHANGED: own["surprisal"].where(changed), AFTER: own["surprisal"].where(after)}
        )
        parts.append(told.groupby(_TRIAL, sort=False).sum(min_count=1))
    if not parts:
        return pd.DataFrame(columns=[CHANGED, AFTER])
    sums = pd.concat(parts).groupby(level=_TRIAL).sum(min_count=1)
    sums = sums[sums[CHANGED].notna()]
    return sums.assign(**{AFTER: sums[AFTER].fillna(0.0)})
