"""Time distributions: for each condition a smooth curve, percentiles, and participants' own medians, in one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.costs.spread import TimeSpread
from analysis.costs.units import TITLES
from analysis.figures.cost_panels import fitted, kinds_in_words
from analysis.figures.drawing import TALLEST, WIDTH, Drawing, as_svg, looks, mark_not_data, styled
from analysis.figures.labels import height_of, size_in
from analysis.names import in_words
from analysis.readers import marked

_ROW, _LEAST_ROW = 0.52, 0.105
"""Inches of a row: with few conditions, and where a page would else not hold them."""


def time_distribution_figure(
    name: str, spreads: Sequence[TimeSpread], factor: str, levels: Sequence[str]
) -> Drawing:
    """Draw the times of people in each condition, a panel for each group of participants and measure.

    Parameters
    ----------
    name : str
        File name without ending.
    spreads : sequence of TimeSpread
        Of all groups and measures that are drawn.
    factor : str
    levels : sequence of str
        From top to bottom.
    """
    kinds = {one.group: one.kind for one in spreads}
    look = looks(kinds)
    panels = list(dict.fromkeys((one.group, one.measure) for one in spreads))
    shown = [level for level in levels if any(one.level == level for one in spreads)]
    between, top, below = 0.72, 0.42, 0.52
    room = (TALLEST - top - below - (len(panels) - 1) * between) / len(panels) - 0.1
    row = float(np.clip(room / len(shown), _LEAST_ROW, _ROW))
    size = size_in(row)
    lines = [fitted(in_words(level), 18) for level in shown]
    if row < height_of(max(map(len, lines)), size):
        lines = [fitted(in_words(level), 36) for level in shown]
    names = ["\n".join(one) for one in lines]
    left = 0.25 + 0.072 * max(5, *(len(line) for text in names for line in text.split("\n")))
    with styled():
        tall = row * len(shown) + 0.1
        whole = top + len(panels) * tall + (len(panels) - 1) * between + below
        figure = Figure(figsize=(WIDTH, whole))
        for place, (group, measure) in enumerate(panels):
            bottom = whole - top - (place + 1) * tall - place * between
            axes = figure.add_axes(
                (left / WIDTH, bottom / whole, (WIDTH - left - 0.15) / WIDTH, tall / whole)
            )
            own = [one for one in spreads if (one.group, one.measure) == (group, measure)]
            peak = max(float(one.density.max()) for one in own)
            for one in own:
                _row(axes, one, shown.index(one.level), peak, look[group].colour)
            _frame(axes, names, own)
            axes.tick_params(axis="y", labelsize=size)
            letter = f"{'ABCDEFGH'[place % 8]}  " if len(panels) > 1 else ""
            axes.set_title(f"{letter}{marked(group, kinds[group])}: {TITLES[measure].lower()}")
            axes.set_xlabel(f"{TITLES[measure]} (ms, log scale)")
        mark_not_data(figure, kinds)
    measures = " and ".join(dict.fromkeys(TITLES[one.measure].lower() for one in spreads))
    title = f"Distributions of {measures} by {factor}"
    alternative = _in_words(spreads)
    return Drawing(name, title, _note(spreads), alternative, as_svg(figure, name, title, alternative), figure)


def _row(axes: Axes, one: TimeSpread, row: int, peak: float, colour: str) -> None:
    base = row + 0.12
    axes.fill_between(
        one.grid, base - 0.58 * one.density / peak, base, color=colour, alpha=0.28, linewidth=0, zorder=2
    )
    axes.plot(one.grid, base - 0.58 * one.density / peak, color=colour, lw=0.9, zorder=3)
    p5, _, p25, p50, p75, _, p95 = one.percentiles
    axes.plot([p5, p95], [base, base], color="#222222", lw=0.9, zorder=4, solid_capstyle="butt")
    axes.plot([p25, p75], [base, base], color="#222222", lw=3.4, zorder=4, solid_capstyle="butt")
    axes.plot(p50, base, marker="o", ms=4.2, mfc="white", mec="#222222", mew=1.0, zorder=5)
    alpha = float(np.clip(14 / max(len(one.medians), 1), 0.06, 0.75))
    axes.vlines(one.medians, base + 0.1, base + 0.26, color=colour, lw=1.0, alpha=alpha, zorder=3)


def _frame(axes: Axes, names: list[str], own: Sequence[TimeSpread]) -> None:
    axes.set_xscale("log")
    low = min(float(min(one.percentiles[0], one.medians.min())) for one in own)
    high = max(float(max(one.percentiles[-1], one.medians.max())) for one in own)
    stretch = (high / low) ** 0.16 if high > low else 1.2
    axes.set_xlim(low / stretch, high * stretch)
    wide = high * stretch * stretch / low
    if wide > 4:
        subs = (1, 1.5, 2, 3, 5, 7) if wide < 15 else (1, 2, 5) if wide < 500 else (1,)
        axes.xaxis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(len(names) - 0.5, -0.56)
    axes.set_yticks([row + 0.12 for row in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")


def _note(spreads: Sequence[TimeSpread]) -> str:
    people = max(len(one.medians) for one in spreads)
    ticks = "Ticks under a curve are medians of single participants" + (
        " (paler where many lie together)." if people < 20 else "; darker where many lie together."
    )
    return (
        "Valid answers within the study's time bounds. Curves are densities of log times (Gaussian kernel), all to one "
        "scale in a "
        f"panel; the circle is the median, thick bars hold the middle 50%, thin ones the middle 90% of all times. {ticks}"
        + kinds_in_words({one.kind for one in spreads})
    )


def _in_words(spreads: Sequence[TimeSpread]) -> str:
    told = [
        f"{one.group}, {TITLES[one.measure].lower()}, {one.level}: median {apa.milliseconds(one.percentiles[3])}, middle 90% "
        f"from {apa.milliseconds(one.percentiles[0])} to {apa.milliseconds(one.percentiles[-1])}"
        for one in spreads
    ]
    return "; ".join(told) + "."
