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
from analysis.published.mind_scramble import (
    ACCURACY,
    BASE,
    COSINE,
    EDITS,
    EMBEDDED,
    FEWEST_MODELS,
    IN_PLACE,
    NEARNESS,
    PRICES,
    PROGRAM_COSINE,
    REORDERED,
    STORED,
    Near,
    Part,
    Slope,
    Values,
    agreements,
    alike_throughout,
    floors,
    kept,
    not_in_all,
    ranks,
    unit_means,
)
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.layout import Layout

LAYOUT = Layout(Path(__file__).parent)
_MEANS = "means by item, then over items"
_ANSWERS = ("response_status", "replicate", GROUP, "item_id")
_COSINES = Origin(columns=("similarity",), rows=f"answers of used trials; {_MEANS}", file=FILE)
ORIGINS = {
    ACCURACY: Origin(
        columns=("correct", *_ANSWERS), rows=f"excluded_reason empty; failures as wrong; {_MEANS}"
    ),
    IN_PLACE: Origin(
        columns=("score", "scorer", *_ANSWERS),
        rows=f"excluded_reason empty; scorer published_typobench, valid answers; {_MEANS}",
    ),
    NEARNESS: Origin(
        columns=("score", "scorer", *_ANSWERS),
        rows=f"excluded_reason empty; failures as 0; where the scorer is published_typobench, mended of {PRICES}; {_MEANS}",
    ),
    COSINE: _COSINES,
    PROGRAM_COSINE: _COSINES,
}
ABOVE_FLOOR = "cosine with the own answer, in % of the way from the cosine of answers about different texts (0) to 1 (100)"
SHARE = "% of the way"
SPREAD = "±\N{NO-BREAK SPACE}SD"
_SHORT = {"WORD-REO": "Word", "SENT-REO": "Sentence", "REO": "Character"}
Row = dict[str, Any]
Texts = Sequence[tuple[str, Sequence[Near]]]
"""Data sets, each with its texts alone and whole prompts."""


def _column_of(level: str) -> str:
    """Return the head of a level's column."""
    for start, unit in _SHORT.items():
        if level.startswith(f"{start}-"):
            return f"{unit} {level.removeprefix(start + '-')}"
    return level


HEADS = {level: _column_of(level) for level in (BASE, *REORDERED, *EMBEDDED)}


def _head(parts: Sequence[Part], title: str, values: Values) -> str:
    return f"{title}: {values.measure.name}" if len(parts) > 1 else ""


def _of_measures(parts: Sequence[Part]) -> Row:
    """Return the end of a title, where there is but one measure, and which remarks measures need."""
    measures = {values.measure for _, values in parts}
    names = {one.name for one in measures}
    return {
        "measured": f": {names.pop()}" if len(names) == 1 else "",
        "in_place": IN_PLACE in measures,
        "is_cosine": COSINE in measures,
    }


def reordering_table(name: str, parts: Sequence[Part], kinds: Mapping[str, str], *, number: int) -> ApaTable:
    """Lay out Table 1 (completion) or 2 (perception): a row per reader under each data set, a column per reordering."""
    levels = (BASE, *REORDERED)
    rows: list[Row] = []
    for title, values in parts:
        for group in values.of_items:
            mean, share = kept(values, group, REORDERED)
            head = {"head": _head(parts, title, values)}
            cells = {level: apa.number(values.mean(group, level), 1) for level in levels}
            ends = {"mean": apa.number(mean, 1), "share": apa.number(share, 1)}
            rows.append({**head, "reader": marked(group, kinds[group]), "cells": cells, **ends})
            spread = {level: values.replicates(group, level)[1] for level in levels}
            if any(map(math.isfinite, spread.values())):
                cells = {level: apa.number(sd, 1) for level, sd in spread.items()}
                rows.append(
                    {**head, "reader": SPREAD, "cells": cells, "mean": apa.MISSING, "share": apa.MISSING}
                )
    table = LAYOUT.table(
        "reordering", rows, name, levels=levels, heads=HEADS, paper_table=number, **_of_measures(parts)
    )
    return replace(table, origin=ORIGINS[parts[0][1].measure])


def floor_table(
    name: str, parts: Sequence[Part], kinds: Mapping[str, str], study: str = ""
) -> ApaTable | None:
    """Lay out readers' cosines above those of their answers about different texts; None where these were not compared.

    Bootstraps are seeded by ``study``, or by the name of each part.
    """
    rows = [
        {"head": title if len(parts) > 1 else "", **vars(one)}
        for title, values in parts
        for one in floors(values, study or title)
    ]
    return LAYOUT.table("floors", rows, name, kinds=kinds, file=FILE) if rows else None


