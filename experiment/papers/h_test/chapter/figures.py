"""Figures of H-TEST for a study's own readers: accuracy by number of examples, and beside letter geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from analysis.figures.drawing import WIDTH, Drawing, MarkStyle, looks, shortened, styled
from analysis.figures.marks import (
    DASHED,
    SOFT,
    IntervalMarks,
    dodged,
    label_ends,
    numbered,
    percent,
    points,
)
from analysis.figures.panels import Room
from experiment.papers.h_test.chapter.measures import Fitted, ReaderPoint

WORDS = Path(__file__).with_name("figures.yaml")

CHANCE = 50.0
MOST_LABELLED = 10


@dataclass(frozen=True)
class PanelLine:
    """One line of a panel: percentages right of a reader group with the ends of their intervals at places of the axis.

    ``is_open`` lines have open marks and dashes, such as adjusted accuracy; places that are not ordered are not joined.
    """

    label: str
    group: str
    places: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    is_open: bool = False
    is_joined: bool = True


def lines_figure(
    name: str,
    caption: tuple[str, str],
    panels: Sequence[tuple[str, Sequence[PanelLine]]],
    steps: Sequence[str],
    axis: str,
    kinds: dict[str, str],
) -> Drawing:
    """Draw accuracy over steps, a panel a making of items, all panels on one axis, one below the other."""
    look = looks(kinds)
    tallest = max((len(lines) for _, lines in panels), default=1)
    height = max(1.7, 0.2 * min(tallest, MOST_LABELLED) + 0.5)
    room = Room(height, left=0.09 * WIDTH, columns=1, above=0.45, gap=0.05, top=0, widest=0.6 * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for axes, (heading, lines) in zip(drawn, panels, strict=True):
            axes.set(xlim=(-0.3, len(steps) - 0.7), ylim=(0, 103), yticks=range(0, 101, 25))
            axes.set_xticks(range(len(steps)), list(steps))
            numbered(
                axes.yaxis, lambda value: f"chance\n{CHANCE:.0f}%" if value == CHANCE else percent(value)
            )
            axes.set_ylabel("Correct answers")
            axes.set_title(heading, loc="left", fontsize=9)
            axes.axhline(CHANCE, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
            ends = []
            for turn, line in enumerate(lines):
                it = replace(look[line.group], is_hollow=line.is_open)
                it = replace(it, line=(0, (1, 1.5))) if line.is_open else it
                x = np.array(line.places) + dodged(turn, len(lines), 0.05, 0.2)
                y = IntervalMarks(line.values, np.array(line.low), np.array(line.high))
                points(axes, it, x, y, join=1.2 * line.is_joined, size=5, edge=1.0, bar=0.8)
                label = it.label if line.label == line.group else line.label
                ends.append((float(x[-1]), line.values[-1], label, it.colour))
            label_ends(axes, ends[:MOST_LABELLED], len(steps) - 0.6)
        drawn[-1].set_xlabel(axis)
    title, note = caption
    return Drawing.described(
        name, figure, look, WORDS / "h_test", title=title, note=note, panels=panels, steps=steps
    )


_GREY, _LINE, _PRINTED_LINE = "#777777", "#B3261E", "#999999"
_LONGEST = 30
_LETTER, _LEAST_X, _MOST_X, _LEAST_Y, _MOST_Y = 0.8, 18.5, 102.5, -5.5, 99.0
_UPWARDS, _NEAR = (1.2, -4.2, 4.4, -7.4), 4.3
"""How far above its point a name may stand, the nearest first; the first two are near."""
_FARTHER, _MOST_STRUCK = 2.0, 4
"""What standing farther off costs, in lines that a name may rather be struck by, and how many of these count."""

Box = tuple[float, float, float, float]  # left, right, lower and upper edge


def geometry_figure(
    name: str,
    caption: tuple[str, str],
    own: Sequence[ReaderPoint],
    printed: Sequence[ReaderPoint],
    lines: tuple[Fitted | None, Fitted | None],
) -> Drawing:
    """Draw readers as points with intervals both ways, the paper's printed models in grey behind; lines are of either."""
    look = looks({point.group: point.kind for point in own})
    models = [point for point in own if point.kind == "model"]
    with styled():
        figure = Figure(figsize=(WIDTH, 4.4))
        axes = figure.add_axes((0.1, 0.12, 0.86, 0.82))
        axes.set(xlim=(18, 103), ylim=(-6, 103), xlabel="H-TEST", ylabel="Letter geometry")
        for axis in (axes.xaxis, axes.yaxis):
            numbered(axis, percent)
        axes.axvline(50, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
        axes.axhline(25, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
        axes.text(50.6, 102, "chance", fontsize=7, color=SOFT, va="top")
        axes.text(19, 25.8, "chance", fontsize=7, color=SOFT)
        boxes: list[Box] = [(49.8, 50.2, -6.0, 103.0), (18.0, 103.0, 24.7, 25.3)]
        for through, line, colour, dashes in (
            (printed, lines[1], _PRINTED_LINE, (0, (1, 1.5))),
            (models, lines[0], _LINE, "-"),
        ):
            if line is not None:
                ends = np.array([min(one.x[0] for one in through), max(one.x[0] for one in through)])
                axes.plot(ends, line.intercept + line.slope * ends, color=colour, ls=dashes, lw=1.3, zorder=2)
                for x in map(float, np.arange(ends[0], ends[1], 0.5)):
                    y = line.intercept + line.slope * x
                    boxes.append((x - 0.3, x + 0.3, y - 0.4, y + 0.4))
        for point in printed:
            points(
                axes,
                MarkStyle(_GREY, "o", is_hollow=True),
                point.x[0],
                point.y[0],
                size=4,
                edge=1.0,
                zorder=2,
            )
        for point in own:
            it, x, y = look[point.group], point.x[0], point.y[0]
            points(
                axes,
                it,
                IntervalMarks(*point.x),
                IntervalMarks(*point.y),
                size=6,
                bar=1,
                edge=1.0,
                face=it.colour,
            )
            boxes += [(*point.x[1:], y - 0.3, y + 0.3), (x - 0.2, x + 0.2, *point.y[1:])]
        named = [(point, look[point.group].colour, look[point.group].label) for point in own]
        _labels(axes, [*named, *((point, _GREY, point.group) for point in printed)], boxes)
    title, note = caption
    values = {"title": title, "note": note, "printed": printed, "line": lines[0]}
    return Drawing.described(name, figure, look, WORDS / "h_test_geometry", own=own, **values)


def _labels(axes: Axes, named: Sequence[tuple[ReaderPoint, str, str]], drawn: Sequence[Box]) -> None:
    """Write each name next to its point, away from other points and names, and where it touches the fewest lines."""
    taken: list[Box] = [
        (one.x[0] - 1.0, one.x[0] + 1.0, one.y[0] - 1.5, one.y[0] + 1.5) for one, _, _ in named
    ]
    for one, colour, label in named:
        text = shortened(label, _LONGEST)
        x, y, wide = one.x[0], one.y[0], _LETTER * len(text)
        sides = (x + 1.2, x + 1.2 + wide), (x - 1.2 - wide, x - 1.2)
        tries: list[Box] = [(*ends, y + up, y + up + 3.0) for up in _UPWARDS for ends in sides]
        inside = [
            box for box in tries if box[0] > _LEAST_X and box[1] < _MOST_X and _LEAST_Y < box[2] < _MOST_Y
        ]
        free = [box for box in inside or tries if not _struck(box, taken)] or inside or tries
        costs = [
            min(_struck(box, drawn), _MOST_STRUCK) + _FARTHER * (abs(box[2] - y) > _NEAR) for box in free
        ]
        found = free[int(np.argmin(costs))]
        taken.append(found)
        place, side = (found[1], "right") if found[1] < x else (found[0], "left")
        written = axes.text(place, found[2] + 0.4, text, ha=side, fontsize=7, color=colour, zorder=6)
        written.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _struck(box: Box, drawn: Sequence[Box]) -> int:
    """Count what a name would be written over."""
    left, right, low, high = box
    return sum(left < r and le < right and low < h and lo < high for le, r, lo, h in drawn)
