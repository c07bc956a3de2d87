"""Tables of costs side by side: log ratios, the points of cost against accuracy, normalised profiles."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis import apa
from analysis.costs.ratios import (
    MEASURES_OF_MODELS,
    MEASURES_OF_PEOPLE,
    TITLES,
    UNITS,
    CostProfile,
    UnitCosts,
)
from analysis.intervals import OF_SHARES
from analysis.preparing import TIMED
from analysis.readers import PARTICIPANT_KINDS, group_order, marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import JUDGED, filled, where

OF_EACH = (
    "of each measure the trials with a number in its column: people's times within the bounds, models' latencies of timed trials, "
    "all else where excluded_reason is empty; costs of single words are of regions.csv.gz"
)
OF_WORDS = ("regions.csv.gz",)


def ratio_table(name: str, costs: UnitCosts, ratios: pd.DataFrame) -> ApaTable:
    """Lay out means in each measure's own unit beside log ratios against the baseline."""
    factor, rows = costs.factor, costs.rows
    known = {
        (row["measure"], row["reader_group"], row[factor]): row
        for row in (ratios.to_dict("records") if len(ratios) else [])
    }
    laid: list[tuple[str, ...]] = []
    for (measure, group), own in _ordered(rows):
        kind = str(own["reader_kind"].iloc[0])
        laid.append(Head([f"{marked(group, kind)}: {_with_unit(measure)}"]))
        for level in costs.levels:
            cell = own[own[factor] == level]
            if cell.empty:
                continue
            row = known.get((measure, group, level))
            places = 4 if measure == "cost_usd" else 0 if UNITS[measure] == "ms" else 2
            ratio: tuple[str, ...] = (apa.MISSING,) * 3
            if row is not None:
                ratio = (
                    apa.number(row["log_ratio"]),
                    apa.interval(row["low"], row["high"]),
                    apa.number(row["percent"], 1),
                )
            units = int(cell["reader" if kind in PARTICIPANT_KINDS else "item"].nunique())
            laid.append((level, apa.count(units), apa.number(_mean(cell, kind), places), *ratio))
    note = (
        "n = participants, or items for a model. M is geometric for people (over participants of their own means), "
        "arithmetic over items "
        f"for a model. Log ratio = natural logarithm of a condition over {costs.levels[0]}, each reader against itself, with "
        "95% bootstrap intervals; percent is 100 (exp ratio − 1). Exploratory; intervals are not corrected for their number."
    )
    columns = (factor, "n", "M", "Log ratio", "95% CI", "Percent")
    in_trials = {*MEASURES_OF_PEOPLE[:2], *MEASURES_OF_MODELS} - {
        "total_tokens",
        "surprisal_changed",
        "surprisal_after",
    }
    of_words = not set(rows["measure"]) <= {*in_trials, "total_tokens"}
    names = sorted(in_trials & set(rows["measure"]))
    origin = Origin(
        columns=(*names, factor, "reader_group", "reader", "item_id"),
        where=(where("excluded_reason", "", TIMED), *filled("item_id", factor)),
        rows=OF_EACH,
        computed="means by participant and item (by item, for a model) in each level, as log ratios against the baseline; 2,000 "
        "resamples of participants and items",
        seed=("log ratio", "measure", "reader"),
        beside=OF_WORDS if of_words else (),
    )
    return ApaTable(name, f"Costs by {factor} and reader", columns, tuple(laid), note, origin)


