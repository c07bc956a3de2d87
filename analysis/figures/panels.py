"""Small panels with common axes, names that fit above them, and a look for every condition."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from analysis.costs.ratios import TITLES
from analysis.figures import marks
from analysis.figures.drawing import WIDTH, Drawing, MarkStyle, continued, style
from analysis.figures.labels import laid_out, places_of
from analysis.figures.marks import INK, IntervalMarks
from analysis.readers import PARTICIPANT_KINDS

COLUMNS = 3
MOST_PANELS = 12  # panels of one figure; more make a further figure
LOWEST = -150.0  # percentages reach no lower; a reader that talks instead of restoring has rates far below
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h", "d", "$A$", "$B$", "$C$", "$E$")
"""As many as have no divisor in common with the colours: no two of a hundred conditions share both."""
_CLIPPED = "clipped"
_NAME = 25  # letters of a line above a panel

Series = list[tuple[tuple[str, str], pd.DataFrame]]


def paged(
    name: str,
    title: str,
    series: Sequence[Any],
    draw: Callable[[str, str, Any], Drawing],
    most: int = MOST_PANELS,
) -> list[Drawing]:
    """Draw panels in as many figures as they need: the second is named ``name_2`` and titled as continued."""
    starts = range(0, len(series), most)
    return [draw(*continued(name, title, n), series[at : at + most]) for n, at in enumerate(starts, 1)]


def condition_looks(levels: Sequence[str]) -> dict[str, MarkStyle]:
    """Give each condition its look: the first black, the others by turn; markers and lines differ, so that grey is legible."""
    turns: list[dict[str, Any]] = [style()["people"], *style()["models"]]
    dashes: list[list[float]] = style()["further_models"]["lines"]
    styles = {}
    for index, level in enumerate(levels):
        colour = turns[(index - 1) % len(turns)]["colour"] if index else "#111111"
        line = (0, tuple(dashes[(index - 1) % len(dashes)])) if index else "-"
        styles[level] = MarkStyle(
            colour, _MARKERS[index % len(_MARKERS)], line, level, is_hollow=index % 2 == 1
        )
    return styles


@dataclass(frozen=True)
class Room:
    """Inches of equal panels in rows: of a panel, around all, and ``above`` each for its titles."""

    height: float
    left: float = 0.62
    below: float = 0.5
    columns: int = COLUMNS
    between: float = 0.2
    right: float = 0.05
    above: float = 0.5
    gap: float = 0.3
    top: float = 0.12
    widest: float = WIDTH
    shared: str = "xy"  # the axes of which only the outer panels have numbers

    def panels(self, count: int) -> tuple[Figure, list[Axes]]:
        """Return a figure with so many panels."""
        columns = min(self.columns, count)
        rows = -(-count // columns)
        total_height = self.top + rows * (self.height + self.above) + (rows - 1) * self.gap + self.below
        figure = Figure(figsize=(WIDTH, total_height))
        width = min((WIDTH - self.left - self.right - self.between * (columns - 1)) / columns, self.widest)
        panels = []
        for index in range(count):
            row, column = divmod(index, columns)
            y = total_height - self.top - (row + 1) * (self.height + self.above) - row * self.gap
            axes = axes_at(figure, self.left + column * (width + self.between), y, width, self.height)
            axes.tick_params(
                labelleft="y" not in self.shared or column == 0,
                labelbottom="x" not in self.shared or index + columns >= count,
            )
            panels.append(axes)
        return figure, panels


def stacked(
    height: float, left: float, depth: float, foot: float = 0.0, pad: float = 0.15, **more: float
) -> Room:
    """Return room for panels below each other, each with separate labels that reach so many inches below it."""
    options: dict[str, Any] = {"above": 0.42, **more}
    return Room(height, left, foot + pad + depth, 1, gap=pad + depth, top=0, shared="", **options)


def deepest(places: Iterable[Sequence[str]]) -> float:
    """Return how many inches the labels of panels that fill the width reach below them."""
    return max(
        laid_out(labels, places_of(len(labels), 0.1 * WIDTH, 0.87 * WIDTH, 0.55)).depth for labels in places
    )


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes so many inches from the lower left corner of a figure, and so many wide and high."""
    figure_width, high = figure.get_size_inches()
    return figure.add_axes((left / figure_width, bottom / high, width / figure_width, height / high))


def lettered(index: int, count: int, title: str) -> str:
    """Return a panel's title with its letter, where it is one of several."""
    return f"{chr(ord('A') + index)}  {title}" if count > 1 else title


def series_of(table: pd.DataFrame, first: str, second: str) -> Series:
    """Return what each panel shows: the rows of every pair of two columns, in the order of the table."""
    return [
        ((str(outer), str(inner)), rows)
        for (outer, inner), rows in table.groupby([first, second], sort=False)
    ]


