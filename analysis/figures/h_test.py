"""H-TEST: accuracy over numbers of examples, and against letter geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    intervals,
    label_ends,
    looks,
    mark_not_data,
    shortened,
    styled,
)
from analysis.published.h_test import Fitted, Point
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
    """Draw accuracy over steps, a panel a making of items, all panels on one axis, one below the other."""
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
    alternative = _lines_in_words(panels, steps)
    return Drawing.of(name, title, note, alternative, figure)


def _percent(value: float, _: object = None) -> str:
    """Write a percentage; chance says that it is."""
    return f"chance\n{value:.0f}%" if value == CHANCE else f"{value:.0f}%"


def _lines_in_words(panels: Sequence[tuple[str, Sequence[Line]]], steps: Sequence[str]) -> str:
    told = []
    for heading, lines in panels:
        for line in lines:
            values = ", ".join(
                f"{apa.number(value, 1)}% at {steps[place]}"
                for place, value in zip(line.places, line.values, strict=True)
            )
            told.append(f"{heading + ', ' if heading else ''}{headed(line.label)}: {values}")
    return "Percentage right. " + "; ".join(told) + "."


_GREY, _LINE, _PRINTED_LINE = "#777777", "#B3261E", "#999999"
_LONGEST = 30
_LETTER, _LEAST_X, _MOST_X, _LEAST_Y, _MOST_Y = 0.8, 18.5, 102.5, -5.5, 99.0
_UPWARDS, _NEAR = (1.2, -4.2, 4.4, -7.4), 4.3
"""How far above its point a name may stand, the nearest first; the first two are near."""
_FARTHER, _MOST_STRUCK = 2.0, 4
"""What standing farther off costs, in lines that a name may rather be struck by, and how many of these count."""

Box = tuple[float, float, float, float]
"""Left, right, lower and upper edge."""


def geometry_figure(
    name: str,
    title: str,
    note: str,
    points: Sequence[Point],
    printed: Sequence[Point],
    line: Fitted | None,
    printed_line: Fitted | None,
) -> Drawing:
    """Draw readers as points with intervals both ways, the paper's printed models in grey behind them."""
    kinds = {one.group: one.kind for one in points}
    look = looks(kinds)
    with styled():
        figure = Figure(figsize=(WIDTH, 4.4))
        axes = figure.add_axes((0.1, 0.12, 0.86, 0.82))
        axes.set(xlim=(18, 103), ylim=(-6, 103), xlabel="H-TEST", ylabel="Letter geometry")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
        axes.axvline(50, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
        axes.axhline(25, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
        axes.text(50.6, 102, "chance", fontsize=7, color="#555555", va="top")
        axes.text(19, 25.8, "chance", fontsize=7, color="#555555")
        _straight(axes, printed, printed_line, _PRINTED_LINE, (0, (1, 1.5)))
        models = [one for one in points if one.kind == "model"]
        _straight(axes, models, line, _LINE, "-")
        for one in printed:
            axes.plot(one.x[0], one.y[0], ls="", marker="o", ms=4, mfc="white", mec=_GREY, zorder=2)
        for one in points:
            _point(axes, one, look[one.group])
        own = [(one, look[one.group].colour, look[one.group].label) for one in points]
        boxes = _drawn(points, [(printed, printed_line), (models, line)])
        _labels(axes, [*own, *((one, _GREY, one.group) for one in printed)], boxes)
        mark_not_data(figure, kinds)
    alternative = _geometry_in_words(points, printed, line)
    return Drawing.of(name, title, note, alternative, figure)


def _straight(axes: Axes, points: Sequence[Point], line: Fitted | None, colour: str, dashes: object) -> None:
    if line is None:
        return
    ends = np.array(_ends(points))
    axes.plot(ends, line.intercept + line.slope * ends, color=colour, ls=dashes, lw=1.3, zorder=2)


def _ends(points: Sequence[Point]) -> tuple[float, float]:
    """Return from where to where a line through points is drawn."""
    return min(one.x[0] for one in points), max(one.x[0] for one in points)


def _drawn(points: Sequence[Point], lines: Sequence[tuple[Sequence[Point], Fitted | None]]) -> list[Box]:
    """Return what names are not written over: chance, intervals, and straight lines, these as rows of small boxes."""
    boxes: list[Box] = [(49.8, 50.2, -6.0, 103.0), (18.0, 103.0, 24.7, 25.3)]
    for one in points:
        x, y = one.x[0], one.y[0]
        boxes += [(one.x[1], one.x[2], y - 0.3, y + 0.3), (x - 0.2, x + 0.2, one.y[1], one.y[2])]
    for through, line in lines:
        if line is not None:
            first, last = _ends(through)
            for x in map(float, np.arange(first, last, 0.5)):
                y = line.intercept + line.slope * x
                boxes.append((x - 0.3, x + 0.3, y - 0.4, y + 0.4))
    return boxes


def _point(axes: Axes, one: Point, look: Look) -> None:
    x, y = one.x[0], one.y[0]
    intervals(axes, y, *one.x[1:], look.colour, across=True, width=1, zorder=3)
    intervals(axes, x, *one.y[1:], look.colour, width=1, zorder=3)
    axes.plot(x, y, ls="", marker=look.marker, ms=6, color=look.colour, zorder=4)


def _labels(axes: Axes, named: Sequence[tuple[Point, str, str]], drawn: Sequence[Box]) -> None:
    """Write each name beside its point, where no other point or name stands, and where it touches the fewest lines."""
    taken: list[Box] = [
        (one.x[0] - 1.0, one.x[0] + 1.0, one.y[0] - 1.5, one.y[0] + 1.5) for one, _, _ in named
    ]
    for one, colour, label in named:
        text = shortened(label, _LONGEST)
        wide = _LETTER * len(text)
        x, y = one.x[0], one.y[0]
        right, left = (x + 1.2, x + 1.2 + wide), (x - 1.2 - wide, x - 1.2)
        tries = [(*ends, y + up, y + up + 3.0) for up in _UPWARDS for ends in (right, left)]
        inside = [
            box for box in tries if box[0] > _LEAST_X and box[1] < _MOST_X and _LEAST_Y < box[2] < _MOST_Y
        ] or tries
        free = [box for box in inside if not any(_touch(box, other) for other in taken)] or inside
        found = min(
            free, key=lambda box: _struck(box, drawn) + (_FARTHER if abs(box[2] - y) > _NEAR else 0.0)
        )
        taken.append(found)
        is_left = found[1] < x
        place, side = (found[1], "right") if is_left else (found[0], "left")
        written = axes.text(place, found[2] + 0.4, text, ha=side, fontsize=7, color=colour, zorder=5)
        written.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _struck(box: Box, drawn: Sequence[Box]) -> int:
    """Count what a name would be written over, so far as more make it worse."""
    return min(sum(_touch(box, other) for other in drawn), _MOST_STRUCK)


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _geometry_in_words(points: Sequence[Point], printed: Sequence[Point], line: Fitted | None) -> str:
    told = [
        f"{headed(one.group)}{'' if one.kind else ' (printed)'}: H-TEST {apa.number(one.x[0], 1)}%, "
        f"letter geometry {apa.number(one.y[0], 1)}%"
        for one in (*points, *printed)
    ]
    said = "" if line is None else f" Line through the models: r = {apa.correlation(line.r)}."
    return f"Percentage right. {'; '.join(told)}.{said}"
