"""Ratios to intact text: retention (TypoBench), relative performance gain (Cao et al., 2023), and costs of tokens and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from analysis.answers import failures_as_wrong
from analysis.arrays import Array
from analysis.exclusions import TIMED
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.resampling import (
    CELLS,
    FEWEST_UNITS,
    RESAMPLES,
    bootstrap,
    draw_units,
    interval,
    item_means,
    means,
    resampled_means,
    where_it_varies,
)
from analysis.readers import PARTICIPANT_KINDS, kinds_of
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

BELOW = "< 0"
"""What Scrambled Bench's tables print for a value below 0."""


def relative_gain(scrambled: float, intact: float, substituted: float) -> float:
    """Return 100 (scrambled − substituted) / (intact − substituted) (Cao et al., 2023)."""
    gap = intact - substituted
    return 100.0 * (scrambled - substituted) / gap if gap else float("nan")


def as_printed(value: float) -> str:
    """Write a rate as Scrambled Bench's tables do: values below 0 as ``< 0``, a zero without a sign."""
    return BELOW if value < 0 else f"{abs(value):.2f}"


@dataclass(frozen=True)
class Retention:
    """TypoBench's retention of a model on a data set (Mind Scramble, arXiv:2410.01677, tables 1 and 3)."""

    absolute: float  # mean accuracy over the transforms, on the scale given
    relative: float  # the same as a percentage of the accuracy on intact text; nan where that is 0


def retention(intact: float, scrambled: Sequence[float]) -> Retention:
    """Return the mean over transforms, and that mean over the intact accuracy."""
    if not len(scrambled):
        raise UserError("retention over 0 transforms", mend="Give the accuracy under at least one.")
    mean = float(np.mean(scrambled))
    return Retention(mean, 100.0 * mean / intact if intact else float("nan"))


@dataclass(frozen=True, eq=False)
class LevelAccuracies:
    """The accuracy of one reader group in several levels, in percent; every item weighs alike and failures count as wrong."""

    observed: Array  # shape (levels,)
    draws: Array  # shape (resamples, levels): of items, and of participants, too
    items: NDArray[np.int64]  # shape (levels,)


