"""Letter geometry from a study's own trials: by kind of question, against chance, and beside H-TEST (Figure 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from analysis.answers import is_valid
from analysis.published.h_test_tables import UNANSWERED, Asked, covers, mean_with_ends, printed
from analysis.readers import PARTICIPANT_KINDS
from analysis.tables import Tables

SET = "letter_geometry"
CHANCE = 0.25
FAMILIES = (
    *("rotation", "flip", "reflection", "add_subtract", "addition", "subtraction"),
    *("composite", "composition"),
)
"""Kinds of questions, released and computed, in the order of the paper's Table 4."""
GIVEAWAYS = frozenset({"O", "E", "Ɛ"})
"""The wrong options of nearly every released question."""
FEWEST_POINTS = 4


def geometry(tables: Tables) -> pd.DataFrame | None:
    """Return a study's analysed letter-geometry trials; None where it has none."""
    trials = tables.trials
    if "family" not in tables.factors or "set" not in trials:
        return None
    usable = trials[trials["excluded_reason"].isna() & (trials["set"] == SET)]
    rows = usable[~usable["is_filler"].astype(bool) & ~usable["is_attention_check"].astype(bool)]
    rows = rows[rows["response_status"] != UNANSWERED]
    silent = ~is_valid(rows).groupby(rows["reader_group"], observed=True).transform("any").astype(bool)
    rows = rows[~(silent & (rows["reader_kind"] == "baseline"))]
    if rows.empty:
        return None
    return rows.assign(
        right=rows["correct"].fillna(0).astype(float),
        answered=is_valid(rows).astype(float),
        task=rows["family"].astype(str),
        making="",
    )


@dataclass(frozen=True)
class Share:
    """A share of right answers and whether it is above or below chance."""

    items: int
    answers: int
    value: float
    low: float
    high: float
    p: float


def share(rows: pd.DataFrame, chance: float = CHANCE) -> Share:
    """Return the share of right answers of one reader group."""
    mean, low, high = (value / 100 for value in mean_with_ends(rows))
    by_person = rows["reader_kind"].iloc[0] in PARTICIPANT_KINDS
    keys = ["reader"] if by_person else ["task", "item_id"]
    grouped = rows.groupby(keys, observed=True)["right"]
    units = grouped.mean().to_numpy(dtype=float)
    if not by_person and bool((grouped.size() == 1).all()):
        p = float(stats.binomtest(int(units.sum()), len(units), chance).pvalue)
    elif len(units) > 1 and units.std() > 0:
        p = float(stats.ttest_1samp(units, chance).pvalue)
    else:
        p = np.nan
    return Share(rows["item_id"].nunique(), len(rows), mean, low, high, p)


def by_option_alone(items: pd.DataFrame) -> tuple[int, int] | None:
    """Return how many questions "the one option that is not O, E or Ɛ" answers right, and of how many."""
    if not {"set", "item_id", "choices", "answer"} <= set(items.columns):
        return None
    own = items[(items["set"] == SET) & items["choices"].notna()].drop_duplicates("item_id")
    if "role" in own:
        own = own[own["role"] == "test"]
    if own.empty:
        return None
    right = 0
    for choices, answer in zip(own["choices"], own["answer"], strict=True):
        left = [
            one
            for one in (json.loads(choices) if isinstance(choices, str) else choices)
            if one not in GIVEAWAYS
        ]
        right += len(left) == 1 and left[0] == answer
    return right, len(own)


@dataclass(frozen=True)
class Point:
    """A reader on H-TEST and on letter geometry: percentages with the ends of their 95% intervals."""

    group: str
    kind: str  # reader kind; empty for a value printed in the paper, which has no interval
    x: tuple[float, float, float]  # percent right, low, high: H-TEST and letter geometry
    y: tuple[float, float, float]


def both_tests(tasks: Asked, questions: pd.DataFrame) -> list[Point]:
    """Return every reader group that took both tests, and answered every task of H-TEST."""
    rows = tasks.trials
    if len(tasks.makings) > 1:
        rows = rows[rows["making"] == tasks.makings[0]]
    if tasks.ks:
        rows = rows[rows["k"] == tasks.ks[-1]]
    found = []
    for group, own in rows.groupby("reader_group", observed=True):
        other = questions[questions["reader_group"] == group]
        if len(other) and covers(own, rows):
            kind = str(own["reader_kind"].iloc[0])
            found.append(Point(str(group), kind, mean_with_ends(own), mean_with_ends(other)))
    return found


def printed_points() -> list[Point]:
    """Return the models of which the paper prints both numbers, at 50 examples."""
    cells = printed()
    cells = cells[(cells["k"] == 50) & (cells["task"] == "average") | (cells["task"] == SET)]
    wide = cells.assign(what=cells["task"]).pivot(index="model", columns="what", values="printed").dropna()
    return [
        Point(str(model), "", (100 * row["average"],) * 3, (100 * row[SET],) * 3)
        for model, row in wide.iterrows()
    ]


@dataclass(frozen=True)
class Fitted:
    """A straight line through points, with the correlation and its 95% interval (Fisher's z)."""

    slope: float
    intercept: float
    points: int
    r: float
    low: float
    high: float


def fitted(points: Iterable[Point] | Sequence[Point]) -> Fitted | None:
    """Return the least-squares line; None for fewer than four points, or where one test does not vary."""
    pairs = np.array([(one.x[0], one.y[0]) for one in points], dtype=float)
    if len(pairs) < FEWEST_POINTS or np.any(np.ptp(pairs, axis=0) == 0):
        return None
    line = stats.linregress(pairs[:, 0], pairs[:, 1])
    reach = 1.959963984540054 / np.sqrt(len(pairs) - 3)
    z = np.arctanh(np.clip(line.rvalue, -0.999999, 0.999999))
    return Fitted(
        float(line.slope),
        float(line.intercept),
        len(pairs),
        float(line.rvalue),
        float(np.tanh(z - reach)),
        float(np.tanh(z + reach)),
    )
