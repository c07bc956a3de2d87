"""Measures for the tables and figures of Mind Scramble (TypoBench, 2024, arXiv:2410.01677), from a user's study."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from ruamel.yaml import YAML
from scipy import stats

from analysis.answers import failures_as_wrong, is_valid, never_answered
from analysis.arrays import Array
from analysis.exclusions import IDENTICAL
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import (
    BootstrapInterval,
    interval,
    item_means,
    mean_ends,
    mean_of,
    resampled_means,
    resampled_ratios,
    where_it_varies,
)
from analysis.measures.similarity import OWN_ANSWER, REFERENCE, scored_similarities
from analysis.readers import group_order
from analysis.tables import Tables, found_above, item_names, joined_beside, table_beside
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

BASE = "BASE"
_DATA: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("printed.yaml").read_text("utf-8"))
REORDERINGS: dict[str, list[str]] = _DATA["reorderings"]
"""Columns of Tables 1 and 2, by the unit that changes."""
REORDERED = tuple(level for levels in REORDERINGS.values() for level in levels)
EDITS: list[str] = _DATA["edits"]
"""Rows of Table 3."""
EMBEDDED: list[str] = _DATA["embedded"]
"""Columns of Table 4."""
SERIES: dict[str, list[str]] = _DATA["series"]
"""Panels of Figure 4: the level with so many operations inside each word."""
PERCEPTION = ("rectify", "summarise", "translate")
"""Sets of the tasks in which a text is taken in and given back, not a question answered: the paper's Table 2."""
PROGRAMS = "mbpp"
"""The data set whose programs the paper compared by a cosine instead of running them."""
PRICES = "published_scoring.parquet"
CORRECTED = "corrected"
_FEWEST_LEVELS = 3
_RELEASED = "published_typobench"
_PLACE = ["session_id", "trial_index", "attempt"]


@dataclass(frozen=True)
class TaskMeasure:
    """Score of a reply in a task."""

    key: str  # part of names of files
    name: str  # in a table's title; percent
    axis: str  # of figures
    method: str  # how it is taken, for the Method section
    is_perception: bool  # of a task of `PERCEPTION`


ACCURACY, NEARNESS, IN_PLACE, COSINE, PROGRAM_COSINE = (
    TaskMeasure(**_DATA["measures"][name])
    for name in ("accuracy", "nearness", "in_place", "cosine", "program_cosine")
)


@dataclass(frozen=True)
class Values:
    """Score of each item at each level, by reader group."""

    factor: str
    levels: tuple[str, ...]  # the paper's names that the study has, BASE first
    of_items: dict[str, Array]
    spread: pd.DataFrame
    measure: TaskMeasure
    floors: dict[str, Array] = field(default_factory=dict)

    def mean(self, group: str, level: str) -> float:
        """Return a group's mean in a level, percent; nan where it was not seen there."""
        if level not in self.levels:
            return math.nan
        return mean_of(self.of_items[group][:, self.levels.index(level)])

    def replicates(self, group: str, level: str) -> tuple[int, float]:
        """Return the number of replicates and the SD of their means."""
        rows = self.spread[(self.spread[GROUP] == group) & (self.spread[self.factor] == level)]
        return (0, math.nan) if rows.empty else (int(rows["replicates"].iloc[0]), float(rows["sd"].iloc[0]))


def factor_of(tables: Tables) -> str | None:
    """Return the factor whose levels are the paper's TypoFuncs; None where a study has none."""
    typo_functions = {*EDITS, *EMBEDDED, *REORDERED}.union(*SERIES.values())
    candidates = (
        name for name, levels in tables.factors.items() if len(typo_functions & {*levels}) >= _FEWEST_LEVELS
    )
    return next((name for name in candidates if BASE in tables.factors[name]), None)