def level_accuracies(
    trials: pd.DataFrame, factor: str, levels: Sequence[str], *seed: str
) -> dict[str, LevelAccuracies]:
    """Return the accuracy of each reader group in each level, with resamples."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    rows = asked(trials)
    present = set(rows[factor].dropna())
    for level in levels:
        if level not in present:
            raise unknown_name(f"{factor}: level", level, sorted(present))
    rows = rows[rows[factor].isin(levels)]
    rows = rows.assign(_right=failures_as_wrong(rows).astype(float))
    kinds, found = kinds_of(rows), {}
    for group, own in rows.groupby(GROUP, observed=True, sort=False):
        by_item = item_means(own, own["_right"], factor).reindex(columns=list(levels)).to_numpy(dtype=float)
        name, n_items = str(group), np.isfinite(by_item).sum(axis=0)
        if kinds[name] in PARTICIPANT_KINDS:
            draws = _of_both(own, factor, levels, stable_seed(*seed, name))
        else:
            draws = resampled_means(by_item, stable_seed(*seed, name))
        found[name] = LevelAccuracies(100.0 * means(by_item), 100.0 * draws, n_items)
    return found


def _of_both(rows: pd.DataFrame, factor: str, levels: Sequence[str], seed: int) -> Array:
    """Resample participants and items and average items' means over the drawn participants; none for fewer than three of either."""
    readers, names = pd.factorize(rows["reader"], sort=True)
    items = rows.groupby(["set", "item_id"], dropna=False).ngroup().to_numpy()
    shape = (len(names), int(items.max()) + 1)
    if min(shape) < FEWEST_UNITS:
        return np.empty((0, len(levels)))
    random = np.random.default_rng(seed)
    sums = []
    for level in levels:
        own = (rows[factor] == level).to_numpy()
        at = (readers[own], items[own])
        right = rows["_right"].to_numpy()[own]
        sums.append([sparse.csr_array((data, at), shape=shape) for data in (right, np.ones(len(right)))])
    parts = []
    for start in range(0, RESAMPLES, at_once := max(1, CELLS // sum(shape))):
        n_draws = min(at_once, RESAMPLES - start)
        of_people, of_items = (draw_units(random, units, n_draws) for units in shape)
        columns = []
        for matrices in sums:
            correct, counts = (np.asarray(of_people @ matrix) for matrix in matrices)
            shares = np.divide(correct, counts, out=np.zeros(counts.shape), where=counts > 0)
            with np.errstate(invalid="ignore", divide="ignore"):
                columns.append((of_items * shares).sum(axis=1) / (of_items * (counts > 0)).sum(axis=1))
        parts.append(np.stack(columns, axis=1))
    return np.concatenate(parts)


def relative_gains(
    trials: pd.DataFrame, factor: str, *, intact: str, substituted: str, study: str = ""
) -> pd.DataFrame:
    """Return the relative performance gain of each reader group in each level of a factor."""
    levels = [str(level) for level in pd.unique(asked(trials)[factor].dropna())] if factor in trials else []
    levels = [intact, *(level for level in levels if level not in (intact, substituted)), substituted]
    results = []
    for group, found in level_accuracies(trials, factor, levels, study, "rpg", factor).items():
        share, draws = found.observed, found.draws
        gaps = interval(draws[:, 0] - draws[:, -1])
        for index, level in enumerate(levels):
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = 100.0 * (draws[:, index] - draws[:, -1]) / (draws[:, 0] - draws[:, -1])
            ends = interval(ratio)
            rpg = relative_gain(share[index], share[0], share[-1])
            n_items = int(found.items[index])
            cell = {GROUP: group, factor: level, "items": n_items, "accuracy": float(share[index])}
            gain = {"rpg": rpg, "rpg_low": ends.low, "rpg_high": ends.high, "printed": as_printed(rpg)}
            gap = {"gap": float(share[0] - share[-1]), "gap_low": gaps.low, "gap_high": gaps.high}
            results.append(cell | gain | gap | {"flagged": gaps.includes_zero})
    return pd.DataFrame(results)


def retentions(
    trials: pd.DataFrame,
    factor: str,
    *,
    intact: str,
    groups_of_levels: Mapping[str, Sequence[str]] | None = None,
    study: str = "",
) -> pd.DataFrame:
    """Return TypoBench's retention, absolute and relative, of each reader group."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    others = [str(level) for level in pd.unique(asked(trials)[factor].dropna()) if level != intact]
    level_groups = groups_of_levels or {"all": others}
    levels = [intact, *dict.fromkeys(level for members in level_groups.values() for level in members)]
    results = []
    for group, found in level_accuracies(trials, factor, levels, study, "retention", factor).items():
        share, draws = found.observed, found.draws
        base = interval(draws[:, 0])
        for name, members in level_groups.items():
            indices = [levels.index(level) for level in members]
            retained = retention(float(share[0]), share[indices].tolist())
            absolute = draws[:, indices].mean(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                relative = 100.0 * absolute / draws[:, 0]
            row = {GROUP: group, "levels": name, "intact": float(share[0]), **vars(retained)}
            for kind, drawn in (("absolute", absolute), ("relative", relative)):
                ends = where_it_varies(interval(drawn))
                row |= {f"{kind}_low": ends.low, f"{kind}_high": ends.high}
            results.append(row | {"flagged": base.includes_zero})
    return pd.DataFrame(results)


TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
TIMES = ("latency_ms", "ttft_ms")
COSTS = (*TOKENS, *TIMES, "surprisal", "cost_usd")
_READ = tuple(name for name in COSTS if name != "total_tokens")


@dataclass(frozen=True)
class Ratio:
    """A ratio of costs."""

    corrected: float  # geometric mean of the items' ratios; 1 is no change
    published: float
    of_sums: float  # ratio of the sums: what a bill changes by
    items: int  # items with a ratio; items that have none because a value is 0
    without: int


def cost_ratio(intact: Array, changed: Array) -> Ratio:
    """Return how much more paired items cost."""
    is_paired = np.isfinite(intact) & np.isfinite(changed)
    base, cost = intact[is_paired], changed[is_paired]
    nan = float("nan")
    if not len(base):
        return Ratio(nan, nan, nan, 0, 0)
    usable = (base > 0) & (cost > 0)
    ratios = np.divide(cost, base, out=np.zeros_like(cost), where=base > 0)
    corrected = float(np.exp(np.log(ratios[usable]).mean())) if usable.any() else nan
    published = float(ratios.sum() / len(ratios)) if (base > 0).any() else nan
    of_sums = float(cost.sum() / base.sum()) if base.sum() > 0 else nan
    return Ratio(corrected, published, of_sums, int(usable.sum()), int((~usable).sum()))


def costs_of(trials: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the trials that count for a cost, with its value in ``cost``."""
    if measure not in COSTS:
        raise unknown_name("cost:", measure, COSTS)
    reason = trials["excluded_reason"]
    used = reason.isna() | (reason == TIMED) if measure in TIMES else reason.isna()
    rows = trials[used & trials["item_id"].notna()].copy()
    if measure in TIMES:
        rows = rows[rows["timed"].astype(bool) | rows["latency_ms"].notna()]
    is_total = measure == "total_tokens"
    rows["cost"] = rows["prompt_tokens"] + rows["completion_tokens"] if is_total else rows[measure]
    return rows[rows["cost"].notna()]


def cost_ratios(
    trials: pd.DataFrame, factor: str, *, intact: str, measures: Sequence[str] = COSTS, study: str = ""
) -> pd.DataFrame:
    """Return the cost of each level against the intact one, for every model and cost that was recorded."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    columns = [GROUP, "set", "item_id", factor, "excluded_reason", "timed", *_READ]
    machines = trials.loc[trials["reader_kind"].isin(["model", "baseline"]), list(dict.fromkeys(columns))]
    results = []
    for measure in measures:
        rows = costs_of(machines, measure)
        means = item_means(rows, rows["cost"], factor)
        if intact not in means:
            continue
        for group, item_costs in means.groupby(level=0, sort=False):
            for level in item_costs.columns:
                if level == intact or pd.isna(level):
                    continue
                pairs = item_costs[[intact, level]].dropna().to_numpy(dtype=float)
                if not len(pairs):
                    continue
                ratio = dict(vars(cost_ratio(pairs[:, 0], pairs[:, 1])))
                logs = np.log(pairs[(pairs > 0).all(axis=1)])
                seed = stable_seed(study, "cost", measure, str(group), str(level))
                ends = bootstrap(logs[:, 1:] - logs[:, :1], lambda drawn: np.exp(drawn[:, 0]), seed)
                intact_mean, mean = pairs.mean(axis=0).tolist()
                key = {"measure": measure, GROUP: group, factor: level, "ratio": ratio.pop("corrected")}
                numbers = {
                    "ratio_low": ends.low,
                    "ratio_high": ends.high,
                    "intact_mean": intact_mean,
                    "mean": mean,
                }
                results.append(key | numbers | ratio)
    return pd.DataFrame(results)
