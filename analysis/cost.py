"""What reading costs in time: a linear mixed model of log times of people or simulated readers.

All valid answers are in it, right and wrong: to keep right ones only would condition on an outcome that the
conditions change. Models of language have no times of this kind; their latency says nothing about reading.
"""

from __future__ import annotations

from analysis.estimation import analyse
from analysis.frames import time_data
from analysis.plan import Plan
from analysis.preparing import time_bounds
from analysis.results import Analysis
from analysis.tables import Tables


def analyse_time(plan: Plan, tables: Tables, *, most_columns: int | None = None) -> Analysis:
    """Carry out a plan of ``rt`` or ``reading_time`` within the study's time bounds."""
    bounds = time_bounds(tables.dictionary["exclude"], plan.measure.name)
    return analyse(plan, time_data(tables.trials, plan, bounds), most_columns=most_columns)
