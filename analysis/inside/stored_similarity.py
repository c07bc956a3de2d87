"""Cosine similarities of the hidden states that a study has kept: of a scrambled and the intact prompt of the same item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.inside.kept import LAST, MEAN, REGIONS, Kept, kept_states
from analysis.measures.accuracy import GROUP
from analysis.measures.levels import Levels
from analysis.measures.similarity import similarity
from analysis.tables import Tables
from stimuli.seeds import stable_seed

MOST_PAIRS = 1000
"""Pairs of vectors in one mean; beyond, items are drawn by a stable hash."""
_ITEM = ["set", "item_id"]


def state_similarities(tables: Tables, does: Levels, study: str) -> pd.DataFrame:
    """Return the cosine of each model's last-layer states of every item at a level and intact.

    States are means over the tokens of the prompt, as in TypoBench; where a run kept none, means over the words read, else
    those of the last token.

    Returns
    -------
    pandas.DataFrame
        A row per reader group and level: ``taken`` (position of the states), ``pairs, of`` (items compared, and there), ``layer``,
        ``cosine, low, high`` (95% bootstrap over items), ``centred`` (the mean vector taken away first), ``unpaired, p`` (what
        pairs drawn at random give); empty without states, without the intact level, or where trials cannot be told from
        their states.
    """
    if does.intact is None:
        return pd.DataFrame()
    found: list[dict[str, object]] = []
    seen: set[str] = set()
    for position in (MEAN, REGIONS, LAST):
        kept = [one for one in kept_states(tables, position) if one.group not in seen]
        seen.update(one.group for one in kept)
        for one in kept:
            found += _of_group(one, does, does.intact, study)
    return pd.DataFrame(found)


def _of_group(kept: Kept, does: Levels, intact: str, study: str) -> Iterator[dict[str, object]]:
    rows = kept.rows[kept.rows[does.factor].notna()]
    once = rows.drop_duplicates([*_ITEM, does.factor])
    wide = once.assign(place=once.index).set_index([*_ITEM, does.factor])["place"].unstack()
    if intact not in wide:
        return
    layer = kept.layers - 1
    others = (*does.changed, *does.substituted, *does.withheld, *does.unknown)
    for level in [one for one in others if one in wide]:
        pairs = wide[[intact, level]].dropna()
        there = len(pairs)
        order = [stable_seed(study, "states", kept.group, str(name)) for name in pairs.index]
        pairs = pairs.iloc[np.argsort(order, kind="stable")[:MOST_PAIRS]]
        if pairs.empty:
            continue
        own, other = (kept.layer(layer, pairs[name].to_numpy(dtype=np.intp)) for name in (intact, level))
        one = similarity(own, other, stable_seed(study, "similarity", kept.group, str(level)))
        yield {
            GROUP: kept.group,
            does.factor: str(level),
            "taken": kept.position,
            "pairs": one.pairs,
            "of": there,
            "layer": layer,
            "cosine": one.cosine,
            "low": one.low,
            "high": one.high,
            "centred": one.centred,
            "unpaired": one.unpaired,
            "p": one.p,
        }
