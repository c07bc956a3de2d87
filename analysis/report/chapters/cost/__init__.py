"""The chapter on cost: people's times on two scales and word by word, models' tokens and bits, and both side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs.ratios import (
    MEASURES_OF_MODELS,
    MEASURES_OF_PEOPLE,
    TITLES,
    UNITS,
    CostProfile,
    UnitCosts,
    cost_and_accuracy,
    cost_profiles,
    fewer_participants,
    log_ratios,
    profiles,
    shown_profiles,
    unit_costs,
)
from analysis.costs.words import WordTable, word_table
from analysis.descriptives import describe
from analysis.figures.cost import cost_accuracy_figures, cost_profile_figures
from analysis.intervals import OF_SHARES
from analysis.names import plain
from analysis.plan import MEASURES
from analysis.preparing.exclusions import TIMED
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, marked, named
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material, marks_of
from analysis.report.chapters.cost import times as cost_times
from analysis.report.chapters.cost import words as cost_words
from analysis.report.chapters.cost.times import LAYOUT, Part, chosen_words, sentence, with_ends
from analysis.report.many_levels import by_level
from analysis.report.parted import Part as Shown
from analysis.report.parted import of_part, parts_by
from analysis.results import Analysis, tested_of
from analysis.tables import Tables
from stimuli.errors import UserError

OF_A_MODEL = ("reasoning_tokens", "completion_tokens", "prompt_tokens", "latency_ms", "surprisal")
"""What is named where no model has it."""


def write(material: Material) -> Chapter | None:
    """Write what reading cost people and models; None where nobody has a time, tokens or surprisal in two conditions.

    Parameters
    ----------
    material : Material
    """
    tables, left = fewer_participants(material.tables)
    whole = Part()
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    for factor, levels in material.tables.factors.items():
        if len(levels) > 1:
            shown = parts_by(factor, used, tables)
            whole.add(_of_factor(material, tables, factor, shown, left))
    for cells in material.tables.crossed:
        if cost_times.are_timed_by(material, cells):
            whole.add(cost_times.on_two_scales(material, tables, cells, left))
    if not whole.blocks:
        return None
    if left:
        whole.methods.append(LAYOUT.sentences("methods_of_sampling", left=left))
    return Chapter(
        "cost",
        "Cost",
        tuple(whole.blocks),
        marks=marks_of(whole.groups, material.kinds),
        methods=tuple(whole.methods),
        fits=tuple(whole.fits),
        sources=tuple(whole.sources),
    )


def _of_factor(
    material: Material, tables: Tables, factor: str, shown: Sequence[Shown], left: tuple[str, ...]
) -> Part:
    part = Part()
    if cost_times.has_times(tables):
        for one in shown:
            part.add(_named(cost_times.distributions(one.of(material.tables), factor), one))
        part.add(cost_times.on_two_scales(material, tables, factor, left))
    for one in shown:
        material.told(f"cost: each item's cost by {factor}{one.told}")
        analyses = () if one.told else material.analyses
        own = replace(material, tables=one.of(material.tables), analyses=analyses)
        part.add(_named(_side_by_side(own, one.of(tables), factor, left), one))
    return part


def _named(part: Part, one: Shown) -> Part:
    """Name what was written of a part of the trials by it."""
    fits = [replace(fit, title=f"{fit.title}{one.told}") for fit in part.fits]
    return replace(part, blocks=of_part(part.blocks, one), fits=fits)


def _side_by_side(material: Material, tables: Tables, factor: str, left: tuple[str, ...]) -> Part:
    part = Part()
    words, why = _words(tables, factor)
    costs = unit_costs(tables, factor, words, of_words=words is not None)
    if words is not None:
        part.add(_word_by_word(material, tables, factor, words, left))
    elif why and not costs.rows.empty:
        part.say(why)
    if not costs.rows.empty:
        part.add(side_by_side(material, costs, left))
    return part


def _words(tables: Tables, factor: str) -> tuple[WordTable | None, str]:
    """Return the words of a study, or why single words are not compared by this factor."""
    try:
        words = word_table(tables, factor)
    except UserError as error:
        return None, f"Single words are not compared by {factor}: {error.message}."
    if cost_words.base_changes_words(words) or not cost_words.has_targets(words):
        return None, (
            f"Single words are not compared by {factor}: texts in {words.levels[0]} have changed words too, so that it is no "
            "baseline for them."
        )
    return words, ""


def _word_by_word(
    material: Material, tables: Tables, factor: str, words: WordTable, left: tuple[str, ...]
) -> Part:
    part = Part()
    kinds = tables.trials["reader_kind"]
    if kinds.isin(PARTICIPANT_KINDS).any():
        part.add(cost_words.spilling(material, tables, factor, words, left))
    part.add(cost_words.profile(material, tables, factor, words, left))
    if kinds.isin(PARTICIPANT_KINDS).any() and (~kinds.isin(PARTICIPANT_KINDS)).any():
        part.add(cost_words.milliseconds_a_bit(material, tables, factor, words))
    return part


def side_by_side(material: Material, costs: UnitCosts, thinned: tuple[str, ...]) -> Part:
    """Write what each condition costs each reader, as log ratios against its own baseline, beside accuracy, and as a shape."""
    part, tables = Part(), material.tables
    factor, base = costs.factor, costs.levels[0]
    recorded = set(costs.rows.loc[costs.rows["reader_kind"] == "model", "measure"])
    costs, free = _without_free(costs)
    if costs.rows.empty:
        return part
    found = cost_profiles(costs, study=str(tables.dictionary["study"]))
    found = [_with_tested(one, material.analyses) for one in found]
    part.groups = group_order(costs.rows)
    kinds = kinds_of(costs.rows)
    name = plain("cost_ratios", factor)
    ratios = log_ratios(found, factor) if found else pd.DataFrame()
    laid = _ratio_table(name, costs, ratios, kinds)
    part.blocks += LAYOUT.blocks("log_ratios", table=laid, factor=factor, base=base)
    shown = shown_profiles(found)
    part.say(*_ratio_sentences(shown, base, kinds))
    if free:
        part.say(f"Zero in every condition: {chosen_words(free)}.")
    part.say(_lacking(tables, costs, recorded, found), *(sentence(one) for one in thinned))
    part.blocks.append(laid)
    part.add(_against_accuracy(tables, shown, factor, costs.levels))
    part.add(_shapes(found, shown, factor, base, kinds))
    part.methods = [LAYOUT.sentences("methods_of_log_ratios")]
    part.sources.append("owen2007")
    return part


def _with_tested(one: CostProfile, analyses: Sequence[Analysis]) -> CostProfile:
    """Give the levels that the Results compare with the reference their estimates and intervals there."""
    logged = [analysis for analysis in analyses if analysis.plan.measure.logged]
    known = tested_of(logged, one.measure, one.group)
    tested = {
        first: (each.estimate, each.low, each.high)
        for (first, second), each in known.items()
        if second == one.profile.intact and first in one.profile.levels
    }
    return replace(one, profile=one.profile.with_tested(tested)) if tested else one


def _without_free(costs: UnitCosts) -> tuple[UnitCosts, list[str]]:
    """Leave out what costs a reader nothing in any condition (a local model's bill), and name it."""
    most = costs.rows.groupby(["measure", "reader_group"], sort=False)["cost"].transform("max")
    free = costs.rows[most == 0]
    names = [
        f"{TITLES[str(measure)].lower()} of {marked(str(group), str(own['reader_kind'].iloc[0]))}"
        for (measure, group), own in free.groupby(["measure", "reader_group"], sort=False)
    ]
    return replace(costs, rows=costs.rows[most != 0]), names


def _ratio_sentences(shown: list[CostProfile], base: str, kinds: dict[str, str]) -> list[Markup]:
    told = []
    for one in shown:
        values: list[str] = []
        levels: list[str] = []
        sizes: list[float] = []
        for place, level in enumerate(one.profile.levels):
            ends, estimate = one.profile.interval(place), float(one.profile.estimate[place])
            if not np.isfinite(estimate):
                continue
            ratio = with_ends(estimate, ends.low, ends.high)
            values.append(f"{ratio} ({apa.number(100 * np.expm1(estimate), 1)}%)")
            levels.append(level)
            sizes.append(estimate)
        who = named(one.group, kinds)
        if values:
            told.append(
                escape(
                    f"{TITLES[one.measure]} of {who}, log ratio against {base}: {by_level(levels, values, sizes)} condition."
                )
            )
    return told


def _lacking(tables: Tables, costs: UnitCosts, recorded: set[str], found: list[CostProfile]) -> Markup:
    """Report costs recorded for no model (``recorded``: those of at least one), and readers without a baseline."""
    trials = tables.trials
    kinds = trials.loc[trials["excluded_reason"].isna(), "reader_kind"]
    profiled = {(one.group, one.measure) for one in found}
    without = [
        f"{marked(str(group), str(own['reader_kind'].iloc[0]))} ({TITLES[str(measure)].lower()})"
        for (measure, group), own in costs.rows.groupby(["measure", "reader_group"], sort=False)
        if (str(group), str(measure)) not in profiled
    ]
    return LAYOUT.sentences(
        "lacking",
        remarks=[sentence(one) for one in costs.remarks],
        has_model=bool((kinds == "model").any()),
        has_people=bool(kinds.isin(PARTICIPANT_KINDS).any()),
        unrecorded=[TITLES[one].split(",")[0].lower() for one in OF_A_MODEL if one not in recorded],
        is_timed="latency_ms" in recorded,
        base=costs.levels[0],
        without=list(dict.fromkeys(without)),
        zeros=[
            f"{one.group} ({TITLES[one.measure].lower()}, {one.without:,})" for one in found if one.without
        ],
    )


def _against_accuracy(tables: Tables, shown: list[CostProfile], factor: str, levels: tuple[str, ...]) -> Part:
    part = Part()
    trials = tables.trials
    # a million trials have a gigabyte of columns that this needs not copy
    kept = [
        "reader_group",
        "reader_kind",
        "reader",
        "item_id",
        "trial_type",
        "response_status",
        "correct",
        factor,
    ]
    cells = describe(trials.loc[trials["excluded_reason"].isna(), kept], MEASURES["correct"], factor, levels)
    points = cost_and_accuracy(shown, cells, factor)
    if points.empty:
        if shown:
            part.say(LAYOUT.sentences("no_accuracy"))
        return part
    name = plain("cost_accuracy", factor)
    rows = []
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        changed, base = own[own[factor] != levels[0]], own[own[factor] == levels[0]]
        if not base.empty and not changed.empty:
            most = changed.iloc[int(changed["log_ratio"].to_numpy(dtype=float).argmax())]
            what = TITLES[str(measure)].lower()
            rows.append(
                {"group": str(group), "measure": what, "base": base["correct"].iloc[0], "most": dict(most)}
            )
    part.blocks += LAYOUT.blocks(
        "accuracy",
        table=_accuracy_table(name, points, factor, levels[0]),
        figures=cost_accuracy_figures(name, points, factor, levels),
        rows=rows,
        factor=factor,
        level=levels[0],
        kinds=kinds_of(points),
    )
    return part


def _shapes(
    found: list[CostProfile], shown: list[CostProfile], factor: str, base: str, kinds: dict[str, str]
) -> Part:
    part = Part()
    if not any(len(one.profile.levels) > 1 for one in shown):
        if shown:
            part.say(LAYOUT.sentences("one_condition"))
        return part
    reference = next(
        (one for one in shown if one.kind in PARTICIPANT_KINDS and len(one.profile.levels) > 1), None
    )
    table = profiles(found, factor, (reference.group, reference.measure) if reference else None)
    own = pd.concat(
        [table[(table["reader_group"] == one.group) & (table["measure"] == one.measure)] for one in shown],
        ignore_index=True,
    )
    name = plain("cost_profiles", factor)
    told = [
        Markup(
            "[[figure:{0}]] and [[table:{0}]] scale each reader's log ratios to their own mean: what is left is which "
            "conditions cost that "
            "reader more than its average one."
        ).format(name)
    ]
    told += [escape(one) for one in _without_shape(own, kinds)]
    told += _apart(own, factor, reference, kinds)
    part.say(*told)
    part.blocks += [
        *cost_profile_figures(name, own, factor, base),
        _profile_table(name, own, factor, base, reference, kinds),
    ]
    return part


def _without_shape(own: pd.DataFrame, kinds: dict[str, str]) -> Iterator[str]:
    """Say whose profile has no shape: its mean cost may be 0, or has no interval."""
    known = own["mean_low"].notna()
    for rows, told in (
        (own[own["unsure"] & known], "The interval of the mean cost includes 0 for {}: the shape of that profile means nothing."),
        (own[own["unsure"] & ~known], "Too few have answered for an interval of the mean cost of {}: no shape is shown."),
    ):  # fmt: skip
        if len(rows):
            yield told.format(chosen_words(marked(g, kinds[g]) for g in dict.fromkeys(rows["reader_group"])))


def _apart(
    own: pd.DataFrame, factor: str, reference: CostProfile | None, kinds: dict[str, str]
) -> list[Markup]:
    if reference is None:
        return []
    at_reference = (own["reader_group"] == reference.group) & (own["measure"] == reference.measure)
    if own.loc[at_reference, "unsure"].any():
        return []
    told, alike = [], []
    sure = own[~own["unsure"].astype(bool) & np.isfinite(own["difference"].to_numpy(dtype=float))]
    people = f"{named(reference.group, kinds)} ({TITLES[reference.measure].lower()})"
    for (group, measure), rows in sure.groupby(["reader_group", "measure"], sort=False):
        away = rows[(rows["difference_low"] > 0) | (rows["difference_high"] < 0)]
        who = f"{named(str(group), kinds)} ({TITLES[str(measure)].lower()})"
        if away.empty:
            alike.append(who)
            continue
        values = [
            f"{row[factor]} ({with_ends(row['difference'], row['difference_low'], row['difference_high'])})"
            for row in away.to_dict("records")
        ]
        told.append(escape(f"The profile of {who} differs from that of {people} in {apa.listing(values)}."))
    if alike:
        told.append(
            escape(
                f"In no condition is the profile of {apa.listing(alike)} shown to differ from that of {people}; this is not "
                "evidence that they are the same."
            )
        )
    return [*told, escape("These intervals are not corrected for their number.")] if told else []


def _ratio_table(name: str, costs: UnitCosts, ratios: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    """Lay out means in each measure's own unit with log ratios against the baseline."""
    factor, all_rows = costs.factor, costs.rows
    known = {
        (row["measure"], row["reader_group"], row[factor]): row
        for row in (ratios.to_dict("records") if len(ratios) else [])
    }
    order, names = group_order(all_rows), list(TITLES)
    cells = {
        (str(m), str(g)): own for (m, g), own in all_rows.groupby(["measure", "reader_group"], sort=False)
    }
    rows = []
    for (measure, group), own in sorted(
        cells.items(), key=lambda one: (order.index(one[0][1]), names.index(one[0][0]))
    ):
        is_people = kinds[group] in PARTICIPANT_KINDS
        title, unit = TITLES[measure].lower(), UNITS[measure]
        for level in costs.levels:
            cell = own[own[factor] == level]
            if cell.empty:
                continue
            mean = (
                float(np.exp(cell.groupby("reader")["value"].mean().mean()))
                if is_people
                else float(cell.groupby("item")["cost"].mean().mean())
            )
            rows.append(
                {
                    "measure": measure,
                    "reader_group": group,
                    "title": title if unit in title.split() else f"{title} ({unit})",
                    "level": level,
                    "units": int(cell["reader" if is_people else "item"].nunique()),
                    "mean": mean,
                    "places": 4 if measure == "cost_usd" else 0 if unit == "ms" else 2,
                    "ratio_row": known.get((measure, group, level)),
                }
            )
    of_parts = {"total_tokens", "surprisal_changed", "surprisal_after"}
    in_trials = {*MEASURES_OF_PEOPLE[:2], *MEASURES_OF_MODELS} - of_parts
    measures = set(all_rows["measure"])
    return LAYOUT.table(
        "costs",
        rows,
        name,
        factor=factor,
        base=costs.levels[0],
        kinds=kinds,
        names=[*sorted(in_trials & measures), *[""] * len(in_trials)],
        of_words=not measures <= {*in_trials, "total_tokens"},
        timed=TIMED,
    )


def _accuracy_table(name: str, points: pd.DataFrame, factor: str, base: str) -> ApaTable:
    rows = pd.concat([own for _, own in points.groupby(["reader_group", "measure"], sort=False)])
    values: dict[str, Any] = {"kinds": kinds_of(points), "titles": TITLES, "shares": OF_SHARES}
    return LAYOUT.table("accuracy", rows, name, factor=factor, base=base, **values)


def _profile_table(
    name: str, own: pd.DataFrame, factor: str, base: str, reference: CostProfile | None, kinds: dict[str, str]
) -> ApaTable:
    """Lay out normalised profiles, each with its difference from the reference reader's."""
    name_of, is_sure = "", True
    if reference is not None:
        name_of = f"{named(reference.group, kinds)} ({TITLES[reference.measure].lower()})"
        at_reference = (own["reader_group"] == reference.group) & (own["measure"] == reference.measure)
        is_sure = not own.loc[at_reference, "unsure"].any()
    values: dict[str, Any] = {
        "is_sure": is_sure,
        "has_unsure": bool(own["unsure"].any()),
        "reference_name": name_of,
        "titles": TITLES,
        "timed": TIMED,
    }
    rows = pd.concat([cells for _, cells in own.groupby(["reader_group", "measure"], sort=False)])
    return LAYOUT.table("profiles", rows, name, factor=factor, base=base, kinds=kinds, **values)
