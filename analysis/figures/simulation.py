"""Simulated studies: power curves, and effects recovered."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from analysis import apa
from analysis.figures.drawing import TALLEST, WIDTH, Drawing, intervals, mark_not_data, marks, style, styled
from analysis.figures.labels import LABEL_SIZE, LINES, cut_to_lines, height_of, size_in
from analysis.readers import headed, spoken
from analysis.recovery_check import Recovered

Line = Mapping[Hashable, Any]
"""Values by column."""
COLUMNS = 3
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
    axis = next((one for one in UNITS if table[one].nunique() > 1), "participants")
    others = [one for one in UNITS if one != axis and table[one].nunique() > 1]
    lines = table[others].drop_duplicates().sort_values(others).to_dict("records") if others else [{}]
    looks = [style()["people"], *style()["models"]]
    tests = table[["kind", "contrast", "readers"]].drop_duplicates().to_dict("records")
    of_a_contrast = len(tests) // max(1, table["contrast"].nunique())
    columns = min(2 if of_a_contrast in (2, 4) else COLUMNS, len(tests))
    rows = -(-len(tests) // columns)
    below = 0.62 + 0.18 * (len(lines) > 4)
    height = rows * (PANEL_HEIGHT + GAP) + below + 0.1
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        drawn: dict[str, Any] = {}
        for place, test in enumerate(tests):
            row, column = divmod(place, columns)
            width = (1 - 0.075) / columns
            bottom = (height - (row + 1) * (PANEL_HEIGHT + GAP)) / height
            axes = figure.add_axes((0.075 + column * width, bottom, width - 0.03, PANEL_HEIGHT / height))
            own = _of(table, test)
            _frame(
                axes, test, own, axis, wanted, alpha, first=column == 0, last=place + columns >= len(tests)
            )
            for turn, line in enumerate(lines):
                drawn[_label(line)] = _curve(
                    axes, _of(own, line), axis, turn, len(lines), looks[turn % len(looks)]
                )
                _needed_mark(axes, _of(_of(needed, test), line), axis, turn, looks[turn % len(looks)])
        figure.text(
            0.53, (below - 0.18) / height, f"Number of {UNITS[axis][1]}", ha="center", va="center", fontsize=9
        )
        if others:
            figure.legend(
                list(drawn.values()),
                list(drawn),
                loc="lower center",
                bbox_to_anchor=(0.53, 0.0),
                ncols=min(len(lines), 4),
                fontsize=8,
                frameon=False,
                handlelength=3.4,
            )
    note = _note(table, axis, wanted, alpha)
    alternative = _in_words(tests, table, lines, axis)
    return Drawing.of(name, title, note, alternative, figure)


def _of(table: pd.DataFrame, values: Line) -> pd.DataFrame:
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def _label(line: Line) -> str:
    return ", ".join(f"{value:g} {UNITS[str(name)][int(value != 1)]}" for name, value in line.items())


def _headed(readers: str) -> str:
    names = readers.split(" − ")
    return headed(readers) if len(names) == 1 else " − ".join(map(spoken, names))


def _frame(
    axes: Axes,
    test: Line,
    own: pd.DataFrame,
    axis: str,
    wanted: float,
    alpha: float,
    *,
    first: bool,
    last: bool,
) -> None:
    sizes = sorted(own[axis].unique())
    reach = max(sizes) - min(sizes) or 1
    axes.set_xlim(min(sizes) - 0.1 * reach, max(sizes) + 0.1 * reach)
    axes.set_xticks(sizes)
    if len(sizes) > 6:
        axes.tick_params(axis="x", labelrotation=45)
    axes.set_ylim(-0.03, 1.04)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%"))
    axes.tick_params(labelsize=8, labelleft=first)
    if first:
        axes.set_ylabel("Power", fontsize=8.5)
    equal = (
        "\nequivalence"
        if test["kind"] == "equivalence"
        else "\ndifference"
        if "−" in test["readers"]
        else "\n"
    )
    told = f"{equal}, {_headed(test['readers'])}" if equal != "\n" else f"\n{_headed(test['readers'])}"
    axes.set_title(test["contrast"], fontsize=8.5, pad=15)
    axes.text(0, 1.03, told.strip(), transform=axes.transAxes, fontsize=8, va="bottom", color="#333333")
    axes.axhline(wanted, color="#222222", lw=0.9, ls=(0, (4, 2)), zorder=1)
    axes.axhline(alpha, color="#777777", lw=0.8, ls=(0, (1, 2)), zorder=1)


def _curve(axes: Axes, own: pd.DataFrame, axis: str, turn: int, count: int, spec: dict[str, Any]) -> Any:
    own = own.sort_values(axis)
    low, high = axes.get_xlim()
    shift = 0.012 * (high - low) * (turn - (count - 1) / 2)
    x = own[axis].to_numpy(dtype=float) + shift
    y = own["power"].to_numpy(dtype=float)
    line = spec["line"] if isinstance(spec["line"], str) else (0, tuple(spec["line"]))
    axes.vlines(x, own["power_low"], own["power_high"], color=spec["colour"], lw=1.4, zorder=3)
    (drawn,) = axes.plot(
        x,
        y,
        color=spec["colour"],
        ls=line,
        lw=1.3,
        marker=spec["marker"],
        ms=4.5,
        mfc="white" if turn % 2 else spec["colour"],
        mec=spec["colour"],
        zorder=4,
    )
    return drawn


def _needed_mark(axes: Axes, own: pd.DataFrame, axis: str, turn: int, spec: dict[str, Any]) -> None:
    """Mark on the lower edge, with the line's own marker, the number with which the wanted power is reached."""
    found = own[(own["of"] == axis) & (own["reached"] == "yes")]
    for number in found["number"]:
        marks(
            axes,
            [number],
            [-0.03],
            spec["marker"],
            spec["colour"],
            "white" if turn % 2 else spec["colour"],
            size=6.5,
            clip_on=False,
        )


