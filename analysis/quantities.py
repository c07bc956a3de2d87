"""Data of models of what machines give (surprisal, margins, tokens, latency), and of words recovered of words changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.frames import ModelData, analysed_as_planned, in_model
from analysis.measures import WORDS_WITH_ONE_TYPO
from analysis.measures.recovery import recovery_trials
from analysis.plan import Plan
from analysis.readers import headed
from analysis.tables import Tables

_PLACE = ["session_id", "trial_index", "attempt"]


def quantity_data(trials: pd.DataFrame, plan: Plan) -> ModelData:
    """Return the data of a model of surprisal, margins, tokens or latency.

    Every trial that has the quantity is in it, whatever became of its answer: tokens of a reply that cannot be read were
    spent too. The response is the natural logarithm of tokens and latency, and bits or nats as they are.

    Parameters
    ----------
    trials : pandas.DataFrame
        A flagged trials table.
    plan : Plan
        Of one of :data:`analysis.measures.OF_MODELS`.
    """
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


def words_data(tables: Tables, plan: Plan) -> ModelData:
    """Return the data of a model of recovered words: of each typed answer, words recovered and not recovered.

    An answer that is not there, or could not be read, recovers nothing. Trials in which no word was changed have nothing to
    recover and are left out.

    Raises
    ------
    UserError
        Where the items table does not say what was shown.
    """
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
    rows["answer_given"] = rows["session_id"] + ":" + rows["trial_index"].astype(str)
    data = in_model(rows, plan, share="share_recovered")
    return replace(data, remarks=(*remarks, *data.remarks))
