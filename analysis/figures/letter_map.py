"""Place by kind of change: what each cell of the letter design costs each reader, as shaded cells with their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, Look, as_svg, keep_width, looks, mark_not_data, styled
from analysis.figures.letter_curves import KIND_LOOKS, PLACE_TICKS, CurvePanel, CurvePoint, drawn, shortened

KIND_NAMES = {
    "transposition": "transposed",
    "substitution": "substituted",
    "shuffle": "several moved",
    "other": "other",
}
SHADES = LinearSegmentedColormap.from_list("cost", ["#FFFFFF", "#CFE1F2", "#6AAED6", "#08306B"])
ACROSS = 3
WIDEST, CHARACTER = 2.9, 0.053
"""Inches: a map at its widest, and what a character of an interval takes in a cell."""
CELL, HEAD, FOOT, LEFT = 0.44, 0.42, 0.30, 0.95
"""Inches: height of a cell, room above and below a map, room for the names of rows."""


def letter_map(name: str, panels: Sequence[CurvePanel], title: str, note: str) -> Drawing:
    """Draw a map for each panel: kinds as rows, places as columns, darker where it costs more.

    Parameters
    ----------
    name : str
    panels : sequence of CurvePanel
        One measure; each with one segment, whose places are the columns. Shades are of one scale for all.
    title, note : str
        As :class:`~analysis.figures.drawing.Drawing`.
    """
    kinds = {panel.group: panel.kind for panel in panels}
    look = looks(kinds)
    rows = [k for k in KIND_LOOKS if any(p.kind == k for panel in panels for p in panel.segments[0][2])]
    decimals = _decimals(panels)
    needed = _needed(panels, decimals)
    across = _across(len(panels), needed)
    down = -(-len(panels) // across)
    each = HEAD + FOOT + CELL * len(rows)
    top = 0.28
    height = top + down * each
    most = max([p.cost for panel in panels for p in panel.segments[0][2] if np.isfinite(p.cost)] + [1e-9])
    wide = _wide(across, needed)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for turn, panel in enumerate(panels):
            row, column = divmod(turn, across)
            x, y = LEFT + column * (wide + 0.2), height - top - row * each - HEAD - CELL * len(rows)
            box = (x / WIDTH, y / height, wide / WIDTH, CELL * len(rows) / height)
            axes = figure.add_axes(box)
            _map(axes, panel, rows, most, decimals, column == 0)
            label = shortened(look[panel.group].label, int(13 * wide))
            axes.set_title(label, fontsize=9)
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _in_words(panels, look)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _wide(across: int, needed: float) -> float:
    """Return the inches that a map is wide where so many stand beside each other and one needs so much."""
    return min((WIDTH - LEFT - 0.05 - 0.2 * (across - 1)) / across, max(WIDEST, needed))


def _needed(panels: Sequence[CurvePanel], decimals: int) -> float:
    """Return the inches that a map has to be wide for each cell to hold its interval."""
    ends = [_ends(point, decimals) for panel in panels for point in panel.segments[0][2] if drawn(point)]
    places = max(len(panel.segments[0][1]) for panel in panels)
    return max(map(len, ends), default=0) * CHARACTER * places


def _across(many: int, needed: float) -> int:
    """Return how many maps stand beside each other: as many as have the width that they need."""
    fitting = [across for across in range(1, ACROSS + 1) if _wide(across, needed) >= needed]
    return min(max(fitting, default=1), many)


def _decimals(panels: Sequence[CurvePanel]) -> int:
    """Return the decimals of numbers of the size of the largest cost or saving."""
    sizes = [abs(p.cost) for panel in panels for p in panel.segments[0][2] if np.isfinite(p.cost)]
    largest = max(sizes, default=0.0)
    return 0 if largest >= 20 else 1 if largest >= 2 else 2


def _ends(point: CurvePoint, decimals: int) -> str:
    return apa.interval(point.low, point.high, decimals)


def _map(axes: Axes, panel: CurvePanel, rows: Sequence[str], most: float, decimals: int, first: bool) -> None:
    _, places, points = panel.segments[0]
    axes.set_xlim(0, len(places))
    axes.set_ylim(len(rows), 0)
    axes.grid(False)
    axes.set_xticks(np.arange(len(places)) + 0.5, [PLACE_TICKS.get(one, one) for one in places], fontsize=8.5)
    axes.set_yticks(
        np.arange(len(rows)) + 0.5, [KIND_NAMES[kind] for kind in rows] if first else [""] * len(rows)
    )
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for down, kind in enumerate(rows):
        for across, place in enumerate(places):
            own = next((p for p in points if p.kind == kind and p.place == place), None)
            if own is None or not np.isfinite(own.cost):
                empty = Rectangle((across, down), 1, 1, fc="white", ec="#AAAAAA", hatch="////", lw=0.6)
                axes.add_patch(empty)
                continue
            share = min(max(own.cost / most, 0.0), 1.0)
            axes.add_patch(Rectangle((across, down), 1, 1, fc=SHADES(share), ec="#D5D5D5", lw=0.8))
            ink = "white" if share > 0.78 else "#111111"
            middle = down + (0.36 if drawn(own) else 0.5)
            told = apa.number(own.cost, decimals)
            axes.text(across + 0.5, middle, told, ha="center", va="center", fontsize=9, color=ink)
            if drawn(own):
                axes.text(
                    across + 0.5,
                    down + 0.74,
                    _ends(own, decimals),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=ink,
                )


def _in_words(panels: Sequence[CurvePanel], look: dict[str, Look]) -> str:
    told = []
    for panel in panels:
        values = ", ".join(
            f"{KIND_NAMES[p.kind]} {PLACE_TICKS.get(p.place, p.place)} {apa.number(p.cost, 1)}"
            for p in panel.segments[0][2]
        )
        told.append(f"{look[panel.group].label}, {panel.axis}: {values}.")
    return " ".join(told)
