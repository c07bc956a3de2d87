"""Each model's condition × layer map: cosines of changed and intact texts by layer (Yu et al., 2024, section 4.5, Figure 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from analysis.answers import failures_as_wrong
from analysis.arrays import Array, Index, Mask
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.levels import LevelMeanings
from analysis.measures.pattern_similarity import (
    FEWEST_CONDITIONS,
    Between,
    Identified,
    MapReliability,
    MapSimilarity,
    alike,
    at_depths,
    between_readers,
    centred,
    common,
    cross_correlations,
    halves,
    identified_models,
)
from analysis.measures.resampling import means, percentile_ends, resampled_means
from analysis.measures.similarity import cosines
from analysis.tables import Tables
from experiment.papers.inside.chapters.layers.hidden_states import (
    LAST,
    MEAN,
    REGIONS,
    LayersDone,
    StoredStates,
    fingerprint,
    kept_states,
    remembered,
)
from stimuli.seeds import stable_seed

Places = Index
Reader = Callable[[Places], NDArray[np.float32]]
"""Reads states of one layer by their places, shape (places, width)."""

ROWS_AT_ONCE = 1024
"""Rows of a layer that are held in memory at once: 16 MB of a width of 4,096."""
WORDING = ("prompt_variant", "label_map", "choice_order")
"""Columns that say in which wording of the prompt a text was shown."""


@dataclass(frozen=True, eq=False)
class StatePairs:
    """The pairs of states that are compared."""

    items: tuple[str, ...]
    conditions: tuple[str, ...]  # without the intact one
    item: Places  # shape (pairs,): places in ``items`` and ``conditions``
    condition: Places  # shape (pairs,)
    changed: Places  # shape (pairs,): places of the states
    intact: Places  # shape (pairs,)
    same_wording: Mask


@dataclass(frozen=True, eq=False)
class LayerCosines:
    """The results of one layer."""

    cosine: NDArray[np.float32]
    centred: NDArray[np.float32]  # shape (items, conditions)
    apart: float  # mean cosine of two different items, both intact, over all such pairs
    apart_centred: float


@dataclass(frozen=True, eq=False)
class ConditionMap:
    """A model's map of conditions and layers, item by item."""

    items: tuple[str, ...]
    conditions: tuple[str, ...]
    cosine: NDArray[np.float32]  # shape (items, conditions, layers)
    centred: NDArray[np.float32]  # shape (items, conditions, layers)
    apart: Array  # shape (layers,): as in `LayerCosines`
    apart_centred: Array  # shape (layers,)

    @property
    def layers(self) -> int:
        """Number of layers, including the embedding's output."""
        return int(self.cosine.shape[2])

    def map(self, *, centred: bool = False) -> Array:
        """Return the means over items, shape (conditions, layers); nan where no item was seen in a condition."""
        return means(self.centred if centred else self.cosine)


def pair_rows(
    rows: pd.DataFrame, factor: str, intact: str, conditions: Sequence[str], within: Sequence[str] = ()
) -> StatePairs:
    """Pair each changed text's states with those of the same item intact, in the same wording if any."""
    same_item = [name for name in ("set", "item_id", *within) if name in rows]
    wording = [name for name in WORDING if name in rows]
    candidates = rows.assign(_place=np.arange(len(rows)))[[*same_item, *wording, factor, "_place"]]
    told = {name: candidates[name].astype(object).fillna("").astype(str) for name in wording}
    candidates = candidates.assign(**told).drop_duplicates([*same_item, *wording, factor])
    base = candidates[candidates[factor] == intact]
    changed = candidates[candidates[factor].isin(list(conditions))].reset_index(drop=True)
    exact = _looked_up(changed, base, [*same_item, *wording])
    first = _looked_up(changed, base.drop_duplicates(same_item), same_item)
    matched = np.where(exact >= 0, exact, first)
    paired = matched >= 0
    changed, matched, exact = changed[paired], matched[paired], exact[paired]
    named = (changed[name].astype(str) for name in ("set", "item_id") if name in rows)
    texts = list(map("/".join, zip(*named, strict=True)))
    items = tuple(sorted(set(texts)))
    shown = tuple(condition for condition in conditions if (changed[factor] == condition).any())
    return StatePairs(
        items,
        shown,
        pd.Categorical(texts, items).codes.astype(np.intp),
        pd.Categorical(changed[factor].astype(str), shown).codes.astype(np.intp),
        changed["_place"].to_numpy(dtype=np.intp),
        matched.astype(np.intp),
        np.asarray(exact >= 0, dtype=bool),
    )


