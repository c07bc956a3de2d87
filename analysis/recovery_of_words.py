"""Puts what changed words were made to cost simulated readers of a moving window beside what their times on these words give back.

In a moving window a simulated reader's reading time is the sum of its words' times, which follow ``words`` of the truth; the
effects under ``time`` are those of other screens and say nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.costs.words import TARGET, region_rows, word_table
from analysis.letters import letter_changes
from analysis.recovery_check import SIMULATED, Recovered, reads_word_by_word
from analysis.tables import Tables
from stimuli.errors import UserError

MEASURE, TITLE = "time_changed", "Time on changed words"
_PLACE_OF = {"initial": "initial", "internal": "internal", "final": "final", "outer": "external"}
_KINDS = ("transposition", "substitution", "shuffle")


def recovered_words(tables: Tables, factor: str) -> list[Recovered]:
    """Compare costs given for changed words with mean log times on them less those on the intact words; t over readers."""
    given = (tables.dictionary["truth"] or {}).get("words") or {}
    if not given.get("changed") or not reads_word_by_word(tables):
        return []
    try:
        words = word_table(tables, factor)
        changes = letter_changes(tables.items, words.factors)
    except UserError:
        return []
    intact, *levels = words.levels
    if words.words.loc[words.words[factor] == intact, "is_changed"].any():
        return []
    cell = [name for name in ("set", "item_id", *words.factors) if name in changes]
    cost = changes[cell].assign(cost=[_cost(one, given) for one in changes.to_dict("records")])
    changed = words.words.loc[words.words["is_changed"], ["set", "item_id", "region"]]
    behind = changed.assign(region=changed["region"] + 1, behind=True).drop_duplicates()
    parts = []
    for batch in region_rows(tables, words):
        own = batch[(batch["reader_kind"] == SIMULATED) & (batch["zone"] == TARGET) & (batch["rt"] > 0)]
        own = own.merge(cost, on=cell, how="left").merge(behind, on=["set", "item_id", "region"], how="left")
        parts.append(own.loc[own["behind"].isna(), ["reader", factor, "rt", "cost"]])
    rows = pd.concat(parts, ignore_index=True)
    rows["log_rt"] = np.log(rows["rt"])
    found = []
    for level in levels:
        one = rows[rows[factor] == level]
        if one.empty or one["cost"].isna().any():
            continue
        base = rows[rows[factor] == intact].groupby("reader")["log_rt"].mean()
        of_reader = one.groupby("reader")[["log_rt", "cost"]].mean().join(base.rename("base"), how="inner")
        if len(of_reader) < 2:
            continue
        differences = (of_reader["log_rt"] - of_reader["base"]).to_numpy(dtype=float)
        middle, truth = float(differences.mean()), float(of_reader["cost"].mean())
        wide = float(
            student.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / len(differences) ** 0.5
        )
        label = f"{level} − {intact}"
        found.append(Recovered(MEASURE, TITLE, "log_ms", label, truth, middle, middle - wide, middle + wide))
    return found


def _cost(change: Mapping[Any, Any], given: Mapping[str, Any]) -> float:
    """Return what an item's changed words cost on the log scale; nan where its words differ in place, kind or distance."""
    if change["zone"] not in _PLACE_OF or change["kind"] not in _KINDS:
        return float("nan")
    costs, place = given["changed"], _PLACE_OF[change["zone"]]
    if place == "external" and place not in costs:
        place = "initial"
    replaced = float(given.get("substituted", 1.0)) if change["kind"] == "substitution" else 1.0
    farther, between = float(given.get("farther", 1.0)), 0.0
    if farther != 1.0 and change["zone"] != "outer":
        if not change["same_distance"]:
            return float("nan")
        between = max(float(change["distance"]) - 1.0, 0.0)
    return float(costs.get(place, 0.0) * replaced * farther**between)
