"""Cost by letter position: every reader a row, every measure a column, kinds of change as lines, counted from either end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, keep_width, looks, mark_not_data, styled

KIND_LOOKS = {
    "transposition": ("o", "-", True),
    "substitution": ("s", (0, (4, 1.6)), False),
    "shuffle": ("^", (0, (1.2, 1.2)), True),
    "other": ("D", (0, (6, 1.5, 1.2, 1.5)), False),
}
"""Marker, line and whether the marker is filled: kinds differ in grey as in colour."""
KIND_WORDS = {
    "transposition": "two letters transposed",
    "substitution": "letters substituted",
    "shuffle": "several letters moved",
    "other": "other changes",
}
PLACE_TICKS = {"outer": "both ends"}
"""Places whose names in tables of data are not those of the text."""
FEWEST_ITEMS = 3
"""A point of fewer items has no interval: resampling could not tell items apart."""
MOST_ROWS = 5
TOP, BOTTOM, HEAD, GAP = 0.66, 0.50, 0.47, 0.16
"""Inches above the first row of panels, under the last, above each panel for its name, and between segments."""
DODGE = 0.055
"""Inches between the points of two kinds at one place."""
LONGEST_NAME = 38
"""Letters of a reader's name that have room above half a figure."""


@dataclass(frozen=True)
class CurvePoint:
    """One point of a curve: ``place`` is a position from 1 or a zone, ``kind`` what was done there; ends may be nan."""

    place: str
    kind: str
    cost: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class CurvePanel:
    """One reader's costs on one measure.

    Attributes
    ----------
    group, kind : str
        Reader group and reader kind.
    measure : str
        In words, for the text alternative.
    axis : str
        What the vertical axis counts, with its unit.
    segments : tuple of (str, tuple of str, tuple of CurvePoint)
        Title of each segment (``from the start``), its places from left to right, and its points.
    """

    group: str
    kind: str
    measure: str
    axis: str
    segments: tuple[tuple[str, tuple[str, ...], tuple[CurvePoint, ...]], ...]


def letter_curves(name: str, panels: Sequence[CurvePanel], title: str, note: str) -> Drawing:
    """Draw the panels: readers from top to bottom, measures side by side.

    Parameters
    ----------
    name : str
        File name without ending.
    panels : sequence of CurvePanel
        Of :data:`MOST_ROWS` readers at most (:func:`pages`); a reader's in the order of columns. Where no reader has more than
        one, panels fill two columns.
    title, note : str
        As :class:`~analysis.figures.drawing.Drawing`.
    """
    readers = list(dict.fromkeys(panel.group for panel in panels))
    kinds = {panel.group: panel.kind for panel in panels}
    look = looks(kinds)
    places, grid = _laid_out(panels, readers), len(readers) == len(panels)
    rows = 1 + max(row for row, _ in places)
    columns = 1 + max(column for _, column in places)
    each = 1.75 if rows < 3 else 1.4 if rows < 5 else 1.2
    height = TOP + BOTTOM + rows * each + (rows - 1) * HEAD
    limits = _limits(panels)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        left, right = 0.66, 0.12
        between = 0.76 if any("\n" in panel.axis for panel in panels) else 0.62
        width = WIDTH * (0.72 if columns == 1 else 1.0) - left - right
        wide = (width - between * (columns - 1)) / columns
        for panel, (row, column) in zip(panels, places, strict=True):
            x = left + column * (wide + between)
            y = height - TOP - (row + 1) * each - row * HEAD
            last = (row + 1, column) not in places
            box = (x / WIDTH, y / height, wide / WIDTH, each / height)
            _panel(figure, box, panel, look[panel.group].colour, limits[panel.axis], last)
            if column == 0 or grid:
                head = shortened(look[panel.group].label, LONGEST_NAME if grid else 2 * LONGEST_NAME)
                figure.text(
                    x / WIDTH, (y + each + 0.07) / height, head, fontsize=9, weight="bold", va="bottom"
                )
        _key(figure, panels, height)
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _in_words(panels)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def pages(panels: Sequence[CurvePanel]) -> list[list[CurvePanel]]:
    """Divide panels among figures so that none has more than :data:`MOST_ROWS` rows; a reader's panels stay together."""
    readers = list(dict.fromkeys(panel.group for panel in panels))
    single = len(readers) == len(panels)
    most = MOST_ROWS * (2 if single else 1)
    pieces = -(-len(readers) // most) or 1
    size = -(-len(readers) // pieces)
    groups = [readers[start : start + size] for start in range(0, len(readers), size)]
    return [[panel for panel in panels if panel.group in own] for own in groups]


def shortened(name: str, most: int) -> str:
    """Cut a long name: first what stands before the last slash, then its middle."""
    if len(name) > most:
        name = name.rsplit("/", 1)[-1]
    keep = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - keep]}…{name[-keep:]}"


