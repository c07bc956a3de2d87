"""Heat map: a value in each cell of a table, written in it as a number, so that colour is a help and never needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, mark_not_data, shortened, styled
from analysis.names import in_words

ROW, HEAD, TOP = 0.29, 0.27, 0.34
"""Heights in inches: a row of cells, a line that heads a block, the margin for marks."""
CHARACTER = 0.068
"""Mean width of a character of a label, in inches."""
LONGEST = 28
LEAST_SCALE = 0.8
"""Inches of cells below which there is no room for a scale; the numbers say all."""
COLOURS = "cividis"
"""Even in lightness from dark to light, so that its order shows in grey and to the colour-blind (Nuñez et al., 2018)."""


def heat_map_figure(
    name: str,
    title: str,
    blocks: Sequence[tuple[str, pd.DataFrame]],
    kinds: dict[str, str],
    *,
    unit: str,
    written: Callable[[float], str] = lambda value: apa.number(value, 0),
    limits: tuple[float, float] | None = None,
    note: str = "",
) -> Drawing:
    """Draw tables of values, one below the other, with the number in each cell.

    Parameters
    ----------
    name : str
        File name without ending.
    title : str
    blocks : sequence of (str, pandas.DataFrame)
        What a block is of (empty for no head) and its values: rows and columns labelled in words, the same columns in all. NaN
        is an empty cell with an en dash.
    kinds : dict
        Reader kind of each group shown, for the mark of what is not data.
    unit : str
        What the colours mean, in words.
    written : callable
        Writes a value into its cell.
    limits : tuple of float, optional
        Values of the darkest and the lightest colour; the lowest and highest value by default.
    note : str
    """
    columns = [in_words(str(one)) for one in blocks[0][1].columns]
    low, high = _limits([table for _, table in blocks], limits)
    norm, colours = Normalize(low, high), colormaps[COLOURS]
    labels = [shortened(str(row), LONGEST) for _, table in blocks for row in table.index]
    left = 0.15 + CHARACTER * max(map(len, labels), default=4)
    cell = (WIDTH - left - 0.95) / max(len(columns), 1)
    heads, lines = _headed(columns, cell)
    slanted = lines == 0
    bottom = 0.12
    above = 0.1 + (CHARACTER * 0.72 * max(map(len, heads)) + 0.15 if slanted else 0.15 * lines)
    rows = sum(len(table) for _, table in blocks)
    tall = ROW * rows + HEAD * sum(bool(head) for head, _ in blocks)
    with styled():
        figure = Figure(figsize=(WIDTH, TOP + above + tall + bottom))
        whole = figure.get_figheight()
        axes = figure.add_axes((left / WIDTH, bottom / whole, cell * len(columns) / WIDTH, tall / whole))
        axes.set_xlim(0, len(columns))
        axes.set_ylim(tall, 0)
        axes.grid(False)
        _cells(axes, blocks, norm, colours, written, cell)
        axes.set_xticks(np.arange(len(columns)) + 0.5, heads)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        if slanted:
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="left", va="bottom", rotation_mode="anchor")
        for side in ("left", "bottom", "right", "top"):
            axes.spines[side].set_visible(False)
        if tall >= LEAST_SCALE:
            _scale(figure, axes, norm, colours, unit)
        mark_not_data(figure, kinds)
    alternative = _in_words(title, blocks, written)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _limits(tables: Sequence[pd.DataFrame], given: tuple[float, float] | None) -> tuple[float, float]:
    if given is not None:
        return given
    values = np.concatenate([table.to_numpy(dtype=float).ravel() for table in tables])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _headed(columns: Sequence[str], cell: float) -> tuple[list[str], int]:
    """Break column heads into lines where they fit a cell's width; else leave them whole, to be slanted."""
    fits = max(int(cell / (1.15 * CHARACTER)), 1)
    broken = [wrap(one, fits, break_long_words=False, break_on_hyphens=False) for one in columns]
    lines = max(map(len, broken), default=1)
    if lines <= 3 and all(len(part) <= fits for one in broken for part in one):
        return ["\n".join(one) for one in broken], lines
    return [shortened(one, LONGEST) for one in columns], 0


def _cells(
    axes: Axes,
    blocks: Sequence[tuple[str, pd.DataFrame]],
    norm: Normalize,
    colours: Colormap,
    written: Callable[[float], str],
    cell: float,
) -> None:
    top = 0.0
    ticks: list[float] = []
    labels: list[str] = []
    for head, table in blocks:
        if head:
            axes.text(
                0, top + HEAD - 0.07, in_words(head), fontsize=8.5, weight="bold", va="baseline", ha="left"
            )
            top += HEAD
        values = table.to_numpy(dtype=float)
        edges = top + ROW * np.arange(len(table) + 1)
        axes.pcolormesh(
            np.arange(values.shape[1] + 1),
            edges,
            np.ma.masked_invalid(values),
            cmap=colours,
            norm=norm,
            edgecolors="white",
            linewidth=1.0,
        )
        for place, line in enumerate(values):
            middle = top + ROW * (place + 0.5)
            ticks.append(middle)
            labels.append(shortened(str(table.index[place]), LONGEST))
            for at, value in enumerate(line):
                known = bool(np.isfinite(value))
                text = str(written(float(value))) if known else apa.MISSING
                ink = ink_on(colours(float(norm(value)))) if known else "#333333"
                size = min(8.5, 72 * (cell - 0.06) / (0.62 * max(len(text), 1)))
                axes.text(at + 0.5, middle, text, ha="center", va="center", fontsize=size, color=ink)
        top += ROW * len(table)
    axes.set_yticks(ticks, labels)


def ink_on(colour: tuple[float, float, float, float]) -> str:
    """Choose black or white for numbers on a colour, whichever stands out more (relative luminance, WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
    return "black" if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else "white"


def _scale(figure: Figure, axes: Axes, norm: Normalize, colours: Colormap, unit: str) -> None:
    box = axes.get_position()
    tall = min(box.height, 1.6 / figure.get_figheight())
    side = figure.add_axes((box.x1 + 0.12 / WIDTH, box.y1 - tall, 0.12 / WIDTH, tall))
    bar = figure.colorbar(ScalarMappable(norm, colours), cax=side)
    bar.ax.tick_params(labelsize=7.5, length=2)
    fits = max(int(tall * figure.get_figheight() / (CHARACTER * 0.9)), 8)
    bar.set_label("\n".join(wrap(unit, fits)), fontsize=7.5)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(nbins=max(2, min(5, int(tall * figure.get_figheight() / 0.3))))
    bar.update_ticks()


def _in_words(title: str, blocks: Sequence[tuple[str, pd.DataFrame]], written: Callable[[float], str]) -> str:
    told = []
    for head, table in blocks:
        for label, line in table.iterrows():
            values = ", ".join(
                f"{column} {written(float(value)) if np.isfinite(value) else 'none'}"
                for column, value in line.items()
            )
            told.append(f"{head + ', ' if head else ''}{label}: {values}")
    return f"{title}. {'; '.join(told)}."
