"""Surprisal and reading times in the chapter on cost: milliseconds a bit, and what surprisal foretells of unseen items."""

from __future__ import annotations

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs import linking
from analysis.costs.words import WordTable
from analysis.names import plain
from analysis.readers import kinds_of, marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Material
from analysis.report.chapters.cost_parts import FAILURES, Part, with_ends
from analysis.report.filters import USED, Either, above, filled
from analysis.tables import Tables
from stimuli.errors import reason_of


def milliseconds_a_bit(material: Material, tables: Tables, factor: str, words: WordTable) -> Part:
    """Relate people's times to each model's surprisal, linearly in milliseconds, with the gain in held-out likelihood."""
    part = Part()
    material.told(f"cost: milliseconds a bit by {factor}")
    try:
        table = linking(tables, factor, table=words)
    except FAILURES as error:
        part.say(f"Times were not related to surprisal: {reason_of(error)}.")
        return part
    if table.empty:
        part.say(
            "Times were not related to surprisal: too few items have words with both, or surprisal does not vary."
        )
        return part
    kinds = kinds_of(tables.trials)
    name = plain("linking", factor)
    part.groups = list(dict.fromkeys([*table["reader_group"], *table["model"]]))
    part.head(f"Surprisal and reading times: {factor}")
    part.say(
        Markup(
            "[[table:{}]] regresses the mean time of each word on a model's surprisal of it, linearly in milliseconds "
            "(Smith &amp; Levy, 2013; "
            "Shain et al., 2024). Gain is the log-likelihood that surprisal adds to words of items that the model of "
            "times has not seen. A "
            "changed word's own surprisal says how improbable the string is and into how many tokens it falls; words "
            "that were not changed "
            "stand apart."
        ).format(name)
    )
    for (group, model), own in table.groupby(["reader_group", "model"], sort=False):
        part.say(*_linked(own, named(str(group), kinds), named(str(model), kinds)))
    part.blocks.append(linking_table(name, table, kinds, factor))
    part.sources = ["smith2013", "shain2024", "liang1986"]
    part.methods = [
        Markup(
            "Surprisal and times: each time was taken from its participant's own mean before words were averaged; "
            "means were weighted by their "
            "number of times, items were random. Baseline: length, frequency and place; spill-over: surprisal (with a "
            "baseline also length and "
            "frequency) of the two words before. Intervals of slopes are sandwich ones over items; the gain is from a tenfold "
            "cross-validation by item, its interval a bootstrap over items."
        )
    ]
    return part


def _linked(own: pd.DataFrame, people: str, model: str) -> list[Markup]:
    told = []
    full = own[own["baseline"] & own["spill_over"]]
    names = {"all": "of all words", "unchanged": "of words not changed", "changed": "of changed words"}
    for row in full.to_dict("records"):
        sign = -1.0 if row["slope"] < 0 else 1.0
        ends = sorted((sign * row["slope_low"], sign * row["slope_high"]))
        slope = with_ends(sign * row["slope"], *ends)
        moved = "fell" if sign < 0 else "rose"
        gain = with_ends(row["gain"], row["gain_low"], row["gain_high"], 4)
        verdict = "adds to" if row["gain_low"] > 0 else "is not shown to add to"
        verdict = "takes from" if row["gain_high"] < 0 else verdict
        text = (
            f"With baseline and spill-over predictors, times of {people} {names[str(row['words'])]} {moved} by {slope} ms "
            f"a bit of the surprisal that "
            f"{model} gives; surprisal {verdict} what is foretold of unseen items (gain {gain} nats a word, ΔAIC "
            f"{apa.number(row['delta_aic'], 1)})."
        )
        if not row["sound"]:
            text += " Not every fit behind this converged."
        told.append(escape(text))
    return told


def linking_table(name: str, table: pd.DataFrame, kinds: dict[str, str], factor: str) -> ApaTable:
    """Lay out slopes in milliseconds a bit and gains in held-out log-likelihood."""
    rows: list[tuple[str, ...]] = []
    for (group, model), own in table.groupby(["reader_group", "model"], sort=False):
        who = (
            f"{marked(str(group), kinds[str(group)])} by surprisal of {marked(str(model), kinds[str(model)])}"
        )
        rows.append(Head([who]))
        for row in own.to_dict("records"):
            rows.append(
                (
                    str(row["words"]),
                    "yes" if row["baseline"] else "no",
                    "yes" if row["spill_over"] else "no",
                    apa.joined(apa.number(row["slope"]), apa.interval(row["slope_low"], row["slope_high"])),
                    apa.joined(
                        apa.number(row["slope_total"]), apa.interval(row["total_low"], row["total_high"])
                    ),
                    apa.joined(
                        apa.number(row["gain"], 4), apa.interval(row["gain_low"], row["gain_high"], 4)
                    ),
                    apa.number(row["delta_aic"], 1),
                    apa.count(row["words_used"]),
                    apa.count(row["items"]),
                )
            )
    note = (
        "ms a bit of the word's own surprisal, and with the two words before it (total), with 95% intervals. Gain: "
        "held-out log-likelihood, nats a "
        "word; ΔAIC below 0 speaks for surprisal. The first two words of a text are in no row. Exploratory; not corrected."
    )
    columns = (
        *("Words", "Baseline", "Spill-over", "ms a bit [95% CI]", "Total [95% CI]", "Gain [95% CI]", "ΔAIC"),
        *("Words used", "Items"),
    )
    origin = Origin(
        columns=("item_id", "region", "shown", factor, "reader", "rt", "surprisal"),
        where=(USED, *filled("item_id"), Either((above("rt"), *filled("surprisal")))),
        rows="rt of people, surprisal of models, joined by item, level and region",
        computed="linear models of mean reading times on surprisal, length and frequency of a word and the two before it; gain over "
        "items left out in turn, 2,000 resamples of items",
        seed=("gain", "readers, model, baseline and words"),
        file="regions.csv.gz",
    )
    return ApaTable(name, f"Reading times by surprisal ({factor})", columns, tuple(rows), note, origin)
