"""Cost against accuracy: each reader in each condition a point, costs as log ratios against the reader's own baseline."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.costs.units import TITLES
from analysis.figures.cost_panels import (
    axis_name,
    condition_key,
    condition_looks,
    grid,
    in_first_column,
    in_last_row,
    is_person,
    key_height,
    kinds_in_words,
    name_above,
    paged,
    series_of,
)
from analysis.figures.drawing import Drawing, Look, as_svg, looks, mark_not_data, styled
from analysis.intervals import OF_SHARES

_LEAST = 0.1
"""The axis of costs is at least this long, so that no cost at all looks like none."""


def cost_accuracy_figures(
    name: str, points: pd.DataFrame, factor: str, levels: tuple[str, ...]
) -> list[Drawing]:
    """Draw each reader's accuracy over its costs, a panel for each reader and cost, on common axes.

    Parameters
    ----------
    name : str
        File name without ending; further figures have a number behind it.
    points : pandas.DataFrame
        From :func:`analysis.costs.cost_and_accuracy`.
    factor : str
    levels : tuple of str
        The level against which costs are measured first.

    Returns
    -------
    list of Drawing
        One for each twelve panels.
    """
    return paged(
        name,
        f"Cost against accuracy by {factor} and reader",
        series_of(points, "reader_group", "measure"),
        lambda name, title, series: _figure(name, title, series, points, factor, levels),
    )


def _figure(
    name: str,
    title: str,
    series: list[tuple[tuple[str, str], pd.DataFrame]],
    points: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
) -> Drawing:
    kinds = dict(zip(points["reader_group"], points["reader_kind"], strict=True))
    look = looks(kinds)
    shapes = condition_looks([level for level in levels if (points[factor] == level).any()])
    people = points[points["reader_kind"].map(is_person)]
    key = key_height(shapes)
    with styled():
        figure, panels = grid(len(series), 1.75, below=key + 0.48, left=0.62, between=0.34)
        reach = _reach(points)
        for place, (axes, ((group, measure), own)) in enumerate(zip(panels, series, strict=True)):
            if not is_person(kinds[group]):
                _behind(axes, people, factor, shapes)
            _points(axes, own, factor, shapes, look[group], kinds[group])
            name_above(axes, group, kinds[group], measure, look[group].colour)
            _frame(axes, reach, first=in_first_column(place), last=in_last_row(place, len(series)))
        text = f"Cost against the reader's own {levels[0]} condition (natural log ratio)"
        axis_name(figure, panels, text, key + 0.1)
        condition_key(figure, panels, shapes, lines=False)
        mark_not_data(figure, kinds)
    alternative = _in_words(points, factor)
    return Drawing(
        name, title, _note(points, levels[0]), alternative, as_svg(figure, name, title, alternative), figure
    )


def _reach(points: pd.DataFrame) -> tuple[float, float]:
    values = points[["log_ratio", "cost_low", "cost_high"]].to_numpy(dtype=float)
    low, high = min(0.0, float(np.nanmin(values))), max(_LEAST, float(np.nanmax(values)))
    edge = 0.07 * (high - low)
    return low - edge, high + edge


def _frame(axes: Axes, reach: tuple[float, float], *, first: bool, last: bool) -> None:
    axes.set_xlim(*reach)
    axes.set_ylim(-4, 104)
    axes.set_yticks(range(0, 101, 25))
    axes.axvline(0, color="#333333", lw=0.7, zorder=1)
    axes.grid(True, axis="both")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: apa.number(value, 2).removesuffix("0")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
    axes.tick_params(labelsize=8, labelleft=first, labelbottom=last)
    if first:
        axes.set_ylabel("Correct answers", fontsize=8.5)


def _points(axes: Axes, own: pd.DataFrame, factor: str, shapes: dict[str, Look], it: Look, kind: str) -> None:
    for row in own.to_dict("records"):
        x, y = row["log_ratio"], 100 * row["correct"]
        shape = shapes[str(row[factor])].marker
        if np.isfinite(row["cost_low"]):
            axes.plot([row["cost_low"], row["cost_high"]], [y, y], color=it.colour, lw=1.1, zorder=3)
        if np.isfinite(row["correct_low"]):
            ends = [100 * row["correct_low"], 100 * row["correct_high"]]
            axes.plot([x, x], ends, color=it.colour, lw=1.1, zorder=3)
        axes.plot(
            x, y, ls="", marker=shape, ms=8.5 if shape == "*" else 6, color=it.colour, mec=it.colour, mew=1.2,
            mfc="white" if kind == "model" else it.colour, zorder=5,
        )  # fmt: skip


def _behind(axes: Axes, people: pd.DataFrame, factor: str, shapes: dict[str, Look]) -> None:
    for row in people.to_dict("records"):
        axes.plot(
            row["log_ratio"], 100 * row["correct"], ls="", marker=shapes[str(row[factor])].marker, ms=4.5, color="#C4C4C4",
            mec="none", zorder=2,
        )  # fmt: skip


def _note(points: pd.DataFrame, base: str) -> str:
    kinds = set(points["reader_kind"])
    told = (
        f"A point is a reader in a condition. 0 is the reader's own {base}; 0.10 is 10.5% more, 0.69 twice as much. "
        f"Horizontal bars "
        "are 95% bootstrap intervals of the log ratio (participants and items drawn at once; items for a model); vertical "
        f"ones are within-participant intervals (for a model {OF_SHARES}). Failures count as wrong."
    )
    if kinds & {"human", "simulated"} and kinds - {"human", "simulated"}:
        who = "simulated readers" if "human" not in kinds else "people"
        told += f" Grey marks behind a model are those of {who}."
    return told + kinds_in_words(kinds)


def _in_words(points: pd.DataFrame, factor: str) -> str:
    told = []
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        values = ", ".join(
            f"{row[factor]} {apa.number(row['log_ratio'])} and {apa.percent(row['correct'])}"
            for row in own.to_dict("records")
        )
        told.append(f"{group}, {TITLES[str(measure)].lower()}: {values}")
    return "Log ratio of cost and share of right answers. " + "; ".join(told) + "."
