"""The tables of ratios: relative gain, retention, costs against the intact item."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.preparing import TIMED
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import JUDGED, MACHINES, filled, where


def _answers(factor: str, drawn: str) -> Origin:
    """Say which answers gain and retention are made of, and whence their bootstrap is seeded."""
    return Origin(
        columns=("correct", "response_status", factor, "reader_group", "item_id"),
        where=(*JUDGED, *filled(factor)),
        computed="means by item and level with failures as 0; items with all levels; 2,000 resamples of items",
        seed=(drawn, "the factor", "reader"),
    )


COSTS = {
    "prompt_tokens": "Prompt tokens",
    "completion_tokens": "Completion tokens",
    "total_tokens": "Prompt and completion tokens",
    "reasoning_tokens": "Reasoning tokens",
    "latency_ms": "Latency (ms, timed alone)",
    "ttft_ms": "Time to the first token (ms, timed alone)",
    "surprisal": "Surprisal (bits)",
    "cost_usd": "Cost (US dollars)",
}


def gain_table(
    name: str, gains: pd.DataFrame, factor: str, intact: str, floor: str, kinds: Mapping[str, str]
) -> ApaTable:
    """Lay out relative performance gains."""
    rows: list[tuple[str, ...]] = []
    for group, own in gains.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one[factor]),
                    apa.count(one["items"]),
                    apa.number(one["accuracy"], 1),
                    apa.number(one["rpg"], 1),
                    apa.interval(one["rpg_low"], one["rpg_high"], 1),
                    str(one["printed"]) if one["rpg"] == one["rpg"] else apa.MISSING,
                    apa.number(one["gap"], 1),
                    apa.interval(one["gap_low"], one["gap_high"], 1),
                    "flagged" if one["flagged"] else "",
                )
            )
    columns = (
        factor,
        "Items",
        "% correct",
        "RPG",
        "95% CI of RPG",
        "RPG as printed",
        "Denominator",
        "95% CI of it",
        "Flag",
    )
    note = (
        f"RPG = (scrambled − {floor})/({intact} − {floor}) in percent: 100 where scrambling costs nothing, 0 where scrambled "
        f"text helps no "
        f"more than substituted text. As printed: the paper writes values below 0 as “< 0”. Denominator = {intact} − {floor} "
        f"in percentage "
        "points; flagged where its interval includes 0 or is missing, so that the ratio says nothing. Bootstraps over items, also of "
        "participants' answers: they speak of other items for the same readers."
    )
    return ApaTable(
        name,
        f"Relative performance gain by {factor} and reader",
        columns,
        tuple(rows),
        note,
        _answers(factor, "rpg"),
    )


def retention_table(
    name: str, kept: pd.DataFrame, factor: str, intact: str, kinds: Mapping[str, str]
) -> ApaTable:
    """Lay out absolute and relative retention."""
    rows: list[tuple[str, ...]] = []
    for group, own in kept.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    "all scrambled levels" if one["levels"] == "all" else str(one["levels"]),
                    apa.number(one["intact"], 1),
                    apa.number(one["absolute"], 1),
                    apa.number(one["relative"], 1),
                    apa.interval(one["relative_low"], one["relative_high"], 1),
                    "flagged" if one["flagged"] else "",
                )
            )
    columns = (
        factor,
        f"{intact} %",
        "Absolute %",
        "Relative %",
        "95% CI of relative",
        "Flag",
    )
    note = (
        f"Absolute = mean accuracy over the levels named, each with the same weight; relative = that in percent of the "
        f"accuracy at {intact}; "
        "flagged where the interval of the intact accuracy includes 0 or is missing. Bootstraps over items."
    )
    return ApaTable(
        name, f"Retention by {factor} and reader", columns, tuple(rows), note, _answers(factor, "retention")
    )


def cost_table(name: str, ratios: pd.DataFrame, factor: str, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out the three ratios of each cost."""
    rows: list[tuple[str, ...]] = []
    for measure, by_measure in ratios.groupby("measure", sort=False):
        for group, own in by_measure.groupby(GROUP, sort=False):
            rows.append(Head([f"{COSTS[str(measure)]}: {marked(str(group), kinds[str(group)])}"]))
            for one in own.to_dict("records"):
                rows.append(
                    (
                        str(one[factor]),
                        apa.count(one["items"]),
                        apa.number(one["intact_mean"], 4 if measure == "cost_usd" else 1),
                        apa.number(one["mean"], 4 if measure == "cost_usd" else 1),
                        apa.number(one["published"], 3),
                        apa.number(one["ratio"], 3),
                        apa.interval(one["ratio_low"], one["ratio_high"], 3),
                        apa.number(one["of_sums"], 3),
                        apa.count(one["without"]),
                    )
                )
    columns = (
        *(factor, "Items", "Intact mean", "Mean", "Mean of ratios (published)", "Geometric ratio"),
        *("95% CI of geometric", "Ratio of sums", "Without"),
    )
    note = (
        "Against the same item intact; 1 is no change. Published: TypoBench's mean of ratios, items with an intact value of 0 "
        "counted in its "
        "denominator. Without = items that have no ratio of logarithms because a value is 0. Bootstraps over items."
    )
    origin = Origin(
        columns=(
            *(one for one in COSTS if one != "total_tokens"),
            "timed",
            "reader_group",
            "item_id",
            factor,
        ),
        where=(MACHINES, where("excluded_reason", "", TIMED), *filled("item_id", factor)),
        rows="of each cost the trials that have a number in its column; times: timed trials, other costs: excluded_reason empty",
        computed="means by item and level against the same item intact; 2,000 resamples of items",
        seed=("cost", "the column", "reader", "level"),
    )
    return ApaTable(name, f"Cost ratios by {factor} and model", columns, tuple(rows), note, origin)
