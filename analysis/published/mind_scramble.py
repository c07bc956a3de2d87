"""What the tables and figures of Mind Scramble (TypoBench, 2024, arXiv:2410.01677) show, from a study of one's own.

A study of the template ``mind-scramble`` has a factor whose levels bear the paper's names (``BASE``, ``REO-ALL``, ``DEL-INT_2`` …).
An item's value is right or wrong (failures as wrong). Where a passage was to be given back it is the nearness of the two texts,
1 − edit distance / length, and where the study scores as published the released share of words in place; of summaries,
translations and programs it is the cosine that ``wrods score --similarity`` took. Replicates of an item are averaged
first; their spread is the standard deviation of the replicates' own means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong, is_valid
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import Interval, bootstrap, interval, item_means, where_it_varies
from analysis.measures.stored_similarity import OWN_ANSWER, REFERENCE, scored_similarities
from analysis.preparing.exclusions import IDENTICAL
from analysis.readers import group_order
from analysis.reading import table_beside
from analysis.tables import Tables, item_names
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

BASE = "BASE"
REORDERINGS = (
    ("Character", ("REO-ALL", "REO-INT", "REO-BEG", "REO-END", "REO-REV")),
    ("Word", ("WORD-REO-ALL", "WORD-REO-ADJ", "WORD-REO-REV")),
    ("Sentence", ("SENT-REO-ALL", "SENT-REO-ADJ", "SENT-REO-REV")),
)
"""Columns of Tables 1 and 2, by the unit that changes."""
EDITS = ("INS-BEG", "INS-END", "DEL-BEG", "DEL-END")
"""Rows of Table 3."""
EMBEDDED = ("REO-ALL", "REO-INT", "REO-REV", "INS-INT_3", "DEL-INT_3", *REORDERINGS[1][1], *REORDERINGS[2][1])
"""Columns of Table 4."""
SERIES = {
    "Reordering": ("REO-INT_1", "REO-INT_2", "REO-INT_3", "REO-INT_4"),
    "Inserting": ("INS-INT_1", "INS-INT_2", "INS-INT_3", "INS-INT_4"),
    "Deleting": ("DEL-INT_1", "DEL-INT_2", "DEL-INT_3", "DEL-INT_4"),
}
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


ACCURACY = Measure("accuracy", "% correct", "% correct", "failures count as wrong", False)
NEARNESS = Measure(
    "nearness",
    "nearness to the intact passage (1 − edit distance/length, %)",
    "Nearness to the intact text (%)",
    "of restored passages 1 − edit distance/length of the intact one, failures as 0",
    True,
)
IN_PLACE = Measure(
    "in_place",
    "words in place as the released scorer counts them (% of the shorter text’s words)",
    "Words in place (%)",
    "of restored passages the released scorer’s share of words in place, of the shorter text’s words, so that a reply cut short can "
    "have 100 and one with an added word 0; as released, replies without the field are left out",
    True,
)
COSINE = Measure(
    "cosine",
    "100 × cosine with the reader’s own answer about the intact text",
    "100 × cosine with the own answer",
    "of summaries and translations the cosine of the text vector with that of the same reader’s answer about the intact text (BASE is "
    "thus 100), times 100; a reader who says the same of every text has "
    "100 too, so that it stands beside the cosine of the reader’s answers about different intact texts",
    True,
)
PROGRAM_COSINE = Measure(
    "cosine",
    "100 × cosine with the reference program",
    "100 × cosine with the reference",
    "of programs also the cosine of the text vector with that of the reference program, times 100",
    False,
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
        own = self.of_items[group][:, self.levels.index(level)]
        own = own[np.isfinite(own)]
        return float(own.mean()) if len(own) else math.nan

    def replicates(self, group: str, level: str) -> tuple[int, float]:
        """Return the number of replicates and the SD of their means."""
        own = self.spread[(self.spread[GROUP] == group) & (self.spread[self.factor] == level)]
        return (0, math.nan) if own.empty else (int(own["replicates"].iloc[0]), float(own["sd"].iloc[0]))


def factor_of(tables: Tables) -> str | None:
    """Return the factor whose levels are the paper's TypoFuncs; None where a study has none."""
    known = {*EDITS, *EMBEDDED, *(level for some in SERIES.values() for level in some)}
    known |= {level for _, some in REORDERINGS for level in some}
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
    prices = None if released.empty else table_beside(tables.folder, Path(PRICES).stem)
    if prices is None:
        return own
    mended = prices[(prices["data_set"] == "rectify") & (prices["rule"] == "mended")]
    mended = mended.astype({"trial_index": float, "attempt": float})[[*_PLACE, "value"]]
    told = released.astype({"trial_index": float, "attempt": float}).merge(mended, on=_PLACE)
    told = told.assign(worth=100.0 * told.pop("value").astype(float))
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
            ends = where_it_varies(bootstrap(of_items[:, None], lambda drawn: drawn[:, 0], seed))
            low, high = (ends.low, ends.high) if len(own) > 1 else (math.nan, math.nan)
            found.append(
                Slope(
                    group,
                    operation,
                    tuple(int(one) for one in counts),
                    tuple(map(float, own.mean(axis=0))),
                    float(of_items.mean()),
                    low,
                    high,
                )
            )
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
    columns = [
        "data_set",
        GROUP,
        "rule",
        "released",
        "value",
        "price",
        "low",
        "high",
        "turned",
        "replies",
        "items",
        "ordered",
    ]
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
                "released": 100.0 * _mean(released),
                "value": 100.0 * _mean(other),
                "price": 100.0 * (_mean(released) - _mean(other)),
                "low": ends.low,
                "high": ends.high,
                "turned": math.nan if is_cosine else int(differs.sum()),
                "replies": len(both),
                "items": int(items.max()) + 1,
                "ordered": _ordered_pairs(released, other) if is_cosine else math.nan,
            }


def _ordered_pairs(values: Array, right: Array) -> float:
    """Return in how many pairs of a right and a wrong reply the right one has the larger value, percent; ties are halves."""
    one, other = np.sort(values[right == 1]), np.sort(values[right == 0])
    if not len(one) or not len(other):
        return math.nan
    below = np.searchsorted(other, one, "left") + np.searchsorted(other, one, "right")
    return 50.0 * float(below.mean()) / len(other)


def _mean(values: Array) -> float:
    own = values[np.isfinite(values)]
    return float(own.mean()) if len(own) else math.nan


def _price_ends(both: Array, items: NDArray[np.intp], seed: int, resamples: int = 2000) -> Interval:
    """Resample items with their replies; return the interval of the two rules' difference in points."""
    many = int(items.max()) + 1
    if many < 2:
        return Interval(math.nan, math.nan, 1.0)
    sums, there = np.zeros((many, 2)), np.zeros((many, 2))
    np.add.at(sums, items, np.nan_to_num(both))
    np.add.at(there, items, np.isfinite(both).astype(float))
    drawn = np.random.default_rng(seed).multinomial(many, np.full(many, 1.0 / many), size=resamples)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (drawn @ sums) / (drawn @ there)
    return where_it_varies(interval(100.0 * (means[:, 0] - means[:, 1])))