def _note(table: pd.DataFrame, axis: str, wanted: float, alpha: float) -> str:
    studies = sorted(table["studies"].unique())
    count = f"{studies[0]:,}" if len(studies) == 1 else f"{studies[0]:,} to {studies[-1]:,}"
    return (
        f"Power over {count} simulated studies a point, with 95% Wilson intervals. Dashed: the wanted power, {wanted:g}; dotted: "
        f"the level, {alpha:g}. A mark on the lower edge is the number of {axis} with which its line reaches the wanted power."
    )


def _in_words(tests: Sequence[Line], table: pd.DataFrame, lines: Sequence[Line], axis: str) -> str:
    told = []
    for test in tests:
        for line in lines:
            own = _of(_of(table, test), line).sort_values(axis)
            values = ", ".join(
                f"{100 * power:.0f}% with {size:g}"
                for size, power in zip(own[axis], own["power"], strict=True)
            )
            among = f" ({_label(line)})" if line else ""
            told.append(f"{test['contrast']}, {test['readers']}, {test['kind']}{among}: {values}")
    return f"Power by number of {axis}. " + "; ".join(told) + "."


_LABELS = 0.36
"""Share of the figure's width that the effects' names take at most."""
_APART = 1.25
"""How many times the effects of the longest panel all panels together may have to stand in the same rows."""


def _shared(of: Sequence[Sequence[str]]) -> list[str]:
    """Return the effects that stand once beside all panels, top to bottom; empty where panels have few in common."""
    if any(len(set(own)) < len(own) for own in of):
        return list(of[0]) if all(own == of[0] for own in of) else []
    longest = max(of, key=len)
    every = list(dict.fromkeys([*longest, *(label for own in of for label in own)]))
    return every if len(every) <= _APART * len(longest) else []


def _fitted(row: float) -> tuple[float, int]:
    """Return the size of letters and the most lines of a name in rows of so many inches."""
    size = size_in(row)
    return size, max(int(row / height_of(1, size)), 1)


def recovery_figure(name: str, recovered: Sequence[Recovered]) -> Drawing:
    """Draw each effect's estimate with its interval and a mark where it was put in, one panel a measure."""
    measures = list(dict.fromkeys(one.measure for one in recovered))
    colour = style()["people"]["colour"]
    shared = _shared([[one.label for one in recovered if one.measure == measure] for measure in measures])
    with styled():
        most = len(shared) or max(
            len([one for one in recovered if one.measure == measure]) for measure in measures
        )
        layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 0.93), wspace=0.08)
        room = _LABELS * WIDTH / (1 if shared else len(measures))
        row = (TALLEST - 0.75) / (most + 1)
        size, lines = (LABEL_SIZE, LINES) if row >= 0.19 + height_of(LINES, LABEL_SIZE) else _fitted(row)
        names = {one.label: "\n".join(cut_to_lines(one.label, room, size, lines)) for one in recovered}
        deep = max(name.count("\n") + 1 for name in names.values())
        figure = Figure(
            figsize=(WIDTH, 0.75 + min(0.19 + height_of(deep, size), row) * (most + 1)), layout=layout
        )
        for turn, measure in enumerate(measures):
            axes = figure.add_subplot(1, len(measures), turn + 1)
            own = [one for one in recovered if one.measure == measure]
            labels = [one.label for one in own]
            listed = shared or labels
            rows = range(len(own)) if labels == listed else [listed.index(label) for label in labels]
            y = [len(listed) - 1 - row_of for row_of in rows]
            for place, one in zip(y, own, strict=True):
                if one.low is not None and one.high is not None:
                    intervals(axes, place, one.low, one.high, colour, across=True, width=1.6, zorder=3)
                axes.plot(one.estimate, place, marker="o", ms=5.5, color=colour, zorder=4)
                axes.plot(one.truth, place, marker="D", ms=8, mfc="none", mec="#D55E00", mew=1.3, zorder=5)
            axes.axvline(0, color="#333333", lw=0.8)
            axes.grid(True, axis="x")
            axes.grid(False, axis="y")
            if turn == 0 or not shared:
                axes.set_yticks(
                    np.arange(len(listed))[::-1], [names[label] for label in listed], fontsize=size
                )
            else:
                axes.set_yticks([])
            axes.set_ylim(-0.6, len(listed) - 0.4)
            axes.set_title(own[0].title)
            axes.set_xlabel("log odds" if own[0].scale == "logit" else "log ms")
        mark_not_data(figure, {"simulated": "simulated"})
    title = "Effects put into simulated readers and effects recovered"
    alternative = "; ".join(
        f"{one.title} {one.label}: to be expected {apa.number(one.truth)}, recovered {apa.number(one.estimate)}"
        for one in recovered
    )
    note = "Diamonds are what the effects put in lead to in each model; dots with bars are estimates with 95% confidence intervals."
    return Drawing.of(name, title, note, alternative, figure)
