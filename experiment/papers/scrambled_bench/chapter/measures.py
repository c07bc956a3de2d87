"""A study's own run in the cells of Scrambled Bench's tables: which part it is of the paper, which columns its levels are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.answers import failures_as_wrong
from analysis.measures.accuracy import GROUP, asked
from analysis.measures.recovery import recovery, recovery_trials
from analysis.measures.retention import relative_gains
from analysis.tables import Tables, mapping_in
from experiment.papers.scrambled_bench.chapter.reproduction import (
    CATEGORIES,
    DATA,
    method_of,
    with_missing_as_empty,
)

STUDY: dict[str, Any] = DATA["study"]
COLUMNS: list[str] = STUDY["columns"]
"""Of all tables and of Figure 6, in this order."""


@dataclass(frozen=True)
class StudyPart:
    """Part of the paper that a study replicates."""

    task: str
    data: str  # realtimeQA, DREAM or AQuA-RAT
    few_shot: bool
    set_name: str
    factor: str  # that scrambles
    columns: dict[str, str]  # the paper's column of each level, in the paper's order
    examples: str | None = None  # the factor that scrambles the examples
    example_columns: dict[str, str] | None = None
    imported: bool = False

    @property
    def table(self) -> str:
        """Number of the paper's table; of DREAM the first of three."""
        if self.task == "rec":
            return "3" if self.few_shot else "4"
        return {"RealtimeQA": "5", "DREAM": "6"}.get(self.data, "1")


def study_parts(tables: Tables) -> list[StudyPart]:
    """Return a study's parts of Scrambled Bench: recovery or questions, with at least two scrambles."""
    items = tables.items
    if not {"set", "role", "shown", "provenance"} <= set(items.columns):
        return []
    tests = items[items["role"] == "test"]
    parts = []
    for set_name, set_items in tests.groupby("set", sort=False):
        task = STUDY["sets"].get(str(set_name))
        field = next(iter(mapping_in(set_items["shown"].iloc[0])), "")
        if task is None or field not in STUDY["fields"] or (task == "problem") != (field == "question"):
            continue
        columns_of = {
            factor: columns
            for factor, levels in tables.factors.items()
            if (columns := _columns(set_items, factor, levels)) is not None
        }
        scrambling = [
            factor for factor in columns_of if not _of_examples(set_items, factor, columns_of[factor])
        ]
        if not scrambling:
            continue
        factor = scrambling[0]
        others = [name for name in columns_of if name != factor]
        examples = others[0] if task == "problem" and others else None
        base: dict[str, Any] = {
            "task": task, "data": STUDY["fields"][field], "set_name": str(set_name), "factor": factor,
            "columns": columns_of[factor],
            "examples": examples, "example_columns": columns_of[examples] if examples else None,
        }  # fmt: skip
        imported = str(mapping_in(set_items["provenance"].iloc[0]).get("source")).startswith(STUDY["source"])
        base["imported"] = imported
        with_examples = {bool(((items["role"] == "exemplar") & (items["set"] == set_name)).any())}
        if imported:
            methods = method_of(tables.trials[tables.trials["set"] == set_name]).unique()
            with_examples = {
                method == "few-shot" for method in methods if method in ("zero-shot", "few-shot")
            }
        parts += [StudyPart(few_shot=few_shot, **base) for few_shot in sorted(with_examples)]
    return parts


def trials_of(tables: Tables, part: StudyPart) -> pd.DataFrame:
    """Return the trials table of a part: its set, its manner."""
    trials = tables.trials[tables.trials["set"] == part.set_name]
    if part.imported:
        return trials[method_of(trials) == ("few-shot" if part.few_shot else "zero-shot")]
    return trials


