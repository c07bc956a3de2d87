"""Measures of answers: words recovered, and sensitivity against bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from analysis.figures import marks
from analysis.figures.drawing import TALLEST, WIDTH, Drawing, MarkStyle, looks, shortened, shown_of, styled
from analysis.figures.labels import cut_to_lines, height_of, laid_out, places_of
from analysis.figures.marks import DASHED, INK, SOFT, IntervalMarks
from analysis.figures.panels import LOWEST, Room, end_percentages, is_person, percentages

TYPO = 0.028
MOST_LABELS, LONGEST_LABEL = 4, 28  # more or longer names than this are in a legend and not next to the lines
RECOVERED_LEGEND_COLUMNS, MOST_LETTERS = 2, 40


def recovered_figure(
    name: str, sums: pd.DataFrame, factor: str, levels: Sequence[str], kinds: dict[str, str]
) -> Drawing:
    """Draw shares of recovered words and recovery rates of every reader group by level."""
    look = looks(kinds)
    crowded = len(look) > MOST_LABELS or max(len(mark.label) for mark in look.values()) > LONGEST_LABEL
    legend = 0.18 * ceil(len(look) / RECOVERED_LEGEND_COLUMNS) + 0.1 if crowded else 0.0
    width = (0.86 if crowded else 0.64) * WIDTH
    layout = laid_out(levels, places_of(len(levels), 0.09 * WIDTH, width))
    foot = 0.2 + layout.depth
    shared = "y" if not layout.is_slanted and foot < 0.5 else "xy"
    room = Room(2.4, 0.09 * WIDTH, foot + legend, 1, above=0.35, gap=0.1, top=0, widest=width, shared=shared)
    scaled = sums.assign(
        **{f"words{end}": 100.0 * sums[f"words{end}"] for end in ("", "_low", "_high", "_with_one_typo")}
    )
    with styled():
        figure, (words, rates) = room.panels(2)
        for axes, measure in ((words, "words"), (rates, "rr")):
            marks.name_columns(axes, levels)
            marks.numbered(axes.yaxis, marks.percent)
            ends = []
            for turn, (group, mark) in enumerate(look.items()):
                reader_sums = scaled[(scaled["reader_group"] == group) & scaled[measure].notna()].set_index(
                    factor
                )
                reader_sums = reader_sums.loc[[level for level in levels if level in reader_sums.index]]
                if reader_sums.empty:
                    continue
                rule, shift = mark.kind == "baseline", marks.dodged(turn, len(look), 0.06, 0.5)
                x = np.array([levels.index(level) for level in reader_sums.index]) + shift
                y = IntervalMarks.of(reader_sums, measure)
                join = (1.0 if rule else 1.5) if marks.are_numbers_in_order(levels) else 0.0
                percentages(axes, mark, list(x), y, join=join, bar=0.0 if rule else 1.5)
                if measure == "words":
                    typo = replace(mark, marker=1)
                    marks.points(axes, typo, x + TYPO, reader_sums["words_with_one_typo"], size=5)
                    copied = sums[(sums["reader_group"] == group) & sums["kept"].notna()]
                    places = [levels.index(level) + shift for level in copied[factor]]
                    marks.points(
                        axes, MarkStyle(INK, "_"), places, 100.0 * copied["kept"], size=9, edge=0.9, zorder=2
                    )
                label = mark.label.replace(" (", "\n(") if len(mark.label) > 16 else mark.label
                label = str(turn + 1) if crowded else label
                ends.append((float(x[-1]), max(float(y.value[-1]), LOWEST), label, mark.colour))
            if measure == "words":
                axes.set(ylim=(-3, 104), ylabel="Changed words recovered", title="A  Words")
            else:
                axes.axhline(0, color=INK, lw=0.8, zorder=1)
                axes.set(ylabel="Recovery rate RR", title="B  Edit distance taken away")
                end_percentages(axes, 100.0)
            marks.label_ends(axes, ends, len(levels) - 0.5)
        if crowded:
            handles = [
                marks.handle(mark, f"{number}  {shortened(mark.label, MOST_LETTERS)}")
                for number, (group, mark) in enumerate(look.items(), 1)
                if scaled.loc[scaled["reader_group"] == group, ["words", "rr"]].notna().to_numpy().any()
            ]
            marks.key_below(figure, handles, RECOVERED_LEGEND_COLUMNS, handlelength=3.2, labelspacing=0.25)
    return Drawing.described(name, figure, look, "recovered", sums=sums, factor=factor, lowest=LOWEST)


LOOKS_APART = 6  # with more readers than this, colours and markers repeat, and numbers replace them
SENSITIVITY_LEGEND_COLUMNS = 3
LONGEST_OF_THREE = 24  # longer names are in two columns
BESIDE = 1.2
"""How much farther the horizontal axis reaches, so that numbers at its ends do not touch those of the next panel."""
LEAST_RANGE = 1.0
"""The axes reach at least this far from zero, so that next to no sensitivity looks like none."""
LONGEST = 42  # the most letters that the key shows


def sensitivity_figure(
    name: str,
    cells: pd.DataFrame,
    readers: pd.DataFrame,
    factor: str | None,
    order: Sequence[str],
    signal: str,
    other: str,
) -> Drawing:
    """Draw d' against the criterion of every reader group in every level."""
    levels = [level for level in order or [""] if (cells["level"] == level).any()]
    kinds = dict(zip(map(str, cells["reader_group"]), map(str, cells["kind"]), strict=True))
    look = shown_of(kinds, set(cells.dropna(subset=["criterion", "d_prime"])["reader_group"].map(str)))
    if len(look) > LOOKS_APART:
        numbers = enumerate(look.items(), 1)
        look = {group: replace(mark, marker=f"${n}$", is_hollow=False) for n, (group, mark) in numbers}
    columns = min(len(levels), 4 if len(levels) <= 8 else 5)
    lines = ceil(len(levels) / columns)
    longest = max((len(mark.label) for mark in look.values()), default=0)
    legend_columns = SENSITIVITY_LEGEND_COLUMNS if longest <= LONGEST_OF_THREE else 2
    legend = 0.18 * ceil(len(look) / legend_columns)
    size, between = 8.5 if columns < 4 else 7.5, 0.15
    room = 0.895 * WIDTH / columns - 0.1
    titles = ["\n".join(cut_to_lines(str(level), room, size, bold=True)) for level in levels]
    added = height_of(max(title.count("\n") for title in titles), size)
    above, below = 0.3 + added, 0.55 + legend
    tall = min(2.6 if lines == 1 else 1.6, (TALLEST - 0.2 - below) / lines - above)
    frame = Room(
        tall - 0.3 * (lines == 1), left=0.085 * WIDTH, right=0.01 * WIDTH, below=below, columns=columns, between=between,
        above=above, gap=0.0, top=0.2,
    )  # fmt: skip
    with styled():
        figure, panels = frame.panels(len(levels))
        for axes, level, title in zip(panels, levels, titles, strict=True):
            axes.sharex(panels[0]) if axes is not panels[0] else None
            axes.sharey(panels[0]) if axes is not panels[0] else None
            level_readers = readers[(readers[factor] == level)] if factor else readers
            _panel(axes, cells[cells["level"] == level], level_readers, look)
            axes.set_title(title, fontsize=size)
        (left, right), (low, high) = panels[0].get_xlim(), panels[0].get_ylim()
        panels[0].set_xlim(min(left, -BESIDE * LEAST_RANGE), max(right, BESIDE * LEAST_RANGE))
        panels[0].set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
        marks.numbered(panels[0].xaxis, nbins=4 if columns < 4 else 3, steps=[1, 2, 5, 10])
        figure.supylabel("Sensitivity d′", fontsize=9, x=0.0)
        text = f"Criterion c (left: answers {signal} more; right: answers {other} more)"
        figure.text(0.54, (below - 0.38) / figure.get_figheight(), text, ha="center", va="center", fontsize=9)
        handles = [
            marks.handle(mark, shortened(mark.label, LONGEST), ls="", **_sized(mark))
            for mark in look.values()
        ]
        marks.key_below(
            figure, handles, max(1, min(legend_columns, len(handles))), bbox_to_anchor=(0.53, 0.0),
            handletextpad=0.3, columnspacing=1.2, labelspacing=0.25,
        )  # fmt: skip
    people = cells[cells["kind"].map(is_person)]
    values = {
        **{"factor": factor, "signal": signal, "cells": cells},
        **{"has_dots": not people["pooled"].all(), "has_pooled": people["pooled"].any()},
    }
    return Drawing.described(name, figure, look, "sensitivity", **values)


