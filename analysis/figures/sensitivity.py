"""Sensitivity against bias: one panel a level, a point with its two intervals a reader group, over participants' own values."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures.drawing import (
    TALLEST,
    WIDTH,
    Drawing,
    Look,
    as_svg,
    looks,
    mark_not_data,
    shortened,
    styled,
)
from analysis.figures.labels import cut_to_lines, height_of
from analysis.readers import PARTICIPANT_KINDS

LOOKS_APART = 6
"""Beyond so many readers colours and markers repeat, and numbers stand in their place."""
LEGEND_COLUMNS = 3
LONGEST_OF_THREE = 24
"""Longer names stand in two columns."""
BESIDE = 1.2
"""How much farther the horizontal axis reaches, so that numbers at its ends do not touch those of the next panel."""
LEAST_RANGE = 1.0
"""The axes reach at least this far from zero, so that next to no sensitivity looks like none."""

LONGEST = 42
"""Letters of a name in the key."""


def sensitivity_figure(
    name: str,
    cells: pd.DataFrame,
    readers: pd.DataFrame,
    factor: str | None,
    signal: str,
    other: str,
) -> Drawing:
    """Draw d' against the criterion of every reader group in every level.

    Parameters
    ----------
    name : str
        File name without ending.
    cells : pandas.DataFrame
        From :func:`analysis.measures.two_classes.of_groups`.
    readers : pandas.DataFrame
        From :func:`analysis.measures.signal_detection.signal_detection`: participants' own values are the small dots.
    factor : str or None
    signal, other : str
        The two classes.
    """
    levels = list(dict.fromkeys(cells["level"]))
    kinds = {str(one["reader_group"]): str(one["kind"]) for one in cells.to_dict("records")}
    look = looks(kinds)
    marker = {
        group: f"${number}$" if len(kinds) > LOOKS_APART else look[group].marker
        for number, group in enumerate(kinds, 1)
    }
    columns = min(len(levels), 4 if len(levels) <= 8 else 5)
    lines = ceil(len(levels) / columns)
    beside = LEGEND_COLUMNS if max(len(it.label) for it in look.values()) <= LONGEST_OF_THREE else 2
    legend = ceil(len(kinds) / beside)
    with styled():
        size = 8.5 if columns < 4 else 7.5
        each = 0.895 * WIDTH / columns - 0.1
        titles = ["\n".join(cut_to_lines(str(level), each, size, bold=True)) for level in levels]
        deep = max(one.count("\n") for one in titles)
        added = height_of(deep, size)
        around = 0.9 + 0.18 * legend
        height = around + min(((2.6 if lines == 1 else 2.0) + added) * lines, TALLEST - around)
        figure = Figure(figsize=(WIDTH, height))
        bottom = (0.55 + 0.18 * legend) / height
        grid = figure.add_gridspec(
            lines,
            columns,
            left=0.085,
            right=0.99,
            top=1 - (0.5 + added) / height,
            bottom=bottom,
            hspace=0.32 + added / 2,
            wspace=0.12,
        )
        first: Axes | None = None
        for place, level in enumerate(levels):
            axes = figure.add_subplot(
                grid[place // columns, place % columns],
                **({"sharex": first, "sharey": first} if first else {}),
            )
            first = first or axes
            own = readers[(readers[factor] == level)] if factor else readers
            _panel(axes, cells[cells["level"] == level], own, look, marker)
            axes.set_title(titles[place], fontsize=size)
            axes.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(levels))
        if first is not None:
            (left, right), (low, high) = first.get_xlim(), first.get_ylim()
            first.set_xlim(min(left, -BESIDE * LEAST_RANGE), max(right, BESIDE * LEAST_RANGE))
            first.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
            first.xaxis.set_major_locator(MaxNLocator(nbins=4 if columns < 4 else 3, steps=[1, 2, 5, 10]))
        figure.supylabel("Sensitivity d′", fontsize=9, x=0.0)
        figure.text(
            0.54,
            bottom - 0.38 / height,
            f"Criterion c (left: answers {signal} more; right: answers {other} more)",
            ha="center",
            va="center",
            fontsize=9,
        )
        _legend(figure, look, marker, beside)
        mark_not_data(figure, kinds)
    title = f"Sensitivity against bias{f' by {factor}' if factor else ''} and reader"
    note = _note(kinds, signal)
    alternative = _in_words(cells)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _panel(
    axes: Axes, cells: pd.DataFrame, readers: pd.DataFrame, look: dict[str, Look], marker: dict[str, str]
) -> None:
    axes.axhline(0, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
    axes.axvline(0, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
    axes.grid(True)
    for cell in cells.to_dict("records"):
        group = str(cell["reader_group"])
        it = look[group]
        if cell["kind"] in PARTICIPANT_KINDS:
            own = readers[
                (readers["reader_group"] == group) & (readers["signals"] > 0) & (readers["others"] > 0)
            ]
            axes.scatter(
                own["criterion"], own["d_prime"], s=6, color=it.colour, alpha=0.3, linewidths=0, zorder=2
            )
        x, y = float(cell["criterion"]), float(cell["d_prime"])
        if not np.isfinite([x, y]).all():
            continue
        baseline = cell["kind"] == "baseline"
        if not baseline and np.isfinite(cell["d_prime_low"]):
            axes.plot([x, x], [cell["d_prime_low"], cell["d_prime_high"]], color=it.colour, lw=1.2, zorder=3)
            axes.plot(
                [cell["criterion_low"], cell["criterion_high"]], [y, y], color=it.colour, lw=1.2, zorder=3
            )
        (point,) = axes.plot([x], [y], **_marks(it, marker[group], str(cell["kind"])), zorder=5)
        if marker[group].startswith("$"):
            point.set_path_effects([withStroke(linewidth=2.4, foreground="white")])


def _marks(it: Look, marker: str, kind: str) -> dict[str, Any]:
    digit = marker.startswith("$")
    filled = "white" if kind == "model" and not digit else it.colour
    return {
        "ls": "",
        "marker": marker,
        "ms": 6.5 if digit else 5.5,
        "mfc": filled,
        "mec": it.colour,
        "mew": 0.6 if digit else 1.3,
    }


def _legend(figure: Figure, look: dict[str, Look], marker: dict[str, str], columns: int) -> None:
    handles = []
    for group, it in look.items():
        kind = "model" if it.label == group else ""
        handles.append(Line2D([], [], label=shortened(it.label, LONGEST), **_marks(it, marker[group], kind)))
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.53, 0.0),
        ncols=min(columns, len(handles)),
        frameon=False,
        fontsize=8,
        handletextpad=0.3,
        columnspacing=1.2,
        borderaxespad=0.1,
        labelspacing=0.25,
    )


def _note(kinds: dict[str, str], signal: str) -> str:
    told = [
        f"{signal} counts as the signal. At the dashed lines there is no sensitivity (horizontal) and no bias (vertical). "
        "Crossed bars are 95% intervals."
    ]
    if set(kinds.values()) & set(PARTICIPANT_KINDS):
        told.append(
            "Small dots are single participants; their group's point is the mean over them, with Student's intervals."
        )
    if "model" in kinds.values():
        told.append("A model's point is the value of its counts.")
    if "simulated" in kinds.values():
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    if "baseline" in kinds.values():
        told.append("Baselines answer by rule, have no interval and are not data.")
    return " ".join(told)


def _in_words(cells: pd.DataFrame) -> str:
    told = []
    for group, own in cells.groupby("reader_group", sort=False):
        values: Sequence[str] = [
            f"{one['level'] or 'all trials'} d′ {apa.number(one['d_prime'])} and c {apa.number(one['criterion'])}"
            for one in own.to_dict("records")
        ]
        told.append(f"{group}: {', '.join(values)}")
    return f"Sensitivity and bias. {'; '.join(told)}."
