"""Means by condition and reader group with intervals, for tables and figures, without a model.

Participants' intervals are within-participant ones for *differences between conditions* (Cousineau, 2005; Morey, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.answers import is_valid, judged, not_failed
from analysis.exclusions import each_answer_once
from analysis.intervals import half_width, over_items, share_over_items, within_participant_half_widths
from analysis.plan import RATING, RECOVERED, Measure
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of

WITHIN, BETWEEN, WILSON, OVER_ITEMS = "within-participant", "t over participants", "Wilson", "t over items"
TOO_FEW_WITHIN, ALIKE_WITHIN = (
    "fewer than two participants were in all conditions",
    "all participants show the same differences between conditions",
)
TOO_FEW_BETWEEN, ALIKE_BETWEEN = (
    "fewer than two participants were in the condition",
    "all participants in the condition have the same mean",
)


OF_ONE = (BETWEEN, TOO_FEW_BETWEEN, ALIKE_BETWEEN)
OF_SEVERAL = (WITHIN, TOO_FEW_WITHIN, ALIKE_WITHIN)
"""The interval of a condition whose participants were in it alone, or in others too, and why there is none."""


@dataclass(frozen=True)
class ConditionMean:
    """One reader group in one condition."""

    group: str
    kind: str
    level: str
    trials: int  # trials, and participants (items, for a model or baseline) that they come from
    units: int
    mean: float  # share correct, mean recovery (0 to 1), mean in a unit, or geometric mean of milliseconds
    sd: float  # standard deviation between participants, of times the geometric one (a factor); nan for a model or baseline
    low: float  # ends of the 95% interval; nan where there is none
    high: float
    interval: str  # how the interval was made, or why there is none
    at_ends: tuple[float, float] | None = (
        None  # of ratings of people, the shares at the lowest and the highest point
    )


def scored(trials: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return trials with the column ``value``: 0 or 1 with failures as wrong, recovery, a value in its unit, or the log of a time."""
    # one selection, since a million trials have a gigabyte of columns
    used = trials["item_id"].notna()
    if measure.logged:
        rows = trials[used & not_failed(trials) & (trials[measure.name] > 0)]
        return rows.assign(value=np.log(rows[measure.name]))
    if not measure.is_share:
        rows = trials[used & trials[measure.name].notna()] if measure.name in trials else trials.iloc[:0]
        return rows.assign(value=rows.get(measure.name, pd.Series(dtype=float)).astype(float))
    used &= judged(trials, measure.name)
    if measure is RECOVERED:
        used &= trials["trial_type"] == "recover"
    rows = trials[used]
    return rows.assign(value=rows[measure.name].where(is_valid(rows), 0.0).fillna(0.0))


