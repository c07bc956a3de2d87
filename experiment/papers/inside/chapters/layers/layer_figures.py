"""Figures of trained models and of hidden states, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from analysis import apa
from analysis.arrays import Array
from analysis.figures import marks
from analysis.figures.drawing import WIDTH, Drawing, MarkStyle, continued, looks, palette, shortened, styled
from analysis.figures.marks import DASHED, SOFT, IntervalMarks
from analysis.figures.panels import LOWEST, Room, axes_at, deepest, lettered, readers_by_place, stacked

if TYPE_CHECKING:
    pass

CHANCE = 50.0
ACROSS = 3
LOG_FROM = 6.0
"""Highest by lowest loss from which the axis is logarithmic: the first steps would hide the last."""
TENS_FROM, MOST_TICKS = 100.0, 4
"""Highest by lowest loss from which only powers of ten are written; how many of these a small panel takes."""
_LEGEND_ROW = 0.2
_LONGEST = 44
_SMOOTH = 0.05  # share of the steps over which the drawn training loss is averaged


def loss_figure(name: str, title: str, curves: Sequence[tuple[str, pd.DataFrame]]) -> Drawing:
    """Draw the losses of each training in a separate panel, all on one axis."""
    held_out, training = palette(["texts or lines held out", "training"])
    losses = pd.concat([curve[["training_loss", "validation_loss"]] for _, curve in curves]).to_numpy(
        dtype=float
    )
    finite = losses[np.isfinite(losses)] if np.isfinite(losses).any() else np.array([0.0, 1.0])
    top, floor = float(np.quantile(finite, 0.995)) * 1.06, float(np.quantile(finite, 0.005)) / 1.2
    is_log = floor > 0 and top > LOG_FROM * floor
    across = min(ACROSS, len(curves))
    room = Room(
        1.05, 0.085 * WIDTH, 0.68, across, 0.035 * WIDTH, 0.045 * WIDTH, gap=0, top=0.07, widest=WIDTH
    )
    with styled():
        figure, panels = room.panels(len(curves))
        for index, (axes, (label, curve)) in enumerate(zip(panels, curves, strict=True)):
            trained = curve[curve["training_loss"].notna()]
            window = trained["training_loss"].rolling(
                max(1, round(_SMOOTH * len(trained))), min_periods=1, center=True
            )
            axes.plot(trained["step"], window.mean(), color=training.colour, lw=1.1, zorder=3)
            evaluated = curve[curve["validation_loss"].notna()]
            marks.points(
                axes, held_out, evaluated["step"], evaluated["validation_loss"], join=1.0, size=3, edge=1.0
            )
            if is_log:
                axes.set_yscale("log")
                marks.numbered(axes.yaxis, marks.general)
                steps = (1.0,) if top > TENS_FROM * floor else (1.0, 2.0, 5.0)
                most = {"numticks": MOST_TICKS} if top > TENS_FROM * floor else {}
                axes.yaxis.set_major_locator(LogLocator(10, steps, **most))
                axes.yaxis.set_minor_locator(NullLocator())
            else:
                axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_ylim(floor if is_log else 0, 1.25 * top if is_log else top)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.tick_params(labelbottom=True)
            axes.set_title(shortened(label, 30), fontsize=8.5)
            axes.set_ylabel("" if index % across else "Nats a token")
            axes.set_xlabel("Step" if index + across >= len(curves) else "")
        handles = [marks.handle(training, ls="-", lw=1.1, marker=""), marks.handle(held_out, lw=1.0, ms=3)]
        marks.key_below(figure, handles, 2)
    labelled_losses = [(label, curve["validation_loss"].dropna().tolist()) for label, curve in curves]
    labelled_losses = [entry for entry in labelled_losses if entry[1]]
    return Drawing.described(name, figure, {}, "loss", title=title, told=labelled_losses, is_log=is_log)


@dataclass(frozen=True)
class TaskRow:
    """One task of H-TEST, in percent right: the base and the model trained on it, with intervals, and models trained on others."""

    label: str
    base: tuple[float, float, float]
    own: tuple[float, float, float] | None
    others: tuple[float, ...]


def tasks_figure(name: str, title: str, rows: Sequence[TaskRow], base: str) -> Drawing:
    """Draw the base and its trained models task by task (Figure 6 of Lee and Lim)."""
    before, after = palette([f"{shortened(base, 24)}, not trained", "trained on the task"])
    before, after = replace(before, is_hollow=True), replace(after, is_hollow=False, line="-")
    other = MarkStyle("#8A8A8A", "|", "", "trained on another task")
    with styled():
        height = 0.3 * len(rows)
        figure, (axes,) = Room(height, 0.2 * WIDTH, 0.72, right=0.03 * WIDTH, above=0.23, top=0).panels(1)
        marks.name_rows(axes, [row.label for row in rows], margin=0.5)
        axes.tick_params(axis="y", length=3)
        axes.axvline(CHANCE, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
        for index, row in enumerate(rows):
            marks.points(
                axes, other, row.others, [index + 0.24] * len(row.others), size=6, edge=1.1, zorder=2
            )
            for estimate, look, shift in ((row.base, before, -0.12), (row.own, after, 0.06)):
                if estimate is not None:
                    marks.points(axes, look, IntervalMarks(*estimate), index + shift, bar=1.2)
        axes.set(xlim=(-1, 101), xlabel="Correct answers (dashed: chance)")
        marks.numbered(axes.xaxis, marks.percent)
        marks.key_below(
            figure, [marks.handle(before, ms=5.5), marks.handle(after, ms=5.5), marks.handle(other, ms=6)], 3
        )
    return Drawing.described(name, figure, {}, "tasks", title=title, rows=rows)


def conditions_figure(
    name: str,
    title: str,
    panels: Sequence[tuple[str, str, pd.DataFrame, Sequence[str]]],
    groups: Sequence[str],
) -> Drawing:
    """Draw every model in every condition, a panel for each of the materials (Figure 9 of Cao et al.)."""
    look = looks(dict.fromkeys(groups, "model"))
    look = {group: replace(mark, is_hollow=group == groups[0]) for group, mark in look.items()}
    depth, foot = deepest(places for *_, places in panels), _LEGEND_ROW * ceil(len(look) / 3) + 0.1
    room = stacked(2.0, 0.1 * WIDTH, depth, foot, 0.1, right=0.03 * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for number, (axes, (heading, label, cells, places)) in enumerate(zip(drawn, panels, strict=True)):
            cells = cells.rename(columns={"condition": "place"})
            readers_by_place(axes, cells, list(places), look, gap=0.12)
            axes.set_ylabel(label)
            axes.set_title(lettered(number, len(panels), heading))
        names = [shortened(group, _LONGEST) + ", not trained" * (group == groups[0]) for group in groups]
        handles = [
            marks.handle(mark, text, ls="", ms=5.5, mew=1.3)
            for mark, text in zip(look.values(), names, strict=True)
        ]
        marks.key_below(figure, handles, 3, labelspacing=0.25)
    values = {"title": title, "panels": panels, "groups": groups, "lowest": LOWEST}
    return Drawing.described(name, figure, look, "trained_conditions", **values)


ROW, HEAD, AXIS, TOP, SCALE = 0.165, 0.42, 0.36, 0.12, 0.5
TALLEST = 8.4
"""Inches: a row of a map, the line that heads it, its axis, the margin above, the scale below; the most that a page takes."""
ANSWERS, GAP = 0.42, 0.14  # width of the column of accuracy, and what separates it and the maps, in inches
CHARACTER = 0.068  # mean width of a character of a label, in inches
PATTERNS_LONGEST = 28
COLOURS = colormaps["cividis"]
"""Even in lightness from dark to light, so that its order shows in grey and to the colour-blind (Nuñez et al., 2018)."""
_EDGE = 0.06  # share of a scale at either end that has no tick
DIFFERENT = "different items"


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's map."""

    title: str
    conditions: tuple[str, ...]
    cosine: Array  # (conditions, layers), as the next
    centred: Array
    apart: Array  # (layers,), as the next: mean cosine of different items, all intact
    apart_centred: Array
    accuracy: tuple[float, ...] = ()  # percent right in each condition; empty where nothing can be right

    @property
    def tall(self) -> float:
        """Inches of its maps."""
        return ROW * (len(self.conditions) + 1.4)

    @property
    def names(self) -> list[str]:
        """The labels of its rows."""
        return [shortened(condition, PATTERNS_LONGEST) for condition in (*self.conditions, DIFFERENT)]


