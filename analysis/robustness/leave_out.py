"""Whether a conclusion hangs on some of the items: every planned difference again without each set of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.accuracy import analyse_accuracy
from analysis.cost import analyse_time
from analysis.plan import Plan
from analysis.results import Analysis
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

NOTHING = "nothing"
FOLDS = 10


def item_sets(tables: Tables, plan: Plan, folds: int = FOLDS) -> dict[str, frozenset[str]]:
    """Return the sets of items to leave out: the study's own sets where it has several, else folds of its items.

    Parameters
    ----------
    tables : Tables
    plan : Plan
    folds : int
        At most as many as items; dealt by a stable hash of the item's name.

    Returns
    -------
    dict of str to frozenset of str
        Names of items (set and item) by the name of the set.

    Raises
    ------
    UserError
        With fewer than three items or two folds.
    """
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna() & trials["item_id"].notna() & trials[plan.factor].notna()]
    names = item_names(used)
    items = sorted(names.unique())
    if len(items) < 3 or folds < 2:
        raise UserError(
            f"{len(items)} items in {folds} folds", mend="Leaving items out takes three items and two folds."
        )
    if used["set"].nunique() > 1:
        by = {
            f"set {one}": frozenset(names[used["set"] == one])
            for one in sorted(used["set"].dropna().unique())
        }
        return by
    study = str(tables.dictionary["study"])
    order = sorted(items, key=lambda item: stable_seed(study, "item sets", item))
    many = min(folds, len(items))
    return {f"items {n + 1} of {many}": frozenset(order[n::many]) for n in range(many)}


def leave_item_sets_out(tables: Tables, plan: Plan, folds: int = FOLDS) -> pd.DataFrame:
    """Fit the planned model without each set of items.

    Parameters
    ----------
    tables : Tables
    plan : Plan
        Of accuracy or a time.
    folds : int
        Where the study has one set of items.

    Returns
    -------
    pandas.DataFrame
        A row per set and contrast, those of all items (left out: ``nothing``) first: ``left_out, items`` (how many went),
        ``contrast, groups, estimate, low, high, p`` (modelled scale, uncorrected; nan where not estimable), ``points`` (accuracy),
        ``shift`` (from the estimate of all items, in standard errors of that), ``reversed`` (whether the sign is another one),
        ``conclusion_changed`` (whether the interval excludes 0 in one case and not in the other).

    Raises
    ------
    UserError
        As :func:`item_sets`.
    """
    found: list[pd.DataFrame] = []
    for name, without, given in _choices(tables, plan, folds):
        analysis = (
            analyse_accuracy(plan, given) if plan.measure.name == "correct" else analyse_time(plan, given)
        )
        found.append(_rows(analysis, name, without))
    whole = found[0].set_index(["contrast", "groups"])
    table = pd.concat(found, ignore_index=True)
    keys = pd.MultiIndex.from_frame(table[["contrast", "groups"]]) if len(table) else None
    if keys is None or whole.empty:
        return table
    base = whole.reindex(keys).reset_index(drop=True)
    known = table["estimate"].notna() & base["estimate"].notna()
    table["shift"] = (table["estimate"] - base["estimate"]) / base["_se"]
    table["reversed"] = (np.sign(table["estimate"]) != np.sign(base["estimate"])) & known
    sure = [(one["low"] * one["high"] > 0) for one in (table, base)]
    table["conclusion_changed"] = (sure[0] != sure[1]) & known
    return table.drop(columns="_se")


def _choices(tables: Tables, plan: Plan, folds: int) -> Iterator[tuple[str, int, Tables]]:
    yield NOTHING, 0, tables
    names = item_names(tables.trials)
    for name, items in item_sets(tables, plan, folds).items():
        yield name, len(items), replace(tables, trials=tables.trials[~names.isin(items)])


def _rows(analysis: Analysis, name: str, without: int) -> pd.DataFrame:
    nan = float("nan")
    return pd.DataFrame(
        [
            {
                "left_out": name,
                "items": without,
                "contrast": one.label,
                "groups": " − ".join(one.groups),
                "estimate": one.estimate if one.estimable else nan,
                "low": one.low if one.estimable else nan,
                "high": one.high if one.estimable else nan,
                "p": one.p if one.estimable else nan,
                "points": nan if one.points is None else one.points,
                "_se": one.se if one.estimable else nan,
            }
            for one in analysis.contrasts
        ],
        columns=["left_out", "items", "contrast", "groups", "estimate", "low", "high", "p", "points", "_se"],
    )
