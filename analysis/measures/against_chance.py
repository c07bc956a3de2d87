"""Accuracy of each cell against what guessing would have: exact binomial tests, and intervals over readers or items beside.

A cell far below 1/m is no ability either: a model that always says B is right as often as B is the key, and one that echoes is
never right. A cell counts as off chance only where the binomial test, corrected over all cells, and the
interval over participants (or items) both say so: answers of one participant, or to one item, hang together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import failures_as_wrong
from analysis.intervals import share_over_items
from analysis.measures.accuracy import GROUP, accuracy, asked
from analysis.measures.cells import cell_columns
from analysis.mixed.inference import corrected
from analysis.preparing import each_answer_once
from analysis.readers import PARTICIPANT_KINDS, kinds_of

ALPHA = 0.05


def against_chance(trials: pd.DataFrame, by: Sequence[str] | str, *, study: str = "") -> pd.DataFrame:
    """Compare the accuracy of choices with chance in each cell."""
    rows = asked(trials)
    rows = rows[(rows["trial_type"] == "choose") & (rows["chance"] > 0)]
    by = cell_columns(trials, by)
    rows = rows[rows[list(by)].notna().all(axis=1)] if by else rows
    rows = each_answer_once(rows, by)
    if rows.empty:
        return pd.DataFrame()
    keys = [GROUP, *by]
    table = accuracy(rows, by, study=study)
    chance = rows.groupby(keys, observed=True)["chance"].mean()
    right = failures_as_wrong(rows).groupby([rows[name] for name in keys], observed=True).sum()
    names = list(table[keys].itertuples(index=False, name=None))
    places = names if by else [group for (group,) in names]
    table["chance"] = [float(chance[place]) for place in places]
    table["correct"] = [int(right[place]) for place in places]
    tests = [
        stats.binomtest(int(k), int(n), float(p))
        for k, n, p in zip(table["correct"], table["trials"], table["chance"], strict=True)
    ]
    ends = [one.proportion_ci(0.95, "exact") for one in tests]
    kinds = kinds_of(rows)
    by_cell = dict(list(rows.assign(_right=failures_as_wrong(rows)).groupby(keys, observed=True)))
    units = [
        (float(one["wrong_low"]), float(one["wrong_high"]))
        if kinds[str(one[GROUP])] in PARTICIPANT_KINDS
        else _over_items(by_cell[tuple(one[name] for name in keys)])
        for one in table.to_dict("records")
    ]
    p = np.array([float(one.pvalue) for one in tests])
    found = pd.DataFrame(
        {
            **{name: table[name] for name in keys},
            "kind": [kinds[str(group)] for group in table[GROUP]],
            "trials": table["trials"],
            "correct": table["correct"],
            "answered": table["valid"],
            "accuracy": table["wrong"],
            "low": [float(one.low) for one in ends],
            "high": [float(one.high) for one in ends],
            "unit_low": [low for low, _ in units],
            "unit_high": [high for _, high in units],
            "chance": table["chance"],
            "p": p,
            "p_adjusted": corrected(p, "BH"),
            "adjusted_accuracy": table["valid_only"],
            "out_of_context_ratio": table["missing_share"],
        }
    )
    # where there is one participant (no bootstrap) the binomial test alone decides
    sure = found["p_adjusted"] < ALPHA
    below = sure & (found["accuracy"] < found["chance"]) & ~(found["unit_high"] >= found["chance"])
    above = sure & (found["accuracy"] > found["chance"]) & ~(found["unit_low"] <= found["chance"])
    found["verdict"] = np.where(below, "below", np.where(above, "above", ""))
    return found


def _over_items(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the interval of one reader's share of right answers in a cell, by its items."""
    shares = rows.groupby(["set", "item_id"], dropna=False)["_right"].agg(["mean", "size"])
    return share_over_items(shares["mean"].to_numpy(dtype=float), shares["size"].to_numpy(dtype=float))
