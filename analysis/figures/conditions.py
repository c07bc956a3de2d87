"""Conditions: means with planned contrasts, costs against the reference, and estimates of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from analysis import apa
from analysis.descriptives import (
    Cell,
    Cost,
    is_letter_position,
    participant_means,
    participants_intervals,
    scored,
)
from analysis.figures.drawing import (
    PILOT_LABEL,
    TALLEST,
    WIDTH,
    Drawing,
    Look,
    are_numbers_in_order,
    axes_at,
    intervals,
    keep_width,
    label_ends,
    looks,
    mark_not_data,
    marks,
    not_data_in_words,
    style,
    styled,
)
from analysis.figures.labels import cut_to_lines, fit_labels, laid_out, places_of, size_in, width_of
from analysis.names import in_words
from analysis.plan import RATING, RECOVERED, Measure
from analysis.readers import PARTICIPANT_KINDS, headed

BROAD = 7.25
"""Inches of the whole figure."""
MOST_BESIDE, COLUMNS = 4, 7
"""Panels that leave room for contrasts at their right, and panels of one line of small multiples."""
MOST_EFFECTS, MOST_BELOW = 18, 8
"""Contrasts at the right of the panels, and below small multiples; the table has the others."""
SIZE, HEAD = 8.4, 9.0
"""Points of letters; a page makes the figure a little narrower, and they must not fall below 7.5."""
_FOREST, _LINE, _CONDITION_ABOVE, _BELOW, _GAP = 3.4, 0.165, 0.4, 0.46, 0.13
GLYPHS = {"x": "×", "+": "+", "1": "⅄"}
"""Marks of baselines, as a note writes them."""
CONTRASTS = "contrasts"
"""Label of the axes of planned contrasts."""
INK, SOFT = "#1b1b1b", "#555555"


@dataclass(frozen=True)
class Effect:
    """A planned contrast of one reader, or between two, on the scale on which it is reported.

    Attributes
    ----------
    label, reader : str
        Which difference, and whose.
    group : str
        The reader group whose mark it takes; empty between readers.
    estimate, low, high : float
        With the interval of the tables; an end that a one-sided test lacks is infinite.
    grade : str
        How certain it is, in a word.
    uncertain : bool
        Whether its interval is dashed.
    built_in : float or None
        The effect that simulated readers were given.
    """

    label: str
    reader: str
    group: str
    estimate: float
    low: float
    high: float
    grade: str
    uncertain: bool = False
    built_in: float | None = None


@dataclass(frozen=True)
class Conditions:
    """The means of one measure in each condition, with its planned contrasts.

    Attributes
    ----------
    measure : Measure
    factor : str
    levels : tuple of str
        From top to bottom.
    cells : sequence of Cell
        From :func:`analysis.descriptives.describe`.
    trials, pilot : pandas.DataFrame
        Analysed trials, for the dots, and those of a pilot visitor, who is in no mean.
    chance : float or None
        Share that guessing gets right.
    effects : tuple of Effect
        Planned contrasts, if any.
    axis : str
        What the contrasts are measured in; ``odds ratio`` has a logarithmic axis.
    """

    measure: Measure
    factor: str
    levels: tuple[str, ...]
    cells: Sequence[Cell]
    trials: pd.DataFrame
    pilot: pd.DataFrame
    chance: float | None = None
    effects: tuple[Effect, ...] = ()
    axis: str = ""

    @property
    def panels(self) -> list[tuple[str, ...]]:
        """Reader groups by panel: each its own, baselines together."""
        kinds = {cell.group: cell.kind for cell in self.cells}
        single: list[tuple[str, ...]] = [(group,) for group, kind in kinds.items() if kind != "baseline"]
        rules = tuple(group for group, kind in kinds.items() if kind == "baseline")
        return [*single, rules] if rules else single

    @property
    def is_beside(self) -> bool:
        """Whether its contrasts are drawn next to its panels."""
        return bool(self.effects) and len(self.panels) <= MOST_BESIDE

    @property
    def drawn(self) -> tuple[Effect, ...]:
        """The contrasts for which there is room: of participants and between readers before those of single models."""
        people = {cell.group for cell in self.cells if cell.kind in PARTICIPANT_KINDS}
        ranked = sorted(self.effects, key=lambda one: one.group not in {"", *people})
        kept = ranked[: MOST_EFFECTS if self.is_beside else MOST_BELOW]
        return tuple(one for one in self.effects if one in kept)

    def raw(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means of the modelled scale as the axis has them."""
        return np.exp(values) if self.measure.logged else values if self.measure is RATING else 100.0 * values


