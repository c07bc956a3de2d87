"""What each item cost each reader in each condition, people and models in one table, each measure in its own unit.

People have times; models have tokens, reasoning tokens, surprisal, and times only where a trial ran alone. A log cost is what
ratios are made of: for people the mean of the logarithms of their times, for a model the logarithm of the item's mean over its
sessions (token counts may be 0 in one session and not in another).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.answers import not_failed
from analysis.costs.words import NEXT, SECOND, TARGET, WordTable, region_rows, word_table
from analysis.measures.cost import COSTS, costs_of
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables, item_names
from stimuli.errors import UserError

MEASURES_OF_PEOPLE = ("reading_time", "rt", "time_changed", "time_after")
OF_WORDS = ("surprisal_changed", "surprisal_after")
MEASURES_OF_MODELS = (*COSTS, *OF_WORDS)
UNITS = {
    **dict.fromkeys((*MEASURES_OF_PEOPLE, "latency_ms", "ttft_ms"), "ms"),
    **dict.fromkeys(("surprisal", *OF_WORDS), "bits"),
    **dict.fromkeys((name for name in COSTS if name.endswith("tokens")), "tokens"),
    "cost_usd": "US dollars",
}
TITLES = {
    "reading_time": "Reading time",
    "rt": "Response time",
    "time_changed": "Time on changed words",
    "time_after": "Time on the two words after",
    "prompt_tokens": "Prompt tokens",
    "completion_tokens": "Completion tokens",
    "total_tokens": "Prompt and completion tokens",
    "reasoning_tokens": "Reasoning tokens",
    "latency_ms": "Latency, timed alone",
    "ttft_ms": "Time to first token, timed alone",
    "surprisal": "Surprisal of the text",
    "surprisal_changed": "Surprisal of changed words",
    "surprisal_after": "Surprisal of the two words after",
    "cost_usd": "Cost of calls",
}
"""What tables and figures call the measures."""
_OF_TRIALS = (
    *("reader_group", "reader_kind", "set", "item_id", "excluded_reason", "timed", "latency_ms", "ttft_ms"),
    *("prompt_tokens", "completion_tokens", "reasoning_tokens", "surprisal", "cost_usd"),
)
_COLUMNS = ["measure", "reader_group", "reader_kind", "reader", "item"]


@dataclass(frozen=True)
class UnitCosts:
    """Costs by reader, item and condition."""

    rows: pd.DataFrame
    factor: str
    levels: tuple[str, ...]  # the intact one first
    remarks: tuple[str, ...]  # what could not be measured, and why


def unit_costs(
    tables: Tables, factor: str, table: WordTable | None = None, *, of_words: bool = True
) -> UnitCosts:
    """Collect all costs that a study recorded."""
    levels = tables.levels_of(factor)
    parts = [_times(tables, factor, name) for name in ("reading_time", "rt")]
    machines = ~tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)
    of_models = tables.trials.loc[machines, [*_OF_TRIALS, factor]]
    parts += [_of_models(of_models, factor, name) for name in COSTS]
    remarks: tuple[str, ...] = ()
    try:
        parts += [_of_words(tables, factor, table)] if of_words else []
    except UserError as error:
        remarks = (f"No costs of single words: {error.message}.",)
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return UnitCosts(rows, factor, tuple(levels), remarks)


def _times(tables: Tables, factor: str, measure: str) -> pd.DataFrame:
    trials = tables.trials
    used = (
        trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS) & not_failed(trials)
    )
    used &= trials[factor].notna() & trials["item_id"].notna() & trials[f"{measure}_excluded"].isna()
    rows = trials.loc[
        used & (trials[measure] > 0), ["reader_group", "reader_kind", "reader", "set", "item_id", factor]
    ]
    rows = rows.assign(
        measure=measure,
        item=item_names(rows),
        value=np.log(trials.loc[rows.index, measure]),
    )
    means = _averaged(rows, factor, "value")
    means["cost"] = np.exp(means["value"])
    return means


def _of_models(machines: pd.DataFrame, factor: str, measure: str) -> pd.DataFrame:
    rows = costs_of(machines, measure)
    rows = rows[rows[factor].notna()]
    rows = rows.assign(reader=rows["reader_group"], measure=measure, item=item_names(rows))
    return _logged(_averaged(rows, factor, "cost"))


def _of_words(tables: Tables, factor: str, table: WordTable | None) -> pd.DataFrame:
    table = word_table(tables, factor) if table is None else table
    sums: list[pd.DataFrame] = []
    keys = [*_COLUMNS, factor]
    for batch in region_rows(tables, table):
        rows = batch[batch["zone"].notna() & batch[factor].notna()]
        people = rows["reader_kind"].isin(PARTICIPANT_KINDS)
        part = rows["zone"].map({TARGET: "changed", NEXT: "after", SECOND: "after"})
        rows = rows.assign(
            measure=np.where(people, "time_", "surprisal_") + part,
            reader=rows["reader"].where(people, rows["reader_group"]),
            item=item_names(rows),
            number=np.where(people, np.log(rows["rt"].where(rows["rt"] > 0)), rows["surprisal"]),
        )
        rows = rows[rows["number"].notna()]
        sums.append(rows.groupby(keys, sort=False)["number"].agg(["sum", "count"]).reset_index())
        if len(sums) > 8:
            sums = [_summed(sums, keys)]
    found = _summed(sums, keys)
    found["mean"] = found.pop("sum") / found["count"]
    found = found.rename(columns={"count": "trials"})
    people = found["reader_kind"].isin(PARTICIPANT_KINDS)
    found["cost"] = np.where(people, np.exp(found["mean"].where(people)), found["mean"])
    return _logged(found.drop(columns="mean"))


def _summed(parts: list[pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    whole = pd.concat(parts, ignore_index=True)
    return whole.groupby(keys, sort=False, as_index=False).sum()


def _averaged(rows: pd.DataFrame, factor: str, name: str) -> pd.DataFrame:
    cells = rows.groupby([*_COLUMNS, factor], sort=False)[name].agg(["mean", "count"]).reset_index()
    return cells.rename(columns={"mean": name, "count": "trials"})


def _logged(rows: pd.DataFrame) -> pd.DataFrame:
    rows["value"] = np.log(rows["cost"].where(rows["cost"] > 0))
    return rows
