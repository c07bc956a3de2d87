"""Carries out plans: each measure has its own data, all have the one way to a model and its contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from analysis.accuracy import analyse_accuracy
from analysis.bounded import across_measures
from analysis.cost import analyse_time
from analysis.estimation import analyse
from analysis.families import across_analyses
from analysis.frames import missing_data
from analysis.plan import MISSING, OF_MODELS, RATING, WORDS, WORDS_WITH_ONE_TYPO, Plan
from analysis.quantities import quantity_data, words_data
from analysis.results import Analysis
from analysis.tables import Tables


def carry_out(plan: Plan, tables: Tables) -> Analysis:
    """Fit the model of one plan and test its contrasts; families are those of this analysis alone.

    Raises
    ------
    UserError
        Where the plan's own exclusions, or what it measures, are not in the tables.
    """
    measure = plan.measure
    if measure.name == "correct":
        return analyse_accuracy(plan, tables)
    if measure == MISSING:
        return analyse(plan, missing_data(tables.trials, plan))
    if measure in (WORDS, WORDS_WITH_ONE_TYPO):
        return analyse(plan, words_data(tables, plan))
    if measure.name in OF_MODELS or measure == RATING:
        return analyse(plan, quantity_data(tables.trials, plan))
    return analyse_time(plan, tables)


def carry_out_all(
    plans: Iterable[Plan], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[Analysis]:
    """Carry out every plan of a study: readers with measures of their own are compared, families span analyses.

    Parameters
    ----------
    plans : iterable of Plan
    tables : Tables
    told : callable
        Called with the name of each plan before its model is fitted.
    """
    found = []
    for plan in plans:
        told(plan.name)
        found.append(carry_out(plan, tables))
    return across_analyses(across_measures(found))