def condition_figure(name: str, rows: Sequence[Conditions], of: str = "") -> Drawing:
    """Draw the mean of every reader in every condition, and the planned contrasts."""
    kinds = {cell.group: cell.kind for row in rows for cell in row.cells}
    look = looks(kinds)
    top = 0.16 if {"simulated", "baseline"} & set(kinds.values()) else 0.04
    fixed = top + sum(_height(row, 0.0) for row in rows)
    steps = [_step(row) for row in rows]
    wished = sum(_height(row, step) for row, step in zip(rows, steps, strict=True)) + top
    if wished > TALLEST:
        steps = [step * max(0.1, TALLEST - fixed) / (wished - fixed) for step in steps]
    high = top + sum(_height(row, step) for row, step in zip(rows, steps, strict=True))
    with styled():
        figure = Figure(figsize=(BROAD, high))
        keep_width(figure)
        for row, step in zip(rows, steps, strict=True):
            _draw(figure, row, look, top, step)
            top += _height(row, step)
        mark_not_data(figure, kinds)
    measures = apa.listing([rows[0].measure.title, *(row.measure.noun for row in rows[1:])])
    contrasts = ", with the planned contrasts" if any(row.effects for row in rows) else ""
    title = f"{measures} by {rows[0].factor} and reader{of}{contrasts}"
    alternative = " ".join(_condition_in_words(row) for row in rows)
    return Drawing.of(name, title, _condition_note(rows), alternative, figure)


def has_contrasts(drawing: Drawing) -> bool:
    """Return whether a figure shows planned contrasts."""
    return any(axes.get_label() == CONTRASTS for axes in drawing.figure.axes)


def _columns(row: Conditions) -> int:
    return len(row.panels) if row.is_beside else min(len(row.panels), COLUMNS)


def _lines(row: Conditions) -> int:
    return -(-len(row.panels) // _columns(row))


def _forest_height(row: Conditions) -> float:
    return _LINE * (len(row.drawn) + len({one.label for one in row.drawn}) + 0.3)


def _step(row: Conditions) -> float:
    """Return the inches between two conditions."""
    step = min(0.28, max(0.2, 1.6 / len(row.levels))) if _lines(row) == 1 else 0.2
    return max(step, min(0.5, _forest_height(row) / len(row.levels))) if row.is_beside else step


def _height(row: Conditions, step: float) -> float:
    """Return the inches of all panels of a measure."""
    panels = len(row.levels) * step
    if row.is_beside:
        return _CONDITION_ABOVE + max(panels, _forest_height(row)) + _BELOW
    below = _CONDITION_ABOVE + _forest_height(row) + _BELOW if row.effects else 0.0
    return _lines(row) * (_CONDITION_ABOVE + panels) + 0.3 * (_lines(row) - 1) + _BELOW + below


def _draw(figure: Figure, row: Conditions, look: dict[str, Look], top: float, step: float) -> None:
    """Draw all panels of one measure, which begin so many inches below the upper edge."""
    high = figure.get_figheight()

    columns, size = _columns(row), min(SIZE, size_in(step))
    lines = 2 if step >= 0.3 else 1
    texts = ["\n".join(cut_to_lines(level, 1.15, size, lines)) for level in row.levels]
    names = 0.1 + max(width_of(line, size) for text in texts for line in text.split("\n"))
    room = BROAD - names - (_FOREST if row.is_beside else 0.05)
    width = min(4.2, (room - _GAP * (columns - 1)) / columns)
    height, limits = len(row.levels) * step, _limits(row)
    for place, groups in enumerate(row.panels):
        line, column = divmod(place, columns)
        upper = top + _CONDITION_ABOVE + line * (_CONDITION_ABOVE + height + 0.3)
        axes = axes_at(figure, names + column * (width + _GAP), high - upper - height, width, height)
        axes.set(xlim=limits, ylim=(len(row.levels) - 0.5, -0.5))
        axes.set_yticks(range(len(row.levels)), texts if column == 0 else [""] * len(texts), fontsize=size)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", length=3, labelsize=SIZE)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(4 if width > 1 else 3, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.5g}".replace("-", "−")))
        _condition_panel(axes, row, groups, look, step)
    end = top + _CONDITION_ABOVE + _lines(row) * (_CONDITION_ABOVE + height + 0.3) - _CONDITION_ABOVE - 0.3
    centre = names + (columns * (width + _GAP) - _GAP) / 2
    figure.text(
        centre / BROAD, 1 - (end + 0.22) / high, _axis(row), ha="center", va="top", fontsize=SIZE, color=SOFT
    )
    if row.effects:
        beside = names + columns * (width + _GAP)
        left, begin = (
            (beside + 1.2, top + _CONDITION_ABOVE)
            if row.is_beside
            else (names + 0.9, end + _BELOW + _CONDITION_ABOVE)
        )
        tall = _forest_height(row)
        forest = axes_at(figure, left, high - begin - tall, BROAD - 0.92 - left, tall)
        _forest(forest, row, look, 1.2 if row.is_beside else 1.7)


