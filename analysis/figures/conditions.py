"""Conditions: means with planned contrasts, costs against the reference, and estimates of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from analysis import apa
from analysis.costs.ratios import LevelCost, ShownIntervals
from analysis.descriptives import (
    OVER_ITEMS,
    ConditionMean,
    is_letter_position,
    participant_means,
    participants_intervals,
    scored,
    why_no_interval,
)
from analysis.figures import marks
from analysis.figures.drawing import (
    CONTRASTS,
    PILOT_LABEL,
    TALLEST,
    WIDTH,
    Drawing,
    Effect,
    MarkStyle,
    filled,
    keep_width,
    looks,
    palette,
    style,
    styled,
)
from analysis.figures.labels import cut_to_lines, laid_out, places_of, size_in, width_of
from analysis.figures.marks import DASHED, INK, SOFT, STEPS, IntervalMarks
from analysis.figures.panels import axes_at, is_person, lettered, stacked
from analysis.plan import RATING, RECOVERED, Measure
from analysis.readers import headed

BROAD = 7.25  # inches of the whole figure
MOST_BESIDE, COLUMNS = 4, 7
"""Panels that leave room for contrasts at their right, and panels of one line of small multiples."""
MOST_EFFECTS, MOST_BELOW = 18, 9
"""Contrasts at the right of the panels, and below small multiples; the table has the others."""
MOST_LEVELS = 12
"""Conditions up to which the figure of the contrasts shows also those that no contrast compares."""
MOST_TOGETHER = 6.0
"""Inches of two measures above which each has a figure, so that the Answer's leaves room for the questions on its page."""
SIZE, HEAD = 8.4, 9.0
"""Points of letters; a page makes the figure a little narrower, and they must not fall below 7.5."""
_FOREST, _LINE, _ABOVE, _BELOW, _GAP = 3.4, 0.165, 0.4, 0.46, 0.13
_READERS, _LABELS = 1.2, 1.8
"""Inches for the names of readers at the left of contrasts, and for those of the contrasts of one reader."""
BUILT_IN = 7
"""A small black triangle whose tip points down: the mark of an effect that simulated readers were given."""
GLYPHS = {"x": "×", "+": "+", "1": "⅄"}  # marks of baselines, as a note writes them
_BLACK = "#1b1b1b"
_OVER_LINES = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
_HEAD: dict[str, Any] = {"fontsize": HEAD, "weight": "bold", "color": _BLACK, "va": "baseline"}
_SMALL: dict[str, Any] = {"fontsize": SIZE, "color": SOFT, "va": "baseline"}
_PILOT = MarkStyle(style()["pilot"]["colour"], style()["pilot"]["marker"], is_hollow=True)


