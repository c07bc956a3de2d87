"""Mind Scramble's tables and figures from the study's own run, and what the faults of its scorers are worth on these replies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.mind_scramble import cost_figure, series_figure
from analysis.measures.accuracy import GROUP
from analysis.measures.cost import cost_ratios
from analysis.published.mind_scramble import (
    BASE,
    EDITS,
    PROGRAMS,
    REORDERINGS,
    Measure,
    Slope,
    Values,
    factor_of,
    fault_prices,
    slopes,
    values_of,
)
from analysis.readers import group_order, kinds_of, marked, named
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.mind_scramble_similarity import text_similarity
from analysis.report.chapters.mind_scramble_tables import (
    edit_table,
    fault_table,
    floor_table,
    reordering_table,
    slope_table,
)
from analysis.tables import Tables

METHOD = Markup(
    "Tables and figures of Mind Scramble (2024) from these data: means of items, replicates averaged first (± the standard "
    "deviation of the replicates’ means){}. "
    "Retention is the mean over operations, absolute and in percent of BASE. Slopes are least squares of each item over 0 to 4 "
    "operations inside each word, with 95% percentile bootstraps over items. The price of a fault is the mean of the released "
    "scorer’s verdicts minus that of the same scorer without the fault, on the same stored replies, with a bootstrap over items, "
    "each with all its replies. "
    "Cosines of texts are of vectors of changed and intact text, item by item; their floor is the cosine of intact texts of different "
    "items, each with the next in a seeded order."
)

NOT_JUDGED = Markup(
    "No answer of this study is judged yet, so that there are no tables: <code>wrods score --similarity</code> compares answers and "
    "prompts with those of the intact text, <code>wrods score --execute</code> runs programs."
)


def write(material: Material) -> Chapter | None:
    """Write what the paper shows of a study with its TypoFuncs; None for any other study."""
    tables = material.tables
    factor = factor_of(tables)
    if factor is None:
        return None
    material.told("Mind Scramble's tables")
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    kinds = {group: kinds_of(used)[group] for group in group_order(used)}
    study = str(tables.dictionary["study"])
    values = values_of(tables, factor)
    blocks: list[Block] = []
    for place, one in enumerate(values):
        blocks += _of_values(one, kinds, study, f"_{one.measure.key}" if place else "")
    blocks += _costs(tables, factor, kinds, study)
    blocks += text_similarity(tables, study)
    blocks += _faults(tables, kinds)
    if not kinds:
        return None
    return Chapter(
        "mind-scramble",
        "Mind Scramble’s tables and figures",
        tuple(blocks) or (NOT_JUDGED,),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD.format("".join(f"; {one.measure.method}" for one in values)),) if blocks else (),
    )


def _of_values(values: Values, kinds: Mapping[str, str], study: str, behind: str) -> Iterator[Block]:
    """Write the tables and the series of one measure, whose names end in ``behind``."""
    parts = [("", values)]
    seen = set(values.levels)
    if seen & {level for _, some in REORDERINGS for level in some}:
        number = 2 if values.measure.is_perception else 1
        yield Markup("[[table:{}]] has the reorderings ({}), laid out as the paper’s Table {}.").format(
            f"ms_reordering{behind}", values.measure.name, number
        )
        yield reordering_table(f"ms_reordering{behind}", parts, kinds, number=number)
    floors = floor_table(f"ms_floors{behind}", parts, kinds, study)
    if floors is not None:
        yield Markup(
            "[[table:{}]] sets these cosines beside those of answers about different texts: who says the same of every text has "
            "100 in both, and shows nothing of having taken it in."
        ).format(f"ms_floors{behind}")
        yield floors
    if seen & set(EDITS):
        yield Markup("Insertions and deletions at the ends of words stand in [[table:{}]].").format(
            f"ms_edits{behind}"
        )
        yield edit_table(f"ms_edits{behind}", parts, kinds)
    found = slopes(values, study)
    if found:
        yield Markup(
            "[[figure:{}]] and [[table:{}]] show what each further operation inside a word does. {}"
        ).format(f"ms_series{behind}", f"ms_slopes{behind}", _steepest(found, kinds, values.measure))
        yield series_figure(f"ms_series{behind}", found, kinds, values.measure.axis)
        yield slope_table(f"ms_slopes{behind}", found, kinds, values)


def _steepest(found: Sequence[Slope], kinds: Mapping[str, str], measure: Measure) -> Markup:
    """Name the series that falls most, if any falls by as much as is shown in items that differ."""
    readers = [one for one in found if kinds[one.group] != "baseline"] or list(found)
    falling = [one for one in readers if round(one.slope, 2) < 0]
    if not falling:
        return Markup("No series falls with them.")
    sure = [one for one in falling if math.isfinite(one.low)]
    if not sure:
        return Markup(
            "Where a series falls with them, its items do not differ or are too few, so that its slope has no interval."
        )
    steepest = min(sure, key=lambda one: one.slope)
    return Markup("The steepest slope is that of {} for {}: {} {} for each operation, 95% CI {}.").format(
        named(steepest.group, dict(kinds)),
        steepest.operation.lower(),
        apa.number(steepest.slope, 2),
        "percentage points" if "%" in measure.name else "points",
        apa.interval(steepest.low, steepest.high, 2),
    )


def _costs(tables: Tables, factor: str, kinds: Mapping[str, str], study: str) -> Iterator[Block]:
    used = tables.trials
    if not (used[factor] == BASE).any():
        return
    ratios = cost_ratios(
        used, factor, intact=BASE, measures=("prompt_tokens", "completion_tokens", "latency_ms"), study=study
    )
    if ratios.empty:
        return
    wide = ratios.pivot_table(index=[GROUP, factor], columns="measure", values="published", sort=False)
    measure = "latency_ms" if "latency_ms" in wide else "completion_tokens"
    if "prompt_tokens" not in wide or measure not in wide:
        return
    points = wide[["prompt_tokens", measure]].dropna().reset_index()
    points = points.rename(columns={measure: "cost", factor: "level"})
    if points.empty:
        return
    if measure == "latency_ms":
        time = "Completion time"
        yield Markup("[[figure:ms_costs]] sets the time of trials that ran alone against prompt tokens.")
    else:
        time = "Completion tokens"
        yield Markup(
            "[[figure:ms_costs]] sets completion tokens against prompt tokens: no trial was timed alone (wrods run --timing), and "
            "other latencies measure the batch."
        )
    yield cost_figure("ms_costs", points, kinds, time)


def _faults(tables: Tables, kinds: Mapping[str, str]) -> Iterator[Block]:
    prices = fault_prices(tables)
    if prices.empty:
        return
    whole = prices[(prices["rule"] == "mended") | (prices["data_set"] == PROGRAMS)]
    yield Markup("[[table:ms_faults]] prices the faults of the released scorers. {}").format(
        escape(" ".join(_prices_said(whole.to_dict("records"), kinds)))
    )
    yield fault_table("ms_faults", prices, kinds)


def _prices_said(prices: Sequence[Mapping[Any, Any]], kinds: Mapping[str, str]) -> Iterator[str]:
    """Say each reader's price; readers of whom no reply is counted differently together."""
    alike = [str(one[GROUP]) for one in prices if one["turned"] == 0]
    for one in prices:
        if str(one[GROUP]) not in alike:
            yield _said(one, kinds)
    if alike:
        readers = apa.listing([marked(group, kinds[group]) for group in alike])
        yield f"No reply of {readers} is counted differently by the two."


def _said(one: Mapping[Any, Any], kinds: Mapping[str, str]) -> str:
    group = str(one[GROUP])
    numbers = [float(one[name]) for name in ("released", "value", "price")]
    if one["data_set"] == PROGRAMS:
        pairs = (
            ""
            if math.isnan(one["ordered"])
            else (
                f" In {apa.number(one['ordered'], 1)}% of the pairs of a program that passes and one that fails the former has the "
                "larger cosine (50% would be chance)."
            )
        )
        return (
            f"Programs of {marked(group, kinds[group])} have a mean cosine of {apa.number(numbers[0] / 100, 3)} with the reference "
            f"program; {apa.number(numbers[1], 1)}% pass their tests.{pairs}"
        )
    return (
        f"The released scorer gives {marked(group, kinds[group])} {apa.number(numbers[0], 1)}%, the mended one "
        f"{apa.number(numbers[1], 1)}%: a difference of {apa.number(numbers[2], 1)} percentage points."
    )
