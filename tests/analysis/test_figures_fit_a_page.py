"""Figures of many conditions stay within a page, with letters that can be read."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from analysis.costs.times import TimeSpread
from analysis.figures.cost import time_distribution_figure
from analysis.figures.drawing import TALLEST
from analysis.figures.simulation import recovery_figure
from analysis.parameter_recovery import Recovered

LEVELS = tuple(f"condition_{number}" for number in range(27))
SMALLEST = 6
"""Points of letters that can still be read in print."""


def spread(level: str, measure: str) -> TimeSpread:
    times = np.geomspace(300, 1800, 20)
    return TimeSpread(
        "simulated", "simulated", measure, level, times[:7], times[8:12], times, np.ones(20), trials=40
    )


def names_beside(figure: Figure, panel: int) -> list[str]:
    labels = figure.axes[panel].get_yticklabels()
    assert all(one.get_fontsize() >= SMALLEST for one in labels)
    return [one.get_text() for one in labels]


def test_times_in_many_conditions_stand_in_low_rows() -> None:
    many = [spread(level, measure) for measure in ("reading_time", "rt") for level in LEVELS]
    figure = time_distribution_figure("times", many, "scramble", LEVELS).figure
    assert figure.get_figheight() <= TALLEST
    assert names_beside(figure, 0) == names_beside(figure, 1) == list(LEVELS)
    few = time_distribution_figure("times", [spread("intact", "rt")], "scramble", ["intact"])
    assert few.figure.get_figheight() < 2


def effect(measure: str, label: str) -> Recovered:
    return Recovered(measure, measure, "log_ms", label, 0.1, 0.2, 0.0, 0.4)


def test_effects_of_measures_that_lack_one_stand_once_beside_all_panels() -> None:
    labels = [f"{name} − intact" for name in LEVELS]
    some = [effect("correct", label) for label in labels[:3] + labels[4:]]
    figure = recovery_figure("recovery", [*some, *(effect("rt", label) for label in labels)]).figure
    assert figure.get_figheight() <= TALLEST
    assert names_beside(figure, 0) == list(labels)
    assert names_beside(figure, 1) == []
    (places,) = [line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert list(places) == [*range(3), *range(4, 27)], "the effect that is missing leaves its row empty"
