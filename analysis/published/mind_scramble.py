"""What the tables and figures of Mind Scramble (TypoBench, 2024, arXiv:2410.01677) show, from a study of one's own.

A study of the template ``mind-scramble`` has a factor whose levels have the paper's names (``BASE``, ``REO-ALL``, ``DEL-INT_2`` …).
Values of items (Tables 1 to 3), their floors, ranks of models across tasks, and similarity of texts (Table 4).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from ruamel.yaml import YAML
from scipy import stats

from analysis.answers import failures_as_wrong, is_valid
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import (
    Interval,
    interval,
    item_means,
    mean_ends,
    mean_of,
    resampled_means,
    resampled_ratios,
    where_it_varies,
)
from analysis.measures.similarity import OWN_ANSWER, REFERENCE, scored_similarities
from analysis.preparing.exclusions import IDENTICAL
from analysis.readers import group_order
from analysis.reading import found_above, joined_beside, table_beside
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

BASE = "BASE"
_DATA: dict[str, Any] = YAML(typ="safe").load(
    Path(__file__).with_name("mind_scramble.yaml").read_text("utf-8")
)
REORDERINGS: dict[str, list[str]] = _DATA["reorderings"]
"""Columns of Tables 1 and 2, by the unit that changes."""
REORDERED = tuple(level for some in REORDERINGS.values() for level in some)
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
_FEWEST_LEVELS = 3
_RELEASED = "published_typobench"
_PLACE = ["session_id", "trial_index", "attempt"]


@dataclass(frozen=True)
class Measure:
    """What a reply to a task is worth."""

    key: str  # part of names of files
    name: str  # in a table's title; percent
    axis: str  # of figures
    method: str  # how it is taken, for the Method section
    is_perception: bool  # of a task of `PERCEPTION`


ACCURACY, NEARNESS, IN_PLACE, COSINE, PROGRAM_COSINE = (
    Measure(**_DATA["measures"][name])
    for name in ("accuracy", "nearness", "in_place", "cosine", "program_cosine")
)


@dataclass(frozen=True)
class Values:
    """What each item is worth in each level, by reader group."""

    factor: str
    levels: tuple[str, ...]  # the paper's names that the study has, BASE first
    of_items: dict[str, Array]
    spread: pd.DataFrame
    measure: Measure
    floors: dict[str, Array] = field(default_factory=dict)

    def mean(self, group: str, level: str) -> float:
        """Return a group's mean in a level, percent; nan where it was not seen there."""
        if level not in self.levels:
            return math.nan
        return mean_of(self.of_items[group][:, self.levels.index(level)])

    def replicates(self, group: str, level: str) -> tuple[int, float]:
        """Return the number of replicates and the SD of their means."""
        own = self.spread[(self.spread[GROUP] == group) & (self.spread[self.factor] == level)]
        return (0, math.nan) if own.empty else (int(own["replicates"].iloc[0]), float(own["sd"].iloc[0]))


def factor_of(tables: Tables) -> str | None:
    """Return the factor whose levels are the paper's TypoFuncs; None where a study has none."""
    known = {*EDITS, *EMBEDDED, *REORDERED, *(level for some in SERIES.values() for level in some)}
    for factor, levels in tables.factors.items():
        if BASE in levels and len(known & set(levels)) >= _FEWEST_LEVELS:
            return factor
    return None


def values_of(tables: Tables, factor: str) -> list[Values]:
    """Measure every used answer in each way that fits its task; empty where none can be measured."""
    tables = _with_repeats(tables)
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna() & trials[factor].notna()]
    restored = used[used["trial_type"] == "recover"]
    cosines = scored_similarities(tables, factor)
    cosines = cosines.assign(worth=100.0 * cosines["similarity"].astype(float))
    answered = (cosines["compared_with"] == OWN_ANSWER) & cosines["set"].isin(PERCEPTION)
    # an answer to BASE is compared with itself, which says nothing of readers who saw each text once
    answered &= cosines[GROUP].isin(cosines.loc[answered & (cosines[factor] != BASE), GROUP])
    right = asked(used[used["trial_type"] != "recover"])
    measured = [
        (ACCURACY, right.assign(worth=100.0 * failures_as_wrong(right).astype(float))),
        (IN_PLACE, _in_place(restored)),
        (NEARNESS, _near(restored, tables)),
        (COSINE, cosines[answered]),
        (PROGRAM_COSINE, cosines[cosines["compared_with"] == REFERENCE]),
    ]
    return [
        _values(rows, measure, factor, tables.factors[factor])
        for measure, rows in measured
        if (rows[factor] == BASE).any()
    ]


