"""Item scatter: people's item means against a model's, condition by condition, with the ceiling in words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, Look, as_svg, looks, mark_not_data, shortened, styled
from analysis.figures.labels import cut_to_lines, height_of, in_lines
from analysis.readers import headed, spoken
from stimuli.seeds import stable_seed

MOST_POINTS = 600
_ACROSS = 4
SIZES = (9.0, 8.0, 7.0)
"""Points of a panel's title: the largest at which no word has to be broken."""

AXES = {
    "correct": "% right",
    "reading_time": "log reading time, from own mean",
    "rt": "log response time, from own mean",
    "margin": "margin (nats)",
    "surprisal": "surprisal (bits)",
    "completion_tokens": "log tokens written",
    "reasoning_tokens": "log tokens of thought",
    "latency_ms": "log latency (ms)",
}


def item_scatter(
    name: str,
    means: tuple[pd.DataFrame, pd.DataFrame],
    agreement: pd.DataFrame,
    readers: tuple[str, str],
    kinds: dict[str, str],
    measures: tuple[str, str],
) -> Drawing:
    """Draw one model's item means against people's, a panel a condition.

    Parameters
    ----------
    name : str
        File name without ending.
    means : (DataFrame, DataFrame)
        Of people and the model, from :func:`analysis.fidelity.item_means_by_level`: a row an item, a column a level.
    agreement : pandas.DataFrame
        Rows of :func:`analysis.fidelity.item_agreement` of these two, indexed by level; levels without a row are not drawn.
    readers : (str, str)
        Reader groups: people, model.
    kinds : dict
        Reader kind of each group.
    measures : (str, str)
        Of people and the model.
    """
    levels = [str(level) for level in means[0].columns if level in agreement.index]
    present = {reader: kinds[reader] for reader in readers}
    look = looks(present)[readers[1]]
    across = min(_ACROSS, len(levels))
    down = ceil(len(levels) / across)
    hidden = 0
    told: dict[Hashable, dict[Hashable, Any]] = agreement.to_dict("index")
    width = WIDTH * (0.9 / across if across > 1 else 0.55) - 0.2
    size = next(
        (one for one in SIZES if all(in_lines(level, width, one, bold=True) for level in levels)), SIZES[-1]
    )
    titles = ["\n".join(cut_to_lines(level, width, size, bold=True)) for level in levels]
    each = 2.47 + height_of(max(one.count("\n") for one in titles), size)
    height = each * down + 0.43
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        ends = [_range(table[levels], measure) for table, measure in zip(means, measures, strict=True)]
        for place, level in enumerate(levels):
            axes = _place(figure, place, across, down, each)
            hidden += _panel(axes, level, means, told[level], look, ends, measures)
            axes.set_title(titles[place], fontsize=size, pad=33)
            if place % across:
                axes.set_yticklabels([])
            if place + across < len(levels):
                axes.set_xticklabels([])
        figure.text(
            0.54, 0.1 / height, f"{headed(readers[0])}: {AXES[measures[0]]}", ha="center", va="bottom"
        )
        side = f"{shortened(readers[1], 26)}: {AXES[measures[1]]}"
        figure.text(0.005, 0.52, side, ha="left", va="center", rotation=90, fontsize=8.5)
        mark_not_data(figure, present)
    title = f"Items of {spoken(readers[0])} and {readers[1]}: {AXES[measures[0]]} against {AXES[measures[1]]}"
    note = _note(readers[0], measures, hidden, present, agreement.loc[levels])
    alternative = _in_words(agreement.loc[levels], readers)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _place(figure: Figure, place: int, across: int, down: int, each: float) -> Axes:
    height = float(figure.get_figheight())
    width = 0.9 / across if across > 1 else 0.55
    row, column = divmod(place, across)
    left = 0.095 + column * width
    bottom = (0.5 + each * (down - 1 - row)) / height
    return figure.add_axes((left, bottom, width - 0.022, 1.42 / height))