@dataclass(frozen=True)
class ConditionMeans:
    """The means of one measure in each condition, with its planned contrasts."""

    measure: Measure
    factor: str
    levels: tuple[str, ...]  # from top to bottom
    cells: Sequence[ConditionMean]
    trials: pd.DataFrame  # for the dots
    pilot: pd.DataFrame  # of a visitor who is in no mean
    chance: float | None = None  # share that guessing gets right
    effects: tuple[Effect, ...] = ()
    axis: str = ""  # what contrasts are measured in; ``odds ratio`` has a logarithmic axis
    is_part: bool = False  # whether conditions are not drawn because no contrast compares them

    def of_contrasts(self) -> ConditionMeans:
        """Return the first condition and those that contrasts compare if there are many; otherwise, all."""
        named = {level for effect in self.effects for level in effect.levels} | {self.levels[0]}
        levels = tuple(level for level in self.levels if level in named)
        if len(self.levels) <= MOST_LEVELS or len(levels) < 3:
            return self
        cells = [cell for cell in self.cells if cell.level in named]
        return replace(self, levels=levels, cells=cells, is_part=True)

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
        people = {cell.group for cell in self.cells if is_person(cell.kind)}
        ranked = sorted(self.effects, key=lambda effect: effect.group not in {"", *people})
        chosen = ranked[: MOST_EFFECTS if self.is_beside else MOST_BELOW]
        return tuple(effect for effect in self.effects if effect in chosen)

    @property
    def has_one_reader(self) -> bool:
        """Whether its contrasts are those of one reader, and more than two, so that each takes one line."""
        labels = {effect.label for effect in self.drawn}
        is_one = self.is_beside and len({effect.reader for effect in self.drawn}) == 1
        fits = all(width_of(label, SIZE) < _LABELS - 0.1 for label in labels)
        return is_one and fits and 2 < len(labels) == len(self.drawn)

    def raw(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means of the modelled scale as the axis has them."""
        return np.exp(values) if self.measure.logged else 100.0 * values if self.measure.is_share else values


def condition_figure(name: str, rows: Sequence[ConditionMeans], of: str = "") -> Drawing:
    """Draw the mean of every reader in every condition, and the planned contrasts."""
    look = looks({cell.group: cell.kind for row in rows for cell in row.cells})
    top = 0.16 if {"simulated", "baseline"} & {mark.kind for mark in look.values()} else 0.04
    fixed = top + sum(_height(row, 0.0) for row in rows)
    steps = [_step(row) for row in rows]
    wished = wished_height(rows) + top
    if wished > TALLEST:
        steps = [step * max(0.1, TALLEST - fixed) / (wished - fixed) for step in steps]
    high = top + sum(_height(row, step) for row, step in zip(rows, steps, strict=True))
    with styled():
        figure = Figure(figsize=(BROAD, high))
        keep_width(figure)
        for row, step in zip(rows, steps, strict=True):
            _draw(figure, row, look, top, step)
            top += _height(row, step)
    cells = [cell for row in rows for cell in row.cells]
    people = [cell for cell in cells if is_person(cell.kind)]
    effects = [effect for row in rows for effect in row.drawn]
    values = {
        "rows": rows,
        "of": of,
        "measures": [rows[0].measure.title, *(row.measure.noun for row in rows[1:])],
        "intervals": participants_intervals(people),
        "no_interval": why_no_interval([cell for cell in people if not np.isfinite(cell.low)]),
        "units": max((cell.units for cell in people), default=0),
        "by_items": any(cell.interval == OVER_ITEMS for cell in cells),
        "no_spread": any(cell.kind == "model" and not np.isfinite(cell.low) for cell in cells),
        "has_chance": any(row.chance is not None and row.measure.name == "correct" for row in rows),
        "has_own_line": any(cell.kind != "baseline" and cell.level == rows[0].levels[0] for cell in cells),
        "effects": effects,
        "is_built_in_drawn": any(
            effect.built_in is not None and np.isfinite(effect.built_in) for effect in effects
        ),
        "lapsing": [
            row.measure.noun
            for row in rows
            if any(effect.built_in is not None and np.isnan(effect.built_in) for effect in row.drawn)
        ],
        "left": sum(len(row.effects) for row in rows) - len(effects),
        "rules": [
            f"{GLYPHS[str(mark.marker)]} {group}" for group, mark in look.items() if mark.kind == "baseline"
        ],
        "has_pilot": any(len(row.pilot) for row in rows),
        "write": _written,
    }
    drawing = Drawing.described(name, figure, look, "conditions", **values)
    return replace(drawing, effects=tuple(effects), halves=_halves(figure, rows))


def _halves(figure: Figure, rows: Sequence[ConditionMeans]) -> tuple[str, ...]:
    """Return the view boxes of the panels and of the contrasts at their right; none where the contrasts begin at several places."""
    begins = {_panels_end(row) if row.is_beside else None for row in rows}
    begin = begins.pop()
    if begins or begin is None:
        return ()
    drawn = filled(figure)
    at, width, height = (72 * inches for inches in (begin + _GAP / 2 - drawn.x0, drawn.width, drawn.height))
    return f"0 0 {at:.1f} {height:.1f}", f"{at:.1f} 0 {width - at:.1f} {height:.1f}"


def _panels_end(row: ConditionMeans) -> float:
    """Return where panels end next to which contrasts are drawn, in inches."""
    return BROAD - (_FOREST + (_LABELS if row.has_one_reader else _READERS) - _READERS)


def _written(row: ConditionMeans, mean: float) -> str:
    """Write a mean as text has it."""
    write = apa.milliseconds if row.measure.logged else apa.percent if row.measure.is_share else apa.number
    return write(mean)


def _columns(row: ConditionMeans) -> int:
    return len(row.panels) if row.is_beside else min(len(row.panels), COLUMNS)


def _lines(row: ConditionMeans) -> int:
    return -(-len(row.panels) // _columns(row))


def _forest_height(row: ConditionMeans) -> float:
    heads = 0 if row.has_one_reader else len({effect.label for effect in row.drawn})
    return _LINE * (len(row.drawn) + heads + 0.3)


def _step(row: ConditionMeans) -> float:
    """Return the inches between two conditions."""
    step = min(0.28, max(0.2, 1.6 / len(row.levels))) if _lines(row) == 1 else 0.2
    return max(step, min(0.5, _forest_height(row) / len(row.levels))) if row.is_beside else step


def _height(row: ConditionMeans, step: float) -> float:
    """Return the inches of all panels of a measure."""
    panels = len(row.levels) * step
    if row.is_beside:
        return _ABOVE + max(panels, _forest_height(row)) + _BELOW
    below = _ABOVE + _forest_height(row) + _BELOW if row.effects else 0.0
    return _lines(row) * (_ABOVE + panels) + 0.3 * (_lines(row) - 1) + _BELOW + below


def wished_height(rows: Sequence[ConditionMeans]) -> float:
    """Return the inches that measures take one below the other if nothing limits them."""
    return sum(_height(row, _step(row)) for row in rows)


def _draw(figure: Figure, row: ConditionMeans, look: dict[str, MarkStyle], top: float, step: float) -> None:
    """Draw all panels of one measure, which begin so many inches below the upper edge."""
    high = figure.get_figheight()
    columns, size = _columns(row), min(SIZE, size_in(step))
    broad = 1.15 if columns > 2 else 1.6
    texts = ["\n".join(cut_to_lines(level, broad, size, 2 if step >= 0.3 else 1)) for level in row.levels]
    names = 0.1 + max(width_of(line, size) for text in texts for line in text.split("\n"))
    of_contrasts = _LABELS if row.has_one_reader else _READERS
    room = BROAD - names - (_FOREST + of_contrasts - _READERS if row.is_beside else 0.05)
    width = min(4.2, (room - _GAP * (columns - 1)) / columns)
    height, limits = len(row.levels) * step, _limits(row)
    for index, groups in enumerate(row.panels):
        line, column = divmod(index, columns)
        upper = top + _ABOVE + line * (_ABOVE + height + 0.3)
        axes = axes_at(figure, names + column * (width + _GAP), high - upper - height, width, height)
        marks.name_rows(axes, texts if column == 0 else [""] * len(texts), size, 0.5)
        axes.grid(False, axis="x")
        axes.grid(True, axis="y")
        axes.set_xlim(limits)
        axes.tick_params(axis="x", length=3, labelsize=SIZE)
        axes.spines["left"].set_visible(False)
        marks.numbered(axes.xaxis, nbins=4 if width > 1 else 3, steps=STEPS)
        _panel(axes, row, groups, look, step)
    end = top + _lines(row) * (_ABOVE + height + 0.3) - 0.3
    centre = (names + (columns * (width + _GAP) - _GAP) / 2) / BROAD
    short_titles = {"correct": "Correct", RECOVERED.name: "Recovered"}
    axis = f"{short_titles.get(row.measure.name, row.measure.title)} (%)"
    if not row.measure.is_share:
        title = "Mean rating" if row.measure is RATING else row.measure.title
        unit = f"{row.measure.unit}; geometric means" if row.measure.logged else row.measure.unit
        axis = f"{title} ({unit})" if unit else title
    figure.text(centre, 1 - (end + 0.22) / high, axis, ha="center", va="top", fontsize=SIZE, color=SOFT)
    if row.effects:
        left, begin = names + 0.9, end + _BELOW + _ABOVE
        if row.is_beside:
            left, begin = names + columns * (width + _GAP) + of_contrasts, top + _ABOVE
        tall = _forest_height(row)
        forest = axes_at(figure, left, high - begin - tall, BROAD - 0.92 - left, tall)
        _forest(forest, row, look, of_contrasts if row.is_beside else 1.7)


def _single(row: ConditionMeans, group: str) -> pd.DataFrame:
    """Return the means of single participants: a row each, a column for every level."""
    rows = scored(
        row.trials[(row.trials["reader_group"] == group) & row.trials[row.factor].notna()], row.measure
    )
    return participant_means(rows, row.factor) if len(rows) else pd.DataFrame()


def _shown(row: ConditionMeans, cells: Sequence[ConditionMean]) -> IntervalMarks:
    """Return means as the axis has them."""
    scale = 100.0 if row.measure.is_share else 1.0
    return IntervalMarks(
        *scale * np.array([(cell.mean, cell.low, cell.high) for cell in cells], dtype=float).T
    )


def _limits(row: ConditionMeans) -> tuple[float, float]:
    """Return the ends of the axis that all panels of a measure share."""
    shown = _shown(row, row.cells)
    people = {cell.group for cell in row.cells if is_person(cell.kind)}
    single = [row.raw(_single(row, group).to_numpy(dtype=float)) for group in people]
    values = [shown.value, shown.low, shown.high, *single]
    if row.measure.scale == "points" or row.measure is RECOVERED:
        all_values = np.concatenate([np.ravel(value) for value in values])
        low = min(float(np.nanmin(all_values)), np.inf if row.chance is None else 100 * row.chance)
        return max(0.0, 25.0 * np.floor(min(low, 75.0) / 25.0)) - 4, 107.0
    return marks.widened(values, 0.06)


def _panel(
    axes: Axes, row: ConditionMeans, groups: tuple[str, ...], look: dict[str, MarkStyle], step: float
) -> None:
    """Draw one reader, or all baselines."""
    cells = {(cell.group, cell.level): cell for cell in row.cells if cell.group in groups}
    kind = look[groups[0]].kind
    rules = kind == "baseline"
    if row.chance is not None and row.measure.name == "correct":
        axes.axvline(100 * row.chance, color=SOFT, lw=0.9, ls=DASHED, zorder=1)
    if not rules and (groups[0], row.levels[0]) in cells:
        axes.axvline(_shown(row, [cells[groups[0], row.levels[0]]]).value, color="#8A8A8A", lw=0.9, zorder=1)
    if is_person(kind):
        _dots(axes, row, groups[0], look[groups[0]].colour)
        _pilot(axes, row)
    for turn, group in enumerate(groups):
        mark = replace(look[group], is_hollow=look[group].kind != "human", line="-")
        indices = [index for index, level in enumerate(row.levels) if (group, level) in cells]
        shown = _shown(row, [cells[group, row.levels[index]] for index in indices])
        y = np.array(indices) + (0.2 * (turn - (len(groups) - 1) / 2) if rules else -0.08)
        join = 0.9 if marks.are_numbers_in_order(row.levels) and not rules else 0.0
        marks.points(axes, mark, shown, y, bar=0.0 if rules else 1.7, join=join, edge=1.4, clip_on=False)
        for at, *ends in zip(y, shown.value, shown.low, shown.high, strict=True):
            if not rules:
                _value(axes, row, ends, at, step)
    room = float(axes.get_position().width) * BROAD + 0.05
    head, below = headed(groups[0]), _counted(row, groups, room)
    if rules:
        head, below = "Baselines", apa.counted(len(groups), "rule")
    elif kind == "simulated" and width_of("Simulated readers", HEAD, bold=True) >= room:
        head = "Simulated"
    marks.above(axes, cut_to_lines(head, room, HEAD, 1, bold=True)[0], 15, **_HEAD)
    marks.above(axes, cut_to_lines(below, room, SIZE, 1)[0], 4, **_SMALL)


def _counted(row: ConditionMeans, groups: Sequence[str], room: float) -> str:
    """Count participants, or items; those of a condition where no condition has them all."""
    cells = [cell for cell in row.cells if cell.group in groups]
    before, after, total = "n = ", "", len(_single(row, groups[0]))
    if not is_person(cells[0].kind):
        rows = row.trials[row.trials["reader_group"].isin(groups) & row.trials[row.factor].notna()]
        total = int(scored(rows, row.measure)["item_id"].nunique())
        before, after = "", " item" if total == 1 else " items"
    least, most = min(cell.units for cell in cells), max(cell.units for cell in cells)
    if most == total:
        return f"{before}{apa.count(total)}{after}"
    counts = apa.count(most) if least == most else f"{apa.count(least)}–{apa.count(most)}"
    told = f"{before}{counts}{after}"
    return f"{told} per condition" if width_of(f"{told} per condition", SIZE) < room else f"{told} each"


def _value(axes: Axes, row: ConditionMeans, ends: Sequence[float], y: float, step: float) -> None:
    """Write a mean above its mark, or where rows are low next to its interval if there is room within the panel."""
    mean, low, high = (end if np.isfinite(end) else ends[0] for end in ends)
    places = 0 if row.measure.is_share or row.measure.logged else 1
    printed = apa.rounded(mean, places if row.measure.logged else places + 1)  # as tables have it
    text = apa.number(float(printed), places)
    at, shift = (mean, y), (0.0, 4.5)
    where: dict[str, Any] = {"ha": "center", "va": "bottom"}
    if step < 0.13:
        return
    if step < 0.3:
        least, greatest = axes.get_xlim()
        inch = float(axes.get_position().width) * BROAD / (greatest - least)
        needed = width_of(text, SIZE) + 5 / 72
        has_left, has_right = needed < (low - least) * inch, needed < (greatest - high) * inch + _GAP
        is_right = has_right and (low + high < least + greatest or not has_left)
        at, shift = (high if is_right else low, y), (5 if is_right else -5, 2.5)  # clear of the dots below
        where = {"ha": "left" if is_right else "right", "va": "center_baseline"}
        if not (has_left or has_right):  # in the wider half of an interval that fills the panel
            at, shift = ((mean + (low if mean - low > high - mean else high)) / 2, y), (0, 0)
            where = {"ha": "center", "va": "center_baseline"}
    box = {"fc": "white", "ec": "none", "pad": 0.4}
    axes.annotate(
        text, at, shift, textcoords="offset points", fontsize=SIZE, color=_BLACK, zorder=6, bbox=box, **where
    )


def _dots(axes: Axes, row: ConditionMeans, group: str, colour: str) -> None:
    """Draw the means of single participants, larger where several coincide."""
    means = _single(row, group)
    for index, level in enumerate(row.levels):
        if level in means:
            values, counts = np.unique(
                row.raw(means[level].dropna().to_numpy(dtype=float)).round(6), return_counts=True
            )
            axes.scatter(
                values, np.full(len(values), index + 0.24), s=6.0 * np.minimum(counts, 12), color=colour, alpha=0.35,
                linewidths=0, zorder=2, clip_on=False,
            )  # fmt: skip


def _pilot(axes: Axes, row: ConditionMeans) -> None:
    """Lay the means of one pilot visitor over the panel of participants."""
    rows = scored(row.pilot[row.pilot[row.factor].notna()], row.measure) if len(row.pilot) else row.pilot
    if rows.empty:
        return
    means = rows.groupby(row.factor)["value"].mean()
    indices = [index for index, level in enumerate(row.levels) if level in means]
    x, y = row.raw(means[[row.levels[index] for index in indices]].to_numpy()), np.array(indices) + 0.1
    marks.points(axes, _PILOT, x, y, size=9, face="none", edge=1.0, zorder=6, clip_on=False)
    axes.annotate(
        PILOT_LABEL, (x[-1], y[-1]), (0, -6), textcoords="offset points", fontsize=SIZE, va="top", ha="center"
    )


def _forest(axes: Axes, row: ConditionMeans, look: dict[str, MarkStyle], names: float) -> None:
    """Draw the planned contrasts, with names so many inches at the left and grades at the right."""
    axes.set_label(CONTRASTS)
    odds = row.axis == "odds ratio"
    null = 1.0 if odds else 0.0
    ends = np.array(
        [(effect.estimate, effect.low, effect.high, effect.built_in) for effect in row.drawn], dtype=float
    )
    finite = ends[np.isfinite(ends) & ((ends > 0) | (not odds))]
    if odds:
        axes.set(xscale="log", xlim=(min(null, *finite) / 1.25, max(null, *finite) * 1.25))
        axes.xaxis.set_minor_formatter(NullFormatter())
        marks.numbered(axes.xaxis)
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=6))
    else:
        low, high = marks.widened([finite], 0.06, null)
        arrow = 0.1 * (high - low)  # room for the arrow of an open interval
        is_open = [bool((ends[:, 1:3] == end).any()) for end in (-np.inf, np.inf)]
        axes.set_xlim(low - arrow * is_open[0], high + arrow * is_open[1])
        marks.numbered(axes.xaxis, nbins=4)
    axes.axvline(null, color=_BLACK, lw=1.0, zorder=1)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=3, labelsize=SIZE)
    axes.set_yticks([])
    axes.set_xlabel("Odds ratio" if odds else f"Difference ({row.axis})", fontsize=SIZE, color=SOFT)
    inch = 1 / (float(axes.get_position().width) * BROAD)
    left, y, label = -names * inch, 0.0, ""

    def write(x: float, text: str, *, bold: bool = False) -> None:
        axes.text(
            x, y, text, transform=axes.get_yaxis_transform(), fontsize=SIZE, va="center", color=_BLACK,
            weight="bold" if bold else "normal", bbox=_OVER_LINES if bold else None,
        )  # fmt: skip

    for effect in row.drawn:
        if effect.label != label and not row.has_one_reader:
            label = effect.label
            write(left, cut_to_lines(label, names + 1 / inch + 0.8, SIZE, 1, bold=True)[0], bold=True)
            y += 1.0
        mark = replace(look.get(effect.group, MarkStyle(_BLACK, "D")), is_hollow=effect.group != "human")
        low = -np.inf if odds and effect.low <= 0 else effect.low
        dash = (0, (3, 1.6)) if effect.uncertain else "-"
        ends_drawn = IntervalMarks(effect.estimate, low, effect.high)
        marks.points(axes, mark, ends_drawn, y, bar=1.7, edge=1.4, dash=dash)
        if effect.built_in is not None:
            marks.points(axes, MarkStyle(_BLACK, BUILT_IN), effect.built_in, y - 0.3, size=5, edge=0.5)
        if row.has_one_reader:
            write(left, effect.label)
        else:
            write(left + 0.08 * inch, cut_to_lines(effect.reader, names - 0.14, SIZE, 1)[0])
        write(1 + 0.08 * inch, effect.grade, bold=effect.grade not in ("Open", "Not estimable"))
        y += 1.0
    axes.set_ylim(y - 0.2, -0.75)  # room for a triangle above the first interval
    of_reader = f"{row.drawn[0].reader}, " if row.has_one_reader else ""
    lines = (("Planned contrasts", 15, _HEAD), (f"{of_reader}adjusted 95% intervals", 4, _SMALL))
    for text, up, text_style in lines:
        axes.annotate(text, (left, 1), (0, up), "axes fraction", "offset points", **text_style)


DODGE = 0.09
_LEFT, _ACROSS = 0.09, 0.64  # left edge and width of a panel, as shares of the figure's width
LEAST_RANGE = 5.0  # the axis reaches at least this far from zero, so that no cost at all looks like none

Costs = tuple[Measure, Sequence[LevelCost], Sequence[LevelCost]]
"""A measure with every reader's costs, and those of a pilot visitor."""


def position_figure(
    name: str, panels: Sequence[Costs], factor: str, levels: Sequence[str], of: str = ""
) -> Drawing:
    """Draw the cost of every level against the reference, one panel per measure."""
    look = looks({cost.group: cost.kind for _, costs, _ in panels for cost in costs})
    changed = list(levels[1:])
    depth = laid_out(changed, places_of(len(changed), _LEFT * WIDTH, _ACROSS * WIDTH)).depth
    room = stacked(2.3, _LEFT * WIDTH, depth, widest=_ACROSS * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for turn, (axes, costs) in enumerate(zip(drawn, panels, strict=True)):
            _costs(axes, costs, changed, look)
            outcome = "Time added" if costs[0].logged else "Accuracy lost"
            axes.set_title(lettered(turn, len(panels), f"{outcome} against {levels[0]}"))
    values = {
        "panels": panels,
        "of": of,
        "reference": levels[0],
        "is_any_missing": any(
            len({cost.level for cost in costs if cost.group == group}) < len(changed)
            for _, costs, _ in panels
            for group in {cost.group for cost in costs}
        ),
        "intervals": ShownIntervals.of(
            (cost.kind, cost.is_tested, cost.low)
            for _, costs, _ in panels
            for cost in costs
            if cost.kind != "baseline"
        ),
        "what": "letter position" if is_letter_position(list(levels)) else "condition",
    }
    return Drawing.described(name, figure, look, "costs", **values)


def _costs(axes: Axes, costs: Costs, changed: list[str], look: dict[str, MarkStyle]) -> None:
    measure, level_costs, pilot = costs
    marks.name_columns(axes, changed)
    axes.axhline(0, color=INK, lw=0.8, zorder=1)
    axes.set_ylabel(f"{measure.title} added (%)" if measure.logged else "Percentage points lost")
    groups = list(dict.fromkeys(cost.group for cost in level_costs))
    ends = []
    for turn, group in enumerate(groups):
        group_costs, mark = [cost for cost in level_costs if cost.group == group], look[group]
        x = np.array([changed.index(cost.level) for cost in group_costs]) + DODGE * (
            turn - (len(groups) - 1) / 2
        )
        y = IntervalMarks(
            *np.array([(cost.cost, cost.low, cost.high) for cost in group_costs], dtype=float).T
        )
        rule = mark.kind == "baseline"
        join = (1.0 if rule else 1.5) if marks.are_numbers_in_order(changed) else 0.0
        marks.points(axes, mark, x, y, join=join, bar=0.0 if rule else 1.5)
        label = mark.label.replace(" (", "\n(") if len(mark.label) > 16 else mark.label
        ends.append((float(x[-1]), float(y.value[-1]), label, mark.colour))
    if pilot:
        x = np.array([changed.index(cost.level) for cost in pilot]) + 0.27
        marks.points(axes, _PILOT, x, [cost.cost for cost in pilot], size=9, face="none", edge=1.0, zorder=6)
        ends.append((float(x[-1]), pilot[-1].cost, PILOT_LABEL, _PILOT.colour))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
    marks.numbered(axes.yaxis, lambda value: apa.number(value, 0), integer=True, nbins=8, steps=[1, 2, 5, 10])
    marks.label_ends(axes, ends, len(changed) - 0.5)


APART = 0.6  # share of the room between two levels that the cells of the other factors take


def estimates_figure(table: pd.DataFrame, factors: Sequence[str], axis: str) -> Figure:
    """Draw estimates with their 95% intervals."""
    if not factors and len(table) > 1:
        table = table[table["term"] != "(Intercept)"]  # it would leave no room for the others
    estimates = table.rename(columns={"ci_low": "estimate_low", "ci_high": "estimate_high"})
    with styled():
        if not factors:
            figure = Figure(figsize=(WIDTH, 1.1 + 0.28 * len(table)), layout="constrained")
            axes = figure.add_subplot()
            (mark,) = palette([""])
            marks.points(
                axes, mark, IntervalMarks.of(estimates, "estimate"), range(len(table)), size=5, bar=1.5
            )
            axes.axvline(0.0, color=SOFT, lw=0.8, ls=DASHED)
            marks.name_rows(axes, [str(term) for term in table["term"]], 8.5, 0.6)
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
        for turn, mark in enumerate(palette(series)):
            rows = estimates[(cells == mark.label).to_numpy()]
            shift = APART * (turn - (len(series) - 1) / 2) / len(series)
            x = [levels.index(level) + shift for level in rows[first]]
            marks.points(axes, mark, x, IntervalMarks.of(rows, "estimate"), size=6, bar=1.5, label=mark.label)
        marks.name_columns(axes, [str(level) for level in levels], 0.6)
        axes.set(xlabel=first, ylabel=f"{axis}, 95% CI")
        if others:
            axes.legend(title=", ".join(others), frameon=False)
    return figure


MOST_POINTS = 2000  # residuals that are drawn; of more, as many at even steps


def model_checks_figure(
    name: str,
    title: str,
    residuals: NDArray[np.float64] | None,
    changes: Mapping[str, pd.DataFrame],
    alternative: str,
) -> Drawing:
    """Draw residuals against uniform ones, and for each unit the largest change of a contrast in standard errors."""
    (look,) = palette([""])
    with styled():
        figure = Figure(figsize=(WIDTH, 2.3), layout="constrained")
        panels = list(figure.subplots(1, (residuals is not None) + len(changes), squeeze=False)[0])
        if residuals is not None:
            axes = panels.pop(0)
            levels = (np.arange(min(len(residuals), MOST_POINTS)) + 0.5) / min(len(residuals), MOST_POINTS)
            axes.plot([0, 1], [0, 1], color=SOFT, lw=0.8, ls=DASHED)
            axes.plot(levels, np.quantile(residuals, levels), color=look.colour, lw=1.6)
            axes.set(xlabel="Expected", ylabel="Simulated residual")
        for axes, (unit, table) in zip(panels, changes.items(), strict=True):
            largest = np.sort(table.abs().max(axis=1).to_numpy())
            marks.points(axes, look, np.arange(1, len(largest) + 1), largest, size=3)
            axes.set_ylim(0, max(1.0, 1.08 * float(largest[-1])))
            marks.numbered(axes.xaxis, nbins=5, integer=True)
            axes.set(xlabel=f"{unit.capitalize()}s, ordered", ylabel="Largest change (SE)")
    values = {"has_residuals": residuals is not None, "title": title, "alternative": alternative}
    return Drawing.described(name, figure, {}, "model_checks", **values)
