"""What both chapters on H-TEST compare: the same model shown text and shown pictures, and both parsers of its replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.departures import why_no_bound
from analysis.intervals import OF_SHARES
from analysis.mixed.inference import corrected
from analysis.names import in_words, upper_first
from analysis.plan import ALPHA
from analysis.published import h_test as paper
from analysis.readers import group_order, named
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Material
from analysis.report.layout import Layout

NAMES = {
    **{task: upper_first(in_words(task)) for task in (*paper.TASKS, "letter_geometry")},
    **{"average": "Average", paper.ALL: "All tasks"},
}
LAYOUT = Layout(Path(__file__).parent, names=NAMES, of_shares=OF_SHARES, alpha=ALPHA)
Row = dict[str, Any]


def bound_of(material: Material) -> tuple[float | None, str | None]:
    """Return the plan's bound for equivalence of accuracy, as half a width in shares and in words; None without one."""
    for one in material.analyses:
        bound = one.plan.equivalence
        if one.plan.measure.name == "correct" and bound is not None and bound.unit == "points":
            return bound.half_width / 100, bound.said or f"{bound.value:g} points"
    return None, None


def no_bound(material: Material) -> str:
    """Return why there is no bound for equivalence of accuracy, where :func:`bound_of` finds none."""
    return why_no_bound(one.plan for one in material.analyses if one.plan.measure.name == "correct")


def adjusted(rows: Sequence[Row]) -> list[Row]:
    """Return comparisons with Benjamini-Hochberg's p over all of them."""
    return [
        row | {"adjusted": float(p)}
        for row, p in zip(rows, corrected(np.array([row["p"] for row in rows]), "BH"), strict=True)
    ]


def pictures(
    trials: pd.DataFrame,
    readers: Mapping[str, Any],
    half: float | None,
    bound: str | None,
    *,
    tasks: Sequence[str] = paper.TASKS,
    names: Mapping[str, str] = NAMES,
    why: str = "",
) -> Iterator[Block]:
    """Compare models that were shown pictures with the same models shown text, by task; nothing where there is no such pair."""
    rows_of = {str(group): own for group, own in trials.groupby("reader_group")}
    order = group_order(trials)
    pairs = [pair for pair in paper.picture_pairs(readers) if set(pair) <= set(rows_of)]
    pairs.sort(key=lambda pair: [order.index(group) for group in pair])
    if not pairs:
        return
    rows: list[Row] = []
    for text, looks in pairs:
        how = ", examples as text" if paper.shows_examples_as_text(readers[looks]) else ""
        head = f"{text} (text), {looks} (pictures{how})"
        for part in paper.pictures_by_part(rows_of[text], rows_of[looks], half, tasks):
            told = {"text": text, "looks": looks, "head": head, "part": part, "name": _named(part, names)}
            rows.append(told | vars(part.compared))
    if not rows:
        yield LAYOUT.sentences("too_few_pictures")
        return
    rows = adjusted(rows)
    values: dict[str, Any] = {"noun": "task" if names is NAMES else "kind", "bound": bound}
    table = LAYOUT.table(
        "pictures",
        rows,
        "h_test_pictures" if names is NAMES else "letter_geometry_pictures",
        first_head="% text",
        second_head="% pictures",
        is_parted=any(row["part"].making or row["part"].k is not None for row in rows),
        **values,
    )
    heads = dict.fromkeys(row["head"] for row in rows)
    told_pairs = [_pair([row for row in rows if row["head"] == head]) for head in heads]
    yield from LAYOUT.blocks("pictures", table=table, pairs=told_pairs, why=why, **values)


def _named(part: paper.Part, names: Mapping[str, str]) -> str:
    if part.making:
        return f"{part.making.capitalize()} items"
    return names[part.task] if part.k is None else f"k\u00a0=\u00a0{part.k}"


def _pair(rows: Sequence[Row]) -> Row:
    """Return one pair's comparison over all items, and the tasks in which pictures help, harm, make no difference, or neither."""
    whole = [one for one in rows if one["part"] == paper.Part(paper.ALL, "", None, one["part"].compared)]
    sorted_by: dict[str, list[str]] = {name: [] for name in ("better", "worse", "alike", "rest")}
    for one in rows:
        if one["part"].task != paper.ALL:
            kind = "alike" if one["p_equal"] < ALPHA else "rest"
            if one["adjusted"] < ALPHA:
                kind = "better" if one["difference"] > 0 else "worse"
            sorted_by[kind].append(one["name"].lower())
    return {"text": rows[0]["text"], "looks": rows[0]["looks"], "whole": whole, **sorted_by}


def parsers_table(
    name: str, read: Sequence[paper.BothParsers], kinds: Mapping[str, str], names: Mapping[str, str] = NAMES
) -> ApaTable:
    """Compare the published parser with a correct one, task by task and model by model."""
    replies: Counter[str] = Counter()
    for one in read:
        replies[one.reader_group] += one.replies if one.task != "average" else 0
    rows = [vars(one) | {"of_reader": replies[one.reader_group]} for one in read]
    unit = "Task" if names is NAMES else "Questions"
    return LAYOUT.table("parsers", rows, name, kinds=kinds, names=names, unit=unit)


def parsers_blocks(
    name: str, read: Sequence[paper.BothParsers], kinds: Mapping[str, str], names: Mapping[str, str] = NAMES
) -> Iterator[Block]:
    """Give both parsers' accuracy over all that each reader was asked, and the table behind it."""
    means = [
        one
        for one in read
        if one.task == "average" and kinds[one.reader_group] != "baseline" and one.compared is not None
    ]
    yield from LAYOUT.blocks(
        "parsers",
        table=parsers_table(name, read, kinds, names),
        kinds=kinds,
        differing=[one for one in means if one.published != one.corrected],
        alike=[named(one.reader_group, dict(kinds)) for one in means if one.published == one.corrected],
    )
