"""Rankings: robustness by size within families, recovery and the task, and error patterns of readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis import rankings
from analysis.figures.fidelity import recovery_figure, size_figure, told_size
from analysis.measures.accuracy import asked, at_chance
from analysis.mixed.inference import corrected
from analysis.multiple_comparisons import with_adjusted
from analysis.names import upper_first
from analysis.readers import PARTICIPANT_KINDS, spoken
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.report.subgroups import of_part, parts_by
from analysis.tables import Tables
from stimuli.errors import UserError

LAYOUT = ChapterLayout(Path(__file__).parent)
MANY_MODELS = 8  # fewer models do not support conclusions about models in general
MOST_REPORTED = 8  # pairs of readers whose error consistency the text reports
Missing = list[tuple[str, str]]  # what is not estimable: a passage of the text, and the reason


def write(material: Material) -> Chapter | None:
    """Write the chapter; None for a study without conditions, and one with a single reader."""
    trials = material.tables.trials
    used = trials[
        trials["excluded_reason"].isna() & trials["reader_kind"].isin(("human", "simulated", "model"))
    ]
    if not material.tables.factors or used["reader"].nunique() < 2:
        return None
    planned = [analysis.plan.factor for analysis in material.analyses if analysis.plan.planned]
    factors = list(material.tables.factors)
    factor = next((name for name in planned if name in factors), factors[0])
    groups = [str(group) for group in used["reader_group"].unique()]
    models = [group for group in groups if material.kinds[group] == "model"]
    remarks: list[Block] = []

    def by_parts(write_part: Callable[[Material, str, Missing], Iterator[Block]]) -> list[Block]:
        """Write one passage for each part's trials."""
        blocks: list[Block] = []
        for part in parts_by(factor, asked(used), material.tables):
            missing: Missing = []
            part_material = replace(material, tables=part.of(material.tables))
            blocks += of_part(write_part(part_material, part.factor, missing), part)
            remarks.extend(LAYOUT.sentences(passage, why=why, part=part.told) for passage, why in missing)
        return blocks

    ranks: list[Block] = []
    if models:
        ranks = by_parts(_sizes_part)
        missing: Missing = []
        ranks += _recovery_part(material, factor, missing)
        remarks += [LAYOUT.sentences(passage, why=why, part="") for passage, why in missing]
    errors = by_parts(_errors_part)
    is_few = len(models) < MANY_MODELS and bool(ranks or errors)
    blocks = [*(LAYOUT.blocks("few", models=len(models)) if is_few else []), *ranks, *errors]
    if remarks:
        blocks += LAYOUT.blocks("not_estimable", remarks=list(dict.fromkeys(remarks)))
    passages = ["ranks"] * bool(models) + ["errors"] * bool(errors)
    return LAYOUT.chapter(
        "rankings",
        blocks,
        groups,
        material.kinds,
        methods=[LAYOUT.sentences(f"methods_of_{name}") for name in passages],
    )


def _guessing(tables: Tables, factor: str) -> set[str]:
    """Return the models whose accuracy with intact text is not shown to exceed chance: no ranking includes them."""
    study, intact = str(tables.dictionary["study"]), tables.levels_of(factor)[0]
    return at_chance(tables.trials, tables.items, tables.factors, factor, intact, study)


def _sizes_part(material: Material, factor: str, missing: Missing) -> Iterator[Block]:
    tables = material.tables
    material.told(f"robustness by {factor}")
    try:
        sizes = rankings.sizes(tables.dictionary["readers"])
        robustness = rankings.robustness(tables, factor)
    except UserError as error:
        missing.append(("no_robustness", error.message))
        return
    study, guessing = str(tables.dictionary["study"]), _guessing(tables, factor)
    table = rankings.robustness_table(robustness, sizes).assign(
        at_chance=lambda rows: rows["model"].isin(guessing)
    )
    able = {model: size for model, size in sizes.items() if model not in guessing}
    guessing = table.loc[table["at_chance"], "model"].tolist()
    slopes = rankings.robustness_by_size(robustness, able, study)
    unknown = [
        str(model) for model in table.loc[table["family"].isna() | table["parameters"].isna(), "model"]
    ]
    robustness_table = LAYOUT.table(
        "robustness",
        table.sort_values(["at_chance", "lost"]),
        guessing=guessing,
        factor=factor,
        told_size=told_size,
    )
    steep = drawing = None
    if slopes.empty:
        missing.append(("no_slopes", ", ".join(unknown)))
    else:
        slopes = with_adjusted(slopes)
        drawing = size_figure(
            "robustness_by_size", table[table["parameters"].notna() & ~table["at_chance"]], slopes
        )
        steep = LAYOUT.table("size_slopes", slopes, factor=factor)
    rows = slopes.to_dict("records")
    yield from LAYOUT.blocks(
        "sizes",
        table=robustness_table,
        slopes=steep,
        figure=drawing,
        rows=rows,
        unknown=unknown,
        guessing=table.loc[table["at_chance"], "model"].tolist(),
    )


