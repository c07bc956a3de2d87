"""Whether models that recover scrambled text better also do the task on scrambled text better.

Recovery is the mean score of typed answers (trials of type ``recover``), the task all other judged trials in the scrambled levels. The
unit is a model: what is correlated are ranks of models, and an interval comes from items, never from models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.answers import failures_as_wrong, is_valid, judged
from analysis.fidelity.order import kendall, spearman
from analysis.measures.levels import scrambled_levels
from analysis.measures.resampling import RESAMPLES, interval, resampled_means
from analysis.rankings.ranks import RankCorrelation, rank_correlation
from analysis.readers import group_order
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]
LEAST_MODELS = 3


@dataclass(frozen=True, eq=False)
class RecoveryOrder:
    """Two orders of the same models."""

    table: pd.DataFrame
    correlation: RankCorrelation
    tau_low: float
    tau_high: float
    rho_low: float
    rho_high: float
    recovery_items: int
    task_items: int


def recovery_order(tables: Tables, factor: str, *, resamples: int = RESAMPLES) -> RecoveryOrder:
    """Compare the order of models in recovery with that in the task, on scrambled levels alone."""
    changed = scrambled_levels(tables, factor)
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["item_id"].notna() & trials[factor].isin(changed)
    rows = trials[used & (trials["reader_kind"] == "model")]
    typed = (rows["trial_type"] == "recover") & rows["response_status"].notna()
    recovery = rows[typed & (rows["score"].notna() | ~is_valid(rows))]
    task = rows[(rows["trial_type"] != "recover") & judged(rows)]
    parts = {
        "recovery": _item_means(recovery, recovery["score"].where(is_valid(recovery), 0.0)),
        "task": _item_means(task, failures_as_wrong(task)),
    }
    both = set(parts["recovery"].columns) & set(parts["task"].columns)
    models = [group for group in group_order(rows) if group in both] if len(rows) else []
    if len(models) < LEAST_MODELS:
        raise UserError(
            f"{len(models)} models have both recovery and a task under {factor}",
            mend="An order needs three models, each with a block of type recover and another one.",
        )
    names = parts["recovery"].index.union(parts["task"].index)
    values = np.hstack(
        [part.reindex(index=names, columns=models).to_numpy(dtype=float) for part in parts.values()]
    )
    whole = np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)
    seed = stable_seed(str(tables.dictionary["study"]), "recovery order", factor)
    drawn = 100 * np.vstack([whole, resampled_means(values, seed, resamples)])
    sides = {"recovery": drawn[:, : len(models)], "task": drawn[:, len(models) :]}
    told = pd.DataFrame({"model": models})
    for name, side in sides.items():
        ends = [interval(side[1:, place]) for place in range(len(models))]
        told[name] = side[0]
        told[f"{name}_low"], told[f"{name}_high"] = [one.low for one in ends], [one.high for one in ends]
        told[f"{name}_rank"] = told[name].rank(ascending=False)
    tau, rho = (interval(measure(sides["recovery"], sides["task"])[1:]) for measure in (kendall, spearman))
    return RecoveryOrder(
        told,
        rank_correlation(sides["recovery"][0], sides["task"][0], seed),
        tau.low,
        tau.high,
        rho.low,
        rho.high,
        len(parts["recovery"]),
        len(parts["task"]),
    )


def _item_means(rows: pd.DataFrame, value: pd.Series[float]) -> pd.DataFrame:
    """Return the mean of each item (rows) and model (columns)."""
    if rows.empty:
        return pd.DataFrame()
    return value.groupby([item_names(rows), rows["reader_group"]], observed=True).mean().unstack()
