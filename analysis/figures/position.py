"""Letter position: what each changed condition costs against the intact one, in accuracy and in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import (
    PILOT_LABEL,
    WIDTH,
    Drawing,
    Look,
    are_numbers_in_order,
    as_svg,
    label_ends,
    looks,
    mark_not_data,
    style,
    styled,
)
from analysis.figures.labels import fit_labels, laid_out, places_of
from analysis.names import in_words
from analysis.plan import Measure
from analysis.position import Cost, is_letter_position

DODGE = 0.09
_LEFT, _ACROSS = 0.09, 0.64
"""Left edge and width of a panel, as shares of the figure's width."""
_TALL, _ABOVE = 2.3, 0.42
"""Inches: height of a panel, and room above it for its title."""

LEAST_RANGE = 5.0
"""The axis reaches at least this far from zero, so that no cost at all looks like none."""


def position_figure(
    name: str,
    panels: Sequence[tuple[Measure, Sequence[Cost], Sequence[Cost]]],
    factor: str,
    levels: Sequence[str],
    of: str = "",
) -> Drawing:
    """Draw the cost of every level against the reference, one panel a measure.

    Parameters
    ----------
    name : str
        File name without ending.
    panels : sequence of (Measure, costs, pilot costs)
        Pilot costs are laid over the panel.
    factor : str
    levels : sequence of str
        Reference first.
    of : str
        End of the title: of which trials it is, where not of all.
    """
    kinds = {cost.group: cost.kind for _, own, _ in panels for cost in own}
    look = looks(kinds)
    with styled():
        names = laid_out(levels[1:], places_of(len(levels) - 1, _LEFT * WIDTH, _ACROSS * WIDTH))
        below = 0.15 + names.depth
        whole = (_TALL + _ABOVE + below) * len(panels)
        figure = Figure(figsize=(WIDTH, whole))
        for turn, (measure, own, pilot) in enumerate(panels):
            bottom = (len(panels) - 1 - turn) * (_TALL + _ABOVE + below) + below
            axes = figure.add_axes((_LEFT, bottom / whole, _ACROSS, _TALL / whole))
            _panel(axes, measure, own, pilot, levels, look)
            axes.set_title(_panel_title(measure, levels[0], "ABC"[turn] if len(panels) > 1 else ""))
        mark_not_data(figure, kinds)
    positions = is_letter_position(list(levels))
    title = f"Cost of each {'letter position' if positions else 'condition'} against {levels[0]}{of}"
    alternative = _in_words(panels, levels[0])
    note = _note(kinds, panels, levels[0])
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _panel_title(measure: Measure, reference: str, letter: str) -> str:
    what = "Time added" if measure.logged else "Accuracy lost"
    return f"{letter + '  ' if letter else ''}{what} against {in_words(reference)}"


def _panel(
    axes: Axes,
    measure: Measure,
    own: Sequence[Cost],
    pilot: Sequence[Cost],
    levels: Sequence[str],
    look: dict[str, Look],
) -> None:
    changed = list(levels[1:])
    axes.set_xlim(-0.45, len(changed) - 0.55)
    axes.set_xticks(range(len(changed)), changed)
    fit_labels(axes)
    axes.axhline(0, color="#333333", lw=0.8, zorder=1)
    unit = f"{measure.title} added (%)" if measure.logged else "Percentage points lost"
    axes.set_ylabel(unit)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: apa.number(value, 0)))
    groups = list(dict.fromkeys(cost.group for cost in own))
    ends = []
    for turn, group in enumerate(groups):
        mine = [cost for cost in own if cost.group == group]
        shift = DODGE * (turn - (len(groups) - 1) / 2)
        it = look[group]
        x = [changed.index(cost.level) + shift for cost in mine]
        y = [cost.cost for cost in mine]
        baseline = mine[0].kind == "baseline"
        if are_numbers_in_order(changed):
            axes.plot(x, y, color=it.colour, ls=it.line, lw=1.0 if baseline else 1.5, zorder=3)
        for one, cost in zip(x, mine, strict=True):
            if np.isfinite(cost.low) and not baseline:
                axes.plot([one, one], [cost.low, cost.high], color=it.colour, lw=1.5, zorder=4)
        filled = "white" if mine[0].kind == "model" else it.colour
        axes.plot(
            x,
            y,
            ls="",
            marker=it.marker,
            ms=5.5,
            mfc=filled,
            mec=it.colour,
            mew=1.3,
            color=it.colour,
            zorder=5,
        )
        ends.append(
            (x[-1], y[-1], it.label.replace(" (", "\n(") if len(it.label) > 16 else it.label, it.colour)
        )
    if pilot:
        mark = style()["pilot"]
        x = [changed.index(cost.level) + 0.27 for cost in pilot]
        y = [cost.cost for cost in pilot]
        axes.plot(x, y, ls="", marker=mark["marker"], ms=9, mfc="none", mec=mark["colour"], mew=1.0, zorder=6)
        ends.append((x[-1], y[-1], PILOT_LABEL, mark["colour"]))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))
    label_ends(axes, ends, len(changed) - 0.5)


def _note(
    kinds: dict[str, str], panels: Sequence[tuple[Measure, Sequence[Cost], Sequence[Cost]]], ref: str
) -> str:
    told = [f"Zero is each reader's own {ref} condition; higher is a greater cost."]
    if any(measure.logged for measure, _, _ in panels):
        told.append("Time costs are ratios of geometric means, in percent; models have no reading time.")
    told.append("Bars are 95% percentile bootstrap intervals over participants, or over items for a model.")
    if "simulated" in kinds.values():
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    if "baseline" in kinds.values():
        told.append("Baselines answer by rule and are not data.")
    if any(pilot for _, _, pilot in panels):
        told.append(
            "The hollow star is one pilot session laid over the figure; it is in no mean and no model."
        )
    return " ".join(told)


def _in_words(panels: Sequence[tuple[Measure, Sequence[Cost], Sequence[Cost]]], reference: str) -> str:
    told = []
    for measure, own, _ in panels:
        unit = "percent" if measure.logged else "percentage points"
        values = ", ".join(f"{cost.group} {cost.level} {apa.number(cost.cost, 1)}" for cost in own)
        told.append(f"{measure.title}, cost in {unit} against {reference}: {values}.")
    return " ".join(told)
