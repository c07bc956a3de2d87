"""The chapter on cost: people's times on two scales and word by word, models' tokens and bits, and both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.costs import ratios as item_costs
from analysis.costs.ratios import PERCENTILES, TimeScales, time_scales, time_spreads
from analysis.costs.words import (
    TARGET,
    TIME,
    SpillOver,
    WordTable,
    linking,
    reading_profile,
    spill_over,
    word_table,
)
from analysis.descriptives import describe
from analysis.exclusions import TIMED
from analysis.figures.cost import (
    cost_accuracy_figures,
    cost_profile_figures,
    reading_profile_figures,
    time_distribution_figure,
)
from analysis.frames import indicator
from analysis.intervals import OF_SHARES
from analysis.multiple_comparisons import with_adjusted
from analysis.names import plain
from analysis.plan import MEASURES, Plan, against_reference, remarks_about
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, marked, named, spoken
from analysis.report.apa_tables import ApaTable, decimals
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED, MOST_TOLD, by_level
from analysis.report.layout import ChapterLayout
from analysis.report.results import adjusted_by, statistics
from analysis.report.subgroups import TrialPart, draft_of_part, parts_by
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError, reason_of

LAYOUT = ChapterLayout(
    Path(__file__).parent,
    titles=item_costs.TITLES,
    unit_of=item_costs.UNITS,
    percents=PERCENTILES,
    timed=TIMED,
)
FAILURES = (UserError, np.linalg.LinAlgError, FloatingPointError)
"""What a fit may end with; the chapter reports it and continues."""
TIMES = ("reading_time", "rt")
OF_A_MODEL = ("reasoning_tokens", "completion_tokens", "prompt_tokens", "latency_ms", "surprisal")
"""What is named where no model has it."""
ZONES = {
    "target": "the changed word",
    "target + 1": "the first word after it",
    "target + 2": "the second word after it",
}


class CostPart(Draft):
    """A part of the chapter while it is written."""

    def write(self, passage: str, **values: Any) -> None:
        """Add a passage of the chapter's text."""
        self.blocks += LAYOUT.blocks(passage, **values)


@dataclass(frozen=True)
class By:
    """Whose costs are told: a report's material, its trials of so many participants as can be modelled, and the factor compared."""

    material: Material
    tables: Tables
    factor: str
    thinned: tuple[str, ...] = ()  # what says that participants were sampled


def write(material: Material) -> Chapter | None:
    """Write what reading cost people and models; None where nobody has a time, tokens or surprisal in two conditions."""
    tables, left = item_costs.fewer_participants(material.tables)
    draft = CostPart()
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    for factor, levels in tables.factors.items():
        if len(levels) > 1:
            draft.add(_of_factor(By(material, tables, factor, left), parts_by(factor, used, tables)))
    for cells in tables.crossed:
        if timed_by(material, cells):
            draft.add(on_two_scales(By(material, tables, cells, left)))
    if left:
        draft.methods.append(LAYOUT.sentences("methods_of_sampling", left=left))
    return LAYOUT.chapter("cost", draft, draft.groups, material.kinds, draft.methods)


def _of_factor(by: By, shown: Sequence[TrialPart]) -> CostPart:
    part = CostPart()
    if has_times(by.tables):
        for trial_part in shown:
            part.add(draft_of_part(distributions(trial_part.of(by.material.tables), by.factor), trial_part))
        part.add(on_two_scales(by))
    for trial_part in shown:
        by.material.told(f"cost: each item's cost by {by.factor}{trial_part.told}")
        analyses = () if trial_part.told else by.material.analyses
        part_material = replace(by.material, tables=trial_part.of(by.material.tables), analyses=analyses)
        part.add(
            draft_of_part(
                _of_items(replace(by, material=part_material, tables=trial_part.of(by.tables))), trial_part
            )
        )
    return part


