"""Single words in the chapter on cost: changed words, words after them, the profile around them, and reading times by surprisal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.costs.words import TARGET, TIME, SpillOver, WordTable, linking, reading_profile, spill_over
from analysis.families import with_adjusted
from analysis.figures.cost import reading_profile_figures
from analysis.frames import indicator
from analysis.names import plain
from analysis.readers import group_order, kinds_of, spoken
from analysis.report.apa_tables import decimals
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.chapters.cost.times import FAILURES, LAYOUT, Part
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
        part.write("no_spill_over", why=reason_of(error))
        return part
    if found.table.empty:
        part.write("no_word_models", factor=factor, remarks=found.remarks)
        return part
    by_scale = [with_adjusted(own, "low", "high") for _, own in found.table.groupby("scale", sort=False)]
    table = pd.concat(by_scale).sort_index()
    log = table["scale"] == "log"
    for end in ("low", "high"):
        table.loc[log, f"percent_{end}"] = 100 * np.expm1(table.loc[log, end])
    table["places"] = [decimals(se, 2) if is_log else 1 for se, is_log in zip(table["se"], log, strict=True)]
    part.groups = list(dict.fromkeys(table["reader_group"]))
    zones = [own for _, own in table.groupby(["reader_group", "zone"], sort=False)]
    values: dict[str, Any] = {
        "factor": factor,
        "base": words.levels[0],
        "kinds": kinds_of(tables.trials),
        "zones": ZONES,
    }
    fits = {key: climbed.fit for key, climbed in found.models.items() if climbed.fit is not None}
    laid = LAYOUT.table(
        "spill_over", pd.concat(zones), plain("spill_over", factor), list(fits.values()), **values
    )
    part.write(
        "spill_over",
        table=laid,
        zone_times=[in_zone(own, factor) for own in zones],
        remarks=[*found.remarks, *thinned],
        **_scales_apart(table, factor),
        **reductions(found, factor, words.levels),
        **values,
    )
    part.fits = [
        ReportedFit(f"times of single words by {factor}: {zone}, {scale} scale ({group})", fit)
        for (group, zone, scale), fit in fits.items()
    ]
    part.sources = ["lo2015", "benjamini1995"]
    part.methods = [LAYOUT.sentences(f"methods_of_{name}") for name in ("words", "milliseconds")]
    return part


def in_zone(own: pd.DataFrame, factor: str) -> dict[str, Any]:
    """Return one reader's differences in a zone in words, on both scales; of many conditions the least and the greatest."""
    log, ms = (
        {row[factor]: row for row in own[own["scale"] == scale].to_dict("records")} for scale in ("log", "ms")
    )
    told: dict[str, str] = {}
    for level in dict.fromkeys(own[factor]):
        values = []
        if level in ms:
            value, low, high = (ms[level][name] for name in ("estimate", "low", "high"))
            values.append(f"{apa.with_ends(value, low, high, 1)} ms")
        if level in log:
            value, low, high = (log[level][name] for name in ("percent", "percent_low", "percent_high"))
            values.append(apa.with_ends(value, low, high, 1, "%"))
        told[level] = f"{level} {' or '.join(values)}"
    said = apa.listing(list(told.values()))
    if len(told) > MOST_TOLD:
        sizes = {level: row["percent"] for level, row in log.items()}
        sizes = sizes or {level: row["estimate"] for level, row in ms.items()}
        said = f"from {told[min(sizes, key=sizes.__getitem__)]} to {told[max(sizes, key=sizes.__getitem__)]}"
    return {"first": own.iloc[0].to_dict(), "told": said}


def _scales_apart(table: pd.DataFrame, factor: str) -> dict[str, Any]:
    """Name the rows of which one scale's interval excludes 0 and the other's does not."""
    side = np.sign(table["low"]) * (np.sign(table["low"]) == np.sign(table["high"]))
    wide = table.assign(side=side).pivot_table(
        index=["reader_group", "zone", factor], columns="scale", values="side", aggfunc="first", sort=False
    )
    if not {"log", "ms"} <= set(wide.columns):
        return {"has_both_scales": False, "apart": []}
    apart = wide.dropna().query("log != ms").index
    names = [f"{level} on {ZONES[str(zone)]}" for _, zone, level in apart]
    return {"has_both_scales": True, "apart": names}


def reductions(found: SpillOver, factor: str, levels: Sequence[str]) -> dict[str, Any]:
    """Return how random effects were reduced, models that went the same way together, and which fits did not converge.

    Slopes of many conditions are told by their number: their names fill a page and say no more.
    """
    slopes = " + ".join(indicator(factor, level) for level in levels[1:])
    short = f"{len(levels) - 1} conditions" if len(levels) - 1 > MOST_NAMED else slopes
    ways: dict[str, list[str]] = {}
    unconverged = []
    for (group, zone, scale), climbed in found.models.items():
        name = f"{ZONES[zone]} ({scale} scale{'' if group == 'human' else ', ' + spoken(group)})"
        if len(climbed.steps) > 1:
            way = "; ".join(step[step.index(" + (1") + 3 :].replace(slopes, short) for step in climbed.steps)
            ways.setdefault(way, []).append(name)
        if climbed.fit is not None and not climbed.fit.converged:
            unconverged.append(name)
    return {"ways": ways.items(), "unconverged": unconverged}


def profile(
    material: Material, tables: Tables, factor: str, words: WordTable, thinned: tuple[str, ...]
) -> Part:
    """Draw mean times and surprisal by place around a changed word."""
    part = Part()
    material.told(f"cost: reading profile by {factor}")
    found = reading_profile(tables, factor, words)
    if found.table.empty:
        return part
    name, by_reader = plain("reading_profile", factor), ["measure", "reader_group"]
    part.groups = group_order(found.table)
    values: dict[str, Any] = {"factor": factor, "kinds": kinds_of(tables.trials), "time": TIME}
    rows = [
        row | {"intervals": list(dict.fromkeys(own["interval"]))}
        for _, own in found.table.groupby(by_reader, sort=False)
        for row in own.drop(columns="interval").to_dict("records")
    ]
    at_word = found.table[found.table["place"] == 0]
    part.write(
        "profile",
        figures=reading_profile_figures(name, found),
        table=LAYOUT.table("profile", rows, name, base=found.levels[0], **values),
        changed=[
            {"measure": measure, "group": group, "told": _means(own, factor, 0 if measure == TIME else 2)}
            for (measure, group), own in at_word.groupby(by_reader, sort=False)
        ],
        thinned=thinned,
        **values,
    )
    part.sources = ["cousineau2005", "morey2008"]
    return part


def _means(own: pd.DataFrame, factor: str, places: int) -> str:
    """Write a reader's means with their intervals by condition."""
    ends = zip(own["mean"], own["low"], own["high"], strict=True)
    told = [apa.with_ends(*each, places) for each in ends]
    return by_level([str(level) for level in own[factor]], told, own["mean"].tolist())


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
    why, table = "", pd.DataFrame()
    try:
        table = linking(tables, factor, table=words)
    except FAILURES as error:
        why = reason_of(error)
    if table.empty:
        part.write("no_linking", why=why)
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
    return LAYOUT.blocks("linking", table=laid, pairs=full, factor=factor, kinds=kinds)
