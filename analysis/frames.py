"""Builds the data of one model from the trials table and says which groups and levels cannot be in it, and why.

A model is fitted to what the plan names and the data can carry. A reader group without trials, and one whose answers
in some condition are all right or all wrong (its effect on the logit scale is infinite), stays out of the model
and in the descriptive tables; every such step is a remark that the report prints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.exclusions import Bounds
from analysis.planned import Plan
from analysis.readers import PARTICIPANT_KINDS, headed, spoken


@dataclass(frozen=True)
class ModelData:
    """Rows of one model.

    Attributes
    ----------
    rows : pandas.DataFrame
        One row per analysed trial of the reader groups that stayed in.
    groups : tuple of str
        Reader groups in the model, in the plan's order.
    levels : tuple of str
        Levels of the compared factor in the model, reference first.
    participant_groups, machine_groups : tuple of str
        Which of the groups are made of participants (people, simulated readers), which are one model each.
    remarks : tuple of str
        What was left out of the model, in sentences.
    """

    rows: pd.DataFrame
    groups: tuple[str, ...]
    levels: tuple[str, ...]
    participant_groups: tuple[str, ...]
    machine_groups: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def can_be_fitted(self) -> bool:
        """Whether at least two levels of the factor are left in at least one group."""
        return len(self.groups) > 0 and len(self.levels) > 1


def analysed(trials: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return the trials that a plan can use, with ``item`` and ``participant`` columns; all groups of the plan."""
    rows = trials[
        trials["excluded_reason"].isna()
        & trials["reader_group"].isin(plan.groups)
        & trials[plan.factor].notna()
        & trials["item_id"].notna()
        & ((trials["trial_type"] == plan.trials) if plan.trials else True)
    ].copy()
    several = rows["set"].nunique(dropna=False) > 1
    rows["item"] = rows["set"].astype(str) + "/" + rows["item_id"] if several else rows["item_id"]
    rows["participant"] = rows["reader"]
    return rows


def accuracy_data(trials: pd.DataFrame, plan: Plan) -> ModelData:
    """Return the data of an accuracy model: an answer that is not valid (a timeout too) counts as wrong."""
    rows = analysed(trials, plan)
    rows = rows[rows["response_status"].notna()].copy()
    rows["correct"] = np.where(rows["response_status"] == "valid", rows["correct"], 0.0)
    rows["correct"] = rows["correct"].fillna(0.0)
    return _fitting(rows, plan, constant_matters=True)


def time_data(trials: pd.DataFrame, plan: Plan, bounds: Bounds | None) -> ModelData:
    """Return the data of a model of log times: valid answers, right or wrong, with a time above 0 within bounds."""
    rows = analysed(trials, plan)
    measure = plan.measure
    times = rows[measure.name]
    valid = rows["response_status"].isna() | (rows["response_status"] == "valid")
    remarks = []
    lost = int((~valid).sum())
    if lost:
        remarks.append(f"Left out of the model: {lost:,} of {len(rows):,} trials, without a valid answer.")
    timed = valid & (times > 0)
    untimed = int((valid & ~(times > 0)).sum())
    if untimed:
        remarks.append(f"Left out of the model: {untimed:,} valid answers without a {measure.noun}.")
    if bounds is not None:
        within = bounds.holds(times)
        outside = int((timed & ~within).sum())
        remarks.append(
            f"Left out of the model: {outside:,} of {int(timed.sum()):,} times, outside the study's bounds "
            f"({bounds.low:g} to {bounds.high:g} ms)."
        )
        timed &= within
    rows = rows[timed].copy()
    rows[measure.response] = np.log(rows[measure.name])
    data = _fitting(rows, plan, constant_matters=False)
    return ModelData(
        data.rows,
        data.groups,
        data.levels,
        data.participant_groups,
        data.machine_groups,
        (*remarks, *data.remarks),
    )


def _fitting(rows: pd.DataFrame, plan: Plan, *, constant_matters: bool) -> ModelData:
    remarks: list[str] = []
    usable: dict[str, list[str]] = {}
    for group in plan.groups:
        own = rows[rows["reader_group"] == group]
        if own.empty:
            remarks.append(f"{headed(group)}: no trials to analyse; not in the model.")
            continue
        cells = own.groupby(plan.factor, observed=True)[plan.measure.name]
        low, high = cells.min().to_dict(), cells.max().to_dict()
        missing = [level for level in plan.levels if level not in low]
        constant = [
            level for level in plan.levels if constant_matters and level in low and low[level] == high[level]
        ]
        if missing:
            remarks.append(f"{headed(group)}: no trials in {_quoted(missing)}.")
        if constant:
            told = ", ".join(
                f"always {'right' if high[level] == 1 else 'wrong'} in {level}" for level in constant
            )
            remarks.append(
                f"{headed(group)}: {told}; the effect on the logit scale is infinite and has no estimate."
            )
        usable[group] = [level for level in plan.levels if level not in missing and level not in constant]
    groups, levels = _largest_common(usable, remarks)
    rows = rows[rows["reader_group"].isin(groups) & rows[plan.factor].isin(levels)].copy()
    kinds = rows.drop_duplicates("reader_group").set_index("reader_group")["reader_kind"].to_dict()
    people = tuple(group for group in groups if kinds.get(group) in PARTICIPANT_KINDS)
    machines = tuple(group for group in groups if group not in people)
    rows = _with_structure_columns(rows, plan.factor, levels, people)
    return ModelData(rows, tuple(groups), tuple(levels), people, machines, tuple(remarks))


def _largest_common(usable: dict[str, list[str]], remarks: list[str]) -> tuple[list[str], list[str]]:
    """Keep the first group that can be modelled, its levels, and every further group that has all of these."""
    groups: list[str] = []
    levels: list[str] = []
    for group, own in usable.items():
        if not groups and len(own) > 1:
            groups, levels = [group], own
        elif groups and set(levels) <= set(own):
            groups.append(group)
        else:
            remarks.append(
                f"No model can be fitted for {spoken(group)}; the descriptive values are in the tables and figures."
            )
    return groups, levels


def _quoted(names: list[str]) -> str:
    return ", ".join(names)


def indicator(factor: str, level: str) -> str:
    """Name the numeric column that is 1 where a factor has a level."""
    return "".join(sign if sign.isalnum() else "_" for sign in f"{factor}_{level}")


def _with_structure_columns(
    rows: pd.DataFrame, factor: str, levels: list[str], people: tuple[str, ...]
) -> pd.DataFrame:
    """Add the numeric columns that random terms need: who is a person, who a model, which level is shown."""
    rows["people"] = rows["reader_group"].isin(people).astype(float)
    rows["model"] = 1.0 - rows["people"]
    for level in levels[1:]:
        shown = (rows[factor] == level).astype(float)
        rows[indicator(factor, level)] = shown
        rows[indicator("people", level)] = shown * rows["people"]
    rows["item_reader"] = rows["item"] + ":" + rows["reader_group"]
    rows["item_cell"] = rows["item_reader"] + ":" + rows[factor].astype(str)
    rows["prompt"] = (
        rows["reader_group"] + ":" + rows["prompt_variant"].map(lambda v: "-" if pd.isna(v) else f"{v:g}")
    )
    return rows.reset_index(drop=True)