def pattern_figures(name: str, title: str, panels: Sequence[Panel], note: str) -> list[Drawing]:
    """Draw the maps of models below each other, on as many figures as pages take; all with the same scales."""
    norms = []
    for kind in ("cosine", "centred"):
        values = np.concatenate([getattr(panel, kind).ravel() for panel in panels])
        values = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
        low, high = float(values.min()), float(values.max())
        norms.append(Normalize(low, high) if high > low else Normalize(low - 0.01, high + 0.01))
    pages: list[list[Panel]] = [[]]
    for panel in panels:
        used = sum(HEAD + other.tall + AXIS for other in (*pages[-1], panel))
        if pages[-1] and used > TALLEST - TOP - SCALE:
            pages.append([])
        pages[-1].append(panel)
    figures = []
    for number, page in enumerate(pages, 1):
        titled = title if len(pages) == 1 else f"{title} ({number} of {len(pages)})"
        with styled():
            figure = _patterns(page, norms)
        figure_name = continued(name, title, number)[0]
        panel_means = [(panel, _means(panel)) for panel in page]
        figures.append(
            Drawing.described(figure_name, figure, {}, "patterns", title=titled, note=note, told=panel_means)
        )
    return figures


def _means(panel: Panel) -> list[tuple[str, float, float]]:
    """Return means over layers of the cosine and the centred cosine of each condition that has any."""
    rows = zip(panel.conditions, panel.cosine, panel.centred, strict=True)
    measured = [(name, raw, other) for name, raw, other in rows if not np.isnan(raw).all()]
    return [(name, float(np.nanmean(raw)), float(np.nanmean(other))) for name, raw, other in measured]


