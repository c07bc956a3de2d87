"""Cosine similarities that a study has stored: of hidden states of a scrambled and the intact prompt, and of scored answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.measures.levels import Levels
from analysis.measures.similarity import similarity
from analysis.reading import as_frame, column_names, read_columns
from analysis.tables import Tables
from stimuli.seeds import stable_seed

GROUP = "reader_group"
SCORER = "similarity"
MOST_PAIRS = 1000
"""Pairs of vectors in one mean; beyond, items are drawn by a stable hash."""
_PLACE = ["session_id", "trial_index", "attempt"]
_UP = 4


def states_folder(tables: Tables) -> Path | None:
    """Return the folder of hidden states of the study that the tables lie in; None where there is none."""
    here = tables.folder.resolve()
    for folder in [here, *here.parents][:_UP]:
        if (folder / "states").is_dir() and any((folder / "states").glob("*/index.parquet")):
            return folder / "states"
    return None


def state_similarities(tables: Tables, does: Levels, study: str) -> pd.DataFrame:
    """Return the cosine of each model's last-layer states of every item at a level and intact.

    States of several places of one prompt (words read) are averaged first, as TypoBench averages over tokens.

    Returns
    -------
    pandas.DataFrame
        A row per reader group and level: ``pairs, of`` (items compared, and there), ``layer``, ``cosine, low, high`` (95% bootstrap
        over items), ``centred`` (the mean vector taken away first), ``unpaired, p`` (what pairs drawn at random give); empty
        without states, without the intact level, or where trials cannot be told from their states.
    """
    folder = states_folder(tables)
    if folder is None or does.intact is None or "work_key" not in column_names(tables.source.trials):
        return pd.DataFrame()
    keys = as_frame(
        read_columns(tables.source.trials, [*_PLACE, "work_key"], tables.source.types.get("trials"))
    )
    keys = keys.assign(**{name: keys[name].astype(float) for name in _PLACE[1:]})
    trials = tables.trials
    rows = trials[
        trials["excluded_reason"].isna() & (trials["reader_kind"] == "model") & trials[does.factor].notna()
    ]
    rows = rows.merge(keys[keys["work_key"].notna()], on=_PLACE, how="inner")
    found = []
    for run in sorted(path.parent for path in folder.glob("*/index.parquet")):
        index = pd.read_parquet(run / "index.parquet")
        known = rows[rows["work_key"].isin(set(index["work_key"]))]
        layers = sorted(run.glob("layer_*.npy"))
        if known.empty or not layers:
            continue
        places: dict[str, list[int]] = {}
        for key, row in zip(index["work_key"], index["row"], strict=True):
            places.setdefault(str(key), []).append(int(row))
        states = np.load(layers[-1], mmap_mode="r")
        for group, own in known.groupby(GROUP, sort=False):
            found += list(_of_group(str(group), own, states, places, does, study, len(layers) - 1))
    return pd.DataFrame(found)


def _of_group(
    group: str,
    own: pd.DataFrame,
    states: NDArray[np.float16],
    places: dict[str, list[int]],
    does: Levels,
    study: str,
    layer: int,
) -> Iterator[dict[str, object]]:
    once = own.drop_duplicates([*_ITEM, does.factor])
    wide = once.set_index([*_ITEM, does.factor])["work_key"].unstack()
    if does.intact not in wide:
        return
    others = (*does.changed, *does.substituted, *does.withheld, *does.unknown)
    for level in [one for one in others if one in wide]:
        pairs = wide[[does.intact, level]].dropna()
        there = len(pairs)
        order = [stable_seed(study, "states", group, str(name)) for name in pairs.index]
        pairs = pairs.iloc[np.argsort(order, kind="stable")[:MOST_PAIRS]]
        if pairs.empty:
            continue
        vectors = [
            np.array([np.asarray(states[places[key]], dtype=float).mean(axis=0) for key in pairs[name]])
            for name in (does.intact, level)
        ]
        one = similarity(vectors[0], vectors[1], stable_seed(study, "similarity", group, str(level)))
        yield {
            GROUP: group,
            does.factor: str(level),
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


_ITEM = ["set", "item_id"]


def scored_similarities(trials: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Return the used trials whose score is a cosine of answers (``wrods score --similarity``), where answers count so."""
    named = trials["scorer"].astype(str).str.startswith(SCORER)
    return trials[trials["excluded_reason"].isna() & named & trials["score"].notna() & trials[factor].notna()]
