"""Marginal means or coefficients of one model with their intervals: the figure of ``FittedModel.plot``."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.drawing import WIDTH, style, styled
from analysis.figures.labels import fit_labels

APART = 0.6
"""Share of the room between two levels that the cells of the other factors take."""


def estimates_figure(table: pd.DataFrame, factors: Sequence[str], axis: str) -> Figure:
    """Draw estimates with their 95% intervals.

    Parameters
    ----------
    table : DataFrame
        ``estimate``, ``ci_low``, ``ci_high``, and a column per factor, or ``term`` where there are no factors.
    factors : sequence of str
        The first goes from left to right, the cells of the others are drawn next to each other. Without factors each term gets a line.
    axis : str
        What the estimates are, for the axis.
    """
    if not factors and len(table) > 1:
        table = table[table["term"] != "(Intercept)"]  # it would leave no room for the others
    ends = table[["ci_low", "ci_high"]].sub(table["estimate"], axis=0).abs().to_numpy(dtype=float).T
    with styled():
        if not factors:
            figure = Figure(figsize=(WIDTH, 1.1 + 0.28 * len(table)), layout="constrained")
            axes = figure.add_subplot()
            lines = list(range(len(table)))[::-1]
            axes.errorbar(
                table["estimate"], lines, xerr=ends, fmt="o", color=style()["people"]["colour"], ms=5
            )
            axes.axvline(0.0, color="#555555", lw=0.8, ls=(0, (2, 2)))
            axes.set_ylim(-0.6, len(table) - 0.4)
            axes.set_yticks(lines, [str(term) for term in table["term"]])
            axes.set_xlabel(f"{axis}, 95% CI")
            return figure
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.11, 0.16, 0.86, 0.8))
        first, others = factors[0], list(factors[1:])
        levels = list(dict.fromkeys(table[first]))
        cells = (
            table[others].astype(str).agg(", ".join, axis=1) if others else pd.Series("", index=table.index)
        )
        series = list(dict.fromkeys(cells))
        looks = [style()["people"], *style()["models"]]
        for turn, name in enumerate(series):
            rows = (cells == name).to_numpy()
            shift = APART * (turn - (len(series) - 1) / 2) / len(series)
            look = looks[turn % len(looks)]
            axes.errorbar(
                [levels.index(level) + shift for level in table.loc[rows, first]],
                table.loc[rows, "estimate"],
                yerr=ends[:, rows],
                fmt=look["marker"],
                color=look["colour"],
                ms=6,
                label=name,
            )
        axes.set_xticks(range(len(levels)), [str(level) for level in levels])
        axes.set_xlim(-0.6, len(levels) - 0.4)
        fit_labels(axes)
        axes.set_xlabel(first)
        axes.set_ylabel(f"{axis}, 95% CI")
        if others:
            axes.legend(title=", ".join(others), frameon=False)
    return figure
