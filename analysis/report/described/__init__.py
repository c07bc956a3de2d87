"""Describes every reader in every condition: by tasks and ways of asking apart, since their means are of different things."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from analysis.costs.ratios import LevelCost, costs_by_level
from analysis.descriptives import ConditionMean, describe, describe_rows, described_rows, with_ends
from analysis.exclusions import COUNTED_ONCE, each_answer_once, time_bounds, usable
from analysis.figures import Drawing
from analysis.plan import DESCRIBED, RATING, RECOVERED, Measure, Plan
from analysis.planned import has_ratings, held_by, scale_of_ratings
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.described import layouts
from analysis.report.planned_effects import Asked, planned_of
from analysis.report.results.tables import origin_of_trials
from analysis.report.subgroups import TrialPart, crossed_parts, parts_of, table_of_part
from analysis.results import Analysis
from analysis.tables import Tables

if TYPE_CHECKING:
    from analysis.figures.conditions import ConditionMeans

Pair = tuple[str, str]
"""Name of a measure, and stem of the means that are described."""


@dataclass(frozen=True)
class Description:
    """A part with the means of each measure, and the trials that they are made of."""

    part: TrialPart
    cells: dict[Measure, list[ConditionMean]]
    trials: pd.DataFrame


def described(used: pd.DataFrame, tables: Tables) -> list[Description]:
    """Return the means of all measures in all parts."""
    measures = [measure for measure in DESCRIBED if measure is not RATING or has_ratings(tables)]
    descriptions = []
    for part in (*parts_of(used, tables), *crossed_parts(used, tables)):
        rows = part.rows(used)
        cells = {measure: _cells(rows, measure, part.factor, part.levels, tables) for measure in measures}
        descriptions.append(Description(part, cells, rows))
    return descriptions


def means_of(plan: Plan, used: pd.DataFrame, tables: Tables) -> list[ConditionMean] | None:
    """Return the means of the trials of a plan; None for a measure that is not described for all studies."""
    if plan.measure not in DESCRIBED and not plan.measure.is_own:
        return None
    is_whole_study = not plan.subset and plan.crossing is None
    levels = tuple(tables.factors[plan.factor]) if is_whole_study else plan.levels
    trials = tables.trials
    rows = trials[usable(trials, plan.trials) & held_by(plan, trials)] if plan.subset else used
    return _cells(rows, plan.measure, plan.factor, levels, tables)


def _cells(
    rows: pd.DataFrame, measure: Measure, factor: str, levels: tuple[str, ...], tables: Tables
) -> list[ConditionMean]:
    rows = within_bounds(rows, measure, tables)
    cells = describe(rows, measure, factor, levels)
    scale = None if rows["step_name"].notna().any() else scale_of_ratings(tables)
    return (
        cells
        if measure is not RATING or scale is None
        else with_ends(cells, rows, factor, (scale["from"], scale["to"]))
    )


def means_analysed(analysis: Analysis, cells: Sequence[ConditionMean]) -> list[ConditionMean]:
    """Return the means of a plan over the trials that its model analyses, in the levels that it compares."""
    plan, analysed = analysis.plan, dict[tuple[str, str], ConditionMean]()
    if len(analysis.rows) and (plan.measure.logged or plan.measure.name == "correct"):
        rows = described_rows(analysis.rows, plan.measure)
        means = describe_rows(rows, plan.measure, plan.factor, analysis.levels)
        analysed = {(cell.group, cell.level): cell for cell in means}
    compared = [cell for cell in cells if cell.level in plan.levels and cell.group in plan.groups]
    return [analysed.get((cell.group, cell.level), cell) for cell in compared]


def means_table(
    analysis: Analysis, cells: Sequence[ConditionMean], analysed: Sequence[ConditionMean], name: str
) -> ApaTable | None:
    """Lay out means of a model's trials where they are others than those of all trials; None where they are the same."""
    all_means = {(cell.group, cell.level): (cell.trials, round(cell.mean, 9)) for cell in cells}
    if all(all_means[cell.group, cell.level] == (cell.trials, round(cell.mean, 9)) for cell in analysed):
        return None
    table = layouts.descriptive_table(analysed, analysis.plan.measure, analysis.plan.factor)
    computed = "means by reader and level of the model's rows, and of these by level"
    origin = _origin_of_means(analysis, computed)
    return replace(table, name=name, title=f"{table.title}, trials of this analysis", origin=origin)