def _of_items(by: By) -> CostPart:
    """Write costs word by word where words were changed, and item by item."""
    part = CostPart()
    words, why_not = _words(by)
    costs = item_costs.unit_costs(by.tables, by.factor, words, of_words=words is not None)
    if words is not None:
        are_people = by.tables.trials["reader_kind"].isin(PARTICIPANT_KINDS)
        if are_people.any():
            part.add(spilling(by, words))
        part.add(profile(by, words))
        if are_people.any() and not are_people.all():
            part.add(milliseconds_a_bit(by, words))
    elif not costs.rows.empty:
        part.blocks += why_not
    if not costs.rows.empty:
        part.add(side_by_side(by, costs))
    return part


def _words(by: By) -> tuple[WordTable | None, list[Block]]:
    """Return the words of a study, or why single words are not compared: the first level has changed words, or no other has."""
    try:
        words = word_table(by.tables, by.factor)
    except UserError as error:
        return None, LAYOUT.blocks("no_words", factor=by.factor, why=error.message)
    is_base = words.words[words.factor] == words.levels[0]
    if (
        words.words.loc[is_base, "is_changed"].any()
        or not (words.words.loc[~is_base, "zone"] == TARGET).any()
    ):
        return None, LAYOUT.blocks("no_words", factor=by.factor, why="", base=words.levels[0])
    return words, []


def side_by_side(by: By, costs: item_costs.UnitCosts) -> CostPart:
    """Write the cost of each condition for each reader: log ratios to the reader's baseline, with accuracy, and as a shape."""
    part, tables = CostPart(), by.material.tables
    factor, base = costs.factor, costs.levels[0]
    recorded = set(costs.rows.loc[costs.rows["reader_kind"] == "model", "measure"])
    costs, free = _without_free(costs)
    if costs.rows.empty:
        return part
    profiles = item_costs.cost_profiles(costs, study=str(tables.dictionary["study"]))
    profiles = [_with_tested(cost_profile, by.material.analyses) for cost_profile in profiles]
    shown = item_costs.shown_profiles(profiles)
    part.groups = group_order(costs.rows)
    kinds = kinds_of(costs.rows)
    ratios = item_costs.log_ratios(profiles, factor) if profiles else pd.DataFrame()
    reader_kinds = tables.trials.loc[tables.trials["excluded_reason"].isna(), "reader_kind"]
    without = [
        key
        for key in _keys(costs.rows)
        if key not in {(cost_profile.measure, cost_profile.group) for cost_profile in profiles}
    ]
    part.write(
        "log_ratios",
        table=_ratio_table(costs, ratios, kinds),
        ratios=[(cost_profile, text) for cost_profile in shown if (text := _ratios_in_words(cost_profile))],
        free=free,
        remarks=costs.remarks,
        has_model=bool((reader_kinds == "model").any()),
        has_people=bool(reader_kinds.isin(PARTICIPANT_KINDS).any()),
        unrecorded=[
            item_costs.TITLES[measure].split(",")[0].lower()
            for measure in OF_A_MODEL
            if measure not in recorded
        ],
        is_timed="latency_ms" in recorded,
        without=[
            f"{marked(group, kinds[group])} ({item_costs.TITLES[name].lower()})" for name, group in without
        ],
        zeros=[
            f"{result.group} ({item_costs.TITLES[result.measure].lower()}, {result.without:,})"
            for result in profiles
            if result.without
        ],
        **{"factor": factor, "base": base, "kinds": kinds, "thinned": by.thinned},
    )
    part.blocks += _against_accuracy(tables, shown, factor, costs.levels)
    part.blocks += _shapes(profiles, shown, factor, base, kinds)
    part.methods = [LAYOUT.sentences("methods_of_log_ratios")]
    return part


def _with_tested(
    cost_profile: item_costs.CostProfile, analyses: Sequence[Analysis]
) -> item_costs.CostProfile:
    """Give the levels that the Results hold against the reference their estimates and intervals there."""
    logged = [analysis for analysis in analyses if analysis.plan.measure.logged]
    return replace(
        cost_profile,
        profile=cost_profile.profile.with_estimated(logged, cost_profile.measure, cost_profile.group),
    )