def _axis(row: Conditions) -> str:
    if row.measure is RATING:
        return f"Mean rating ({row.measure.unit})"
    if row.measure.logged:
        return f"{row.measure.title} (ms; geometric means)"
    return "Recovered (%)" if row.measure is RECOVERED else "Correct (%)"


def _single(row: Conditions, group: str) -> pd.DataFrame:
    """Return the means of single participants: a row each, a column for every level."""
    rows = scored(
        row.trials[(row.trials["reader_group"] == group) & row.trials[row.factor].notna()], row.measure
    )
    return participant_means(rows, row.factor) if len(rows) else pd.DataFrame()


def _shown(row: Conditions, cell: Cell) -> tuple[float, float, float]:
    scale = 1.0 if row.measure.logged or row.measure is RATING else 100.0
    return scale * cell.mean, scale * cell.low, scale * cell.high


def _limits(row: Conditions) -> tuple[float, float]:
    """Return the ends of the axis that all panels of a measure share."""
    values = [value for cell in row.cells for value in _shown(row, cell) if np.isfinite(value)]
    for group in {cell.group for cell in row.cells if cell.kind in PARTICIPANT_KINDS}:
        values += list(row.raw(_single(row, group).to_numpy(dtype=float).ravel()))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if row.measure.scale == "points" or row.measure is RECOVERED:
        low = min(low, 100 * row.chance) if row.chance is not None else low
        return max(0.0, 25.0 * np.floor(min(low, 75.0) / 25.0)) - 4, 107.0
    margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _condition_panel(
    axes: Axes, row: Conditions, groups: tuple[str, ...], look: dict[str, Look], step: float
) -> None:
    """Draw one reader, or all baselines."""
    own = {(cell.group, cell.level): cell for cell in row.cells if cell.group in groups}
    first = next(iter(own.values()))
    rules = first.kind == "baseline"
    if row.chance is not None and row.measure.name == "correct":
        axes.axvline(100 * row.chance, color=SOFT, lw=0.9, ls=(0, (2, 2)), zorder=1)
    if not rules and (groups[0], row.levels[0]) in own:
        axes.axvline(_shown(row, own[groups[0], row.levels[0]])[0], color="#8A8A8A", lw=0.9, zorder=1)
    if first.kind in PARTICIPANT_KINDS:
        _dots(axes, row, groups[0], look[groups[0]].colour)
        _pilot(axes, row)
    for turn, group in enumerate(groups):
        it = look[group]
        shift = 0.2 * (turn - (len(groups) - 1) / 2) if rules else -0.08
        there = [
            (place + shift, own[group, level])
            for place, level in enumerate(row.levels)
            if (group, level) in own
        ]
        if are_numbers_in_order(row.levels) and not rules:
            axes.plot(
                [_shown(row, cell)[0] for _, cell in there], [y for y, _ in there], color=it.colour, lw=0.9
            )
        for y, cell in there:
            mean, low, high = _shown(row, cell)
            if not rules:
                intervals(axes, y, low, high, it.colour, across=True, width=1.7, solid_capstyle="butt")
            face = it.colour if cell.kind == "human" else "white"
            marks(axes, [mean], [y], it.marker, it.colour, face, edge=1.4, clip_on=False)
            if not rules:
                _value(axes, row, (mean, low, high), y, step)
    room = float(axes.get_position().width) * BROAD + 0.05
    units = max(cell.units for cell in own.values())
    if rules:
        head, below = "Baselines", apa.counted(len(groups), "rule")
    else:
        head = (
            headed(groups[0])
            if first.kind != "simulated" or width_of("Simulated readers", HEAD, bold=True) < room
            else "Simulated"
        )
        below = f"n = {units}" if first.kind in PARTICIPANT_KINDS else apa.counted(units, "item")
    for text, up, size, weight in ((head, 15, HEAD, "bold"), (below, 4, SIZE, "normal")):
        colour, (text, *_) = (
            INK if up == 15 else SOFT,
            cut_to_lines(text, room, size, 1, bold=weight == "bold"),
        )
        axes.annotate(
            text,
            (0, 1),
            (0, up),
            "axes fraction",
            "offset points",
            fontsize=size,
            weight=weight,
            color=colour,
        )