def _recovery_part(material: Material, factor: str, missing: Missing) -> Iterator[Block]:
    if "recover" not in set(material.tables.trials["trial_type"].dropna()):
        return
    material.told(f"recovery and task by {factor}")
    try:
        order = rankings.recovery_order(material.tables, factor, _guessing(material.tables, factor))
    except UserError as error:
        missing.append(("no_order", error.message))
        return
    table = LAYOUT.table(
        "recovery_order", order.table.sort_values("recovery_rank"), factor=factor, found=order
    )
    drawing = recovery_figure("recovery_and_task", order.table)
    yield from LAYOUT.blocks("recovery", table=table, figure=drawing, found=order)


def _errors_part(material: Material, factor: str, missing: Missing) -> Iterator[Block]:
    material.told(f"error patterns by {factor}")
    try:
        vectors = rankings.error_vectors(material.tables, factor)
    except UserError as error:
        missing.append(("no_errors", error.message))
        return
    blocks = [*_matched(material, vectors, factor, missing), *_consistency(vectors, factor, missing)]
    if blocks and vectors.left_out:
        blocks += LAYOUT.blocks("left_out", left_out=vectors.left_out, kinds=vectors.kinds)
    yield from blocks


def _matched(
    material: Material, vectors: rankings.ErrorVectors, factor: str, missing: Missing
) -> list[Block]:
    """Write whether halves of readers find their own reader by error pattern."""
    study = str(material.tables.dictionary["study"])
    sides = [(spoken(group), [group]) for group, kind in vectors.kinds.items() if kind in PARTICIPANT_KINDS]
    models = [group for group, kind in vectors.kinds.items() if kind == "model"]
    if len(models) == 1:
        missing.append(("one_model", ""))
    elif models:
        sides.append(("models", models))
    matchings: list[tuple[str, rankings.Matching]] = []
    for reader, groups in sides:
        try:
            matchings += [(reader, matching) for matching in rankings.matchings(vectors, groups, study)]
        except UserError as error:
            missing.append(("no_errors", error.message))
    if not matchings:
        return []
    adjusted = corrected(np.array([matching.p for _, matching in matchings]), "BH")
    rows = [
        {"who": upper_first(reader), "matching": matching, "adjusted": float(p), "by_session": matching.features == rankings.CELLS}
        for (reader, matching), p in zip(matchings, adjusted, strict=True)
    ]  # fmt: skip
    return LAYOUT.blocks("matched", table=LAYOUT.table("told_apart", rows, factor=factor), rows=rows)


def _consistency(vectors: rankings.ErrorVectors, factor: str, missing: Missing) -> list[Block]:
    """Write whether pairs of readers err on the same items; in full for pairs with people, where there are any."""
    pairs = rankings.error_consistency(vectors)
    if pairs.empty:
        missing.append(("no_pairs", ""))
        return []
    table = LAYOUT.table("error_consistency", pairs, factor=factor)
    people = pairs["one"].map(lambda group: vectors.kinds[group] in PARTICIPANT_KINDS)
    rows = (pairs[people] if people.any() else pairs).to_dict("records")
    more = max(len(rows) - MOST_REPORTED, 0)
    return LAYOUT.blocks(
        "consistency", table=table, rows=rows[:MOST_REPORTED], more=more, kinds=vectors.kinds
    )
