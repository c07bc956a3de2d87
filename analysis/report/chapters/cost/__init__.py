"""The chapter on cost: people's times on two scales and word by word, models' tokens and bits, and both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, marked, named
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.chapters.cost import times as cost_times
from analysis.report.chapters.cost import words as cost_words
from analysis.report.chapters.cost.times import LAYOUT, Part
from analysis.report.many_levels import by_level
from analysis.report.parted import Part as Shown
from analysis.report.parted import of_part, parts_by
from analysis.results import Analysis
from analysis.tables import Tables
from stimuli.errors import UserError

OF_A_MODEL = ("reasoning_tokens", "completion_tokens", "prompt_tokens", "latency_ms", "surprisal")
"""What is named where no model has it."""


def write(material: Material) -> Chapter | None:
    """Write what reading cost people and models; None where nobody has a time, tokens or surprisal in two conditions."""
    tables, left = fewer_participants(material.tables)
    whole = Part()
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    for factor, levels in material.tables.factors.items():
        if len(levels) > 1:
            shown = parts_by(factor, used, tables)
            whole.add(_of_factor(material, tables, factor, shown, left))
    for cells in material.tables.crossed:
        if cost_times.timed_by(material, cells):
            whole.add(cost_times.on_two_scales(material, tables, cells, left))
    if left:
        whole.methods.append(LAYOUT.sentences("methods_of_sampling", left=left))
    return LAYOUT.chapter(
        "cost",
        whole.blocks,
        whole.groups,
        material.kinds,
        methods=whole.methods,
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
    words, why_not = _words(tables, factor)
    costs = unit_costs(tables, factor, words, of_words=words is not None)
    if words is not None:
        part.add(_word_by_word(material, tables, factor, words, left))
    elif not costs.rows.empty:
        part.blocks += why_not
    if not costs.rows.empty:
        part.add(side_by_side(material, costs, left))
    return part


def _words(tables: Tables, factor: str) -> tuple[WordTable | None, list[Block]]:
    """Return the words of a study, or why single words are not compared by this factor."""
    try:
        words = word_table(tables, factor)
    except UserError as error:
        return None, LAYOUT.blocks("no_words", factor=factor, why=error.message)
    if cost_words.base_changes_words(words) or not cost_words.has_targets(words):
        return None, LAYOUT.blocks("no_words", factor=factor, why="", base=words.levels[0])
    return words, []


def _word_by_word(
    material: Material, tables: Tables, factor: str, words: WordTable, left: tuple[str, ...]
) -> Part:
    part = Part()
    are_people = tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)
    if are_people.any():
        part.add(cost_words.spilling(material, tables, factor, words, left))
    part.add(cost_words.profile(material, tables, factor, words, left))
    if are_people.any() and not are_people.all():
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
    shown = shown_profiles(found)
    part.groups = group_order(costs.rows)
    kinds = kinds_of(costs.rows)
    ratios = log_ratios(found, factor) if found else pd.DataFrame()
    reader_kinds = tables.trials.loc[tables.trials["excluded_reason"].isna(), "reader_kind"]
    profiled = {(one.measure, one.group) for one in found}
    named_costs = _named_costs(costs.rows)
    part.write(
        "log_ratios",
        table=_ratio_table(plain("cost_ratios", factor), costs, ratios, kinds),
        ratios=[(one, told) for one in shown if (told := _ratios_in_words(one))],
        free=free,
        remarks=costs.remarks,
        has_model=bool((reader_kinds == "model").any()),
        has_people=bool(reader_kinds.isin(PARTICIPANT_KINDS).any()),
        unrecorded=[TITLES[one].split(",")[0].lower() for one in OF_A_MODEL if one not in recorded],
        is_timed="latency_ms" in recorded,
        without=[
            f"{reader} ({title})" for key, (title, reader) in named_costs.items() if key not in profiled
        ],
        zeros=[
            f"{one.group} ({TITLES[one.measure].lower()}, {one.without:,})" for one in found if one.without
        ],
        **{"factor": factor, "base": base, "kinds": kinds, "thinned": thinned},
    )
    part.blocks += _against_accuracy(tables, shown, factor, costs.levels)
    part.blocks += _shapes(found, shown, factor, base, kinds)
    part.methods = [LAYOUT.sentences("methods_of_log_ratios")]
    part.sources.append("owen2007")
    return part


def _with_tested(one: CostProfile, analyses: Sequence[Analysis]) -> CostProfile:
    """Give the levels that the Results hold against the reference their estimates and intervals there."""
    logged = [analysis for analysis in analyses if analysis.plan.measure.logged]
    return replace(one, profile=one.profile.with_estimated(logged, one.measure, one.group))


def _named_costs(rows: pd.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    """Return what each measure and reader is called."""
    return {
        (str(measure), str(group)): (
            TITLES[str(measure)].lower(),
            marked(str(group), str(own["reader_kind"].iloc[0])),
        )
        for (measure, group), own in rows.groupby(["measure", "reader_group"], sort=False)
    }


def _without_free(costs: UnitCosts) -> tuple[UnitCosts, list[str]]:
    """Leave out what costs a reader nothing in any condition (a local model's bill), and name it."""
    most = costs.rows.groupby(["measure", "reader_group"], sort=False)["cost"].transform("max")
    names = [f"{title} of {reader}" for title, reader in _named_costs(costs.rows[most == 0]).values()]
    return replace(costs, rows=costs.rows[most != 0]), names


def _ratios_in_words(one: CostProfile) -> str:
    """Write a reader's log ratios by condition, each with its interval and in percent; empty without any."""
    known = {
        level: (value, one.profile.interval(place))
        for place, level in enumerate(one.profile.levels)
        if np.isfinite(value := float(one.profile.estimate[place]))
    }
    values = [
        f"{apa.with_ends(value, ends.low, ends.high)} ({apa.number(100 * np.expm1(value), 1)}%)"
        for value, ends in known.values()
    ]
    return by_level(list(known), values, [value for value, _ in known.values()]) if known else ""


def _against_accuracy(
    tables: Tables, shown: list[CostProfile], factor: str, levels: tuple[str, ...]
) -> list[Block]:
    trials = tables.trials
    # a million trials have a gigabyte of columns that this needs not copy
    kept = ["reader_group", "reader_kind", "reader", "item_id", "trial_type", "response_status", "correct"]
    used = trials.loc[trials["excluded_reason"].isna(), [*kept, factor]]
    points = cost_and_accuracy(shown, describe(used, MEASURES["correct"], factor, levels), factor)
    if points.empty:
        return LAYOUT.blocks("no_accuracy") if shown else []
    values: dict[str, Any] = {"factor": factor, "base": levels[0], "kinds": kinds_of(points)}
    by_reader = [own for _, own in points.groupby(["reader_group", "measure"], sort=False)]
    name, rows = plain("cost_accuracy", factor), []
    for own in by_reader:
        changed, base = own[own[factor] != levels[0]], own[own[factor] == levels[0]]
        if not base.empty and not changed.empty:
            most = changed.iloc[int(changed["log_ratio"].to_numpy(dtype=float).argmax())]
            rows.append({"correct": base["correct"].iloc[0], "most": dict(most)})
    return LAYOUT.blocks(
        "accuracy",
        table=LAYOUT.table("accuracy", pd.concat(by_reader), name, shares=OF_SHARES, **values),
        figures=cost_accuracy_figures(name, points, factor, levels),
        rows=rows,
        **values,
    )


def _shapes(
    found: list[CostProfile], shown: list[CostProfile], factor: str, base: str, kinds: dict[str, str]
) -> list[Block]:
    """Write profiles scaled to their own mean, each with its difference from the reference reader's."""
    several = [one for one in shown if len(one.profile.levels) > 1]
    if not several:
        return LAYOUT.blocks("one_condition") if shown else []
    reference = next((one for one in several if one.kind in PARTICIPANT_KINDS), None)
    table = profiles(found, factor, (reference.group, reference.measure) if reference else None)
    by_reader = dict(iter(table.groupby(["reader_group", "measure"], sort=False)))
    keys = [(one.group, one.measure) for one in shown if (one.group, one.measure) in by_reader]
    own = pd.concat([by_reader[key] for key in keys], ignore_index=True)
    is_sure = reference is None or not by_reader[reference.group, reference.measure]["unsure"].any()
    apart, alike = [], []
    for key in keys if reference is not None and is_sure else ():
        rows = by_reader[key]
        rows = rows[~rows["unsure"].astype(bool) & np.isfinite(rows["difference"].to_numpy(dtype=float))]
        away = rows[(rows["difference_low"] > 0) | (rows["difference_high"] < 0)].to_dict("records")
        names = ("difference", "difference_low", "difference_high")
        values = [f"{row[factor]} ({apa.with_ends(*(row[name] for name in names))})" for row in away]
        if values:
            apart.append((_reader(key, kinds), values))
        elif len(rows):
            alike.append(_reader(key, kinds))

    def who(rows: pd.DataFrame) -> list[str]:
        return [marked(group, kinds[group]) for group in dict.fromkeys(rows["reader_group"])]

    unsure = own["unsure"].astype(bool)
    name = plain("cost_profiles", factor)
    told: dict[str, Any] = {
        "factor": factor,
        "reference_name": "" if reference is None else _reader((reference.group, reference.measure), kinds),
    }
    laid = LAYOUT.table(
        "profiles", own, name, is_sure=is_sure, has_unsure=unsure.any(), base=base, kinds=kinds, **told
    )
    return LAYOUT.blocks(
        "profiles",
        table=laid,
        figures=cost_profile_figures(name, own, factor, base),
        unsure=who(own[unsure & own["mean_low"].notna()]),
        unknown=who(own[unsure & own["mean_low"].isna()]),
        apart=apart,
        alike=alike,
        **told,
    )


def _reader(key: tuple[str, str], kinds: dict[str, str]) -> str:
    """Name a reader with the measure of its profile."""
    return f"{named(key[0], kinds)} ({TITLES[key[1]].lower()})"


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
    for measure, group in sorted(cells, key=lambda one: (order.index(one[1]), names.index(one[0]))):
        is_people = kinds[group] in PARTICIPANT_KINDS
        title, unit = TITLES[measure].lower(), UNITS[measure]
        for level in costs.levels:
            cell = cells[measure, group][cells[measure, group][factor] == level]
            if cell.empty:
                continue
            column, by = ("value", "reader") if is_people else ("cost", "item")
            means = cell.groupby(by)[column].mean()
            rows.append(
                {
                    "measure": measure,
                    "reader_group": group,
                    "title": title if unit in title.split() else f"{title} ({unit})",
                    "level": level,
                    "units": int(cell[by].nunique()),
                    "mean": float(np.exp(means.mean()) if is_people else means.mean()),
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
        names=sorted(in_trials & measures),
        of_words=not measures <= {*in_trials, "total_tokens"},
    )
