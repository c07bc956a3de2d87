"""The data of two factors that are compared together, and when participants and items have slopes of a factor."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import apa
from analysis.names import plain
from analysis.plan import TIMES, CrossedFactors, cell_name, crossed_name


def slope_columns(
    crossing: CrossedFactors, kind: str = "", only: Collection[str] | None = None
) -> tuple[str, ...]:
    """Name the centred columns of slopes: of each factor, then of the interaction."""
    used = set(crossing.factors if only is None else only)
    return tuple(
        name for name, parts in _columns(crossing, kind).items() if {factor for factor, _ in parts} <= used
    )


def slopes_in_cell(crossing: CrossedFactors, cell: str, kind: str = "") -> dict[str, float]:
    """Return the value in a cell of every column of slopes, and of R's columns of treatment coding (``fontcursive``)."""
    shown = dict(zip(crossing.factors, crossing.pair_of(cell), strict=True))
    n_levels = {factor: len(levels) for factor, levels in zip(crossing.factors, crossing.levels, strict=True)}
    columns = {f"{factor}{level}": 1.0 for factor, level in shown.items()}
    for name, parts in _columns(crossing, kind).items():
        columns[name] = float(
            np.prod([float(shown[factor] == level) - 1.0 / n_levels[factor] for factor, level in parts])
        )
    return columns


def slopes_in_rows(
    crossing: CrossedFactors, rows: pd.DataFrame, kind: str = ""
) -> dict[str, NDArray[np.float64]]:
    """Return the columns of slopes of all rows, each of shape (rows,); within the kind alone, 0 elsewhere."""
    by_cell = {cell: slopes_in_cell(crossing, cell, kind) for cell in crossing.cells}
    confined = rows[kind].to_numpy(dtype=float) if kind else np.ones(len(rows))
    return {
        name: rows[crossing.name]
        .map({cell: slopes[name] for cell, slopes in by_cell.items()})
        .to_numpy(dtype=float)
        * confined
        for name in _columns(crossing, kind)
    }


def slopes_in_words(crossing: CrossedFactors) -> dict[str, str]:
    """Name every column of slopes and of treatment coding in words: ``transposed vs. word``, ``transposed × cursive``."""
    reference = dict(zip(crossing.factors, (levels[0] for levels in crossing.levels), strict=True))
    words = {}
    for kind in ("", "people", "model"):
        for name, parts in _columns(crossing, kind).items():
            label = TIMES.join(level for _, level in parts)
            phrase = f"{label} vs. {reference[parts[0][0]]}" if len(parts) == 1 else label
            words[name] = words[":".join(f"{factor}{level}" for factor, level in parts)] = phrase
    return words


def _columns(crossing: CrossedFactors, kind: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return every column with the factors and levels that it is the product of."""
    prefix = [kind] if kind else []
    mains = [
        ((factor, level),)
        for factor, levels in zip(crossing.factors, crossing.levels, strict=True)
        for level in levels[1:]
    ]
    interactions = [
        ((crossing.factors[0], a), (crossing.factors[1], b))
        for a in crossing.levels[0][1:]
        for b in crossing.levels[1][1:]
    ]
    return {
        plain(*prefix, *(word for part in parts for word in part)): parts for parts in [*mains, *interactions]
    }


def cells_shown(rows: pd.DataFrame, factors: tuple[str, str]) -> pd.Series[str]:
    """Return the cell of two factors that each row shows; None where one of them has no level. Equal texts are kept once."""
    (first_codes, first_levels), (second_codes, second_levels) = (
        pd.factorize(rows[factor]) for factor in factors
    )
    names = [cell_name(str(a), str(b)) for a, b in product(first_levels, second_levels)]
    codes = np.where(
        (first_codes < 0) | (second_codes < 0), len(names), first_codes * len(second_levels) + second_codes
    )
    cells = np.array([*names, None], dtype=object)[codes]
    return pd.Series(cells, index=rows.index, name=crossed_name(*factors), dtype=object)


@dataclass(frozen=True)
class EstimableSlopes:
    """The random slopes that the data of participants or items can estimate."""

    text: str  # as a formula has them while correlations are estimated (``item_type * font``); empty for none
    columns: tuple[str, ...]  # the centred columns that stand for them
    remarks: tuple[str, ...] = ()  # why some are left out


def slopes_of(rows: pd.DataFrame, crossing: CrossedFactors, kind: str = "") -> EstimableSlopes:
    """Return the slopes of both factors and of their interaction that vary within participants, with trials enough."""
    within = [factor for factor in crossing.factors if varies_within(rows, factor)]
    reasons = {factor: too_few_for_a_slope(rows, factor) for factor in within}
    remarks = [reason for reason in reasons.values() if reason]
    sloped = [factor for factor in within if not reasons[factor]]
    is_crossed = len(sloped) == 2 and crossing.is_filled(set(rows[crossing.name]))
    has_interaction = is_crossed and is_enough(rows, ["participant", *crossing.factors])
    if len(sloped) == 2 and not has_interaction:
        problem = (
            f"Participants have {said_few(rows, 'trials')} per cell (median)"
            if is_crossed
            else f"Not every cell of {crossing.name} has trials"
        )
        remarks.append(f"{problem}, so the model has no slope of the interaction by participant.")
    parts = _columns(crossing, kind)
    columns = tuple(
        name for name in slope_columns(crossing, kind, sloped) if has_interaction or len(parts[name]) == 1
    )
    text = " + ".join(columns) if kind else (" * " if has_interaction else " + ").join(sloped)
    return EstimableSlopes(text, columns, tuple(remarks))


TRIALS_FOR_A_SLOPE = 2
TELLING = "trials_that_tell"
"""Column of a model's rows that is 0 where a trial does not count, since its outcome is the common one of a rare event."""


def trials_that_tell(rows: pd.DataFrame, by: Sequence[str]) -> pd.Series[Any]:
    """Count the trials of each group that tell how it differs from others: all, or those of a rare outcome."""
    grouped = rows.groupby(list(by), observed=True)
    return grouped[TELLING].sum() if TELLING in rows else grouped.size()


def is_enough(rows: pd.DataFrame, by: Sequence[str]) -> bool:
    """Whether the median group has the trials that a slope needs."""
    return bool(trials_that_tell(rows, by).median() >= TRIALS_FOR_A_SLOPE)


def said_few(rows: pd.DataFrame, noun: str) -> str:
    """State that units have too few trials: ``fewer than 2 trials``, of rare outcomes ``… of the rarer outcome``."""
    rarer = " of the rarer outcome" if TELLING in rows and (rows[TELLING] == 0).any() else ""
    return f"fewer than {apa.NUMBERS[TRIALS_FOR_A_SLOPE]} {noun}{rarer}"


def varies_within(people: pd.DataFrame, factor: str) -> bool:
    """Whether any participant is in several conditions of a factor, as a slope needs."""
    return bool((people.groupby("participant")[factor].nunique() > 1).any())


def too_few_for_a_slope(people: pd.DataFrame, factor: str) -> str:
    """State that participants have too few trials for a slope of a factor; empty where they have enough."""
    if not is_enough(people, ["participant", factor]):
        amount = said_few(people, "trials")
        return f"Participants have {amount} per condition of {factor} (median), so the model has no slope of it by participant."
    return ""