def _ordered(rows: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    order = group_order(rows)
    cells = {(str(m), str(g)): own for (m, g), own in rows.groupby(["measure", "reader_group"], sort=False)}
    names = list(TITLES)
    return sorted(cells.items(), key=lambda one: (order.index(one[0][1]), names.index(one[0][0])))


def _mean(cell: pd.DataFrame, kind: str) -> float:
    if kind in PARTICIPANT_KINDS:
        return float(np.exp(cell.groupby("reader")["value"].mean().mean()))
    return float(cell.groupby("item")["cost"].mean().mean())


def _with_unit(measure: str) -> str:
    """Return a measure's title with its unit, where the title does not hold it."""
    title, unit = TITLES[measure].lower(), UNITS[measure]
    return title if unit in title.split() else f"{title} ({unit})"


def accuracy_table(name: str, points: pd.DataFrame, factor: str, base: str) -> ApaTable:
    """Lay out the points of the figure of cost against accuracy."""
    rows: list[tuple[str, ...]] = []
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        kind = str(own["reader_kind"].iloc[0])
        rows.append(Head([f"{marked(str(group), kind)}: {TITLES[str(measure)].lower()}"]))
        for row in own.to_dict("records"):
            right = [100 * row[column] for column in ("correct", "correct_low", "correct_high")]
            rows.append(
                (
                    str(row[factor]),
                    apa.number(row["log_ratio"]),
                    apa.interval(row["cost_low"], row["cost_high"]),
                    apa.number(right[0], 1),
                    apa.interval(right[1], right[2], 1),
                )
            )
    note = (
        f"Log ratio of cost against the reader's own {base} with 95% bootstrap intervals. Accuracy: failures count as wrong; "
        f"within-participant intervals (Cousineau–Morey), for a model {OF_SHARES}."
    )
    columns = (factor, "Log ratio", "95% CI", "% correct", "95% CI")
    origin = Origin(
        columns=("correct", "response_status", factor, "reader_group", "item_id"),
        where=(*JUDGED, *filled(factor)),
        rows="costs: those of the table of costs",
        computed="shares of right answers beside the costs of the table of costs",
    )
    return ApaTable(
        name, f"Cost and accuracy by {factor} and reader", columns, tuple(rows), note, origin, drawn=True
    )


def profile_table(
    name: str,
    own: pd.DataFrame,
    factor: str,
    base: str,
    reference: CostProfile | None,
    kinds: dict[str, str],
) -> ApaTable:
    """Lay out normalised profiles, each beside the reference reader's."""
    at_reference = [
        reference is not None and (group, measure) == (reference.group, reference.measure)
        for group, measure in zip(own["reader_group"], own["measure"], strict=True)
    ]
    sure_of_people = not own.loc[at_reference, "unsure"].any()
    rows: list[tuple[str, ...]] = []
    for (group, measure), cells in own.groupby(["reader_group", "measure"], sort=False):
        mean = float(cells["mean_log_ratio"].iloc[0])
        head = f"{marked(str(group), kinds[str(group)])}: {TITLES[str(measure)].lower()}; mean log ratio {apa.number(mean)}"
        doubt = " (interval includes 0)" if cells["mean_low"].notna().all() else " (no interval)"
        rows.append(Head([head + (doubt if cells["unsure"].any() else "")]))
        for row in cells.to_dict("records"):
            ends = apa.interval(row["difference_low"], row["difference_high"])
            difference = (apa.number(row["difference"]), ends) if sure_of_people else (apa.MISSING,) * 2
            if row["unsure"]:
                rows.append((str(row[factor]), *(apa.MISSING,) * 4))
                continue
            rows.append(
                (
                    str(row[factor]),
                    apa.number(row["scaled"]),
                    apa.interval(row["low"], row["high"]),
                    *difference,
                )
            )
    note = (
        f"Log ratios against {base} divided by their mean over the conditions: 1 is the reader's average cost. 95% "
        f"bootstrap intervals."
    )
    if reference is not None:
        note += f" Difference: minus the profile of {named(reference.group, kinds)} ({TITLES[reference.measure].lower()})."
    if own["unsure"].any():
        note += (
            " A profile whose mean has an interval that includes 0, or none, has no shape: its numbers say nothing and are not "
            "shown."
        )
    columns = (factor, "Scaled", "95% CI", "Difference", "95% CI")
    origin = Origin(
        columns=(factor, "reader_group", "item_id"),
        where=(where("excluded_reason", "", TIMED), *filled("item_id", factor)),
        rows=OF_EACH,
        computed="log ratios of the table of costs, each reader's divided by their mean",
    )
    return ApaTable(
        name, f"Normalised cost profiles by {factor}", columns, tuple(rows), note, origin, drawn=True
    )