def _with_repeats(tables: Tables) -> Tables:
    """Count a deterministic model's identical repeats too: a replicate's mean is over all its items, not over those that differ."""
    again = tables.trials["excluded_reason"] == IDENTICAL
    reason = tables.trials["excluded_reason"].mask(again)
    return replace(tables, trials=tables.trials.assign(excluded_reason=reason, is_repeat=again))


def _is_released(rows: pd.DataFrame) -> pd.Series[bool]:
    return rows["scorer"].astype(str).str.startswith(_RELEASED)


def _in_place(restored: pd.DataFrame) -> pd.DataFrame:
    """Return the replies that count by the released scorer; those in which it found no field are in no mean of its."""
    rows = restored[_is_released(restored) & is_valid(restored) & restored["score"].notna()]
    return rows.assign(worth=100.0 * rows["score"].astype(float))


def _near(restored: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """Return all replies with their nearness: those that count by the released scorer have it among its prices."""
    own = restored[~_is_released(restored)]
    own = own.assign(worth=100.0 * own["score"].where(is_valid(own), 0.0).astype(float))
    released = restored[_is_released(restored)]
    told = None if released.empty else joined_beside(released, tables.folder, Path(PRICES).stem)
    if told is None:
        return own
    told = told[(told["data_set"] == "rectify") & (told["rule"] == "mended")]
    told = told.assign(worth=100.0 * told["value"].astype(float))
    return pd.concat([own, told], ignore_index=True) if len(own) else told


def _values(rows: pd.DataFrame, measure: Measure, factor: str, order: Sequence[str]) -> Values:
    levels = (BASE, *(level for level in order if level != BASE and (rows[factor] == level).any()))
    means = item_means(rows, rows["worth"], factor).reindex(columns=list(levels))
    items = means.droplevel(0).index.unique()
    parts = {
        str(group): own.droplevel(0).reindex(items).to_numpy(dtype=float)
        for group, own in means.groupby(level=0, sort=False)
    }
    of_items = {group: parts[group] for group in group_order(rows) if group in parts}
    floors: dict[str, Array] = {}
    if measure == COSINE:
        own = (100.0 * rows["unrelated"]).groupby([rows[name] for name in (GROUP, "set", "item_id")]).mean()
        for group in of_items:
            found = own.xs(group).reindex(items).to_numpy(dtype=float)
            floors |= {group: found} if np.isfinite(found).any() else {}
    by_replicate = (
        rows.assign(replicate=rows["replicate"].fillna(1))
        .groupby([GROUP, factor, "replicate"], observed=True)["worth"]
        .mean()
        .groupby(level=[0, 1])
    )
    spread = pd.DataFrame({"replicates": by_replicate.size(), "sd": by_replicate.std(ddof=1)}).reset_index()
    own_replies = rows[~rows["is_repeat"]].groupby([GROUP, "set", "item_id", factor], observed=True).size()
    varies = (own_replies > 1).groupby(level=0).any()
    spread["sd"] = spread["sd"].where(spread[GROUP].map(varies).fillna(False).astype(bool))
    return Values(factor, levels, of_items, spread, measure, floors)


@dataclass(frozen=True)
class Slope:
    """How much a reader loses with each further operation inside a word."""

    group: str
    operation: str
    counts: tuple[int, ...]  # operations in a word, 0 for BASE
    means: tuple[float, ...]  # percent
    slope: float
    low: float
    high: float


def slopes(values: Values, study: str = "") -> list[Slope]:
    """Return the scrambling-ratio series of Figure 4 with slopes: those with two counts beside BASE."""
    found = []
    for operation, names in SERIES.items():
        there = [(count, name) for count, name in enumerate(names, 1) if name in values.levels]
        if len(there) < 2:
            continue
        counts = np.array([0.0, *(count for count, _ in there)])
        places = [0, *(values.levels.index(name) for _, name in there)]
        for group, items in values.of_items.items():
            own = items[:, places]
            own = own[np.isfinite(own).all(axis=1)]
            if not len(own):
                continue
            weights = (counts - counts.mean()) / ((counts - counts.mean()) ** 2).sum()
            of_items = own @ weights
            seed = stable_seed(study, "slope", operation, group)
            ends = mean_ends(of_items, seed)
            shown, means = tuple(counts.astype(int).tolist()), tuple(own.mean(axis=0).tolist())
            found.append(Slope(group, operation, shown, means, float(of_items.mean()), ends.low, ends.high))
    return found


def kept(values: Values, group: str, levels: Sequence[str]) -> tuple[float, float]:
    """Return the mean over the study's levels in percent, and in percent of BASE (Table 3's retention)."""
    means = [values.mean(group, level) for level in levels if level in values.levels]
    base = values.mean(group, BASE)
    if not means or not all(map(math.isfinite, means)):
        return math.nan, math.nan
    mean = float(np.mean(means))
    return mean, 100.0 * mean / base if base else math.nan


def fault_prices(tables: Tables) -> pd.DataFrame:
    """Return what each fault of the released scorer is worth on a study's own replies."""
    prices = table_beside(tables.folder, Path(PRICES).stem)
    columns = ["data_set", GROUP, "rule", "released", "value", "price", "low", "high"]
    columns += ["turned", "replies", "items", "ordered"]
    if prices is None:
        return pd.DataFrame(columns=columns)
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    # a baseline's answer is no reply that the paper's code could read
    used = used[used["reader_kind"] != "baseline"]
    who = used[[*_PLACE, GROUP]].assign(item=item_names(used))
    who = who.astype({"trial_index": float, "attempt": float})
    rows = prices.astype({"trial_index": float, "attempt": float}).merge(who, on=_PLACE)
    found = pd.DataFrame(list(_prices(rows, str(tables.dictionary["study"]))), columns=columns)
    order = {group: place for place, group in enumerate(group_order(used))}
    return found.sort_values(GROUP, key=lambda some: some.map(order), kind="stable", ignore_index=True)


def _prices(rows: pd.DataFrame, study: str) -> Iterator[dict[str, object]]:
    for (data_set, group), own in rows.groupby(["data_set", GROUP], sort=False):
        wide = own.set_index(["item", *_PLACE, "rule"])["value"].unstack()
        items = pd.factorize(wide.index.get_level_values("item"))[0]
        released = wide["released"].to_numpy(dtype=float)
        for rule in own["rule"].unique():
            if rule == "released":
                continue
            other = wide[rule].to_numpy(dtype=float)
            both = np.column_stack([released, other])
            seed = stable_seed(study, "fault", str(data_set), str(group), str(rule))
            ends = _price_ends(both, items, seed)
            differs = ~((released == other) | (np.isnan(released) & np.isnan(other)))
            is_cosine = str(data_set) == PROGRAMS
            yield {
                "data_set": data_set,
                GROUP: group,
                "rule": rule,
                "released": 100.0 * mean_of(released),
                "value": 100.0 * mean_of(other),
                "price": 100.0 * (mean_of(released) - mean_of(other)),
                "low": ends.low,
                "high": ends.high,
                "turned": math.nan if is_cosine else int(differs.sum()),
                "replies": len(both),
                "items": int(items.max()) + 1,
                "ordered": _ordered_pairs(released, other) if is_cosine else math.nan,
            }


def _ordered_pairs(values: Array, right: Array) -> float:
    """Return in how many pairs of a right and a wrong reply the right one has the larger value, percent; ties are halves."""
    one, other = (values[(right == is_right) & np.isfinite(values)] for is_right in (1, 0))
    if not len(one) or not len(other):
        return math.nan
    ordered = float(stats.mannwhitneyu(one, other, method="asymptotic").statistic)
    return 100.0 * ordered / (len(one) * len(other))


def _price_ends(both: Array, items: NDArray[np.intp], seed: int) -> Interval:
    """Resample items with their replies; return the interval of the two rules' difference in points."""
    many = int(items.max()) + 1
    if many < 2:
        return Interval(math.nan, math.nan, 1.0)
    sums, there = np.zeros((many, 2)), np.zeros((many, 2))
    np.add.at(sums, items, np.nan_to_num(both))
    np.add.at(there, items, np.isfinite(both).astype(float))
    means = resampled_ratios(sums, there, seed)
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
    found = []
    for group, of_items in values.floors.items():
        mean, floor = kept(values, group, REORDERED)[0], mean_of(of_items)
        drawn = drawn_worth(values, [group], stable_seed(study, "floor of answers", group))[:, 0]
        many = int(np.isfinite(of_items).sum())
        ends = where_it_varies(interval(drawn if many >= _FEWEST else np.empty(0)))
        found.append(Above(group, many, mean, floor, _share(mean, floor), ends.low, ends.high))
    return found


def drawn_worth(values: Values, groups: Sequence[str], seed: int) -> Array:
    """Return :func:`worth` in resamples of items; shape (resamples, groups)."""
    places = [values.levels.index(level) for level in REORDERED if level in values.levels]
    nothing = np.full(len(next(iter(values.of_items.values()))), math.nan)
    wide = np.hstack(
        [
            np.column_stack(
                [values.of_items[group][:, places], pair_values(values.floors.get(group, nothing))]
            )
            for group in groups
        ]
    )
    drawn = resampled_means(wide, seed).reshape(-1, len(groups), len(places) + 1)
    there = np.isfinite(drawn[:, :, :-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(there, drawn[:, :, :-1], 0.0).sum(axis=2) / there.sum(axis=2)
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
class Agreement:
    """How alike two tasks order the same models."""

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
    every = dict.fromkeys(
        group for _, values in parts for group in values.of_items if kinds.get(group) == "model"
    )
    return [
        (group, name)
        for group in every
        for name, values in parts
        if group not in values.floors and not (group in values.of_items and np.isfinite(worth(values, group)))
    ]


def agreements(
    completed: Sequence[Part], perceived: Sequence[Part], kinds: Mapping[str, str]
) -> list[Agreement]:
    """Compare models' order in completion and in perception tasks; empty below three models."""
    found = []
    for one in completed:
        for other in perceived:
            groups = _models([one, other], kinds)
            if len(groups) < FEWEST_MODELS:
                continue
            table = ranks([one, other], kinds).loc[groups]
            drawn = [drawn_worth(values, groups, stable_seed(name, "ranks")) for name, values in (one, other)]
            means = [table[name].to_numpy(dtype=float)[None, :] for name, _ in (one, other)]
            ends = where_it_varies(interval(_taus(*drawn)))
            same = int((table[f"rank {one[0]}"] == table[f"rank {other[0]}"]).sum())
            found.append(
                Agreement(one[0], other[0], len(groups), same, float(_taus(*means)[0]), ends.low, ends.high)
            )
    return found


def _models(parts: Sequence[Part], kinds: Mapping[str, str]) -> list[str]:
    """Return the models with a mean in every part."""
    return [
        group
        for group in (parts[0][1].of_items if parts else ())
        if kinds.get(group) == "model"
        and all(group in values.of_items and np.isfinite(worth(values, group)) for _, values in parts)
    ]


def _taus(one: Array, other: Array) -> Array:
    """Return Kendall's τ-b of each row of two tables, shape (rows, models) each; nan where all of a row are tied."""
    pairs = list(combinations(range(one.shape[1]), 2))
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    # what differs by less than rounding is tied
    signs = [np.sign(np.round(table[:, first] - table[:, second], 9)) for table in (one, other)]
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
        if self.with_all:
            if len(values) < _FEWEST:
                return math.nan, math.nan
            values = pair_values(values)
        ends = mean_ends(values, stable_seed(study, "unrelated texts", self.of))
        return ends.low, ends.high

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
        told = json.loads(file.read_text("utf-8"))
        known, items = told.get("items"), file.with_name("items.jsonl")
        found = [_near_of("text alone", told)]
        if told.get("prompts"):
            found.append(_near_of("whole prompt", told["prompts"]))
        use = str(told["use"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} is not what wrods score --similarity keeps",
            mend="Run that command again, or remove the file.",
        ) from error
    if known is not None and items.is_file() and hashlib.sha256(items.read_bytes()).hexdigest() != known:
        raise UserError(
            f"{file} compares other items than the study has now", mend="Run wrods score --similarity again."
        )
    return use, tuple(found)


def _near_of(of: str, told: Mapping[str, Any]) -> Near:
    shown = {str(name).split("=")[-1].split(": ")[-1]: one for name, one in told["shown"].items()}
    cut, unrelated = told.get("cut"), told.get("unrelated") or {}
    return Near(
        of,
        {name: float(one["mean"]) for name, one in shown.items()},
        {
            name: {str(item): float(value) for item, value in zip(one["of"], one["cosines"], strict=True)}
            for name, one in shown.items()
            if "cosines" in one
        },
        tuple(float(one) for one in unrelated.get("cosines", ())),
        int(unrelated.get("pairs") or 0),
        "of" in unrelated,
        int(told.get("texts") or 0),
        None if cut is None else int(cut),
    )


def unit_means(near: Near, study: str) -> list[UnitMean]:
    """Average operations of each unit, item by item, over the items that have all of them; empty without single items."""
    units = {unit: [name for name in names if near.items.get(name)] for unit, names in UNITS.items()}
    units = {unit: names for unit, names in units.items() if names}
    everything = [set(near.items[name]) for names in units.values() for name in names]
    shared = sorted(set.intersection(*everything)) if everything else []
    if not shared:
        return []
    values = np.array(
        [[np.mean([near.items[name][item] for name in names]) for names in units.values()] for item in shared]
    )
    seed = stable_seed(study, "units of texts", near.of)
    found = []
    for place, (unit, names) in enumerate(units.items()):
        own = mean_ends(values[:, place], seed)
        above = (math.nan, math.nan, math.nan)
        if place:
            steps = values[:, place] - values[:, place - 1]
            ends = mean_ends(steps, seed)
            above = (float(steps.mean()), ends.low, ends.high)
        mean = float(values[:, place].mean())
        found.append(UnitMean(unit, len(names), len(shared), mean, own.low, own.high, *above))
    return found
