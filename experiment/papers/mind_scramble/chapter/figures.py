"""Figures 3 and 4 of Mind Scramble for a study's own readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.drawing import WIDTH, Drawing, shown_of, styled
from analysis.figures.marks import (
    GREY,
    label_ends,
    points,
)
from analysis.figures.panels import Room
from experiment.papers.mind_scramble.chapter.measures import Slope

WORDS = Path(__file__).with_name("figures.yaml")


def cost_figure(name: str, ratios: pd.DataFrame, kinds: Mapping[str, str], time: str) -> Drawing:
    """Draw Mind Scramble's Figure 3: the ratio of prompt tokens against that of time (or of completion tokens), a point per reader."""
    look = shown_of(kinds, set(ratios["reader_group"]))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.add_axes((0.1, 0.15, 0.56, 0.76))
        means = ratios.groupby("reader_group", sort=False)[["prompt_tokens", "cost"]].mean()
        ends = []
        for group, (x, y) in zip(means.index, means.to_numpy(dtype=float), strict=True):
            it, own = look[str(group)], ratios[ratios["reader_group"] == group]
            thin = it.marker in ("x", "+")  # nothing but lines
            points(
                axes,
                it,
                own["prompt_tokens"],
                own["cost"],
                size=3,
                alpha=0.35,
                face=it.colour,
                edge=0.6 * thin,
            )
            axes.plot(
                [x], [y], it.marker, ms=8, color=it.colour, mec=it.colour if thin else "white", mew=1.2 if thin else 0.8, zorder=6
            )  # fmt: skip
            ends.append((x, y, it.label, it.colour))
        axes.axhline(1, color=GREY, lw=0.8, ls=":")
        axes.axvline(1, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel="Prompt tokens, changed / intact", ylabel=f"{time}, changed / intact")
        low, high = axes.get_xlim()
        label_ends(axes, ends, high + 0.03 * (high - low))
        axes.set_xlim(low, high)
    return Drawing.described(name, figure, look, WORDS / "mind_scramble_costs", means=means, time=time)


def series_figure(name: str, found: Sequence[Slope], kinds: Mapping[str, str], measure: str) -> Drawing:
    """Draw Mind Scramble's Figure 4: the measure against the number of operations inside each word, a panel per kind of operation."""
    operations = list(dict.fromkeys(slope.operation for slope in found))
    look = shown_of(kinds, {slope.group for slope in found})
    values = [mean for slope in found for mean in slope.means]
    edge = 0.08 * max(5.0, max(values) - min(values))
    room = Room(
        2.1, left=0.08 * WIDTH, right=0.16 * WIDTH, between=0.03 * WIDTH, columns=len(operations), above=0.39, top=0, below=0.51
    )  # fmt: skip
    with styled():
        figure, panels = room.panels(len(operations))
        for axes, operation in zip(panels, operations, strict=True):
            ends: list[tuple[float, float, str, str]] = []
            for slope in found:
                if slope.operation == operation:
                    it = look[slope.group]
                    points(axes, it, slope.counts, slope.means, join=1.3, size=4, edge=1.0, face=it.colour)
                    ends.append((slope.counts[-1], slope.means[-1], it.label, it.colour))
            axes.set(xlim=(-0.3, 4.3), ylim=(min(values) - edge, max(values) + edge), xticks=range(5))
            axes.set_title(operation, fontsize=9, loc="left")
        panels[0].set_ylabel(measure)
        panels[len(operations) // 2].set_xlabel("Operations inside each word (0: intact)")
        label_ends(panels[-1], ends, 4.6)
    return Drawing.described(name, figure, look, WORDS / "mind_scramble_series", found=found)