def edit_table(name: str, parts: Sequence[Part], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out Table 3: a row per insertion and deletion, a column per reader; the last row mean and mean / BASE."""
    groups = list(dict.fromkeys(group for _, values in parts for group in values.of_items))
    rows: list[Row] = []
    for title, values in parts:
        head = _head(parts, title, values)
        for level in (BASE, *EDITS):
            cells = {
                group: _with_spread(values, group, level) if group in values.of_items else apa.MISSING
                for group in groups
            }
            rows.append({"head": head, "operation": level, "cells": cells})
        held = {
            group: kept(values, group, EDITS) if group in values.of_items else (math.nan, math.nan)
            for group in groups
        }
        for place, what in enumerate(("Mean", "% of BASE")):
            cells = {group: apa.number(one[place], 1) for group, one in held.items()}
            rows.append({"head": head, "operation": what, "cells": cells})
    table = LAYOUT.table("edits", rows, name, groups=groups, kinds=kinds, **_of_measures(parts))
    return replace(table, origin=ORIGINS[parts[0][1].measure])


def _with_spread(values: Values, group: str, level: str) -> str:
    mean, sd = values.mean(group, level), values.replicates(group, level)[1]
    if not (math.isfinite(sd) and math.isfinite(mean)):
        return apa.number(mean, 1)
    return apa.joined(apa.number(mean, 1), "±", apa.number(sd, 1))


def slope_table(name: str, found: Sequence[Slope], kinds: Mapping[str, str], values: Values) -> ApaTable:
    """Lay out the series of Figure 4 with the points lost for each operation."""
    most = max(max(one.counts) for one in found)
    rows = [
        {**vars(one), "by_count": dict(zip(one.counts, one.means, strict=True))}
        for operation in dict.fromkeys(one.operation for one in found)
        for one in found
        if one.operation == operation
    ]
    counts = range(most + 1)
    table = LAYOUT.table("slopes", rows, name, kinds=kinds, measure=values.measure.name, counts_shown=counts)
    return replace(table, origin=ORIGINS[values.measure])


def fault_table(name: str, prices: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out what each fault of the released scorers is worth on the replies at hand."""
    grouped = [own for _, own in prices.groupby(["data_set", GROUP], sort=False)]
    return LAYOUT.table("faults", pd.concat(grouped), name, kinds=kinds, file=PRICES)


def rank_table(name: str, parts: Sequence[Part], kinds: Mapping[str, str]) -> ApaTable | None:
    """Lay out models' ranks in each task; None where no model is in all of them."""
    table = ranks(parts, kinds)
    if table.empty:
        return None
    columns = [(title, column) for title, _ in parts for column in (title, f"rank {title}")]
    rows = [
        {
            "reader": marked(str(group), kinds[str(group)]),
            "cells": [apa.number(own[column], 1) for _, column in columns],
        }
        for group, own in table.iterrows()
    ]
    measures = [
        f"{title}, {ABOVE_FLOOR if values.floors else values.measure.name}" for title, values in parts
    ]

    def named(found: Sequence[tuple[str, str]]) -> list[str]:
        return [f"{marked(group, kinds[group])} ({task})" for group, task in found]

    laid = LAYOUT.table(
        "ranks",
        rows,
        name,
        heads=[title if column == title else "Rank" for title, column in columns],
        places=range(len(columns)),
        measures="; ".join(measures),
        not_in_all=named(not_in_all(parts, kinds)),
        alike=named(alike_throughout(parts, kinds)),
        is_few=len(table) < FEWEST_MODELS,
    )
    return replace(laid, origin=ORIGINS[parts[0][1].measure])


def agreement_table(
    name: str, completed: Sequence[Part], perceived: Sequence[Part], kinds: Mapping[str, str]
) -> ApaTable | None:
    """Lay out how alike the models' orders in perception and completion are; None below three models."""
    found = agreements(completed, perceived, kinds)
    return LAYOUT.table("agreements", map(vars, found), name) if found else None


def similarity_table(name: str, parts: Texts, use: str) -> ApaTable:
    """Lay out Table 4: mean cosine of each text's vector by ``use`` with that of the intact text, the floor, and what lies between."""
    rows: list[Row] = []
    every = [(title, near) for title, some in parts for near in some]
    for title, near in every:
        named = f"{title}, {near.of}" if len(parts) > 1 else f"{near.of[0].upper()}{near.of[1:]}"
        means = {level: near.means.get(level, math.nan) for level in EMBEDDED}
        cells = {level: apa.number(mean, 3) for level, mean in means.items()}
        rows.append({"data_set": named, "cells": cells, "floor": apa.number(near.floor, 3)})
        if near.unrelated:
            cells = {level: apa.number(near.share(mean), 0) for level, mean in means.items()}
            rows.append({"data_set": SHARE, "cells": cells, "floor": apa.number(0.0, 0)})
    known = [near for _, near in every if near.unrelated]
    pairs = sorted({near.pairs for near in known} if all(near.with_all for near in known) else ())
    return LAYOUT.table(
        "similarity",
        rows,
        name,
        heads=HEADS,
        levels=EMBEDDED,
        use=use,
        file=STORED,
        pairs=" to ".join(map(apa.count, dict.fromkeys((pairs[0], pairs[-1])))) if pairs else "",
        cuts=[
            f"{apa.count(one.cut)} of {apa.count(one.texts)} ({title}, {one.of})"
            for title, one in every
            if one.cut
        ],
    )


def unit_table(name: str, parts: Texts, use: str) -> ApaTable | None:
    """Lay out the means of characters, words and sentences with intervals; None where single items were not kept."""
    rows: list[Row] = []
    for title, near in ((title, near) for title, some in parts for near in some):
        head = {"head": f"{title}, {near.of}"}
        found = unit_means(near, title)
        rows += [
            {**head, **vars(one), "ci": apa.interval(one.low, one.high, 3), "share": near.share(one.mean)}
            for one in found
        ]
        if found and near.unrelated:
            low, high = near.floor_ends(title)
            told = {"unit": "Different texts", "operations": 0, "items": len(near.unrelated), "share": 0.0}
            ci = apa.MISSING if math.isnan(low) else apa.interval(low, high, 3)
            rows.append({**head, **told, "mean": near.floor, "ci": ci})
    if not rows:
        return None
    with_all = any(near.with_all for _, some in parts for near in some)
    return LAYOUT.table("units", rows, name, use=use, file=STORED, with_all=with_all)