def _value(axes: Axes, row: Conditions, at: tuple[float, float, float], y: float, step: float) -> None:
    """Write a mean above its mark, or where rows are low next to its interval."""
    text = f"{at[0]:,.0f}" if row.measure is not RATING else f"{at[0]:.1f}"
    style_of: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": SIZE,
        "color": INK,
        "zorder": 6,
        "bbox": {"fc": "white", "ec": "none", "pad": 0.4},
    }
    if step >= 0.27:
        axes.annotate(text, (at[0], y), (0, 4.5), ha="center", va="bottom", **style_of)
    elif step >= 0.13:
        low, high = (end if np.isfinite(end) else at[0] for end in at[1:])
        is_right = low + high < sum(axes.get_xlim())
        axes.annotate(
            text, (high if is_right else low, y), (5 if is_right else -5, 0),
            ha="left" if is_right else "right", va="center_baseline", **style_of,
        )  # fmt: skip


def _dots(axes: Axes, row: Conditions, group: str, colour: str) -> None:
    """Draw the means of single participants, larger where several coincide."""
    means = _single(row, group)
    for place, level in enumerate(row.levels):
        if level not in means:
            continue
        values, many = np.unique(
            row.raw(means[level].dropna().to_numpy(dtype=float)).round(6), return_counts=True
        )
        axes.scatter(
            values, np.full(len(values), place + 0.24), s=6.0 * np.minimum(many, 12), color=colour, alpha=0.35,
            linewidths=0, zorder=2, clip_on=False,
        )  # fmt: skip


def _pilot(axes: Axes, row: Conditions) -> None:
    """Lay the means of one pilot visitor over the panel of participants."""
    rows = scored(row.pilot[row.pilot[row.factor].notna()], row.measure) if len(row.pilot) else row.pilot
    if rows.empty:
        return
    mark, means = style()["pilot"], rows.groupby(row.factor)["value"].mean()
    there = [
        (float(row.raw(np.array(means[level]))), place + 0.1)
        for place, level in enumerate(row.levels)
        if level in means
    ]
    axes.plot(
        *zip(*there, strict=True), ls="", marker=mark["marker"], ms=9, mfc="none", mec=mark["colour"], mew=1.0,
        zorder=6, clip_on=False,
    )  # fmt: skip
    axes.annotate(
        PILOT_LABEL, there[-1], (0, -6), textcoords="offset points", fontsize=SIZE, va="top", ha="center"
    )