def part_cells(tables: Tables, part: StudyPart, study: str = "") -> pd.DataFrame:
    """Measure every reader group in every column."""
    trials = trials_of(tables, part)
    if part.task == "rec":
        measured = recovery_trials(trials, tables.items, list(tables.factors))
        measured = with_missing_as_empty(measured) if part.imported else measured
        sums = recovery(measured, [part.factor], study=study)
        cells = sums.rename(columns={"ed": "ED", "rr": "RR", "rr_low": "low", "rr_high": "high"})
        cells = cells.assign(
            column=cells[part.factor].map(part.columns), category="all", items=cells["trials"]
        )
        return _ordered(cells[[GROUP, "column", "category", "items", "ED", "RR", "low", "high"]])
    if part.task == "problem":
        examples = trials[part.examples].map(part.example_columns or {}) if part.examples else "Ori"
        means = _means(
            trials.assign(examples=examples, column=trials[part.factor].map(part.columns)),
            "examples",
            "column",
        )
        return _ordered(means.assign(category="all"))
    parts = [_gains(trials, part, "all", study)]
    for category, ids in _categories(tables, part).items():
        category_trials = trials[trials["item_id"].isin(ids)]
        if len(asked(category_trials)):
            parts.append(_gains(category_trials, part, category, f"{study} {category}"))
    return _ordered(pd.concat(parts, ignore_index=True))


def _gains(trials: pd.DataFrame, part: StudyPart, category: str, study: str) -> pd.DataFrame:
    by_column = {column: level for level, column in part.columns.items()}
    present = set(asked(trials)[part.factor].dropna())
    intact, floor = by_column.get("Ori"), by_column.get("Sub")
    if intact in present and floor in present:
        gains = relative_gains(
            trials, part.factor, intact=str(intact), substituted=str(floor), study=study
        ).rename(columns={"accuracy": "Acc", "rpg": "RPG", "rpg_low": "low", "rpg_high": "high"})
        # a gain is a share of what intact text is worth, and here it is worth nothing
        gains.loc[~(gains["gap"] > 0), ["RPG", "low", "high"]] = np.nan
    else:
        gains = _means(trials, part.factor).assign(RPG=np.nan, low=np.nan, high=np.nan, flagged=False)
    gains = gains.assign(column=gains[part.factor].map(part.columns), category=category)
    return gains[[GROUP, "column", "category", "items", "Acc", "RPG", "low", "high", "flagged"]]


def _means(trials: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Return percent right and the number of trials of each reader group and cell."""
    rows = asked(trials)
    cells = rows.assign(right=100.0 * failures_as_wrong(rows)).groupby([GROUP, *by], sort=False)["right"]
    return cells.agg(Acc="mean", items="size").reset_index()


def _ordered(cells: pd.DataFrame) -> pd.DataFrame:
    order = {name: index for index, name in enumerate((*COLUMNS, "all", *CATEGORIES))}
    placed, by = cells[cells["column"].notna()], ["category", "column"]
    return placed.sort_values(by, key=lambda column: column.map(order), kind="stable", ignore_index=True)


def _columns(items: pd.DataFrame, factor: str, levels: list[str]) -> dict[str, str] | None:
    """Name the paper's column of each level of a factor; None where fewer than two are the paper's."""
    if factor not in items.columns:
        return None
    columns: dict[str, str] = {}
    for level in levels:
        rows = items[items[factor] == level]
        done = mapping_in(rows["provenance"].iloc[0]).get("operation") if len(rows) else None
        name = STUDY["levels"].get(re.sub(r"[^a-z0-9]", "", level.casefold()))
        column = name or STUDY["operations"].get(str(done))
        if column is not None and column not in columns.values():
            columns[level] = column
    if len(columns) < 2:
        return None
    return dict(sorted(columns.items(), key=lambda pair: COLUMNS.index(pair[1])))


def _of_examples(items: pd.DataFrame, factor: str, columns: dict[str, str]) -> bool:
    """Return whether a factor leaves the items' own texts as they are at all its levels, so that it is about the examples."""
    rows = items[items[factor].isin(list(columns))]
    done = [str(mapping_in(text).get("operation")) for text in rows["provenance"]]
    levels = rows.assign(_done=done).groupby(["item_id", "_done"], sort=False)[factor].nunique()
    return bool(len(levels)) and bool((levels > 1).all())


def _categories(tables: Tables, part: StudyPart) -> dict[str, set[str]]:
    """Return the items of each of DREAM's categories; an item may be in several."""
    if part.data != "DREAM" or "cov_categories" not in tables.items.columns:
        return {}
    categorised = tables.items[
        (tables.items["set"] == part.set_name) & tables.items["cov_categories"].notna()
    ]
    categories = categorised["cov_categories"].astype(str).str.split(", ").explode()
    items = categorised["item_id"].astype(str).reindex(categories.index)
    return {name: set(items[categories == name]) for name in CATEGORIES if (categories == name).any()}
