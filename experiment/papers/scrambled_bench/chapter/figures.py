"""Figures of Scrambled Bench for a study's own readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.drawing import TALLEST, WIDTH, Drawing, MarkStyle, looks, shortened, shown_of, styled
from analysis.figures.marks import (
    INK,
    handle,
    key_below,
    numbered,
    percent,
    points,
)
from analysis.figures.panels import LOWEST, Room, deepest, lettered, readers_by_place, stacked

WORDS = Path(__file__).with_name("figures.yaml")

GROUP = "reader_group"
ROW, LEGEND_ROW = 2.1, 0.2
LONGEST_NAME = 44


@dataclass(frozen=True)
class PanelAxis:
    """One panel: its title, the values of ``place`` from left to right, and whether they are a scale along which points are joined."""

    title: str
    places: tuple[str, ...]
    joined: bool = False


def panels_figure(
    name: str, title: str, cells: pd.DataFrame, panels: Sequence[PanelAxis], label: str, kinds: dict[str, str]
) -> Drawing:
    """Draw a point for every value, panels below each other; Scrambled Bench draws bars and leaves values below 0 out."""
    shown = cells[
        cells["value"].notna() & cells["place"].isin([at for panel in panels for at in panel.places])
    ]
    look = shown_of(kinds, set(shown[GROUP]))
    foot = LEGEND_ROW * ceil(len(look) / 2) + 0.35
    depth = deepest(panel.places for panel in panels)
    row = min(ROW, (TALLEST - foot) / len(panels) - 0.55 - depth)
    room = stacked(row, 0.1 * WIDTH, depth, foot, above=0.4, right=0.03 * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for number, (axes, panel) in enumerate(zip(drawn, panels, strict=True)):
            own = cells[cells["panel"] == panel.title] if "panel" in cells else cells
            there = [place for place in panel.places if (own["place"] == place).any()]
            readers_by_place(axes, own, there, look, join=1.3 if panel.joined else 0.0)
            axes.set_ylabel(label)
            axes.set_title(lettered(number, len(panels), panel.title))
        _legend(figure, look)
    values = {
        "title": title,
        "shown": shown,
        "absent": [it.label for group, it in looks(kinds).items() if group not in look],
        "lowest": LOWEST,
    }
    return Drawing.described(name, figure, look, WORDS / "scrambled_bench", **values)


def sizes_figure(name: str, title: str, cells: pd.DataFrame, label: str, kinds: dict[str, str]) -> Drawing:
    """Draw a value against the number of parameters, on a logarithmic scale."""
    look = shown_of(kinds, set(cells[GROUP]))
    room = Room(
        2.1, left=0.1 * WIDTH, right=0.03 * WIDTH, top=0, above=0.4, below=0.5 + LEGEND_ROW * ceil(len(look) / 2)
    )  # fmt: skip
    with styled():
        figure, (axes,) = room.panels(1)
        for group, it in look.items():
            own = cells[cells[GROUP] == group]
            points(axes, it, own["parameters"], own["value"], size=6, edge=1.4)
        axes.set(xscale="log", xlabel="Parameters", ylabel=label)
        axes.axhline(0, color=INK, lw=0.8, zorder=1)
        numbered(axes.yaxis, percent)
        _legend(figure, look)
    return Drawing.described(name, figure, look, WORDS / "scrambled_bench_sizes", title=title, cells=cells)


def _legend(figure: Figure, look: Mapping[str, MarkStyle]) -> None:
    handles = [handle(it, shortened(it.label, LONGEST_NAME)) for it in look.values()]
    key_below(figure, handles, 2, handlelength=3.2, labelspacing=0.25)
