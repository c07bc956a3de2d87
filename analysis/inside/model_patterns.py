"""Patterns of the models of a study, summarised: means with intervals, reliability, between data sets, between models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from analysis.answers import failures_as_wrong
from analysis.inside.distinctness import Between, Identified, between_readers, identified_models
from analysis.inside.pattern_similarity import (
    FEWEST_CONDITIONS,
    Alike,
    Halves,
    alike,
    at_depths,
    centred,
    common,
    halves,
    row_correlations,
)
from analysis.inside.representations import Represented
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import percentile_ends, resampled_means
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

FEWEST_ITEMS = 8
"""Items that halves need."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A map with 95% percentile intervals of a bootstrap over items."""

    value: Array  # shape (conditions, layers + 1): the last column is the mean over layers
    low: Array  # shape (conditions, layers + 1)
    high: Array  # shape (conditions, layers + 1)
    items: NDArray[np.int64]  # shape (conditions,)


@dataclass(frozen=True)
class TwoSets:
    """One model's maps in two data sets (tasks, studies)."""

    model: str
    one: str
    other: str
    found: Alike


@dataclass(frozen=True, eq=False)
class SeveralModels:
    """Maps of models of the same items."""

    models: tuple[str, ...]
    items: int  # what all of them have; the depths are relative ones where models have unlike many layers
    conditions: int
    depths: int
    interpolated: bool
    layers: Between  # with each layer's mean taken away, and each condition's too
    both: Between
    identified: Identified
    cosine: Array  # shape (models, models): of whole maps as vectors, as in the paper
    r: Array
    r_both: Array  # shape (models, models)


def cells(of_items: NDArray[np.floating], seed: int) -> Cells:
    """Average a model's items in each cell, with intervals; items are drawn with all their cells."""
    whole = np.concatenate([of_items, of_items.mean(axis=2, keepdims=True)], axis=2).astype(float)
    flat = whole.reshape(len(whole), -1)
    known = np.isfinite(flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(known, flat, 0.0).sum(axis=0) / known.sum(axis=0)
    if len(flat) > 1:
        low, high = percentile_ends(resampled_means(flat, seed))
    else:
        low, high = np.full_like(value, np.nan), np.full_like(value, np.nan)
    shape = whole.shape[1:]
    counts = known.reshape(whole.shape).sum(axis=0)[:, -1].astype(np.int64)
    return Cells(value.reshape(shape), low.reshape(shape), high.reshape(shape), counts)


def accuracy_of(trials: pd.DataFrame, one: Represented) -> Array:
    """Return percent right of a model in each condition of its map, failures as wrong; nan where nothing can be right."""
    rows = asked(trials)
    rows = rows[(rows[GROUP] == one.group) & rows[one.factor].notna()]
    if one.part:
        rows = rows[rows["set"].astype(str) == one.part]
    right = failures_as_wrong(rows).astype(float).groupby(rows[one.factor].astype(str)).mean()
    return np.array([100 * float(right.get(name, np.nan)) for name in one.pattern.conditions])


def with_accuracy(one: Represented, accuracy: Array, study: str) -> tuple[float, float, int]:
    """Correlate ranks of the mean centred cosine and of accuracy over conditions; p is one-sided."""
    near = one.pattern.map(centred=True).mean(axis=1)
    known = np.isfinite(near) & np.isfinite(accuracy)
    if known.sum() < FEWEST_CONDITIONS:
        return float("nan"), float("nan"), int(known.sum())
    ranks = [rankdata(values[known])[:, None] for values in (near, accuracy)]
    found = alike(ranks[0], ranks[1], stable_seed(study, "accuracy and cosine", one.group, one.part))
    return found.r, found.p, int(known.sum())


def reliability(one: Represented, study: str) -> tuple[Halves, Halves]:
    """Return how alike the maps of halves of a model's items are, by both centrings."""
    seed = stable_seed(study, "halves of items", one.group, one.part)
    return (
        halves(one.pattern.cosine, seed),
        halves(one.pattern.cosine, seed, centring="both"),
    )


def between_sets(found: Sequence[tuple[str, Represented]], study: str) -> Iterator[TwoSets]:
    """Compare each model's maps in every two data sets that it read."""
    for (name, one), (other_name, other) in combinations(found, 2):
        if one.group != other.group or one.pattern.layers != other.pattern.layers:
            continue
        shared, maps = common([(two.pattern.conditions, two.pattern.map()) for two in (one, other)])
        if len(shared) >= FEWEST_CONDITIONS:
            seed = stable_seed(study, "data sets", one.group, name, other_name)
            yield TwoSets(one.group, name, other_name, alike(maps[0], maps[1], seed))


def between_models(found: Sequence[Represented], study: str) -> SeveralModels | None:
    """Compare the maps of models on the items that all of them have; None with too few."""
    if len(found) < 2:
        return None
    conditions = [
        name for name in found[0].pattern.conditions if all(name in one.pattern.conditions for one in found)
    ]
    items = sorted(set.intersection(*(set(one.pattern.items) for one in found)))
    if len(conditions) < FEWEST_CONDITIONS or len(items) < FEWEST_ITEMS:
        return None
    depths = min(one.pattern.layers for one in found)
    maps = np.stack([_laid_out(one, items, conditions, depths) for one in found])
    complete: NDArray[np.bool_] = np.asarray(np.isfinite(maps).all(axis=(0, 2, 3)))
    if complete.sum() < FEWEST_ITEMS:
        return None
    maps = maps[:, complete]
    kept = [item for item, is_complete in zip(items, complete, strict=True) if is_complete]
    seed = stable_seed(study, "models", found[0].factor, found[0].part)
    order = np.argsort([stable_seed(study, "halves of items", item) for item in kept], kind="stable")
    whole = maps.mean(axis=1)
    return SeveralModels(
        tuple(one.group for one in found),
        len(kept),
        len(conditions),
        depths,
        len({one.pattern.layers for one in found}) > 1,
        between_readers(maps, seed),
        between_readers(maps, seed, centring="both"),
        identified_models(maps, order.astype(np.intp), seed),
        _of_pairs(whole),
        _of_pairs(centred(whole)),
        _of_pairs(centred(whole, "both")),
    )


def _of_pairs(maps: Array) -> Array:
    """Return the cosine of every two maps as vectors, shape (models, conditions, layers) to (models, models)."""
    return np.asarray(row_correlations(maps[:, None], maps[None]))


def _laid_out(one: Represented, items: Sequence[str], conditions: Sequence[str], depths: int) -> Array:
    place = {name: number for number, name in enumerate(one.pattern.items)}
    column = {name: number for number, name in enumerate(one.pattern.conditions)}
    own = one.pattern.cosine[[place[item] for item in items]][:, [column[name] for name in conditions]]
    return at_depths(own, depths)