def _forest(axes: Axes, row: Conditions, look: dict[str, Look], names: float) -> None:
    """Draw the planned contrasts, with names so many inches at the left and grades at the right."""
    axes.set_label(CONTRASTS)
    odds = row.axis == "odds ratio"
    null = 1.0 if odds else 0.0
    ends = [
        value
        for one in row.drawn
        for value in (one.estimate, one.low, one.high, one.built_in)
        if value is not None
    ]
    known = np.array([null, *(value for value in ends if np.isfinite(value) and (value > 0 or not odds))])
    if odds:
        axes.set_xscale("log")
        axes.set_xlim(known.min() / 1.25, known.max() * 1.25)
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        margin = 0.06 * float(np.ptp(known)) or 1.0
        axes.set_xlim(known.min() - margin, known.max() + margin)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.axvline(null, color=INK, lw=1.0, zorder=1)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=3, labelsize=SIZE)
    axes.set_yticks([])
    axes.set_xlabel("Odds ratio" if odds else f"Difference ({row.axis})", fontsize=SIZE, color=SOFT)
    width = float(axes.get_position().width) * BROAD
    left, y, label = -names / width, 0.0, ""
    for one in row.drawn:
        if one.label != label:
            label = one.label
            _beside(axes, left, y, cut_to_lines(label, 2.9, SIZE, 1, bold=True)[0], weight="bold")
            y += 1.0
        it = look.get(one.group)
        colour, marker = (INK, "D") if it is None else (it.colour, it.marker)
        low, high = (float(np.clip(end, *axes.get_xlim())) for end in (one.low, one.high))
        line = (0, (3, 1.6)) if one.uncertain else "-"
        intervals(axes, y, low, high, colour, across=True, width=1.7, zorder=3, ls=line)
        face = colour if one.group == "human" else "white"
        marks(axes, [one.estimate], [y], marker, colour, face, edge=1.4, zorder=4)
        if one.built_in is not None:
            marks(axes, [one.built_in], [y - 0.42], "v", INK, "white", size=4.5, edge=1.0)
        _beside(axes, left + 0.08 / width, y, cut_to_lines(one.reader, names - 0.14, SIZE, 1)[0])
        is_shown = one.grade not in ("Open", "Not estimable")
        _beside(axes, 1 + 0.08 / width, y, one.grade, weight="bold" if is_shown else "normal")
        y += 1.0
    axes.set_ylim(y - 0.2, -0.5)
    axes.annotate(
        "Planned contrasts",
        (left, 1),
        (0, 15),
        "axes fraction",
        "offset points",
        fontsize=HEAD,
        weight="bold",
    )
    axes.annotate(
        "adjusted 95% intervals", (left, 1), (0, 4), "axes fraction", "offset points", fontsize=SIZE,
        color=SOFT,
    )  # fmt: skip


def _beside(axes: Axes, x: float, y: float, text: str, weight: str = "normal") -> None:
    axes.text(
        x, y, text, transform=axes.get_yaxis_transform(), fontsize=SIZE, va="center", weight=weight, color=INK
    )


def _condition_note(rows: Sequence[Conditions]) -> str:
    """Describe points, lines and marks."""
    cells = [cell for row in rows for cell in row.cells]
    people = {cell.kind for cell in cells} & set(PARTICIPANT_KINDS)
    who = {frozenset({"human"}): "participants", frozenset({"simulated"}): "simulated readers"}
    own = [cell for cell in cells if cell.kind in people]
    single = f"Small dots are single {who.get(frozenset(people), 'participants and simulated readers')}, larger where several coincide"
    told = []
    intervals = participants_intervals(own)
    if intervals:
        told.append(f"{single}; large points are means with 95% {intervals}.")
    elif max((cell.units for cell in own), default=0) == 1:
        told.append("A point is the mean of one participant and has no interval.")
    elif own:
        told.append(
            f"{single}; large points are means without intervals, since fewer than two were in all conditions."
        )
    if any(cell.kind == "model" for cell in cells):
        items = rows[0].measure in (RECOVERED, RATING)
        told.append(
            f"Models have 95% {'t intervals over items' if items else 'Wilson intervals of the effective number of answers'}."
        )
    chance = any(row.chance is not None and row.measure.name == "correct" for row in rows)
    if any(cell.kind != "baseline" for cell in cells):
        dotted = ", the dotted line is chance" if chance else ""
        told.append(f"The gray line is the reader's own mean in the {rows[0].levels[0]} condition{dotted}.")
    if any(not row.measure.logged and row.measure is not RATING for row in rows):
        told.append("Failed answers count as wrong.")
    if any(row.measure.logged for row in rows):
        told.append("Mean times are geometric, of trials with a valid answer.")
    effects = [one for row in rows for one in row.drawn]
    if effects:
        told.append(
            "Contrasts have the adjusted 95% intervals of the table; “vs.” is a difference between readers."
        )
    if any(one.uncertain for one in effects):
        told.append("Dashed: fragile or contradicted.")
    if any(one.built_in is not None for one in effects):
        told.append("Triangles are effects built into the simulation.")
    left = sum(len(row.effects) for row in rows) - len(effects)
    if left:
        told.append(
            f"{apa.worded(left, 'further contrast').capitalize()} {'is' if left == 1 else 'are'} in the table."
        )
    rules = dict.fromkeys(cell.group for cell in cells if cell.kind == "baseline")
    if rules:
        look = looks({cell.group: cell.kind for cell in cells})
        told.append(f"Baselines: {apa.listing([f'{GLYPHS[look[rule].marker]} {rule}' for rule in rules])}.")
    if any(cell.kind in ("simulated", "baseline") for cell in cells):
        told.append(
            "Simulated readers and baselines are not data."
            if any(cell.kind == "simulated" for cell in cells)
            else "Baselines are not data."
        )
    if any(len(row.pilot) for row in rows):
        told.append(
            "The hollow star is one pilot session laid over the figure; it is in no mean and no model."
        )
    return " ".join(told)


