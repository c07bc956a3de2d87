"""Single words in the chapter on cost: changed words, words after them, the profile around them, and reading times by surprisal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs.words import (
    TARGET,
    TIME,
    ReadingProfile,
    SpillOver,
    WordTable,
    linking,
    reading_profile,
    spill_over,
)
from analysis.families import with_adjusted
from analysis.figures.cost import reading_profile_figures
from analysis.frames import indicator
from analysis.names import plain
from analysis.readers import group_order, kinds_of, named, spoken
from analysis.report.apa_tables import ApaTable, decimals
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.chapters.cost.times import FAILURES, LAYOUT, Part, sentence, with_ends
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
    shown = table.assign(
        places=[
            decimals(se, 2) if scale == "log" else 1
            for scale, se in zip(table["scale"], table["se"], strict=True)
        ]
    )
    laid = LAYOUT.table(
        "spill_over",
        pd.concat([own for _, own in shown.groupby(["reader_group", "zone"], sort=False)]),
        name,
        [climbed.fit for climbed in found.models.values() if climbed.fit is not None],
        factor=factor,
        base=words.levels[0],
        kinds=kinds,
        zones=ZONES,
    )
    part.blocks += LAYOUT.blocks("spill_over", table=laid)
    for group in part.groups:
        for zone in dict.fromkeys(table["zone"]):
            own = table[(table["reader_group"] == group) & (table["zone"] == zone)]
            part.say(_zone_sentence(own, factor, words.levels[0], named(group, kinds), zone))
    part.say(
        *_scales_apart(table, factor), *map(sentence, found.remarks), *(sentence(one) for one in thinned)
    )
    part.say(*_reductions(found, factor, words.levels))
    part.blocks.append(laid)
    part.fits = [
        ReportedFit(f"times of single words by {factor}: {zone}, {scale} scale ({group})", climbed.fit)
        for (group, zone, scale), climbed in found.models.items()
        if climbed.fit is not None
    ]
    part.sources = ["lo2015", "benjamini1995"]
    part.methods = [LAYOUT.sentences("methods_of_words"), LAYOUT.sentences("methods_of_milliseconds")]
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
    """Name the rows of which one scale's interval excludes 0 and the other's does not."""
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
    part.blocks += [*figures, _profile_table(name, found, kinds)]
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


def _profile_table(name: str, found: ReadingProfile, kinds: dict[str, str]) -> ApaTable:
    rows = [
        row | {"intervals": list(dict.fromkeys(own["interval"]))}
        for _, own in found.table.groupby(["measure", "reader_group"], sort=False)
        for row in own.drop(columns="interval").to_dict("records")
    ]
    return LAYOUT.table(
        "profile", rows, name, factor=found.factor, base=found.levels[0], kinds=kinds, time=TIME
    )


def base_changes_words(words: WordTable) -> bool:
    """Whether the level against which costs are measured has changed words itself: then it is no baseline of words."""
    base = words.words[words.words[words.factor] == words.levels[0]]
    return bool(base["is_changed"].any())


def has_targets(words: WordTable) -> bool:
    """Whether any level but the first has changed words."""
    other = words.words[words.words[words.factor] != words.levels[0]]
    return bool((other["zone"] == TARGET).any())


def milliseconds_a_bit(material: Material, tables: Tables, factor: str, words: WordTable) -> Part:
    """Relate people's times to each model's surprisal, linearly in milliseconds, with the gain in held-out likelihood."""
    part = Part()
    material.told(f"cost: milliseconds a bit by {factor}")
    try:
        table = linking(tables, factor, table=words)
    except FAILURES as error:
        part.say(LAYOUT.sentences("no_linking", why=reason_of(error)))
        return part
    if table.empty:
        part.say(LAYOUT.sentences("no_linking", why=""))
        return part
    part.groups = list(dict.fromkeys([*table["reader_group"], *table["model"]]))
    part.blocks = linking_blocks(table, kinds_of(tables.trials), factor)
    part.sources = ["smith2013", "shain2024", "liang1986"]
    part.methods = [LAYOUT.sentences("methods_of_linking")]
    return part


def linking_blocks(table: pd.DataFrame, kinds: dict[str, str], factor: str) -> list[Block]:
    """Write slopes in milliseconds per bit and gains in held-out log-likelihood, with their table."""
    pairs = [own for _, own in table.groupby(["reader_group", "model"], sort=False)]
    full = [own[own["baseline"] & own["spill_over"]].to_dict("records") for own in pairs]
    laid = LAYOUT.table("linking", pd.concat(pairs), plain("linking", factor), factor=factor, kinds=kinds)
    return LAYOUT.blocks("linking", table=laid, pairs=full, factor=factor, kinds=kinds, with_ends=with_ends)
