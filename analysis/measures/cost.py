"""What scrambled text costs a model in tokens and time against the same item intact.

TypoBench's ratio is the mean over items of scrambled / intact. A mean of ratios is pulled up by items whose intact value is
small, and the released code counts items with an intact value of 0 in the denominator though it leaves them out of the sum;
"published" does so too. The corrected ratio is geometric: the exponential of the mean log ratio, which is the inverse of itself
when the conditions change places. Times are only of trials that ran alone (``wrods run --timing``): batches and shared
prefixes make every other latency meaningless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.measures.resampling import bootstrap, item_means
from analysis.preparing import TIMED
from stimuli.errors import unknown_name
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

GROUP = "reader_group"
TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
TIMES = ("latency_ms", "ttft_ms")
COSTS = (*TOKENS, *TIMES, "surprisal", "cost_usd")
_READ = tuple(name for name in COSTS if name != "total_tokens")


@dataclass(frozen=True)
class Ratio:
    """How much more something costs."""

    corrected: float  # geometric mean of the items' ratios; 1 is no change
    published: float
    of_sums: float  # ratio of the sums: what a bill changes by
    items: int  # items with a ratio; items that have none because a value is 0
    without: int


def cost_ratio(intact: Array, changed: Array) -> Ratio:
    """Return how much more paired items cost."""
    both = np.isfinite(intact) & np.isfinite(changed)
    base, cost = intact[both], changed[both]
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
    whole = measure == "total_tokens"
    rows["cost"] = rows["prompt_tokens"] + rows["completion_tokens"] if whole else rows[measure]
    return rows[rows["cost"].notna()]


def cost_ratios(
    trials: pd.DataFrame,
    factor: str,
    *,
    intact: str,
    measures: Sequence[str] = COSTS,
    study: str = "",
    resamples: int = 2000,
) -> pd.DataFrame:
    """Return the cost of each level against the intact one, for every model and cost that was recorded."""
    if factor not in trials.columns:
        raise unknown_name("factor:", factor, list(trials.columns))
    kept = [GROUP, "set", "item_id", factor, "excluded_reason", "timed", *_READ]
    machines = trials.loc[trials["reader_kind"].isin(["model", "baseline"]), list(dict.fromkeys(kept))]
    found = []
    for measure in measures:
        rows = costs_of(machines, measure)
        means = item_means(rows, rows["cost"], factor)
        if intact not in means:
            continue
        for group, own in means.groupby(level=0, sort=False):
            for level in own.columns:
                if level == intact or pd.isna(level):
                    continue
                pairs = own[[intact, level]].dropna().to_numpy(dtype=float)
                if not len(pairs):
                    continue
                ratio = cost_ratio(pairs[:, 0], pairs[:, 1])
                logs = np.log(pairs[(pairs > 0).all(axis=1)])
                seed = stable_seed(study, "cost", measure, str(group), str(level))
                ends = bootstrap(
                    logs[:, 1:] - logs[:, :1], lambda drawn: np.exp(drawn[:, 0]), seed, resamples
                )
                found.append(
                    {
                        "measure": measure,
                        GROUP: group,
                        factor: level,
                        "ratio": ratio.corrected,
                        "ratio_low": ends.low,
                        "ratio_high": ends.high,
                        "published": ratio.published,
                        "of_sums": ratio.of_sums,
                        "items": ratio.items,
                        "without": ratio.without,
                        "intact_mean": float(pairs[:, 0].mean()),
                        "mean": float(pairs[:, 1].mean()),
                    }
                )
    return pd.DataFrame(found)
