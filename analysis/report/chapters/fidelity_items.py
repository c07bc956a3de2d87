"""Fidelity of items and of the order of conditions: correlations with their ceiling, scatters, rank agreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.fidelity import WITHIN, item_agreement, item_means_by_level, rank_agreement, trial_profiles
from analysis.figures import Drawing
from analysis.figures.fidelity import item_scatter
from analysis.names import plain
from analysis.readers import PARTICIPANT_KINDS, named, spoken
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block, Material
from analysis.report.chapters.fidelity_effects import in_italics
from analysis.report.filters import USED, filled
from analysis.tables import Tables
from stimuli.errors import UserError

PAIRS = (
    ("correct", "correct"),
    ("correct", "margin"),
    *(
        (time, cost)
        for time in ("reading_time", "rt")
        for cost in ("surprisal", "completion_tokens", "reasoning_tokens")
    ),
)
WORDS = {
    "correct": "accuracy",
    "margin": "margin of the label",
    "reading_time": "reading time",
    "rt": "response time",
    "surprisal": "surprisal",
    "completion_tokens": "tokens written",
    "reasoning_tokens": "tokens of thought",
}
DRAWN = {("correct", "correct"), ("reading_time", "surprisal"), ("rt", "surprisal")}
MOST_DRAWN = 8
"""Models whose items are drawn; those of more are in the table."""
LEAST_DRAWN = 4


@dataclass(frozen=True)
class Said:
    """Blocks of one part of the chapter, and what could not be done."""

    blocks: tuple[Block, ...]
    missing: tuple[str, ...] = ()


def pairs_of(tables: Tables) -> list[tuple[str, str]]:
    """Return the measures that people and models have, people's first; one kind of time is enough."""
    trials = tables.trials[tables.trials["excluded_reason"].isna()]
    people = trials["reader_kind"].isin(PARTICIPANT_KINDS)
    models = trials["reader_kind"] == "model"

    def has(own: pd.Series, name: str) -> bool:
        return name in trials and bool(trials.loc[own, name].notna().any())

    found = [(one, other) for one, other in PAIRS if has(people, one) and has(models, other)]
    if any(one == "reading_time" for one, _ in found):
        found = [pair for pair in found if pair[0] != "rt"]
    return found


def items_part(material: Material, factor: str) -> Said:
    """Correlate items within conditions, measure by measure."""
    tables = material.tables
    found: dict[tuple[str, str], pd.DataFrame] = {}
    missing = []
    for pair in pairs_of(tables):
        material.told(f"items: {WORDS[pair[0]]} and {WORDS[pair[1]]} by {factor}")
        try:
            table = item_agreement(tables, factor, *pair)
        except UserError as error:
            missing.append(f"Items, {WORDS[pair[0]]} and {WORDS[pair[1]]}: {error.message}.")
            continue
        if len(table):
            found[pair] = table
    if not found:
        missing.append(
            f"Items: no condition of {factor} holds three items that people and a model both answered."
        )
        return Said((), tuple(missing))
    laid = _table(found, factor, material.kinds)
    blocks: list[Block] = [Markup("<h3>Items within conditions of {} (exploratory)</h3>").format(factor)]
    drawings = _drawings(found, material, factor, missing)
    pointers = "".join(f", [[figure:{one.name}]]" for one in drawings)
    blocks.append(in_italics(_items_told(found, material.kinds, f"([[table:{laid.name}]]{pointers})")))
    return Said((*blocks, laid, *drawings), tuple(missing))


