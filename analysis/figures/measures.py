"""Measures of answers: words recovered, and sensitivity against bias."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import (
    TALLEST,
    WIDTH,
    Drawing,
    Look,
    intervals,
    key_below,
    label_ends,
    looks,
    mark_not_data,
    marks,
    not_data_in_words,
    reader_handle,
    shortened,
    styled,
)
from analysis.figures.labels import cut_to_lines, fit_labels, height_of, laid_out, places_of
from analysis.readers import PARTICIPANT_KINDS

DODGE, TYPO = 0.06, 0.028
MOST_LABELS, LONGEST_LABEL = 4, 28
"""More or longer names than this stand in a legend and not beside the lines."""
RECOVERED_LEGEND_COLUMNS, MOST_LETTERS = 2, 40
LOWEST_RATE = -150.0
"""The panel of recovery rates reaches no lower; a reader that talks instead of restoring has rates far below."""


def recovered_figure(
    name: str, sums: pd.DataFrame, factor: str, levels: Sequence[str], kinds: dict[str, str]
) -> Drawing:
    """Draw shares of recovered words and recovery rates of every reader group by level."""
    look = looks(kinds)
    crowded = len(look) > MOST_LABELS or max(len(it.label) for it in look.values()) > LONGEST_LABEL
    legend = 0.18 * ceil(len(look) / RECOVERED_LEGEND_COLUMNS) + 0.1 if crowded else 0.0
    width = 0.86 if crowded else 0.64
    laid = laid_out(levels, places_of(len(levels), 0.09 * WIDTH, width * WIDTH))
    foot = 0.2 + laid.depth
    height = 5.6 + foot + legend
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        words = figure.add_axes((0.09, (foot + legend + 2.85) / height, width, 2.4 / height))
        rates = figure.add_axes((0.09, (foot + legend) / height, width, 2.4 / height))
        for axes in (words, rates):
            axes.set_xlim(-0.45, len(levels) - 0.55)
            axes.set_xticks(
                range(len(levels)),
                list(levels) if axes is rates or (not laid.is_slanted and foot < 0.5) else [""] * len(levels),
            )
            fit_labels(axes)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{apa.number(value, 0)}%"))
        words.set_ylim(-3, 104)
        words.set_ylabel("Changed words recovered")
        words.set_title("A  Words")
        rates.axhline(0, color="#333333", lw=0.8, zorder=1)
        rates.set_ylabel("Recovery rate RR")
        rates.set_title("B  Edit distance taken away")
        ends = {
            words: _drawn(words, sums, factor, levels, look, kinds, "words", 100.0),
            rates: _drawn(rates, sums, factor, levels, look, kinds, "rr", 1.0),
        }
        low, high = rates.get_ylim()
        rates.set_ylim(max(min(low, -5.0), LOWEST_RATE), max(high, 104.0))
        numbers = {_beside(it): str(number) for number, it in enumerate(look.values(), 1)}
        for axes, own in ends.items():
            shown = [
                (x, max(y, LOWEST_RATE), numbers[label] if crowded else label, colour)
                for x, y, label, colour in own
            ]
            label_ends(axes, shown, len(levels) - 0.5)
        if crowded:
            _recovered_legend(figure, look, kinds)
        mark_not_data(figure, kinds)
    title = f"Words recovered and recovery rate by {factor} and reader"
    alternative = _recovered_in_words(sums, factor)
    below = bool((sums["rr"] < LOWEST_RATE).any())
    return Drawing.of(name, title, _recovered_note(kinds, below), alternative, figure)


def _beside(it: Look) -> str:
    return it.label.replace(" (", "\n(") if len(it.label) > 16 else it.label


def _recovered_legend(figure: Figure, look: dict[str, Look], kinds: dict[str, str]) -> None:
    """Name readers under the panels where their names are too many or too long to stand beside the lines."""
    handles = [
        reader_handle(it, kinds[group], f"{number}  {shortened(it.label, MOST_LETTERS)}")
        for number, (group, it) in enumerate(look.items(), 1)
    ]
    key_below(figure, handles, RECOVERED_LEGEND_COLUMNS, handlelength=3.2, labelspacing=0.25)


def _drawn(
    axes: Axes,
    sums: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    look: dict[str, Look],
    kinds: dict[str, str],
    measure: str,
    scale: float,
) -> list[tuple[float, float, str, str]]:
    ends = []
    for turn, (group, it) in enumerate(look.items()):
        own = sums[(sums["reader_group"] == group) & sums[measure].notna()].set_index(factor)
        present = [level for level in levels if level in own.index]
        if not present:
            continue
        own = own.loc[present]
        shift = min(DODGE, 0.5 / len(look)) * (turn - (len(look) - 1) / 2)
        x = np.array([levels.index(level) for level in present]) + shift
        y = scale * own[measure].to_numpy(dtype=float)
        baseline = kinds[group] == "baseline"
        axes.plot(x, y, color=it.colour, ls=it.line, lw=1.0 if baseline else 1.5, zorder=3)
        if not baseline:
            lows, highs = (scale * own[f"{measure}_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
            intervals(axes, x, lows, highs, it.colour, width=1.5)
        face = "white" if kinds[group] == "model" else it.colour
        marks(axes, x, y, it.marker, it.colour, face)
        if measure == "words":
            typo = 100.0 * own["words_with_one_typo"].to_numpy(dtype=float)
            axes.plot(x + TYPO, typo, ls="", marker=1, ms=5, color=it.colour, mew=1.3, zorder=5)
            copied = sums[(sums["reader_group"] == group) & sums["kept"].notna()]
            places = [levels.index(level) + shift for level in copied[factor]]
            axes.plot(
                places, 100.0 * copied["kept"], ls="", marker="_", ms=9, color="#333333", mew=0.9, zorder=2
            )
        ends.append((float(x[-1]), float(y[-1]), _beside(it), it.colour))
    return ends


def _recovered_note(kinds: dict[str, str], below: bool) -> str:
    told = [
        "Points are words recovered exactly, of words that were changed; the short tick to the right of a point is the share with one "
        "typo allowed; the thin dark dash is the share of unchanged words that were copied right, above which recovery can hardly "
        "lie. B: share of the character edit distance that answers took away; 0 is an echo, below 0 lie answers further from "
        "the intact "
        "text than what was shown. Bars are 95% percentile bootstraps over participants, or over items for a model."
    ]
    if below:
        told.append(f"Rates below {apa.number(LOWEST_RATE, 0)}% lie outside the panel; the table has them.")
    told += not_data_in_words(kinds.values(), "answer by rule, have no interval and are not data")
    if not set(kinds.values()) & set(PARTICIPANT_KINDS):
        told.append("No people have answered.")
    return " ".join(told)


def _recovered_in_words(sums: pd.DataFrame, factor: str) -> str:
    told = []
    for group, own in sums.groupby("reader_group", sort=False):
        values = ", ".join(
            f"{one[factor]} {apa.percent(one['words'])} of changed words, recovery rate {apa.number(one['rr'], 1)}%"
            for one in own.to_dict("records")
            if one["changed"]
        )
        told.append(f"{group}: {values or 'nothing was changed'}")
    return f"Words recovered. {'; '.join(told)}."


LOOKS_APART = 6
"""Beyond so many readers colours and markers repeat, and numbers stand in their place."""
SENSITIVITY_LEGEND_COLUMNS = 3
LONGEST_OF_THREE = 24
"""Longer names stand in two columns."""
BESIDE = 1.2
"""How much farther the horizontal axis reaches, so that numbers at its ends do not touch those of the next panel."""
LEAST_RANGE = 1.0
"""The axes reach at least this far from zero, so that next to no sensitivity looks like none."""

LONGEST = 42
"""Letters of a name in the key."""


def sensitivity_figure(
    name: str, cells: pd.DataFrame, readers: pd.DataFrame, factor: str | None, signal: str, other: str
) -> Drawing:
    """Draw d' against the criterion of every reader group in every level."""
    levels = list(dict.fromkeys(cells["level"]))
    kinds = {str(one["reader_group"]): str(one["kind"]) for one in cells.to_dict("records")}
    look = looks(kinds)
    marker = {
        group: f"${number}$" if len(kinds) > LOOKS_APART else look[group].marker
        for number, group in enumerate(kinds, 1)
    }
    columns = min(len(levels), 4 if len(levels) <= 8 else 5)
    lines = ceil(len(levels) / columns)
    beside = (
        SENSITIVITY_LEGEND_COLUMNS if max(len(it.label) for it in look.values()) <= LONGEST_OF_THREE else 2
    )
    legend = ceil(len(kinds) / beside)
    with styled():
        size = 8.5 if columns < 4 else 7.5
        each = 0.895 * WIDTH / columns - 0.1
        titles = ["\n".join(cut_to_lines(str(level), each, size, bold=True)) for level in levels]
        deep = max(one.count("\n") for one in titles)
        added = height_of(deep, size)
        around = 0.9 + 0.18 * legend
        height = around + min(((2.6 if lines == 1 else 2.0) + added) * lines, TALLEST - around)
        figure = Figure(figsize=(WIDTH, height))
        bottom = (0.55 + 0.18 * legend) / height
        grid = figure.add_gridspec(
            lines,
            columns,
            left=0.085,
            right=0.99,
            top=1 - (0.5 + added) / height,
            bottom=bottom,
            hspace=0.32 + added / 2,
            wspace=0.12,
        )
        first: Axes | None = None
        for place, level in enumerate(levels):
            axes = figure.add_subplot(
                grid[place // columns, place % columns],
                **({"sharex": first, "sharey": first} if first else {}),
            )
            first = first or axes
            own = readers[(readers[factor] == level)] if factor else readers
            _panel(axes, cells[cells["level"] == level], own, look, marker)
            axes.set_title(titles[place], fontsize=size)
            axes.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(levels))
        if first is not None:
            (left, right), (low, high) = first.get_xlim(), first.get_ylim()
            first.set_xlim(min(left, -BESIDE * LEAST_RANGE), max(right, BESIDE * LEAST_RANGE))
            first.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
            first.xaxis.set_major_locator(MaxNLocator(nbins=4 if columns < 4 else 3, steps=[1, 2, 5, 10]))
        figure.supylabel("Sensitivity d′", fontsize=9, x=0.0)
        figure.text(
            0.54,
            bottom - 0.38 / height,
            f"Criterion c (left: answers {signal} more; right: answers {other} more)",
            ha="center",
            va="center",
            fontsize=9,
        )
        _sensitivity_legend(figure, look, marker, beside)
        mark_not_data(figure, kinds)
    title = f"Sensitivity against bias{f' by {factor}' if factor else ''} and reader"
    note = _sensitivity_note(kinds, signal)
    alternative = _sensitivity_in_words(cells)
    return Drawing.of(name, title, note, alternative, figure)


