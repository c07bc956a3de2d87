"""Fidelity: whether models show people's effects, find the same items hard, and order conditions in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis import fidelity
from analysis.figures import Drawing
from analysis.figures.fidelity import MapScale, fidelity_map, item_scatter
from analysis.names import plain
from analysis.plan_deviations import why_no_bound
from analysis.readers import PARTICIPANT_KINDS
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED
from analysis.report.layout import ChapterLayout
from analysis.report.results import adjusted_by
from analysis.report.results.tables import origin_of_contrasts
from analysis.results import Analysis, as_percent
from analysis.tables import Tables
from stimuli.errors import UserError

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_REPORTED = 6
"""Pairs of difference and model up to which the text reports each; of more it reports counts."""
YES, NOT_SHOWN, UNKNOWN = "yes", "not shown", "–"
"""Answers to "Does the model differ from people?" and "Is it equivalent?"."""
PAIRS = [("correct", "correct"), ("correct", "margin")]
PAIRS += product(("reading_time", "rt"), ("surprisal", "completion_tokens", "reasoning_tokens"))
WORDS = LAYOUT.names
DRAWN = {("correct", "correct"), ("reading_time", "surprisal"), ("rt", "surprisal")}
MOST_DRAWN = 8  # models whose items are drawn; those of more are in the table
LEAST_DRAWN = 4


def write(material: Material) -> Chapter | None:
    """Write the chapter; None without people (or simulated readers) and a model."""
    trials = material.tables.trials
    used = trials[trials["excluded_reason"].isna()]
    present = set(used["reader_kind"].unique())
    if not present & set(PARTICIPANT_KINDS) or "model" not in present or not material.tables.factors:
        return None
    compared_analyses = compared(material)
    missing: list[Markup] = [] if compared_analyses else [LAYOUT.sentences("no_effects")]
    blocks = LAYOUT.blocks("questions")
    for analysis, table in compared_analyses:
        blocks += effects_blocks(analysis, table, material)
    factors = material.tables.factors
    planned = dict.fromkeys(
        analysis.plan.factor for analysis, _ in compared_analyses if analysis.plan.factor in factors
    )
    for factor in planned or factors:
        blocks += _items_part(material, factor, missing)
        blocks += _order_part(material, factor, missing)
    if missing:
        blocks += LAYOUT.blocks("not_estimable", missing=list(dict.fromkeys(missing)))
    bounded = any(analysis.plan.equivalence is not None for analysis, _ in compared_analyses)
    return LAYOUT.chapter(
        "fidelity",
        blocks,
        map(str, used["reader_group"].unique()),
        material.kinds,
        planned=any(analysis.plan.planned for analysis, _ in compared_analyses),
        methods=LAYOUT.paragraphs("methods", has_effects=bool(compared_analyses), bounded=bounded),
    )


def compared(material: Material) -> list[tuple[Analysis, pd.DataFrame]]:
    """Return the analyses that hold people and models (planned ones, if any), with their effects; ``attrs`` name people's measure."""
    results = []
    by_key: dict[str, Analysis] = {}
    for analysis in material.analyses:
        groups = analysis.plan.groups if analysis.plan.planned else analysis.groups
        if groups and material.kinds.get(groups[0]) in PARTICIPANT_KINDS:
            by_key.setdefault(analysis.plan.key or analysis.plan.name, analysis)
    for analysis in material.analyses:
        first = by_key.get(analysis.plan.key or analysis.plan.name)
        if first is None or not (analysis.has_results or first.has_results):
            continue
        try:
            table = fidelity.effects(analysis) if first is analysis else fidelity.effects(analysis, first)
        except UserError:  # people alone, or models alone
            continue
        if len(table):  # fidelity of baselines is not assessed
            table = table[table["model"].map(material.kinds.get) != "baseline"].reset_index(drop=True)
        if len(table):
            table.attrs["people"] = first.plan.measure.noun
            results.append((analysis, table))
    return [result for result in results if result[0].plan.planned] or results


