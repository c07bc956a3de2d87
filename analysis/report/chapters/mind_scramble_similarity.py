"""Table 4 of Mind Scramble, how near changed texts are to intact ones, with the floor that unrelated texts make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from analysis import apa
from analysis.published.mind_scramble import EMBEDDED
from analysis.published.mind_scramble_texts import STORED, Near, stored_texts, unit_means
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block
from analysis.report.chapters.mind_scramble_tables import column_of
from analysis.tables import Tables
from stimuli.errors import UserError

DIFFERENT = "Different texts"
SHARE = "% of the way"


def text_similarity(tables: Tables, study: str) -> Iterator[Block]:
    """Write how near the texts are that a study showed; a sentence with the reason where the file cannot be read."""
    try:
        told = stored_texts(tables.folder)
    except UserError as error:
        yield escape(f"No similarities: {error.message}. {error.mend or ''}".strip())
        return
    if told is None:
        return
    use, parts = told
    yield Markup("[[table:ms_similarity]] says how near the changed texts are to the intact ones.{}").format(
        escape("".join(f" {_units_said(near, study)}" for near in parts[:1]))
    )
    yield similarity_table("ms_similarity", [(study, parts)], use)
    table = unit_table("ms_similarity_units", [(study, parts)], use)
    if table is not None:
        yield Markup(
            "[[table:ms_similarity_units]] has the means of the units, and where they lie between the cosine of "
            "different texts and 1."
        )
        yield table


def _units_said(near: Near, study: str) -> str:
    found = unit_means(near, study)
    if len(found) < 2:
        return ""
    listed = apa.listing([f"{apa.number(one.mean, 3)} ({one.unit.lower()})" for one in found])
    rises = all(one.above_low > 0 for one in found[1:])
    order = (
        "each above the one before, as in the paper"
        if rises
        else "not each above the one before, as the paper has it"
    )
    floor = f"; different texts have {apa.number(near.floor, 3)}" if near.unrelated else ""
    return f"Of the {near.of}, means by unit are {listed}, {order}{floor}."


def similarity_table(name: str, parts: Sequence[tuple[str, Sequence[Near]]], use: str) -> ApaTable:
    """Lay out Table 4: mean cosine of each text's vector with that of the intact text, the floor, and what lies between.

    Parameters
    ----------
    name : str
    parts : sequence of (str, sequence of Near)
        Data set, and its texts alone and whole prompts.
    use : str
        The embedding model.
    """
    rows: list[tuple[str, ...]] = []
    for title, some in parts:
        for near in some:
            named = f"{title}, {near.of}" if len(parts) > 1 else f"{near.of[0].upper()}{near.of[1:]}"
            cells = [apa.number(near.means.get(level), 3) for level in EMBEDDED]
            rows.append((named, *cells, apa.number(near.floor, 3)))
            if near.unrelated:
                shares = [
                    apa.number(near.share(near.means[level]) if level in near.means else math.nan, 0)
                    for level in EMBEDDED
                ]
                rows.append((SHARE, *shares, apa.number(0.0, 0)))
    return ApaTable(
        name,
        "Similarity of the changed and the intact text",
        ("Data set", *(column_of(level) for level in EMBEDDED), DIFFERENT),
        tuple(rows),
        f"Laid out as Table 4 of Mind Scramble (2024): mean cosine of text vectors by {use}. Text alone: what changes; "
        f"whole prompt: "
        "with the unchanged instruction and question, which raise every value, as the paper’s code embedded it. "
        f"{DIFFERENT}: {_floor_said(parts)}. {SHARE}: from that floor (0) to 1 (100).{_cuts(parts)}",
        Origin(columns=("shown", "unrelated"), rows="mean cosine by level", file=STORED),
    )


def unit_table(name: str, parts: Sequence[tuple[str, Sequence[Near]]], use: str) -> ApaTable | None:
    """Lay out the means of characters, words and sentences with intervals; None where single items were not kept."""
    rows: list[tuple[str, ...]] = []
    for title, some in parts:
        for near in some:
            found = unit_means(near, title)
            if not found:
                continue
            rows.append(Head([f"{title}, {near.of}"]))
            for one in found:
                rows.append(
                    (
                        one.unit,
                        apa.count(one.operations),
                        apa.count(one.items),
                        apa.number(one.mean, 3),
                        apa.interval(one.low, one.high, 3),
                        apa.number(one.above, 3),
                        apa.interval(one.above_low, one.above_high, 3),
                        apa.number(near.share(one.mean), 0),
                    )
                )
            if near.unrelated:
                low, high = near.floor_ends(title)
                rows.append(
                    (
                        DIFFERENT,
                        apa.MISSING,
                        apa.count(len(near.unrelated)),
                        apa.number(near.floor, 3),
                        apa.MISSING if math.isnan(low) else apa.interval(low, high, 3),
                        apa.MISSING,
                        apa.MISSING,
                        apa.number(0.0, 0),
                    )
                )
    if not rows:
        return None
    return ApaTable(
        name,
        "Similarity of changed and intact texts by the unit that changes",
        ("Unit", "Operations", "Items", "Cosine", "95% CI", "Above the unit before", "95% CI", SHARE),
        tuple(rows),
        f"Text vectors by {use}; items that have every operation. Intervals: percentile bootstraps over items (2,000 "
        f"resamples); differences "
        f"are of the same items{_floor_interval(parts)}. Mind Scramble (2024) found .885, .952 and .998 on CommonsenseQA, "
        "whose texts are mostly one sentence "
        f"that operations on sentences leave as it is. {SHARE}: from the cosine of different texts (0) to 1 (100).",
        Origin(
            columns=("shown", "unrelated"),
            rows="cosines of items by level",
            file=STORED,
            computed="means over operations by item; bootstraps over items",
            seed=("units of texts", "text alone or whole prompt"),
        ),
    )


def _floor_interval(parts: Sequence[tuple[str, Sequence[Near]]]) -> str:
    if not any(near.with_all for _, some in parts for near in some):
        return ""
    return f"; of {DIFFERENT.lower()} over pseudo-values of items, since each pair is of two"


def _floor_said(parts: Sequence[tuple[str, Sequence[Near]]]) -> str:
    """Say which intact texts were compared with which."""
    known = [near for _, some in parts for near in some if near.unrelated]
    if not known or not all(near.with_all for near in known):
        return "each item’s intact text (prompt) with another item’s"
    low, high = (apa.count(end(near.pairs for near in known)) for end in (min, max))
    return (
        "each item’s intact text (prompt) with those of all others, "
        f"{low if low == high else f'{low} to {high}'} pairs"
    )


def _cuts(parts: Sequence[tuple[str, Sequence[Near]]]) -> str:
    told = [
        f"{apa.count(near.cut)} of {apa.count(near.texts)} ({title}, {near.of})"
        for title, some in parts
        for near in some
        if near.cut
    ]
    return (
        f" Longer than the model reads, so that their end is not in the vectors: {apa.listing(told)}."
        if told
        else ""
    )
