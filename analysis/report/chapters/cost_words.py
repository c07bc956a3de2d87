"""Single words in the chapter on cost: changed words, the words after them, and the reading profile around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs import SpillOver, reading_profile, spill_over
from analysis.costs.words import TARGET, TIME, ReadingProfile, WordTable
from analysis.families import with_adjusted
from analysis.figures.cost import reading_profile_figures
from analysis.frames import indicator
from analysis.names import plain
from analysis.readers import group_order, kinds_of, marked, named, spoken
from analysis.report.apa_tables import ApaTable, Head, Origin, decimals
from analysis.report.blocks import Material, ReportedFit
from analysis.report.chapters.cost_parts import FAILURES, OWN_SCALE, Part, sentence, with_ends
from analysis.report.filters import USED, Either, above, filled
from analysis.report.many_levels import MOST_NAMED, MOST_TOLD, by_level
from analysis.tables import Tables
from stimuli.errors import reason_of

ZONES = {
    "target": "the changed word",
    "target + 1": "the first word after it",
    "target + 2": "the second word after it",
}


def spilling(
    material: Material, tables: Tables, factor: str, words: WordTable, thinned: tuple[str, ...]
) -> Part:
    """Write what changed words cost people on themselves and on the two words after them."""
    part = Part()
    material.told(f"cost: word by word by {factor}")
    try:
        found = spill_over(tables, factor, table=words)
    except FAILURES as error:
        part.say(f"Times of single words were not modelled: {reason_of(error)}.")
        return part
    kinds = kinds_of(tables.trials)
    part.head(f"Word by word: {factor}")
    if found.table.empty:
        part.say("No model of single words could be fitted.", *map(sentence, found.remarks))
        return part
    name = plain("spill_over", factor)
    table = pd.concat(
        [with_adjusted(own, "low", "high") for _, own in found.table.groupby("scale", sort=False)]
    ).sort_index()
    log = table["scale"] == "log"
    for end in ("low", "high"):
        table.loc[log, f"percent_{end}"] = 100 * np.expm1(table.loc[log, end])
    part.groups = list(dict.fromkeys(table["reader_group"]))
    part.say(
        Markup(
            "[[table:{}]] compares the times of the same words between conditions: on the changed word, and on the "
            "first and second intact "
            "word after it. Each zone has a model of "
            "log times (normal) and one of milliseconds (Gamma, identity link)."
        ).format(name)
    )
    for group in part.groups:
        for zone in dict.fromkeys(table["zone"]):
            own = table[(table["reader_group"] == group) & (table["zone"] == zone)]
            part.say(_zone_sentence(own, factor, words.levels[0], named(group, kinds), zone))
    part.say(
        *_scales_apart(table, factor), *map(sentence, found.remarks), *(sentence(one) for one in thinned)
    )
    part.say(*_reductions(found, factor, words.levels))
    part.blocks.append(spill_table(name, table, found, factor, words.levels[0], kinds))
    part.fits = [
        ReportedFit(f"times of single words by {factor}: {zone}, {scale} scale ({group})", climbed.fit)
        for (group, zone, scale), climbed in found.models.items()
        if climbed.fit is not None
    ]
    part.sources = ["lo2015", "benjamini1995"]
    part.methods = [
        Markup(
            "Word by word: times of words that a trial has in a zone were averaged first (geometric on the log scale). "
            "Random effects: "
            "participants with a slope for each condition, items; reduced from correlated slopes to uncorrelated ones "
            "to intercepts where "
            "a fit was singular or did not converge. <i>p</i> values of a scale are adjusted by Benjamini–Hochberg "
            "over its rows of the table."
        ),
        OWN_SCALE,
    ]
    return part


def _zone_sentence(own: pd.DataFrame, factor: str, base: str, who: str, zone: str) -> Markup:
    logs = own[own["scale"] == "log"].set_index(factor)
    plain = own[own["scale"] == "ms"].set_index(factor)
    values = []
    for level in dict.fromkeys(own[factor]):
        told = []
        if level in plain.index:
            row = plain.loc[level]
            told.append(f"{with_ends(row['estimate'], row['low'], row['high'], 1)} ms")
        if level in logs.index:
            row = logs.loc[level]
            told.append(with_ends(row["percent"], row["percent_low"], row["percent_high"], 1, "%"))
        values.append(f"{level} {' or '.join(told)}")
    first = own.iloc[0]
    told_of = apa.listing(values)
    if len(values) > MOST_TOLD:
        sizes = logs["percent"] if len(logs) else plain["estimate"]
        order = list(dict.fromkeys(own[factor]))
        told_of = f"from {values[order.index(sizes.idxmin())]} to {values[order.index(sizes.idxmax())]}"
    text = (
        f"On {ZONES[zone]} {who} took {apa.milliseconds(first['intact'])} in the {base} condition "
        f"({'geometric mean' if first['scale'] == 'log' else 'mean'} at mean covariates); against it, {told_of}."
    )
    return escape(sentence(text))


def _scales_apart(table: pd.DataFrame, factor: str) -> list[str]:
    """Name the rows of which one scale's interval leaves 0 out and the other's does not."""
    side = np.sign(table["low"]) * (np.sign(table["low"]) == np.sign(table["high"]))
    wide = table.assign(side=side).pivot_table(
        index=["reader_group", "zone", factor], columns="scale", values="side", aggfunc="first", sort=False
    )
    if not {"log", "ms"} <= set(wide.columns):
        return []
    apart = wide.dropna()
    apart = apart[apart["log"] != apart["ms"]]
    if apart.empty:
        return ["Both scales agree on which of these differences have intervals without 0."]
    names = [f"{level} on {ZONES[str(zone)]}" for _, zone, level in apart.index]
    return [f"The scales do not agree on {apa.listing(names)}: whether there is a cost depends on the scale."]


def _reductions(found: SpillOver, factor: str, levels: Sequence[str]) -> list[str]:
    """Say how random effects were reduced, models that went the same way together, and which fits are doubtful.

    Slopes of many conditions are told by their number: their names fill a page and say no more.
    """
    slopes = " + ".join(indicator(factor, level) for level in levels[1:])
    short = f"{len(levels) - 1} conditions" if len(levels) - 1 > MOST_NAMED else slopes
    ways: dict[str, list[str]] = {}
    told = []
    for (group, zone, scale), climbed in found.models.items():
        name = f"{ZONES[zone]} ({scale} scale{'' if group == 'human' else ', ' + spoken(group)})"
        if len(climbed.steps) > 1:
            way = "; ".join(step[step.index(" + (1") + 3 :].replace(slopes, short) for step in climbed.steps)
            ways.setdefault(way, []).append(name)
        if climbed.fit is not None and not climbed.fit.converged:
            told.append(f"The model of {name} did not converge; its numbers are not to be trusted.")
    steps = [f"Random effects of the models of {apa.listing(names)}: {way}." for way, names in ways.items()]
    return [*steps, *told]


def _covariates(found: SpillOver) -> str:
    """Name what the models hold beside the condition, in words."""
    names = {
        "c_letters": "the length of the form shown",
        "c_zipf": "the frequency of the word",
        "c_previous_letters": "the length of the word before",
        "c_previous_zipf": "the frequency of the word before",
    }
    formulas = [climbed.formula for climbed in found.models.values()]
    known = {name: sum(f"{name} " in formula for formula in formulas) for name in names}
    everywhere = [words for name, words in names.items() if known[name] == len(formulas)]
    somewhere = [words for name, words in names.items() if 0 < known[name] < len(formulas)]
    nowhere = [words for name, words in names.items() if not known[name]]
    told = f"Held at their means: {apa.listing(everywhere)}." if everywhere else ""
    if somewhere:
        told += f" Held where they vary in a zone: {apa.listing(somewhere)}."
    if nowhere:
        told += f" Not known or the same in all trials, so no covariate: {apa.listing(nowhere)}."
    return told.strip()


def spill_table(
    name: str, table: pd.DataFrame, found: SpillOver, factor: str, base: str, kinds: dict[str, str]
) -> ApaTable:
    """Lay out differences of times of single words, zone by zone, on both scales."""
    rows: list[tuple[str, ...]] = []
    for (group, zone), own in table.groupby(["reader_group", "zone"], sort=False):
        one = own.iloc[0]
        counts = f"{apa.count(one['rows'])} trials, {apa.count(one['words'])} times"
        rows.append(Head([f"{marked(str(group), kinds[str(group)])}: {ZONES[str(zone)]} ({counts})"]))
        for row in own.to_dict("records"):
            log = row["scale"] == "log"
            places = decimals(row["se"], 2) if log else 1
            rows.append(
                (
                    str(row[factor]),
                    row["scale"],
                    apa.number(row["intact"], 0),
                    apa.number(row["estimate"], places),
                    apa.number(row["se"], places),
                    apa.degrees_of_freedom(row["df"]),
                    apa.p_value(row["p_adjusted"]),
                    apa.interval(row["low"], row["high"], places),
                    apa.number(row["percent"], 1),
                    apa.interval(row["percent_low"], row["percent_high"], 1),
                )
            )
    note = (
        f"M = mean in {base} at mean covariates, ms (geometric on the log scale). b = difference from it: of natural "
        f"logarithms, or in ms. "
        "df where the statistic is t; z otherwise. p adjusted by Benjamini–Hochberg's method over all rows of a scale, with the "
        "intervals that agree with it (Benjamini & Yekutieli, 2005). Percents "
        "in ms are ratios of two estimates and have no interval."
    )
    columns = (factor, "Scale", "M", "b", "SE", "df", "p adjusted", "95% CI", "Percent", "95% CI")
    fits = tuple(one.fit for one in found.models.values() if one.fit is not None)
    title = f"Times on changed words and on the words after them by {factor}"
    return ApaTable(name, title, columns, tuple(rows), note, Origin(fits, computed=OF_WORDS))


OF_WORDS = (
    "differences: weights of the fixed effects; the rows of a model are words with covariates, a column each"
)


def profile(
    material: Material, tables: Tables, factor: str, words: WordTable, thinned: tuple[str, ...]
) -> Part:
    """Draw mean times and surprisal by place around a changed word."""
    part = Part()
    material.told(f"cost: reading profile by {factor}")
    found = reading_profile(tables, factor, words)
    if found.table.empty:
        return part
    name = plain("reading_profile", factor)
    kinds = kinds_of(tables.trials)
    part.groups = group_order(found.table)
    figures = reading_profile_figures(name, found)
    told = []
    if figures:
        told.append(Markup("[[figure:{}]] follows readers word by word ([[table:{}]]).").format(name, name))
    else:
        told.append(
            Markup(
                "[[table:{}]] has the means of changed words; a profile needs other words around them."
            ).format(name)
        )
    told += _profile_sentences(found, kinds)
    part.say(*told, *(sentence(one) for one in thinned))
    part.blocks += [*figures, profile_table(name, found, kinds)]
    part.sources = ["cousineau2005", "morey2008"]
    return part


def _profile_sentences(found: ReadingProfile, kinds: dict[str, str]) -> list[Markup]:
    told = []
    own = found.table[found.table["place"] == 0]
    for (measure, group), rows in own.groupby(["measure", "reader_group"], sort=False):
        unit, places = ("ms", 0) if measure == TIME else ("bits", 2)
        values = [with_ends(row["mean"], row["low"], row["high"], places) for row in rows.to_dict("records")]
        levels = [str(level) for level in rows[found.factor]]
        what = "Mean time" if measure == TIME else "Mean surprisal"
        found_of = by_level(levels, values, rows["mean"].tolist())
        told.append(
            escape(f"{what} of {named(str(group), kinds)} on a changed word ({unit}): {found_of} condition.")
        )
    return told


def profile_table(name: str, found: ReadingProfile, kinds: dict[str, str]) -> ApaTable:
    """Lay out the means of the reading profile."""
    rows: list[tuple[str, ...]] = []
    for (measure, group), own in found.table.groupby(["measure", "reader_group"], sort=False):
        what, places = ("reading time (ms)", 0) if measure == TIME else ("surprisal (bits)", 2)
        how = apa.listing(list(dict.fromkeys(own["interval"])))
        rows.append(Head([f"{marked(str(group), kinds[str(group)])}: {what}; intervals: {how}"]))
        for row in own.to_dict("records"):
            rows.append(
                (
                    str(row[found.factor]),
                    apa.number(row["place"], 0),
                    apa.number(row["mean"], places),
                    apa.interval(row["low"], row["high"], places),
                    apa.count(row["units"]),
                    apa.count(row["words"]),
                )
            )
    note = (
        "Place: words from the changed word before (0 is the changed word itself), up to 3; else to the next one (negative). "
        f"In {found.levels[0]} the same words count as changed that another condition changes. n = participants, or "
        f"items for a model; M over "
        "their own means."
    )
    columns = (found.factor, "Place", "M", "95% CI", "n", "Words")
    origin = Origin(
        columns=(
            "rt",
            "surprisal",
            "region",
            "is_changed",
            found.factor,
            "reader_group",
            "reader",
            "item_id",
        ),
        where=(USED, *filled("item_id"), Either((above("rt"), *filled("surprisal")))),
        rows="of these the regions around a changed word, or around the same word unchanged",
        computed="means by reader (items, for a model), level and place, and of these by level and place",
        file="regions.csv.gz",
    )
    return ApaTable(
        name, f"Words around a changed word by {found.factor}", columns, tuple(rows), note, origin
    )


def base_changes_words(words: WordTable) -> bool:
    """Whether the level against which costs are measured has changed words itself: then it is no baseline of words."""
    base = words.words[words.words[words.factor] == words.levels[0]]
    return bool(base["is_changed"].any())


def has_targets(words: WordTable) -> bool:
    """Whether any level but the first has changed words."""
    other = words.words[words.words[words.factor] != words.levels[0]]
    return bool((other["zone"] == TARGET).any())