def _panel(
    axes: Axes, cells: pd.DataFrame, readers: pd.DataFrame, look: dict[str, Look], marker: dict[str, str]
) -> None:
    axes.axhline(0, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
    axes.axvline(0, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
    axes.grid(True)
    for cell in cells.to_dict("records"):
        group = str(cell["reader_group"])
        it = look[group]
        if cell["kind"] in PARTICIPANT_KINDS:
            own = readers[
                (readers["reader_group"] == group) & (readers["signals"] > 0) & (readers["others"] > 0)
            ]
            axes.scatter(
                own["criterion"], own["d_prime"], s=6, color=it.colour, alpha=0.3, linewidths=0, zorder=2
            )
        x, y = float(cell["criterion"]), float(cell["d_prime"])
        if not np.isfinite([x, y]).all():
            continue
        baseline = cell["kind"] == "baseline"
        if not baseline and np.isfinite(cell["d_prime_low"]):
            lows, highs = (
                [cell[f"{name}_{end}"] for name in ("d_prime", "criterion")] for end in ("low", "high")
            )
            intervals(axes, x, lows[0], highs[0], it.colour, width=1.2, zorder=3)
            intervals(axes, y, lows[1], highs[1], it.colour, across=True, width=1.2, zorder=3)
        (point,) = axes.plot([x], [y], **_marks(it, marker[group], str(cell["kind"])), zorder=5)
        if marker[group].startswith("$"):
            point.set_path_effects([withStroke(linewidth=2.4, foreground="white")])


def _marks(it: Look, marker: str, kind: str) -> dict[str, Any]:
    digit = marker.startswith("$")
    filled = "white" if kind == "model" and not digit else it.colour
    return {
        "ls": "",
        "marker": marker,
        "ms": 6.5 if digit else 5.5,
        "mfc": filled,
        "mec": it.colour,
        "mew": 0.6 if digit else 1.3,
    }


def _sensitivity_legend(figure: Figure, look: dict[str, Look], marker: dict[str, str], columns: int) -> None:
    handles = []
    for group, it in look.items():
        kind = "model" if it.label == group else ""
        handles.append(Line2D([], [], label=shortened(it.label, LONGEST), **_marks(it, marker[group], kind)))
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.53, 0.0),
        ncols=min(columns, len(handles)),
        frameon=False,
        fontsize=8,
        handletextpad=0.3,
        columnspacing=1.2,
        borderaxespad=0.1,
        labelspacing=0.25,
    )


def _sensitivity_note(kinds: dict[str, str], signal: str) -> str:
    told = [
        f"{signal} counts as the signal. At the dashed lines there is no sensitivity (horizontal) and no bias (vertical). "
        "Crossed bars are 95% intervals."
    ]
    if set(kinds.values()) & set(PARTICIPANT_KINDS):
        told.append(
            "Small dots are single participants; their group's point is the mean over them, with Student's intervals."
        )
    if "model" in kinds.values():
        told.append("A model's point is the value of its counts.")
    told += not_data_in_words(kinds.values(), "answer by rule, have no interval and are not data")
    return " ".join(told)


def _sensitivity_in_words(cells: pd.DataFrame) -> str:
    told = []
    for group, own in cells.groupby("reader_group", sort=False):
        values: Sequence[str] = [
            f"{one['level'] or 'all trials'} d′ {apa.number(one['d_prime'])} and c {apa.number(one['criterion'])}"
            for one in own.to_dict("records")
        ]
        told.append(f"{group}: {', '.join(values)}")
    return f"Sensitivity and bias. {'; '.join(told)}."
