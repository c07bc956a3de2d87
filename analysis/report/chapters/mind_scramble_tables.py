"""Tables of Mind Scramble laid out as in the paper, from studies of one's own, and the price of its scorers' faults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.measures.stored_similarity import FILE
from analysis.published.mind_scramble import (
    ACCURACY,
    BASE,
    COSINE,
    EDITS,
    IN_PLACE,
    NEARNESS,
    PRICES,
    PROGRAM_COSINE,
    REORDERINGS,
    Slope,
    Values,
    kept,
)
from analysis.published.mind_scramble_floors import floors
from analysis.published.mind_scramble_ranks import (
    FEWEST_MODELS,
    Part,
    agreements,
    alike_throughout,
    not_in_all,
    ranks,
)
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin

_MEANS = "means by item, then over items"
ORIGINS = {
    ACCURACY: Origin(
        columns=("correct", "response_status", "replicate", GROUP, "item_id"),
        rows=f"excluded_reason empty; failures as wrong; {_MEANS}",
    ),
    IN_PLACE: Origin(
        columns=("score", "scorer", "response_status", "replicate", GROUP, "item_id"),
        rows=f"excluded_reason empty; scorer published_typobench, valid answers; {_MEANS}",
    ),
    NEARNESS: Origin(
        columns=("score", "scorer", "response_status", "replicate", GROUP, "item_id"),
        rows=f"excluded_reason empty; failures as 0; where the scorer is published_typobench, mended of {PRICES}; {_MEANS}",
    ),
    COSINE: Origin(columns=("similarity",), rows=f"answers of used trials; {_MEANS}", file=FILE),
    PROGRAM_COSINE: Origin(columns=("similarity",), rows=f"answers of used trials; {_MEANS}", file=FILE),
}
FAULTS_ORIGIN = Origin(
    columns=("data_set", "rule", "value"),
    rows="replies of used trials, by data set and rule",
    file=PRICES,
)
ABOVE_FLOOR = "cosine with the own answer, in % of the way from the cosine of answers about different texts (0) to 1 (100)"
SPREAD = "±\N{NO-BREAK SPACE}SD"
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
            rows.append(Head([f"{title}: {values.measure.name}"]))
        for group in values.of_items:
            cells = [apa.number(values.mean(group, level), 1) for level in (BASE, *shown)]
            mean, share = kept(values, group, shown)
            rows.append((marked(group, kinds[group]), *cells, apa.number(mean, 1), apa.number(share, 1)))
            spread = [values.replicates(group, level)[1] for level in (BASE, *shown)]
            if any(map(math.isfinite, spread)):
                rows.append((SPREAD, *(apa.number(sd, 1) for sd in spread), apa.MISSING, apa.MISSING))
    return ApaTable(
        name,
        f"Reordering at the level of characters, words and sentences{_measured(parts)}",
        columns,
        tuple(rows),
        f"Laid out as Table {number} of Mind Scramble (2024). Mean: over the reorderings, where none is missing; % of BASE: the same "
        f"against intact text (relative retention). {SPREAD}: standard deviation of the means of replicates, where these "
        f"differ.{_remarks(parts)}",
        ORIGINS[parts[0][1].measure],
        of_paper=True,
    )


def floor_table(
    name: str, parts: Sequence[tuple[str, Values]], kinds: Mapping[str, str], study: str = ""
) -> ApaTable | None:
    """Lay out readers' cosines above those of their answers about different texts; None where these were not compared.

    Parameters
    ----------
    name : str
    parts : sequence of (str, Values)
    kinds : mapping
    study : str, optional
        Seeds the bootstraps; by default each part's name does.
    """
    rows: list[tuple[str, ...]] = []
    for title, values in parts:
        found = floors(values, study or title)
        if found and len(parts) > 1:
            rows.append(Head([title]))
        rows += [
            (
                marked(one.group, kinds[one.group]),
                apa.count(one.items),
                apa.number(one.mean, 1),
                apa.number(one.floor, 1),
                apa.number(one.share, 1),
                apa.interval(one.low, one.high, 1),
            )
            for one in found
        ]
    if not rows:
        return None
    return ApaTable(
        name,
        "Summaries and translations above the floor: does a reader say of each text what it says of that text alone?",
        ("Reader", "Items", "Own answer", "Different texts", "% of the way", "95% CI"),
        tuple(rows),
        "Own answer: 100 × cosine with the reader’s own answer about the intact text, mean over the reorderings. Different texts: "
        "the same of the reader’s answers about the intact texts of different items, each with all others; a reader who says one "
        "sentence of every text has 100 in both. % of the way: from that floor (0) to the same answer (100); "
        f"{apa.MISSING} where nothing lies between. Intervals: percentile bootstraps over items (2,000 resamples), floors over "
        f"pseudo-values of items, since each pair is of two; {apa.MISSING} with fewer than three items. Mind Scramble (2024) has "
        "the own answer alone.",
        Origin(
            columns=("similarity", "unrelated"),
            rows=f"answers of used trials; {_MEANS}",
            file=FILE,
            computed="100 × (own answer − different texts)/(100 − different texts); bootstraps over items",
            seed=("floor of answers", "reader"),
        ),
    )


def edit_table(name: str, parts: Sequence[tuple[str, Values]], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out Table 3: a row per insertion and deletion, a column per reader; the last row mean and mean / BASE."""
    groups = list(dict.fromkeys(group for _, values in parts for group in values.of_items))
    rows: list[tuple[str, ...]] = []
    for title, values in parts:
        if len(parts) > 1:
            rows.append(Head([f"{title}: {values.measure.name}"]))
        own = [group if group in values.of_items else None for group in groups]
        for level in (BASE, *EDITS):
            cells = [apa.MISSING if one is None else _with_spread(values, one, level) for one in own]
            rows.append((level, *cells))
        held = [(math.nan, math.nan) if one is None else kept(values, one, EDITS) for one in own]
        rows.append(("Mean", *(apa.number(mean, 1) for mean, _ in held)))
        rows.append(("% of BASE", *(apa.number(share, 1) for _, share in held)))
    return ApaTable(
        name,
        f"Characters inserted and deleted at the beginning and the end of words{_measured(parts)}",
        ("Operation", *(marked(group, kinds[group]) for group in groups)),
        tuple(rows),
        "Laid out as Table 3 of Mind Scramble (2024); its last line, absolute/relative, is two lines here, where no operation is "
        "missing. ± is the standard "
        f"deviation of the means of replicates, where these differ.{_remarks(parts)}",
        ORIGINS[parts[0][1].measure],
        of_paper=True,
    )


