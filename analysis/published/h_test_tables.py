"""H-TEST's tables from a study's own trials, and the paired tests that the paper's claims of "no effect" lack.

Lee and Lim (2024) lay out accuracy by task and model (Tables 2, 5 and 6) and rules found by people (Table 7), and call
differences between numbers of examples, with thoughts and within families insignificant without a test. Here every item that a
model answered under both conditions is a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import is_valid
from analysis.estimate.crossed import Layout, estimate, sums_of_model
from analysis.intervals import over_items, reach, share_over_items
from analysis.preparing.exclusions import FILLER
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables

TASKS = (
    *("uppercase", "start_vowel", "end_punctuation", "palindrome", "end_ly"),
    *("spelled_math", "spelled_number", "rhyme", "repeated_word", "hyphenated_word"),
)
"""In the order of the paper's Tables 2 and 6."""
MAKINGS = ("released", "fresh", "matched")
UNANSWERED = "error"
RULE = " rule"
"""How the item of a trial that asks for a rule ends, behind the name of its set."""
FEWEST_ITEMS = 10


@dataclass(frozen=True)
class Asked:
    """How a study asked H-TEST."""

    trials: pd.DataFrame
    statements: pd.DataFrame
    ks: tuple[int, ...]  # from few to many; empty where not varied
    makings: tuple[str, ...]  # in the study's order; one empty name where not varied
    unanswered: int = 0


def asked(tables: Tables) -> Asked | None:
    """Return a study's H-TEST trials; None where it has none of the paper's tasks."""
    trials = tables.trials
    if "task" not in tables.factors or not set(TASKS) & set(tables.factors["task"]):
        return None
    between: Mapping[str, Any] = tables.dictionary.get("between") or {}
    k = _set_by(trials, between, "exemplars").astype(float)
    making = _set_by(trials, between, "items")
    trials = trials.assign(k=k, making=making.where(making.notna(), ""))
    usable = trials[trials["excluded_reason"].isna() & trials["task"].isin(TASKS)]
    every = usable[~usable["is_filler"].astype(bool)]
    rows = every[every["response_status"] != UNANSWERED]
    extra = trials["is_practice"].astype(bool) | trials["is_pilot"].astype(bool)
    # what asks for a rule is marked as a filler; any other reason holds for its session, or for the trial as it does elsewhere
    counts = trials["excluded_reason"].isna() | (trials["excluded_reason"] == FILLER)
    stated = trials[~extra & counts & trials["item_id"].astype(str).str.endswith(RULE)]
    if rows.empty and stated.empty:
        return None
    rows = rows.assign(
        right=rows["correct"].fillna(0).astype(float),
        answered=is_valid(rows).astype(float),
    )
    found = [str(one) for one in dict.fromkeys(rows["making"])]
    ks = sorted({int(one) for one in rows["k"].dropna()})
    return Asked(rows, stated, tuple(ks), tuple(sorted(found, key=rank)), len(every) - len(rows))


def rank(making: str) -> int:
    """Return the place of a making of items: released, fresh, matched, others."""
    return MAKINGS.index(making) if making in MAKINGS else len(MAKINGS)


def _set_by(trials: pd.DataFrame, between: Mapping[str, Any], setting: str) -> pd.Series[Any]:
    """Return what the levels between sessions set, trial by trial."""
    for factor, levels in between.items():
        values = {str(level): given[setting] for level, given in levels.items() if setting in given}
        if values and factor in trials:
            return trials[factor].map(values)
    return pd.Series(None, trials.index, dtype=object)