def _looked_up(changed: pd.DataFrame, base: pd.DataFrame, by: list[str]) -> NDArray[np.int64]:
    """Return the place of the intact states that belong to each changed text; −1 where there are none."""
    lookup = base[[*by, "_place"]].rename(columns={"_place": "_intact"})
    merged = changed[by].merge(lookup, on=by, how="left", validate="many_to_one")
    return merged["_intact"].fillna(-1).to_numpy(dtype=np.int64)


def layer_cosines(read: Reader, pairs: StatePairs) -> LayerCosines:
    """Compare the pairs of one layer in two passes over it, a thousand rows in memory at a time."""
    used = np.union1d(pairs.changed, pairs.intact)
    total = sum(part.sum(axis=0, dtype=float) for part in _in_parts(read, used))
    mean = np.asarray(total / max(len(used), 1))
    bases, where = np.unique(pairs.intact, return_inverse=True)
    order = np.argsort(where, kind="stable")
    shape = (len(pairs.items), len(pairs.conditions))
    sums = np.zeros((2, *shape))
    counts = np.zeros((2, *shape))
    for start in range(0, len(order), ROWS_AT_ONCE):
        batch = order[start : start + ROWS_AT_ONCE]
        base_rows = bases[where[batch[0]] : where[batch[-1]] + 1]
        intact = read(base_rows).astype(float)[where[batch] - where[batch[0]]]
        changed = read(pairs.changed[batch]).astype(float)
        for kind, offset in enumerate((0.0, mean)):
            values = cosines(changed - offset, intact - offset)
            is_finite = np.isfinite(values)
            cells = (pairs.item[batch][is_finite], pairs.condition[batch][is_finite])
            np.add.at(sums[kind], cells, values[is_finite])
            np.add.at(counts[kind], cells, 1.0)
    of_items = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0).astype(np.float32)
    first = np.unique(pairs.intact[np.unique(pairs.item, return_index=True)[1]])
    return LayerCosines(of_items[0], of_items[1], _apart(read, first, None), _apart(read, first, mean))


def _in_parts(read: Reader, rows: Places) -> Iterator[NDArray[np.float32]]:
    """Yield the states of rows, as many at a time as are held in memory."""
    yield from (read(rows[start : start + ROWS_AT_ONCE]) for start in range(0, len(rows), ROWS_AT_ONCE))


def _apart(read: Reader, rows: Places, offset: Array | None) -> float:
    """Return the mean cosine of all pairs of different rows."""
    total: Array | float = 0.0
    n_rows = 0
    for part in _in_parts(read, rows):
        states = part.astype(float) - (0.0 if offset is None else offset)
        size = np.linalg.norm(states, axis=1)
        states = states[size > 0] / size[size > 0, None]
        total = total + states.sum(axis=0)
        n_rows += len(states)
    if n_rows < 2:
        return float("nan")
    return float((np.sum(np.square(total)) - n_rows) / (n_rows * (n_rows - 1)))


VERSION = 1
"""Version of the computation; results of another version are recomputed."""
POSITIONS = (MEAN, REGIONS, LAST)
FEWEST_ITEMS = 2
"""Items that a map needs."""


@dataclass(frozen=True, eq=False)
class Represented:
    """One model's map in one set of items."""

    group: str  # reader group
    run: str  # as `experiment.papers.inside.chapters.layers.hidden_states.StoredStates` has them
    position: str
    part: str  # name of the set of items; empty where a study has one
    factor: str
    intact: str
    pattern: ConditionMap
    pairs: int
    other_wording: int


def represented(
    tables: Tables, meanings: LevelMeanings, progress: Callable[[str], None] = lambda _: None
) -> list[Represented]:
    """Return the map of every model with hidden states, by one factor."""
    if meanings.intact is None:
        return []
    maps: list[Represented] = []
    groups: set[str] = set()
    for position in POSITIONS:
        stored_states = [state for state in kept_states(tables, position) if state.group not in groups]
        groups.update(stored.group for stored in stored_states)
        for stored in stored_states:
            maps += _of_model(stored, meanings, tables.factors, progress)
    return maps


