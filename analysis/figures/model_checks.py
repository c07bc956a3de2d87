"""Simulated residuals of one model, and how far leaving out a participant or an item moves the planned contrasts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures.drawing import WIDTH, Drawing, palette, styled
from analysis.figures.marks import DASHED, SOFT, points

MOST_POINTS = 2000  # residuals that are drawn; of more, as many at even steps


def model_checks_figure(
    name: str,
    title: str,
    residuals: NDArray[np.float64] | None,
    changes: Mapping[str, pd.DataFrame],
    alternative: str,
) -> Drawing:
    """Draw residuals against uniform ones, and for each unit the largest change of a contrast in standard errors."""
    (look,) = palette([""])
    with styled():
        figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
        panels = list(figure.subplots(1, (residuals is not None) + len(changes), squeeze=False)[0])
        if residuals is not None:
            axes = panels.pop(0)
            levels = (np.arange(min(len(residuals), MOST_POINTS)) + 0.5) / min(len(residuals), MOST_POINTS)
            axes.plot([0, 1], [0, 1], color=SOFT, lw=0.8, ls=DASHED)
            axes.plot(levels, np.quantile(residuals, levels), color=look.colour, lw=1.6)
            axes.set(xlabel="Expected", ylabel="Simulated residual")
        for axes, (unit, table) in zip(panels, changes.items(), strict=True):
            largest = np.sort(table.abs().max(axis=1).to_numpy())
            points(axes, look, np.arange(1, len(largest) + 1), largest, size=3)
            axes.set_ylim(0, max(1.0, 1.08 * float(largest[-1])))
            axes.set(xlabel=f"{unit.capitalize()}s, ordered", ylabel="Largest change (SE)")
    values = {"has_residuals": residuals is not None, "title": title, "alternative": alternative}
    return Drawing.described(name, figure, {}, "model_checks", **values)