def values_of(tables: Tables, factor: str) -> list[Values]:
    """Measure every used answer in each way that fits its task; empty where none can be measured."""
    # identical repeats of a deterministic model count too: a replicate's mean is over all its items, not over those that differ
    again = tables.trials["excluded_reason"] == IDENTICAL
    reason = tables.trials["excluded_reason"].mask(again)
    tables = replace(tables, trials=tables.trials.assign(excluded_reason=reason, is_repeat=again))
    used = tables.trials[reason.isna() & tables.trials[factor].notna() & ~never_answered(tables.trials)]
    cosines = scored_similarities(tables, factor)
    cosines = cosines.assign(worth=100.0 * cosines["similarity"].astype(float))
    answered = (cosines["compared_with"] == OWN_ANSWER) & cosines["set"].isin(PERCEPTION)
    # an answer to BASE is compared with itself, which says nothing of readers who saw each text once
    answered &= cosines[GROUP].isin(cosines.loc[answered & (cosines[factor] != BASE), GROUP])
    right = asked(used[used["trial_type"] != "recover"])
    measured = [
        (ACCURACY, right.assign(worth=100.0 * failures_as_wrong(right).astype(float))),
        *_restored(used[used["trial_type"] == "recover"], tables),
        (COSINE, cosines[answered]),
        (PROGRAM_COSINE, cosines[cosines["compared_with"] == REFERENCE]),
    ]
    return [
        _values(rows, measure, factor, tables.factors[factor])
        for measure, rows in measured
        if (rows[factor] == BASE).any()
    ]


def unscored(tables: Tables, factor: str) -> int:
    """Count the valid answers in sessions of whose answers to a task none has a score or was compared."""
    trials = tables.trials
    answered = trials[
        trials["excluded_reason"].isna()
        & trials[factor].notna()
        & is_valid(trials)
        & (trials["reader_kind"] != "baseline")
    ]
    task = ["session_id", "set"]
    scored = answered[answered[["correct", "score"]].notna().any(axis="columns")]
    tasks = pd.concat([scored[task], scored_similarities(tables, factor)[task]]).drop_duplicates()
    return len(answered) - len(answered.merge(tasks, on=task))


def _restored(restored: pd.DataFrame, tables: Tables) -> Iterator[tuple[TaskMeasure, pd.DataFrame]]:
    """Yield the replies in which the released scorer found a passage, by words in place, and all replies, by nearness."""
    is_released = restored["scorer"].astype(str).str.startswith(_RELEASED)
    percent = 100.0 * restored["score"].astype(float)
    valid = is_valid(restored)
    yield IN_PLACE, restored.assign(worth=percent)[is_released & valid & percent.notna()]
    replies, released = restored.assign(worth=percent.where(valid, 0.0))[~is_released], restored[is_released]
    corrected = None if released.empty else joined_beside(released, tables.folder, Path(PRICES).stem)
    if corrected is not None:
        corrected = corrected[
            (corrected["data_set"] == "rectify") & corrected["rule"].isin((CORRECTED, "mended"))
        ]
        corrected = corrected.assign(worth=100.0 * corrected["value"].astype(float))
        replies = pd.concat([replies, corrected], ignore_index=True) if len(replies) else corrected
    yield NEARNESS, replies


def _values(rows: pd.DataFrame, measure: TaskMeasure, factor: str, order: Sequence[str]) -> Values:
    levels = (BASE, *(level for level in order if level != BASE and (rows[factor] == level).any()))
    means = item_means(rows, rows["worth"], factor).reindex(columns=list(levels))
    items = means.droplevel(0).index.unique()
    parts = {
        str(group): group_means.droplevel(0).reindex(items).to_numpy(dtype=float)
        for group, group_means in means.groupby(level=0, sort=False)
    }
    of_items = {group: parts[group] for group in group_order(rows) if group in parts}
    floors: dict[str, Array] = {}
    if measure == COSINE:
        floor_means = (
            (100.0 * rows["unrelated"]).groupby([rows[name] for name in (GROUP, "set", "item_id")]).mean()
        )
        for group in of_items:
            item_floors = floor_means.xs(group).reindex(items).to_numpy(dtype=float)
            floors |= {group: item_floors} if np.isfinite(item_floors).any() else {}
    replicates = rows.assign(replicate=rows["replicate"].fillna(1))
    of_replicates = replicates.groupby([GROUP, factor, "replicate"], observed=True)["worth"].mean()
    spread = of_replicates.groupby(level=[0, 1]).agg(replicates="size", sd="std").reset_index()
    own_replies = rows[~rows["is_repeat"]].groupby([GROUP, "set", "item_id", factor], observed=True).size()
    varies = (own_replies > 1).groupby(level=0).any()
    spread["sd"] = spread["sd"].where(spread[GROUP].map(varies).fillna(False).astype(bool))
    return Values(factor, levels, of_items, spread, measure, floors)


