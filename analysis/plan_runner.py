"""Carries out plans: shares and ratings are estimated in points, times and quantities by a linear mixed model each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from analysis import apa
from analysis.contrasts import untested
from analysis.estimation import analyse
from analysis.exclusions import time_bounds
from analysis.frames import (
    LEAD,
    MODELLED,
    ModelData,
    accuracy_rows,
    in_model,
    lead_data,
    missing_rows,
    quantity_data,
    rating_rows,
    time_data,
    words_rows,
)
from analysis.multiple_comparisons import across_analyses, adjusted, two_one_sided
from analysis.plan import (
    MISSING,
    RATING,
    WORDS,
    WORDS_WITH_ONE_TYPO,
    LevelDifference,
    Plan,
    remarks_about,
)
from analysis.random_structure import MODELS_FOR_A_CLAIM, on_models_in_general
from analysis.readers import MODELS_IN_GENERAL, PARTICIPANT_KINDS, kinds_of, spoken
from analysis.results import Analysis, Contrast, EstimateWithTest
from analysis.shares import ReaderSums, contrast_in_points, contrasts_in_points
from analysis.tables import Tables


def carry_out(plan: Plan, tables: Tables, *, companion: bool = True) -> Analysis:
    """Test the contrasts of one plan; families are those of this analysis alone."""
    measure = plan.measure
    if measure.of_means:
        return analyse_shares(plan, tables, companion=companion)
    if measure.is_quantity:
        return analyse(plan, quantity_data(tables.trials, plan, tables.factors))
    return analyse_time(plan, tables)


def carry_out_all(
    plans: Iterable[Plan], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[Analysis]:
    """Carry out every plan of a study: readers with separate measures are compared, and families span analyses."""
    results = []
    for plan in plans:
        told(plan.name)
        results.append(carry_out(plan, tables))
    return across_analyses([_without_planned(measure, results) for measure in across_measures(results)])


def _without_planned(analysis: Analysis, analyses: Sequence[Analysis]) -> Analysis:
    """Leave out of an exploratory analysis what a planned one tests: one quantity has one interval."""
    if analysis.plan.planned:
        return analysis

    def trials_of(plan: Plan) -> tuple[object, ...]:
        return plan.measure, plan.factor, plan.trials, plan.within

    planned = [
        other
        for other in analyses
        if other.plan.planned and trials_of(other.plan) == trials_of(analysis.plan)
    ]
    tested = {(contrast.label, contrast.groups) for other in planned for contrast in other.contrasts}
    contrasts = tuple(
        contrast for contrast in analysis.contrasts if (contrast.label, contrast.groups) not in tested
    )
    return replace(analysis, contrasts=contrasts)


def analysed_rows(plan: Plan, tables: Tables) -> tuple[pd.DataFrame, list[str]]:
    """Return the trials of a plan of shares or ratings with ``plan.measure.value``, and in sentences what was left out."""
    if plan.measure in (WORDS, WORDS_WITH_ONE_TYPO):
        return words_rows(tables, plan)
    rows_of = {MISSING: missing_rows, RATING: rating_rows}.get(plan.measure, accuracy_rows)
    return rows_of(tables.trials, plan)


def analyse_missingness(plan: Plan, tables: Tables) -> Analysis:
    """Carry out a plan's comparison for missing answers: whether a trial brought no valid answer, by condition."""
    missing_plan = replace(plan, name=f"{plan.name}: missing answers", measure=MISSING)
    return analyse_shares(missing_plan, tables)


def analyse_shares(plan: Plan, tables: Tables, companion: bool = True) -> Analysis:
    """Estimate the contrasts of a plan in points, and fit the mixed model of people that accompanies them."""
    rows, remarks = analysed_rows(plan, tables)
    estimated, limits = contrasts_in_points(ReaderSums(plan, rows, tables), plan)
    contrasts = tuple(adjusted([(plan, estimated)])[0])
    accompanying = _of_people(plan, rows) if companion else None
    if accompanying is None:
        # what is about a mixed model has none to be about
        remarks = [remark for remark in remarks if not remarks_about([remark], "model")]
    all_remarks = [*plan.remarks, *remarks, *_without_trials(plan, rows), *limits]
    scope = on_models_in_general(rows) if any(contrast.estimable for contrast in contrasts) else None
    all_remarks += [scope] if scope else []
    shown = dict.fromkeys(rows["reader_group"])
    if accompanying is not None:
        # what it leaves out is named above, and its readers are not all of whom the results hold
        all_remarks += remarks_about(accompanying.remarks, "model", "uncorrelated slopes", "replaced model")
    return Analysis(
        plan,
        None if accompanying is None else accompanying.model,
        tuple(group for group in plan.groups if group in shown),
        tuple(level for level in plan.levels if (rows[plan.factor] == level).any()),
        contrasts,
        tuple(dict.fromkeys(all_remarks)),
        rows,
        accompanying,
    )


