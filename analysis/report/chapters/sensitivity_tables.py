"""The tables of signal detection: counts and rates with d′ and criterion, the model's cells, and their differences."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analysis import apa
from analysis.measures.signal_detection import GROUP, ProbitModel
from analysis.readers import headed, marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import USED, filled, where

MEASURED = {"d_prime": "Sensitivity d′", "criterion": "Criterion c"}


def counts_table(name: str, cells: pd.DataFrame, factor: str | None, signal: str) -> ApaTable:
    """Lay out hits, false alarms, d′ and criterion of each reader in each level."""
    rows: list[tuple[str, ...]] = []
    for group, own in cells.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), str(own["kind"].iloc[0]))]))
        for cell in own.to_dict("records"):
            rows.append(
                (
                    str(cell["level"] or "all trials"),
                    apa.count(cell["readers"]) + ("*" if cell["pooled"] else ""),
                    f"{apa.percent(cell['hit_rate'])} ({cell['hits']:,}/{cell['signals']:,})",
                    f"{apa.percent(cell['false_alarm_rate'])} ({cell['false_alarms']:,}/{cell['others']:,})",
                    *_with_ends(cell, "d_prime"),
                    *_with_ends(cell, "criterion"),
                    apa.count(cell["missing"]),
                )
            )
    columns = (
        *(factor or "", "n", "Hits", "False alarms"),
        *("d′", "95% CI of d′", "c", "95% CI of c", "Missing"),
    )
    note = (
        f"{signal} counts as the signal: a hit is the answer {signal} to a trial of that class, a false alarm the same answer to "
        "the other. n = readers with trials of both classes. Rates of participants are means over them; d′ and c are theirs, with the "
        "log-linear correction (0.5 added to both counts, 1 to both numbers of trials), which draws d′ toward 0 where a "
        "reader has few trials in a cell. c above 0 is a bias against the signal. Missing answers are in neither rate. Intervals: "
        "Student's over participants; for a model from its counts, as if its trials were independent."
    )
    if cells["pooled"].any():
        note += (
            " *: most participants saw one of the classes only, so all their counts are taken together and intervals are "
            "bootstraps over participants."
        )
    by = f" by {factor}" if factor else ""
    title = f"Hits, false alarms, sensitivity and bias{by} and reader"
    origin = Origin(
        columns=(
            "trial_type",
            "answer",
            "response",
            "response_status",
            "reader_group",
            "reader",
            *([factor] if factor else []),
        ),
        where=(
            USED,
            where("trial_type", "choose"),
            *filled("answer", "response_status", *([factor] if factor else [])),
        ),
        rows="of these the sets of items whose keys name two classes",
        computed="hits and false alarms counted by reader; intervals of pooled counts from 2,000 resamples of participants",
        seed=("signal detection", "reader", "level"),
    )
    return ApaTable(name, title, columns, tuple(rows), note, origin)


def _with_ends(cell: Mapping[Hashable, Any], name: str) -> tuple[str, str]:
    value, low, high = (float(cell[one]) for one in (name, f"{name}_low", f"{name}_high"))
    return apa.number(value), apa.interval(low, high)


def cells_table(
    name: str, estimates: pd.DataFrame, model: ProbitModel, factor: str, kinds: Mapping[str, str]
) -> ApaTable:
    """Lay out d′ and criterion of each cell as the mixed model has them."""
    rows: list[tuple[str, ...]] = []
    for group in model.groups:
        own = estimates[estimates[GROUP] == group] if GROUP in estimates else estimates
        rows.append(Head([marked(group, kinds.get(group, "model"))]))
        for level in model.levels:
            told: list[str] = []
            for measure in MEASURED:
                one = own[(own[factor] == level) & (own["measure"] == measure)].iloc[0]
                told += [
                    apa.number(one["estimate"]),
                    apa.number(one["se"]),
                    apa.interval(one["ci_low"], one["ci_high"]),
                ]
            rows.append((level, *told))
    columns = (factor, "d′", "SE of d′", "95% CI of d′", "c", "SE of c", "95% CI of c")
    note = (
        f"Probit mixed model {model.fit.formula}, {model.fit.nobs:,} answers. Values hold for a reader and an item at the centre of "
        "their distributions; means over readers and items lie nearer to 0."
    )
    title = f"Sensitivity and bias by {factor}, from the mixed model"
    return ApaTable(name, title, columns, tuple(rows), note, Origin(fits=(model.fit,), computed=OF_PROBIT))


OF_PROBIT = "weights of the fixed effects: d′ is the effect of the class, c minus the mean of both classes"


def differences_table(name: str, differences: pd.DataFrame, model: ProbitModel, factor: str) -> ApaTable:
    """Lay out differences of d′ and criterion within readers and between them."""
    rows: list[tuple[str, ...]] = []
    for measure, title in MEASURED.items():
        rows.append(Head([title]))
        for one in differences[differences["measure"] == measure].to_dict("records"):
            who = " vs. ".join(headed(group or model.groups[0]) for group in one["groups"])
            rows.append(
                (
                    f"{one['first']} − {one['second']}",
                    who,
                    *(apa.number(one[value]) for value in ("estimate", "se", "statistic")),
                    apa.p_value(one["p_adjusted"]),
                    apa.interval(one["ci_low"], one["ci_high"]),
                )
            )
    columns = ("Difference", "Readers", "b", "SE", "z", "p adjusted", "95% CI")
    note = (
        "Of two readers: the difference of the first minus that of the second. p adjusted by Benjamini and Hochberg's method "
        "over the rows of this table, with the intervals that agree with it (Benjamini & Yekutieli, 2005); all tests two-sided."
    )
    title = f"Differences of sensitivity and bias between levels of {factor}"
    return ApaTable(name, title, columns, tuple(rows), note, Origin(fits=(model.fit,), computed=OF_PROBIT))
