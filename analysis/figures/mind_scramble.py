"""Figures 3 and 4 of Mind Scramble from a study of one's own: what changed text costs, and what each operation in a word costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.drawing import WIDTH, Drawing, Look, label_ends, mark_not_data, shown_of, styled
from analysis.published.mind_scramble import Slope


def cost_figure(name: str, ratios: pd.DataFrame, kinds: Mapping[str, str], time: str) -> Drawing:
    """Draw Figure 3: the ratio of prompt tokens against that of time (or of completion tokens), a point per reader."""
    look, kinds = shown_of(kinds, set(ratios["reader_group"]))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.add_axes((0.1, 0.15, 0.56, 0.76))
        ends = []
        for group, own in ratios.groupby("reader_group", sort=False):
            it = look[str(group)]
            axes.plot(
                own["prompt_tokens"], own["cost"], it.marker, ms=3, color=it.colour, alpha=0.35, mew=_edge(it)
            )
            x, y = float(own["prompt_tokens"].mean()), float(own["cost"].mean())
            axes.plot(
                [x],
                [y],
                it.marker,
                ms=8,
                color=it.colour,
                mec=it.colour if _edge(it) else "white",
                mew=1.2 if _edge(it) else 0.8,
                zorder=3,
            )
            ends.append((x, y, it.label, it.colour))
        axes.axhline(1, color="#9A9A9A", lw=0.8, ls=":")
        axes.axvline(1, color="#9A9A9A", lw=0.8, ls=":")
        axes.set_xlabel("Prompt tokens, changed / intact")
        axes.set_ylabel(f"{time}, changed / intact")
        low, high = axes.get_xlim()
        label_ends(axes, ends, high + 0.03 * (high - low))
        axes.set_xlim(low, high)
        mark_not_data(figure, kinds)
    told = "; ".join(
        f"{group}: prompt tokens × {own['prompt_tokens'].mean():.2f}, {time.lower()} × {own['cost'].mean():.2f}"
        for group, own in ratios.groupby("reader_group", sort=False)
    )
    title = f"Prompt tokens against {time[0].lower() + time[1:]}"
    note = (
        "Ratios of changed to intact text as Mind Scramble (2024, Figure 3) takes them: the mean over items. Large marks: mean over "
        "operations; small marks: each operation. Dotted lines: no change."
    )
    return Drawing.of(name, title, note, told, figure)


def series_figure(name: str, found: Sequence[Slope], kinds: Mapping[str, str], measure: str) -> Drawing:
    """Draw Figure 4: the measure against the number of operations inside each word, a panel per kind of operation."""
    operations = list(dict.fromkeys(one.operation for one in found))
    look, kinds = shown_of(kinds, {one.group for one in found})
    with styled():
        figure = Figure(figsize=(WIDTH, 3.0))
        width = (0.76 - 0.03 * (len(operations) - 1)) / len(operations)
        values = [mean for one in found for mean in one.means]
        edge = 0.08 * max(5.0, max(values) - min(values))
        for place, operation in enumerate(operations):
            axes = figure.add_axes((0.08 + place * (width + 0.03), 0.17, width, 0.7))
            ends: list[tuple[float, float, str, str]] = []
            for one in found:
                if one.operation == operation:
                    it = look[one.group]
                    axes.plot(
                        one.counts, one.means, color=it.colour, marker=it.marker, ls=it.line, ms=4, lw=1.3
                    )
                    ends.append((one.counts[-1], one.means[-1], it.label, it.colour))
            axes.set_ylim(min(values) - edge, max(values) + edge)
            axes.set_title(operation, fontsize=9, loc="left")
            axes.set_xticks(range(5))
            axes.set_xlim(-0.3, 4.3)
            if place:
                axes.set_yticklabels([])
            else:
                axes.set_ylabel(measure)
            if place == len(operations) // 2:
                axes.set_xlabel("Operations inside each word (0: intact)")
            if place == len(operations) - 1:
                label_ends(axes, ends, 4.6)
        mark_not_data(figure, kinds)
    told = "; ".join(
        f"{one.group}, {one.operation.lower()}: from {one.means[0]:.1f} to {one.means[-1]:.1f}, slope {one.slope:.2f}"
        for one in found
    )
    title = "Operations inside each word"
    note = (
        "Laid out as Figure 4 of Mind Scramble (2024). Points: means over items; slopes stand in the table."
    )
    return Drawing.of(name, title, note, told, figure)


def _edge(look: Look) -> float:
    """Return the width of a small mark's line: crosses are nothing but lines."""
    return 0.6 if look.marker in ("x", "+") else 0.0