def _keys(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return every measure and reader group that has costs."""
    return [
        (str(name), str(group))
        for name, group in dict.fromkeys(zip(rows["measure"], rows["reader_group"], strict=True))
    ]


def _without_free(costs: item_costs.UnitCosts) -> tuple[item_costs.UnitCosts, list[str]]:
    """Leave out what costs a reader nothing in any condition (a local model's bill), and name it."""
    most = costs.rows.groupby(["measure", "reader_group"], sort=False)["cost"].transform("max")
    free, kinds = _keys(costs.rows[most == 0]), kinds_of(costs.rows)
    names = [f"{item_costs.TITLES[name].lower()} of {marked(group, kinds[group])}" for name, group in free]
    return replace(costs, rows=costs.rows[most != 0]), names


def _ratios_in_words(cost_profile: item_costs.CostProfile) -> str:
    """Write a reader's log ratios by condition, each with its interval and in percent; empty without any."""
    ratios = {
        level: (value, cost_profile.profile.interval(index))
        for index, level in enumerate(cost_profile.profile.levels)
        if np.isfinite(value := float(cost_profile.profile.estimate[index]))
    }
    values = [
        f"{apa.with_ends(value, ends.low, ends.high)} ({apa.number(100 * np.expm1(value), 1)}%)"
        for value, ends in ratios.values()
    ]
    return by_level(list(ratios), values, [value for value, _ in ratios.values()]) if ratios else ""


def _against_accuracy(
    tables: Tables, shown: list[item_costs.CostProfile], factor: str, levels: tuple[str, ...]
) -> list[Block]:
    trials = tables.trials
    # a million trials have a gigabyte of columns that this needs not copy
    columns = ["reader_group", "reader_kind", "reader", "item_id", "trial_type", "response_status", "correct"]
    used = trials.loc[trials["excluded_reason"].isna(), [*columns, factor]]
    points = item_costs.cost_and_accuracy(shown, describe(used, MEASURES["correct"], factor, levels), factor)
    if points.empty:
        return LAYOUT.blocks("no_accuracy") if shown else []
    values: dict[str, Any] = {"factor": factor, "base": levels[0], "kinds": kinds_of(points)}
    by_reader = [group_rows for _, group_rows in points.groupby(["reader_group", "measure"], sort=False)]
    name, rows = plain("cost_accuracy", factor), []
    for reader_points in by_reader:
        changed, base = (
            reader_points[reader_points[factor] != levels[0]],
            reader_points[reader_points[factor] == levels[0]],
        )
        if not base.empty and not changed.empty:
            most = changed.iloc[int(changed["log_ratio"].to_numpy(dtype=float).argmax())]
            rows.append({"correct": base["correct"].iloc[0], "most": dict(most)})
    return LAYOUT.blocks(
        "accuracy",
        table=LAYOUT.table(
            "accuracy",
            pd.concat(by_reader),
            name,
            shares=OF_SHARES,
            intervals=item_costs.ShownIntervals.of(
                zip(points["reader_kind"], points["is_tested"], points["cost_low"], strict=True)
            ),
            **values,
        ),
        figures=cost_accuracy_figures(name, points, factor, levels),
        rows=rows,
        **values,
    )


def _shapes(
    profiles: list[item_costs.CostProfile],
    shown: list[item_costs.CostProfile],
    factor: str,
    base: str,
    kinds: dict[str, str],
) -> list[Block]:
    """Write profiles scaled to their own mean, each with its difference from the reference reader's."""
    several = [cost_profile for cost_profile in shown if len(cost_profile.profile.levels) > 1]
    if not several:
        return LAYOUT.blocks("one_condition") if shown else []
    reference = next(
        (cost_profile for cost_profile in several if cost_profile.kind in PARTICIPANT_KINDS), None
    )
    table = item_costs.profiles(profiles, factor, (reference.group, reference.measure) if reference else None)
    by_reader = dict(iter(table.groupby(["reader_group", "measure"], sort=False)))
    keys = [
        (cost_profile.group, cost_profile.measure)
        for cost_profile in shown
        if (cost_profile.group, cost_profile.measure) in by_reader
    ]
    shapes = pd.concat([by_reader[key] for key in keys], ignore_index=True)
    is_sure = reference is None or not by_reader[reference.group, reference.measure]["unsure"].any()
    apart, alike = [], []
    for key in keys if reference is not None and is_sure else ():
        rows = by_reader[key]
        rows = rows[~rows["unsure"].astype(bool) & np.isfinite(rows["difference"].to_numpy(dtype=float))]
        away = rows[(rows["difference_low"] > 0) | (rows["difference_high"] < 0)].to_dict("records")
        names = ("difference", "difference_low", "difference_high")
        values = [f"{row[factor]} ({apa.with_ends(*(row[name] for name in names))})" for row in away]
        if values:
            apart.append((_reader(key, kinds), values))
        elif len(rows):
            alike.append(_reader(key, kinds))

    def readers_of(rows: pd.DataFrame) -> list[str]:
        return [marked(group, kinds[group]) for group in dict.fromkeys(rows["reader_group"])]

    unsure = shapes["unsure"].astype(bool)
    name = plain("cost_profiles", factor)
    facts: dict[str, Any] = {
        "factor": factor,
        "reference_name": "" if reference is None else _reader((reference.group, reference.measure), kinds),
    }
    shapes_table = LAYOUT.table(
        "profiles", shapes, name, is_sure=is_sure, has_unsure=unsure.any(), base=base, kinds=kinds, **facts
    )
    return LAYOUT.blocks(
        "profiles",
        table=shapes_table,
        figures=cost_profile_figures(name, shapes, factor, base),
        unsure=readers_of(shapes[unsure & shapes["mean_low"].notna()]),
        unknown=readers_of(shapes[unsure & shapes["mean_low"].isna()]),
        apart=apart,
        alike=alike,
        **facts,
    )


def _reader(key: tuple[str, str], kinds: dict[str, str]) -> str:
    """Name a reader with the measure of its profile."""
    return f"{named(key[0], kinds)} ({item_costs.TITLES[key[1]].lower()})"


def _ratio_table(costs: item_costs.UnitCosts, ratios: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    """Lay out means in each measure's own unit with log ratios against the baseline."""
    factor, keys = costs.factor, ["measure", "reader_group", costs.factor]
    ratio_rows = {tuple(row[key] for key in keys): row for row in ratios.to_dict("records")}
    rows: list[dict[str, Any]] = []
    for key, cell in costs.rows.groupby(keys, sort=False):
        measure, group, level = map(str, key)
        is_people = kinds[group] in PARTICIPANT_KINDS
        column, by = ("value", "reader") if is_people else ("cost", "item")
        mean = float(cell.groupby(by)[column].mean().mean())
        row = {"measure": measure, "reader_group": group, "level": level, "units": int(cell[by].nunique())}
        row |= {"mean": float(np.exp(mean)) if is_people else mean}
        rows.append(row | {"ratio_row": ratio_rows.get((measure, group, level))})
    order = {
        "reader_group": group_order(costs.rows),
        "measure": list(item_costs.TITLES),
        "level": list(costs.levels),
    }
    rows.sort(key=lambda row: [names.index(row[name]) for name, names in order.items()])
    of_parts = {"total_tokens", "surprisal_changed", "surprisal_after"}
    in_trials = {*item_costs.MEASURES_OF_PEOPLE[:2], *item_costs.MEASURES_OF_MODELS} - of_parts
    measures = set(costs.rows["measure"])
    return LAYOUT.table(
        "costs",
        rows,
        plain("cost_ratios", factor),
        factor=factor,
        base=costs.levels[0],
        kinds=kinds,
        names=sorted(in_trials & measures),
        intervals=item_costs.ShownIntervals.of(
            zip(ratios["reader_kind"], ratios["is_tested"], ratios["low"], strict=True) if len(ratios) else ()
        ),
        of_words=not measures <= {*in_trials, "total_tokens"},
    )


def distributions(tables: Tables, factor: str) -> CostPart:
    """Draw and describe how people's times are distributed in each condition."""
    spreads = [spread for name in TIMES for spread in time_spreads(tables, factor, name)]
    if not spreads:
        return CostPart()
    name = plain("time_distributions", factor)
    groups = [
        [spread for spread in spreads if (spread.group, spread.measure) == key]
        for key in dict.fromkeys((spread.group, spread.measure) for spread in spreads)
    ]
    medians = [[spread.percentiles[PERCENTILES.index(50)] for spread in members] for members in groups]
    table = LAYOUT.table(
        "percentiles",
        [{"spread": spread} for members in groups for spread in members],
        name,
        factor=factor,
        kinds={spread.group: spread.kind for spread in spreads},
        measures=list(dict.fromkeys(spread.measure for spread in spreads)),
    )
    part = CostPart(groups=list(dict.fromkeys(spread.group for spread in spreads)))
    part.write(
        "distributions",
        factor=factor,
        table=table,
        figure=time_distribution_figure(name, spreads, factor, tables.levels_of(factor)),
        medians=[
            (
                members[0],
                by_level(
                    [spread.level for spread in members],
                    [apa.milliseconds(median) for median in middle],
                    middle,
                ),
            )
            for members, middle in zip(groups, medians, strict=True)
        ],
    )
    return part


def on_two_scales(by: By) -> CostPart:
    """Compare conditions on the log scale and in milliseconds, for every analysis of times by this factor."""
    part = CostPart()
    plans: list[tuple[Plan, Analysis | None]] = [
        (analysis.plan, analysis) for analysis in timed_by(by.material, by.factor)
    ]
    plans = plans or [(plan, None) for plan in _exploratory_plans(by.tables, by.factor)]
    for plan, done in plans:
        by.material.told(f"cost: {plan.name} on two scales")
        own_model = plan.formula is not None
        if own_model:
            plan = replace(plan, formula=None, fallback=None)
        on_log = None if by.thinned or own_model else done
        try:
            scales = time_scales(plan, by.tables, on_log=on_log)
        except FAILURES as error:
            part.write("no_scales", plan=plan, why=reason_of(error))
            continue
        part.add(_scales(scales, plan, reported=on_log is not None, thinned=by.thinned, own_model=own_model))
    part.blocks[:0] = LAYOUT.blocks("scales_heading", factor=by.factor) if part.blocks else []
    return part


def timed_by(material: Material, factor: str) -> list[Analysis]:
    """Return the analyses of log times that compare conditions of a factor, or cells of two (a logarithm can unmake interactions)."""
    return [
        analysis
        for analysis in material.analyses
        if analysis.plan.factor == factor
        and analysis.plan.measure.name in TIMES
        and analysis.plan.measure.logged
    ]


def _exploratory_plans(tables: Tables, factor: str) -> list[Plan]:
    """Return the comparison of times used if no analysis has one: of the first kind of time that people have."""
    trials = tables.trials
    analysed = trials["excluded_reason"].isna() & trials[factor].notna()
    used = trials.loc[analysed, ["reader_group", "reader_kind", *TIMES]]
    people = [group for group in group_order(used) if group in ("human", "simulated")][:1]
    rows = used[used["reader_group"].isin(people)]
    levels = tables.levels_of(factor)
    for name in TIMES:
        if len(levels) > 1 and (rows[name] > 0).any():
            title = f"{MEASURES[name].noun} by {factor}"
            contrasts = against_reference(levels)
            return [Plan(title, False, MEASURES[name], factor, tuple(levels), tuple(people), contrasts)]
    return []


def _scales(
    scales: TimeScales, plan: Plan, *, reported: bool, thinned: tuple[str, ...], own_model: bool
) -> CostPart:
    part = CostPart(groups=list(plan.groups))
    log, raw = scales.log, scales.own
    if log.model is None or raw.model is None or not log.contrasts:
        remarks = log.remarks if log.model is None or raw.model is not None else raw.remarks
        part.write("not_scaled", plan=plan, remarks=remarks)
        return part
    others = {(contrast.label, contrast.groups): contrast for contrast in raw.contrasts}
    pairs = [(contrast, others.get((contrast.label, contrast.groups))) for contrast in log.contrasts]
    agreeing: dict[str, list[str]] = {}
    for row in scales.table.to_dict("records"):
        readers = " − ".join(map(spoken, str(row["groups"]).split(" − ")))
        agreeing.setdefault(row["agree"], []).append(f"{row['contrast']} ({readers})")
    doubts = list(dict.fromkeys(remarks_about((*log.remarks, *raw.remarks), "uncorrelated slopes")))
    part.write(
        "scales",
        plan=plan,
        scales=[("on the log scale", log), ("in milliseconds", raw)],
        table=_scales_table(plain("time_scales", plan.name), scales, pairs, thinned),
        told=[pair for pair in pairs if len(pairs) <= MOST_TOLD or _is_significant(pair, log.plan.alpha)],
        total=len(pairs),
        agreeing={name: agreeing.get(name, []) for name in _VERDICTS},
        is_counted=any(
            MOST_DIFFERENCES_NAMED < len(names) < len(scales.table) for names in agreeing.values()
        ),
        doubts=doubts,
        statistics=statistics,
        **{"thinned": thinned, "own_model": own_model},
    )
    if not reported and log.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, log scale", log.model.source))
    if raw.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, milliseconds (Gamma, identity link)", raw.model.source))
    part.methods = [LAYOUT.sentences(f"methods_of_{name}") for name in ("scales", "milliseconds")]
    if len(raw.model.steps) > 1:
        part.methods.append(LAYOUT.sentences("methods_of_steps", plan=plan, steps=raw.model.steps))
    return part


_VERDICTS = ("same", "one scale only", "opposite", "not estimable")
Both = tuple[Contrast, Contrast | None]  # a contrast on the log scale and in milliseconds


def _is_significant(pair: Both, alpha: float) -> bool:
    return any(
        contrast is not None and contrast.estimable and contrast.p_adjusted < alpha for contrast in pair
    )


def _scales_table(name: str, scales: TimeScales, pairs: Sequence[Both], thinned: tuple[str, ...]) -> ApaTable:
    """Lay out each difference on both scales, one row per scale."""
    verdicts = {(row["contrast"], row["groups"]): row["agree"] for row in scales.table.to_dict("records")}
    rows: list[dict[str, Any]] = []
    order = list(dict.fromkeys(contrast.groups for contrast, _ in pairs))
    for pair in sorted(pairs, key=lambda pair: order.index(pair[0].groups)):
        first = pair[0]
        for contrast, is_log in zip(pair, (True, False), strict=True):
            estimated = contrast if contrast is not None and contrast.estimable else None
            places = decimals(estimated.se, 2) if estimated is not None and is_log else 1
            row = {"groups": first.groups, "readers": " vs. ".join(map(spoken, first.groups))}
            row |= {"label": first.label, "agree": verdicts[first.label, " − ".join(first.groups)]}
            rows.append({**row, "contrast": estimated, "is_log": is_log, "places": places})
    models = [scale.model for scale in (scales.log, scales.own) if scale.model is not None]
    return LAYOUT.table(
        "scales",
        rows,
        name,
        [model.source for model in models if model.source is not None],
        trials=(models[0].rows, models[-1].rows),
        adjusted_by=dict.fromkeys(adjusted_by(scale) for scale in (scales.log, scales.own)),
        plan=scales.log.plan,
        thinned=thinned,
    )


def has_times(tables: Tables) -> bool:
    """Whether any participant has a time that is analysed."""
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    return bool((trials.loc[used, list(TIMES)] > 0).to_numpy().any())


def spilling(by: By, words: WordTable) -> CostPart:
    """Write what changed words cost people on themselves and on the two words after them."""
    part, factor = CostPart(), by.factor
    by.material.told(f"cost: word by word by {factor}")
    try:
        result = spill_over(by.tables, factor, table=words)
    except FAILURES as error:
        part.write("no_spill_over", why=reason_of(error))
        return part
    if result.table.empty:
        part.write("no_word_models", factor=factor, remarks=result.remarks)
        return part
    by_scale = [with_adjusted(rows, "low", "high") for _, rows in result.table.groupby("scale", sort=False)]
    table = pd.concat(by_scale).sort_index()
    log = table["scale"] == "log"
    for end in ("low", "high"):
        table.loc[log, f"percent_{end}"] = 100 * np.expm1(table.loc[log, end])
    table["places"] = [decimals(se, 2) if is_log else 1 for se, is_log in zip(table["se"], log, strict=True)]
    part.groups = list(dict.fromkeys(table["reader_group"]))
    zones = [rows for _, rows in table.groupby(["reader_group", "zone"], sort=False)]
    values: dict[str, Any] = {
        "factor": factor,
        "base": words.levels[0],
        "kinds": kinds_of(by.tables.trials),
        "zones": ZONES,
    }
    fits = {key: climbed.fit for key, climbed in result.models.items() if climbed.fit is not None}
    spill_table = LAYOUT.table(
        "spill_over", pd.concat(zones), plain("spill_over", factor), list(fits.values()), **values
    )
    part.write(
        "spill_over",
        table=spill_table,
        zone_times=[in_zone(zone_rows, factor) for zone_rows in zones],
        remarks=[*result.remarks, *by.thinned],
        **_scales_apart(table, factor),
        **reductions(result, factor, words.levels),
        **values,
    )
    part.fits = [
        ReportedFit(f"times of single words by {factor}: {zone}, {scale} scale ({group})", fit)
        for (group, zone, scale), fit in fits.items()
    ]
    part.methods = [LAYOUT.sentences(f"methods_of_{name}") for name in ("words", "milliseconds")]
    return part


def in_zone(rows: pd.DataFrame, factor: str) -> dict[str, Any]:
    """Return one reader's differences in a zone in words, on both scales; of many conditions the least and the greatest."""
    log, ms = (
        {row[factor]: row for row in rows[rows["scale"] == scale].to_dict("records")}
        for scale in ("log", "ms")
    )
    texts: dict[str, str] = {}
    for level in dict.fromkeys(rows[factor]):
        values = []
        if level in ms:
            value, low, high = (ms[level][name] for name in ("estimate", "low", "high"))
            values.append(f"{apa.with_ends(value, low, high, 1)} ms")
        if level in log:
            value, low, high = (log[level][name] for name in ("percent", "percent_low", "percent_high"))
            values.append(apa.with_ends(value, low, high, 1, "%"))
        texts[level] = f"{level} {' or '.join(values)}"
    summary = apa.listing(list(texts.values()))
    if len(texts) > MOST_TOLD:
        sizes = {level: row["percent"] for level, row in log.items()}
        sizes = sizes or {level: row["estimate"] for level, row in ms.items()}
        summary = (
            f"from {texts[min(sizes, key=sizes.__getitem__)]} to {texts[max(sizes, key=sizes.__getitem__)]}"
        )
    return {"first": rows.iloc[0].to_dict(), "told": summary}


def _scales_apart(table: pd.DataFrame, factor: str) -> dict[str, Any]:
    """Name the rows of which one scale's interval excludes 0 and the other's does not."""
    side = np.sign(table["low"]) * (np.sign(table["low"]) == np.sign(table["high"]))
    wide = table.assign(side=side).pivot_table(
        index=["reader_group", "zone", factor], columns="scale", values="side", aggfunc="first", sort=False
    )
    if not {"log", "ms"} <= set(wide.columns):
        return {"has_both_scales": False, "apart": []}
    apart = wide.dropna().query("log != ms").index
    names = [f"{level} on {ZONES[str(zone)]}" for _, zone, level in apart]
    return {"has_both_scales": True, "apart": names}


def reductions(result: SpillOver, factor: str, levels: Sequence[str]) -> dict[str, Any]:
    """Return how random effects were reduced, models that went the same way together, and which fits did not converge.

    Slopes of many conditions are told by their number: their names fill a page and say no more.
    """
    slopes = " + ".join(indicator(factor, level) for level in levels[1:])
    short = f"{len(levels) - 1} conditions" if len(levels) - 1 > MOST_DIFFERENCES_NAMED else slopes
    ways: dict[str, list[str]] = {}
    unconverged = []
    for (group, zone, scale), climbed in result.models.items():
        name = f"{ZONES[zone]} ({scale} scale{'' if group == 'human' else ', ' + spoken(group)})"
        if len(climbed.steps) > 1:
            way = "; ".join(step[step.index(" + (1") + 3 :].replace(slopes, short) for step in climbed.steps)
            ways.setdefault(way, []).append(name)
        if climbed.fit is not None and not climbed.fit.converged:
            unconverged.append(name)
    return {"ways": ways.items(), "unconverged": unconverged}


def profile(by: By, words: WordTable) -> CostPart:
    """Draw mean times and surprisal by place around a changed word."""
    part, factor = CostPart(), by.factor
    by.material.told(f"cost: reading profile by {factor}")
    result = reading_profile(by.tables, factor, words)
    if result.table.empty:
        return part
    name, by_reader = plain("reading_profile", factor), ["measure", "reader_group"]
    part.groups = group_order(result.table)
    values: dict[str, Any] = {"factor": factor, "kinds": kinds_of(by.tables.trials), "time": TIME}
    rows = [
        row | {"intervals": list(dict.fromkeys(reader_rows["interval"]))}
        for _, reader_rows in result.table.groupby(by_reader, sort=False)
        for row in reader_rows.drop(columns="interval").to_dict("records")
    ]
    at_word = result.table[result.table["place"] == 0]
    part.write(
        "profile",
        figures=reading_profile_figures(name, result),
        table=LAYOUT.table("profile", rows, name, base=result.levels[0], **values),
        changed=[
            {
                "measure": measure,
                "group": group,
                "told": _means(reader_rows, factor, 0 if measure == TIME else 2),
            }
            for (measure, group), reader_rows in at_word.groupby(by_reader, sort=False)
        ],
        thinned=by.thinned,
        **values,
    )
    return part


def _means(rows: pd.DataFrame, factor: str, places: int) -> str:
    """Write a reader's means with their intervals by condition."""
    ends = zip(rows["mean"], rows["low"], rows["high"], strict=True)
    texts = [apa.with_ends(*mean_and_ends, places) for mean_and_ends in ends]
    return by_level([str(level) for level in rows[factor]], texts, rows["mean"].tolist())


def milliseconds_a_bit(by: By, words: WordTable) -> CostPart:
    """Relate people's times to each model's surprisal, linearly in milliseconds, with the gain in held-out likelihood."""
    part = CostPart()
    by.material.told(f"cost: milliseconds a bit by {by.factor}")
    why, table = "", pd.DataFrame()
    try:
        table = linking(by.tables, by.factor, table=words)
    except FAILURES as error:
        why = reason_of(error)
    if table.empty:
        part.write("no_linking", why=why)
        return part
    part.groups = list(dict.fromkeys([*table["reader_group"], *table["model"]]))
    part.blocks = linking_blocks(table, kinds_of(by.tables.trials), by.factor)
    part.methods = [LAYOUT.sentences("methods_of_linking")]
    return part


def linking_blocks(table: pd.DataFrame, kinds: dict[str, str], factor: str) -> list[Block]:
    """Write slopes in milliseconds per bit and gains in held-out log-likelihood, with their table."""
    pairs = [pair_rows for _, pair_rows in table.groupby(["reader_group", "model"], sort=False)]
    full = [
        pair_rows[pair_rows["baseline"] & pair_rows["spill_over"]].to_dict("records") for pair_rows in pairs
    ]
    slopes_table = LAYOUT.table(
        "linking", pd.concat(pairs), plain("linking", factor), factor=factor, kinds=kinds
    )
    return LAYOUT.blocks("linking", table=slopes_table, pairs=full, factor=factor, kinds=kinds)