def _laid_out(panels: Sequence[CurvePanel], readers: Sequence[str]) -> list[tuple[int, int]]:
    if len(readers) == len(panels):
        return [(n // 2, n % 2) for n in range(len(panels))]
    seen: dict[str, int] = {}
    found = []
    for panel in panels:
        seen[panel.group] = seen.get(panel.group, -1) + 1
        found.append((readers.index(panel.group), seen[panel.group]))
    return found


def _limits(panels: Sequence[CurvePanel]) -> dict[str, tuple[float, float]]:
    """Give all panels with one axis one range, so that readers can be compared; zero is always in it."""
    found: dict[str, tuple[float, float]] = {}
    for axis in dict.fromkeys(panel.axis for panel in panels):
        points = [p for panel in panels if panel.axis == axis for _, _, own in panel.segments for p in own]
        ends = [v for p in points for v in (p.cost, *((p.low, p.high) if drawn(p) else ())) if np.isfinite(v)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.07 * (high - low) or 1.0
        found[axis] = (low - room, high + room)
    return found


def drawn(point: CurvePoint) -> bool:
    """Whether a point has an interval that means something."""
    return bool(np.isfinite(point.low)) and point.items >= FEWEST_ITEMS


def _panel(
    figure: Figure,
    box: tuple[float, float, float, float],
    panel: CurvePanel,
    colour: str,
    limits: tuple[float, float],
    last: bool,
) -> None:
    x, y, wide, high = box
    gap = GAP / WIDTH * (len(panel.segments) - 1)
    sizes = [max(len(places), 3.6) for _, places, _ in panel.segments]
    start = x
    kinds = kinds_in([panel])
    for turn, (title, places, points) in enumerate(panel.segments):
        share = (wide - gap) * sizes[turn] / sum(sizes)
        axes = figure.add_axes((start, y, share, high))
        start += share + GAP / WIDTH
        axes.set_xlim(-0.6, len(places) - 0.4)
        inch = (len(places) + 0.2) / (share * WIDTH)
        axes.set_ylim(*limits)
        axes.axhline(0, color="#333333", lw=0.8, zorder=1)
        axes.set_xticks(range(len(places)), [PLACE_TICKS.get(place, place) for place in places])
        axes.tick_params(axis="x", labelsize=8)
        if last:
            axes.set_xlabel(title, fontsize=8.5, labelpad=3)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(_tick))
        if turn:
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0, labelleft=False)
        else:
            axes.set_ylabel(panel.axis, fontsize=8.5, labelpad=3)
        for at, kind in enumerate(kinds):
            own = [point for point in points if point.kind == kind and np.isfinite(point.cost)]
            if own:
                _line(axes, own, places, kind, colour, inch * DODGE * (at - (len(kinds) - 1) / 2))


def _tick(value: float, _: object) -> str:
    return apa.number(value, 0 if float(value).is_integer() else 1 if float(10 * value).is_integer() else 2)


def _line(
    axes: Axes,
    points: Sequence[CurvePoint],
    places: Sequence[str],
    kind: str,
    colour: str,
    shift: float,
) -> None:
    marker, style, filled = KIND_LOOKS.get(kind, KIND_LOOKS["other"])
    x = np.array([places.index(point.place) for point in points], dtype=float)
    order = np.argsort(x)
    y = np.array([point.cost for point in points])[order]
    x = x[order] + shift
    broken = np.flatnonzero(np.diff(x) > 1.5) + 1
    for run in np.split(np.arange(len(x)), broken):
        axes.plot(x[run], y[run], color=colour, ls=style, lw=1.4, zorder=3)
    for at, point in zip(x, np.array(points, dtype=object)[order], strict=True):
        if drawn(point):
            axes.plot(
                [at, at], [point.low, point.high], color=colour, lw=1.1, zorder=4, solid_capstyle="butt"
            )
    face = colour if filled else "white"
    axes.plot(x, y, ls="", marker=marker, ms=4.8, mfc=face, mec=colour, mew=1.2, zorder=5)


def kinds_in(panels: Sequence[CurvePanel]) -> list[str]:
    """Return the kinds of change that panels show, in one order."""
    seen = {p.kind for panel in panels for _, _, points in panel.segments for p in points}
    return [kind for kind in KIND_LOOKS if kind in seen]


def _key(figure: Figure, panels: Sequence[CurvePanel], height: float) -> None:
    """Say once, above all panels, which line is which kind of change."""
    lines = []
    for kind in kinds_in(panels):
        marker, style, filled = KIND_LOOKS[kind]
        face = "#333333" if filled else "white"
        line = Line2D([], [], color="#333333", ls=style, lw=1.4, marker=marker, ms=4.8, mfc=face, mew=1.2)
        line.set_label(KIND_WORDS[kind])
        lines.append(line)
    figure.legend(
        handles=lines,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.12 / height),
        ncols=len(lines),
        frameon=False,
        fontsize=8.5,
        handlelength=3.4,
        columnspacing=2.0,
        borderaxespad=0.0,
    )


def _in_words(panels: Sequence[CurvePanel]) -> str:
    told = []
    for panel in panels:
        parts = []
        for title, places, points in panel.segments:
            for kind in kinds_in([panel]):
                own = {point.place: point for point in points if point.kind == kind}
                values = ", ".join(
                    f"{PLACE_TICKS.get(p, p)} {apa.number(own[p].cost, 1)}" for p in places if p in own
                )
                parts += [f"{KIND_WORDS[kind]}, {title}: {values}"] if values else []
        who = looks({panel.group: panel.kind})[panel.group].label
        told.append(
            f"{who}, {panel.measure} ({panel.axis.lower().replace(chr(10), ' ')}): {'; '.join(parts)}."
        )
    return " ".join(told)
