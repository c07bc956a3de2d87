"""What the tables and figures of Mind Scramble (TypoBench, 2024, arXiv:2410.01677) show, from a study of one's own.

A study of the template ``mind-scramble`` has a factor whose levels bear the paper's names (``BASE``, ``REO-ALL``, ``DEL-INT_2`` …).
An item's value is right or wrong (failures as wrong); where a passage was to be given back it is the nearness of the two texts,
1 − edit distance / length. Replicates of an item are averaged first; their spread is the standard deviation of the
replicates' own means.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong, is_valid
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import bootstrap, interval, item_means
from analysis.readers import group_order
from analysis.tables import Tables
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
PROGRAMS = "mbpp"
"""The data set whose programs the paper compared by a cosine instead of running them."""
_FEWEST_LEVELS = 3


@dataclass(frozen=True)
class Values:
    """What each item is worth in each level, by reader group.

    Attributes
    ----------
    factor : str
    levels : tuple of str
        The paper's names that the study has, BASE first.
    of_items : dict of str to ndarray, shape (items, levels)
        Percent; nan where a group did not see an item in a level.
    spread : pandas.DataFrame
        A row per reader group and level: ``replicates`` and ``sd`` (of the replicates' means, percent; nan for one).
    is_restored : bool
        Whether values are nearness to the intact passage rather than right or wrong.
    """

    factor: str
    levels: tuple[str, ...]
    of_items: dict[str, Array]
    spread: pd.DataFrame
    is_restored: bool

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


def values_of(tables: Tables, factor: str) -> Values | None:
    """Measure every used answer; None where nothing was answered that can be right, or restored.

    Parameters
    ----------
    tables : Tables
    factor : str
        From :func:`factor_of`.
    """
    trials = tables.trials
    restored = trials[trials["excluded_reason"].isna() & (trials["trial_type"] == "recover")]
    is_restored = len(restored) > 0
    rows = restored if is_restored else asked(trials)
    rows = rows[rows[factor].notna()]
    if rows.empty or not (rows[factor] == BASE).any():
        return None
    worth = rows["score"].where(is_valid(rows), 0.0) if is_restored else failures_as_wrong(rows)
    rows = rows.assign(worth=100.0 * worth.astype(float))
    levels = tuple(level for level in tables.factors[factor] if (rows[factor] == level).any())
    levels = (BASE, *(level for level in levels if level != BASE))
    means = item_means(rows, rows["worth"], factor).reindex(columns=list(levels))
    parts = {str(group): own.to_numpy(dtype=float) for group, own in means.groupby(level=0, sort=False)}
    of_items = {group: parts[group] for group in group_order(rows) if group in parts}
    by_replicate = (
        rows.assign(replicate=rows["replicate"].fillna(1))
        .groupby([GROUP, factor, "replicate"], observed=True)["worth"]
        .mean()
        .groupby(level=[0, 1])
    )
    spread = pd.DataFrame({"replicates": by_replicate.size(), "sd": by_replicate.std(ddof=1)}).reset_index()
    return Values(factor, levels, of_items, spread, is_restored)


@dataclass(frozen=True)
class Slope:
    """How much a reader loses with each further operation inside a word.

    Attributes
    ----------
    group, operation : str
    counts : tuple of int
        Operations in a word, 0 for BASE.
    means : tuple of float
        Percent.
    slope, low, high : float
        Percentage points for each operation (least squares), with a 95% bootstrap over items.
    """

    group: str
    operation: str
    counts: tuple[int, ...]
    means: tuple[float, ...]
    slope: float
    low: float
    high: float


def slopes(values: Values, study: str = "") -> list[Slope]:
    """Return the scrambling-ratio series of Figure 4 with their slopes, for every series with two counts beside BASE.

    Parameters
    ----------
    values : Values
    study : str
        Seeds the bootstrap.
    """
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
            ends = bootstrap(of_items[:, None], lambda drawn: drawn[:, 0], seed)
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
    """Return the mean over levels that were seen, percent, and the same in percent of BASE (retention, as in Table 3)."""
    means = [one for one in (values.mean(group, level) for level in levels) if math.isfinite(one)]
    base = values.mean(group, BASE)
    if not means:
        return math.nan, math.nan
    mean = float(np.mean(means))
    return mean, 100.0 * mean / base if base else math.nan


def ranks(parts: Sequence[tuple[str, Values]]) -> pd.DataFrame:
    """Rank readers by their mean over reorderings in each study, for perception against completion (Table 2 against Table 1).

    Parameters
    ----------
    parts : sequence of (name, Values)
        A study each.

    Returns
    -------
    pandas.DataFrame
        A row per reader that is in every study, a column per study: the mean and, behind it as ``rank NAME``, the rank (1 is the best,
        ties share the mean rank).
    """
    names = [level for _, some in REORDERINGS for level in some]
    groups = [group for group in parts[0][1].of_items if all(group in values.of_items for _, values in parts)]
    table = pd.DataFrame(index=pd.Index(groups, name=GROUP))
    for name, values in parts:
        table[name] = [kept(values, group, names)[0] for group in groups]
        table[f"rank {name}"] = table[name].rank(ascending=False)
    return table


def fault_prices(tables: Tables) -> pd.DataFrame:
    """Return what each fault of the released scorer is worth on a study's own replies.

    Returns
    -------
    pandas.DataFrame
        A row per data set, reader group and rule: ``released`` and ``value`` (percent; the released rule, and this one),
        ``price`` (released − value, percentage points) with ``low, high`` (95% bootstrap over replies), ``turned`` (replies that
        the rule judges otherwise), ``replies``. Of programs, which the paper compared by a cosine, no reply is turned, and
        ``ordered`` is the share of pairs of a right and a wrong one in which the right one has the larger cosine (%; 50 is chance;
        nan elsewhere). Empty where the tables hold no replies that the paper scored.
    """
    file = tables.folder / "published_scoring.parquet"
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
        "ordered",
    ]
    if not file.is_file():
        return pd.DataFrame(columns=columns)
    place = ["session_id", "trial_index", "attempt"]
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    # a baseline's answer is no reply that the paper's code could read
    used = used[used["reader_kind"] != "baseline"]
    who = used[[*place, GROUP]].astype({"trial_index": float, "attempt": float})
    rows = pd.read_parquet(file).astype({"trial_index": float, "attempt": float}).merge(who, on=place)
    return pd.DataFrame(list(_prices(rows, str(tables.dictionary["study"]))), columns=columns)


def _prices(rows: pd.DataFrame, study: str) -> Iterator[dict[str, object]]:
    place = ["session_id", "trial_index", "attempt"]
    for (data_set, group), own in rows.groupby(["data_set", GROUP], sort=False):
        wide = own.set_index([*place, "rule"])["value"].unstack()
        released = wide["released"].to_numpy(dtype=float)
        for rule in own["rule"].unique():
            if rule == "released":
                continue
            other = wide[rule].to_numpy(dtype=float)
            both = np.column_stack([released, other])
            seed = stable_seed(study, "fault", str(data_set), str(group), str(rule))
            draws = _mean_differences(both, seed)
            ends = interval(draws) if len(both) > 1 else None
            differs = ~((released == other) | (np.isnan(released) & np.isnan(other)))
            is_cosine = str(data_set) == PROGRAMS
            yield {
                "data_set": data_set,
                GROUP: group,
                "rule": rule,
                "released": 100.0 * _mean(released),
                "value": 100.0 * _mean(other),
                "price": 100.0 * (_mean(released) - _mean(other)),
                "low": math.nan if ends is None else ends.low,
                "high": math.nan if ends is None else ends.high,
                "turned": math.nan if is_cosine else int(differs.sum()),
                "replies": len(both),
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


def _mean_differences(both: Array, seed: int, resamples: int = 1000) -> Array:
    """Draw replies anew and return the difference of the two rules' means, in percentage points; shape (resamples,)."""
    draw = np.random.default_rng(seed)
    filled, there = np.nan_to_num(both), np.isfinite(both).astype(float)
    found = np.empty(resamples)
    for place in range(resamples):
        weights = np.bincount(draw.integers(0, len(both), len(both)), minlength=len(both)).astype(float)
        with np.errstate(invalid="ignore"):
            means = (weights @ filled) / (weights @ there)
        found[place] = 100.0 * (means[0] - means[1])
    return found[np.isfinite(found)] if np.isfinite(found).any() else np.zeros(1)
