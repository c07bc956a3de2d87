"""Whether a conclusion hangs on some of the items: every planned difference again without each set of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.carrying_out import carry_out
from analysis.mixed import Fit
from analysis.plan import Plan
from analysis.results import Analysis
from analysis.tables import Tables, item_names
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

NOTHING = "nothing"
FOLDS = 10


@dataclass(frozen=True)
class LeftOut:
    """A planned analysis again without each set of items."""

    table: pd.DataFrame  # as :func:`leave_item_sets_out` returns it
    fits: dict[str, Fit]  # the model without each set, by the set's name
    remarks: tuple[str, ...]  # sets without which nothing could be fitted, and why


def item_sets(tables: Tables, plan: Plan, folds: int = FOLDS) -> dict[str, frozenset[str]]:
    """Return the sets of items to leave out: the study's own sets where it has several, else folds of its items."""
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
    """Carry out a plan without each set of items, its random structure found anew each time."""
    return without_item_sets(tables, plan, folds).table


def without_item_sets(
    tables: Tables, plan: Plan, folds: int = FOLDS, analysis: Analysis | None = None
) -> LeftOut:
    """Carry out a plan without each set of items and keep the models."""
    written = plan
    if analysis is not None and analysis.model is not None and analysis.companion is None:
        written = replace(plan, formula=analysis.model.formula, fallback=None)
    whole = analysis if analysis is not None else carry_out(plan, tables)
    found = [_rows(whole, NOTHING, 0)]
    fits: dict[str, Fit] = {}
    remarks: list[str] = []
    for name, without, given in _choices(tables, plan, folds):
        one = carry_out(written, given, companion=False)
        found.append(_rows(one, name, without))
        if not one.has_results:
            remarks.append(f"Without {name} nothing could be estimated. {' '.join(one.remarks)}".strip())
        elif one.model is not None and one.model.source is not None:
            fits[name] = one.model.source
    table = pd.concat([one for one in found if len(one)] or found[:1], ignore_index=True)
    base = found[0].set_index(["contrast", "groups"])
    if not base.empty:
        base = base.reindex(pd.MultiIndex.from_frame(table[["contrast", "groups"]])).reset_index(drop=True)
        known = table["estimate"].notna() & base["estimate"].notna()
        table["shift"] = (table["estimate"] - base["estimate"]) / base["_se"]
        table["reversed"] = (np.sign(table["estimate"]) != np.sign(base["estimate"])) & known
        sure = [(one["low"] * one["high"] > 0) for one in (table, base)]
        table["conclusion_changed"] = (sure[0] != sure[1]) & known
    return LeftOut(table.drop(columns="_se"), fits, tuple(remarks))


def _choices(tables: Tables, plan: Plan, folds: int) -> Iterator[tuple[str, int, Tables]]:
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
                "points": nan if one.crossed is None else one.estimate,
                "_se": one.se if one.estimable else nan,
            }
            for one in analysis.contrasts
            if not one.left_out
        ],
        columns=["left_out", "items", "contrast", "groups", "estimate", "low", "high", "p", "points", "_se"],
    )
