"""Small panels with common axes, names that fit above them, and a look for every condition."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.costs.ratios import TITLES
from analysis.figures.drawing import WIDTH, Drawing, Look, axes_at, intervals, marks, not_data_in_words, style
from analysis.figures.labels import fit_labels
from analysis.names import in_words
from analysis.readers import PARTICIPANT_KINDS, marked

COLUMNS = 3
MOST_PANELS = 12
"""Panels of one figure; more make a further figure."""
GREY = "#9A9A9A"
LOWEST = -150.0
"""Percentages reach no lower; a reader that talks instead of restoring has rates far below."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h", "d", "$A$", "$B$", "$C$", "$E$")
"""As many as have no divisor in common with the colours: no two of a hundred conditions share both."""
_NAME = 25
"""Letters of a line above a panel."""


Series = list[tuple[tuple[str, str], pd.DataFrame]]


def paged(
    name: str, title: str, series: Series, draw: Callable[[str, str, Series], Drawing]
) -> list[Drawing]:
    """Draw panels in as many figures as they need: the second is named ``name_2`` and said to be continued."""
    found = []
    for number, start in enumerate(range(0, len(series), MOST_PANELS), 1):
        again = number > 1
        found.append(
            draw(
                f"{name}_{number}" if again else name,
                f"{title}, continued" if again else title,
                series[start : start + MOST_PANELS],
            )
        )
    return found


def condition_looks(levels: Sequence[str]) -> dict[str, Look]:
    """Give each condition its look: the first black, the others by turn; markers and lines differ, so that grey is legible."""
    turns: list[dict[str, Any]] = [style()["people"], *style()["models"]]
    dashes: list[list[float]] = style()["further_models"]["lines"]
    found = {}
    for place, level in enumerate(levels):
        colour = turns[(place - 1) % len(turns)]["colour"] if place else "#111111"
        line = (0, tuple(dashes[(place - 1) % len(dashes)])) if place else "-"
        found[level] = Look(colour, _MARKERS[place % len(_MARKERS)], line, level)
    return found