def _patterns(panels: Sequence[Panel], norms: Sequence[Normalize]) -> Figure:
    left = 0.12 + CHARACTER * 0.92 * max(len(name) for panel in panels for name in panel.names)
    answers = ANSWERS + GAP if any(panel.accuracy for panel in panels) else 0.0
    wide = (WIDTH - left - answers - GAP - 0.1) / 2
    total_height = TOP + sum(HEAD + panel.tall + AXIS for panel in panels) + SCALE
    figure = Figure(figsize=(WIDTH, total_height))
    top = TOP
    for panel in panels:
        y = total_height - top - HEAD - panel.tall
        figure.text(
            0.02, 1 - (top + 0.12) / total_height, panel.title, fontsize=9.5, weight="bold", va="center"
        )
        maps = (panel.cosine, panel.apart), (panel.centred, panel.apart_centred)
        for column, head in enumerate(("Cosine with the intact text", "Centered cosine")):
            axes = axes_at(figure, left + column * (wide + GAP), y, wide, panel.tall)
            _map(axes, *maps[column], norms[column])
            axes.set_title(head, fontsize=8.5, weight="normal", pad=3)
            ticks = [*(np.arange(len(panel.conditions)) + 0.5), len(panel.conditions) + 0.9]
            axes.set_yticks([] if column else ticks, [] if column else panel.names, fontsize=7.5)
            axes.tick_params(axis="y", length=0)
        if panel.accuracy:
            _answers(axes_at(figure, left + 2 * (wide + GAP), y, ANSWERS, panel.tall), panel.accuracy)
        top += HEAD + panel.tall + AXIS
    for column, (norm, unit) in enumerate(zip(norms, ("cosine", "centered cosine"), strict=True)):
        side = axes_at(figure, left + column * (wide + GAP), 0.3, wide, 0.09)
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), cax=side, orientation="horizontal")
        bar.ax.tick_params(labelsize=7, length=2)
        bar.set_label(unit, fontsize=7.5, labelpad=1)
        bar.outline.set_visible(False)
        bar.set_ticks(_ticks(float(norm.vmin or 0.0), float(norm.vmax or 0.0)))
    return figure


def _ticks(low: float, high: float) -> list[float]:
    """Return ticks of a scale, none so near its ends that its number meets one of the next scale."""
    ticks = [float(value) for value in MaxNLocator(nbins=4).tick_values(low, high) if low <= value <= high]
    edge = _EDGE * (high - low)
    inner = [tick for tick in ticks if low + edge <= tick <= high - edge]
    return inner if len(inner) > 1 else ticks


def _map(axes: Axes, values: Array, apart: Array, norm: Normalize) -> None:
    """Draw conditions downwards and layers to the right; below, a little apart, what different items have."""
    rows, layers = values.shape
    x = np.arange(layers + 1) - 0.5
    marks.cells(axes, values, COLOURS, norm, x=x, rasterized=values.size > 2000)
    marks.cells(axes, apart[None], COLOURS, norm, x=x, y=np.array([rows + 0.4, rows + 1.4]))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axes.tick_params(axis="x", length=2, labelsize=7.5, pad=1)
    axes.set_xlabel("Layer", fontsize=7.5, labelpad=1)


def _answers(axes: Axes, accuracy: Sequence[float]) -> None:
    """Draw the percentage of correct answers next to each condition, written in its cell."""
    norm = Normalize(0, 100)
    marks.cells(
        axes, np.array(accuracy, dtype=float)[:, None], COLOURS, norm, edgecolors="white", linewidth=0.4
    )
    for row, value in enumerate(accuracy):
        is_finite = bool(np.isfinite(value))
        ink = marks.ink_on(COLOURS(float(norm(value)))) if is_finite else "#333333"
        text = apa.number(value, 0) if is_finite else apa.MISSING
        axes.text(0.5, row + 0.52, text, ha="center", va="center", fontsize=6.5, color=ink)
    axes.set(ylim=(len(accuracy) + 1.4, 0), xticks=[], yticks=[])
    axes.set_title("% correct", fontsize=8.5, weight="normal", pad=3)