def effects_blocks(analysis: Analysis, table: pd.DataFrame, material: Material) -> list[Block]:
    """Write the fidelity of the effects of one analysis: sentences, table, map."""
    plan, kinds = analysis.plan, material.kinds
    stem, measure, bound = plain(plan.name), plan.measure, plan.equivalence
    noun, scale = str(table.attrs["people"]), measure.scale
    estimated = table[table["human"].notna() & table["machine"].notna()]
    drawing = None
    if len(estimated):
        bound_text = "" if bound is None else bound.said or f"{bound.value:g}"
        units = {"points": "percentage points", "ratio": "natural log of the ratio"}
        of_map = MapScale(measure.noun, units.get(scale, measure.unit), noun)
        drawing = fidelity_map(f"fidelity_map_{stem}", estimated, kinds, of_map, bound_text)
    rows = _printed(table, analysis).to_dict("records")
    values: dict[str, Any] = {
        "analysis": analysis,
        "adjusted_by": adjusted_by(analysis),
        "people": str(table["people"].iloc[0]),
        "noun": measure.noun if noun == measure.noun else f"{noun} (people) and {measure.noun} (models)",
        "bound": None if bound is None else bound.said or bound.value,
        "why": why_no_bound([plan]),
        "scale": scale,
        "places": 2 if scale == "raw" else 1,
        "kinds": kinds,
        "rows": rows,
    }
    effects_table = LAYOUT.table(
        "effects",
        origin=origin_of_contrasts([analysis]),
        name=f"fidelity_{stem}",
        level=round(100 * (1 - 2 * plan.alpha)),
        left_out=list(dict.fromkeys(str(why) for why in table["why"] if why)),
        **values,
    )
    return LAYOUT.blocks(
        "effects",
        table=effects_table,
        figure=drawing,
        contrasts=list(dict.fromkeys(row["contrast"] for row in rows)),
        models=[_counts(rows, model) for model in dict.fromkeys(row["model"] for row in rows)],
        in_full=len(rows) <= MOST_REPORTED,
        most_named=MOST_DIFFERENCES_NAMED,
        NOT_ESTIMABLE=fidelity.NOT_ESTIMABLE,
        **values,
    )