def grid(
    panels: int, height: float, *, below: float, left: float, columns: int = COLUMNS, between: float = 0.2
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side, a line or three of names above each."""
    columns = min(columns, panels)
    rows = -(-panels // columns)
    above, gap, top = 0.5, 0.3, 0.12
    whole = top + rows * (height + above) + (rows - 1) * gap + below
    figure = Figure(figsize=(WIDTH, whole))
    width = (WIDTH - left - 0.05 - between * (columns - 1)) / columns
    width = min(width, 3.6)
    axes = []
    for place in range(panels):
        row, column = divmod(place, columns)
        x = left + column * (width + between)
        y = whole - top - (row + 1) * (height + above) - row * gap
        axes.append(axes_at(figure, x, y, width, height))
    return figure, axes


def series_of(table: pd.DataFrame, first: str, second: str) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Return what a panel each shows: the rows of every pair of two columns, in the order of the table."""
    return [((str(one), str(other)), own) for (one, other), own in table.groupby([first, second], sort=False)]


def in_first_column(place: int, columns: int = COLUMNS) -> bool:
    """Whether a panel of :func:`grid` stands at the left edge."""
    return place % columns == 0


def in_last_row(place: int, panels: int, columns: int = COLUMNS) -> bool:
    """Whether no panel of :func:`grid` stands under this one."""
    return place + min(columns, panels) >= panels


def readers_by_place(
    axes: Axes,
    cells: pd.DataFrame,
    places: list[str],
    look: dict[str, Look],
    hollow: Collection[str],
    without_intervals: Collection[str] = (),
    *,
    gap: float = 0.09,
    low: float = -5.0,
    is_joined: bool = False,
) -> None:
    """Draw percentages of ``reader_group, place, value, low, high``; points are joined only where places are ordered."""
    step = min(gap, 0.7 / max(len(look), 1))
    axes.axhline(0, color="#333333", lw=0.8, zorder=1)
    for turn, (group, it) in enumerate(look.items()):
        own = cells[(cells["reader_group"] == group) & cells["value"].notna()].set_index("place")
        own = own.loc[[place for place in places if place in own.index]]
        x = [places.index(str(place)) + step * (turn - (len(look) - 1) / 2) for place in own.index]
        value, first, last = (
            own[name].clip(lower=LOWEST).to_numpy(dtype=float) for name in ("value", "low", "high")
        )
        if is_joined:
            axes.plot(x, value, color=it.colour, ls=it.line, lw=1.3, zorder=3)
        if group not in without_intervals:
            intervals(axes, x, first, last, it.colour)
        marks(axes, x, value, it.marker, it.colour, "white" if group in hollow else it.colour)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(min(bottom, low), LOWEST - 5), max(top, 104.0))
    axes.set_xlim(-0.55, len(places) - 0.45)
    axes.set_xticks(range(len(places)), places)
    fit_labels(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{apa.number(value, 0)}%"))


def name_above(axes: Axes, group: str, kind: str, measure: str, colour: str) -> None:
    """Write above a panel who is in it, in at most two lines, and what is measured."""
    lines = fitted(marked(group, kind), _NAME)
    axes.annotate(
        TITLES[measure], (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", fontsize=7.5, va="bottom",
    )  # fmt: skip
    axes.annotate(
        "\n".join(lines), (0, 1), (0, 13), xycoords="axes fraction", textcoords="offset points", fontsize=8,
        color=colour, weight="bold", va="bottom", linespacing=1.0,
    )  # fmt: skip


def fitted(text: str, letters: int, lines: int = 2) -> list[str]:
    """Break a name into lines; what does not fit ends in an ellipsis (tables have it whole)."""
    found = textwrap.wrap(text, letters, break_on_hyphens=True, break_long_words=True)
    if len(found) > lines:
        found = [*found[: lines - 1], found[lines - 1][: letters - 1] + "…"]
    return found


def condition_key(figure: Figure, panels: Sequence[Axes], look: dict[str, Look], *, lines: bool) -> None:
    """Write under the panels which marker (and line) is which condition."""
    handles = [
        Line2D(
            [], [], color=it.colour if lines else "#333333", ls=it.line if lines else "", marker=it.marker, ms=5,
            lw=1.3, mfc="white" if lines and place % 2 else it.colour if lines else "#333333",
        )
        for place, it in enumerate(look.values())
    ]  # fmt: skip
    names = ["\n".join(fitted(in_words(level), 26)) for level in look]
    figure.legend(
        handles, names, loc="lower center", bbox_to_anchor=(_middle(panels), 0.0),
        ncols=key_columns(look), fontsize=8, frameon=False, handlelength=2.6 if lines else 1.2, columnspacing=1.4,
        labelspacing=0.8 if any("\n" in name for name in names) else 0.5,
    )  # fmt: skip


def key_columns(look: dict[str, Look]) -> int:
    """Return how many conditions stand side by side in a key."""
    longest = max(min(len(level), 26) for level in look)
    return max(1, min(len(look), int(92 / (longest + 8))))


def key_height(look: dict[str, Look]) -> float:
    """Return how many inches a key takes."""
    rows = -(-len(look) // key_columns(look))
    deep = min(rows, sum(len(level) > 26 for level in look))
    return 0.1 + 0.19 * rows + 0.14 * deep


def axis_name(figure: Figure, panels: Sequence[Axes], text: str, height: float) -> None:
    """Write the name of the common axis under the middle of the panels, so many inches above the lower edge."""
    figure.text(
        _middle(panels), height / figure.get_size_inches()[1], text, ha="center", va="center", fontsize=9
    )


def _middle(panels: Sequence[Axes]) -> float:
    places = [axes.get_position() for axes in panels]
    middle = (min(place.x0 for place in places) + max(place.x1 for place in places)) / 2
    return float(max(middle, 0.32))


def is_person(kind: str) -> bool:
    """Whether a reader kind is people or simulated readers."""
    return kind in PARTICIPANT_KINDS


def kinds_in_words(kinds: set[str]) -> str:
    """Say in a note which readers are not data."""
    return "".join(f" {one}" for one in not_data_in_words(kinds))
