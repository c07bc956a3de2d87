"""Mind Scramble's tables and figures from the study's own run, and what the faults of its scorers are worth on these replies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis import apa
from analysis.figures.mind_scramble import cost_figure, series_figure
from analysis.measures.accuracy import GROUP
from analysis.measures.retention import cost_ratios
from analysis.published import mind_scramble as paper
from analysis.readers import group_order, kinds_of, marked
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.chapters.mind_scramble import tables as laid
from analysis.tables import Tables
from stimuli.errors import UserError


def write(material: Material) -> Chapter | None:
    """Write what the paper shows of a study with its TypoFuncs; None for any other study."""
    tables = material.tables
    factor = paper.factor_of(tables)
    if factor is None:
        return None
    material.told("Mind Scramble's tables")
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    kinds = {group: kinds_of(used)[group] for group in group_order(used)}
    study = str(tables.dictionary["study"])
    values = paper.values_of(tables, factor)
    blocks: list[Block] = []
    for place, one in enumerate(values):
        blocks += _of_values(one, kinds, study, f"_{one.measure.key}" if place else "")
    blocks += _costs(tables, factor, kinds, study)
    blocks += _similarity(tables, study)
    blocks += _faults(tables, kinds)
    if not kinds:
        return None
    methods = (
        laid.LAYOUT.paragraphs("methods", measures=[one.measure.method for one in values]) if blocks else ()
    )
    blocks = blocks or laid.LAYOUT.blocks("not_judged")
    return laid.LAYOUT.chapter("mind-scramble", blocks, kinds, kinds, methods=methods)


def _of_values(values: paper.Values, kinds: Mapping[str, str], study: str, behind: str) -> Iterator[Block]:
    """Write the tables and the series of one measure, whose names end in ``behind``."""
    parts = [("", values)]
    seen = set(values.levels)
    number = 2 if values.measure.is_perception else 1
    told: dict[str, Any] = {}
    if seen & set(paper.REORDERED):
        told["reordering"] = laid.reordering_table(f"ms_reordering{behind}", parts, kinds, number=number)
    if seen & set(paper.EDITS):
        told["edits"] = laid.edit_table(f"ms_edits{behind}", parts, kinds)
    if found := paper.slopes(values, study):
        told["series"] = series_figure(f"ms_series{behind}", found, kinds, values.measure.axis)
        told["slopes"] = laid.slope_table(f"ms_slopes{behind}", found, kinds, values)
    yield from laid.LAYOUT.blocks(
        "values",
        **dict.fromkeys(("reordering", "edits", "slopes", "series")) | told | steepest(found, kinds),
        floors=laid.floor_table(f"ms_floors{behind}", parts, kinds, study),
        measure=values.measure,
        paper_table=number,
        kinds=kinds,
    )


def steepest(found: Sequence[paper.Slope], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return whether any series falls by as much as is shown, and of those whose items differ the one that falls most."""
    readers = [one for one in found if kinds[one.group] != "baseline"] or list(found)
    falling = [one for one in readers if round(one.slope, 2) < 0]
    sure = [one for one in falling if math.isfinite(one.low)]
    return {"falling": bool(falling), "steepest": min(sure, key=lambda one: one.slope, default=None)}


def _costs(tables: Tables, factor: str, kinds: Mapping[str, str], study: str) -> Iterator[Block]:
    used = tables.trials
    if not (used[factor] == paper.BASE).any():
        return
    measures = ("prompt_tokens", "completion_tokens", "latency_ms")
    ratios = cost_ratios(used, factor, intact=paper.BASE, measures=measures, study=study)
    if ratios.empty:
        return
    wide = ratios.pivot_table(index=[GROUP, factor], columns="measure", values="published", sort=False)
    measure = "latency_ms" if "latency_ms" in wide else "completion_tokens"
    if "prompt_tokens" not in wide or measure not in wide:
        return
    points = wide[["prompt_tokens", measure]].dropna().reset_index()
    if len(points):
        is_timed = measure == "latency_ms"
        time = "Completion time" if is_timed else "Completion tokens"
        points = points.rename(columns={measure: "cost", factor: "level"})
        drawing = cost_figure("ms_costs", points, kinds, time)
        yield from laid.LAYOUT.blocks("costs", drawing=drawing, is_timed=is_timed)


def _similarity(tables: Tables, study: str) -> Iterator[Block]:
    """Write how near the texts are that a study showed (Table 4); a sentence with the reason where the file cannot be read."""
    try:
        told = paper.stored_texts(tables.folder)
    except UserError as error:
        yield laid.LAYOUT.sentences("no_similarities", why=f"{error.message}. {error.mend or ''}".strip(" ."))
        return
    if told is None:
        return
    use, parts = told
    first = parts[0] if parts else None
    found = paper.unit_means(first, study) if first else []
    yield from laid.LAYOUT.blocks(
        "similarity",
        table=laid.similarity_table("ms_similarity", [(study, parts)], use),
        units=laid.unit_table("ms_similarity_units", [(study, parts)], use),
        found=found,
        means=[f"{apa.number(one.mean, 3)} ({one.unit.lower()})" for one in found],
        rises=all(one.above_low > 0 for one in found[1:]),
        of=first.of if first else "",
        floor=apa.number(first.floor, 3) if first and first.unrelated else "",
    )


def _faults(tables: Tables, kinds: Mapping[str, str]) -> Iterator[Block]:
    prices = paper.fault_prices(tables)
    if prices.empty:
        return
    whole = prices[(prices["rule"] == "mended") | (prices["data_set"] == paper.PROGRAMS)]
    alike = [str(group) for group in whole.loc[whole["turned"] == 0, GROUP]]
    yield from laid.LAYOUT.blocks(
        "faults",
        table=laid.fault_table("ms_faults", prices, kinds),
        differing=whole[~whole[GROUP].isin(alike)].to_dict("records"),
        alike=[marked(group, kinds[group]) for group in alike],
        programs=paper.PROGRAMS,
        kinds=kinds,
    )