def _of_model(
    stored: StoredStates,
    meanings: LevelMeanings,
    factors: Mapping[str, Sequence[str]],
    progress: Callable[[str], None],
) -> Iterator[Represented]:
    assert meanings.intact is not None
    rows = stored.rows
    others = tuple(
        name for name in factors if name != meanings.factor and name in rows and rows[name].nunique() > 1
    )
    order = [level for level in factors[meanings.factor] if level != meanings.intact]
    set_names = rows["set"].astype(str) if "set" in rows else pd.Series("", index=rows.index)
    parts = []
    for part, set_rows in rows.groupby(set_names, sort=False):
        pairs = pair_rows(set_rows.reset_index(drop=True), meanings.factor, meanings.intact, order, others)
        if len(pairs.items) >= FEWEST_ITEMS and pairs.conditions:
            parts.append((str(part), set_rows.index.to_numpy(dtype=np.intp), pairs))
    for part, places, pairs in parts:
        title = part if len(parts) > 1 else ""
        task = f"representations of {stored.group}{f' in {title}' if title else ''}"
        pattern, wording = _pattern(stored, places, pairs, task, progress), int((~pairs.same_wording).sum())
        key = stored.group, stored.run, stored.position, title, meanings.factor, meanings.intact
        yield Represented(*key, pattern, len(pairs.item), wording)


def _pattern(
    stored: StoredStates, places: Places, pairs: StatePairs, task: str, progress: Callable[[str], None]
) -> ConditionMap:
    """Compute a model's map layer by layer, storing each layer; progress is reported for layers that were not stored before."""
    keys = stored.rows["work_key"].astype(str).to_numpy()[places]
    made_of = {
        "version": VERSION,
        "position": stored.position,
        "group": stored.group,
        "width": stored.width,
        "items": pairs.items,
        "conditions": pairs.conditions,
        "changed": [keys[index] for index in pairs.changed],
        "intact": [keys[index] for index in pairs.intact],
    }
    mark = fingerprint(made_of, pairs.item, pairs.condition)
    layers = []
    for number in range(stored.layers):

        def read(rows: Places, number: int = number) -> NDArray[np.float32]:
            return stored.layer(number, places[rows])

        def compute(read: Reader = read, number: int = number) -> dict[str, NDArray[Any]]:
            progress(LayersDone(task, number, stored.layers))
            layer = layer_cosines(read, pairs)
            apart = np.array([layer.apart, layer.apart_centred])
            return {"cosine": layer.cosine, "centred": layer.centred, "apart": apart}

        layers.append(remembered(stored.folder, f"representations_layer_{number:02d}", mark, compute))
    cosine, centred = (np.stack([layer[name] for layer in layers], axis=2) for name in ("cosine", "centred"))
    apart, apart_centred = np.array([layer["apart"] for layer in layers], dtype=float).T
    return ConditionMap(pairs.items, pairs.conditions, cosine, centred, apart, apart_centred)


FEWEST_IN_HALVES = 8
"""Items that halves need."""


@dataclass(frozen=True, eq=False)
class MapIntervals:
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
    found: MapSimilarity


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


def cells(of_items: NDArray[np.floating], seed: int) -> MapIntervals:
    """Average a model's items in each cell, with intervals; items are drawn with all their cells."""
    with_mean = np.concatenate([of_items, over_layers(of_items)[..., None]], axis=2).astype(float)
    value = means(with_mean)
    draws = np.full((1, value.size), np.nan)
    if len(with_mean) > 1:
        draws = resampled_means(with_mean.reshape(len(with_mean), -1), seed)
    counts = np.isfinite(with_mean).sum(axis=0)[:, -1].astype(np.int64)
    return MapIntervals(value, *percentile_ends(draws.reshape(-1, *value.shape)), counts)


def over_layers(values: NDArray[np.floating]) -> Array:
    """Average over layers, the last axis, those that have a value: equal states have no centred cosine."""
    return means(np.moveaxis(values, -1, 0))


