"""Costs of people and models side by side in the chapter on cost: log ratios, cost against accuracy, normalised profiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs import cost_and_accuracy, cost_profiles, log_ratios, profiles, shown_profiles
from analysis.costs.ratios import CostProfile
from analysis.costs.units import TITLES, UNITS, UnitCosts
from analysis.descriptives import describe
from analysis.figures.cost_accuracy import cost_accuracy_figures
from analysis.figures.cost_profiles import cost_profile_figures
from analysis.measures import MEASURES
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.chapters.cost_parts import Part, chosen_words, sentence, stem, with_ends
from analysis.report.prose import named
from analysis.tables import Tables

OF_A_MODEL = ("reasoning_tokens", "completion_tokens", "prompt_tokens", "latency_ms", "surprisal")
_MACHINES = ("model", "baseline")


def side_by_side(tables: Tables, costs: UnitCosts, thinned: tuple[str, ...]) -> Part:
    """Write what each condition costs each reader, as log ratios against its own baseline, beside accuracy, and as a shape."""
    part = Part()
    factor, base = costs.factor, costs.levels[0]
    if costs.rows.empty:
        return part
    found = cost_profiles(costs, study=str(tables.dictionary["study"]))
    part.head(f"Costs side by side: {factor}")
    part.groups = group_order(costs.rows)
    kinds = kinds_of(costs.rows)
    name = stem("cost_ratios", factor)
    ratios = log_ratios(found, factor) if found else pd.DataFrame()
    part.say(
        Markup(
            "[[table:{}]] has what was measured in each condition, in the unit of each measure, and as the natural "
            "logarithm of its ratio "
            "to the reader's own {} condition. Milliseconds, tokens and bits are compared across readers only as such "
            "ratios; nothing is "
            "divided by a standard deviation."
        ).format(name, base)
    )
    shown = shown_profiles(found)
    part.say(*_ratio_sentences(shown, base, kinds))
    part.say(*_lacking(tables, costs, found), *(sentence(one) for one in thinned))
    part.blocks.append(ratio_table(name, costs, ratios))
    part.add(_against_accuracy(tables, shown, factor, costs.levels))
    part.add(_shapes(found, shown, factor, base, kinds))
    part.methods = [
        Markup(
            "Costs across kinds of readers: natural logarithms of each reader's cost in a condition over its own cost "
            "in the reference "
            "condition. For people the mean over participants of differences of mean log times; for a model the mean "
            "over items of "
            "log ratios of its means over sessions. A profile is the log ratios divided by their own mean. Intervals "
            "are 95% percentile "
            "bootstraps with 2,000 resamples, for people over participants and items drawn at once (Owen, 2007), for a "
            "model over items; "
            "seeds are stable hashes of study, measure and reader. Latency is of trials that ran alone."
        )
    ]
    part.sources.append("owen2007")
    return part


def _ratio_sentences(shown: list[CostProfile], base: str, kinds: dict[str, str]) -> list[Markup]:
    told = []
    for one in shown:
        values = []
        for place, level in enumerate(one.profile.levels):
            ends, estimate = one.profile.interval(place), float(one.profile.estimate[place])
            if not np.isfinite(estimate):
                continue
            ratio = with_ends(estimate, ends.low, ends.high)
            values.append(f"{ratio} in the {level} ({apa.number(100 * np.expm1(estimate), 1)}%)")
        who = named(one.group, kinds)
        if values:
            told.append(
                escape(
                    f"{TITLES[one.measure]} of {who}, log ratio against {base}: {apa.listing(values)} condition."
                )
            )
    return told


def _lacking(tables: Tables, costs: UnitCosts, found: list[CostProfile]) -> list[str]:
    """Say which costs a model could have and none has, and which reader has no baseline."""
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    told = [sentence(one) for one in costs.remarks]
    if (used["reader_kind"] == "model").any():
        have = set(costs.rows.loc[costs.rows["reader_kind"] == "model", "measure"])
        none = [TITLES[one].split(",")[0].lower() for one in OF_A_MODEL if one not in have]
        if none:
            told.append(f"Not recorded for any model: {chosen_words(none)}.")
        if "latency_ms" not in have:
            told.append(
                "Latency counts only where trials ran alone (wrods run --timing): batches and shared prefixes make any other one "
                "meaningless."
            )
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
        laid.append(Head([f"{marked(group, kind)}: {TITLES[measure].lower()} ({UNITS[measure]})"]))
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
    names = sorted({one for one in rows["measure"] if one in MEASURES or one in OF_A_MODEL})
    origin = Origin(
        columns=(*names, factor, "reader_group", "item_id"),
        rows="excluded_reason empty; latency of timed sessions. Costs of single words are of regions.parquet",
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


def _against_accuracy(tables: Tables, shown: list[CostProfile], factor: str, levels: tuple[str, ...]) -> Part:
    part = Part()
    trials = tables.trials
    cells = describe(trials[trials["excluded_reason"].isna()], MEASURES["correct"], factor, levels)
    points = cost_and_accuracy(shown, cells, factor)
    if points.empty:
        if shown:
            part.say(
                "No reader has both a cost and answers that are right or wrong, so that none stands against accuracy."
            )
        return part
    name = stem("cost_accuracy", factor)
    figures = cost_accuracy_figures(name, points, factor, levels)
    told = [Markup("[[figure:{}]] sets cost against accuracy ([[table:{}]]).").format(name, name)]
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        changed = own[own[factor] != levels[0]]
        base = own[own[factor] == levels[0]]
        if base.empty or changed.empty:
            continue
        dear = changed.loc[changed["log_ratio"].idxmax()]
        kind = {str(group): str(own["reader_kind"].iloc[0])}
        told.append(
            escape(
                f"{sentence(named(str(group), kind)).rstrip('.')}: {apa.percent(float(base['correct'].iloc[0]))} right "
                f"in {levels[0]}; the "
                f"dearest condition in {TITLES[str(measure)].lower()} was {dear[factor]} (log ratio "
                f"{apa.number(dear['log_ratio'])}), with {apa.percent(dear['correct'])} right."
            )
        )
    part.say(*told)
    part.blocks += [*figures, accuracy_table(name, points, factor, levels[0])]
    return part


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
        "within-participant intervals (Cousineau–Morey), Wilson's over items for a model."
    )
    columns = (factor, "Log ratio", "95% CI", "% correct", "95% CI")
    origin = Origin(
        columns=("correct", factor, "reader_group"), rows="as the tables of costs and of accuracy"
    )
    return ApaTable(name, f"Cost and accuracy by {factor} and reader", columns, tuple(rows), note, origin)


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
    drawn = {(one.group, one.measure) for one in shown}
    place = [pair in drawn for pair in zip(table["reader_group"], table["measure"], strict=True)]
    own = table[place]
    name = stem("cost_profiles", factor)
    told = [
        Markup(
            "[[figure:{0}]] and [[table:{0}]] scale each reader's log ratios to their own mean: what is left is which "
            "conditions cost that "
            "reader more than its average one."
        ).format(name)
    ]
    unsure = [marked(g, kinds[g]) for g in dict.fromkeys(own.loc[own["unsure"], "reader_group"])]
    if unsure:
        told.append(
            escape(
                f"The interval of the mean cost includes 0 for {chosen_words(unsure)}: the shape of that profile means nothing."
            )
        )
    told += _apart(own, factor, reference, kinds)
    part.say(*told)
    part.blocks += [
        *cost_profile_figures(name, own, factor, base),
        profile_table(name, own, factor, base, reference, kinds),
    ]
    return part


def _apart(
    own: pd.DataFrame, factor: str, reference: CostProfile | None, kinds: dict[str, str]
) -> list[Markup]:
    if reference is None:
        return []
    told = []
    sure = own[~own["unsure"].astype(bool) & np.isfinite(own["difference"].to_numpy(dtype=float))]
    for (group, measure), rows in sure.groupby(["reader_group", "measure"], sort=False):
        away = rows[(rows["difference_low"] > 0) | (rows["difference_high"] < 0)]
        who = f"{named(str(group), kinds)} ({TITLES[str(measure)].lower()})"
        people = f"{named(reference.group, kinds)} ({TITLES[reference.measure].lower()})"
        if away.empty:
            told.append(
                escape(
                    f"No condition's share of the profile of {who} is shown to differ from that of {people}; that is no "
                    f"evidence that "
                    "the profiles are the same."
                )
            )
            continue
        values = [
            f"{row[factor]} ({with_ends(row['difference'], row['difference_low'], row['difference_high'])})"
            for row in away.to_dict("records")
        ]
        told.append(
            escape(
                f"The profile of {who} differs from that of {people} in {apa.listing(values)}; intervals are not "
                f"corrected for their "
                "number."
            )
        )
    return told


def profile_table(
    name: str,
    own: pd.DataFrame,
    factor: str,
    base: str,
    reference: CostProfile | None,
    kinds: dict[str, str],
) -> ApaTable:
    """Lay out normalised profiles, each beside the reference reader's."""
    rows: list[tuple[str, ...]] = []
    for (group, measure), cells in own.groupby(["reader_group", "measure"], sort=False):
        mean = float(cells["mean_log_ratio"].iloc[0])
        head = f"{marked(str(group), kinds[str(group)])}: {TITLES[str(measure)].lower()}; mean log ratio {apa.number(mean)}"
        rows.append(Head([head + (" (interval includes 0)" if cells["unsure"].any() else "")]))
        for row in cells.to_dict("records"):
            ends = apa.interval(row["difference_low"], row["difference_high"])
            difference = (apa.number(row["difference"]), ends)
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
    columns = (factor, "Scaled", "95% CI", "Difference", "95% CI")
    origin = Origin(columns=(factor, "reader_group"), rows="as the table of costs")
    return ApaTable(name, f"Normalised cost profiles by {factor}", columns, tuple(rows), note, origin)
