"""The marks of all figures: points with intervals, names of rows and columns, numbers on axes, cells, keys and labels of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.drawing import OPEN_END, MarkStyle
from analysis.figures.labels import fit_labels

INK, SOFT, GREY = "#333333", "#555555", "#9A9A9A"
DASHED = (0, (2, 2))
STEPS = [1, 2, 2.5, 5, 10]  # of ticks: their last digits


@dataclass(frozen=True)
class IntervalMarks:
    """Values with the ends of their intervals, any of which may be missing."""

    value: Any
    low: Any
    high: Any

    @classmethod
    def of(cls, table: Any, name: str, scale: float = 1.0) -> IntervalMarks:
        """Take ``name``, ``name_low`` and ``name_high`` from a table or a row."""
        columns = (table[column] for column in (name, f"{name}_low", f"{name}_high"))
        return cls(*(scale * np.asarray(values, dtype=float) for values in columns))


def points(axes: Axes, look: MarkStyle, x: Any, y: Any, **style: Any) -> None:
    """Draw points with the intervals of ``x`` or ``y`` that are :class:`IntervalMarks`.

    An interval that is open on one side, as those of directional tests are, ends there in an arrow at the edge of the panel.

    Style: ``size`` and ``edge`` of markers, their ``face``, ``bar`` (width of intervals; 0: none), ``dash`` of intervals, ``join``
    (width of a line that joins the points), and what matplotlib takes for lines.
    """
    defaults: dict[str, Any] = {"size": 5.5, "edge": 1.3, "bar": 1.3, "join": 0.0, "dash": "-", "zorder": 5}
    style = defaults | style
    size, edge, bar, join, dash = (style.pop(name) for name in ("size", "edge", "bar", "join", "dash"))
    face = style.pop("face", look.face)
    at_x, at_y = (
        coordinate.value if isinstance(coordinate, IntervalMarks) else coordinate for coordinate in (x, y)
    )
    line: dict[str, Any] = {
        "color": look.colour,
        "zorder": style["zorder"] - 1,
        "alpha": style.get("alpha"),
        "ls": dash,
        "lw": bar,
    }
    for draw, at, ends, upright in ((axes.hlines, at_y, x, False), (axes.vlines, at_x, y, True)):
        if isinstance(ends, IntervalMarks) and bar:
            places, value, low, high = np.atleast_1d(
                *np.broadcast_arrays(
                    *(np.asarray(part, dtype=float) for part in (at, ends.value, ends.low, ends.high))
                )
            )
            known = np.isfinite(value) & ~np.isnan(low) & ~np.isnan(high)
            places, value, low, high = places[known], value[known], low[known], high[known]
            starts, stops = (np.where(np.isinf(end), value, end) for end in (low, high))
            draw(places, starts, stops, **line)
            for end, edge_of_panel in ((low, 0.0), (high, 1.0)):
                for start, place in zip(value[np.isinf(end)], places[np.isinf(end)], strict=True):
                    _open_end(axes, start, place, edge_of_panel, upright, line)
    axes.plot(
        at_x, at_y, color=look.colour, ls=look.line if join else "", lw=join, marker=look.marker, ms=size, mfc=face,
        mec=look.colour, mew=edge, **style,
    )  # fmt: skip


def _open_end(
    axes: Axes, start: float, place: float, edge: float, upright: bool, line: dict[str, Any]
) -> None:
    """Draw the open side of an interval as an arrow from its estimate to an edge of the panel, wherever the axis will end."""
    where: tuple[Any, Any] = ("axes fraction", "data")
    tip, begin = (edge, place), (start, place)
    if upright:
        where, tip, begin = where[::-1], tip[::-1], begin[::-1]
    look = {name: line[name] for name in ("lw", "ls", "color", "alpha")}
    arrow = {"arrowstyle": "->", "shrinkA": 0.0, "shrinkB": 0.0, "mutation_scale": 8.0}
    drawn = axes.annotate("", tip, begin, where, "data", annotation_clip=False, arrowprops=look | arrow)
    drawn.set(label=OPEN_END, zorder=line["zorder"])


def name_rows(axes: Axes, names: Sequence[str], size: float = 8.5, margin: float = 0.55) -> None:
    """Name rows at 0, 1, 2 … from top to bottom; the grid is across them."""
    axes.set_ylim(len(names) - 1 + margin, -margin)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")


def name_columns(axes: Axes, names: Sequence[str], margin: float = 0.45) -> None:
    """Name columns at 0, 1, 2 …, broken or slanted where they would run into each other."""
    axes.set_xlim(-margin, len(names) - 1 + margin)
    axes.set_xticks(range(len(names)), names)
    fit_labels(axes)


def dodged(turn: int, count: int, gap: float, most: float = 1.0) -> float:
    """Return the shift of one of many points at the same place, all of them within ``most``."""
    return min(gap, most / max(count, 1)) * (turn - (count - 1) / 2)


def percent(value: float) -> str:
    """Write a percentage of an axis."""
    return f"{apa.number(value, 0)}%"


def general(value: float) -> str:
    """Write a number of an axis with as many digits as it has."""
    return f"{value:,.10g}".replace("-", "−")


def numbered(axis: Axis, write: Callable[[float], str] = general, **ticks: Any) -> None:
    """Have an axis write its numbers so, at ticks that :class:`MaxNLocator` sets."""
    if ticks:
        axis.set_major_locator(MaxNLocator(**ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def widened(values: Iterable[Any], share: float, *inside: float) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, with a share of its length free on both sides."""
    all_values = np.concatenate([np.ravel(np.asarray(array, dtype=float)) for array in (*values, inside)])
    low, high = (
        float(all_values[np.isfinite(all_values)].min()),
        float(all_values[np.isfinite(all_values)].max()),
    )
    room = share * (high - low) or float(share > 0)
    return low - room, high + room


