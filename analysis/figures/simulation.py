"""Simulated studies: power curves, and effects recovered."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from analysis.figures.drawing import TALLEST, WIDTH, Drawing, MarkStyle, looks, palette, styled
from analysis.figures.labels import LABEL_SIZE, LINES, cut_to_lines, height_of, size_in, width_of
from analysis.figures.marks import INK, IntervalMarks, handle, key_below, name_rows, numbered, percent, points
from analysis.figures.panels import Room
from analysis.parameter_recovery import Recovered
from analysis.readers import headed, spoken

Line = Mapping[Hashable, Any]  # values by column
COLUMNS = 3
SCALES = {
    "logit": "log odds",
    "log_ms": "log ms",
    "latent": "scale points",
    "points": "percentage points",
    "share": "share of trials",
}
PANEL_HEIGHT, GAP = 1.85, 0.6
UNITS = {
    "participants": ("participant", "participants"),
    "items": ("item", "items"),
    "prompts": ("prompt wording", "prompt wordings"),
    "replicates": ("replicate", "replicates"),
}


def power_figure(
    name: str, title: str, table: pd.DataFrame, needed: pd.DataFrame, wanted: float, alpha: float
) -> Drawing:
    """Draw power against the number of participants (or the first size that varies), a line for each further size."""
    axis = next((unit for unit in UNITS if table[unit].nunique() > 1), "participants")
    others = [unit for unit in UNITS if unit != axis and table[unit].nunique() > 1]
    lines = table[others].drop_duplicates().sort_values(others).to_dict("records") if others else [{}]
    look = palette([_label(line) for line in lines])
    tests = table[["kind", "contrast", "readers"]].drop_duplicates().to_dict("records")
    of_a_contrast = len(tests) // max(1, table["contrast"].nunique())
    columns = min(2 if of_a_contrast in (2, 4) else COLUMNS, len(tests))
    below = 0.62 + 0.18 * (len(lines) > 4)
    room = Room(
        PANEL_HEIGHT, left=0.075 * WIDTH, below=below + 0.1, columns=columns, between=0.03 * WIDTH, right=0.03 * WIDTH,
        above=GAP, gap=0, top=0, shared="y",
    )  # fmt: skip
    with styled():
        figure, panels = room.panels(len(tests))
        for axes, test in zip(panels, tests, strict=True):
            test_rows = _of(table, test)
            _frame(axes, test, sorted(test_rows[axis].unique()))
            axes.axhline(wanted, color="#222222", lw=0.9, ls=(0, (4, 2)), zorder=1)
            axes.axhline(alpha, color="#777777", lw=0.8, ls=(0, (1, 2)), zorder=1)
            for turn, (line, mark) in enumerate(zip(lines, look, strict=True)):
                curve = _of(test_rows, line).sort_values(axis)
                shift = 0.012 * float(np.ptp(axes.get_xlim())) * (turn - (len(lines) - 1) / 2)
                power = IntervalMarks.of(curve, "power")
                points(axes, mark, curve[axis] + shift, power, join=1.3, size=4.5, edge=1.0, bar=1.4)
                reached = _of(_of(needed, test), line | {"of": axis, "reached": "yes"})["number"]
                points(axes, mark, reached, [-0.03] * len(reached), size=6.5, clip_on=False)
        for axes in panels[::columns]:
            axes.set_ylabel("Power", fontsize=8.5)
        middle = (below - 0.18) / figure.get_figheight()
        figure.text(0.53, middle, f"Number of {UNITS[axis][1]}", ha="center", va="center", fontsize=9)
        if others:
            handles = [handle(mark, lw=1.3, ms=4.5) for mark in look]
            key_below(figure, handles, min(len(lines), 4), bbox_to_anchor=(0.53, 0.0), handlelength=3.4)
    curves = [
        {**test, "line": mark.label, "rows": _of(_of(table, test), line).sort_values(axis).to_dict("records")}
        for test in tests
        for line, mark in zip(lines, look, strict=True)
    ]
    values = {"studies": sorted(table["studies"].unique()), "axis": axis, "wanted": wanted, "alpha": alpha}
    return Drawing.described(name, figure, {}, "power", title=title, told=curves, **values)


def _of(table: pd.DataFrame, values: Line) -> pd.DataFrame:
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def _label(line: Line) -> str:
    return ", ".join(f"{value:g} {UNITS[str(name)][int(value != 1)]}" for name, value in line.items())


def _frame(axes: Axes, test: Line, sizes: Sequence[float]) -> None:
    reach = max(sizes) - min(sizes) or 1
    axes.set(xlim=(min(sizes) - 0.1 * reach, max(sizes) + 0.1 * reach), ylim=(-0.03, 1.04))
    axes.set_xticks(sizes)
    axes.tick_params(axis="x", labelrotation=45 if len(sizes) > 6 else 0)
    axes.set_yticks(np.linspace(0, 1, 6))
    numbered(axes.yaxis, lambda value: percent(100 * value))
    axes.tick_params(labelsize=8)
    names = test["readers"].split(" − ")
    readers = headed(names[0]) if len(names) == 1 else " − ".join(map(spoken, names))
    kind = "equivalence" if test["kind"] == "equivalence" else "difference" if len(names) > 1 else ""
    width = float(axes.get_position().width) * WIDTH
    axes.set_title("\n".join(cut_to_lines(test["contrast"], width, 8.5, 2, bold=True)), fontsize=8.5, pad=15)
    label = f"{kind}, {readers}" if kind else readers
    axes.text(0, 1.03, label, transform=axes.transAxes, fontsize=8, va="bottom", color=INK)


_LABELS = 0.36  # share of the figure's width that the effects' names take at most
_APART = 1.25
"""All panels together may have at most this many times the effects of the longest panel to share rows."""


def _shared(of: Sequence[Sequence[str]]) -> list[str]:
    """Return the effects that are named once for all panels, top to bottom; empty where panels have few in common."""
    if any(len(set(labels)) < len(labels) for labels in of):
        return list(of[0]) if all(labels == of[0] for labels in of) else []
    longest = max(of, key=len)
    all_labels = list(dict.fromkeys([*longest, *(label for labels in of for label in labels)]))
    return all_labels if len(all_labels) <= _APART * len(longest) else []


def recovery_figure(name: str, recovered: Sequence[Recovered]) -> Drawing:
    """Draw the estimate of each effect with its interval and its true value, with one panel per measure."""
    panels = {
        measure: [effect for effect in recovered if effect.measure == measure]
        for measure in dict.fromkeys(effect.measure for effect in recovered)
    }
    if any(len(effects) > 1 for effects in panels.values()):
        panels = {measure: effects for measure, effects in panels.items() if len(effects) > 1}
    references = {
        measure: effects[0].reference if len({effect.reference for effect in effects}) == 1 else ""
        for measure, effects in panels.items()
    }
    panels = {
        measure: [
            replace(effect, label=effect.label.removesuffix(f" − {references[measure]}"))
            if references[measure]
            else effect
            for effect in effects
        ]
        for measure, effects in panels.items()
    }
    told = [effect for effect in recovered if effect.measure in panels]
    drawn = [effect for effects in panels.values() for effect in effects]
    people, put_in = looks({"simulated": "simulated"}), MarkStyle("#D55E00", "D")
    shared = _shared([[effect.label for effect in effects] for effects in panels.values()])
    most = len(shared) or max(map(len, panels.values()))
    row = (TALLEST - 0.75) / (most + 1)
    size, lines = LABEL_SIZE, LINES
    if row < 0.19 + height_of(lines, size):
        size = size_in(row)
        lines = max(int(row / height_of(1, size)), 1)
    room = _LABELS * WIDTH / (1 if shared else len(panels))
    names = {effect.label: "\n".join(cut_to_lines(effect.label, room, size, lines)) for effect in drawn}
    row = min(0.19 + height_of(max(text.count("\n") + 1 for text in names.values()), size), row)
    of_names = max(width_of(line, size) for text in names.values() for line in text.split("\n")) + 0.15
    panel = (WIDTH - of_names * (1 if shared else len(panels))) / len(panels) - 0.15
    titles, scales = dict[str, list[str]](), dict[str, list[str]]()
    for measure, effects in panels.items():
        against = f", difference from {references[measure]}" if references[measure] else ""
        titles[measure] = cut_to_lines(effects[0].title, panel, 9.5, bold=True)
        scales[measure] = cut_to_lines(SCALES[effects[0].scale] + against, panel, LABEL_SIZE)
    further = sum(height_of(max(map(len, texts.values())) - 1, LABEL_SIZE) for texts in (titles, scales))
    row = min(row, (TALLEST - 0.75 - further) / (most + 1))
    with styled():
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 0.93), wspace=0.08)
        figure = Figure(figsize=(WIDTH, 0.75 + further + row * (most + 1)), layout=layout)
        for turn, (measure, effects) in enumerate(panels.items()):
            axes = figure.add_subplot(1, len(panels), turn + 1)
            labels = [effect.label for effect in effects]
            listed = shared or labels
            y = range(len(effects)) if labels == listed else [listed.index(label) for label in labels]
            ends = np.array([(effect.estimate, effect.low, effect.high) for effect in effects], dtype=float).T
            points(axes, people["simulated"], IntervalMarks(*ends), y, bar=1.6, edge=1.0)
            points(axes, put_in, [effect.truth for effect in effects], y, size=8, face="none")
            axes.axvline(0, color=INK, lw=0.8)
            name_rows(axes, [names[label] for label in listed], size, 0.6)
            if turn and shared:
                axes.set_yticks([])
            axes.set_title("\n".join(titles[measure]))
            axes.set_xlabel("\n".join(scales[measure]))
            axes.xaxis.set_major_locator(MaxNLocator(4))
    kind = "simulated" if any(effect.measure != "lapses" for effect in drawn) else "baseline"
    return Drawing.described(name, figure, looks({kind: kind}), "effects_recovered", recovered=told)
