"""Data of models of what machines give (surprisal, margins, tokens, latency), and of words recovered of words changed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.frames import ModelData, analysed_as_planned, in_model
from analysis.measures.recovery import recovery_trials
from analysis.plan import WORDS_WITH_ONE_TYPO, Measure, Plan
from analysis.readers import headed
from analysis.tables import Tables

LEAD = Measure(
    "lead",
    "Lead of the correct label",
    "lead of the correct label",
    "gaussian",
    False,
    "nats",
    "lead",
    of="models",
)
"""Log-probability of the correct label minus that of its best rival: with two labels, the log odds of the correct one."""

_PLACE = ["session_id", "trial_index", "attempt"]


def quantity_data(trials: pd.DataFrame, plan: Plan) -> ModelData:
    """Return the data of a model of surprisal, margins, tokens or latency: every trial with the quantity, valid or not."""
    rows, remarks = analysed_as_planned(trials, plan)
    measure = plan.measure
    has = rows[measure.name].notna()
    if measure.logged:
        none = has & ~(rows[measure.name] > 0)
        if none.any():
            remarks.append(
                f"Left out of the model: {int(none.sum()):,} of {int(has.sum()):,} trials with a {measure.noun} of 0, "
                "which has no logarithm."
            )
        has &= ~none
    lost = int(rows[measure.name].isna().sum())
    if lost and has.any():
        remarks.append(f"Left out of the model: {lost:,} of {len(rows):,} trials without a {measure.noun}.")
    rows = rows[has].copy()
    rows[measure.response] = np.log(rows[measure.name]) if measure.logged else rows[measure.name]
    for group, own in rows.groupby("reader_group")[measure.response]:
        if own.nunique() < 2:
            remarks.append(
                f"{headed(str(group))}: every trial has the same {measure.noun}; not in the model."
            )
            rows = rows[rows["reader_group"] != group]
    data = in_model(rows, plan)
    return replace(data, remarks=(*remarks, *data.remarks))


def lead_data(tables: Tables, plan: Plan) -> ModelData:
    """Return the data of a model of how far the correct label leads: the margin of a right choice, minus that of a wrong one."""
    rows, remarks = analysed_as_planned(tables.trials, plan)
    has = rows["margin"].notna() & rows["correct"].notna()
    lost = int((~has).sum())
    if lost:
        remarks.append(
            f"Left out of the model: {lost:,} of {len(rows):,} trials without the probabilities of labels, or neither right nor "
            "wrong."
        )
    rows = rows[has].copy()
    right = rows["correct"].to_numpy(dtype=float) > 0
    rows[LEAD.name] = np.where(right, rows["margin"], -rows["margin"])
    if not _two_labels(tables) and not right.all():
        remarks.append(
            "Items have more than two labels: where the choice was wrong the correct label is taken to be second, the best that "
            "it can be."
        )
    data = in_model(rows, plan)
    return replace(data, remarks=(*remarks, *data.remarks))


def _two_labels(tables: Tables) -> bool:
    if "choices" not in tables.items.columns:
        return False
    offered = tables.items["choices"].dropna().map(lambda text: len(json.loads(text) or []))
    return bool((offered[offered > 0] == 2).all())


def rating_rows(trials: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials of a plan that have a rating, and what was left out."""
    rows, remarks = analysed_as_planned(trials, plan)
    has = rows["rating"].notna()
    if not has.all():
        remarks.append(f"Left out: {int((~has).sum()):,} of {len(rows):,} trials without a rating.")
    return rows[has], remarks


def words_rows(tables: Tables, plan: Plan) -> tuple[pd.DataFrame, list[str]]:
    """Return trials with changed words, the ``share`` of them that each typed answer recovers, and what was left out."""
    rows, remarks = analysed_as_planned(tables.trials, plan)
    measured = recovery_trials(tables.trials, tables.items, list(tables.factors))
    counts = measured[[*_PLACE, "changed", "recovered", "with_one_typo"]]
    rows = rows.merge(counts, on=_PLACE, how="inner", validate="one_to_one")
    unchanged = int((rows["changed"] == 0).sum())
    if unchanged:
        remarks.append(
            f"Left out of the model: {unchanged:,} of {len(rows):,} trials in which no word was changed."
        )
    rows = rows[rows["changed"] > 0].copy()
    rows["not_recovered"] = rows["changed"] - rows["recovered"]
    rows["recovered_with_one_typo"] = rows["with_one_typo"]
    rows["beyond_one_typo"] = rows["changed"] - rows["with_one_typo"]
    column = "with_one_typo" if plan.measure == WORDS_WITH_ONE_TYPO else "recovered"
    rows["share_recovered"] = rows[column] / rows["changed"]
    rows["share"] = rows["share_recovered"]
    alike = _all_or_none(rows)
    if alike is None and (rows["changed"] > 1).any():
        rows["answer_given"] = rows["session_id"] + ":" + rows["trial_index"].astype(str)
    elif alike is not None:
        rows = _one_an_answer(rows)
        remarks.append(
            f"{100 * alike:.0f}% of the answers recover all of their changed words or none: words of one answer are no trials "
            f"of their "
            "own, so each answer counts once in the logistic model, as recovered where at least half of its words are."
        )
    return rows, remarks


ALL_OR_NONE = 0.9
"""From this share of answers on whose words come back together the variance between answers has no bound."""


def _all_or_none(rows: pd.DataFrame) -> float | None:
    """Return the share of answers of several changed words that recover all of them or none, where it is so large; else None."""
    several = rows.loc[rows["changed"] > 1, "share_recovered"]
    share = float(several.isin([0.0, 1.0]).mean()) if len(several) else 0.0
    return share if share >= ALL_OR_NONE else None


def _one_an_answer(rows: pd.DataFrame) -> pd.DataFrame:
    """Count an answer once, as recovered or not, instead of each of its words."""
    strict = (rows["recovered"] / rows["changed"] >= 0.5).astype(float)
    tolerant = (rows["with_one_typo"] / rows["changed"] >= 0.5).astype(float)
    whole = (rows["share_recovered"] >= 0.5).astype(float)
    return rows.assign(
        recovered=strict,
        not_recovered=1.0 - strict,
        recovered_with_one_typo=tolerant,
        beyond_one_typo=1.0 - tolerant,
        share_recovered=whole,
    )
