"""Accuracy and missingness: logistic mixed models of every analysed answer."""

from __future__ import annotations

from dataclasses import replace

from analysis.estimation import analyse
from analysis.frames import WRONG, accuracy_data, missing_data
from analysis.measures.accuracy import with_chance
from analysis.plan import MISSING, Plan
from analysis.results import Analysis
from analysis.tables import Tables


def analyse_accuracy(plan: Plan, tables: Tables, failures: str = WRONG, draw: int = 1) -> Analysis:
    """Carry out a plan whose measure is ``correct``.

    Participants (people, simulated readers) have random intercepts and slopes of the compared factor; a model is one
    level of reader group and has no participant variance; items may differ between people and models.

    Parameters
    ----------
    plan : Plan
    tables : Tables
    failures : {'wrong', 'left out', 'chance'}
        What becomes of answers that are not valid; ``wrong`` is the primary analysis, the others are bounds
        (:func:`analysis.frames.accuracy_data`).
    draw : int
        Which draw of failures at chance.
    """
    trials = (
        with_chance(tables.trials, tables.items, tables.factors) if failures == "chance" else tables.trials
    )
    return analyse(plan, accuracy_data(trials, plan, failures, draw))


def analyse_missingness(plan: Plan, tables: Tables) -> Analysis:
    """Carry out a plan's comparison for missing answers: whether a trial brought no valid answer, by condition.

    "Valid only" conditions on an outcome that the conditions may change; this is the model that says whether they do.
    """
    asked = replace(plan, name=f"{plan.name}: missing answers", measure=MISSING)
    return analyse(asked, missing_data(tables.trials, asked))
