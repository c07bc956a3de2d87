"""Finds the answers of a model that only copy one another, though their conditions differ: to prompts that are the same.

People see a font, or for how long a text stands; a model that reads text does not. Of a deterministic model such
conditions are one prompt with one answer, shown several times in the table: one observation, not several.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from analysis.preparing.exclusions import is_deterministic

TEXTS = ("shown", "choices", "key")
"""What of an item a prompt is made of; the rest of the prompt is the same for all items of a block."""


def same_prompts(trials: pd.DataFrame, items: pd.DataFrame, factors: Collection[str]) -> pd.Series[float]:
    """Give each prompt of a deterministic model a number, the same for all trials with that prompt."""
    numbers = pd.Series(np.nan, index=trials.index)
    own = [name for name in factors if name in items and items[name].notna().any()]
    usable = is_deterministic(trials) & trials["excluded_reason"].isna()
    if not own or "shown" not in items or not usable.any():
        return numbers
    if "role" in items and (items["role"] == "exemplar").any():
        return numbers
    place = [name for name in ("set", "item_id") if name in items and name in trials] + own
    texts = [name for name in TEXTS if name in items]
    tested = items[items["role"] == "test"] if "role" in items else items
    told = tested[[*place, *texts]].drop_duplicates(place)
    others = [name for name in factors if name not in own]
    asked = ["version", "block", "trial_type", "prompt_variant", "label_map", "choice_order"]
    same = ["reader", "set", "item_id", *asked, *others, *texts]
    rows = trials.loc[usable, ["reader", *asked, *dict.fromkeys(["set", "item_id", *own]), *others]]
    rows = rows.merge(told, on=place, how="left").set_index(rows.index)
    known = rows["shown"].notna()
    numbers.loc[rows.index[known]] = (
        rows[known].groupby(same, dropna=False, sort=False).ngroup().astype(float)
    )
    return numbers


def copies(rows: pd.DataFrame, by: Iterable[str]) -> pd.Series[bool]:
    """Mark answers that repeat an earlier one to the same prompt within the levels of some factors."""
    known = rows["same_prompt"].notna()
    found = pd.Series(False, index=rows.index)
    if known.any():
        same = ["same_prompt", *by, "response_status", "response", "correct"]
        found[known] = rows.loc[known, same].duplicated(keep="first")
    return found


COUNTED_ONCE = "answers of models at temperature 0, or scored, that copy another to the same prompt in a condition count once"
"""What :func:`each_answer_once` does, as tables say it."""


def each_answer_once(rows: pd.DataFrame, by: Iterable[str]) -> pd.DataFrame:
    """Leave out what :func:`copies` marks; rows of which prompts are not known stay as they are."""
    if "same_prompt" not in rows:
        return rows
    again = copies(rows, by)
    return rows[~again] if again.any() else rows


def unseen(group: str, factor: str) -> str:
    """Say of a model (as a sentence begins with it) that :func:`not_told_apart` names it."""
    return (
        f"{group} cannot tell the conditions of {factor} apart: its prompts are the same in all of them. That its answers "
        "do not differ there is no finding."
    )


def not_told_apart(rows: pd.DataFrame, factor: str) -> list[str]:
    """Return the models to which no prompt shows the level of a factor, in the table's order."""
    known = rows[rows["same_prompt"].notna()]
    if known.empty:
        return []
    levels = known.groupby(["reader_group", "same_prompt"], sort=False)[factor].nunique()
    alike = (levels > 1).groupby(level=0, sort=False).all()
    whole = rows["same_prompt"].notna().groupby(rows["reader_group"]).all()
    return [str(group) for group in alike.index[alike] if whole[group]]
