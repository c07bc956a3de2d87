"""H-TEST's three numbers and accuracy against chance, with the arms that have no evidence named."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.intervals import OF_SHARES
from analysis.measures.accuracy import GROUP, with_chance
from analysis.measures.against_chance import against_chance
from analysis.measures.levels import Levels, levels_of
from analysis.names import plain
from analysis.readers import group_order, kinds_of, marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block
from analysis.report.described import with_copies_told
from analysis.report.filters import JUDGED, filled, where
from analysis.report.parted import of_part, parts_of
from analysis.tables import Tables
from stimuli.errors import UserError


def chance_blocks(tables: Tables, study: str) -> Iterator[Block]:
    """Write accuracy against chance by each factor; nothing where no choices were asked for."""
    trials = tables.trials
    if not (trials["excluded_reason"].isna() & (trials["trial_type"] == "choose")).any():
        return
    try:
        rows = with_chance(trials, tables.items, tables.factors)
    except UserError as error:
        yield escape(f"Accuracy cannot be held against chance: {error.message}.")
        return
    kinds = kinds_of(trials)
    first = True
    for part in parts_of(rows[rows["excluded_reason"].isna() & (rows["trial_type"] == "choose")], tables):
        factor, names = part.factor, part.levels
        found = against_chance(part.rows(rows), [factor], study=study)
        if found.empty:
            continue
        place = {name: number for number, name in enumerate(names)}
        order = {group: number for number, group in enumerate(group_order(trials))}
        found = found.assign(_l=found[factor].map(place), _g=found[GROUP].map(order)).sort_values(
            ["_g", "_l"]
        )
        if first:
            yield Markup("<h3>{}</h3>").format("Answers against chance")
            first = False
        present = [name for name in names if (found[factor] == name).any()]
        does = levels_of(part.of(tables).items, factor, present, tables.dictionary.get("between"))
        name = plain("chance", factor)
        told = Markup("[[table:{}]] holds accuracy by {}{} against chance. ").format(name, factor, part.told)
        told += escape(" ".join(_sentences(found, factor, does, kinds)))
        laid = with_copies_told(_table(name, found, factor, does, kinds), part.rows(rows), factor)
        yield from of_part([told, laid], part)


def _sentences(found: pd.DataFrame, factor: str, does: Levels, kinds: dict[str, str]) -> Iterator[str]:
    readers = found[found["kind"] != "baseline"]
    off = readers[readers["verdict"] == "below"]
    if len(off):
        cells = [
            f"{named(str(one[GROUP]), kinds)} in {one[factor]} ({apa.percent(one['accuracy'])} against {apa.percent(one['chance'])})"
            for one in off.to_dict("records")
        ]
        yield (
            f"Below chance: {apa.listing(cells)}. That is no lack of knowledge alone: whoever guesses is right more often, so a habit "
            "(one answer throughout, an echo, replies that cannot be read) takes right answers away."
        )
    else:
        yield "No reader is below chance in any cell."
    blind = [level for level in does.without_evidence if (readers[factor] == level).any()]
    if blind:
        own = readers[readers[factor].isin(blind)]
        above = own[own["verdict"] == "above"]
        what = apa.listing(blind)
        if len(above):
            cells = [
                f"{named(str(one[GROUP]), kinds)} in {one[factor]} ({apa.percent(one['accuracy'])}, 95% CI "
                f"{_share_interval(one['unit_low'], one['unit_high'])}, chance {apa.percent(one['chance'])})"
                for one in above.to_dict("records")
            ]
            yield (
                f"Above chance without evidence ({what}): {apa.listing(cells)}. What they know there comes from elsewhere than "
                f"the text: "
                "the options, the labels, or the world."
            )
        else:
            yield f"Without evidence ({what}) no reader is shown to be above chance, which does not show that none is."
    elif not does.unknown:
        yield (
            f"No level of {factor} takes the evidence away (all letters substituted, no text, no examples), so what is known "
            f"without it "
            "is not measured."
        )
    silent = readers[readers["out_of_context_ratio"] > 0]
    if len(silent):
        most = silent.sort_values("out_of_context_ratio", kind="stable").iloc[-1]
        yield (
            f"The largest out-of-context ratio is that of {named(str(most[GROUP]), kinds)} in {most[factor]} "
            f"({apa.percent(most['out_of_context_ratio'])}); adjusted accuracy leaves such answers out and so conditions on an "
            f"outcome."
        )


def _share_interval(low: float, high: float) -> str:
    return apa.interval(100 * low, 100 * high, 1)


def _table(name: str, found: pd.DataFrame, factor: str, does: Levels, kinds: dict[str, str]) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, own in found.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            level = str(one[factor])
            rows.append(
                (
                    f"{level} (no evidence)" if level in does.without_evidence else level,
                    apa.count(one["trials"]),
                    apa.number(100 * one["accuracy"], 1),
                    apa.number(100 * one["chance"], 1),
                    apa.p_value(one["p_adjusted"]),
                    str(one["verdict"]),
                    apa.number(100 * one["adjusted_accuracy"], 1),
                    apa.number(100 * one["out_of_context_ratio"], 1),
                )
            )
    columns = (
        *(factor, "Trials", "% correct", "% chance", "p adjusted"),
        *("Against chance", "Adjusted accuracy %", "Out of context %"),
    )
    note = (
        "Answers that are not valid count as wrong; the means' table has their intervals. p: exact binomial test against "
        "chance (mean of 1/options of the trials), adjusted by Benjamini and Hochberg's method over the table. Below, above: adjusted "
        "p under .05, and a bootstrap interval over participants (for a model or baseline over items: "
        f"{OF_SHARES}) excludes chance. Adjusted accuracy = correct of answered; out of context = not answered so that it could be "
        "read, of all."
    )
    origin = Origin(
        columns=("correct", "response_status", "trial_type", "reader_group", "reader", factor),
        where=(*JUDGED, where("trial_type", "choose"), *filled(factor)),
        computed="shares of right answers with failures as 0 beside 1 / choices of the item; exact tests; 2,000 resamples of "
        f"participants; for a model {OF_SHARES}",
        seed=("accuracy", "reader", "level"),
        beside=("items.csv",),
    )
    return ApaTable(
        name, f"Accuracy against chance by {factor} and reader", columns, tuple(rows), note, origin
    )
