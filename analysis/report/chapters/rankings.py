"""Chapter on rankings: robustness by size within families, recovery beside the task, error patterns of readers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.families import with_adjusted
from analysis.figures.ranks import recovery_figure, size_figure, told_size
from analysis.measures.accuracy import asked
from analysis.rankings import recovery_order, robustness, robustness_by_size, robustness_table, sizes
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.fidelity_effects import in_italics
from analysis.report.chapters.rankings_errors import METHODS as METHODS_OF_ERRORS
from analysis.report.chapters.rankings_errors import errors_part, origin_of
from analysis.report.parted import Part, of_part, parts_by
from stimuli.errors import UserError

MANY_MODELS = 8
"""Fewer models say nothing of models in general."""
OF_ROBUSTNESS = "means by item and level of each model; items with all levels; 2,000 resamples of items"
SEED = ("robustness", "the factor")
OF_ORDER = "means by item of accuracy and of recovered text (score) of each model; 2,000 resamples of items"
MEASURE_WORDS = {"lost": "points lost", "retention": "retention (%)"}


def write(material: Material) -> Chapter | None:
    """Write the chapter; None for a study without conditions, and one with a single reader."""
    trials = material.tables.trials
    used = trials[
        trials["excluded_reason"].isna() & trials["reader_kind"].isin(("human", "simulated", "model"))
    ]
    if not material.tables.factors or used["reader"].nunique() < 2:
        return None
    factor = _factor(material)
    groups = [str(one) for one in used["reader_group"].unique()]
    models = [group for group in groups if material.kinds[group] == "model"]
    missing: list[str] = []
    blocks: list[Block] = []
    methods: list[Markup] = []
    sources: list[str] = []
    parts = parts_by(factor, asked(used), material.tables)
    if models:
        blocks += _by_parts(_sizes_part, material, parts, missing)
        blocks += _recovery_part(material, factor, missing)
        methods.append(METHODS)
        sources.append("kendall1938")
    errors = _by_parts(errors_part, material, parts, missing)
    if errors:
        methods.append(METHODS_OF_ERRORS)
        sources.append("geirhos2020")
    blocks += errors
    if models and len(models) < MANY_MODELS and blocks:
        few = f"These are {apa.counted(len(models), 'model')}; fewer than eight say nothing of models in general."
        blocks.insert(
            0,
            Markup(
                escape(
                    few if len(models) > 1 else "There is one model: nothing is said of models in general."
                )
            ),
        )
    if missing:
        blocks.append(Markup(escape("What could not be said. " + " ".join(dict.fromkeys(missing)))))
    if not blocks:
        return None
    return Chapter(
        "rankings",
        "Rankings and error patterns",
        tuple(blocks),
        marks=marks_of(groups, material.kinds),
        methods=tuple(methods),
        sources=tuple(sources),
    )


METHODS = Markup(
    "Points lost are the accuracy on intact text minus the mean over the scrambled conditions (none with all letters substituted, "
    "or no text); retention is that mean in percent of the intact accuracy. Within a family of three or more sizes both were "
    "regressed on the decadic logarithm of the number of parameters, with one interval from a bootstrap over items and one from "
    "Student's <i>t</i> over models; Kendall's tau (1938) has an exact two-sided <i>p</i>. Orders of models in recovery and task "
    "were compared on these conditions alone."
)


def _factor(material: Material) -> str:
    planned = [one.plan.factor for one in material.analyses if one.plan.planned]
    known = list(material.tables.factors)
    return next((factor for factor in planned if factor in known), known[0])


def _by_parts(
    write_one: Callable[[Material, str, list[str]], list[Block]],
    material: Material,
    parts: Sequence[Part],
    missing: list[str],
) -> list[Block]:
    """Write the same of each part's trials; what cannot be said names its part."""
    found: list[Block] = []
    for part in parts:
        lacking: list[str] = []
        own = replace(material, tables=part.of(material.tables))
        found += of_part(write_one(own, part.factor, lacking), part)
        missing += [one.replace(":", f"{part.told}:", 1) for one in lacking]
    return found


def _sizes_part(material: Material, factor: str, missing: list[str]) -> list[Block]:
    tables = material.tables
    material.told(f"robustness by {factor}")
    try:
        known = sizes(tables.dictionary["readers"])
        found = robustness(tables, factor)
    except UserError as error:
        missing.append(f"Robustness: {error.message}.")
        return []
    table = robustness_table(found, known)
    slopes = robustness_by_size(found, known, str(tables.dictionary["study"]))
    laid = _robustness_laid(table, factor)
    blocks: list[Block] = [Markup("<h3>Robustness, and whether it follows size</h3>")]
    text = f"What scrambling costs each model stands in [[table:{laid.name}]]."
    unknown = [str(one) for one in table.loc[table["family"].isna() | table["parameters"].isna(), "model"]]
    if slopes.empty:
        reason = "no family holds three models of known and different size"
        if unknown:
            reason += f" (family or size not known of: {', '.join(unknown)})"
        missing.append(
            f"Whether robustness follows the number of parameters: {reason}. The study can say family and parameters of a model."
        )
        return [*blocks, Markup(escape(text)), laid]
    slopes = with_adjusted(slopes)
    drawing = size_figure("robustness_by_size", table[table["parameters"].notna()], slopes)
    told = " ".join(_slope_told(row) for row in slopes.to_dict("records"))
    text += f" Within families ([[table:size_slopes]], [[figure:{drawing.name}]]): {told}"
    if unknown:
        text += f" Not in it, since family or size is not known: {', '.join(unknown)}."
    return [*blocks, in_italics(text), laid, _slopes_laid(slopes, factor), drawing]


