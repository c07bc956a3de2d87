"""Figures of trained models: losses while they were trained, each on the task trained, and all of them condition by condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    as_svg,
    looks,
    shortened,
    style,
    styled,
)
from analysis.figures.labels import fit_labels, laid_out, places_of

GROUP = "reader_group"
CHANCE = 50.0
LOWEST = -150.0
"""Panels of recovery rates reach no lower."""
ACROSS = 3
LOG_FROM = 6.0
"""Highest by lowest loss from which the axis is logarithmic: the first steps would hide the last."""
TENS_FROM, MOST_TICKS = 100.0, 4
"""Highest by lowest loss from which only powers of ten are written; how many of these a small panel takes."""
_LEGEND_ROW = 0.2
_LONGEST = 44
_SMOOTH = 0.05
"""Share of the steps over which the drawn training loss is averaged."""


def loss_figure(name: str, title: str, curves: Sequence[tuple[str, pd.DataFrame]]) -> Drawing:
    """Draw the losses of each training in a panel of its own, all on one axis.

    Parameters
    ----------
    name, title : str
    curves : sequence of (str, pandas.DataFrame)
        Name of the training; ``step, training_loss, validation_loss``.
    """
    across = min(ACROSS, len(curves))
    down = ceil(len(curves) / across)
    height = 1.55 * down + 0.75
    colours = style()["models"]
    losses = np.concatenate(
        [one[["training_loss", "validation_loss"]].to_numpy(dtype=float).ravel() for _, one in curves]
    )
    known = losses[np.isfinite(losses)]
    top = float(np.quantile(known, 0.995)) * 1.06 if len(known) else 1.0
    floor = float(np.quantile(known, 0.005)) / 1.2 if len(known) else 0.0
    is_log = floor > 0 and top > LOG_FROM * floor
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for place, (label, curve) in enumerate(curves):
            column, row = place % across, place // across
            axes = figure.add_axes(
                (
                    0.085 + column * (0.905 / across),
                    (0.68 + (down - 1 - row) * 1.55) / height,
                    0.905 / across - 0.035,
                    1.05 / height,
                )
            )
            trained = curve[curve["training_loss"].notna()]
            smooth = (
                trained["training_loss"]
                .rolling(max(1, round(_SMOOTH * len(trained))), min_periods=1, center=True)
                .mean()
            )
            axes.plot(trained["step"], smooth, color=colours[0]["colour"], lw=1.1, zorder=3)
            held = curve[curve["validation_loss"].notna()]
            axes.plot(
                held["step"],
                held["validation_loss"],
                color=style()["people"]["colour"],
                lw=1.0,
                marker="o",
                ms=3,
                zorder=4,
            )
            if is_log:
                axes.set_yscale("log")
                is_wide = top > TENS_FROM * floor
                tens = LogLocator(10, (1.0,), numticks=MOST_TICKS)
                axes.yaxis.set_major_locator(tens if is_wide else LogLocator(10, (1.0, 2.0, 5.0)))
                axes.yaxis.set_minor_locator(NullLocator())
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            else:
                axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_ylim(floor if is_log else 0, 1.25 * top if is_log else top)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.set_title(shortened(label, 30), fontsize=8.5)
            axes.set_ylabel("Nats a token" if column == 0 else "")
            if column:
                axes.set_yticklabels([])
            if place + across >= len(curves):
                axes.set_xlabel("Step")
        handles = [
            Line2D([], [], color=colours[0]["colour"], lw=1.1, label="training"),
            Line2D(
                [],
                [],
                color=style()["people"]["colour"],
                lw=1.0,
                marker="o",
                ms=3,
                label="texts or lines held out",
            ),
        ]
        figure.legend(
            handles=handles, loc="lower center", ncols=2, frameon=False, fontsize=8, borderaxespad=0.1
        )
    told = []
    for label, curve in curves:
        known = curve["validation_loss"].dropna().to_numpy(dtype=float)
        if len(known):
            told.append(
                f"{label}: loss held out {apa.number(known[0])} before, {apa.number(known[-1])} after"
            )
    alternative = "; ".join(told) or "Training loss by step."
    note = (
        "Cross-entropy in nats a token; of prompts with replies, of the replies alone. Training loss before each step's change, "
        "averaged over neighbouring steps; held-out loss is of records that were not trained on, step 0 the base model."
    )
    if is_log:
        note += " The axis of losses is logarithmic."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


@dataclass(frozen=True)
class TaskRow:
    """One task of H-TEST: the base, the model trained on it, and the models trained on others, in percent right.

    Attributes
    ----------
    label : str
    base : tuple of float
        Value with the ends of its interval.
    own : tuple of float or None
        The same of the model trained on the task.
    others : tuple of float
        Values of models trained on other tasks.
    """

    label: str
    base: tuple[float, float, float]
    own: tuple[float, float, float] | None
    others: tuple[float, ...]


def tasks_figure(name: str, title: str, rows: Sequence[TaskRow], base: str) -> Drawing:
    """Draw the base and its trained models task by task (Figure 6 of Lee and Lim).

    Parameters
    ----------
    name, title : str
    rows : sequence of TaskRow
    base : str
        Name of the base model.
    """
    height = 0.3 * len(rows) + 0.95
    blue, red, grey = style()["people"]["colour"], style()["models"][0]["colour"], "#8A8A8A"
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes((0.2, 0.72 / height, 0.77, 0.3 * len(rows) / height))
        axes.set(xlim=(-1, 101), ylim=(len(rows) - 0.5, -0.5))
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
        axes.axvline(CHANCE, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
        for place, row in enumerate(rows):
            axes.plot(
                row.others,
                [place + 0.24] * len(row.others),
                ls="",
                marker="|",
                ms=6,
                mew=1.1,
                color=grey,
                zorder=2,
            )
            for one, colour, marker, face, shift in (
                (row.base, blue, "o", "white", -0.12),
                (row.own, red, "s", red, 0.06),
            ):
                if one is None:
                    continue
                axes.plot([one[1], one[2]], [place + shift] * 2, color=colour, lw=1.2, zorder=3)
                axes.plot(
                    [one[0]],
                    [place + shift],
                    ls="",
                    marker=marker,
                    ms=5.5,
                    mfc=face,
                    mec=colour,
                    mew=1.3,
                    zorder=4,
                )
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
        axes.set_xlabel("Right answers (dashed: chance)")
        handles = [
            Line2D(
                [],
                [],
                color=blue,
                marker="o",
                mfc="white",
                ms=5.5,
                label=f"{shortened(base, 24)}, not trained",
            ),
            Line2D([], [], color=red, marker="s", ms=5.5, label="trained on the task"),
            Line2D([], [], color=grey, marker="|", ls="", ms=6, label="trained on another task"),
        ]
        figure.legend(
            handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=8, borderaxespad=0.1
        )
    told = [
        f"{row.label}: {apa.number(row.base[0], 1)}% before"
        + ("" if row.own is None else f", {apa.number(row.own[0], 1)}% after training on it")
        for row in rows
    ]
    alternative = "; ".join(told)
    note = "Points are shares right, bars 95% intervals over items. What names no label counts as wrong."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def conditions_figure(
    name: str,
    title: str,
    panels: Sequence[tuple[str, str, pd.DataFrame, Sequence[str]]],
    groups: Sequence[str],
) -> Drawing:
    """Draw every model in every condition, a panel for each of the materials (Figure 9 of Cao et al.).

    Parameters
    ----------
    name, title : str
    panels : sequence of (str, str, pandas.DataFrame, sequence of str)
        Heading; what the axis is; ``reader_group, condition, value, low, high`` in percent; conditions from left to right.
    groups : sequence of str
        Models in the order of drawing, the base first.
    """
    look = looks(dict.fromkeys(groups, "model"))
    deepest = max(
        laid_out(places, places_of(len(places), 0.1 * WIDTH, 0.87 * WIDTH, 0.55)).depth
        for *_, places in panels
    )
    row, gap = 2.0, 0.52 + deepest
    foot = _LEGEND_ROW * ceil(len(look) / 3) + 0.1
    height = len(panels) * (row + gap) + foot
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for number, (heading, label, cells, places) in enumerate(panels):
            bottom = foot + (len(panels) - 1 - number) * (row + gap) + 0.1 + deepest
            axes = figure.add_axes((0.1, bottom / height, 0.87, row / height))
            _draw(axes, cells, places, look)
            axes.set_ylabel(label)
            letter = f"{chr(ord('A') + number)}  " if len(panels) > 1 else ""
            axes.set_title(letter + heading)
        handles = [_handle(it, group, group == groups[0]) for group, it in look.items()]
        figure.legend(
            handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=8, borderaxespad=0.1, labelspacing=0.25,
        )  # fmt: skip
    told = []
    for heading, _, cells, _ in panels:
        for group in groups:
            own = cells[cells[GROUP] == group]
            values = ", ".join(
                f"{apa.number(one['value'], 1)}% at {one['condition']}" for one in own.to_dict("records")
            )
            told.append(f"{heading + ', ' if heading else ''}{group}: {values}")
    alternative = "; ".join(told)
    note = (
        "Points are values over all items, bars 95% percentile bootstraps over items. The paper draws bars and leaves out values "
        "below 0."
    )
    if any((cells["value"] < LOWEST).any() for _, _, cells, _ in panels):
        note += f" Values below {apa.number(LOWEST, 0)}% lie at the panel's edge; the table has them."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _handle(it: Look, group: str, is_base: bool) -> Line2D:
    face = "white" if is_base else it.colour
    label = shortened(group, _LONGEST) + (", not trained" if is_base else "")
    return Line2D([], [], ls="", marker=it.marker, ms=5.5, mfc=face, mec=it.colour, mew=1.3, label=label)


def _draw(axes: Axes, cells: pd.DataFrame, places: Sequence[str], look: dict[str, Look]) -> None:
    step = min(0.12, 0.7 / max(len(look), 1))
    axes.axhline(0, color="#333333", lw=0.8, zorder=1)
    for turn, (group, it) in enumerate(look.items()):
        own = cells[(cells[GROUP] == group) & cells["value"].notna()].set_index("condition")
        own = own.loc[[place for place in places if place in own.index]]
        x = [list(places).index(str(place)) + step * (turn - (len(look) - 1) / 2) for place in own.index]
        for at, low, high in zip(x, own["low"], own["high"], strict=True):
            if low == low and high == high:
                axes.plot([at, at], [max(low, LOWEST), max(high, LOWEST)], color=it.colour, lw=1.3, zorder=4)
        y = own["value"].clip(lower=LOWEST).to_numpy(dtype=float)
        face = "white" if turn == 0 else it.colour
        axes.plot(x, y, ls="", marker=it.marker, ms=5.5, mfc=face, mec=it.colour, mew=1.3, zorder=5)
    low, high = axes.get_ylim()
    axes.set_ylim(max(min(low, -4.0), LOWEST - 5), max(high, 104.0))
    axes.set_xlim(-0.55, len(places) - 0.45)
    axes.set_xticks(range(len(places)), list(places))
    fit_labels(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{apa.number(value, 0)}%"))
