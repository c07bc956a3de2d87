"""A model's condition × layer map (Mind Scramble, 2024, Figure 5): cosine with the intact text, raw and centred, accuracy beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, mark_not_data, shortened, styled

Array = NDArray[np.float64]

ROW, HEAD, AXIS, TOP, SCALE = 0.165, 0.42, 0.36, 0.12, 0.5
TALLEST = 8.4
"""Inches: a row of a map, the line that heads it, its axis, the margin above, the scale below; the most that a page takes."""
ANSWERS, GAP = 0.42, 0.14
"""Width of the column of accuracy, and what separates it and the maps, in inches."""
CHARACTER = 0.068
"""Mean width of a character of a label, in inches."""
LONGEST = 28
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
    limits = [_limits([getattr(one, which) for one in panels]) for which in ("cosine", "centred")]
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


def _limits(maps: Sequence[Array]) -> tuple[float, float]:
    values = np.concatenate([one[np.isfinite(one)].ravel() for one in maps])
    low = float(values.min()) if len(values) else 0.0
    high = float(values.max()) if len(values) else 1.0
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _figure(
    name: str, title: str, panels: Sequence[Panel], limits: Sequence[tuple[float, float]], note: str
) -> Drawing:
    labels = [shortened(one, LONGEST) for panel in panels for one in (*panel.conditions, DIFFERENT)]
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
            y = (whole - top - HEAD - tall) / whole
            figure.text(0.02, 1 - (top + 0.12) / whole, panel.title, fontsize=9.5, weight="bold", va="center")
            for place, (head, cells, apart) in enumerate(
                (
                    ("Cosine with the intact text", panel.cosine, panel.apart),
                    ("Centred cosine", panel.centred, panel.apart_centred),
                )
            ):
                x = left + place * (wide + GAP)
                axes = figure.add_axes((x / WIDTH, y, wide / WIDTH, tall / whole))
                _map(axes, cells, apart, norms[place])
                axes.set_title(head, fontsize=8.5, weight="normal", pad=3)
                axes.set_yticks([])
                if place == 0:
                    ticks = [*(np.arange(len(panel.conditions)) + 0.5), len(panel.conditions) + 0.9]
                    names = [shortened(one, LONGEST) for one in (*panel.conditions, DIFFERENT)]
                    axes.set_yticks(ticks, names, fontsize=7.5)
                    axes.tick_params(axis="y", length=0)
            if panel.accuracy:
                x = left + 2 * (wide + GAP)
                axes = figure.add_axes((x / WIDTH, y, ANSWERS / WIDTH, tall / whole))
                _answers(axes, panel.accuracy)
            top += _tall(panel)
        for place, (norm, unit) in enumerate(zip(norms, ("cosine", "centred cosine"), strict=True)):
            x = left + place * (wide + GAP)
            side = figure.add_axes((x / WIDTH, 0.30 / whole, wide / WIDTH, 0.09 / whole))
            bar = figure.colorbar(
                ScalarMappable(norm, colormaps[COLOURS]), cax=side, orientation="horizontal"
            )
            bar.ax.tick_params(labelsize=7, length=2)
            bar.set_label(unit, fontsize=7.5, labelpad=1)
            bar.outline.set_visible(False)
            bar.set_ticks(_ticks(*limits[place]))
        mark_not_data(figure, {})
    alternative = _in_words(title, panels)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


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
    for values, heights in (
        (cells, np.arange(rows + 1)),
        (apart[None], np.array([rows + 0.4, rows + 1.4])),
    ):
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


def _in_words(title: str, panels: Sequence[Panel]) -> str:
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
