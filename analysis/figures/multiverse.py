"""Specification curve: a planned difference under every usual choice in order, above the choices that lead to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, mark_not_data, styled

CHOICES = ("sessions", "answers", "rule")
UNITS = {"log": "percent (log times)", "ms": "milliseconds"}
SHORT = {"log": "percent", "ms": "ms"}
MOST_CONTRASTS = 3
DARK, PALE, OWN = "#222222", "#9A9A9A", "#D55E00"
CURVE, STEP, GAP = 1.05, 0.155, 0.12
"""Heights in inches: a curve, a choice, the space between kinds of choices."""
LEFT, BETWEEN = 1.95, 0.62


def multiverse_figure(name: str, title: str, universes: pd.DataFrame, kinds: dict[str, str]) -> Drawing:
    """Draw the universes of one reader group, a column of panels for each scale, a row for each contrast.

    Parameters
    ----------
    name : str
        File name without ending.
    title : str
    universes : pandas.DataFrame
        Rows of :func:`analysis.multiverse.time_multiverse` of one reader group.
    kinds : dict
        Reader kind of each group shown.
    """
    contrasts = list(dict.fromkeys(universes["contrast"]))
    shown = contrasts[:MOST_CONTRASTS]
    scales = [one for one in UNITS if (universes["scale"] == one).any()]
    offered = {name: list(dict.fromkeys(universes[name])) for name in CHOICES}
    offered = {name: values for name, values in offered.items() if len(values) > 1}
    matrix = STEP * sum(map(len, offered.values())) + GAP * max(len(offered) - 1, 0)
    curves = (CURVE + 0.3) * len(shown)
    with styled():
        figure = Figure(figsize=(WIDTH, 0.35 + curves + 0.1 + matrix + 0.12))
        whole = figure.get_figheight()
        wide = (WIDTH - LEFT - 0.1 - BETWEEN * (len(scales) - 1)) / len(scales)
        for turn, scale in enumerate(scales):
            left = LEFT + turn * (wide + BETWEEN)
            own = universes[universes["scale"] == scale]
            order = _order(own, shown[0])
            for row, contrast in enumerate(shown):
                top = whole - 0.35 - (CURVE + 0.3) * row
                axes = figure.add_axes((left / WIDTH, (top - CURVE) / whole, wide / WIDTH, CURVE / whole))
                _curve(axes, own[own["contrast"] == contrast], order)
                axes.set_ylabel(SHORT[scale], fontsize=7.5, labelpad=2)
                if turn == 0:
                    axes.set_title(contrast, fontsize=8.5)
            below = figure.add_axes((left / WIDTH, 0.12 / whole, wide / WIDTH, max(matrix, 0.05) / whole))
            _matrix(below, own[own["contrast"] == shown[0]], order, offered, matrix, labels=turn == 0)
        mark_not_data(figure, kinds)
    alternative = _in_words(universes, shown)
    note = ("Left: percent, from log times; right: milliseconds. " if len(scales) > 1 else "") + (
        "Each column is one set of choices, marked by squares below, in the order of its difference in the first contrast. Lines "
        "are 95% Student intervals over participants: dark where 0 lies outside, pale where it lies inside. The diamond and the "
        "filled squares in its column are the study's own choice. Universes are no tests of their own."
    )
    if len(contrasts) > len(shown):
        note += f" {len(contrasts) - len(shown)} further contrasts are in the table."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _key(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    return [tuple(map(str, one)) for one in rows[list(CHOICES)].itertuples(index=False, name=None)]


def _order(own: pd.DataFrame, contrast: str) -> dict[tuple[str, ...], int]:
    first = own[own["contrast"] == contrast].sort_values("estimate", kind="stable")
    order = {key: place for place, key in enumerate(_key(first))}
    for key in _key(own):
        order.setdefault(key, len(order))
    return order


def _curve(axes: Axes, rows: pd.DataFrame, order: dict[tuple[str, ...], int]) -> None:
    x = np.array([order[key] for key in _key(rows)], dtype=float)
    value, low, high = (rows[name].to_numpy(dtype=float) for name in ("estimate", "low", "high"))
    sure = (low > 0) | (high < 0)
    own = rows["is_primary"].to_numpy(dtype=bool)
    size = 3.0 if len(order) <= 40 else 1.8
    for some, colour, fill in ((~sure, PALE, "white"), (sure, DARK, DARK)):
        known = some & np.isfinite(low)
        axes.vlines(x[known], low[known], high[known], color=colour, lw=0.9, zorder=2)
        axes.plot(x[some], value[some], ls="", marker="o", ms=size, mfc=fill, mec=colour, mew=0.7, zorder=3)
    axes.plot(x[own], value[own], ls="", marker="D", ms=5.5, mfc=OWN, mec="black", mew=0.7, zorder=5)
    axes.axhline(0, color="#333333", lw=0.8, zorder=1)
    axes.set_xlim(-0.8, len(order) - 0.2)
    axes.set_xticks([])
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.tick_params(labelsize=7.5)


def _matrix(
    axes: Axes,
    rows: pd.DataFrame,
    order: dict[tuple[str, ...], int],
    offered: dict[str, list[str]],
    tall: float,
    *,
    labels: bool,
) -> None:
    axes.set_xlim(-0.8, len(order) - 0.2)
    axes.set_ylim(max(tall, 0.05), 0)
    axes.grid(False)
    keys = _key(rows)
    own = dict(zip(keys, rows["is_primary"].astype(bool), strict=True))
    top, heights, words = 0.0, [], []
    size = 3.4 if len(order) <= 40 else 1.8
    for name, values in offered.items():
        for value in values:
            middle = top + STEP / 2
            heights.append(middle)
            words.append(value)
            axes.axhline(middle, color="#E3E3E3", lw=0.6, zorder=1)
            at = [key for key in keys if key[CHOICES.index(name)] == value]
            for primary in (False, True):
                x = [order[key] for key in at if own[key] == primary]
                axes.plot(
                    x, [middle] * len(x), ls="", marker="s", ms=size + primary, mfc=OWN if primary else DARK,
                    mec="black" if primary else DARK, mew=0.7 if primary else 0.0, zorder=3,
                )  # fmt: skip
            top += STEP
        top += GAP
    axes.set_xticks([])
    axes.set_yticks(heights if labels else [], words if labels else [])
    axes.tick_params(length=0, labelsize=7.5)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def _in_words(universes: pd.DataFrame, shown: Sequence[str]) -> str:
    told = []
    for (scale, contrast), own in universes[universes["contrast"].isin(shown)].groupby(
        ["scale", "contrast"], sort=False
    ):
        sure = int(((own["low"] > 0) | (own["high"] < 0)).sum())
        ends = f"{apa.number(own['estimate'].min(), 1)} to {apa.number(own['estimate'].max(), 1)}"
        told.append(
            f"{contrast}, {UNITS[str(scale)]}: {len(own)} universes with differences from {ends}; {sure} of {len(own)} intervals "
            "leave 0 out."
        )
    return " ".join(told)