def cells(axes: Axes, values: NDArray[np.float64], colours: Any, norm: Any, **mesh: Any) -> None:
    """Draw a map with a row for each row of values, the first at the top; values that are missing stay empty."""
    rows, columns = values.shape
    x, y = mesh.pop("x", np.arange(columns + 1)), mesh.pop("y", np.arange(rows + 1))
    axes.pcolormesh(
        x, y, np.ma.masked_invalid(values), cmap=colours, norm=norm, **{"edgecolors": "none"} | mesh
    )
    axes.set(xlim=(x[0], x[-1]), ylim=(y[-1], 0))
    axes.grid(False)
    axes.spines[:].set_visible(False)


def ink_on(colour: Sequence[float]) -> str:
    """Choose black or white for numbers on a colour, whichever stands out more (relative luminance, WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"


def handle(look: MarkStyle, label: str = "", **style: Any) -> Line2D:
    """Return a key's entry: line and marker of a look."""
    defaults: dict[str, Any] = {
        "color": look.colour,
        "ls": look.line,
        "marker": look.marker,
        "ms": 5,
        "mfc": look.face,
        "mec": look.colour,
    }
    return Line2D([], [], **(defaults | {"label": label or look.label} | style))


def key_below(figure: Figure, handles: Sequence[Any], columns: int, **more: Any) -> None:
    """Write a key under all panels."""
    defaults: dict[str, Any] = {"loc": "lower center", "frameon": False, "fontsize": 8, "borderaxespad": 0.1}
    figure.legend(handles=handles, ncols=columns, **(defaults | more))


def are_numbers_in_order(levels: Sequence[str]) -> bool:
    """Return whether levels are numbers or percentages that rise or fall, so that a line may join them."""
    matches = [re.fullmatch(r"([-\u2212]?\d+(?:\.\d+)?)\s*%?", level.strip()) for level in levels]
    values = [float(match[1].replace("\u2212", "-")) for match in matches if match is not None]
    return 1 < len(levels) == len(values) and values in (sorted(values), sorted(values, reverse=True))


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart until they are at least ``gap`` from each other, within ``low`` and ``high``."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    placed: dict[int, float] = {}
    floor = low
    for i in order:
        placed[i] = max(positions[i], floor)
        floor = placed[i] + gap
    ceiling = high
    for i in reversed(order):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return [placed[i] for i in range(len(positions))]


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], x: float) -> None:
    """Write each line's name in its colour next to its right end, moved apart where they would overlap."""
    if not ends:
        return
    axes.set_ylim(axes.get_ylim())
    points = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    lines = max(label.count("\n") + 1 for _, _, label, _ in ends)
    wished = [float(axes.transData.transform((x, end[1]))[1]) for end in ends]
    placed = spread(wished, (9.5 * lines + 1.5) * points, float(frame.y0), float(frame.y1))
    for (end_x, end_y, label, colour), height in zip(ends, placed, strict=True):
        at = (x, float(axes.transData.inverted().transform((0, height))[1]))
        axes.annotate(
            label, (end_x, end_y), at, fontsize=8, color=colour, va="center", ha="left", annotation_clip=False, linespacing=1.05,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.55, "shrinkA": 1, "shrinkB": 5},
        )  # fmt: skip


def above(axes: Axes, text: str, up: float, **style: Any) -> None:
    """Write a text so many points above the left end of a panel's upper edge."""
    defaults: dict[str, Any] = {"fontsize": 8.5, "va": "bottom", "linespacing": 1.0}
    axes.annotate(text, (0, 1), (0, up), "axes fraction", "offset points", **(defaults | style))


def in_the_middle(axes: Axes, text: str, **style: Any) -> None:
    """Write in the middle of a panel why it is empty."""
    defaults: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": 7.5,
        "color": SOFT,
        "linespacing": 1.1,
    }
    axes.text(0.5, 0.5, text, transform=axes.transAxes, **(defaults | style))
