"""Competing explanations: Akaike weight and held-out gain of every predictor, a column a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, keep_width, looks, mark_not_data, styled
from analysis.figures.letter_curves import shortened

MOST_READERS = 3
LINE, LEFT = 0.175, 1.72
"""Inches: height of a predictor's line, room for its name."""


@dataclass(frozen=True)
class Explained:
    """How well one predictor explains one reader: Akaike weight, and held-out gain in nats per 1,000 observations (nan: not known)."""

    group: str
    kind: str
    predictor: str
    weight: float
    gain: float
    low: float
    high: float


def letter_weights(
    name: str, found: Sequence[Explained], predictors: Sequence[str], title: str, note: str
) -> Drawing:
    """Draw weights as bars above, gains as points with intervals below.

    Parameters
    ----------
    name : str
    found : sequence of Explained
        Of :data:`MOST_READERS` readers at most.
    predictors : sequence of str
        In words, from top to bottom.
    title, note : str
        As :class:`~analysis.figures.drawing.Drawing`.
    """
    kinds = {one.group: one.kind for one in found}
    look = looks(kinds)
    high = LINE * len(predictors)
    top, between, bottom = 0.55, 0.62, 0.45
    height = top + 2 * high + between + bottom
    room = WIDTH - LEFT - 0.1
    wide = min((room - 0.22 * (len(kinds) - 1)) / len(kinds), 2.6)
    spans = [v for one in found for v in (one.gain, one.low, one.high) if np.isfinite(v)] + [0.0]
    margin = 0.06 * (max(spans) - min(spans)) or 1.0
    ends = (min(spans) - margin, max(spans) + margin)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for turn, group in enumerate(kinds):
            own = {one.predictor: one for one in found if one.group == group}
            x = LEFT + turn * (wide + 0.22)
            for part, y in enumerate((bottom + high + between, bottom)):
                axes = figure.add_axes((x / WIDTH, y / height, wide / WIDTH, high / height))
                axes.set_ylim(len(predictors) - 0.4, -0.6)
                axes.set_yticks(range(len(predictors)), predictors if turn == 0 else [""] * len(predictors))
                axes.tick_params(axis="y", labelsize=8, length=0)
                axes.tick_params(axis="x", labelsize=8)
                axes.grid(True, axis="x")
                draw = _gains if part else _bars
                draw(axes, own, predictors, look[group].colour, ends)
                if not part:
                    axes.set_title(shortened(look[group].label, int(15 * wide)), fontsize=8.5)
                if turn == 0:
                    text = "B  Held-out gain (nats per 1,000)" if part else "A  Akaike weight"
                    figure.text(
                        0.01, (y + high + 0.12 + 0.2 * (1 - part)) / height, text, fontsize=9, weight="bold"
                    )
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _in_words(found)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _bars(
    axes: Axes, own: dict[str, Explained], predictors: Sequence[str], colour: str, _: tuple[float, float]
) -> None:
    axes.set_xlim(0, 1.02)
    axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    for place, name in enumerate(predictors):
        if name not in own:
            axes.text(0.02, place, "not known", fontsize=6.5, color="#666666", va="center")
        elif np.isfinite(own[name].weight):
            axes.barh(place, own[name].weight, height=0.66, color=colour, zorder=3)


def _gains(
    axes: Axes, own: dict[str, Explained], predictors: Sequence[str], colour: str, ends: tuple[float, float]
) -> None:
    axes.set_xlim(*ends)
    axes.axvline(0, color="#333333", lw=0.8, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: apa.number(value, 0 if float(value).is_integer() else 1))
    for place, name in enumerate(predictors):
        one = own.get(name)
        if one is None or not np.isfinite(one.gain):
            continue
        if np.isfinite(one.low):
            axes.plot([one.low, one.high], [place, place], color=colour, lw=1.2, zorder=3)
        sure = np.isfinite(one.low) and one.low > 0
        axes.plot(
            one.gain, place, ls="", marker="o", ms=4.2, mfc=colour if sure else "white", mec=colour, zorder=4
        )


def _in_words(found: Sequence[Explained]) -> str:
    told = []
    for group in dict.fromkeys(one.group for one in found):
        own = sorted((one for one in found if one.group == group), key=lambda one: -one.weight)
        values = ", ".join(f"{one.predictor} {apa.number(one.weight)}" for one in own)
        told.append(f"Akaike weights of {group}: {values}.")
    return " ".join(told)
