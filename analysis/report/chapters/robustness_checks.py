"""The planned comparisons again: without each set of items, and without random effects."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.families import with_adjusted
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.chapters.robustness_shown import MOST_MODELS, fitted_models, heading_of
from analysis.report.chapters.robustness_tables import (
    gee_table,
    left_out_summary,
    left_out_table,
    readers_in_words,
)
from analysis.results import Analysis
from analysis.robustness import drawn_readers, gee_check, without_item_sets
from analysis.robustness.leave_out import item_sets
from stimuli.errors import UserError, reason_of

FOLDS = 4
"""Sets of items where the study has one."""
MOST_REFITTED = 60_000
"""Rows of a model times sets of items above which it is not fitted again without each set."""
MOST_CHECKED = 50_000
"""Analysed trials above which estimating equations take whole readers drawn by a stable hash."""

LEAVING_OUT = (
    "Each planned model was fitted again without each of the study's sets of items, or, where there is one set, without each of "
    f"{FOLDS} parts of its items."
)
EQUATIONS = (
    "As a check without random effects, contrasts were estimated by generalised estimating equations (Liang & Zeger, 1986; "
    "exchangeable correlation), clustered by participants and by items in turn, with standard errors bias-reduced below 50 clusters "
    "(Mancl & DeRouen, 2001)."
)


def without_items(analyses: list[Analysis], material: Material, fits: list[ReportedFit]) -> Iterator[Block]:
    """Fit each planned model again without each set of items; the models go into ``fits``."""
    planned = fitted_models(analyses, planned=True)
    if not planned:
        if fitted_models(analyses):
            yield escape(
                "The study planned no analysis that could be fitted, so none was fitted again without sets of items; "
                "analysis.robustness.leave_item_sets_out does it for any plan."
            )
        return
    for number, analysis in enumerate(planned[:MOST_MODELS], 1):
        model = analysis.model
        assert model is not None
        try:
            sets = item_sets(material.tables, analysis.plan, FOLDS)
        except UserError as error:
            yield escape(f"{heading_of(analysis)}: no set of items was left out ({error.message}).")
            continue
        if len(sets) * model.rows > MOST_REFITTED:
            yield escape(
                f"{heading_of(analysis)}: not fitted again without each of {apa.counted(len(sets), 'set')} of items, which would "
                "take long "
                f"with {apa.count(model.rows)} rows; analysis.robustness.leave_item_sets_out does it."
            )
            continue
        material.told(f"model: {analysis.plan.name} without sets of items")
        left = without_item_sets(material.tables, analysis.plan, FOLDS, analysis)
        fits += [ReportedFit(f"{analysis.plan.name}, without {name}", fit) for name, fit in left.fits.items()]
        summary = left_out_summary(left.table)
        if summary.empty:
            yield escape(
                f"{heading_of(analysis)}: no difference can be estimated with all items, so none without a set of them."
            )
            continue
        name = f"without_items_{number}"
        yield Markup("{}: [[table:{}]]. ").format(heading_of(analysis), name) + escape(
            " ".join([_items_verdict(summary, len(sets)), *left.remarks])
        )
        sizes = {one: len(items) for one, items in sets.items()}
        yield left_out_table(summary, sizes, analysis, name, tuple(left.fits.values()))
    rest = [one.plan.name for one in planned[MOST_MODELS:]]
    if rest:
        yield escape(f"Not fitted again, to stay quick: {apa.listing(rest)}.")


def _items_verdict(summary: pd.DataFrame, sets: int) -> str:
    clear = (summary["low"] * summary["high"] > 0) & (summary["reversed"] > 0)
    hang = summary[(summary["changed"] > 0) | clear]
    known = summary[summary["sets"] > 0]
    if known.empty:
        return "Without these items nothing can be estimated."
    if hang.empty:
        return (
            "No interval comes to leave 0 out or to hold it, and no sign of a difference whose interval leaves 0 out is reversed, "
            f"whichever of the {sets} sets is left out."
        )
    told = [
        f"{one['contrast']}, {readers_in_words(one['groups'])} ({apa.counted(max(one['changed'], one['reversed']), 'set')} of "
        f"{sets})"
        for one in hang.to_dict("records")
    ]
    return f"These conclusions hang on which items are in: {'; '.join(told)}."


def without_random(analyses: list[Analysis], material: Material) -> Iterator[Block]:
    """Hold the contrasts of the mixed models against generalised estimating equations."""
    wanted = fitted_models(analyses)
    if not wanted:
        return
    tables, drawn = drawn_readers(material.tables, MOST_CHECKED)
    for number, analysis in enumerate(wanted[:MOST_MODELS], 1):
        material.told(f"estimating equations: {analysis.plan.name}")
        try:
            checked = gee_check(tables, analysis.plan, analysis)
        except (UserError, ArithmeticError, ValueError) as error:
            yield escape(f"{heading_of(analysis)}: no check without random effects ({reason_of(error)}).")
            continue
        if checked.empty:
            yield escape(
                f"{heading_of(analysis)}: fewer than three participants and three items, so no check without random effects."
            )
            continue
        checked = with_adjusted(checked)
        name = f"without_random_effects_{number}"
        yield Markup("{}: [[table:{}]]. ").format(heading_of(analysis), name) + escape(
            _random_verdict(checked)
        )
        yield gee_table(checked, analysis, name)
    rest = [one.plan.name for one in wanted[MOST_MODELS:]]
    told = [drawn] if drawn else []
    told += [f"Not checked, to stay quick: {apa.listing(rest)}."] if rest else []
    if told:
        yield escape(" ".join(told))


def _random_verdict(checked: pd.DataFrame) -> str:
    compared = checked[checked["same_side"].notna()]
    if compared.empty:
        return "There is no difference of the mixed model to compare with."
    by = compared.groupby(["contrast", "groups"], sort=False)["same_side"].apply(
        lambda own: own.astype(bool).sum()
    )
    clusters = compared["clusters"].nunique()
    neither = by.index[by == 0].to_frame(index=False).to_dict("records")
    both = int((by == clusters).sum())
    ways = "both sets of clusters" if clusters > 1 else "the one possible set of clusters"
    told = f"{apa.count(both)} of {apa.counted(len(by), 'conclusion')} of the mixed model about 0 are the same with {ways}"
    if neither:
        names = [f"{one['contrast']}, {readers_in_words(str(one['groups']))}" for one in neither]
        return f"{told}; with none: {'; '.join(names)}."
    return f"{told}." if both == len(by) else f"{told}; the others with one of them."
