"""Condition by reader: the mean of every reader group in every condition, over the participants' own means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.descriptives import Cell, participant_means, participants_intervals, scored
from analysis.figures.drawing import (
    PILOT_LABEL,
    WIDTH,
    Drawing,
    Look,
    as_svg,
    label_ends,
    looks,
    mark_not_data,
    style,
    styled,
)
from analysis.figures.labels import fit_labels
from analysis.plan import IN, RATING, RECOVERED, TIMES, Measure
from analysis.readers import PARTICIPANT_KINDS

DODGE, SWARM = 0.055, 0.032


def condition_figure(
    name: str,
    cells: Sequence[Cell],
    trials: pd.DataFrame,
    pilot: pd.DataFrame,
    measure: Measure,
    factor: str,
    levels: Sequence[str],
    chance: float | None = None,
    of: str = "",
) -> Drawing:
    """Draw the means of every reader group by condition, with intervals, over participant dots.

    Parameters
    ----------
    name : str
        File name without ending.
    cells : sequence of Cell
        From :func:`analysis.descriptives.describe`.
    trials, pilot : pandas.DataFrame
        Analysed trials (for the dots) and pilot trials, which are laid over the figure and are in no mean.
    measure : Measure
    factor : str
    levels : sequence of str
        From left to right.
    chance : float, optional
        Share that guessing gets right.
    of : str
        End of the title: of which trials it is, where not of all.
    """
    kinds = {cell.group: cell.kind for cell in cells}
    look = looks(kinds)
    with styled():
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.09, 0.13, 0.64, 0.79))
        _scale(axes, measure, levels)
        _dots(axes, trials, measure, factor, levels, kinds, look)
        ends = _means(axes, cells, levels, look, measure, factor)
        ends += _pilot(axes, pilot, measure, factor, levels)
        if measure.logged:
            axes.set_yscale("log")
            _log_ticks(axes)
        if chance is not None and measure.name == "correct":
            axes.axhline(100 * chance, color="#555555", lw=0.8, ls=(0, (2, 2)), zorder=1)
            axes.annotate(
                "chance",
                (-0.42, 100 * chance),
                (0, 2),
                textcoords="offset points",
                fontsize=7.5,
                color="#555555",
            )
        label_ends(axes, ends, len(levels) - 0.5)
        mark_not_data(figure, kinds)
    title = f"{measure.title} by {factor} and reader{of}"
    alternative = _in_words(cells, measure, levels)
    note = _note(cells, measure, not pilot.empty)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _scale(axes: Axes, measure: Measure, levels: Sequence[str]) -> None:
    axes.set_xlim(-0.45, len(levels) - 0.55)
    axes.set_xticks(range(len(levels)), list(levels))
    fit_labels(axes)
    if measure is RATING:
        axes.set_ylabel(f"Mean rating ({measure.unit})")
    elif not measure.logged:
        axes.set_ylim(-2, 104)
        axes.set_yticks(range(0, 101, 20))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
        recovered = measure is RECOVERED
        axes.set_ylabel(
            "Mean recovery (failures count as 0%)"
            if recovered
            else "Correct answers (failures count as wrong)"
        )
    else:
        axes.set_ylabel(f"{measure.title} (ms, log scale)")


def _log_ticks(axes: Axes) -> None:
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 1.5, 2, 3, 4, 5, 7)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _raw(values: np.ndarray, measure: Measure) -> np.ndarray:
    return np.exp(values) if measure.logged else values if measure is RATING else 100.0 * values


def _dots(
    axes: Axes,
    trials: pd.DataFrame,
    measure: Measure,
    factor: str,
    levels: Sequence[str],
    kinds: dict[str, str],
    look: dict[str, Look],
) -> None:
    people = [group for group, kind in kinds.items() if kind in PARTICIPANT_KINDS]
    rows = scored(trials[trials["reader_group"].isin(people) & trials[factor].notna()], measure)
    if rows.empty:
        return
    means = participant_means(rows, factor)
    for group in people:
        for place, level in enumerate(levels):
            if level not in means or group not in means.index.get_level_values(0):
                continue
            values = _raw(means.loc[group][level].dropna().to_numpy(dtype=float), measure)
            if not len(values):
                continue
            heights = np.log(values) if measure.logged else values
            x = (
                place
                - 0.2
                + swarm(
                    heights,
                    2.0 if measure.scale == "points" or measure is RECOVERED else 0.025 * np.ptp(heights),
                )
            )
            axes.scatter(x, values, s=7, color=look[group].colour, alpha=0.3, linewidths=0, zorder=2)


def swarm(values: np.ndarray, bin_width: float) -> np.ndarray:
    """Return sideways offsets that put near-equal values side by side.

    Parameters
    ----------
    values : ndarray, shape (n,)
    bin_width : float
        Values within one bin count as equal.
    """
    bins = np.round(values / bin_width) if bin_width > 0 else np.zeros(len(values))
    offsets = np.zeros(len(values))
    for one in np.unique(bins):
        members = np.flatnonzero(bins == one)
        offsets[members] = (np.arange(len(members)) - (len(members) - 1) / 2) * min(
            SWARM, 0.34 / max(len(members), 1)
        )
    return offsets


def _lines(levels: Sequence[str], factor: str) -> list[slice]:
    """Return which means a line joins: all, or of the cells of two factors those of one level of the first."""
    if TIMES not in factor:
        return [slice(0, len(levels))]
    firsts = [level.partition(IN)[0] for level in levels]
    starts = [place for place, one in enumerate(firsts) if place == 0 or one != firsts[place - 1]]
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(levels)], strict=True)]


def _means(
    axes: Axes,
    cells: Sequence[Cell],
    levels: Sequence[str],
    look: dict[str, Look],
    measure: Measure,
    factor: str,
) -> list[tuple[float, float, str, str]]:
    groups = list(dict.fromkeys(cell.group for cell in cells))
    scale = 1.0 if measure.logged or measure is RATING else 100.0
    ends = []
    for turn, group in enumerate(groups):
        own = {cell.level: cell for cell in cells if cell.group == group}
        present = [level for level in levels if level in own]
        if not present:
            continue
        shift = DODGE * (turn - (len(groups) - 1) / 2) if len(groups) > 1 else 0.0
        x = [levels.index(level) + shift for level in present]
        y = [scale * own[level].mean for level in present]
        it = look[group]
        baseline = own[present[0]].kind == "baseline"
        weight = 1.0 if baseline else 1.5
        for line in _lines(present, factor):
            axes.plot(x[line], y[line], color=it.colour, ls=it.line, lw=weight, zorder=3)
        for one, level in zip(x, present, strict=True):
            cell = own[level]
            if np.isfinite(cell.low) and not baseline:
                axes.plot(
                    [one, one], [scale * cell.low, scale * cell.high], color=it.colour, lw=1.5, zorder=4
                )
        filled = "white" if own[present[0]].kind == "model" else it.colour
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
        ends.append((x[-1], y[-1], _wrapped(it.label), it.colour))
    return ends


def _wrapped(label: str) -> str:
    return label.replace(" (", "\n(") if len(label) > 16 else label


def _pilot(
    axes: Axes, pilot: pd.DataFrame, measure: Measure, factor: str, levels: Sequence[str]
) -> list[tuple[float, float, str, str]]:
    if pilot.empty:
        return []
    rows = scored(pilot[pilot[factor].notna()], measure)
    if rows.empty:
        return []
    mark = style()["pilot"]
    means = rows.pivot_table(index="session_id", columns=factor, values="value")
    last = (0.0, 0.0)
    for values in means.to_dict("index").values():
        present = [level for level in levels if values.get(level) == values.get(level) and level in values]
        x = [levels.index(level) + 0.2 for level in present]
        y = [float(_raw(np.array(values[level]), measure)) for level in present]
        axes.plot(
            x,
            y,
            ls="",
            marker=mark["marker"],
            ms=9,
            mfc="none",
            mec=mark["colour"],
            mew=1.0,
            zorder=6,
            clip_on=False,
        )
        last = (x[-1], y[-1])
    return [(*last, PILOT_LABEL, mark["colour"])]


def _note(cells: Sequence[Cell], measure: Measure, with_pilot: bool) -> str:
    told = []
    people = {cell.kind for cell in cells} & set(PARTICIPANT_KINDS)
    who = {frozenset({"human"}): "participants", frozenset({"simulated"}): "simulated readers"}
    own = [cell for cell in cells if cell.kind in people]
    single = (
        f"Small dots are means of single {who.get(frozenset(people), 'participants and simulated readers')}"
    )
    intervals = participants_intervals(own)
    if intervals:
        told.append(f"{single}; large points are means over them with 95% {intervals}.")
    elif max((cell.units for cell in own), default=0) == 1:
        told.append("A point is the mean of one participant and has no interval.")
    elif own:
        told.append(
            f"{single}; large points are means over them, without intervals, since fewer than two were in all conditions."
        )
    if any(cell.kind == "model" for cell in cells):
        what = (
            f"mean {measure.noun} with 95% t intervals over items"
            if measure in (RECOVERED, RATING)
            else "share correct with 95% Wilson intervals of the effective number of answers"
        )
        told.append(f"A model's points are its {what}.")
    if measure.logged:
        told.append("Means are geometric; trials without a valid answer are not in them.")
    if any(cell.kind == "simulated" for cell in cells):
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    if any(cell.kind == "baseline" for cell in cells):
        told.append("Baselines answer by rule and are not data.")
    if with_pilot:
        told.append(
            "The hollow star is one pilot session laid over the figure; it is in no mean and no model."
        )
    return " ".join(told)


def _in_words(cells: Sequence[Cell], measure: Measure, levels: Sequence[str]) -> str:
    told = []
    written = apa.milliseconds if measure.logged else apa.number if measure is RATING else apa.percent
    for group in dict.fromkeys(cell.group for cell in cells):
        values = ", ".join(f"{cell.level} {written(cell.mean)}" for cell in cells if cell.group == group)
        told.append(f"{group}: {values}")
    return f"{measure.title} by condition. " + "; ".join(told) + "."