def slope_table(name: str, found: Sequence[Slope], kinds: Mapping[str, str], values: Values) -> ApaTable:
    """Lay out the series of Figure 4 with the points lost for each operation.

    Parameters
    ----------
    name : str
    found : sequence of Slope
        Of ``values``, whose measure they have.
    kinds : mapping
    values : Values
    """
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
        f"Operations inside each word and what each costs: {values.measure.name}",
        ("Reader", *(str(count) for count in range(most + 1)), "Slope", "95% CI"),
        tuple(rows),
        "Columns: operations inside each word (0 is BASE). Slope: points for each further operation, "
        f"least squares by item; bootstrap over items ({apa.MISSING} where items do not differ). As released, two exchanges may "
        "restore a word of four letters, so that its series of reordering need not fall; corrected exchanges never cancel.",
        ORIGINS[values.measure],
        of_paper=True,
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
                    apa.count(one["items"]),
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
        ("Fault that is mended", "Replies", "Items", "Released", "Without it", "Price", "95% CI", "Turned"),
        tuple(rows),
        "Released, without it: % by the released rule, and by the same rule without this one fault. Price: the difference in "
        "percentage points; above 0, the fault gives points away; its interval is a bootstrap over items, each with all "
        f"its replies, and {apa.MISSING} where no reply, or every one alike, is counted differently, so that resamples say nothing of "
        "other items. Turned: replies that are judged otherwise. Prices of single "
        "faults need not add up to that of all. Of programs the released value is 100 × the cosine with the reference program, "
        "which says of no reply whether it is right.",
        FAULTS_ORIGIN,
        of_paper=True,
    )