@dataclass(frozen=True)
class Slope:
    """Loss of a reader with each further operation inside a word."""

    group: str
    operation: str
    counts: tuple[int, ...]  # operations in a word, 0 for BASE
    means: tuple[float, ...]  # percent
    slope: float
    low: float
    high: float


def slopes(values: Values, study: str = "") -> list[Slope]:
    """Return the scrambling-ratio series of Figure 4 that have slopes: those with two counts in addition to BASE."""
    fitted = []
    for operation, names in SERIES.items():
        index_of = {0: 0} | {
            n: values.levels.index(name) for n, name in enumerate(names, 1) if name in values.levels
        }
        counts = np.array(list(index_of), dtype=float)
        for group, items in values.of_items.items() if len(index_of) > 2 else ():
            complete = items[:, list(index_of.values())]
            complete = complete[np.isfinite(complete).all(axis=1)]
            if len(complete):
                weights = (counts - counts.mean()) / ((counts - counts.mean()) ** 2).sum()
                slope = _with_ends(complete @ weights, stable_seed(study, "slope", operation, group))
                fitted.append(
                    Slope(group, operation, tuple(index_of), tuple(complete.mean(axis=0).tolist()), *slope)
                )
    return fitted


def _with_ends(values: Array, seed: int) -> tuple[float, float, float]:
    """Return a mean over units and the ends of its interval."""
    ends = mean_ends(values, seed)
    return float(values.mean()), ends.low, ends.high


def kept(values: Values, group: str, levels: Sequence[str]) -> tuple[float, float]:
    """Return the mean over the study's levels in percent, and in percent of BASE (Table 3's retention)."""
    means = [values.mean(group, level) for level in levels if level in values.levels]
    base = values.mean(group, BASE)
    if not means or not all(map(math.isfinite, means)):
        return math.nan, math.nan
    mean = float(np.mean(means))
    return mean, 100.0 * mean / base if base else math.nan


def fault_prices(tables: Tables) -> pd.DataFrame:
    """Return how much each error of the released scorer changes the scores of a study's replies."""
    prices = table_beside(tables.folder, Path(PRICES).stem)
    columns = ["data_set", GROUP, "rule", "released", "value", "price", "low", "high"]
    columns += ["turned", "replies", "items", "ordered"]
    if prices is None:
        return pd.DataFrame(columns=columns)
    # a baseline's answer is no reply that the paper's code could read
    used = tables.trials[
        tables.trials["excluded_reason"].isna() & (tables.trials["reader_kind"] != "baseline")
    ]
    numbers = {"trial_index": float, "attempt": float}
    trial_groups = used[[*_PLACE, GROUP]].assign(item=item_names(used)).astype(numbers)
    rows = prices.astype(numbers).merge(trial_groups, on=_PLACE)
    rows["rule"] = rows["rule"].replace("mended", CORRECTED)  # its name in earlier exports, and in seeds
    priced_rows = []
    for names, group_rows in rows.groupby(["data_set", GROUP], sort=False):
        wide = group_rows.set_index(["item", *_PLACE, "rule"])["value"].unstack().astype(float)
        for rule in group_rows["rule"].unique():
            if rule != "released":
                seed_name = "mended" if rule == CORRECTED else str(rule)
                seed = stable_seed(str(tables.dictionary["study"]), "fault", *map(str, names), seed_name)
                priced = _price(wide["released"], wide[rule], seed, is_cosine=names[0] == PROGRAMS)
                priced_rows.append(dict(zip(columns[:3], (*names, rule), strict=True)) | priced)
    order = group_order(used)
    by_group = pd.DataFrame(priced_rows, columns=columns)
    return by_group.sort_values(
        GROUP, key=lambda column: column.map(order.index), kind="stable", ignore_index=True
    )


