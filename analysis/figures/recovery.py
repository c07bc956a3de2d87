"""Put in and recovered: the effects that simulated readers were given beside what the models found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from analysis import apa
from analysis.figures.drawing import TALLEST, WIDTH, Drawing, as_svg, mark_not_data, style, styled
from analysis.figures.labels import LABEL_SIZE, LINES, cut_to_lines, height_of, size_in
from analysis.recovery_check import Recovered

_LABELS = 0.36
"""Share of the figure's width that the effects' names take at most."""
_APART = 1.25
"""How many times the effects of the longest panel all panels together may have to stand in the same rows."""


def _shared(of: Sequence[Sequence[str]]) -> list[str]:
    """Return the effects that stand once beside all panels, top to bottom; empty where panels have few in common.

    Effects of one panel that have the same name (of two factors with levels of one name) are told apart by rows of their own.
    """
    if any(len(set(own)) < len(own) for own in of):
        return list(of[0]) if all(own == of[0] for own in of) else []
    longest = max(of, key=len)
    every = list(dict.fromkeys([*longest, *(label for own in of for label in own)]))
    return every if len(every) <= _APART * len(longest) else []


def _fitted(row: float) -> tuple[float, int]:
    """Return the size of letters and the most lines of a name in rows of so many inches."""
    size = size_in(row)
    return size, max(int(row / height_of(1, size)), 1)


def recovery_figure(name: str, recovered: Sequence[Recovered]) -> Drawing:
    """Draw each effect's estimate with its interval and a mark where it was put in, one panel a measure.

    Parameters
    ----------
    name : str
        File name without ending.
    recovered : sequence of Recovered
    """
    measures = list(dict.fromkeys(one.measure for one in recovered))
    colour = style()["people"]["colour"]
    shared = _shared([[one.label for one in recovered if one.measure == measure] for measure in measures])
    with styled():
        most = len(shared) or max(
            len([one for one in recovered if one.measure == measure]) for measure in measures
        )
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 0.93), wspace=0.08)
        room = _LABELS * WIDTH / (1 if shared else len(measures))
        row = (TALLEST - 0.75) / (most + 1)
        size, lines = (LABEL_SIZE, LINES) if row >= 0.19 + height_of(LINES, LABEL_SIZE) else _fitted(row)
        names = {one.label: "\n".join(cut_to_lines(one.label, room, size, lines)) for one in recovered}
        deep = max(name.count("\n") + 1 for name in names.values())
        figure = Figure(
            figsize=(WIDTH, 0.75 + min(0.19 + height_of(deep, size), row) * (most + 1)), layout=layout
        )
        for turn, measure in enumerate(measures):
            axes = figure.add_subplot(1, len(measures), turn + 1)
            own = [one for one in recovered if one.measure == measure]
            labels = [one.label for one in own]
            listed = shared or labels
            rows = range(len(own)) if labels == listed else [listed.index(label) for label in labels]
            y = [len(listed) - 1 - row_of for row_of in rows]
            for place, one in zip(y, own, strict=True):
                if one.low is not None and one.high is not None:
                    axes.plot([one.low, one.high], [place, place], color=colour, lw=1.6, zorder=3)
                axes.plot(one.estimate, place, marker="o", ms=5.5, color=colour, zorder=4)
                axes.plot(one.truth, place, marker="D", ms=8, mfc="none", mec="#D55E00", mew=1.3, zorder=5)
            axes.axvline(0, color="#333333", lw=0.8)
            axes.grid(True, axis="x")
            axes.grid(False, axis="y")
            if turn == 0 or not shared:
                axes.set_yticks(
                    np.arange(len(listed))[::-1], [names[label] for label in listed], fontsize=size
                )
            else:
                axes.set_yticks([])
            axes.set_ylim(-0.6, len(listed) - 0.4)
            axes.set_title(own[0].title)
            axes.set_xlabel("log odds" if own[0].scale == "logit" else "log ms")
        mark_not_data(figure, {"simulated": "simulated"})
    title = "Effects put into simulated readers and effects recovered"
    alternative = "; ".join(
        f"{one.title} {one.label}: to be expected {apa.number(one.truth)}, recovered {apa.number(one.estimate)}"
        for one in recovered
    )
    note = "Diamonds are what the effects put in lead to in each model; dots with bars are estimates with 95% confidence intervals."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)
