"""Figures of H-TEST: accuracy over numbers of examples, over a family's sizes, and with and without thoughts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, label_ends, looks, mark_not_data, styled
from analysis.readers import headed

CHANCE = 50.0
MOST_LABELLED = 10


@dataclass(frozen=True)
class Line:
    """One line of a panel: percentages right with the ends of their intervals at places of the axis.

    Attributes
    ----------
    label : str
    group : str
        Reader group, which decides the look.
    places : tuple of int
    values, low, high : tuple of float
        Percent.
    is_open : bool
        Drawn with open marks and dashes, such as adjusted accuracy.
    """

    label: str
    group: str
    places: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    is_open: bool = False


def lines_figure(
    name: str,
    title: str,
    note: str,
    panels: Sequence[tuple[str, Sequence[Line]]],
    steps: Sequence[str],
    axis: str,
    kinds: dict[str, str],
) -> Drawing:
    """Draw accuracy over steps, a panel a making of items, all panels on one axis, one below the other.

    Parameters
    ----------
    name, title, note : str
    panels : sequence of (str, sequence of Line)
        Heading and lines.
    steps : sequence of str
        What stands at each place of the axis.
    axis : str
        What the steps are.
    kinds : dict
        Reader kind of every group drawn.
    """
    look = looks(kinds)
    tallest = max((len(lines) for _, lines in panels), default=1)
    height = max(2.2, 0.2 * min(tallest, MOST_LABELLED) + 1.0)
    total = height * len(panels) + 0.45
    with styled():
        figure = Figure(figsize=(WIDTH, total))
        for number, (heading, lines) in enumerate(panels):
            bottom = (0.5 + height * (len(panels) - 1 - number)) / total
            axes = figure.add_axes((0.09, bottom, 0.6, (height - 0.5) / total))
            axes.set(xlim=(-0.3, len(steps) - 0.7), ylim=(0, 103))
            axes.set_xticks(
                range(len(steps)), list(steps) if number == len(panels) - 1 else [""] * len(steps)
            )
            axes.set_yticks(range(0, 101, 25))
            axes.yaxis.set_major_formatter(FuncFormatter(_percent))
            axes.set_ylabel("Right answers")
            if heading:
                axes.set_title(heading, loc="left", fontsize=9)
            axes.axhline(CHANCE, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
            ends = []
            spread = 0.05 if len(lines) > 1 else 0.0
            for place, line in enumerate(lines):
                own = look[line.group]
                x = np.array(line.places) + spread * (place - (len(lines) - 1) / 2) / max(len(lines) / 4, 1)
                y, low, high = (np.array(part) for part in (line.values, line.low, line.high))
                axes.errorbar(
                    x,
                    y,
                    yerr=np.vstack([np.clip(y - low, 0, None), np.clip(high - y, 0, None)]),
                    color=own.colour,
                    marker=own.marker,
                    ms=5,
                    mfc="white" if line.is_open else own.colour,
                    ls=(0, (1, 1.5)) if line.is_open else own.line,
                    lw=1.2,
                    elinewidth=0.8,
                )
                ends.append(
                    (
                        float(x[-1]),
                        float(y[-1]),
                        own.label if line.label == line.group else line.label,
                        own.colour,
                    )
                )
            label_ends(axes, ends[:MOST_LABELLED], len(steps) - 0.6)
            if number == len(panels) - 1:
                axes.set_xlabel(axis)
        mark_not_data(figure, kinds)
    alternative = _in_words(panels, steps)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _percent(value: float, _: object = None) -> str:
    """Write a percentage; chance says that it is."""
    return f"chance\n{value:.0f}%" if value == CHANCE else f"{value:.0f}%"


def _in_words(panels: Sequence[tuple[str, Sequence[Line]]], steps: Sequence[str]) -> str:
    told = []
    for heading, lines in panels:
        for line in lines:
            values = ", ".join(
                f"{apa.number(value, 1)}% at {steps[place]}"
                for place, value in zip(line.places, line.values, strict=True)
            )
            told.append(f"{heading + ', ' if heading else ''}{headed(line.label)}: {values}")
    return "Percentage right. " + "; ".join(told) + "."
