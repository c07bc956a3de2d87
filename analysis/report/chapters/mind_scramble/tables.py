"""Tables of Mind Scramble, from one study or several, in the paper's layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.measures.similarity import FILE
from analysis.names import upper_first
from analysis.published import mind_scramble as paper
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.layout import Layout

LAYOUT = Layout(Path(__file__).parent)
_MEANS = "means by item, then over items"
_ANSWERS = ("response_status", "replicate", GROUP, "item_id")
_COSINES = Origin(columns=("similarity",), rows=f"answers of used trials; {_MEANS}", file=FILE)
_ANSWERED = Origin(columns=("score", "scorer", *_ANSWERS))
ORIGINS = {
    paper.ACCURACY: Origin(
        columns=("correct", *_ANSWERS), rows=f"excluded_reason empty; failures as wrong; {_MEANS}"
    ),
    paper.IN_PLACE: replace(
        _ANSWERED, rows=f"excluded_reason empty; scorer published_typobench, valid answers; {_MEANS}"
    ),
    paper.NEARNESS: replace(
        _ANSWERED,
        rows=f"excluded_reason empty; failures as 0; where the scorer is published_typobench, mended of {paper.PRICES}; {_MEANS}",
    ),
    paper.COSINE: _COSINES,
    paper.PROGRAM_COSINE: _COSINES,
}
ABOVE_FLOOR = "cosine with the own answer, in % of the way from the cosine of answers about different texts (0) to 1 (100)"
SHARE = "% of the way"
SPREAD = "±\N{NO-BREAK SPACE}SD"
Row = dict[str, Any]
Texts = Sequence[tuple[str, Sequence[paper.Near]]]
"""Data sets, each with its texts alone and whole prompts."""


_SHORT = {"WORD-REO": "Word", "SENT-REO": "Sentence", "REO": "Character"}
HEADS = {
    level: next(
        (
            f"{unit} {level.removeprefix(f'{start}-')}"
            for start, unit in _SHORT.items()
            if level.startswith(f"{start}-")
        ),
        level,
    )
    for level in (paper.BASE, *paper.REORDERED, *paper.EMBEDDED)
}
"""Heads of levels' columns."""


def _head(parts: Sequence[paper.Part], title: str, values: paper.Values) -> str:
    return f"{title}: {values.measure.name}" if len(parts) > 1 else ""


def _of_measures(parts: Sequence[paper.Part]) -> Row:
    """Return the end of a title, where there is but one measure, and which remarks measures need."""
    measures = {values.measure for _, values in parts}
    names = {one.name for one in measures}
    return {
        "measured": f": {names.pop()}" if len(names) == 1 else "",
        "in_place": paper.IN_PLACE in measures,
        "is_cosine": paper.COSINE in measures,
    }


def reordering_table(
    name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str], *, number: int
) -> ApaTable:
    """Lay out Table 1 (completion) or 2 (perception): a row per reader under each data set, a column per reordering."""
    levels = (paper.BASE, *paper.REORDERED)
    rows: list[Row] = []
    for title, values in parts:
        head = _head(parts, title, values)
        for group in values.of_items:
            mean, share = paper.kept(values, group, paper.REORDERED)
            cells = {level: values.mean(group, level) for level in levels}
            reader = marked(group, kinds[group])
            rows.append({"head": head, "reader": reader, "cells": cells, "mean": mean, "share": share})
            spread = {level: values.replicates(group, level)[1] for level in levels}
            if any(map(math.isfinite, spread.values())):
                rows.append({"head": head, "reader": SPREAD, "cells": spread, "mean": None, "share": None})
    values_of = {"levels": levels, "heads": HEADS, "paper_table": number, **_of_measures(parts)}
    return replace(LAYOUT.table("reordering", rows, name, **values_of), origin=ORIGINS[parts[0][1].measure])


def floor_table(
    name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str], study: str = ""
) -> ApaTable | None:
    """Lay out cosines above those of answers about different texts, bootstraps seeded by ``study`` or each part; None without."""
    rows = [
        {"head": title if len(parts) > 1 else "", **vars(one)}
        for title, values in parts
        for one in paper.floors(values, study or title)
    ]
    return LAYOUT.table("floors", rows, name, kinds=kinds, file=FILE) if rows else None