def _price(
    released: pd.Series[float], other: pd.Series[float], seed: int, *, is_cosine: bool
) -> dict[str, object]:
    """Return the means by two rules and their difference with its interval over items, in percent, and how many replies turn."""
    items = pd.factorize(released.index.get_level_values("item"))[0]
    first, second = np.array([released, other], dtype=float)
    ends, value, right = (
        _price_ends(np.column_stack([first, second]), items, seed),
        mean_of(first),
        mean_of(second),
    )
    turned = int((~((first == second) | (np.isnan(first) & np.isnan(second)))).sum())
    return {
        "released": 100.0 * value,
        "value": 100.0 * right,
        "price": 100.0 * (value - right),
        "low": ends.low,
        "high": ends.high,
        "turned": math.nan if is_cosine else turned,
        "replies": len(first),
        "items": int(items.max()) + 1,
        "ordered": _ordered_pairs(first, second) if is_cosine else math.nan,
    }


def _ordered_pairs(values: Array, right: Array) -> float:
    """Return in how many pairs of a right and a wrong reply the right one has the larger value, percent; ties are halves."""
    of_right, of_wrong = (values[(right == is_right) & np.isfinite(values)] for is_right in (1, 0))
    if not len(of_right) or not len(of_wrong):
        return math.nan
    ordered = float(stats.mannwhitneyu(of_right, of_wrong, method="asymptotic").statistic)
    return 100.0 * ordered / (len(of_right) * len(of_wrong))


def _price_ends(scores: Array, items: NDArray[np.intp], seed: int) -> BootstrapInterval:
    """Resample items with their replies; return the interval of the two rules' difference in points."""
    n_items = int(items.max()) + 1
    if n_items < 2:
        return BootstrapInterval(math.nan, math.nan, 1.0)
    sums, counts = np.zeros((n_items, 2)), np.zeros((n_items, 2))
    np.add.at(sums, items, np.nan_to_num(scores))
    np.add.at(counts, items, np.isfinite(scores).astype(float))
    means = resampled_ratios(sums, counts, seed)
    return where_it_varies(interval(100.0 * (means[:, 0] - means[:, 1])))


LEAST_ROOM = 0.05
"""Percent between floor and 100 from which on a place between them means anything; less prints as 100.0 or all but."""
_FEWEST = 3


@dataclass(frozen=True)
class Above:
    """One reader's answers above their floor."""

    group: str
    items: int  # intact texts whose answer was compared with those about other texts
    mean: float
    floor: float
    share: float
    low: float
    high: float


def worth(values: Values, group: str) -> float:
    """Return what ranks a reader in a task: its mean over reorderings (of cosines, above the floor)."""
    mean = kept(values, group, REORDERED)[0]
    if not values.floors:
        return mean
    return _share(mean, mean_of(values.floors[group])) if group in values.floors else math.nan


def floors(values: Values, study: str) -> list[Above]:
    """Return each reader's answers above their floor; empty where no floor was taken."""
    results = []
    for group, of_items in values.floors.items():
        mean, floor = kept(values, group, REORDERED)[0], mean_of(of_items)
        drawn = drawn_worth(values, [group], stable_seed(study, "floor of answers", group))[:, 0]
        n_items = int(np.isfinite(of_items).sum())
        ends = where_it_varies(interval(drawn if n_items >= _FEWEST else np.empty(0)))
        results.append(Above(group, n_items, mean, floor, _share(mean, floor), ends.low, ends.high))
    return results


