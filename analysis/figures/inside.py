"""Inside models: training, layer by layer, hidden states, and profiles of people and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    axes_at,
    keep_width,
    key_below,
    looks,
    mark_not_data,
    marks,
    shortened,
    style,
    styled,
)
from analysis.figures.labels import laid_out, places_of
from analysis.figures.panels import (
    GREY,
    LOWEST,
    axis_name,
    condition_key,
    condition_looks,
    fitted,
    grid,
    in_first_column,
    in_last_row,
    key_height,
    readers_by_place,
)
from analysis.inside.probing_intervals import Accuracies
from analysis.readers import headed

GROUP = "reader_group"
CHANCE = 50.0
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
    """Draw the losses of each training in a panel of its own, all on one axis."""
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
    return Drawing.of(name, title, note, alternative, figure)


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
    """Draw the base and its trained models task by task (Figure 6 of Lee and Lim)."""
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
                marks(axes, [one[0]], [place + shift], marker, colour, face, zorder=4)
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
    return Drawing.of(name, title, note, alternative, figure)


def conditions_figure(
    name: str,
    title: str,
    panels: Sequence[tuple[str, str, pd.DataFrame, Sequence[str]]],
    groups: Sequence[str],
) -> Drawing:
    """Draw every model in every condition, a panel for each of the materials (Figure 9 of Cao et al.)."""
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
            cells_of = cells.rename(columns={"condition": "place"})
            readers_by_place(axes, cells_of, list(places), look, groups[:1], gap=0.12, low=-4.0)
            axes.set_ylabel(label)
            letter = f"{chr(ord('A') + number)}  " if len(panels) > 1 else ""
            axes.set_title(letter + heading)
        handles = [_handle(it, group, group == groups[0]) for group, it in look.items()]
        key_below(figure, handles, 3, labelspacing=0.25)
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
    return Drawing.of(name, title, note, alternative, figure)


def _handle(it: Look, group: str, is_base: bool) -> Line2D:
    face = "white" if is_base else it.colour
    label = shortened(group, _LONGEST) + (", not trained" if is_base else "")
    return Line2D([], [], ls="", marker=it.marker, ms=5.5, mfc=face, mec=it.colour, mew=1.3, label=label)


Array = NDArray[np.float64]

ROW, HEAD, AXIS, TOP, SCALE = 0.165, 0.42, 0.36, 0.12, 0.5
TALLEST = 8.4
"""Inches: a row of a map, the line that heads it, its axis, the margin above, the scale below; the most that a page takes."""
ANSWERS, GAP = 0.42, 0.14
"""Width of the column of accuracy, and what separates it and the maps, in inches."""
CHARACTER = 0.068
"""Mean width of a character of a label, in inches."""
PATTERNS_LONGEST = 28
COLOURS = "cividis"
"""Even in lightness from dark to light, so that its order shows in grey and to the colour-blind (Nuñez et al., 2018)."""
_EDGE = 0.06
"""Share of a scale at either end that has no tick."""
DIFFERENT = "different items"


@dataclass(frozen=True, eq=False)
class Panel:
    """One model's map.

    Attributes
    ----------
    title : str
    conditions : tuple of str
    cosine, centred : ndarray, shape (conditions, layers)
    apart, apart_centred : ndarray, shape (layers,)
        Mean cosine of different items, all intact.
    accuracy : tuple of float
        Percent right in each condition; empty where nothing can be right.
    """

    title: str
    conditions: tuple[str, ...]
    cosine: Array
    centred: Array
    apart: Array
    apart_centred: Array
    accuracy: tuple[float, ...] = ()


def pattern_figures(name: str, title: str, panels: Sequence[Panel], note: str) -> list[Drawing]:
    """Draw the maps of models below each other, on as many figures as pages take; all with the same scales."""
    limits = [_patterns_limits([getattr(one, which) for one in panels]) for which in ("cosine", "centred")]
    pages: list[list[Panel]] = [[]]
    used = 0.0
    for one in panels:
        tall = _tall(one)
        if pages[-1] and used + tall > TALLEST - TOP - SCALE:
            pages.append([])
            used = 0.0
        pages[-1].append(one)
        used += tall
    return [
        _figure(
            name if number == 1 else f"{name}_{number}",
            title if len(pages) == 1 else f"{title} ({number} of {len(pages)})",
            own,
            limits,
            note,
        )
        for number, own in enumerate(pages, 1)
    ]


def _tall(one: Panel) -> float:
    return HEAD + ROW * (len(one.conditions) + 1.4) + AXIS


def _patterns_limits(maps: Sequence[Array]) -> tuple[float, float]:
    values = np.concatenate([one[np.isfinite(one)].ravel() for one in maps])
    low = float(values.min()) if len(values) else 0.0
    high = float(values.max()) if len(values) else 1.0
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _figure(
    name: str, title: str, panels: Sequence[Panel], limits: Sequence[tuple[float, float]], note: str
) -> Drawing:
    labels = [shortened(one, PATTERNS_LONGEST) for panel in panels for one in (*panel.conditions, DIFFERENT)]
    left = 0.12 + CHARACTER * 0.92 * max(map(len, labels))
    answers = ANSWERS + GAP if any(panel.accuracy for panel in panels) else 0.0
    wide = (WIDTH - left - answers - GAP - 0.1) / 2
    whole = TOP + sum(map(_tall, panels)) + SCALE
    norms = [Normalize(*one) for one in limits]
    with styled():
        figure = Figure(figsize=(WIDTH, whole))
        top = TOP
        for panel in panels:
            tall = ROW * (len(panel.conditions) + 1.4)
            y = whole - top - HEAD - tall
            figure.text(0.02, 1 - (top + 0.12) / whole, panel.title, fontsize=9.5, weight="bold", va="center")
            for place, (head, cells, apart) in enumerate(
                (
                    ("Cosine with the intact text", panel.cosine, panel.apart),
                    ("Centred cosine", panel.centred, panel.apart_centred),
                )
            ):
                x = left + place * (wide + GAP)
                axes = axes_at(figure, x, y, wide, tall)
                _map(axes, cells, apart, norms[place])
                axes.set_title(head, fontsize=8.5, weight="normal", pad=3)
                axes.set_yticks([])
                if place == 0:
                    ticks = [*(np.arange(len(panel.conditions)) + 0.5), len(panel.conditions) + 0.9]
                    names = [shortened(one, PATTERNS_LONGEST) for one in (*panel.conditions, DIFFERENT)]
                    axes.set_yticks(ticks, names, fontsize=7.5)
                    axes.tick_params(axis="y", length=0)
            if panel.accuracy:
                x = left + 2 * (wide + GAP)
                axes = axes_at(figure, x, y, ANSWERS, tall)
                _answers(axes, panel.accuracy)
            top += _tall(panel)
        for place, (norm, unit) in enumerate(zip(norms, ("cosine", "centred cosine"), strict=True)):
            x = left + place * (wide + GAP)
            side = axes_at(figure, x, 0.3, wide, 0.09)
            bar = figure.colorbar(
                ScalarMappable(norm, colormaps[COLOURS]), cax=side, orientation="horizontal"
            )
            bar.ax.tick_params(labelsize=7, length=2)
            bar.set_label(unit, fontsize=7.5, labelpad=1)
            bar.outline.set_visible(False)
            bar.set_ticks(_ticks(*limits[place]))
        mark_not_data(figure, {})
    alternative = _patterns_in_words(title, panels)
    return Drawing.of(name, title, note, alternative, figure)


def _ticks(low: float, high: float) -> list[float]:
    """Return ticks of a scale, none so near its ends that its number meets one of the scale beside it."""
    ticks = [float(one) for one in MaxNLocator(nbins=4).tick_values(low, high) if low <= one <= high]
    edge = _EDGE * (high - low)
    inner = [one for one in ticks if low + edge <= one <= high - edge]
    return inner if len(inner) > 1 else ticks


def _map(axes: Axes, cells: Array, apart: Array, norm: Normalize) -> None:
    """Draw conditions downwards and layers to the right; below, a little apart, what different items have."""
    rows, layers = cells.shape
    edges = np.arange(layers + 1) - 0.5
    for values, heights in ((cells, np.arange(rows + 1)), (apart[None], np.array([rows + 0.4, rows + 1.4]))):
        axes.pcolormesh(
            edges,
            heights,
            np.ma.masked_invalid(values),
            cmap=colormaps[COLOURS],
            norm=norm,
            edgecolors="none",
            rasterized=values.size > 2000,
        )
    axes.set_xlim(-0.5, layers - 0.5)
    axes.set_ylim(rows + 1.4, 0)
    axes.grid(False)
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axes.tick_params(axis="x", length=2, labelsize=7.5, pad=1)
    axes.set_xlabel("Layer", fontsize=7.5, labelpad=1)


def _answers(axes: Axes, accuracy: Sequence[float]) -> None:
    """Draw the share of right answers beside each condition, written in its cell."""
    rows = len(accuracy)
    norm, colours = Normalize(0, 100), colormaps[COLOURS]
    values = np.array(accuracy, dtype=float)[:, None]
    axes.pcolormesh(
        np.array([0, 1]),
        np.arange(rows + 1),
        np.ma.masked_invalid(values),
        cmap=colours,
        norm=norm,
        edgecolors="white",
        linewidth=0.4,
    )
    for place, value in enumerate(accuracy):
        known = bool(np.isfinite(value))
        ink = _ink_on(colours(float(norm(value)))) if known else "#333333"
        text = apa.number(value, 0) if known else apa.MISSING
        axes.text(0.5, place + 0.52, text, ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xlim(0, 1)
    axes.set_ylim(rows + 1.4, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title("% right", fontsize=8.5, weight="normal", pad=3)


def _patterns_in_words(title: str, panels: Sequence[Panel]) -> str:
    told = []
    for panel in panels:
        rows = "; ".join(
            f"{name} {apa.number(float(np.nanmean(raw)), 3)} and {apa.number(float(np.nanmean(other)), 3)}"
            for name, raw, other in zip(panel.conditions, panel.cosine, panel.centred, strict=True)
            if not np.isnan(raw).all()
        )
        told.append(f"{panel.title}, mean over layers of cosine and centred cosine: {rows}")
    return f"{title}. {'. '.join(told)}."


def _ink_on(colour: tuple[float, float, float, float]) -> str:
    """Choose black or white for numbers on a colour, whichever stands out more (relative luminance, WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"


COLUMNS_OF_MODELS, COLUMNS_OF_CONDITIONS = 2, 3
MOST_PANELS = 8
_MARKED = 16
"""Up to so many layers each has its mark; of more, every second, third … has."""


@dataclass(frozen=True, eq=False)
class ModelLayers:
    """What is drawn of one model."""

    name: str
    found: Accuracies


def accuracy_figures(name: str, title: str, models: Sequence[ModelLayers], predicted: str) -> list[Drawing]:
    """Draw accuracy against layer, a line a condition with its band, a panel a model."""
    found = []
    for number, start in enumerate(range(0, len(models), MOST_PANELS), 1):
        own = models[start : start + MOST_PANELS]
        again = number > 1
        found.append(
            _accuracy(
                f"{name}_{number}" if again else name,
                f"{title}, continued" if again else title,
                own,
                predicted,
            )
        )
    return found


def _accuracy(name: str, title: str, models: Sequence[ModelLayers], predicted: str) -> Drawing:
    levels = list(dict.fromkeys(level for one in models for level in _conditions(one.found)))
    look = condition_looks(levels)
    key = key_height(look) + 0.22
    with styled():
        figure, panels = grid(
            len(models), 2.3, below=key + 0.42, left=0.6, columns=COLUMNS_OF_MODELS, between=0.25
        )
        low, high = _probing_limits(models)
        for place, (axes, one) in enumerate(zip(panels, models, strict=True)):
            _lines(axes, one.found, look)
            axes.set_ylim(low, high)
            _layers_below(axes, one.found, last=in_last_row(place, len(models), COLUMNS_OF_MODELS))
            _percent(axes, named=in_first_column(place, COLUMNS_OF_MODELS))
            axes.tick_params(labelleft=in_first_column(place, COLUMNS_OF_MODELS))
            _name(axes, f"{'ABCDEFGH'[place]}  {one.name}" if len(models) > 1 else one.name)
        axis_name(figure, panels, "Layer (0: embedding)", key + 0.12)
        condition_key(figure, panels, look, lines=True)
        _key_of_yardsticks(figure, panels, key_height(look))
        keep_width(figure)
    note = (
        f"Share of held-out trials of which a logistic regression on the layer’s states tells {predicted}; one regression "
        f"a layer, "
        f"trained on all conditions together. Bands are 95% {models[0].found.intervals}; each value by itself. Chance is "
        "the most frequent label of the training trials, or guessing; the control task has random labels."
    )
    told = "; ".join(f"{one.name}: {_probing_in_words(one.found)}" for one in models)
    alternative = f"Accuracy of probes by layer and condition. {told}."
    return Drawing.of(name, title, note, alternative, figure)


def step_figure(name: str, title: str, model: ModelLayers) -> Drawing:
    """Draw what each layer adds to the accuracy at the one before, a panel a condition."""
    found = model.found
    levels = _conditions(found)
    look = condition_looks(levels)
    with styled():
        figure, panels = grid(
            len(levels), 1.45, below=0.5, left=0.6, columns=COLUMNS_OF_CONDITIONS, between=0.14
        )
        own = slice(0, len(levels))
        reach = 100.0 * float(np.nanmax(np.abs([found.steps.low[own], found.steps.high[own]])))
        reach = max(1.0, 1.08 * reach)
        for place, (axes, level) in enumerate(zip(panels, levels, strict=True)):
            _steps(axes, found, place, look[level])
            axes.set_ylim(-reach, reach)
            _layers_below(axes, found, last=in_last_row(place, len(levels), COLUMNS_OF_CONDITIONS))
            _percent(
                axes, named=in_first_column(place, COLUMNS_OF_CONDITIONS), label="Points gained", sign=True
            )
            axes.tick_params(labelleft=in_first_column(place, COLUMNS_OF_CONDITIONS))
            _name(axes, level, look[level].colour)
        axis_name(figure, panels, "Layer", 0.14)
        keep_width(figure)
    note = (
        "Percentage points by which the accuracy of the probe exceeds that at the layer before. Bars are 95% "
        f"{found.intervals}; each value by itself. Filled points differ from 0 also when all layers and conditions are taken together."
    )
    alternative = f"Gain of accuracy by layer. {_steps_in_words(found)}."
    return Drawing.of(name, title, note, alternative, figure)


def _conditions(found: Accuracies) -> tuple[str, ...]:
    """Return the conditions without all of them together."""
    return found.names[: len(found.against.value) + 1]


def _lines(axes: Axes, found: Accuracies, look: dict[str, Look]) -> None:
    layers = np.arange(found.accuracy.value.shape[1])
    together = len(found.names) - 1
    axes.axhline(100 * found.chance[together, 0], color="#444444", lw=0.9, ls=(0, (4, 2)), zorder=1)
    control = 100 * found.control.value[together]
    if np.isfinite(control).any():
        axes.plot(layers, control, color=GREY, lw=1.2, ls=(0, (1, 1.4)), zorder=2)
    for place, level in enumerate(_conditions(found)):
        it = look[level]
        value, low, high = (
            100 * part[place] for part in (found.accuracy.value, found.accuracy.low, found.accuracy.high)
        )
        axes.fill_between(layers, low, high, color=it.colour, alpha=0.11, lw=0, zorder=2)
        axes.plot(
            layers, value, color=it.colour, ls=it.line, lw=1.3, marker=it.marker, ms=4.2,
            markevery=-(-len(layers) // _MARKED), mfc="white" if place % 2 else it.colour, mec=it.colour, mew=1.0, zorder=4,
        )  # fmt: skip


def _steps(axes: Axes, found: Accuracies, place: int, it: Look) -> None:
    steps = found.steps
    layers = np.arange(1, steps.value.shape[1] + 1)
    value, low, high = (100 * part[place] for part in (steps.value, steps.low, steps.high))
    sure = (steps.low_all[place] > 0) | (steps.high_all[place] < 0)
    size = 4.2 if len(layers) <= 2 * _MARKED else 2.6
    axes.axhline(0, color="#444444", lw=0.8, zorder=1)
    axes.vlines(layers, low, high, color=it.colour, lw=1.0, alpha=0.75, zorder=2)
    for some, face in ((sure, it.colour), (~sure, "white")):
        marks(axes, layers[some], value[some], it.marker, it.colour, face, size=size, edge=0.9, zorder=3)


def _probing_limits(models: Sequence[ModelLayers]) -> tuple[float, float]:
    """Return limits of the accuracy axis, in percent, that every panel shares."""
    low = min(float(np.nanmin(one.found.accuracy.low)) for one in models)
    high = max(float(np.nanmax(one.found.accuracy.high)) for one in models)
    low = min(low, *(float(one.found.chance[-1].min()) for one in models))
    return max(0.0, 100 * low - 3), min(101.0, 100 * high + 3)


def _layers_below(axes: Axes, found: Accuracies, *, last: bool) -> None:
    many = found.accuracy.value.shape[1]
    axes.set_xlim(-0.03 * many - 0.3, many - 1 + 0.03 * many + 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.tick_params(labelsize=8, labelbottom=last)


def _percent(axes: Axes, *, named: bool, label: str = "Accuracy of the probe", sign: bool = False) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))

    def written(value: float, _: object) -> str:
        text = apa.number(value, 0)
        return f"+{text}" if sign and value > 0 else str(text) if sign else f"{text}%"

    axes.yaxis.set_major_formatter(FuncFormatter(written))
    if named:
        axes.set_ylabel(label, fontsize=8.5)


def _name(axes: Axes, text: str, colour: str = "#111111") -> None:
    axes.annotate(
        "\n".join(fitted(text, 40)), (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", fontsize=8.5,
        weight="bold", color=colour, va="baseline", linespacing=1.0,
    )  # fmt: skip


def _key_of_yardsticks(figure: Figure, panels: Sequence[Axes], height: float) -> None:
    """Write under the panels which lines are chance and the control task."""
    handles = [
        Line2D([], [], color="#444444", lw=0.9, ls=(0, (4, 2)), label="chance"),
        Line2D([], [], color=GREY, lw=1.2, ls=(0, (1, 1.4)), label="control task (random labels)"),
    ]
    places = [axes.get_position() for axes in panels]
    middle = max((min(place.x0 for place in places) + max(place.x1 for place in places)) / 2, 0.32)
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(middle, height / figure.get_size_inches()[1]), ncols=2,
        fontsize=8, frameon=False, handlelength=2.6, columnspacing=1.4,
    )  # fmt: skip


def _probing_in_words(found: Accuracies) -> str:
    layers = found.accuracy.value.shape[1]
    return ", ".join(
        f"{level} {apa.number(100 * found.accuracy.value[place, 0], 0)}% at layer 0, "
        f"{apa.number(100 * found.accuracy.value[place, -1], 0)}% at layer {layers - 1}"
        for place, level in enumerate(_conditions(found))
    )


def _steps_in_words(found: Accuracies) -> str:
    told = []
    for place, level in enumerate(_conditions(found)):
        best = int(np.nanargmax(found.steps.value[place]))
        told.append(
            f"{level}: most at layer {best + 1}, {apa.number(100 * found.steps.value[place, best], 1)} points"
        )
    return "; ".join(told)


PLANE_LONGEST = 26


def profile_plane(
    name: str,
    title: str,
    people: tuple[str, Array],
    models: tuple[Sequence[str], Array],
    shares: tuple[float, float],
    kinds: dict[str, str],
    note: str,
) -> Drawing:
    """Draw a point for each person and a marker for each model."""
    group, points = people
    names, places = models
    present = {group: kinds[group], **{one: kinds.get(one, "model") for one in names}}
    style = looks(present)
    with styled():
        figure = Figure(figsize=(WIDTH, 3.6))
        axes = figure.add_axes((0.1, 0.14, 0.56, 0.8))
        axes.axhline(0, color="#999999", lw=0.7, zorder=0)
        axes.axvline(0, color="#999999", lw=0.7, zorder=0)
        handles = [
            axes.scatter(
                points[:, 0],
                points[:, 1],
                s=16,
                color=style[group].colour,
                alpha=0.55,
                lw=0,
                marker=style[group].marker,
                label=f"{style[group].label}, a point each",
            )
        ]
        for one, (x, y) in zip(names, places, strict=True):
            look = style[one]
            handles.append(
                axes.scatter(
                    [x],
                    [y],
                    s=52,
                    facecolor="white",
                    edgecolor=look.colour,
                    lw=1.6,
                    marker=look.marker,
                    label=shortened(look.label, PLANE_LONGEST),
                    zorder=3,
                )
            )
        for axis, share, said in zip((axes.xaxis, axes.yaxis), shares, ("First", "Second"), strict=True):
            axis.set_label_text(f"{said} component ({apa.percent(share, 0)})")
            axis.set_major_locator(MaxNLocator(nbins=6))
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0.68, 0.95), frameon=False, fontsize=8.5
        )
        mark_not_data(figure, present)
    told = "; ".join(
        f"{one} at {apa.number(float(x), 2)} and {apa.number(float(y), 2)}"
        for one, (x, y) in zip(names, places, strict=True)
    )
    spread = points.std(axis=0)
    alternative = (
        f"{title}. {headed(group)}, {len(points)}, spread about the middle with standard deviations "
        f"{apa.number(float(spread[0]), 2)} and "
        f"{apa.number(float(spread[1]), 2)}" + (f"; {told}." if told else ".")
    )
    return Drawing.of(name, title, note, alternative, figure)
