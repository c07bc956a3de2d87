"""Costs of people and models side by side in the chapter on cost: log ratios, cost against accuracy, normalised profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs import cost_and_accuracy, cost_profiles, log_ratios, profiles, shown_profiles
from analysis.costs.ratios import TITLES, CostProfile, UnitCosts
from analysis.descriptives import describe
from analysis.figures.cost import cost_accuracy_figures, cost_profile_figures
from analysis.names import plain
from analysis.plan import MEASURES
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, marked, named
from analysis.report.chapters.cost_parts import Part, chosen_words, sentence, with_ends
from analysis.report.chapters.cost_ratio_tables import accuracy_table, profile_table, ratio_table
from analysis.report.many_levels import by_level
from analysis.tables import Tables

OF_A_MODEL = ("reasoning_tokens", "completion_tokens", "prompt_tokens", "latency_ms", "surprisal")
"""What is named where no model has it."""


def side_by_side(tables: Tables, costs: UnitCosts, thinned: tuple[str, ...]) -> Part:
    """Write what each condition costs each reader, as log ratios against its own baseline, beside accuracy, and as a shape."""
    part = Part()
    factor, base = costs.factor, costs.levels[0]
    recorded = set(costs.rows.loc[costs.rows["reader_kind"] == "model", "measure"])
    costs, free = _without_free(costs)
    if costs.rows.empty:
        return part
    found = cost_profiles(costs, study=str(tables.dictionary["study"]))
    part.head(f"Costs side by side: {factor}")
    part.groups = group_order(costs.rows)
    kinds = kinds_of(costs.rows)
    name = plain("cost_ratios", factor)
    ratios = log_ratios(found, factor) if found else pd.DataFrame()
    part.say(
        Markup(
            "[[table:{}]] shows each measure in its own unit and as the natural logarithm of its ratio to the reader's own {} "
            "condition; only such ratios can be compared across readers."
        ).format(name, base)
    )
    shown = shown_profiles(found)
    part.say(*_ratio_sentences(shown, base, kinds))
    if free:
        part.say(f"Zero in every condition: {chosen_words(free)}.")
    part.say(*_lacking(tables, costs, recorded, found), *(sentence(one) for one in thinned))
    part.blocks.append(ratio_table(name, costs, ratios))
    part.add(_against_accuracy(tables, shown, factor, costs.levels))
    part.add(_shapes(found, shown, factor, base, kinds))
    part.methods = [
        Markup(
            "A cost is the natural logarithm of a reader's value in a condition over its own value in the reference condition: for "
            "people the mean over participants, for a model the mean over items. A profile is these costs divided by their own mean. "
            "Intervals are 95% percentile bootstraps (2,000 resamples) over participants and items at once (Owen, 2007), or over a "
            "model's items. Latency counts only where trials ran alone."
        )
    ]
    part.sources.append("owen2007")
    return part


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


def _lacking(tables: Tables, costs: UnitCosts, recorded: set[str], found: list[CostProfile]) -> list[str]:
    """Say which costs a model could have and none has (``recorded``: those that one has), and which reader has no baseline."""
    trials = tables.trials
    used = trials.loc[trials["excluded_reason"].isna(), ["reader_kind"]]
    told = [sentence(one) for one in costs.remarks]
    if (used["reader_kind"] == "model").any():
        none = [TITLES[one].split(",")[0].lower() for one in OF_A_MODEL if one not in recorded]
        if none:
            told.append(f"Not recorded for any model: {chosen_words(none)}.")
        if "latency_ms" not in recorded:
            told.append("Latency was not compared, because no trial ran alone.")
    else:
        told.append("No model has answered, so that there is nothing to set beside people.")
    if not used["reader_kind"].isin(PARTICIPANT_KINDS).any():
        told.append("Nobody has taken part, so that models' costs have none of people beside them.")
    profiled = {(one.group, one.measure) for one in found}
    without = [
        f"{marked(str(group), str(own['reader_kind'].iloc[0]))} ({TITLES[str(measure)].lower()})"
        for (measure, group), own in costs.rows.groupby(["measure", "reader_group"], sort=False)
        if (str(group), str(measure)) not in profiled
    ]
    if without:
        told.append(
            f"Without a ratio, since nothing was measured in {costs.levels[0]} or in no other condition of the same items: "
            f"{chosen_words(without)}."
        )
    zeros = [one for one in found if one.without]
    if zeros:
        names = [f"{one.group} ({TITLES[one.measure].lower()}, {one.without:,})" for one in zeros]
        told.append(
            f"Items that cost 0 in a condition have no logarithm and are left out: {chosen_words(names)}."
        )
    return told


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
            part.say(
                "No reader has both a cost and answers that are right or wrong, so that none stands against accuracy."
            )
        return part
    name = plain("cost_accuracy", factor)
    figures = cost_accuracy_figures(name, points, factor, levels)
    told = [Markup("[[figure:{}]] sets cost against accuracy ([[table:{}]]).").format(name, name)]
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        changed = own[own[factor] != levels[0]]
        base = own[own[factor] == levels[0]]
        if base.empty or changed.empty:
            continue
        dear = changed.iloc[int(changed["log_ratio"].to_numpy(dtype=float).argmax())]
        kind = {str(group): str(own["reader_kind"].iloc[0])}
        what = TITLES[str(measure)].lower()
        told.append(
            escape(
                f"{sentence(named(str(group), kind)).rstrip('.')}: {apa.percent(float(base['correct'].iloc[0]))} right "
                f"in {levels[0]}; "
                + (
                    f"the dearest condition in {what} was {dear[factor]} (log ratio "
                    f"{apa.number(dear['log_ratio'])}), with {apa.percent(dear['correct'])} right."
                    if dear["log_ratio"] >= 0.005
                    else f"no condition costs half a percent more {what} than that."
                )
            )
        )
    part.say(*told)
    part.blocks += [*figures, accuracy_table(name, points, factor, levels[0])]
    return part


def _shapes(
    found: list[CostProfile], shown: list[CostProfile], factor: str, base: str, kinds: dict[str, str]
) -> Part:
    part = Part()
    if not any(len(one.profile.levels) > 1 for one in shown):
        if shown:
            part.say("With one condition beside the reference there is no profile to compare.")
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
        profile_table(name, own, factor, base, reference, kinds),
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
                f"In no condition is the profile of {apa.listing(alike)} shown to differ from that of {people}; that is no "
                "evidence that they are the same."
            )
        )
    return [*told, escape("These intervals are not corrected for their number.")] if told else []
