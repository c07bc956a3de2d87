"""Figures 2 to 6 of Scrambled Bench for a study's own readers: types, rates, categories, sizes and kept letters.

The paper draws bars and leaves values below 0 out; here every value has its point, and its interval where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.figures.drawing import (
    TALLEST,
    WIDTH,
    Drawing,
    Look,
    key_below,
    looks,
    mark_not_data,
    marks,
    reader_handle,
    shortened,
    shown_of,
    styled,
)
from analysis.figures.labels import laid_out, places_of
from analysis.figures.panels import LOWEST, readers_by_place

GROUP = "reader_group"
ROW, GAP, LEGEND_ROW = 2.1, 0.75, 0.2
LONGEST_NAME = 44


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes
    ----------
    title : str
    places : tuple of str
        Values of the column ``place``, from left to right.
    joined : bool
        Whether points are joined: along a scale, not between kinds.
    """

    title: str
    places: tuple[str, ...]
    joined: bool = False


def panels_figure(
    name: str, title: str, cells: pd.DataFrame, panels: Sequence[Panel], label: str, kinds: dict[str, str]
) -> Drawing:
    """Draw a value of every reader group in panels below each other."""
    shown = cells[
        cells["value"].notna() & cells["place"].isin([at for panel in panels for at in panel.places])
    ]
    look, present = shown_of(kinds, set(shown[GROUP]))
    absent = [it.label for group, it in looks(kinds).items() if group not in look]
    foot = LEGEND_ROW * ceil(len(look) / 2) + 0.35
    deepest = max(
        laid_out(panel.places, places_of(len(panel.places), 0.1 * WIDTH, 0.87 * WIDTH, 0.55)).depth
        for panel in panels
    )
    gap = GAP - 0.2 + deepest
    row = min(ROW, (TALLEST - foot) / len(panels) - gap)
    height = len(panels) * (row + gap) + foot
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for number, panel in enumerate(panels):
            bottom = foot + (len(panels) - 1 - number) * (row + gap) + 0.15 + deepest
            axes = figure.add_axes((0.1, bottom / height, 0.87, row / height))
            own = cells[cells["panel"] == panel.title] if "panel" in cells else cells
            there = [place for place in panel.places if (own["place"] == place).any()]
            models = [group for group in look if kinds[group] == "model"]
            rules = [group for group in look if kinds[group] == "baseline"]
            readers_by_place(axes, own, there, look, models, rules, is_joined=panel.joined)
            axes.set_ylabel(label)
            letter = f"{chr(ord('A') + number)}  " if len(panels) > 1 else ""
            axes.set_title(letter + panel.title)
        _legend(figure, look, kinds)
        mark_not_data(figure, present)
    alternative = _in_words(cells, panels)
    note = (
        "Bars are 95% percentile bootstraps; readers without one have too few units. The line at 0 is text that helps no more than "
        "substituted letters (questions) or an echo (recovery). The paper leaves values below 0 out."
    )
    if absent:
        note += f" Without a value, thus without a point: {apa.listing(absent)}."
    if (shown["value"] < LOWEST).any():
        note += f" Values below {apa.number(LOWEST, 0)}% lie at the panel’s edge; the table has them."
    elif (shown["low"] < LOWEST).any():
        note += f" Bars that reach below {apa.number(LOWEST, 0)}% are cut there; the table has their ends."
    return Drawing.of(name, title, note, alternative, figure)


def size_figure(name: str, title: str, cells: pd.DataFrame, label: str, kinds: dict[str, str]) -> Drawing:
    """Draw a value against the number of parameters, on a logarithmic scale."""
    look, kinds = shown_of(kinds, set(cells[GROUP]))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.0 + LEGEND_ROW * ceil(len(look) / 2)))
        height = float(figure.get_figheight())
        axes = figure.add_axes((0.1, (height - 2.5) / height, 0.87, 2.1 / height))
        for group, it in look.items():
            own = cells[cells[GROUP] == group]
            face = "white" if kinds[group] == "model" else it.colour
            marks(
                axes, own["parameters"], own["value"], it.marker, it.colour, face, size=6, edge=1.4, zorder=2
            )
        axes.set_xscale("log")
        axes.set_xlabel("Parameters")
        axes.set_ylabel(label)
        axes.axhline(0, color="#333333", lw=0.8, zorder=1)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{apa.number(value, 0)}%"))
        _legend(figure, look, kinds)
        mark_not_data(figure, kinds)
    alternative = "; ".join(
        f"{one[GROUP]}: {one['parameters']:.3g} parameters, {apa.number(one['value'], 1)}%"
        for one in cells.to_dict("records")
    )
    note = "A point per model whose size the study says or wrods counted; the axis is logarithmic."
    return Drawing.of(name, title, note, alternative, figure)


def _legend(figure: Figure, look: dict[str, Look], kinds: dict[str, str]) -> None:
    handles = [
        reader_handle(it, kinds[group], shortened(it.label, LONGEST_NAME)) for group, it in look.items()
    ]
    key_below(figure, handles, 2, handlelength=3.2, labelspacing=0.25)


def _in_words(cells: pd.DataFrame, panels: Sequence[Panel]) -> str:
    places = {place for panel in panels for place in panel.places}
    told = []
    where = cells["panel"] + ", " if "panel" in cells else pd.Series("", index=cells.index)
    shown = cells.assign(where=where)[cells["place"].isin(places) & cells["value"].notna()]
    for group, own in shown.groupby(GROUP, sort=False):
        values = ", ".join(
            f"{apa.number(one['value'], 1)}% at {one['where']}{one['place']}"
            for one in own.to_dict("records")
        )
        told.append(f"{group}: {values}")
    return "; ".join(told)