def _range(table: pd.DataFrame, measure: str) -> tuple[float, float]:
    if measure == "correct":
        return -6.0, 106.0
    values = table.to_numpy(dtype=float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * max(high - low, 1e-9)
    return low - room, high + room


def _panel(
    axes: Axes,
    level: str,
    means: tuple[pd.DataFrame, pd.DataFrame],
    row: dict[Hashable, Any],
    look: Look,
    ends: list[tuple[float, float]],
    measures: tuple[str, str],
) -> int:
    """Draw one condition and return how many items are not shown."""
    both = pd.concat([means[0][level], means[1][level]], axis=1, keys=["x", "y"]).dropna()
    shown = both
    if len(both) > MOST_POINTS:
        turn = sorted(both.index, key=lambda item: stable_seed("item scatter", str(item)))
        shown = both.loc[turn[:MOST_POINTS]]
    draw = np.random.default_rng(stable_seed("jitter", level))
    scale = [100.0 if measure == "correct" else 1.0 for measure in measures]
    x, y = (scale[n] * shown[side].to_numpy(dtype=float) for n, side in enumerate("xy"))
    for values, measure in ((x, measures[0]), (y, measures[1])):
        if measure == "correct" and len(np.unique(values)) <= 5:
            values += draw.uniform(-3, 3, len(values))
    axes.grid(visible=True, axis="both")
    axes.set(xlim=ends[0], ylim=ends[1])
    axes.scatter(
        x, y, s=13, marker=look.marker, facecolors="none", edgecolors=look.colour, linewidths=0.8, alpha=0.75
    )
    for axis, measure in ((axes.xaxis, measures[0]), (axes.yaxis, measures[1])):
        if measure == "correct":
            axis.set_ticks([0, 50, 100])
        else:
            axis.set_major_locator(MaxNLocator(3))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.tick_params(labelsize=7.5)
    axes.text(0, 1.03, _told(row), transform=axes.transAxes, fontsize=7, va="bottom", linespacing=1.25)
    return len(both) - len(shown)


def _told(row: dict[Hashable, Any]) -> str:
    lines = [f"r = {apa.correlation(row['correlation'])} {apa.correlations(row['low'], row['high'])}"]
    if np.isfinite(row["ceiling"]) and row["unsure"]:
        lines += [f"ceiling {apa.correlation(row['ceiling'])}*", "r is not divided"]
    elif np.isfinite(row["ceiling"]):
        lines.append(f"ceiling {apa.correlation(row['ceiling'])}")
        lines.append(f"corrected {apa.correlation(row['corrected'])}")
    else:
        lines += ["no ceiling: items", "are not reliable"]
    return "\n".join(lines)


def _note(
    people: str, measures: tuple[str, str], hidden: int, kinds: dict[str, str], rows: pd.DataFrame
) -> str:
    told = [
        "A point is an item. Above each panel: Pearson's correlation within the condition with its 95% bootstrap interval over "
        "items, the ceiling that the reliabilities of both sides set (root of their product), and the correlation divided by it."
    ]
    if (rows["ceiling_of"] == "people").any():
        told.append(
            f"Where the model gave one answer an item, the ceiling holds the reliability of {spoken(people)} alone."
        )
    if (rows["ceiling"].notna() & rows["unsure"].astype(bool)).any():
        told.append(
            "* = the interval of a reliability includes 0 or is missing, and the correlation is not divided by the ceiling."
        )
    if "correct" in measures:
        told.append("Points are moved by up to 3% where only few values occur.")
    if hidden:
        told.append(
            f"{apa.count(hidden)} points are not drawn (at most {MOST_POINTS} a panel, the same items in each)."
        )
    if "simulated" in kinds.values():
        told.append("Simulated readers are not data.")
    if "baseline" in kinds.values():
        told.append("Baselines answer by rule and are not data.")
    return " ".join(told)


def _in_words(rows: pd.DataFrame, readers: Sequence[str]) -> str:
    told = [
        f"{level}: {apa.count(row['items'])} items, r {apa.correlation(row['correlation'])}, ceiling {apa.correlation(row['ceiling'])}"
        for level, row in rows.iterrows()
    ]
    return f"Item means of {spoken(readers[0])} against {readers[1]} by condition. " + "; ".join(told) + "."