def accuracy_of(trials: pd.DataFrame, represented: Represented) -> Array:
    """Return percent right of a model in each condition of its map, failures as wrong; nan where nothing can be right."""
    rows = asked(trials)
    rows = rows[(rows[GROUP] == represented.group) & rows[represented.factor].notna()]
    if represented.part:
        rows = rows[rows["set"].astype(str) == represented.part]
    right = failures_as_wrong(rows).astype(float).groupby(rows[represented.factor].astype(str)).mean()
    return np.array([100 * float(right.get(name, np.nan)) for name in represented.pattern.conditions])


def with_accuracy(represented: Represented, accuracy: Array, study: str) -> tuple[float, float, int]:
    """Correlate ranks of the mean centred cosine and of accuracy over conditions; p is one-sided."""
    cosine = over_layers(represented.pattern.map(centred=True))
    is_finite = np.isfinite(cosine) & np.isfinite(accuracy)
    if is_finite.sum() < FEWEST_CONDITIONS:
        return float("nan"), float("nan"), int(is_finite.sum())
    one, other = (rankdata(values[is_finite])[:, None] for values in (cosine, accuracy))
    seed = stable_seed(study, "accuracy and cosine", represented.group, represented.part)
    correlation = alike(one, other, seed)
    return correlation.r, correlation.p, int(is_finite.sum())


def reliability(represented: Represented, study: str) -> tuple[MapReliability, MapReliability]:
    """Return the similarity of the maps from two halves of a model's items, for both ways of centring."""
    seed = stable_seed(study, "halves of items", represented.group, represented.part)
    return halves(represented.pattern.cosine, seed), halves(represented.pattern.cosine, seed, centring="both")


def between_sets(represented_sets: Sequence[tuple[str, Represented]], study: str) -> Iterator[TwoSets]:
    """Compare each model's maps in every two data sets that it read."""
    for (name, first), (other_name, second) in combinations(represented_sets, 2):
        if first.group != second.group or first.pattern.layers != second.pattern.layers:
            continue
        shared, maps = common([(two.pattern.conditions, two.pattern.map()) for two in (first, second)])
        if len(shared) >= FEWEST_CONDITIONS:
            seed = stable_seed(study, "data sets", first.group, name, other_name)
            yield TwoSets(first.group, name, other_name, alike(maps[0], maps[1], seed))


def between_models(models: Sequence[Represented], study: str) -> SeveralModels | None:
    """Compare the maps of models on the items that all of them have; None with too few."""
    if len(models) < 2:
        return None
    patterns = [represented.pattern for represented in models]
    conditions, items = (
        reduce(lambda first, second: first.intersection(second, sort=False), map(pd.Index, names))
        for names in ([pattern.conditions for pattern in patterns], [pattern.items for pattern in patterns])
    )
    if len(conditions) < FEWEST_CONDITIONS or len(items) < FEWEST_IN_HALVES:
        return None
    depths = min(pattern.layers for pattern in patterns)
    shared = []
    for pattern in patterns:
        places = (
            pd.Index(pattern.items).get_indexer(items),
            pd.Index(pattern.conditions).get_indexer(conditions),
        )
        shared.append(at_depths(pattern.cosine[np.ix_(*places)], depths))
    maps = np.stack(shared)
    complete: Mask = np.asarray(np.isfinite(maps).all(axis=(0, 2, 3)))
    if complete.sum() < FEWEST_IN_HALVES:
        return None
    maps = maps[:, complete]
    shared_items = [item for item, is_complete in zip(items, complete, strict=True) if is_complete]
    seed = stable_seed(study, "models", models[0].factor, models[0].part)
    order = np.argsort([stable_seed(study, "halves of items", item) for item in shared_items], kind="stable")
    mean_maps = maps.mean(axis=1)
    both_ways = (mean_maps, centred(mean_maps), centred(mean_maps, "both"))
    return SeveralModels(
        tuple(represented.group for represented in models),
        len(shared_items),
        len(conditions),
        depths,
        len({pattern.layers for pattern in patterns}) > 1,
        between_readers(maps, seed),
        between_readers(maps, seed, centring="both"),
        identified_models(maps, order.astype(np.intp), seed),
        *(cross_correlations(matrix, matrix) for matrix in both_ways),
    )
