"""How H-TEST's answers were read and labelled: both parsers, labels as published and swapped, rules said beside rules used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.answers import is_valid
from analysis.published.h_test_tables import RULE, TASKS, Paired, paired
from analysis.readers import group_order
from analysis.reading import table_beside

PARSING = "published_parsing"
_PLACE = ["session_id", "trial_index", "attempt"]


@dataclass(frozen=True)
class BothParsers:
    """A reader's replies to one task, or to all, read by both parsers."""

    reader_group: str  # ``average``: mean of the tasks
    task: str
    replies: int
    published: float  # shares right; what a parser cannot read is wrong
    corrected: float
    unread_published: float  # shares in which the parser found no answer
    unread_corrected: float
    turned: int  # replies that the two judge differently
    compared: Paired | None  # corrected minus published over the items; None for fewer than ten items


def both_parsers(
    trials: pd.DataFrame,
    folder: Path,
    tasks: Sequence[str] = TASKS,
    *,
    is_pooled: bool = False,
) -> list[BothParsers]:
    """Compare the published parser with a correct one, reply by reply."""
    parsed = table_beside(folder, PARSING)
    if parsed is None:
        return []
    parsed = parsed.astype(dict.fromkeys(_PLACE[1:], float))
    known = trials.astype(dict.fromkeys(_PLACE[1:], float))
    rows = known.merge(parsed, on=_PLACE, how="inner")
    asked_of = set(trials["task"])
    found: list[BothParsers] = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        of_tasks = [
            _both(group, task, own[own["task"] == task]) for task in tasks if (own["task"] == task).any()
        ]
        found += of_tasks
        if len(of_tasks) > 1 and (is_pooled or asked_of <= set(own["task"])):
            whole = _both(group, "average", own)
            found.append(whole if is_pooled else _mean(whole, of_tasks))
    return found


def _both(group: str, task: str, rows: pd.DataFrame) -> BothParsers:
    published, corrected = rows["published"], rows["corrected"]
    differ = ~((published == corrected) | (published.isna() & corrected.isna()))
    compared = paired(rows.assign(right=published.fillna(0.0)), rows.assign(right=corrected.fillna(0.0)))
    return BothParsers(
        group,
        task,
        len(rows),
        float(published.fillna(0.0).mean()),
        float(corrected.fillna(0.0).mean()),
        float(published.isna().mean()),
        float(corrected.isna().mean()),
        int(differ.sum()),
        compared,
    )


def _mean(whole: BothParsers, parts: Sequence[BothParsers]) -> BothParsers:
    """Return the whole with shares that are means of the tasks."""

    def mean(name: str) -> float:
        return sum(float(getattr(one, name)) for one in parts) / len(parts)

    return BothParsers(
        whole.reader_group,
        whole.task,
        whole.replies,
        mean("published"),
        mean("corrected"),
        mean("unread_published"),
        mean("unread_corrected"),
        whole.turned,
        whole.compared,
    )


def is_as_published(label_map: str) -> bool:
    """Say whether a trial's labels stood for their own classes."""
    pairs = [one.split("=", 1) for one in label_map.split(",") if "=" in one]
    return all(name == label for name, label in pairs)


def label_maps(trials: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy with labels as published and swapped, and how often A was said."""
    columns = [
        *("reader_group", "published", "swapped", "counterbalanced"),
        *("says_a_published", "says_a_swapped"),
    ]
    if "label_map" not in trials or "response" not in trials:
        return pd.DataFrame(columns=columns)
    rows = trials[trials["label_map"].notna()]
    rows = rows.assign(_own=rows["label_map"].astype(str).map(is_as_published).astype(bool))
    said = (rows["response"] == "A") == rows["_own"]
    rows = rows.assign(_a=said.astype(float).where(rows["answered"] == 1))
    found = []
    for group, own in rows.groupby("reader_group", observed=True):
        both = own.groupby("_own")[["right", "_a"]].mean()
        if len(both) == 2:
            right, a = both["right"], both["_a"]
            mean = (right[True] + right[False]) / 2
            found.append((str(group), right[True], right[False], mean, a[True], a[False]))
    return pd.DataFrame(found, columns=columns)


def rules_by_task(trials: pd.DataFrame, statements: pd.DataFrame) -> pd.DataFrame:
    """Return, by reader and task, how the same readers sorted the items and stated the rule."""
    columns = [
        *("reader_group", "task", "sorted", "stated", "rated", "right", "sorted_knowing"),
        "sorted_otherwise",
    ]
    if statements.empty or trials.empty:
        return pd.DataFrame(columns=columns)
    task = statements["item_id"].astype(str).str.removesuffix(RULE).str.split("-").str[-1]
    is_rated = statements["score"].notna() & statements["scorer"].astype(str).str.startswith("rated")
    told = pd.DataFrame(
        {
            "reader_group": statements["reader_group"].astype(str),
            "session_id": statements["session_id"].astype(str),
            "task": task,
            "stated": is_valid(statements),
            "rated": is_rated,
            "right": is_rated & (statements["score"] >= 1),
        }
    )
    keys = ["reader_group", "session_id", "task"]
    shares = trials.astype({"reader_group": str, "session_id": str, "task": str})
    shares = shares.groupby(keys)["right"].mean().rename("sorted").reset_index()
    both = told.merge(shares, on=keys, how="left")
    found: list[tuple[Any, ...]] = []
    for (group, name), own in both.groupby(["reader_group", "task"]):
        knows, not_so = own["right"], own["rated"] & ~own["right"]
        found.append(
            (
                *(group, name, own["sorted"].mean()),
                *(int(own[column].sum()) for column in ("stated", "rated", "right")),
                own.loc[knows, "sorted"].mean(),
                own.loc[not_so, "sorted"].mean(),
            )
        )
    order = {name: place for place, name in enumerate(TASKS)}
    found.sort(key=lambda row: (str(row[0]), order.get(str(row[1]), len(order))))
    return pd.DataFrame(found, columns=columns)
