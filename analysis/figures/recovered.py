"""Restored texts: words recovered of words changed beside what was copied right, and the recovery rate below."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    as_svg,
    label_ends,
    looks,
    mark_not_data,
    reader_handle,
    shortened,
    styled,
)
from analysis.figures.labels import fit_labels, laid_out, places_of
from analysis.readers import PARTICIPANT_KINDS

DODGE, TYPO = 0.06, 0.028
MOST_LABELS, LONGEST_LABEL = 4, 28
"""More or longer names than this stand in a legend and not beside the lines."""
LEGEND_COLUMNS, MOST_LETTERS = 2, 40
LOWEST_RATE = -150.0
"""The panel of recovery rates reaches no lower; a reader that talks instead of restoring has rates far below."""


def recovered_figure(
    name: str, sums: pd.DataFrame, factor: str, levels: Sequence[str], kinds: dict[str, str]
) -> Drawing:
    """Draw shares of recovered words and recovery rates of every reader group by level.

    Parameters
    ----------
    name : str
        File name without ending.
    sums : pandas.DataFrame
        From :func:`analysis.measures.recovery.recovery` by the factor.
    factor : str
    levels : sequence of str
        From left to right; those at which no word was changed have no point.
    kinds : dict
        Reader kind of each group, in the order of drawing.
    """
    look = looks(kinds)
    crowded = len(look) > MOST_LABELS or max(len(it.label) for it in look.values()) > LONGEST_LABEL
    legend = 0.18 * ceil(len(look) / LEGEND_COLUMNS) + 0.1 if crowded else 0.0
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
            _legend(figure, look, kinds)
        mark_not_data(figure, kinds)
    title = f"Words recovered and recovery rate by {factor} and reader"
    alternative = _in_words(sums, factor)
    below = bool((sums["rr"] < LOWEST_RATE).any())
    return Drawing(
        name, title, _note(kinds, below), alternative, as_svg(figure, name, title, alternative), figure
    )


def _beside(it: Look) -> str:
    return it.label.replace(" (", "\n(") if len(it.label) > 16 else it.label


def _legend(figure: Figure, look: dict[str, Look], kinds: dict[str, str]) -> None:
    """Name readers under the panels where their names are too many or too long to stand beside the lines."""
    handles = [
        reader_handle(it, kinds[group], f"{number}  {shortened(it.label, MOST_LETTERS)}")
        for number, (group, it) in enumerate(look.items(), 1)
    ]
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=LEGEND_COLUMNS,
        frameon=False,
        fontsize=8,
        handlelength=3.2,
        borderaxespad=0.1,
        labelspacing=0.25,
    )


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
            for one, low, high in zip(x, lows, highs, strict=True):
                axes.plot([one, one], [low, high], color=it.colour, lw=1.5, zorder=4)
        face = "white" if kinds[group] == "model" else it.colour
        axes.plot(x, y, ls="", marker=it.marker, ms=5.5, mfc=face, mec=it.colour, mew=1.3, zorder=5)
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


def _note(kinds: dict[str, str], below: bool) -> str:
    told = [
        "Points are words recovered exactly, of words that were changed; the short tick to the right of a point is the share with one "
        "typo allowed; the thin dark dash is the share of unchanged words that were copied right, above which recovery can hardly "
        "lie. B: share of the character edit distance that answers took away; 0 is an echo, below 0 lie answers further from "
        "the intact "
        "text than what was shown. Bars are 95% percentile bootstraps over participants, or over items for a model."
    ]
    if below:
        told.append(f"Rates below {apa.number(LOWEST_RATE, 0)}% lie outside the panel; the table has them.")
    if "simulated" in kinds.values():
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    if set(kinds.values()) & {"baseline"}:
        told.append("Baselines answer by rule, have no interval and are not data.")
    if not set(kinds.values()) & set(PARTICIPANT_KINDS):
        told.append("No people have answered.")
    return " ".join(told)


def _in_words(sums: pd.DataFrame, factor: str) -> str:
    told = []
    for group, own in sums.groupby("reader_group", sort=False):
        values = ", ".join(
            f"{one[factor]} {apa.percent(one['words'])} of changed words, recovery rate {apa.number(one['rr'], 1)}%"
            for one in own.to_dict("records")
            if one["changed"]
        )
        told.append(f"{group}: {values or 'nothing was changed'}")
    return f"Words recovered. {'; '.join(told)}."
