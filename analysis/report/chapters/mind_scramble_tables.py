"""Tables of Mind Scramble laid out as in the paper, from studies of one's own, and the price of its scorers' faults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.published.mind_scramble import BASE, EDITS, REORDERINGS, Slope, Values, kept, ranks
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin

ORIGIN = Origin(
    columns=("correct", "score", "response_status", "replicate", GROUP, "item_id"),
    rows="excluded_reason empty; failures as wrong; means by item, then over items",
)
FAULTS_ORIGIN = Origin(
    columns=("data_set", "rule", "value"),
    rows="replies of used trials, by data set and rule",
    file="published_scoring.parquet",
)
_SHORT = {"WORD-REO": "Word", "SENT-REO": "Sentence", "REO": "Character"}


def reordering_table(
    name: str, parts: Sequence[tuple[str, Values]], kinds: Mapping[str, str], *, number: int
) -> ApaTable:
    """Lay out Table 1 (completion) or 2 (perception): a row per reader under each data set, a column per reordering.

    Parameters
    ----------
    name : str
        File name.
    parts : sequence of (str, Values)
        Data set or task, and its values.
    kinds : mapping
        Reader kind by reader group.
    number : int
        1 or 2.
    """
    shown = [level for _, some in REORDERINGS for level in some]
    columns = ("Reader", BASE, *(column_of(level) for level in shown), "Mean", "% of BASE")
    rows: list[tuple[str, ...]] = []
    for title, values in parts:
        if len(parts) > 1:
            rows.append(Head([title]))
        for group in values.of_items:
            cells = [_with_spread(values, group, level) for level in (BASE, *shown)]
            mean, share = kept(values, group, shown)
            rows.append((marked(group, kinds[group]), *cells, apa.number(mean, 1), apa.number(share, 1)))
    what = (
        "nearness to the intact passage (1 − edit distance/length, %)"
        if parts[0][1].is_restored
        else "% correct"
    )
    return ApaTable(
        name,
        f"Reordering at the level of characters, words and sentences: {what}",
        columns,
        tuple(rows),
        f"Laid out as Table {number} of Mind Scramble (2024). Mean: over the reorderings; % of BASE: the same against intact text "
        "(relative retention). ± is the standard deviation of the means of replicates, where there were several.",
        ORIGIN,
    )


def edit_table(name: str, parts: Sequence[tuple[str, Values]], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out Table 3: a row per insertion and deletion, a column per reader; the last row mean and mean / BASE."""
    groups = list(dict.fromkeys(group for _, values in parts for group in values.of_items))
    rows: list[tuple[str, ...]] = []
    for title, values in parts:
        if len(parts) > 1:
            rows.append(Head([title]))
        own = [group if group in values.of_items else None for group in groups]
        for level in (BASE, *EDITS):
            cells = [apa.MISSING if one is None else _with_spread(values, one, level) for one in own]
            rows.append((level, *cells))
        held = [(math.nan, math.nan) if one is None else kept(values, one, EDITS) for one in own]
        rows.append(("Mean", *(apa.number(mean, 1) for mean, _ in held)))
        rows.append(("% of BASE", *(apa.number(share, 1) for _, share in held)))
    return ApaTable(
        name,
        "Characters inserted and deleted at the beginning and the end of words",
        ("Operation", *(marked(group, kinds[group]) for group in groups)),
        tuple(rows),
        "Laid out as Table 3 of Mind Scramble (2024); its last line, absolute/relative, is two lines here. ± is the standard "
        "deviation of the means of replicates, where there were several.",
        ORIGIN,
    )


def slope_table(name: str, found: Sequence[Slope], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out the series of Figure 4 with the points lost for each operation."""
    most = max(max(one.counts) for one in found)
    rows: list[tuple[str, ...]] = []
    for operation in dict.fromkeys(one.operation for one in found):
        rows.append(Head([operation]))
        for one in found:
            if one.operation == operation:
                means = dict(zip(one.counts, one.means, strict=True))
                cells = [apa.number(means.get(count), 1) for count in range(most + 1)]
                rows.append(
                    (
                        marked(one.group, kinds[one.group]),
                        *cells,
                        apa.number(one.slope, 2),
                        apa.interval(one.low, one.high, 2),
                    )
                )
    return ApaTable(
        name,
        "Operations inside each word and what each costs",
        ("Reader", *(str(count) for count in range(most + 1)), "Slope", "95% CI"),
        tuple(rows),
        "Columns: operations inside each word (0 is BASE), % of the measure. Slope: percentage points for each further operation, "
        "least squares by item; bootstrap over items. As released, two exchanges may restore a word of four letters, so that "
        "its series of reordering need not fall; corrected exchanges never cancel.",
        ORIGIN,
    )


def fault_table(name: str, prices: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out what each fault of the released scorers is worth on the replies at hand."""
    rows: list[tuple[str, ...]] = []
    for (data_set, group), own in prices.groupby(["data_set", GROUP], sort=False):
        rows.append(Head([f"{data_set}: {marked(str(group), kinds[str(group)])}"]))
        for one in own.to_dict("records"):
            rule = "all faults: wrods’ own parser and scorer" if one["rule"] == "mended" else str(one["rule"])
            rows.append(
                (
                    rule,
                    apa.count(one["replies"]),
                    apa.number(one["released"], 1),
                    apa.number(one["value"], 1),
                    apa.number(one["price"], 1),
                    apa.interval(one["low"], one["high"], 1),
                    apa.MISSING if math.isnan(one["turned"]) else apa.count(one["turned"]),
                )
            )
    return ApaTable(
        name,
        "What the faults of the released scorers are worth on these replies",
        ("Fault that is mended", "Replies", "Released", "Without it", "Price", "95% CI", "Turned"),
        tuple(rows),
        "Released, without it: % by the released rule, and by the same rule without this one fault. Price: the difference in "
        "percentage points; above 0, the fault gives points away. Turned: replies that are judged otherwise. Prices of single "
        "faults need not add up to that of all. Of programs the released value is 100 × the cosine with the reference program, "
        "which says of no reply whether it is right.",
        FAULTS_ORIGIN,
    )


def rank_table(name: str, parts: Sequence[tuple[str, Values]], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out readers' ranks in perception against completion."""
    table = ranks(parts)
    names = [title for title, _ in parts]
    rows = []
    for group, own in table.iterrows():
        cells = [
            cell
            for title in names
            for cell in (apa.number(own[title], 1), apa.number(own[f"rank {title}"], 1))
        ]
        rows.append((marked(str(group), kinds[str(group)]), *cells))
    return ApaTable(
        name,
        "Readers by their mean over reorderings, task by task",
        ("Reader", *(head for title in names for head in (title, "Rank"))),
        tuple(rows),
        "Readers that are in every study. Mind Scramble (2024) found the order of seven of eight models alike in Tables 1 and 2.",
        ORIGIN,
    )


def column_of(level: str) -> str:
    """Return the head of a level's column."""
    for start, unit in _SHORT.items():
        if level.startswith(f"{start}-"):
            return f"{unit} {level.removeprefix(start + '-')}"
    return level


def _with_spread(values: Values, group: str, level: str) -> str:
    mean = values.mean(group, level)
    replicates, sd = values.replicates(group, level)
    if replicates < 2 or not math.isfinite(mean):
        return apa.number(mean, 1)
    return apa.joined(apa.number(mean, 1), "±", apa.number(sd, 1))