def _printed(table: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Return effects in the unit that is printed (percent of ratios), with the answers to both questions."""
    shown = table.copy()
    for side in ("human", "machine", "difference", "equivalence"):
        columns = [name for name in (side, f"{side}_low", f"{side}_high") if name in shown]
        values = shown[columns].astype(float)
        if analysis.plan.measure.scale == "ratio":
            values = values.map(as_percent)
        shown[columns] = values.where(np.isfinite(values))
        shown.loc[shown[columns[-2:]].isna().any(axis=1), columns[-2:]] = np.nan
    estimable = shown["verdict"] != fidelity.NOT_ESTIMABLE
    for name, is_so in (
        ("differs", shown["p"] < analysis.plan.alpha),
        ("equivalent", shown["verdict"].isin((fidelity.EQUIVALENT, fidelity.BOTH))),
    ):
        shown[name] = np.where(estimable, np.where(is_so, YES, NOT_SHOWN), UNKNOWN)
    return shown


def _counts(rows: list[dict[Any, Any]], model: str) -> dict[str, Any]:
    """Return the differences of one model by the answers to both questions."""
    model_rows = [row for row in rows if row["model"] == model]
    names = {
        answer: [row["contrast"] for row in model_rows if row["differs"] == answer]
        for answer in (YES, NOT_SHOWN, UNKNOWN)
    }
    return {
        "model": model,
        "answers": [(answer, contrasts) for answer, contrasts in names.items() if contrasts],
        "equivalent": [row["contrast"] for row in model_rows if row["equivalent"] == YES],
        "reversed": sum(
            not row["same_direction"] for row in model_rows if row["verdict"] != fidelity.NOT_ESTIMABLE
        ),
    }


def _pairs_of(tables: Tables) -> list[tuple[str, str]]:
    """Return the measures that people and models have, people's first; one kind of time is enough."""
    trials = tables.trials[tables.trials["excluded_reason"].isna()]
    people, models = (
        {
            name
            for name in WORDS
            if name in trials and trials.loc[trials["reader_kind"].isin(kinds), name].notna().any()
        }
        for kinds in (PARTICIPANT_KINDS, ("model",))
    )
    pairs = [
        (of_people, of_model) for of_people, of_model in PAIRS if of_people in people and of_model in models
    ]
    has_reading_time = any(of_people == "reading_time" for of_people, _ in pairs)
    return [pair for pair in pairs if not (has_reading_time and pair[0] == "rt")]


def _items_part(material: Material, factor: str, missing: list[Markup]) -> list[Block]:
    """Correlate items within conditions, measure by measure."""
    by_pair: dict[tuple[str, str], pd.DataFrame] = {}
    for pair in _pairs_of(material.tables):
        names = [WORDS[measure] for measure in pair]
        material.told(f"items: {names[0]} and {names[1]} by {factor}")
        try:
            table = fidelity.item_agreement(material.tables, factor, *pair)
        except UserError as error:
            missing.append(LAYOUT.sentences("no_items", names=names, why=error.message))
            continue
        if len(table):
            by_pair[pair] = table
    if not by_pair:
        missing.append(LAYOUT.sentences("too_few_items", factor=factor))
        return []
    rows = [
        {**row, "level": str(row[factor]), "of_people": WORDS[of_people], "of_model": WORDS[of_model]}
        | {"is_sure": bool(np.isfinite(row["corrected"])) and not row["unsure"]}
        for (of_people, of_model), table in by_pair.items()
        for _, pair_rows in table.rename(columns={"correlation": "r"}).groupby(
            ["people", "model"], sort=False
        )
        for row in pair_rows.to_dict("records")
    ]
    values: dict[str, Any] = {"factor": factor, "kinds": material.kinds}
    return LAYOUT.blocks(
        "items",
        table=LAYOUT.table("items", rows, f"items_{factor}", **values),
        figures=list(_scatters(by_pair, material, factor, missing)),
        rows=[row for row in rows if row["level"] == fidelity.WITHIN],
        **values,
    )


def _scatters(
    by_pair: dict[tuple[str, str], pd.DataFrame], material: Material, factor: str, missing: list[Markup]
) -> Iterator[Drawing]:
    for pair, table in by_pair.items():
        if pair not in DRAWN:
            continue
        people_means = fidelity.item_means_by_level(material.tables, factor, pair[0])
        model_means = (
            people_means
            if pair[0] == pair[1]
            else fidelity.item_means_by_level(material.tables, factor, pair[1])
        )
        turn = 0
        for (people, model), rows in table.groupby(["people", "model"], sort=False):
            rows = rows[(rows[factor] != fidelity.WITHIN) & (rows["items"] >= LEAST_DRAWN)]
            if rows.empty or material.kinds[str(model)] == "baseline":
                continue
            turn += 1
            if turn > MOST_DRAWN:
                missing.append(LAYOUT.sentences("not_drawn", model=model, most=MOST_DRAWN))
                continue
            name = f"items_{plain(str(people), str(model), pair[1], factor)}"
            means = (
                people_means[str(people)],
                model_means[str(model)].reindex(people_means[str(people)].index),
            )
            readers = (str(people), str(model))
            yield item_scatter(name, means, rows.set_index(factor), readers, material.kinds, pair)


def _order_part(material: Material, factor: str, missing: list[Markup]) -> list[Block]:
    """Compare the order of conditions of people with each model's."""
    tables = material.tables
    if len(tables.levels_of(factor)) < 3:
        missing.append(LAYOUT.sentences("two_levels", factor=factor))
        return []
    rows = []
    for of_people, of_model in _pairs_of(tables):
        material.told(f"order: {WORDS[of_people]} and {WORDS[of_model]} by {factor}")
        profiles = fidelity.trial_profiles(tables, factor, of_people)
        models = profiles if of_people == of_model else fidelity.trial_profiles(tables, factor, of_model)
        for people in (profile for profile in profiles if profile.kind in PARTICIPANT_KINDS):
            for model in (profile for profile in models if profile.kind not in PARTICIPANT_KINDS):
                try:
                    row: dict[Any, Any] = fidelity.rank_agreement(people, [model]).iloc[0].to_dict()
                except UserError as error:
                    missing.append(LAYOUT.sentences("no_order", why=error.message))
                    continue
                names = {
                    "of_people": WORDS[of_people],
                    "of_model": WORDS[of_model],
                    "is_accuracy": of_people == of_model,
                }
                rows.append({**row, **names, "people": people.group, "model": model.group})
    if not rows:
        missing.append(LAYOUT.sentences("no_conditions", factor=factor))
        return []
    table = LAYOUT.table("order", rows, f"order_{factor}", factor=factor)
    accuracy = [row for row in rows if row["is_accuracy"]]
    return LAYOUT.blocks("order", table=table, rows=accuracy, factor=factor, kinds=material.kinds)