def _origin_of_means(analysis: Analysis, computed: str) -> Origin:
    """Return the model whose rows the means are made of; where it has people's rows alone, the trials of all readers."""
    if analysis.plan.measure.logged and analysis.fit is not None:
        return Origin(fits=(analysis.fit,), computed=computed)
    return origin_of_trials([analysis], computed)


def tables_of(description: Description) -> Iterator[tuple[Pair, ApaTable]]:
    """Lay out the means of every measure."""
    part = description.part
    for measure, cells in description.cells.items():
        if not cells or measure is RECOVERED:
            continue
        recovered = description.cells[RECOVERED]
        if measure.name == "correct" and recovered:
            table = layouts.accuracy_and_recovery_table(cells, recovered, part.factor)
        else:
            table = layouts.descriptive_table(cells, measure, part.factor)
        table = table_of_part(table, part, f"descriptives_{measure.name}_{part.stem}")
        yield (
            (measure.name, part.stem),
            with_copies_told(table, description.trials, part.factor) if measure.is_share else table,
        )


def planned_means(
    analysis: Analysis,
    cells: Sequence[ConditionMean],
    used: pd.DataFrame,
    tables: Tables,
    effects_asked: Asked,
) -> Iterator[tuple[Drawing, ApaTable]]:
    """Draw and lay out the means of a planned analysis of which no part has them: of recovered words, and over what parts sessions."""
    from analysis.figures.conditions import ConditionMeans, condition_figure

    plan, rows = analysis.plan, analysis.rows
    measure, key = plan.measure, planned_of(analysis)
    of_words = measure.value == "share"
    if not cells or not (of_words or measure in DESCRIBED or measure.is_own or measure.region is not None):
        return
    name, (unit, effects) = "_".join(key), effects_asked[key]
    levels = tuple(level for level in plan.levels if any(cell.level == level for cell in cells))
    trials = (
        rows.assign(**{measure.name: rows["share"]}) if of_words else within_bounds(used, measure, tables)
    )
    chance = _chance(tables, used) if measure.name == "correct" else None
    shown = ConditionMeans(measure, plan.factor, levels, cells, trials, used.iloc[:0], chance, effects, unit)
    table = replace(layouts.descriptive_table(cells, measure, plan.factor), name=f"descriptives_{name}")
    if of_words:
        computed = "means by reader and level of the share of changed words that each answer recovers"
        table = replace(table, origin=_origin_of_means(analysis, computed))
    yield condition_figure(f"condition_{name}", [shown.of_contrasts()]), table


def with_copies_told(table: ApaTable, trials: pd.DataFrame, factor: str) -> ApaTable:
    """State where a table's numbers come from that answers count once which copy one another in a level of a factor, if any do."""
    placed = trials[trials[factor].notna()]
    if table.origin is None or len(each_answer_once(placed, [factor])) == len(placed):
        return table
    return replace(table, origin=replace(table.origin, rows=COUNTED_ONCE))


