"""Completions of texts: how many people share each, how uncertain they are about an item, and how probable a model finds it."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import is_valid
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables, as_frame, mapping_in, read_columns

OF_ITEMS = ["completions_n", "completions", "completions_entropy", "cloze"]
"""Columns of an item that was continued by people (docs/data.md)."""


def has_completions(tables: Tables) -> bool:
    """Return whether people continued the items of a study."""
    items = tables.items
    return "completions" in items and bool(items["completions"].notna().any())


def completion_trials(tables: Tables) -> pd.DataFrame:
    """Return the used trials with a valid completion, and of each the columns of its item and what follows.

    ``share``: the share of people, without the reader, who gave the same completion; ``p_answer``: the probability that a local
    model gives to the item's answers, and ``pairs`` its log-probability and people's share of each completion.
    """
    trials = tables.trials
    used = trials["excluded_reason"].isna() & (trials["trial_type"] == "answer") & is_valid(trials)
    items = tables.items[tables.items["completions"].notna()]
    keys = [
        name
        for name in ("set", "item_id", *tables.factors)
        if name in items and name in trials and items[name].notna().any()
    ]
    rows = trials[used].reset_index(names="row").merge(items[[*keys, *OF_ITEMS]], on=keys)
    shares = rows["completions"].map(mapping_in)
    given = pd.Series(
        [share.get(str(text), 0.0) for share, text in zip(shares, rows["response"], strict=True)]
    )
    n = rows["completions_n"].astype(float)
    is_person = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    # those whose completion is not counted, such as an earlier version's readers, cannot be left out
    others = ((given * n - 1) / (n - 1)).where(n > 1).clip(lower=0.0)
    rows["share"] = given.where(~is_person, others)
    logprobs = _logprobs(tables).reindex(rows["row"]).map(mapping_in).to_list()
    rows["p_answer"] = [
        math.fsum(math.exp(value) for text, value in known.items() if plain(text) == plain(str(answer)))
        if known
        else np.nan
        for known, answer in zip(logprobs, rows["answer"], strict=True)
    ]
    pairs = [
        [(value, share[plain(text)]) for text, value in known.items() if plain(text) in share]
        for known, share in zip(logprobs, shares, strict=True)
    ]
    return rows.assign(pairs=pd.Series(pairs, rows.index, dtype=object))


def _logprobs(tables: Tables) -> pd.Series[str]:
    """Return the log-probabilities of labels of every trial; none where the table has no such column."""
    try:
        columns = read_columns(tables.source.trials, ["label_logprobs"], tables.source.types.get("trials"))
    except KeyError:
        return pd.Series(None, index=tables.trials.index, dtype=object)
    return pd.Series(as_frame(columns)["label_logprobs"].to_numpy(), index=tables.trials.index)


def plain(text: str) -> str:
    """Return a completion as people's are compared: one case and single blanks."""
    return " ".join(text.casefold().split())


def cells(rows: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Return means by reader group and level: first of each item, then over items."""
    of_items = rows.assign(correct=rows["correct"].astype(float)).groupby(
        ["reader_group", factor, "set", "item_id"], sort=False, dropna=False, observed=True
    )
    means = of_items.agg(
        trials=("row", "size"),
        correct=("correct", "mean"),
        share=("share", "mean"),
        entropy=("completions_entropy", "first"),
        p_answer=("p_answer", "mean"),
    )
    over = means.groupby(level=[0, 1], sort=False, observed=True)
    table = over[["correct", "share", "entropy", "p_answer"]].mean()
    table.insert(0, "trials", over["trials"].sum())
    table.insert(1, "items", over.size())
    return table.reset_index()


def agreement(rows: pd.DataFrame) -> dict[str, tuple[float, int]]:
    """Return of each model Spearman's correlation of the probability of people's completions with their shares, and their number."""
    found: dict[str, tuple[float, int]] = {}
    for group, of_group in rows.groupby("reader_group", sort=False, observed=True):
        pairs = [pair for given in of_group["pairs"] for pair in given]
        if len({share for _, share in pairs}) > 1 and len({value for value, _ in pairs}) > 1:
            found[str(group)] = (float(stats.spearmanr(pairs).statistic), len(pairs))
    return found


def likely(text: object) -> tuple[str, float]:
    """Return the most frequent completion in a cell of the items table, with its share."""
    shares = json.loads(str(text))
    first = max(shares, key=shares.__getitem__)
    return first, float(shares[first])