def _condition_in_words(row: Conditions) -> str:
    """Describe a measure for those who cannot see the figure."""
    written = apa.milliseconds if row.measure.logged else apa.number if row.measure is RATING else apa.percent
    told = []
    for group in dict.fromkeys(cell.group for cell in row.cells):
        values = ", ".join(f"{cell.level} {written(cell.mean)}" for cell in row.cells if cell.group == group)
        told.append(f"{group}: {values}")
    text = f"{row.measure.title} by condition. {'; '.join(told)}."
    effects = [
        f"{one.label}, {one.reader}: {apa.number(one.estimate, 1)} ({one.grade.lower()})" for one in row.drawn
    ]
    return f"{text} Planned contrasts ({row.axis}). {'; '.join(effects)}." if effects else text


DODGE = 0.09
_LEFT, _ACROSS = 0.09, 0.64
"""Left edge and width of a panel, as shares of the figure's width."""
_TALL, _POSITION_ABOVE = 2.3, 0.42
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
    """Draw the cost of every level against the reference, one panel a measure."""
    kinds = {cost.group: cost.kind for _, own, _ in panels for cost in own}
    look = looks(kinds)
    with styled():
        names = laid_out(levels[1:], places_of(len(levels) - 1, _LEFT * WIDTH, _ACROSS * WIDTH))
        below = 0.15 + names.depth
        whole = (_TALL + _POSITION_ABOVE + below) * len(panels)
        figure = Figure(figsize=(WIDTH, whole))
        for turn, (measure, own, pilot) in enumerate(panels):
            bottom = (len(panels) - 1 - turn) * (_TALL + _POSITION_ABOVE + below) + below
            axes = figure.add_axes((_LEFT, bottom / whole, _ACROSS, _TALL / whole))
            _position_panel(axes, measure, own, pilot, levels, look)
            axes.set_title(_panel_title(measure, levels[0], "ABC"[turn] if len(panels) > 1 else ""))
        mark_not_data(figure, kinds)
    positions = is_letter_position(list(levels))
    title = f"Cost of each {'letter position' if positions else 'condition'} against {levels[0]}{of}"
    alternative = _position_in_words(panels, levels[0])
    note = _position_note(kinds, panels, levels[0])
    return Drawing.of(name, title, note, alternative, figure)


def _panel_title(measure: Measure, reference: str, letter: str) -> str:
    what = "Time added" if measure.logged else "Accuracy lost"
    return f"{letter + '  ' if letter else ''}{what} against {in_words(reference)}"