def rank_table(name: str, parts: Sequence[Part], kinds: Mapping[str, str]) -> ApaTable | None:
    """Lay out models' ranks in each task; None where no model is in all of them."""
    table = ranks(parts, kinds)
    if table.empty:
        return None
    names = [title for title, _ in parts]
    rows = []
    for group, own in table.iterrows():
        cells = [
            cell
            for title in names
            for cell in (apa.number(own[title], 1), apa.number(own[f"rank {title}"], 1))
        ]
        rows.append((marked(str(group), kinds[str(group)]), *cells))
    few = (
        f" Fewer than {apa.NUMBERS[FEWEST_MODELS]} models: how alike two orders are is not told."
        if len(table) < FEWEST_MODELS
        else ""
    )
    return ApaTable(
        name,
        "Models by their mean over reorderings, task by task",
        ("Model", *(head for title in names for head in (title, "Rank"))),
        tuple(rows),
        "Models that are in every study; people, simulated readers and baselines are not ranked. "
        f"{_each(parts)}{_unranked(parts, kinds)} Mind Scramble (2024) found the order of seven of eight models alike in Tables 1 "
        f"and 2.{few}",
        ORIGINS[parts[0][1].measure],
    )


def agreement_table(
    name: str, completed: Sequence[Part], perceived: Sequence[Part], kinds: Mapping[str, str]
) -> ApaTable | None:
    """Lay out how alike the models' orders in perception and completion are; None below three models."""
    found = agreements(completed, perceived, kinds)
    if not found:
        return None
    return ApaTable(
        name,
        "Order of models in perception against completion",
        ("Completion", "Perception", "Models", "Same rank", "Kendall’s τ-b", "95% CI"),
        tuple(
            (
                one.completion,
                one.perception,
                apa.count(one.models),
                apa.count(one.same),
                apa.number(one.tau, 2),
                apa.interval(one.low, one.high, 2),
            )
            for one in found
        ),
        "Of the models’ means over reorderings: 1 is the same order, −1 the reverse. Intervals: bootstraps over the items "
        "of both tasks (2,000 resamples), of these models; they say nothing of other models. "
        f"{apa.MISSING}: all resamples have the same order, or fewer than half have one.",
        Origin(
            computed="Kendall’s τ-b of the means of the table of ranks; items drawn anew in each task",
            seed=("task", "ranks"),
        ),
    )


def _measured(parts: Sequence[Part]) -> str:
    """Name the measure in a title, where there is but one."""
    names = {values.measure.name for _, values in parts}
    return f": {names.pop()}" if len(names) == 1 else ""


def _each(parts: Sequence[Part]) -> str:
    """Say in which measure each task is told."""
    told = [f"{title}, {ABOVE_FLOOR if values.floors else values.measure.name}" for title, values in parts]
    return f"Measures: {'; '.join(told)}."


def _unranked(parts: Sequence[Part], kinds: Mapping[str, str]) -> str:
    """Name the models without a rank: not in every task, or with cosines that say nothing (the same answer to every text)."""
    reasons = {
        "not every operation of a task has answers of theirs": not_in_all(parts, kinds),
        "they answer alike about different texts": alike_throughout(parts, kinds),
    }
    said = ""
    for reason, found in reasons.items():
        named = [f"{marked(group, kinds[group])} ({name})" for group, name in found]
        said += f" Not ranked, since {reason}: {apa.listing(named)}." if named else ""
    return said


def _remarks(parts: Sequence[Part]) -> str:
    """Say what a table's measures leave out, or have by their making."""
    said = ""
    if any(values.measure == IN_PLACE for _, values in parts):
        said += " Replies in which the released parser found no field are left out, as it left them out."
    if any(values.measure == COSINE for _, values in parts):
        said += (
            " BASE is each answer with itself, thus 100. As published, every reply without the field stands as one and the same "
            "sentence: where the answer to BASE lacks it too, the cosine is 1. So it is of a reader who says the same of every text."
        )
    return said


def column_of(level: str) -> str:
    """Return the head of a level's column."""
    for start, unit in _SHORT.items():
        if level.startswith(f"{start}-"):
            return f"{unit} {level.removeprefix(start + '-')}"
    return level


def _with_spread(values: Values, group: str, level: str) -> str:
    mean = values.mean(group, level)
    sd = values.replicates(group, level)[1]
    if not (math.isfinite(sd) and math.isfinite(mean)):
        return apa.number(mean, 1)
    return apa.joined(apa.number(mean, 1), "±", apa.number(sd, 1))