def _without_trials(plan: Plan, rows: pd.DataFrame) -> Iterator[str]:
    """State which readers and conditions have no trials, and what an exploratory analysis therefore does not test."""
    without: dict[tuple[str, ...], list[str]] = {}
    for group in plan.groups:
        shown = set(rows.loc[rows["reader_group"] == group, plan.factor])
        missing = [level for level in plan.levels if level not in shown]
        if not shown:
            yield f"No trials of {spoken(group)} could be analyzed."
        elif missing:
            without.setdefault(tuple(missing), []).append(group)
    for levels, groups in without.items():
        who = apa.listing([spoken(group) for group in groups])
        yield f"No trials in {apa.listing(list(levels))} could be analyzed for {who}."
    present = set(rows[plan.factor])
    left_out = [contrast.label for contrast in plan.contrasts if not set(plan.weights(contrast)) <= present]
    if left_out and not plan.planned:
        yield f"Not tested, since a condition has no trials: {apa.few_named(left_out, 'contrast')}."


def _people_of(plan: Plan, rows: pd.DataFrame) -> list[str]:
    kinds = kinds_of(rows)
    return [group for group in plan.groups if kinds.get(group) in PARTICIPANT_KINDS]


def _of_people(plan: Plan, rows: pd.DataFrame) -> Analysis | None:
    """Fit the mixed model of people, or the one that the plan writes out; None where it cannot be fitted."""
    people = _people_of(plan, rows)
    if plan.formula is not None and "reader_group" in plan.formula:
        people = list(plan.groups)
    plan_of_people = replace(plan, groups=tuple(people), equivalence=None, bayes=None, remarks=())
    rows_of_people = rows[rows["reader_group"].isin(people)]
    share = MODELLED if MODELLED in rows else plan.measure.value
    data: ModelData = in_model(
        rows_of_people,
        plan_of_people,
        share=share if plan.measure.scale == "points" else None,
        is_check=True,
    )
    if not data.can_be_fitted or rows_of_people[share].nunique() < 2:
        return None
    analysis = analyse(plan_of_people, data)
    return None if analysis.model is None else analysis


def analyse_time(plan: Plan, tables: Tables, *, most_columns: int | None = None) -> Analysis:
    """Carry out a plan of ``rt``, ``reading_time`` or ``region_time`` within the study's time bounds."""
    bounds = time_bounds(tables.dictionary["exclude"], plan.measure.name)
    return analyse(plan, time_data(tables.trials, plan, bounds), most_columns=most_columns)


