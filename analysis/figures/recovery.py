"""Put in and recovered: the effects that simulated readers were given beside what the models found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, mark_not_data, style, styled
from analysis.figures.labels import cut_to_lines, height_of
from analysis.recovery_check import Recovered

_LABELS = 0.36
"""Share of the figure's width that the effects' names take at most."""


def _differ(recovered: Sequence[Recovered], measures: Sequence[str]) -> bool:
    """Whether panels have different effects, so that each needs its own labels."""
    return len({tuple(one.label for one in recovered if one.measure == measure) for measure in measures}) > 1


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
    with styled():
        most = max(len([one for one in recovered if one.measure == measure]) for measure in measures)
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 0.93), wspace=0.08)
        labelled = len(measures) if _differ(recovered, measures) else 1
        room = _LABELS * WIDTH / labelled
        deep = max(len(cut_to_lines(one.label, room, 9)) for one in recovered)
        figure = Figure(figsize=(WIDTH, 0.75 + (0.19 + height_of(deep, 9)) * (most + 1)), layout=layout)
        for turn, measure in enumerate(measures):
            axes = figure.add_subplot(1, len(measures), turn + 1)
            own = [one for one in recovered if one.measure == measure]
            y = np.arange(len(own))[::-1]
            for place, one in zip(y, own, strict=True):
                if one.low is not None and one.high is not None:
                    axes.plot([one.low, one.high], [place, place], color=colour, lw=1.6, zorder=3)
                axes.plot(one.estimate, place, marker="o", ms=5.5, color=colour, zorder=4)
                axes.plot(one.truth, place, marker="D", ms=8, mfc="none", mec="#D55E00", mew=1.3, zorder=5)
            axes.axvline(0, color="#333333", lw=0.8)
            axes.grid(True, axis="x")
            axes.grid(False, axis="y")
            if turn == 0 or _differ(recovered, measures):
                axes.set_yticks(y, ["\n".join(cut_to_lines(one.label, room, 9)) for one in own])
            else:
                axes.set_yticks([])
            axes.set_ylim(-0.6, len(own) - 0.4)
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