def readers_by_place(
    axes: Axes,
    cells: pd.DataFrame,
    places: Sequence[str],
    look: Mapping[str, MarkStyle],
    *,
    gap: float = 0.09,
    join: float = 0.0,
) -> None:
    """Draw percentages of ``reader_group, place, value, low, high``; points are joined only where places are ordered."""
    axes.axhline(0, color=INK, lw=0.8, zorder=1)
    for turn, (group, mark) in enumerate(look.items()):
        rows = cells[(cells["reader_group"] == group) & cells["value"].notna()].set_index("place")
        rows = rows.loc[[place for place in places if place in rows.index]]
        x = [places.index(str(place)) + marks.dodged(turn, len(look), gap, 0.7) for place in rows.index]
        ends = IntervalMarks(*rows[["value", "low", "high"]].to_numpy(dtype=float).T)
        percentages(axes, mark, x, ends, join=join, bar=0.0 if mark.kind == "baseline" else 1.3)
    end_percentages(axes, cells[["value", "high"]].max().max())
    marks.name_columns(axes, places, 0.55)
    marks.numbered(axes.yaxis, marks.percent)


def percentages(
    axes: Axes, mark: MarkStyle, x: Sequence[float], y: IntervalMarks, *, join: float, bar: float
) -> None:
    """Draw percentages; those below :data:`LOWEST` are triangles at the edge with their value, which no line joins."""
    value, low, high = (np.asarray(end, dtype=float) for end in (y.value, y.low, y.high))
    inside = IntervalMarks(np.where(value < LOWEST, np.nan, value), low.clip(LOWEST), high.clip(LOWEST))
    marks.points(axes, mark, x, inside, join=join, bar=bar)
    for place, below in zip(x, value, strict=True):
        if below < LOWEST:
            marks.points(axes, replace(mark, marker="v"), [place], [LOWEST], clip_on=False)
            stacked_on = sum(
                text.get_gid() == _CLIPPED and abs(text.xy[0] - place) < 0.5
                for text in axes.texts
                if isinstance(text, Annotation)
            )
            axes.annotate(
                marks.percent(below), (place, LOWEST), (0, 4 + 9 * stacked_on), textcoords="offset points", gid=_CLIPPED,
                fontsize=7.5, color=mark.colour, ha="center", va="bottom",
            )  # fmt: skip


def end_percentages(axes: Axes, highest: float) -> None:
    """End an axis of percentages at 100, or above the highest value, and below at :data:`LOWEST`."""
    bottom, top = axes.get_ylim()
    bottom = max(min(bottom, -5.0), LOWEST - 5)
    axes.set_ylim(bottom, top if highest > 100 else 100 + 0.035 * (100 - bottom))


def name_above(axes: Axes, look: MarkStyle, measure: str) -> None:
    """Write above a panel who is in it, in at most two lines, and what is measured."""
    marks.above(axes, TITLES[measure], 3, fontsize=7.5)
    marks.above(axes, "\n".join(fitted(look.label, _NAME)), 13, fontsize=8, color=look.colour, weight="bold")


def fitted(text: str, letters: int, lines: int = 2) -> list[str]:
    """Break a name into lines; what does not fit ends in an ellipsis (tables have it whole)."""
    broken = textwrap.wrap(text, letters, break_on_hyphens=True, break_long_words=True)
    if len(broken) > lines:
        broken = [*broken[: lines - 1], broken[lines - 1][: letters - 1] + "…"]
    return broken


def condition_key(
    figure: Figure, panels: Sequence[Axes], look: Mapping[str, MarkStyle], *, lines: bool
) -> None:
    """Write under the panels which marker (and line) is which condition."""
    names = ["\n".join(fitted(level, 26)) for level in look]
    mark_style = {} if lines else {"ls": "", "color": INK, "mfc": INK}
    handles = [
        marks.handle(mark, name, lw=1.3, mec=None, **mark_style)
        for mark, name in zip(look.values(), names, strict=True)
    ]
    marks.key_below(
        figure, handles, key_columns(look), bbox_to_anchor=(middle(panels), 0.0), handlelength=2.6 if lines else 1.2,
        columnspacing=1.4, labelspacing=0.8 if any("\n" in name for name in names) else 0.5, borderaxespad=None,
    )  # fmt: skip


def key_columns(look: Collection[str]) -> int:
    """Return how many conditions stand side by side in a key."""
    longest = max(min(len(level), 26) for level in look)
    return max(1, min(len(look), int(92 / (longest + 8))))


def key_height(look: Collection[str]) -> float:
    """Return how many inches a key takes."""
    rows = -(-len(look) // key_columns(look))
    deep = min(rows, sum(len(level) > 26 for level in look))
    return 0.1 + 0.19 * rows + 0.14 * deep


def axis_name(figure: Figure, panels: Sequence[Axes], text: str, height: float) -> None:
    """Write the name of the common axis under the middle of the panels, so many inches above the lower edge."""
    figure.text(middle(panels), height / figure.get_figheight(), text, ha="center", va="center", fontsize=9)


def middle(panels: Sequence[Axes]) -> float:
    """Return the middle of panels as a share of the figure's width, not so far left that a long text would be cut."""
    places = np.array([axes.get_position().intervalx for axes in panels])
    return float(max((places.min() + places.max()) / 2, 0.32))


def is_person(kind: str) -> bool:
    """Whether a reader kind is people or simulated readers."""
    return kind in PARTICIPANT_KINDS