def drawn_worth(values: Values, groups: Sequence[str], seed: int) -> Array:
    """Return :func:`worth` in resamples of items; shape (resamples, groups)."""
    places = [values.levels.index(level) for level in REORDERED if level in values.levels]
    nothing = np.full(len(next(iter(values.of_items.values()))), math.nan)
    floors = [pair_values(values.floors.get(group, nothing)) for group in groups]
    pairs = zip(groups, floors, strict=True)
    wide = np.hstack([np.c_[values.of_items[group][:, places], floor] for group, floor in pairs])
    drawn = resampled_means(wide, seed).reshape(-1, len(groups), len(places) + 1)
    is_known = np.isfinite(drawn[:, :, :-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(is_known, drawn[:, :, :-1], 0.0).sum(axis=2) / is_known.sum(axis=2)
        room = 100.0 - drawn[:, :, -1]
        shares = np.where(room >= LEAST_ROOM, 100.0 * (1.0 - (100.0 - means) / room), math.nan)
    return np.asarray(shares if values.floors else means)


def pair_values(of_items: Array) -> Array:
    """Return jackknife pseudo-values of a mean over pairs: (2 (n − 1) h_i − n U)/(n − 2) (Arvesen, 1969)."""
    n = int(np.isfinite(of_items).sum())
    if n < _FEWEST:
        return of_items
    return np.asarray((2 * (n - 1) * of_items - n * np.nanmean(of_items)) / (n - 2))


def _share(mean: float, floor: float) -> float:
    room = 100.0 - floor
    return 100.0 * (1.0 - (100.0 - mean) / room) if room >= LEAST_ROOM else math.nan


FEWEST_MODELS = 3
"""Two models are in the same order or not: no correlation says more of them."""
Part = tuple[str, Values]


@dataclass(frozen=True)
class TaskOrderAgreement:
    """Agreement of two tasks in the order of the same models."""

    completion: str
    perception: str
    models: int  # models in both; those with the same rank in both
    same: int
    tau: float
    low: float
    high: float


def ranks(parts: Sequence[Part], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Rank models by their mean over reorderings in each part, of cosines by their place above the floor."""
    groups = _models(parts, kinds)
    table = pd.DataFrame(index=pd.Index(groups, name=GROUP))
    for name, values in parts:
        table[name] = [worth(values, group) for group in groups]
        table[f"rank {name}"] = table[name].rank(ascending=False)
    return table


def alike_throughout(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the models that cannot be ranked in a part since they say the same of every text, each with the part."""
    return [
        (group, name)
        for name, values in parts
        for group in values.floors
        if kinds.get(group) == "model" and np.isnan(worth(values, group))
    ]


def not_in_all(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the models that have no mean in a part but are in another, each with the part."""
    models = dict.fromkeys(
        group for _, values in parts for group in values.of_items if kinds.get(group) == "model"
    )
    return [
        (group, name)
        for group in models
        for name, values in parts
        if group not in values.floors and not _has_worth(values, group)
    ]


def _has_worth(values: Values, group: str) -> bool:
    return group in values.of_items and bool(np.isfinite(worth(values, group)))


def agreements(
    completed: Sequence[Part], perceived: Sequence[Part], kinds: Mapping[str, str]
) -> list[TaskOrderAgreement]:
    """Compare models' order in completion and in perception tasks; empty below three models."""
    results = []
    for pair in product(completed, perceived):
        names, table = (pair[0][0], pair[1][0]), ranks(pair, kinds)
        if len(table) >= FEWEST_MODELS:
            drawn = [
                drawn_worth(values, list(table.index), stable_seed(name, "ranks")) for name, values in pair
            ]
            tau = float(_taus(*(table[name].to_numpy(dtype=float)[None, :] for name in names))[0])
            ends = where_it_varies(interval(_taus(*drawn)))
            same = int((table[f"rank {names[0]}"] == table[f"rank {names[1]}"]).sum())
            results.append(TaskOrderAgreement(*names, len(table), same, tau, ends.low, ends.high))
    return results


def _models(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[str]:
    """Return the models with a mean in every part."""
    groups = parts[0][1].of_items if parts else ()
    return [
        group
        for group in groups
        if kinds.get(group) == "model" and all(_has_worth(values, group) for _, values in parts)
    ]


def _taus(array: Array, other: Array) -> Array:
    """Return Kendall's τ-b of each row of two tables, shape (rows, models) each; nan where all of a row are tied."""
    pairs = list(combinations(range(array.shape[1]), 2))
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    # what differs by less than rounding is tied
    signs = [np.sign(np.round(table[:, first] - table[:, second], 9)) for table in (array, other)]
    with np.errstate(invalid="ignore", divide="ignore"):
        untied = np.sqrt((signs[0] ** 2).sum(axis=1) * (signs[1] ** 2).sum(axis=1))
        return np.asarray((signs[0] * signs[1]).sum(axis=1) / untied)


STORED = "similarity.json"
UNITS = {
    unit: [name for name in EMBEDDED if name.startswith(starts) != (unit == "Character")]
    for unit, starts in {"Character": ("WORD-", "SENT-"), "Word": ("WORD-",), "Sentence": ("SENT-",)}.items()
}
"""Columns of Table 4 by the unit that changes; the paper's section 4.5 gives their means (CSQA: .885, .952 and .998)."""


@dataclass(frozen=True)
class Near:
    """Cosines of one sort of text."""

    of: str  # ``text alone`` or ``whole prompt``
    means: dict[str, float]  # by level
    items: dict[str, dict[str, float]] = field(default_factory=dict)
    unrelated: tuple[float, ...] = ()
    pairs: int = 0  # pairs of different items that these come from
    with_all: bool = False  # whether each item was compared with all others
    texts: int = 0
    cut: int | None = None  # texts that are longer than the model reads

    @property
    def floor(self) -> float:
        """Mean cosine of texts that have nothing in common; nan where it was not taken."""
        return float(np.mean(self.unrelated)) if self.unrelated else math.nan

    def floor_ends(self, study: str) -> tuple[float, float]:
        """Return a 95% interval of the floor, by a bootstrap over items; nan with fewer than three."""
        values = np.array(self.unrelated, dtype=float)
        if self.with_all and len(values) < _FEWEST:
            return math.nan, math.nan
        seed = stable_seed(study, "unrelated texts", self.of)
        return _with_ends(pair_values(values) if self.with_all else values, seed)[1:]

    def share(self, mean: float) -> float:
        """Return where a cosine lies between the floor (0) and 1 (100), percent; negative below the floor."""
        return 100 * (mean - self.floor) / (1 - self.floor) if self.floor < 1 else math.nan


@dataclass(frozen=True)
class UnitMean:
    """A unit's mean over operations and items, with 95% percentile bootstraps over items."""

    unit: str
    operations: int
    items: int
    mean: float
    low: float
    high: float
    above: float  # by how much it exceeds the unit before, of the same items; nan for the first
    above_low: float
    above_high: float


def stored_texts(folder: Path) -> tuple[str, tuple[Near, ...]] | None:
    """Read what ``wrods score STUDY --similarity`` kept of the texts shown; None without it."""
    file = found_above(folder, STORED)
    if file is None:
        return None
    try:
        record = json.loads(file.read_text("utf-8"))
        digest, items = record.get("items"), file.with_name("items.jsonl")
        similarities = [_near_of("text alone", record)]
        if record.get("prompts"):
            similarities.append(_near_of("whole prompt", record["prompts"]))
        use = str(record["use"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} is not what wrods score --similarity keeps",
            mend="Run that command again, or remove the file.",
        ) from error
    if digest is not None and items.is_file() and hashlib.sha256(items.read_bytes()).hexdigest() != digest:
        raise UserError(
            f"{file} compares other items than the study has now", mend="Run wrods score --similarity again."
        )
    return use, tuple(similarities)


def _near_of(of: str, record: Mapping[str, Any]) -> Near:
    shown = {str(name).split("=")[-1].split(": ")[-1]: entry for name, entry in record["shown"].items()}
    cut, unrelated = record.get("cut"), record.get("unrelated") or {}
    return Near(
        of,
        {name: float(entry["mean"]) for name, entry in shown.items()},
        {
            name: {str(item): float(value) for item, value in zip(entry["of"], entry["cosines"], strict=True)}
            for name, entry in shown.items()
            if "cosines" in entry
        },
        tuple(float(cosine) for cosine in unrelated.get("cosines", ())),
        int(unrelated.get("pairs") or 0),
        "of" in unrelated,
        int(record.get("texts") or 0),
        None if cut is None else int(cut),
    )


def unit_means(similarity: Near, study: str) -> list[UnitMean]:
    """Average operations of each unit, item by item, over the items that have all of them; empty without single items."""
    units = {unit: [name for name in names if similarity.items.get(name)] for unit, names in UNITS.items()}
    units = {unit: names for unit, names in units.items() if names}
    everything = [set(similarity.items[name]) for names in units.values() for name in names]
    shared = sorted(set.intersection(*everything)) if everything else []
    if not shared:
        return []
    of_unit = [[similarity.items[name] for name in names] for names in units.values()]
    values = np.array([[np.mean([by[item] for by in parts]) for parts in of_unit] for item in shared])
    seed = stable_seed(study, "units of texts", similarity.of)
    means = [_with_ends(column, seed) for column in values.T]
    above = [(math.nan,) * 3, *(_with_ends(column, seed) for column in np.diff(values, axis=1).T)]
    counts = [(unit, len(names), len(shared)) for unit, names in units.items()]
    return [UnitMean(*count, *mean, *step) for count, mean, step in zip(counts, means, above, strict=True)]
