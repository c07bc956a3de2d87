"""Normalised cost profiles: which conditions cost a reader more than its average one, people and models on one axis."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.costs.units import TITLES
from analysis.figures.cost_panels import (
    axis_name,
    fitted,
    grid,
    in_first_column,
    in_last_row,
    is_person,
    kinds_in_words,
    name_above,
    paged,
    series_of,
)
from analysis.figures.drawing import Drawing, Look, as_svg, looks, mark_not_data, styled
from analysis.names import in_words

_FARTHEST = 4.0
"""Ends of the axis at most, from 1: a profile whose mean is near 0 reaches beyond anything."""


def cost_profile_figures(name: str, shapes: pd.DataFrame, factor: str, base: str) -> list[Drawing]:
    """Draw each reader's log ratios divided by their own mean, a panel for each reader and cost.

    Parameters
    ----------
    name : str
        File name without ending; further figures have a number behind it.
    shapes : pandas.DataFrame
        From :func:`analysis.costs.profiles`, the readers and costs to draw.
    factor : str
    base : str
        The level against which costs are measured.

    Returns
    -------
    list of Drawing
        One for each twelve panels.
    """
    return paged(
        name,
        f"Cost profiles by {factor}, scaled to each reader's mean",
        series_of(shapes, "reader_group", "measure"),
        lambda name, title, series: _figure(name, title, series, shapes, factor, base),
    )


def _figure(
    name: str,
    title: str,
    series: list[tuple[tuple[str, str], pd.DataFrame]],
    shapes: pd.DataFrame,
    factor: str,
    base: str,
) -> Drawing:
    kinds = dict(zip(shapes["reader_group"], shapes["reader_kind"], strict=True))
    look = looks(kinds)
    levels = list(dict.fromkeys(shapes[factor]))
    names = ["\n".join(fitted(in_words(level), 18)) for level in levels]
    widest = max(len(line) for text in names for line in text.split("\n"))
    reach = _reach(shapes)
    sure = shapes[shapes["reader_kind"].map(is_person) & ~shapes["unsure"].astype(bool)]
    people = next((own for _, own in sure.groupby(["reader_group", "measure"], sort=False)), sure)
    with styled():
        tall = 0.26 if all("\n" not in text for text in names) else 0.34
        figure, panels = grid(
            len(series), tall * len(levels) + 0.18, below=0.47, left=0.25 + 0.072 * max(widest, 5)
        )
        for place, (axes, ((group, measure), own)) in enumerate(zip(panels, series, strict=True)):
            if not is_person(kinds[group]):
                _behind(axes, people, factor, levels)
            _profile(axes, own, factor, levels, look[group], kinds[group], reach)
            name_above(axes, group, kinds[group], measure, look[group].colour)
            _frame(axes, names, reach, first=in_first_column(place), last=in_last_row(place, len(series)))
        axis_name(
            figure, panels, f"Cost against {in_words(base)} as a multiple of the reader's mean cost", 0.12
        )
        mark_not_data(figure, kinds)
    alternative = _in_words(shapes, factor)
    note = _note(shapes, base, reach)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _reach(shapes: pd.DataFrame) -> tuple[float, float]:
    values = shapes.loc[~shapes["unsure"].astype(bool), ["scaled", "low", "high"]].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    low = max(min(0.0, float(values.min(initial=0.0))), 1 - _FARTHEST)
    high = min(max(2.0, float(values.max(initial=2.0))), 1 + _FARTHEST)
    return low - 0.15, high + 0.15


def _frame(axes: Axes, names: list[str], reach: tuple[float, float], *, first: bool, last: bool) -> None:
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(*reach)
    axes.axvline(1, color="#333333", lw=0.8, zorder=1)
    axes.axvline(0, color="#333333", lw=0.8, ls=(0, (1, 2)), zorder=1)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: apa.number(value, 0)))
    axes.tick_params(labelsize=8, labelleft=first, labelbottom=last)


def _profile(
    axes: Axes,
    own: pd.DataFrame,
    factor: str,
    levels: list[str],
    it: Look,
    kind: str,
    reach: tuple[float, float],
) -> None:
    if own["unsure"].any():
        axes.text(
            0.5, 0.5, f"no shape: its mean cost\n{_doubt(own)}", transform=axes.transAxes, ha="center", va="center", fontsize=7.5,
            color="#555555", style="italic", linespacing=1.1,
        )  # fmt: skip
        return
    for row in own.to_dict("records"):
        y = levels.index(row[factor])
        ends = np.clip([row["low"], row["high"]], *reach)
        if np.isfinite(ends).all():
            axes.plot(ends, [y, y], color=it.colour, lw=1.4, zorder=3, solid_capstyle="butt")
        if np.isfinite(row["scaled"]) and reach[0] <= row["scaled"] <= reach[1]:
            axes.plot(
                row["scaled"], y, ls="", marker=it.marker, ms=5.5, mec=it.colour, mew=1.2, color=it.colour,
                mfc="white" if kind == "model" else it.colour, zorder=5,
            )  # fmt: skip


def _doubt(own: pd.DataFrame) -> str:
    """Say why a profile has no shape."""
    return "may be 0" if own["mean_low"].notna().all() else "has no interval"


def _behind(axes: Axes, people: pd.DataFrame, factor: str, levels: list[str]) -> None:
    for row in people.to_dict("records"):
        y = levels.index(row[factor])
        axes.plot(
            [row["scaled"]] * 2, [y - 0.32, y + 0.32], color="#BDBDBD", lw=3, zorder=2, solid_capstyle="butt"
        )


def _note(shapes: pd.DataFrame, base: str, reach: tuple[float, float]) -> str:
    kinds = set(shapes["reader_kind"])
    told = (
        f"Log ratios against {base} divided by their mean over the conditions shown: 1 (line) is the reader's average cost, "
        "0 (dotted) none. Bars are 95% bootstrap intervals. Sizes cannot be read from this figure, only shapes."
    )
    if shapes["unsure"].any():
        told += " A reader whose mean cost has an interval that includes 0, or none, has no shape to show."
    ends = shapes.loc[~shapes["unsure"].astype(bool), ["scaled", "low", "high"]].to_numpy(dtype=float)
    if np.nanmin(ends, initial=0.0) < reach[0] or np.nanmax(ends, initial=0.0) > reach[1]:
        told += " Bars end at the edge of the panel where they reach beyond it; the table has the numbers."
    people = shapes["reader_kind"].isin(["human", "simulated"]) & ~shapes["unsure"].astype(bool)
    if people.any() and kinds - {"human", "simulated"}:
        who = "simulated readers" if "human" not in kinds else "people"
        told += f" Grey ticks behind a model are those of {who}."
    return told + kinds_in_words(kinds)


def _in_words(shapes: pd.DataFrame, factor: str) -> str:
    told = []
    for (group, measure), own in shapes.groupby(["reader_group", "measure"], sort=False):
        values = ", ".join(f"{row[factor]} {apa.number(row['scaled'])}" for row in own.to_dict("records"))
        values = f"no shape, since the mean cost {_doubt(own)}" if own["unsure"].any() else values
        told.append(f"{group}, {TITLES[str(measure)].lower()}: {values}")
    return "Cost of each condition as a multiple of the reader's mean cost. " + "; ".join(told) + "."
