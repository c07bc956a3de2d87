"""Caterpillar: the conditional modes of a model's random effects in order, with intervals, the most deviating ones named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.drawing import TALLEST, WIDTH, Drawing, as_svg, mark_not_data, styled
from analysis.figures.labels import TITLE_SIZE, cut_to_lines, height_of

NAMED = 3
"""How many of the highest and of the lowest are named."""
MOST_DRAWN = 400
"""Random effects of a panel above which only some are drawn, evenly by rank, the ends always."""
SURE, UNSURE = "#004B7A", "#8C8C8C"
EACH, LEAST, MOST, WORDS = 0.075, 1.1, 2.6, 0.58
"""Heights in inches: of one effect, of the points of a panel at least and at most, of the names above and below them."""


@dataclass(frozen=True)
class Caterpillar:
    """One panel.

    Attributes
    ----------
    title : str
        Whose effects these are, in words.
    effects : pandas.DataFrame
        Rows of :func:`analysis.robustness.deviations`, lowest first.
    """

    title: str
    effects: pd.DataFrame


def caterpillar_figure(
    name: str, title: str, panels: Sequence[Caterpillar], unit: str, kinds: dict[str, str]
) -> Drawing:
    """Draw random effects with their intervals, one panel a term, two panels a line.

    Parameters
    ----------
    name : str
        File name without ending.
    title : str
    panels : sequence of Caterpillar
        One to four.
    unit : str
        Of the modes, in words.
    kinds : dict
        Reader kind of each group in the model.
    """
    lines = (len(panels) + 1) // 2
    across = 2 if len(panels) > 1 else 1
    width = 0.84 / across - (0.04 if across > 1 else 0.0)
    titles = ["\n".join(cut_to_lines(one.title, width * WIDTH, TITLE_SIZE, bold=True)) for one in panels]
    above = 2 * WORDS + 0.75 + height_of(max(one.count("\n") for one in titles), TITLE_SIZE)
    most = min(MOST, (TALLEST - 0.1) / lines - above)
    tall = min(most, max(LEAST, EACH * max(len(panel.effects) for panel in panels)))
    with styled():
        each = tall + above
        figure = Figure(figsize=(WIDTH, each * lines + 0.1))
        whole = figure.get_figheight()
        for turn, panel in enumerate(panels):
            left = 0.07 + (turn % 2) * (width + 0.1)
            bottom = whole - each * (turn // 2 + 1) + 0.35
            axes = figure.add_axes((left, bottom / whole, width, (tall + 2 * WORDS) / whole))
            _panel(axes, panel, unit, int(width * WIDTH / 0.068), WORDS / tall)
            axes.set_title(titles[turn], fontsize=TITLE_SIZE)
        mark_not_data(figure, kinds)
    alternative = " ".join(_in_words(panel) for panel in panels)
    return Drawing(name, title, _note(panels), alternative, as_svg(figure, name, title, alternative), figure)


def drawn(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects that a panel draws: all, or evenly by rank with both ends."""
    if len(effects) <= MOST_DRAWN:
        return effects
    return effects.iloc[np.unique(np.linspace(0, len(effects) - 1, MOST_DRAWN).round().astype(int))]


def is_sure(effects: pd.DataFrame) -> pd.Series[bool]:
    """Mark the effects whose interval leaves 0 out."""
    return (effects["low"] > 0) | (effects["high"] < 0)


def _panel(axes: Axes, panel: Caterpillar, unit: str, fits: int, edge: float) -> None:
    shown = drawn(panel.effects).reset_index(drop=True)
    y, sure = np.arange(len(shown), dtype=float), is_sure(shown).to_numpy()
    axes.grid(False)
    axes.grid(True, axis="x")
    axes.axvline(0, color="#333333", lw=0.8, zorder=1)
    many = len(shown)
    size = 4.2 if many <= 40 else 2.6 if many <= 120 else 1.4
    for one, colour, fill, weight in ((~sure, UNSURE, "white", 0.8), (sure, SURE, SURE, 1.2)):
        if one.any():
            axes.hlines(y[one], shown["low"][one], shown["high"][one], color=colour, lw=weight, zorder=2)
            axes.plot(
                shown["mode"][one], y[one], ls="", marker="o", ms=size, mfc=fill, mec=colour,
                mew=0.8, zorder=3,
            )  # fmt: skip
    room = (many + 1) * edge
    axes.set_ylim(-1 - room, many + room)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(unit)
    highest, lowest = _named(panel.effects)
    words: dict[str, Any] = {"fontsize": 7.5, "color": "#333333", "linespacing": 1.15, "zorder": 6}
    words["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    axes.text(
        0.0, 0.995, _listed("Highest:", highest, fits), transform=axes.transAxes, va="top", ha="left", **words
    )
    axes.text(
        1.0,
        0.005,
        _listed("Lowest:", lowest, fits),
        transform=axes.transAxes,
        va="bottom",
        ha="right",
        **words,
    )


def _named(effects: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the names at both ends, the most deviating first; of few effects none is named twice."""
    names = [str(one) for one in effects["level"]]
    many = min(NAMED, len(names) // 2)
    return names[::-1][:many], names[:many]


def _listed(head: str, names: Sequence[str], fits: int) -> str:
    if not names:
        return ""
    kept = [one if len(one) <= fits - 2 else one[: fits - 3] + "…" for one in names]
    lines = [head]
    for place, one in enumerate(kept):
        text = one + ("," if place < len(kept) - 1 else "")
        if len(lines[-1]) + 1 + len(text) <= fits:
            lines[-1] += " " + text
        else:
            lines.append(text)
    return "\n".join(lines)


def _in_words(panel: Caterpillar) -> str:
    effects = panel.effects
    highest, lowest = _named(effects)
    sure = int(is_sure(effects).sum())
    ends = f"modes from {effects['mode'].min():.2f} to {effects['mode'].max():.2f}"
    told = f"{panel.title}: {len(effects)} effects, {ends}; {sure} of {len(effects)} intervals leave 0 out."
    if highest:
        told += f" Highest: {', '.join(highest)}; lowest: {', '.join(lowest)}."
    return told


def _note(panels: Sequence[Caterpillar]) -> str:
    told = "Conditional modes (drawn towards 0) with 95% intervals given the estimated variances, in order. Filled dark points: "
    told += "the interval leaves 0 out; hollow grey ones: it does not. Intervals are not corrected for their number."
    hidden = [one for one in panels if len(one.effects) > MOST_DRAWN]
    if hidden:
        told += f" Of {' and '.join(f'{len(one.effects):,}' for one in hidden)} effects {MOST_DRAWN} are drawn, evenly by rank."
    return told