def _table(found: dict[tuple[str, str], pd.DataFrame], factor: str, kinds: dict[str, str]) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for (one, other), table in found.items():
        for (people, model), own in table.groupby(["people", "model"], sort=False):
            rows.append(
                Head([f"{WORDS[one].capitalize()} of {spoken(str(people))}, {WORDS[other]} of {model}"])
            )
            for _, row in own.iterrows():
                says = bool(np.isfinite(row["corrected"])) and not row["unsure"]
                rows.append(
                    (
                        str(row[factor]),
                        apa.count(row["items"]),
                        apa.correlation(row["correlation"]),
                        _ends(row, ""),
                        apa.correlation(row["people_reliability"]),
                        apa.correlation(row["model_reliability"]),
                        f"{apa.correlation(row['ceiling'])}{'*' if row['unsure'] and np.isfinite(row['ceiling']) else ''}",
                        apa.correlation(row["corrected"]) if says else apa.MISSING,
                        _ends(row, "corrected_") if says else apa.MISSING,
                    )
                )
    note = (
        "r = Pearson's correlation of item means within a condition; the last row of each part averages conditions (Fisher's z, "
        "weights items − 3). Reliabilities are mean correlations of 1,000 random split halves, stepped up; the ceiling is the root of "
        "their product, of people's alone where the model gave one answer an item. Intervals are 95% bootstraps over items. "
        "* = the interval of a reliability includes 0 or is missing: nothing can be said of items then, and r is not divided."
    )
    columns = (
        factor.capitalize(), "Items", "r", "95% CI", "Reliability of participants", "of the model", "Ceiling", "r / ceiling", "95% CI "
    )  # fmt: skip
    title = f"Agreement of single items of participants and models within conditions of {factor}"
    return ApaTable(
        f"items_{factor}", title, columns, tuple(rows), note, _origin(factor, OF_ITEMS, *SEED_OF_ITEMS)
    )


def _ends(row: pd.Series, head: str) -> str:
    return apa.correlations(row[f"{head}low"], row[f"{head}high"])


def _items_told(found: dict[tuple[str, str], pd.DataFrame], kinds: dict[str, str], pointer: str) -> str:
    factor_free = []
    for (one, other), table in found.items():
        within = table[table.iloc[:, 2] == WITHIN]
        for _, row in within.iterrows():
            who = f"{WORDS[one]} of {spoken(str(row['people']))} and {WORDS[other]} of {named(str(row['model']), kinds)}"
            text = f"{who}: r = {apa.correlation(row['correlation'])}, 95% CI {_ends(row, '')}"
            if not np.isfinite(row["ceiling"]):
                text += ", without a ceiling, since items are not reliable on one side"
            elif row["unsure"]:
                why = "a reliability's interval includes 0 or is missing"
                text += f", ceiling {apa.correlation(row['ceiling'])}, which is unsure ({why})"
            else:
                of = (
                    "of both sides"
                    if row["ceiling_of"] == "both"
                    else f"of {spoken(str(row['people']))} alone"
                )
                text += (
                    f", ceiling {apa.correlation(row['ceiling'])} (reliability {of}), corrected "
                    f"{apa.correlation(row['corrected'])}, 95% CI {_ends(row, 'corrected_')}"
                )
            factor_free.append(text)
    told = "; ".join(factor_free) if factor_free else "no condition has more than three items"
    return f"Whether the same items are hard, averaged over conditions {pointer}: {told}."


def _drawings(
    found: dict[tuple[str, str], pd.DataFrame], material: Material, factor: str, missing: list[str]
) -> list[Drawing]:
    drawn: list[Drawing] = []
    for pair, table in found.items():
        if pair not in DRAWN:
            continue
        own = item_means_by_level(material.tables, factor, pair[0])
        other = own if pair[0] == pair[1] else item_means_by_level(material.tables, factor, pair[1])
        turn = 0
        for (people, model), rows in table.groupby(["people", "model"], sort=False):
            rows = rows[(rows[factor] != WITHIN) & (rows["items"] >= LEAST_DRAWN)]
            if rows.empty or material.kinds[str(model)] == "baseline":
                continue
            turn += 1
            if turn > MOST_DRAWN:
                missing.append(f"Items of {model} are not drawn: the first {MOST_DRAWN} models are.")
                continue
            stem = plain(str(people), str(model), pair[1], factor)
            means = own[str(people)], other[str(model)].reindex(own[str(people)].index)
            agreement = rows.set_index(factor)
            drawn.append(
                item_scatter(
                    f"items_{stem}", means, agreement, (str(people), str(model)), material.kinds, pair
                )
            )
    return drawn