def _sized(mark: MarkStyle) -> dict[str, float]:
    digit = str(mark.marker).startswith("$")
    return {"ms": 6.5 if digit else 5.5, "mew": 0.6 if digit else 1.3}


def _panel(axes: Axes, cells: pd.DataFrame, readers: pd.DataFrame, look: dict[str, MarkStyle]) -> None:
    axes.axhline(0, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
    axes.axvline(0, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
    axes.grid(True)
    able = readers[(readers["signals"] > 0) & (readers["others"] > 0)]
    for cell in cells.to_dict("records"):
        mark = look.get(str(cell["reader_group"]))
        if mark is None:  # a reader without a point in any panel
            continue
        size = _sized(mark)
        if is_person(mark.kind) and not cell["pooled"]:
            members = able[able["reader_group"] == cell["reader_group"]]
            axes.scatter(
                members["criterion"],
                members["d_prime"],
                s=6,
                color=mark.colour,
                alpha=0.3,
                linewidths=0,
                zorder=2,
            )
        if not np.isfinite([cell["criterion"], cell["d_prime"]]).all():
            continue
        bar = 0.0 if mark.kind == "baseline" else 1.2
        x, y = IntervalMarks.of(cell, "criterion"), IntervalMarks.of(cell, "d_prime")
        marks.points(axes, mark, x, y, bar=bar, size=size["ms"], edge=size["mew"])
        if str(mark.marker).startswith("$"):
            axes.lines[-1].set_path_effects([withStroke(linewidth=2.4, foreground="white")])
