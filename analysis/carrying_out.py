"""Carries out plans: shares and ratings are estimated in points, times and quantities by a linear mixed model each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from analysis.accuracy import analyse_accuracy, analyse_shares
from analysis.bounded import across_measures
from analysis.cost import analyse_time
from analysis.estimation import analyse
from analysis.families import across_analyses
from analysis.frames import missing_rows
from analysis.plan import MISSING, OF_MODELS, RATING, WORDS, WORDS_WITH_ONE_TYPO, Plan
from analysis.quantities import quantity_data, rating_rows, words_rows
from analysis.results import Analysis
from analysis.tables import Tables


def carry_out(plan: Plan, tables: Tables, *, companion: bool = True) -> Analysis:
    """Test the contrasts of one plan; families are those of this analysis alone."""
    measure = plan.measure
    if measure.name == "correct":
        return analyse_accuracy(plan, tables, companion=companion)
    if measure == MISSING:
        return analyse_shares(
            plan, missing_rows(tables.trials, plan), "missing", tables, "missing" if companion else None
        )
    if measure in (WORDS, WORDS_WITH_ONE_TYPO):
        return analyse_shares(
            plan, words_rows(tables, plan), "share", tables, "share_recovered" if companion else None
        )
    if measure == RATING:
        return analyse_shares(
            plan, rating_rows(tables.trials, plan), "rating", tables, "rating" if companion else None
        )
    if measure.name in OF_MODELS:
        return analyse(plan, quantity_data(tables.trials, plan))
    return analyse_time(plan, tables)


def carry_out_all(
    plans: Iterable[Plan], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[Analysis]:
    """Carry out every plan of a study: readers with measures of their own are compared, families span analyses."""
    found = []
    for plan in plans:
        told(plan.name)
        found.append(carry_out(plan, tables))
    return across_analyses([_without_planned(one, found) for one in across_measures(found)])


def _without_planned(analysis: Analysis, analyses: Sequence[Analysis]) -> Analysis:
    """Leave out of an exploratory analysis what a planned one tests: one quantity has one interval."""
    if analysis.plan.planned:
        return analysis
    tested = {
        (_trials_of(one.plan), contrast.label, contrast.groups)
        for one in analyses
        if one.plan.planned
        for contrast in one.contrasts
    }
    own = tuple(
        one for one in analysis.contrasts if (_trials_of(analysis.plan), one.label, one.groups) not in tested
    )
    return replace(analysis, contrasts=own)


def _trials_of(plan: Plan) -> tuple[object, ...]:
    return plan.measure, plan.factor, plan.trials, plan.within
