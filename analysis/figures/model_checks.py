"""Simulated residuals of one model, and how far leaving out a participant or an item moves the planned contrasts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures.drawing import WIDTH, Drawing, style, styled

MOST_POINTS = 2000
"""Residuals that are drawn; of more, as many at even steps."""


def model_checks_figure(
    name: str,
    title: str,
    residuals: NDArray[np.float64] | None,
    changes: Mapping[str, pd.DataFrame],
    alternative: str,
) -> Drawing:
    """Draw residuals against uniform ones, and for each unit the largest change of a contrast in standard errors."""
    colour = style()["people"]["colour"]
    with styled():
        figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
        panels = (residuals is not None) + len(changes)
        if residuals is not None:
            axes = figure.add_subplot(1, panels, 1)
            levels = (np.arange(min(len(residuals), MOST_POINTS)) + 0.5) / min(len(residuals), MOST_POINTS)
            axes.plot([0, 1], [0, 1], color="#555555", lw=0.8, ls=(0, (2, 2)))
            axes.plot(levels, np.quantile(residuals, levels), color=colour, lw=1.6)
            axes.set_xlabel("Expected")
            axes.set_ylabel("Simulated residual")
        for turn, (unit, table) in enumerate(changes.items(), panels - len(changes) + 1):
            axes = figure.add_subplot(1, panels, turn)
            largest = np.sort(table.abs().max(axis=1).to_numpy())
            axes.plot(np.arange(1, len(largest) + 1), largest, ls="", marker="o", ms=3, color=colour)
            axes.set_ylim(0, max(1.0, 1.08 * float(largest[-1])))
            axes.set_xlabel(f"{unit.capitalize()}s, ordered")
            axes.set_ylabel("Largest change (SE)")
    note = (
        "Left: residuals of the mixed model, places of the observations among simulated ones, against uniform ones (dashed). "
        if residuals is not None
        else ""
    )
    note += "Changes: for each unit left out, the largest change of a contrast in its standard errors."
    return Drawing.of(name, title, note, alternative, figure)
