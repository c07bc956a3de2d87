"""Gathers what a report says: analyses, figures and tables in the order in which they are read, and numbers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pandas as pd
from markupsafe import Markup

from analysis import apa
from analysis.carrying_out import carry_out, carry_out_all
from analysis.departures import standing_of
from analysis.descriptives import Cell, describe, describe_rows, described_rows, valid_only
from analysis.figures import Drawing, condition_figure, position_figure, recovery_figure
from analysis.measures import DESCRIBED, MEASURES, RECOVERED, Measure
from analysis.names import plain
from analysis.plan import Plan
from analysis.planned import plans
from analysis.position import Cost, costs
from analysis.preparing import flow, time_bounds
from analysis.readers import kinds_of
from analysis.recovery_check import recovered, recovered_lapses, recovery_plans
from analysis.report import description_tables, model_tables
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material, marks_of
from analysis.report.chapters import write_chapters
from analysis.report.method_models import models_table
from analysis.report.methods import method_parts
from analysis.report.numbered import Content, Numbered, Numbers, Section
from analysis.report.prose import paragraphs, warnings_of
from analysis.results import Analysis
from analysis.tables import Tables

FEWEST = 5
"""Results of fewer participants than this are said to describe those participants only."""


def gather(tables: Tables, told: Callable[[str], None] = lambda _: None) -> Content:
    """Run every analysis of a study and lay out what the report says.

    Parameters
    ----------
    tables : Tables
    told : callable
        Called with a line before each slow step.
    """
    numbers = Numbers()
    trials = tables.trials
    kinds = kinds_of(trials)
    readers = tables.dictionary["readers"]
    begun = {name: str(one["kind"]) for name, one in readers.items() if one.get("kind")}
    asked = models_table(tables)
    models = None if asked is None else numbers.table(asked)
    flow_table = numbers.table(description_tables.flow_table(flow(trials, readers), begun | kinds))
    used = trials[trials["excluded_reason"].isna()]
    cells = _describe_all(used, tables)
    planned = plans(tables)
    shown = _compared(planned)
    drawn = list(_figures(tables, used, cells))
    descriptives = [
        numbers.table(one) for pair, one in _described(cells, tables) if pair in shown or not shown
    ]
    told("figures")
    figures = [numbers.figure(drawing) for pair, drawing in drawn if pair in shown or not shown]
    sections: dict[bool, list[Section]] = {True: [], False: []}
    said: set[Markup] = set()
    analyses = carry_out_all(planned, tables, lambda name: told(f"model: {name}"))
    for analysis in sorted(analyses, key=lambda one: not one.plan.planned):
        means = _of_its_trials(cells, analysis.plan, used, tables)
        sections[analysis.plan.planned].append(_section(analysis, means, kinds, numbers, said))
    written = write_chapters(Material(tables, tuple(analyses), kinds, told))
    chapters = [numbers.chapter(one) for one in sorted(written, key=_place) if not one.supplement]
    extra, found, recovering = [], [], []
    for plan in recovery_plans(tables):
        told(f"model: {plan.name}")
        analysis = carry_out(plan, tables)
        same = _same_model(analysis, [*sections[True], *sections[False]])
        if same is None:
            extra.append(analysis)
        own = recovered(analysis, tables.dictionary["truth"])
        model = analysis.model if same is None else same.analysis.model
        source = None if model is None else model.source
        recovering += [source] if own and source is not None else []
        found += own
    effects = [one for one in found if one.low is not None and not one.label.startswith("intercept")]
    recovery_figure_ = numbers.figure(recovery_figure("recovery", effects)) if effects else None
    found += recovered_lapses(tables)
    recovery_table = (
        numbers.table(description_tables.recovery_table(found, tuple(recovering))) if found else None
    )
    further = [one for pair, one in _described(cells, tables) if shown and pair not in shown]
    further += _valid_only(used, tables)
    further_tables = [numbers.table(one) for one in further]
    further_figures = [numbers.figure(one) for pair, one in drawn if shown and pair not in shown]
    extra_sections = [
        _section(one, _of_its_trials(cells, one.plan, used, tables), kinds, numbers, said) for one in extra
    ]
    chapters += [numbers.chapter(one) for one in written if one.supplement]
    return Content(
        tables=tables,
        flow=flow_table,
        kinds=kinds,
        descriptives=tuple(descriptives),
        remarks=tuple(_recovery_remarks(cells, tables)),
        cautions=tuple(_cautions(used)),
        figures=tuple(figures),
        standing=standing_of(tables, analyses),
        planned=tuple(sections[True]),
        exploratory=tuple(sections[False]),
        chapters=tuple(chapters),
        recovery=tuple(found),
        recovery_table=recovery_table,
        recovery_figure=recovery_figure_,
        method=tuple(method_parts(tables, (*analyses, *extra), None if models is None else models.number)),
        models_table=models,
        recovery_sections=tuple(extra_sections),
        further_tables=tuple(further_tables),
        further_figures=tuple(further_figures),
    )


Pair = tuple[str, str]
"""Names of a measure and of a factor."""


def _compared(planned: Sequence[Plan]) -> set[Pair]:
    """Return which measures by which factors the study planned to compare; empty where it planned nothing."""
    return {(one.measure.name, one.factor) for one in planned if one.planned}


def _place(chapter: Chapter) -> bool:
    """Order chapters: planned ones first, the others as they are written."""
    return not chapter.planned


def _described(cells: Cells, tables: Tables) -> Iterator[tuple[Pair, ApaTable]]:
    """Lay out the means of every measure by every factor."""
    for (measure, factor), own in cells.items():
        if not own or measure is RECOVERED:
            continue
        near = cells[RECOVERED, factor]
        if measure.name == "correct" and near:
            laid = description_tables.accuracy_and_recovery_table(own, near, factor, _prose(tables))
        else:
            laid = description_tables.descriptive_table(own, measure, factor)
        yield (measure.name, factor), laid


def _valid_only(used: pd.DataFrame, tables: Tables) -> Iterator[ApaTable]:
    """Lay out accuracy without failed answers where there are any."""
    for factor, levels in tables.factors.items():
        shares = valid_only(used[used[factor].notna()], factor, tuple(levels))
        if len(shares) and (shares["valid"] < shares["trials"]).any():
            yield description_tables.valid_only_table(shares, factor)


def _same_model(analysis: Analysis, sections: Sequence[Section]) -> Section | None:
    """Return the section that already shows this very model."""
    for section in sections:
        other = section.analysis
        if (
            analysis.model is not None
            and other.model is not None
            and other.groups == analysis.groups
            and other.model.formula == analysis.model.formula
            and other.model.rows == analysis.model.rows
        ):
            return section
    return None


Cells = dict[tuple[Measure, str], list[Cell]]


def _describe_all(used: pd.DataFrame, tables: Tables) -> Cells:
    return {
        (measure, factor): describe(_within_bounds(used, measure, tables), measure, factor, tuple(levels))
        for factor, levels in tables.factors.items()
        for measure in DESCRIBED
    }


def _of_its_trials(cells: Cells, plan: Plan, used: pd.DataFrame, tables: Tables) -> Cells:
    """Return the means with those of a plan's own trials where it takes only some of the study's."""
    key = (plan.measure, plan.factor)
    if not plan.subset or key not in cells:
        return cells
    rows = _within_bounds(used[plan.holds(used)], plan.measure, tables)
    return {**cells, key: describe(rows, plan.measure, plan.factor, plan.levels)}


def _prose(tables: Tables) -> str:
    """Return what the dictionary says of the recovery measure."""
    return str((tables.dictionary["columns"].get(RECOVERED.name) or {}).get("prose") or "")


def _recovery_remarks(cells: Cells, tables: Tables) -> Iterator[str]:
    """Say where exact answers cannot tell the conditions of a recovery study apart."""
    measure = MEASURES["correct"]
    for factor in tables.factors:
        exact = {cell.mean for cell in cells[measure, factor] if cell.kind != "baseline"}
        if not cells[RECOVERED, factor] or not exact or not exact <= {0.0, 1.0}:
            continue
        told = {
            frozenset({0.0}): "No typed answer is exactly right in any condition",
            frozenset({1.0}): "Every typed answer is exactly right in every condition",
        }.get(frozenset(exact), "In every condition a reader's answers are all exactly right or all wrong")
        yield f"{told} of {factor}: exact accuracy has no spread to model. Mean recovery says how near the answers came."


def _cautions(used: pd.DataFrame) -> Iterator[str]:
    """Say where fewer participants have answered than anything general can be said from."""
    names = {"human": ("person", "people"), "simulated": ("simulated reader", "simulated readers")}
    for group, (one, several) in names.items():
        many = int(used.loc[used["reader_group"] == group, "reader"].nunique())
        if 0 < many < FEWEST:
            these = f"this {one}" if many == 1 else f"these {several}"
            who = apa.counted(many, one, several)
            yield f"Only {who} answered: too few to generalise from; the numbers describe {these}."


def _within_bounds(trials: pd.DataFrame, measure: Measure, tables: Tables) -> pd.DataFrame:
    bounds = time_bounds(tables.dictionary["exclude"], measure.name) if measure.logged else None
    return trials if bounds is None else trials[bounds.holds(trials[measure.name])]


def _pilot(tables: Tables) -> pd.DataFrame:
    trials = tables.trials
    extra = trials["is_practice"] | trials["is_filler"] | trials["is_attention_check"]
    return trials[trials["is_pilot"] & ~extra]


def _figures(tables: Tables, used: pd.DataFrame, cells: Cells) -> Iterator[tuple[Pair, Drawing]]:
    pilot = _pilot(tables)
    for factor, levels in tables.factors.items():
        panels: list[tuple[Measure, Sequence[Cost], Sequence[Cost]]] = []
        for measure in DESCRIBED:
            own = cells[measure, factor]
            if not own:
                continue
            trials = _within_bounds(used, measure, tables)
            chance = _chance(tables) if measure.name == "correct" else None
            name = f"condition_{measure.name}_{factor}"
            drawing = condition_figure(name, own, trials, pilot, measure, factor, levels, chance)
            yield ("correct" if measure is RECOVERED else measure.name, factor), drawing
            if measure is RECOVERED:
                continue
            study = str(tables.dictionary["study"])
            lost = costs(trials, measure, factor, tuple(levels), study)
            if lost and (measure.name == "correct" or not any(one.logged for one, _, _ in panels)):
                panels.append((measure, lost, costs(pilot, measure, factor, tuple(levels), study)))
        if panels:
            yield (panels[0][0].name, factor), position_figure(f"cost_{factor}", panels, factor, levels)


def _chance(tables: Tables) -> float | None:
    """Return the share that guessing gets right, where all items offer the same number of choices."""
    if "choices" not in tables.items.columns:
        return None
    items = tables.items
    if "role" in items.columns:
        items = items[items["role"] == "test"]
    offered = {
        len(json.loads(text)) if isinstance(text, str) and text != "null" else 0 for text in items["choices"]
    }
    return 1 / offered.pop() if len(offered) == 1 and min(offered) > 1 else None


def _section(
    analysis: Analysis, cells: Cells, kinds: dict[str, str], numbers: Numbers, said: set[Markup]
) -> Section:
    """Lay out one analysis; means that an earlier one has told (``said``) are not told again."""
    plan = analysis.plan
    shown: list[Numbered] = []
    stem = plain(plan.name)
    if analysis.model is not None:
        shown.append(numbers.table(model_tables.model_table(analysis, f"model_{stem}")))
        if analysis.contrasts:
            shown.append(numbers.table(model_tables.contrast_table(analysis, f"differences_{stem}")))
            bounded = model_tables.equivalence_table(analysis, f"equivalence_{stem}")
            shown += [numbers.table(bounded)] if bounded is not None else []
    own = cells.get((plan.measure, plan.factor))
    if own is None:
        own = _cells_of(analysis)
    told = paragraphs(analysis, own, kinds, shown[0].number if shown else None, said)
    heading = plan.name[0].upper() + plan.name[1:]
    return Section(
        heading,
        marks_of(plan.groups, kinds),
        tuple(told),
        tuple(shown),
        analysis,
        tuple(warnings_of(analysis)),
    )


def _cells_of(analysis: Analysis) -> list[Cell]:
    """Describe what only this analysis measures, from the rows of its model."""
    model, plan = analysis.model, analysis.plan
    if model is None or model.source is None:
        return []
    rows = described_rows(analysis.rows, plan.measure)
    return describe_rows(rows, plan.measure, plan.factor, analysis.levels)