def participant_means(rows: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Return each reader's mean ``value`` by level: a row per reader, a column per level, on the modelled scale."""
    return rows.pivot_table(index=["reader_group", "reader"], columns=factor, values="value", aggfunc="mean")


def described_rows(rows: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return the rows of a model with the column ``value`` that :func:`describe_rows` averages."""
    column = measure.value if measure.value == "share" else measure.response
    return rows.assign(value=rows[column].astype(float))


def describe(
    trials: pd.DataFrame, measure: Measure, factor: str, levels: tuple[str, ...]
) -> list[ConditionMean]:
    """Describe every reader group of a table in every level of a factor that it saw."""
    rows = scored(trials[trials[factor].notna()], measure)
    if measure.name != "latency_ms":
        rows = each_answer_once(rows, [factor])
    return describe_rows(rows, measure, factor, levels)


def with_ends(
    cells: Sequence[ConditionMean], rows: pd.DataFrame, factor: str, ends: tuple[float, float]
) -> list[ConditionMean]:
    """Return the means of ratings with the shares of people's ratings at both ends of their scale.

    A model's rating is a mean of points by their probabilities, which is at no end.
    """

    def share(cell: ConditionMean, end: float) -> float:
        shown = rows[(rows["reader_group"] == cell.group) & (rows[factor] == cell.level)]
        return float((shown[RATING.name].dropna() == end).mean())

    return [
        replace(cell, at_ends=(share(cell, ends[0]), share(cell, ends[1])))
        if cell.kind in PARTICIPANT_KINDS
        else cell
        for cell in cells
    ]


def describe_rows(
    rows: pd.DataFrame, measure: Measure, factor: str, levels: tuple[str, ...]
) -> list[ConditionMean]:
    """Describe rows that have their ``value`` already, as :func:`describe` does."""
    if rows.empty:
        return []
    kinds = kinds_of(rows)
    cells: list[ConditionMean] = []
    for group in group_order(rows):
        rows_of_group = rows[rows["reader_group"] == group]
        present = [level for level in levels if (rows_of_group[factor] == level).any()]
        if kinds[group] in PARTICIPANT_KINDS:
            cells.extend(_participants(rows_of_group, group, kinds[group], measure, factor, present))
        elif not measure.logged or measure.of == "models":
            cells.extend(_one_reader(rows_of_group, group, kinds[group], measure, factor, present))
    return cells


def _participants(
    rows: pd.DataFrame, group: str, kind: str, measure: Measure, factor: str, levels: list[str]
) -> list[ConditionMean]:
    means = participant_means(rows, factor)[levels]
    half: dict[str, float] = {}
    kind_of: dict[str, tuple[str, str, str]] = {}
    compared: dict[str, int] = {}
    for shared in levels_shared(means):
        in_all = means[shared].dropna().to_numpy(dtype=float)
        widths = (
            [half_width(in_all[:, 0])] if len(shared) == 1 else list(within_participant_half_widths(in_all))
        )
        half |= dict(zip(shared, widths, strict=True))
        kind_of |= dict.fromkeys(shared, OF_ONE if len(shared) == 1 else OF_SEVERAL)
        compared |= dict.fromkeys(shared, len(in_all))
    cells = []
    for level in levels:
        kind_of_interval, too_few, alike = kind_of[level]
        values = means[level].dropna().to_numpy(dtype=float)
        centre = float(values.mean())
        low, high = centre - half[level], centre + half[level]
        sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        if measure.logged:
            centre, low, high, sd = np.exp(centre), np.exp(low), np.exp(high), float(np.exp(sd))
        elif measure.is_share:
            low, high = max(low, 0.0), min(high, 1.0)
        trials = int((rows[factor] == level).sum())
        interval_kind, bounds = kind_of_interval, (float(low), float(high))
        if not np.isfinite(half[level]):
            interval_kind, bounds = too_few if compared[level] < 2 else alike, (np.nan, np.nan)
        cells.append(
            ConditionMean(group, kind, level, trials, len(values), float(centre), sd, *bounds, interval_kind)
        )
    return cells


def levels_shared(means: pd.DataFrame) -> list[list[str]]:
    """Return the conditions in groups that participants share: one group of all, or several if they differ between participants.

    ``means``: a row per participant, a column per condition; nan where a participant was not in a condition.
    """
    groups: list[set[str]] = []
    for present in means.notna().drop_duplicates().to_numpy():
        joined = set(means.columns[present])
        for group in [group for group in groups if group & joined]:
            groups.remove(group)
            joined |= group
        groups += [joined] if joined else []
    return [[level for level in means.columns if level in group] for group in groups]


def _one_reader(
    rows: pd.DataFrame, group: str, kind: str, measure: Measure, factor: str, levels: list[str]
) -> list[ConditionMean]:
    cells = []
    for level in levels:
        shown = rows[rows[factor] == level]
        by_item = shown.groupby("item_id")["value"].mean()
        mean = float(by_item.mean())
        shares = measure.response in ("correct", "missing")
        limits = (0.0, 1.0) if measure.is_share else None
        values = by_item.to_numpy(dtype=float)
        answers = shown.groupby("item_id").size().to_numpy(dtype=float)
        low, high = share_over_items(values, answers) if shares else over_items(values, limits=limits)
        if measure.logged:
            mean, low, high = (float(np.exp(value)) for value in (mean, low, high))
        interval_kind, ends = WILSON if shares else OVER_ITEMS, (float(low), float(high))
        cells.append(
            ConditionMean(
                group, kind, level, len(shown), len(by_item), mean, float("nan"), *ends, interval_kind
            )
        )
    return cells


def participants_intervals(cells: Sequence[ConditionMean]) -> str:
    """State what the intervals of participants' means are; empty where no mean of participants has one."""
    intervals = {cell.interval for cell in cells if cell.kind in PARTICIPANT_KINDS}
    if WITHIN in intervals:
        return "within-participant intervals (Cousineau–Morey)"
    return (
        "Student's t intervals over participants, each of whom was in one condition"
        if BETWEEN in intervals
        else ""
    )


def why_no_interval(cells: Sequence[ConditionMean]) -> str:
    """State why no mean of participants has an interval."""
    return " or ".join(dict.fromkeys(cell.interval for cell in cells if cell.kind in PARTICIPANT_KINDS))


LETTER_POSITIONS = ("initial", "internal", "middle", "final")


def is_letter_position(levels: tuple[str, ...] | list[str]) -> bool:
    """Whether the levels of a factor (reference first) are letter positions of a word."""
    return sum(level in LETTER_POSITIONS for level in levels[1:]) >= 2