def _robustness_laid(table: pd.DataFrame, factor: str) -> ApaTable:
    rows = []
    for row in table.sort_values("lost").to_dict("records"):
        size = (
            told_size(row["parameters"]) + ("*" if row["counted"] else "")
            if np.isfinite(row["parameters"])
            else apa.MISSING
        )
        cells = [str(row["model"]), str(row["family"] or apa.MISSING), size]
        for name in ("intact", "lost", "retention"):
            cells += [apa.number(row[name], 1), apa.interval(row[f"{name}_low"], row[f"{name}_high"], 1)]
        rows.append(tuple(cells))
    note = (
        f"From the most to the least robust. Lost: percentage points, intact minus the mean of the scrambled conditions of {factor}; "
        "retention: that mean as % of intact. Failures count as wrong. 95% bootstrap intervals over items. * = counted in the run."
    )
    columns = ("Model", "Family", "Parameters", "Intact %", "95% CI", "Lost", "95% CI", "Retention", "95% CI")
    return ApaTable(
        "robustness",
        f"Robustness of each model to {factor}",
        columns,
        tuple(rows),
        note,
        origin_of(factor, OF_ROBUSTNESS, *SEED),
    )


def _slopes_laid(slopes: pd.DataFrame, factor: str) -> ApaTable:
    rows = tuple(
        (
            str(row["family"]),
            MEASURE_WORDS[row["measure"]],
            apa.count(row["models"]),
            apa.number(row["slope"], 1),
            apa.interval(row["items_low"], row["items_high"], 1),
            apa.interval(row["low"], row["high"], 1),
            apa.correlation(row["tau"]),
            apa.p_value(row["p"]),
            apa.p_value(row["p_adjusted"]),
            apa.p_value(row["smallest_p"]),
        )
        for row in slopes.to_dict("records")
    )
    note = (
        "Slope: change for ten times as many parameters, least squares. Intervals: 95%, bootstrap over items, and Student's t "
        "over the models of the family. τ = Kendall's tau-b with an exact two-sided p; p adjusted: Benjamini–Hochberg over the "
        "rows; the smallest p is what so many models allow."
    )
    columns = (
        "Family",
        "Measure",
        "Models",
        "Slope",
        "95% CI, items",
        "95% CI, models",
        "τ",
        "p",
        "p adjusted",
        "Smallest p",
    )
    title = "Slopes of robustness on the number of parameters within families of models"
    return ApaTable(
        "size_slopes",
        title,
        columns,
        rows,
        note,
        origin_of(factor, f"{OF_ROBUSTNESS}; slopes on the number of parameters", *SEED),
    )


def _slope_told(row: Mapping[Hashable, Any]) -> str:
    values = pd.Series(row)
    what = "points lost" if row["measure"] == "lost" else "retention in %"
    limit = "" if values["smallest_p"] < 0.05 else " (so few models cannot reach .05)"
    return (
        f"{row['family']} ({apa.counted(int(values['models']), 'model')}), {what}: {apa.number(values['slope'], 1)} for ten times as "
        f"many parameters, 95% CI over items {apa.interval(values['items_low'], values['items_high'], 1)}, over models "
        f"{apa.interval(values['low'], values['high'], 1)}; τ = {apa.correlation(values['tau'])}, "
        f"{apa.p_phrase(values['p_adjusted'])} adjusted{limit}."
    )


def _recovery_part(material: Material, factor: str, missing: list[str]) -> list[Block]:
    tables = material.tables
    types = set(tables.trials["trial_type"].dropna())
    if "recover" not in types:
        return []
    material.told(f"recovery and task by {factor}")
    try:
        found = recovery_order(tables, factor)
    except UserError as error:
        missing.append(f"Whether recovery ranks models as the task does: {error.message}.")
        return []
    one = found.correlation
    rows = tuple(
        (
            str(row["model"]),
            apa.number(row["recovery"], 1),
            apa.interval(row["recovery_low"], row["recovery_high"], 1),
            apa.number(row["recovery_rank"], 1).removesuffix(".0"),
            apa.number(row["task"], 1),
            apa.interval(row["task_low"], row["task_high"], 1),
            apa.number(row["task_rank"], 1).removesuffix(".0"),
        )
        for row in found.table.sort_values("recovery_rank").to_dict("records")
    )
    note = (
        f"On the scrambled conditions of {factor}; {apa.counted(found.recovery_items, 'item')} to restore, "
        f"{apa.counted(found.task_items, 'item')} of the task. Rank 1 is the best. 95% bootstrap intervals over items."
    )
    columns = ("Model", "Recovery %", "95% CI", "Rank", "Task %", "95% CI", "Rank")
    laid = ApaTable(
        "recovery_order",
        "Recovery of changed text and accuracy of the task by model",
        columns,
        rows,
        note,
        origin_of(factor, OF_ORDER, "recovery order", "the factor"),
    )
    drawing = recovery_figure("recovery_and_task", found.table)
    limit = "" if one.smallest_p < 0.05 else ", which so few models could not bring below .05"
    text = (
        f"Over {apa.counted(one.readers, 'model')} ([[table:{laid.name}]], [[figure:{drawing.name}]]) the rank "
        f"correlation of recovery and task is τ = {apa.correlation(one.tau)}, 95% CI over items "
        f"{apa.correlations(found.tau_low, found.tau_high)}, {apa.p_phrase(one.p)}{limit} "
        f"(ρ = {apa.correlation(one.rho)}, 95% CI {apa.correlations(found.rho_low, found.rho_high)})."
    )
    heading = Markup("<h3>Does recovery rank models as the task does?</h3>")
    return [heading, in_italics(text), laid, drawing]