def across_measures(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Add the comparisons between readers whose measures differ, where one plan bounds them by a ratio."""
    results = list(analyses)
    first: dict[str, Analysis] = {}
    for index, analysis in enumerate(analyses):
        if analysis.plan.key and analysis.plan.equivalence is not None:
            other = first.setdefault(analysis.plan.key, analysis)
            results[index] = analysis if other is analysis else _beside(other, analysis)
    return results


def _beside(first: Analysis, other: Analysis) -> Analysis:
    bound = other.plan.equivalence
    if bound is None or bound.unit != "ratio":
        return other
    reader = first.plan.groups[0]
    by_label = {contrast.label: contrast for contrast in first.contrasts if contrast.groups == (reader,)}
    added = []
    for contrast in other.contrasts:
        counterpart = by_label.get(contrast.label)
        if contrast.between or counterpart is None:
            continue
        difference, groups = (
            LevelDifference(contrast.first, contrast.second, at=contrast.at),
            (reader, contrast.groups[0]),
        )
        if contrast.estimable and counterpart.estimable:
            # errors of two models are independent, with Welch's degrees of freedom
            estimate, se, df = (
                counterpart.estimate - contrast.estimate,
                float(np.hypot(counterpart.se, contrast.se)),
                None,
            )
            if counterpart.df is not None and contrast.df is not None:
                df = se**4 / (counterpart.se**4 / counterpart.df + contrast.se**4 / contrast.df)
            spread = stats.norm if df is None else stats.t(df)
            half, p = float(spread.ppf(0.975)) * se, float(2 * spread.sf(abs(estimate / se)))
            tested = EstimateWithTest(estimate, se, estimate / se, df, p, (estimate - half, estimate + half))
            test = two_one_sided(estimate, se, df, bound.half_width, other.plan.alpha)
            added.append(Contrast.of(difference, groups, tested, equivalence=test))
        else:
            reason = "; ".join(
                dict.fromkeys(side.left_out for side in (counterpart, contrast) if side.left_out)
            )
            added.append(untested(difference, groups, reason or "these data do not determine it"))
    other = replace(other, contrasts=(*other.contrasts, *added))
    if not any(contrast.estimable for contrast in added):
        return other
    names = f"{first.plan.measure.noun} and {other.plan.measure.noun}"
    remark = (
        f"Differences in {names} come from a model each and are compared as ratios of conditions; their errors are taken as "
        "independent, though the items are the same."
    )
    return replace(other, remarks=(*other.remarks, remark))


Kind = Literal["models in general", "label probabilities"]


@dataclass(frozen=True)
class SupplementaryModel:
    """A supplementary analysis of a planned one."""

    kind: Kind  # one of 'models in general', 'label probabilities'
    beside: Plan  # the plan of the analysis that it stands beside
    analysis: Analysis


def companions(
    analyses: Iterable[Analysis], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[SupplementaryModel]:
    """Carry out the supplementary analyses of each analysis of accuracy."""
    analysers: dict[Kind, Callable[[Plan, Tables], Analysis | None]]
    analysers = {"models in general": in_general, "label probabilities": by_label_probabilities}
    questions: dict[tuple[object, ...], tuple[Kind, Plan]] = {}
    for primary in analyses:
        if primary.plan.measure.name == "correct":
            for kind in analysers:
                questions.setdefault(_question(kind, primary.plan, tables), (kind, primary.plan))
    models = []
    for kind, plan in questions.values():
        told(f"model: {plan.name}, {kind}")
        analysis = analysers[kind](plan, tables)
        if analysis is not None:
            models.append(SupplementaryModel(kind, plan, analysis))
    return models


def _question(kind: Kind, plan: Plan, tables: Tables) -> tuple[object, ...]:
    """Name what a companion asks: the same question of two plans is answered once."""
    models = set(tables.trials.loc[tables.trials["reader_kind"] == "model", "reader_group"])
    groups = tuple(group for group in plan.groups if kind != "models in general" or group not in models)
    labels = tuple(contrast.label for contrast in plan.contrasts)
    return (kind, plan.factor, plan.levels, groups, labels, plan.trials, plan.within, repr(plan.exclude))


_UNPLANNED: dict[str, Any] = {
    "planned": False,
    "key": "",
    **dict.fromkeys(("family", "equivalence", "bayes", "formula", "fallback", "stop")),
}


def _exploratory(plan: Plan, suffix: str) -> Plan:
    """Return the same comparison as an exploratory one with the usual model."""
    return replace(
        plan,
        name=f"{plan.name}: {suffix}",
        **_UNPLANNED,
        contrasts=tuple(replace(contrast, direction="two-sided") for contrast in plan.contrasts),
    )


def in_general(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare people with models in general, of which all of the study are a sample; None below eight models, and without people."""
    trials = tables.trials
    all_models = trials.loc[trials["reader_kind"] == "model", "reader_group"].unique().tolist()
    rows, remarks = accuracy_rows(
        trials, replace(plan, groups=tuple(dict.fromkeys([*plan.groups, *all_models])))
    )
    is_model = rows["reader_kind"] == "model"
    met = rows[is_model].groupby("reader_group")[plan.factor].nunique()
    models = met.index[met == met.max()].tolist() if len(met) else []
    people, count = _people_of(plan, rows), len(models)
    if count < MODELS_FOR_A_CLAIM or not people:
        return None
    rows = rows[rows["reader_group"].isin([people[0], *models])]
    general_plan = replace(_exploratory(plan, "models in general"), groups=(people[0], MODELS_IN_GENERAL))
    sums = ReaderSums(replace(general_plan, groups=(people[0], *models)), rows, tables)
    estimates = []
    for difference in general_plan.contrasts:
        estimated = sums.in_general(people[0], general_plan.weights(difference))
        if estimated is not None:
            estimates.append(contrast_in_points(difference, general_plan.groups, general_plan, estimated))
    if not estimates:
        return None
    remark = (
        f"The {count} models are a sample of models, as participants are of people: how much they differ from one another widens the "
        "intervals. The differences hold for models like these on items like these."
    )
    shown = tuple(level for level in plan.levels if (rows[plan.factor] == level).any())
    contrasts = tuple(adjusted([(general_plan, estimates)])[0])
    return Analysis(
        general_plan,
        None,
        general_plan.groups,
        shown,
        contrasts,
        (*remarks, remark),
        rows,
    )


def by_label_probabilities(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare conditions by the lead of the correct label in models; None if no model returned label probabilities."""
    trials = tables.trials
    has_margin = trials["margin"].notna() & (trials["reader_kind"] == "model")
    groups = tuple(group for group in plan.groups if (has_margin & (trials["reader_group"] == group)).any())
    if not groups:
        return None
    lead_plan = replace(_exploratory(plan, "label probabilities"), groups=groups, measure=LEAD)
    return analyse(lead_plan, lead_data(tables, lead_plan))