def edit_table(name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out Table 3: a row per insertion and deletion, a column per reader; the last row mean and mean / BASE."""
    groups = list(dict.fromkeys(group for _, values in parts for group in values.of_items))
    rows: list[Row] = []
    for title, values in parts:
        own = values.of_items
        by_row = {
            level: {group: _with_spread(values, group, level) for group in own}
            for level in (paper.BASE, *paper.EDITS)
        }
        held = {group: paper.kept(values, group, paper.EDITS) for group in own}
        for place, what in enumerate(("Mean", "% of BASE")):
            by_row[what] = {group: apa.number(one[place], 1) for group, one in held.items()}
        head = _head(parts, title, values)
        rows += [{"head": head, "operation": what, "cells": cells} for what, cells in by_row.items()]
    table = LAYOUT.table("edits", rows, name, groups=groups, kinds=kinds, **_of_measures(parts))
    return replace(table, origin=ORIGINS[parts[0][1].measure])


def _with_spread(values: paper.Values, group: str, level: str) -> str:
    mean, sd = values.mean(group, level), values.replicates(group, level)[1]
    if not (math.isfinite(sd) and math.isfinite(mean)):
        return apa.number(mean, 1)
    return apa.joined(apa.number(mean, 1), "±", apa.number(sd, 1))


def slope_table(
    name: str, found: Sequence[paper.Slope], kinds: Mapping[str, str], values: paper.Values
) -> ApaTable:
    """Lay out the series of Figure 4 with the points lost for each operation."""
    order = list(dict.fromkeys(one.operation for one in found))
    rows = [
        {**vars(one), "by_count": dict(zip(one.counts, one.means, strict=True))}
        for one in sorted(found, key=lambda one: order.index(one.operation))
    ]
    counts = range(max(max(one.counts) for one in found) + 1)
    table = LAYOUT.table("slopes", rows, name, kinds=kinds, measure=values.measure.name, counts_shown=counts)
    return replace(table, origin=ORIGINS[values.measure])


def fault_table(name: str, prices: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out what each fault of the released scorers is worth on the replies at hand."""
    grouped = [own for _, own in prices.groupby(["data_set", GROUP], sort=False)]
    return LAYOUT.table("faults", pd.concat(grouped), name, kinds=kinds, file=paper.PRICES)


def rank_table(name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str]) -> ApaTable | None:
    """Lay out models' ranks in each task; None where no model is in all of them."""
    table = paper.ranks(parts, kinds)
    if table.empty:
        return None
    columns = [(title, column) for title, _ in parts for column in (title, f"rank {title}")]
    rows = [{"group": group, "cells": dict(own)} for group, own in table.iterrows()]
    laid = LAYOUT.table(
        "ranks",
        rows,
        name,
        heads={column: title if column == title else "Rank" for title, column in columns},
        columns=[column for _, column in columns],
        measures=[(title, ABOVE_FLOOR if own.floors else own.measure.name) for title, own in parts],
        not_in_all=_in_tasks(paper.not_in_all(parts, kinds), kinds),
        alike=_in_tasks(paper.alike_throughout(parts, kinds), kinds),
        is_few=len(table) < paper.FEWEST_MODELS,
        kinds=kinds,
    )
    return replace(laid, origin=ORIGINS[parts[0][1].measure])


def _in_tasks(found: Sequence[tuple[str, str]], kinds: Mapping[str, str]) -> list[str]:
    return [f"{marked(group, kinds[group])} ({task})" for group, task in found]


def agreement_table(
    name: str, completed: Sequence[paper.Part], perceived: Sequence[paper.Part], kinds: Mapping[str, str]
) -> ApaTable | None:
    """Lay out how alike the models' orders in perception and completion are; None below three models."""
    found = paper.agreements(completed, perceived, kinds)
    return LAYOUT.table("agreements", map(vars, found), name) if found else None


def similarity_table(name: str, parts: Texts, use: str) -> ApaTable:
    """Lay out Table 4: mean cosine of each text's vector by ``use`` with that of the intact text, the floor, and what lies between."""
    rows: list[Row] = []
    every = [(title, near) for title, some in parts for near in some]
    for title, near in every:
        named = f"{title}, {near.of}" if len(parts) > 1 else upper_first(near.of)
        means = {level: near.means.get(level, math.nan) for level in paper.EMBEDDED}
        rows.append({"data_set": named, "cells": means, "floor": near.floor, "places": 3})
        if near.unrelated:
            shares = {level: near.share(mean) for level, mean in means.items()}
            rows.append({"data_set": SHARE, "cells": shares, "floor": 0.0, "places": 0})
    known = [near for _, near in every if near.unrelated]
    pairs = sorted({near.pairs for near in known} if all(near.with_all for near in known) else ())
    cut = [(title, near) for title, near in every if near.cut]
    return LAYOUT.table(
        "similarity",
        rows,
        name,
        heads=HEADS,
        levels=paper.EMBEDDED,
        use=use,
        file=paper.STORED,
        pairs=" to ".join(map(apa.count, dict.fromkeys((pairs[0], pairs[-1])))) if pairs else "",
        cuts=[
            f"{apa.count(one.cut or 0)} of {apa.count(one.texts)} ({title}, {one.of})" for title, one in cut
        ],
    )


def unit_table(name: str, parts: Texts, use: str) -> ApaTable | None:
    """Lay out the means of characters, words and sentences with intervals; None where single items were not kept."""
    rows: list[Row] = []
    for title, near in ((title, near) for title, some in parts for near in some):
        head = {"head": f"{title}, {near.of}"}
        found = paper.unit_means(near, title)
        rows += [{**head, **vars(one), "share": near.share(one.mean)} for one in found]
        if found and near.unrelated:
            low, high = near.floor_ends(title)
            told = {"unit": "Different texts", "operations": 0, "items": len(near.unrelated), "share": 0.0}
            rows.append({**head, **told, "mean": near.floor, "low": low, "high": high})
    if not rows:
        return None
    with_all = any(near.with_all for _, some in parts for near in some)
    return LAYOUT.table("units", rows, name, use=use, file=paper.STORED, with_all=with_all)
