"""Figures of probes, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures import marks
from analysis.figures.drawing import Drawing, MarkStyle, keep_width, styled
from analysis.figures.marks import GREY, IntervalMarks
from analysis.figures.panels import (
    Room,
    axis_name,
    condition_key,
    condition_looks,
    fitted,
    key_height,
    lettered,
    middle,
    paged,
)

if TYPE_CHECKING:
    from experiment.papers.inside.chapters.probing.probing_intervals import Accuracies, Probed

COLUMNS_OF_MODELS, COLUMNS_OF_CONDITIONS = 2, 3
MOST_PANELS = 8
_MARKED = 16  # with at most this many layers, each has its mark; with more, every second, third … has
_CHANCE = MarkStyle("#444444", "", (0, (4, 2)), "chance")
_CONTROL = MarkStyle(GREY, "", (0, (1, 1.4)), "control task (random labels)")


def accuracy_figures(name: str, title: str, models: Sequence[Probed], predicted: str) -> list[Drawing]:
    """Draw accuracy against layer, with one line and band per condition and one panel per model."""

    def draw(name: str, title: str, models: Sequence[Probed]) -> Drawing:
        look = condition_looks(list(dict.fromkeys(level for model in models for level in model.conditions)))
        key = key_height(look) + 0.22
        low = min(
            float(np.nanmin(part))
            for model in models
            for part in (model.found.accuracy.low, model.found.chance[-1])
        )
        high = max(float(np.nanmax(model.found.accuracy.high)) for model in models)
        room = Room(2.3, 0.6, key + 0.42, COLUMNS_OF_MODELS, 0.25, widest=3.6)
        with styled():
            figure, panels = room.panels(len(models))
            for index, (axes, model) in enumerate(zip(panels, models, strict=True)):
                _lines(axes, model, look)
                axes.set_ylim(max(0.0, 100 * low - 3), min(101.0, 100 * high + 3))
                _layers_below(axes, model.found)
                marks.numbered(axes.yaxis, marks.percent, nbins=6)
                marks.above(
                    axes, "\n".join(fitted(lettered(index, len(models), model.name), 40)), 6, **_TITLE
                )
            for axes in panels[::COLUMNS_OF_MODELS]:
                axes.set_ylabel("Accuracy of the probe", fontsize=8.5)
            axis_name(figure, panels, "Layer (0: embedding)", key + 0.12)
            condition_key(figure, panels, look, lines=True)
            at = (middle(panels), key_height(look) / figure.get_figheight())
            handles = [marks.handle(_CHANCE, lw=0.9), marks.handle(_CONTROL, lw=1.2)]
            marks.key_below(
                figure, handles, 2, bbox_to_anchor=at, handlelength=2.6, columnspacing=1.4, borderaxespad=None
            )
            keep_width(figure)
        values = {"title": title, "models": models, "predicted": predicted}
        return Drawing.described(name, figure, {}, "probes", **values)

    return paged(name, title, models, draw, MOST_PANELS)


_TITLE = {"weight": "bold", "color": "#111111", "va": "baseline"}


def step_figure(name: str, title: str, model: Probed) -> Drawing:
    """Draw the accuracy that each layer adds to the one before, with one panel per condition."""
    estimates, levels = model.found, model.conditions
    look = condition_looks(levels)
    of_conditions = slice(0, len(levels))
    reach = 100.0 * float(
        np.nanmax(np.abs([estimates.steps.low[of_conditions], estimates.steps.high[of_conditions]]))
    )
    reach = max(1.0, 1.08 * reach)
    with styled():
        figure, panels = Room(1.45, 0.6, 0.5, COLUMNS_OF_CONDITIONS, 0.14, widest=3.6).panels(len(levels))
        for index, (axes, level) in enumerate(zip(panels, levels, strict=True)):
            _steps(axes, estimates, index, look[level])
            axes.set_ylim(-reach, reach)
            _layers_below(axes, estimates)
            marks.numbered(
                axes.yaxis, lambda value: f"{'+' if value > 0 else ''}{apa.number(value, 0)}", nbins=6
            )
            marks.above(axes, "\n".join(fitted(level, 40)), 6, **_TITLE | {"color": look[level].colour})
        for axes in panels[::COLUMNS_OF_CONDITIONS]:
            axes.set_ylabel("Points gained", fontsize=8.5)
        axis_name(figure, panels, "Layer", 0.14)
        keep_width(figure)
    best = [int(np.nanargmax(estimates.steps.value[index])) for index in range(len(levels))]
    values = {"title": title, "found": estimates, "levels": levels, "best": best}
    return Drawing.described(name, figure, {}, "probe_steps", **values)


def _lines(axes: Axes, model: Probed, look: Mapping[str, MarkStyle]) -> None:
    estimates = model.found
    layers = np.arange(estimates.accuracy.value.shape[1])
    together = len(estimates.names) - 1
    axes.axhline(100 * estimates.chance[together, 0], color=_CHANCE.colour, lw=0.9, ls=_CHANCE.line, zorder=1)
    control = 100 * estimates.control.value[together]
    if np.isfinite(control).any():
        axes.plot(layers, control, color=_CONTROL.colour, lw=1.2, ls=_CONTROL.line, zorder=2)
    every = -(-len(layers) // _MARKED)
    for index, level in enumerate(model.conditions):
        mark = replace(look[level], is_hollow=index % 2 == 1)
        value, low, high = (
            100 * part[index]
            for part in (estimates.accuracy.value, estimates.accuracy.low, estimates.accuracy.high)
        )
        axes.fill_between(layers, low, high, color=mark.colour, alpha=0.11, lw=0, zorder=2)
        marks.points(axes, mark, layers, value, join=1.3, size=4.2, edge=1.0, markevery=every)


def _steps(axes: Axes, estimates: Accuracies, index: int, mark: MarkStyle) -> None:
    steps = estimates.steps
    layers = np.arange(1, steps.value.shape[1] + 1)
    value, low, high = (100 * part[index] for part in (steps.value, steps.low, steps.high))
    sure = (steps.low_all[index] > 0) | (steps.high_all[index] < 0)
    size = 4.2 if len(layers) <= 2 * _MARKED else 2.6
    axes.axhline(0, color=_CHANCE.colour, lw=0.8, zorder=1)
    for subset in (sure, ~sure):
        ends = IntervalMarks(value[subset], low[subset], high[subset])
        look = replace(mark, is_hollow=subset is not sure)
        marks.points(axes, look, layers[subset], ends, size=size, edge=0.9, bar=1.0)


def _layers_below(axes: Axes, estimates: Accuracies) -> None:
    n_layers = estimates.accuracy.value.shape[1]
    axes.set_xlim(-0.03 * n_layers - 0.3, n_layers - 1 + 0.03 * n_layers + 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.tick_params(labelsize=8)
