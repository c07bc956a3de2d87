"""Probes layer by layer: accuracy by condition in a panel per model, and what each layer adds to the one before it.

Figures 7 and 8 of Scrambled Bench (Cao et al., 2023), with intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.cost_panels import (
    GREY,
    axis_name,
    condition_key,
    condition_looks,
    fitted,
    grid,
    in_first_column,
    in_last_row,
    key_height,
)
from analysis.figures.drawing import Drawing, Look, as_svg, keep_width, styled
from analysis.inside.probing_intervals import Accuracies

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
    """Draw accuracy against layer, a line a condition with its band, a panel a model.

    Parameters
    ----------
    name, title : str
        Further figures, of more than eight models, have a number behind the name.
    models : sequence of ModelLayers
    predicted : str
        What the probes predict, in words.
    """
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
        low, high = _limits(models)
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
    told = "; ".join(f"{one.name}: {_in_words(one.found)}" for one in models)
    alternative = f"Accuracy of probes by layer and condition. {told}."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


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
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


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
        axes.plot(
            layers[some], value[some], ls="", marker=it.marker, ms=size, mfc=face, mec=it.colour, mew=0.9, zorder=3
        )  # fmt: skip


def _limits(models: Sequence[ModelLayers]) -> tuple[float, float]:
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


def _in_words(found: Accuracies) -> str:
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