def accuracy(rows: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return shares by reader and task, in the paper's order, and the mean of the tasks."""
    keys = ["reader_group", *by]
    grouped = rows.groupby([*keys, "task"], dropna=False, observed=True)
    table = grouped.agg(trials=("right", "size"), right=("right", "sum"), answered=("answered", "sum"))
    table = table.reset_index()
    table["accuracy"] = table["right"] / table["trials"]
    table["adjusted"] = table["right"] / table["answered"].where(table["answered"] > 0)
    table["out_of_context"] = 1 - table["answered"] / table["trials"]
    measures = ["accuracy", "adjusted", "out_of_context"]
    cells = table.groupby(keys, dropna=False, observed=True)
    means = cells[[*measures]].mean().reset_index().merge(cells["trials"].sum().reset_index(), on=keys)
    present = table.assign(_all=0).groupby(["_all", *by], dropna=False, observed=True)["task"]
    every, own = present.transform("nunique"), cells["task"].transform("size")
    partial = table[own < every][keys].drop_duplicates()
    is_partial = means.merge(partial, on=keys, how="left", indicator=True)["_merge"] == "both"
    means.loc[is_partial, measures] = np.nan
    means = means.assign(task="average")
    order = {task: place for place, task in enumerate((*TASKS, "average"))}
    both = pd.concat([table, means], ignore_index=True)
    both = both.assign(_o=both["task"].map(order)).sort_values([*keys, "_o"], kind="stable")
    return both[[*keys, "task", "trials", *measures]].reset_index(drop=True)


def covers(rows: pd.DataFrame, every: pd.DataFrame) -> bool:
    """Return whether a reader answered each task with each number and making of examples."""
    cells = ["making", "k", "task"]
    return len(rows[cells].drop_duplicates()) == len(every[cells].drop_duplicates())


@dataclass(frozen=True)
class Paired:
    """Two conditions compared over the items that both asked."""

    items: int
    first: float  # shares right
    second: float
    difference: float
    low: float
    high: float
    changed: int  # items whose share right differs
    p: float
    p_equal: float  # larger p of two one-sided tests against the bound; NaN without a bound


def paired(first: pd.DataFrame, second: pd.DataFrame, bound: float | None = None) -> Paired | None:
    """Compare two conditions item by item; p, interval and equivalence test are of one estimate over items."""
    keys = ["making", "task", "item_id"]
    one, other = (rows.groupby(keys, observed=True)["right"].mean() for rows in (first, second))
    both = pd.concat([one, other], axis=1, join="inner").to_numpy(dtype=float)
    if len(both) < FEWEST_ITEMS:
        return None
    found = estimate(
        sums_of_model(Layout(("first", "second"), tuple(range(len(both)))), both), {"second": 1, "first": -1}
    )
    assert found is not None
    low, high = found.interval()
    before, after = both.mean(axis=0).tolist()
    p_equal = np.nan if bound is None else found.equivalence_p(bound)
    changed = int((both[:, 0] != both[:, 1]).sum())
    return Paired(len(both), before, after, found.value, low, high, changed, found.p(), p_equal)


@dataclass(frozen=True)
class Contrast:
    """Two makings of items compared over the tasks that both have."""

    tasks: int  # common tasks; items of both makings
    items: int
    difference: float
    low: float
    high: float
    p: float
    p_equal: float = np.nan  # larger p of two one-sided tests against the bound; NaN without a bound


def between_makings(first: pd.DataFrame, second: pd.DataFrame, bound: float | None = None) -> Contrast | None:
    """Compare the items of two makings, each item's mean a unit, tasks weighing the same."""
    units = [rows.groupby(["task", "item_id"], observed=True)["right"].mean() for rows in (first, second)]
    by_task = [{str(t): own.to_numpy(dtype=float) for t, own in one.groupby(level="task")} for one in units]
    common = [t for t in by_task[0] if t in by_task[1] and min(len(by_task[0][t]), len(by_task[1][t])) > 1]
    if not common:
        return None
    gaps = [by_task[1][t].mean() - by_task[0][t].mean() for t in common]
    parts = [(own[t].var(ddof=1) / len(own[t]), len(own[t]) - 1) for t in common for own in by_task]
    variance = sum(value for value, _ in parts)
    items = sum(len(own[t]) for t in common for own in by_task)
    mean = float(np.mean(gaps))
    if variance == 0:
        return None
    se = float(np.sqrt(variance)) / len(common)
    df = variance**2 / sum(value**2 / free for value, free in parts)
    half = reach(se, df)
    p = float(2 * stats.t.sf(abs(mean) / se, df))
    p_equal = (
        np.nan
        if bound is None
        else float(max(stats.t.sf((mean + bound) / se, df), stats.t.sf((bound - mean) / se, df)))
    )
    return Contrast(len(common), items, mean, mean - half, mean + half, p, p_equal)


def mean_with_ends(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return a mean in percent with the ends of its 95% interval."""
    by_person = rows["reader_kind"].iloc[0] in PARTICIPANT_KINDS
    keys = ["reader"] if by_person else ["task", "item_id"]
    units = rows.groupby(keys, observed=True)["right"].agg(["mean", "size"])
    means, answers = units["mean"].to_numpy(dtype=float), units["size"].to_numpy(dtype=float)
    mean = float(means.mean())
    low, high = over_items(means) if by_person else share_over_items(means, answers)
    return 100 * mean, 100 * low, 100 * high


def rules_stated(statements: pd.DataFrame) -> pd.DataFrame:
    """Return, by reader and number of examples, how many rules were stated right (Table 7)."""
    if statements.empty:
        return pd.DataFrame(columns=["reader_group", "k", "readers", "stated", "rated", "right"])
    rated = statements["score"].notna() & statements["scorer"].astype(str).str.startswith("rated")
    rows = statements.assign(
        _stated=is_valid(statements),
        _rated=rated,
        _right=rated & (statements["score"] >= 1),
    )
    return (
        rows.groupby(["reader_group", "k"], dropna=False, observed=True)
        .agg(
            readers=("reader", "nunique"),
            stated=("_stated", "sum"),
            rated=("_rated", "sum"),
            right=("_right", "sum"),
        )
        .reset_index()
    )


def printed() -> pd.DataFrame:
    """Return Table 6 as printed: ``model``, ``k``, ``task`` (or ``average``), ``printed`` (a share)."""
    text = resources.files(__package__).joinpath("h_test.csv").read_text("utf-8")
    return pd.read_csv(StringIO(text), comment="#")