def figures_of(
    description: Description, used: pd.DataFrame, tables: Tables, planned: Asked, analyses: Sequence[Analysis]
) -> Iterator[tuple[Pair, Drawing, ApaTable | None]]:
    """Draw the means of every measure, those with planned contrasts first, and what each condition costs against the first.

    The last is the table of the figure's numbers, unless a table of means has them.
    """
    from analysis.figures.conditions import ConditionMeans, condition_figure, position_figure

    part, factor, levels = description.part, description.part.factor, description.part.levels
    rows, pilot = part.rows(used), part.rows(_pilot(tables))
    # other items in every condition differ by more than the condition
    has_costs = bool((rows.groupby("item_id")[factor].nunique() > 1).any()) and factor not in tables.crossed
    panels: list[tuple[Measure, Sequence[LevelCost], Sequence[LevelCost]]] = []
    shown: list[ConditionMeans] = []
    for measure, cells in description.cells.items():
        if not cells:
            continue
        trials = within_bounds(rows, measure, tables)
        chance = _chance(tables, rows) if measure.name == "correct" else None
        unit, effects = planned.get((measure.name, part.stem), ("", ()))
        shown.append(ConditionMeans(measure, factor, levels, cells, trials, pilot, chance, effects, unit))
        if measure in (RECOVERED, RATING) or not has_costs:
            continue
        study = str(tables.dictionary["study"])
        overall = () if part.told else analyses
        lost = costs_by_level(trials, measure, factor, levels, study, overall)
        if lost and (
            measure.name == "correct" or not any(drawn_measure.logged for drawn_measure, _, _ in panels)
        ):
            panels.append((measure, lost, costs_by_level(pilot, measure, factor, levels, study)))
    of_contrasts = [row.of_contrasts() for row in shown]
    of_all = [
        replace(row, effects=())
        for row, part_of_it in zip(shown, of_contrasts, strict=True)
        if part_of_it.is_part
    ]
    for start, rows_drawn in (("condition", of_contrasts), ("all_conditions", of_all)):
        for some in _by_figure(rows_drawn):
            name = f"{start}_{'_and_'.join(row.measure.name for row in some)}_{part.stem}"
            first = some[0].measure
            yield (
                ("correct" if first is RECOVERED else first.name, part.stem),
                condition_figure(name, some, part.told),
                None,
            )
    several = [panel for panel in panels if len({cost.level for cost in panel[1]}) > 1]
    if any(cost.kind != "baseline" and cost.cost for _, lost, _ in several for cost in lost):
        drawing = position_figure(f"cost_{part.stem}", several, factor, levels, part.told)
        table = table_of_part(layouts.cost_table(several, factor, levels[0]), part, drawing.name)
        yield (several[0][0].name, part.stem), drawing, table


def _by_figure(shown: Sequence[ConditionMeans]) -> Iterator[list[ConditionMeans]]:
    """Yield the measures of each figure: those with planned contrasts first, where the first shares its own with a time."""
    from analysis.figures.conditions import MOST_TOGETHER, wished_height

    planned = sorted(shown, key=lambda row: not row.effects)
    together = planned[:2]
    fits = wished_height(together) <= MOST_TOGETHER
    if len(together) == 2 and fits and all(row.is_beside for row in together):
        first, second = (row.measure for row in together)
        if second.logged and first is not RECOVERED:
            yield together
            planned = planned[2:]
    yield from ([row] for row in planned)


def within_bounds(trials: pd.DataFrame, measure: Measure, tables: Tables) -> pd.DataFrame:
    """Return the trials whose time is within the study's bounds for a measure of time."""
    bounds = time_bounds(tables.dictionary["exclude"], measure.name) if measure.logged else None
    return trials if bounds is None else trials[bounds.keeps(trials, measure.name)]


def _pilot(tables: Tables) -> pd.DataFrame:
    """Return the trials of the only pilot session, whose visitor looks for their own result; none if there are several."""
    trials = tables.trials
    extra = trials["is_practice"] | trials["is_filler"] | trials["is_attention_check"]
    pilot = trials[trials["is_pilot"] & ~extra]
    return pilot if pilot["session_id"].nunique() == 1 else pilot.iloc[:0]


def _chance(tables: Tables, rows: pd.DataFrame) -> float | None:
    """Return the share that guessing gets right, where all items of these trials offer the same number of choices."""
    if "choices" not in tables.items.columns:
        return None
    items = tables.items[tables.items["item_id"].isin(rows["item_id"])]
    if "role" in items.columns:
        items = items[items["role"] == "test"]
    offered = {
        len(json.loads(text)) if isinstance(text, str) and text != "null" else 0 for text in items["choices"]
    }
    return 1 / offered.pop() if len(offered) == 1 and min(offered) > 1 else None