def _position_panel(
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
        if not baseline:
            intervals(
                axes, x, [cost.low for cost in mine], [cost.high for cost in mine], it.colour, width=1.5
            )
        filled = "white" if mine[0].kind == "model" else it.colour
        marks(axes, x, y, it.marker, it.colour, filled)
        ends.append(
            (x[-1], y[-1], it.label.replace(" (", "\n(") if len(it.label) > 16 else it.label, it.colour)
        )
    if pilot:
        mark = style()["pilot"]
        x = [changed.index(cost.level) + 0.27 for cost in pilot]
        y = [cost.cost for cost in pilot]
        marks(axes, x, y, mark["marker"], mark["colour"], "none", size=9, edge=1.0, zorder=6)
        ends.append((x[-1], y[-1], PILOT_LABEL, mark["colour"]))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))
    label_ends(axes, ends, len(changed) - 0.5)


def _position_note(
    kinds: dict[str, str], panels: Sequence[tuple[Measure, Sequence[Cost], Sequence[Cost]]], ref: str
) -> str:
    told = [f"Zero is each reader's own {ref} condition; higher is a greater cost."]
    if any(measure.logged for measure, _, _ in panels):
        told.append("Time costs are ratios of geometric means, in percent; models have no reading time.")
    told.append("Bars are 95% percentile bootstrap intervals over participants, or over items for a model.")
    told += not_data_in_words(kinds.values())
    if any(pilot for _, _, pilot in panels):
        told.append(
            "The hollow star is one pilot session laid over the figure; it is in no mean and no model."
        )
    return " ".join(told)


def _position_in_words(
    panels: Sequence[tuple[Measure, Sequence[Cost], Sequence[Cost]]], reference: str
) -> str:
    told = []
    for measure, own, _ in panels:
        unit = "percent" if measure.logged else "percentage points"
        values = ", ".join(f"{cost.group} {cost.level} {apa.number(cost.cost, 1)}" for cost in own)
        told.append(f"{measure.title}, cost in {unit} against {reference}: {values}.")
    return " ".join(told)


APART = 0.6
"""Share of the room between two levels that the cells of the other factors take."""


def estimates_figure(table: pd.DataFrame, factors: Sequence[str], axis: str) -> Figure:
    """Draw estimates with their 95% intervals."""
    if not factors and len(table) > 1:
        table = table[table["term"] != "(Intercept)"]  # it would leave no room for the others
    ends = table[["ci_low", "ci_high"]].sub(table["estimate"], axis=0).abs().to_numpy(dtype=float).T
    with styled():
        if not factors:
            figure = Figure(figsize=(WIDTH, 1.1 + 0.28 * len(table)), layout="constrained")
            axes = figure.add_subplot()
            lines = list(range(len(table)))[::-1]
            axes.errorbar(
                table["estimate"], lines, xerr=ends, fmt="o", color=style()["people"]["colour"], ms=5
            )
            axes.axvline(0.0, color="#555555", lw=0.8, ls=(0, (2, 2)))
            axes.set_ylim(-0.6, len(table) - 0.4)
            axes.set_yticks(lines, [str(term) for term in table["term"]])
            axes.set_xlabel(f"{axis}, 95% CI")
            return figure
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.11, 0.16, 0.86, 0.8))
        first, others = factors[0], list(factors[1:])
        levels = list(dict.fromkeys(table[first]))
        cells = (
            table[others].astype(str).agg(", ".join, axis=1) if others else pd.Series("", index=table.index)
        )
        series = list(dict.fromkeys(cells))
        looks = [style()["people"], *style()["models"]]
        for turn, name in enumerate(series):
            rows = (cells == name).to_numpy()
            shift = APART * (turn - (len(series) - 1) / 2) / len(series)
            look = looks[turn % len(looks)]
            axes.errorbar(
                [levels.index(level) + shift for level in table.loc[rows, first]],
                table.loc[rows, "estimate"],
                yerr=ends[:, rows],
                fmt=look["marker"],
                color=look["colour"],
                ms=6,
                label=name,
            )
        axes.set_xticks(range(len(levels)), [str(level) for level in levels])
        axes.set_xlim(-0.6, len(levels) - 0.4)
        fit_labels(axes)
        axes.set_xlabel(first)
        axes.set_ylabel(f"{axis}, 95% CI")
        if others:
            axes.legend(title=", ".join(others), frameon=False)
    return figure