def order_part(material: Material, factor: str) -> Said:
    """Hold the order of conditions of people against each model's."""
    tables = material.tables
    if len(tables.levels_of(factor)) < 3:
        return Said((), (f"Order of conditions: {factor} has two levels, and an order needs three.",))
    rows: list[tuple[str, ...]] = []
    told, missing = [], []
    for one, other in pairs_of(tables):
        material.told(f"order: {WORDS[one]} and {WORDS[other]} by {factor}")
        own = trial_profiles(tables, factor, one)
        models = own if one == other else trial_profiles(tables, factor, other)
        for people in (profile for profile in own if profile.kind in PARTICIPANT_KINDS):
            for model in (profile for profile in models if profile.kind not in PARTICIPANT_KINDS):
                try:
                    row = rank_agreement(people, [model]).iloc[0]
                except UserError as error:
                    missing.append(f"Order of conditions: {error.message}.")
                    continue
                rows.append(
                    (
                        f"{WORDS[one].capitalize()} of {spoken(people.group)}, {WORDS[other]} of {model.group}",
                        apa.count(row["levels"]),
                        apa.correlation(row["tau"]),
                        _rank_ends(row, "tau"),
                        apa.correlation(row["rho"]),
                        _rank_ends(row, "rho"),
                        apa.percent(row["same_order"], 0),
                        apa.percent(row["by_chance"], 1),
                    )
                )
                if one == "correct" and other == "correct":
                    told.append(
                        f"{named(model.group, material.kinds)}: τ = {apa.correlation(row['tau'])}, 95% CI "
                        f"{_rank_ends(row, 'tau')}, the same order in {apa.percent(row['same_order'], 0)} of resamples"
                    )
    if not rows:
        missing.append(
            f"Order of conditions: nobody has a measure in the intact and two other levels of {factor}."
        )
        return Said((), tuple(missing))
    note = (
        "τ = Kendall's tau-b and ρ = Spearman's rho of what each condition costs, the intact one included; 95% bootstrap "
        "intervals over participants and items, and over a model's items. Same order: share of resamples in which all conditions "
        "come in one order; by chance that share would be 1 over the number of orders. Resampled correlations lie nearer to 0 than "
        "that of the data."
    )
    columns = ("", "Conditions", "τ", "95% CI", "ρ", "95% CI", "Same order", "By chance")
    name = f"order_{factor}"
    laid = ApaTable(
        name,
        f"Order of the conditions of {factor} for participants and models",
        columns,
        tuple(rows),
        note,
        _origin(factor, OF_ORDER, *SEED_OF_ORDER),
    )
    text = f"Whether conditions come in the same order ([[table:{name}]])"
    text += f", by accuracy: {'; '.join(told)}." if told else "."
    heading = Markup("<h3>Order of conditions of {} (exploratory)</h3>").format(factor)
    return Said((heading, Markup(escape(text)), laid), tuple(dict.fromkeys(missing)))


def _rank_ends(row: pd.Series, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"[{apa.correlation(low)}, {apa.correlation(high)}]" if np.isfinite(low) else apa.MISSING


def _origin(factor: str, computed: str, *seed: str) -> Origin:
    """Say which answers means by item, reader and condition are made of."""
    columns = ("correct", "response_status", factor, "item_id", "reader_group", "reader", "session_id")
    return Origin(
        columns=columns,
        where=(USED, *filled("item_id", factor)),
        rows="accuracy: answers that are right or wrong; times: people's, within the bounds; other measures: rows with a number",
        computed=computed,
        seed=seed,
    )


OF_ITEMS = (
    "means by item and level of each side, correlated; reliabilities of 1,000 random halves of participants or sessions; 2,000 "
    "resamples of items"
)
SEED_OF_ITEMS = (
    "items",
    "the factor",
    "measure of people",
    "measure of models",
    "and, of halves, halves",
    "measure",
    "reader",
)
OF_ORDER = "means by level of participants and items, as costs; 2,000 resamples of participants and items"
SEED_OF_ORDER = ("accuracy or the measure", "reader")


METHODS = (
    Markup(
        "Item means were correlated within each condition, because pooled over conditions items correlate merely because conditions "
        "differ. Times are logarithms centred on each participant. Reliabilities are means of 1,000 random splits of participants (or "
        "a model's sessions) into halves within lists (Spearman, 1910; Brown, 1910); correlations were corrected for them as in "
        "Spearman (1904). Intervals are percentile bootstraps over items (2,000 resamples)."
    ),
)
