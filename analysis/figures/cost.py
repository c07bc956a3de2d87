"""Costs: against accuracy, as profiles, as distributions of times, and word by word."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.costs.ratios import TITLES
from analysis.costs.times import TimeSpread
from analysis.costs.words import TIME, ReadingProfile
from analysis.figures.drawing import (
    TALLEST,
    WIDTH,
    Drawing,
    Look,
    axes_at,
    intervals,
    looks,
    mark_not_data,
    marks,
    styled,
)
from analysis.figures.labels import height_of, size_in
from analysis.figures.panels import (
    axis_name,
    condition_key,
    condition_looks,
    fitted,
    grid,
    in_first_column,
    in_last_row,
    is_person,
    key_height,
    kinds_in_words,
    name_above,
    paged,
    series_of,
)
from analysis.intervals import OF_SHARES
from analysis.names import in_words
from analysis.readers import marked

_LEAST = 0.1
"""The axis of costs is at least this long, so that no cost at all looks like none."""


def cost_accuracy_figures(
    name: str, points: pd.DataFrame, factor: str, levels: tuple[str, ...]
) -> list[Drawing]:
    """Draw each reader's accuracy over its costs, a panel for each reader and cost, on common axes."""
    return paged(
        name,
        f"Cost against accuracy by {factor} and reader",
        series_of(points, "reader_group", "measure"),
        lambda name, title, series: _accuracy_figure(name, title, series, points, factor, levels),
    )


def _accuracy_figure(
    name: str,
    title: str,
    series: list[tuple[tuple[str, str], pd.DataFrame]],
    points: pd.DataFrame,
    factor: str,
    levels: tuple[str, ...],
) -> Drawing:
    kinds = dict(zip(points["reader_group"], points["reader_kind"], strict=True))
    look = looks(kinds)
    shapes = condition_looks([level for level in levels if (points[factor] == level).any()])
    people = points[points["reader_kind"].map(is_person)]
    key = key_height(shapes)
    with styled():
        figure, panels = grid(len(series), 1.75, below=key + 0.48, left=0.62, between=0.34)
        reach = _accuracy_reach(points)
        for place, (axes, ((group, measure), own)) in enumerate(zip(panels, series, strict=True)):
            if not is_person(kinds[group]):
                _accuracy_behind(axes, people, factor, shapes)
            _points(axes, own, factor, shapes, look[group], kinds[group])
            name_above(axes, group, kinds[group], measure, look[group].colour)
            _accuracy_frame(axes, reach, first=in_first_column(place), last=in_last_row(place, len(series)))
        text = f"Cost against the reader's own {levels[0]} condition (natural log ratio)"
        axis_name(figure, panels, text, key + 0.1)
        condition_key(figure, panels, shapes, lines=False)
        mark_not_data(figure, kinds)
    alternative = _accuracy_in_words(points, factor)
    return Drawing.of(name, title, _accuracy_note(points, levels[0]), alternative, figure)


def _accuracy_reach(points: pd.DataFrame) -> tuple[float, float]:
    values = points[["log_ratio", "cost_low", "cost_high"]].to_numpy(dtype=float)
    low, high = min(0.0, float(np.nanmin(values))), max(_LEAST, float(np.nanmax(values)))
    edge = 0.07 * (high - low)
    return low - edge, high + edge


def _accuracy_frame(axes: Axes, reach: tuple[float, float], *, first: bool, last: bool) -> None:
    axes.set_xlim(*reach)
    axes.set_ylim(-4, 104)
    axes.set_yticks(range(0, 101, 25))
    axes.axvline(0, color="#333333", lw=0.7, zorder=1)
    axes.grid(True, axis="both")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: apa.number(value, 2).removesuffix("0")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}%"))
    axes.tick_params(labelsize=8, labelleft=first, labelbottom=last)
    if first:
        axes.set_ylabel("Correct answers", fontsize=8.5)


def _points(axes: Axes, own: pd.DataFrame, factor: str, shapes: dict[str, Look], it: Look, kind: str) -> None:
    for row in own.to_dict("records"):
        x, y = row["log_ratio"], 100 * row["correct"]
        shape = shapes[str(row[factor])].marker
        intervals(axes, y, row["cost_low"], row["cost_high"], it.colour, across=True, width=1.1, zorder=3)
        intervals(
            axes, x, 100 * row["correct_low"], 100 * row["correct_high"], it.colour, width=1.1, zorder=3
        )
        marks(
            axes,
            x,
            y,
            shape,
            it.colour,
            "white" if kind == "model" else it.colour,
            size=8.5 if shape == "*" else 6,
            edge=1.2,
        )


def _accuracy_behind(axes: Axes, people: pd.DataFrame, factor: str, shapes: dict[str, Look]) -> None:
    for row in people.to_dict("records"):
        axes.plot(
            row["log_ratio"], 100 * row["correct"], ls="", marker=shapes[str(row[factor])].marker, ms=4.5, color="#C4C4C4",
            mec="none", zorder=2,
        )  # fmt: skip


def _accuracy_note(points: pd.DataFrame, base: str) -> str:
    kinds = set(points["reader_kind"])
    told = (
        f"A point is a reader in a condition. 0 is the reader's own {base}; 0.10 is 10.5% more, 0.69 twice as much. "
        f"Horizontal bars "
        "are 95% bootstrap intervals of the log ratio (participants and items drawn at once; items for a model); vertical "
        f"ones are within-participant intervals (for a model {OF_SHARES}). Failures count as wrong."
    )
    if kinds & {"human", "simulated"} and kinds - {"human", "simulated"}:
        who = "simulated readers" if "human" not in kinds else "people"
        told += f" Grey marks behind a model are those of {who}."
    return told + kinds_in_words(kinds)


def _accuracy_in_words(points: pd.DataFrame, factor: str) -> str:
    told = []
    for (group, measure), own in points.groupby(["reader_group", "measure"], sort=False):
        values = ", ".join(
            f"{row[factor]} {apa.number(row['log_ratio'])} and {apa.percent(row['correct'])}"
            for row in own.to_dict("records")
        )
        told.append(f"{group}, {TITLES[str(measure)].lower()}: {values}")
    return "Log ratio of cost and share of right answers. " + "; ".join(told) + "."


_FARTHEST = 4.0
"""Ends of the axis at most, from 1: a profile whose mean is near 0 reaches beyond anything."""


def cost_profile_figures(name: str, shapes: pd.DataFrame, factor: str, base: str) -> list[Drawing]:
    """Draw each reader's log ratios divided by their own mean, a panel for each reader and cost."""
    return paged(
        name,
        f"Cost profiles by {factor}, scaled to each reader's mean",
        series_of(shapes, "reader_group", "measure"),
        lambda name, title, series: _profile_figure(name, title, series, shapes, factor, base),
    )


def _profile_figure(
    name: str,
    title: str,
    series: list[tuple[tuple[str, str], pd.DataFrame]],
    shapes: pd.DataFrame,
    factor: str,
    base: str,
) -> Drawing:
    kinds = dict(zip(shapes["reader_group"], shapes["reader_kind"], strict=True))
    look = looks(kinds)
    levels = list(dict.fromkeys(shapes[factor]))
    names = ["\n".join(fitted(in_words(level), 18)) for level in levels]
    widest = max(len(line) for text in names for line in text.split("\n"))
    reach = _profile_reach(shapes)
    sure = shapes[shapes["reader_kind"].map(is_person) & ~shapes["unsure"].astype(bool)]
    people = next((own for _, own in sure.groupby(["reader_group", "measure"], sort=False)), sure)
    with styled():
        tall = 0.26 if all("\n" not in text for text in names) else 0.34
        figure, panels = grid(
            len(series), tall * len(levels) + 0.18, below=0.47, left=0.25 + 0.072 * max(widest, 5)
        )
        for place, (axes, ((group, measure), own)) in enumerate(zip(panels, series, strict=True)):
            if not is_person(kinds[group]):
                _profile_behind(axes, people, factor, levels)
            _profile(axes, own, factor, levels, look[group], kinds[group], reach)
            name_above(axes, group, kinds[group], measure, look[group].colour)
            _profile_frame(
                axes, names, reach, first=in_first_column(place), last=in_last_row(place, len(series))
            )
        axis_name(
            figure, panels, f"Cost against {in_words(base)} as a multiple of the reader's mean cost", 0.12
        )
        mark_not_data(figure, kinds)
    alternative = _profile_in_words(shapes, factor)
    note = _profile_note(shapes, base, reach)
    return Drawing.of(name, title, note, alternative, figure)


def _profile_reach(shapes: pd.DataFrame) -> tuple[float, float]:
    values = shapes.loc[~shapes["unsure"].astype(bool), ["scaled", "low", "high"]].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    low = max(min(0.0, float(values.min(initial=0.0))), 1 - _FARTHEST)
    high = min(max(2.0, float(values.max(initial=2.0))), 1 + _FARTHEST)
    return low - 0.15, high + 0.15


def _profile_frame(
    axes: Axes, names: list[str], reach: tuple[float, float], *, first: bool, last: bool
) -> None:
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(*reach)
    axes.axvline(1, color="#333333", lw=0.8, zorder=1)
    axes.axvline(0, color="#333333", lw=0.8, ls=(0, (1, 2)), zorder=1)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: apa.number(value, 0)))
    axes.tick_params(labelsize=8, labelleft=first, labelbottom=last)


def _profile(
    axes: Axes,
    own: pd.DataFrame,
    factor: str,
    levels: list[str],
    it: Look,
    kind: str,
    reach: tuple[float, float],
) -> None:
    if own["unsure"].any():
        axes.text(
            0.5, 0.5, f"no shape: its mean cost\n{_doubt(own)}", transform=axes.transAxes, ha="center", va="center", fontsize=7.5,
            color="#555555", style="italic", linespacing=1.1,
        )  # fmt: skip
        return
    for row in own.to_dict("records"):
        y = levels.index(row[factor])
        ends = np.clip([row["low"], row["high"]], *reach)
        intervals(
            axes, y, ends[0], ends[1], it.colour, across=True, width=1.4, zorder=3, solid_capstyle="butt"
        )
        if np.isfinite(row["scaled"]) and reach[0] <= row["scaled"] <= reach[1]:
            marks(
                axes,
                row["scaled"],
                y,
                it.marker,
                it.colour,
                "white" if kind == "model" else it.colour,
                edge=1.2,
            )


def _doubt(own: pd.DataFrame) -> str:
    """Say why a profile has no shape."""
    return "may be 0" if own["mean_low"].notna().all() else "has no interval"


def _profile_behind(axes: Axes, people: pd.DataFrame, factor: str, levels: list[str]) -> None:
    for row in people.to_dict("records"):
        y = levels.index(row[factor])
        axes.plot(
            [row["scaled"]] * 2, [y - 0.32, y + 0.32], color="#BDBDBD", lw=3, zorder=2, solid_capstyle="butt"
        )


def _profile_note(shapes: pd.DataFrame, base: str, reach: tuple[float, float]) -> str:
    kinds = set(shapes["reader_kind"])
    told = (
        f"Log ratios against {base} divided by their mean over the conditions shown: 1 (line) is the reader's average cost, "
        "0 (dotted) none. Bars are 95% bootstrap intervals. Sizes cannot be read from this figure, only shapes."
    )
    if shapes["unsure"].any():
        told += " A reader whose mean cost has an interval that includes 0, or none, has no shape to show."
    ends = shapes.loc[~shapes["unsure"].astype(bool), ["scaled", "low", "high"]].to_numpy(dtype=float)
    if np.nanmin(ends, initial=0.0) < reach[0] or np.nanmax(ends, initial=0.0) > reach[1]:
        told += " Bars end at the edge of the panel where they reach beyond it; the table has the numbers."
    people = shapes["reader_kind"].isin(["human", "simulated"]) & ~shapes["unsure"].astype(bool)
    if people.any() and kinds - {"human", "simulated"}:
        who = "simulated readers" if "human" not in kinds else "people"
        told += f" Grey ticks behind a model are those of {who}."
    return told + kinds_in_words(kinds)


def _profile_in_words(shapes: pd.DataFrame, factor: str) -> str:
    told = []
    for (group, measure), own in shapes.groupby(["reader_group", "measure"], sort=False):
        values = ", ".join(f"{row[factor]} {apa.number(row['scaled'])}" for row in own.to_dict("records"))
        values = f"no shape, since the mean cost {_doubt(own)}" if own["unsure"].any() else values
        told.append(f"{group}, {TITLES[str(measure)].lower()}: {values}")
    return "Cost of each condition as a multiple of the reader's mean cost. " + "; ".join(told) + "."


_ROW, _LEAST_ROW = 0.52, 0.105
"""Inches of a row: with few conditions, and where a page would else not hold them."""


def time_distribution_figure(
    name: str, spreads: Sequence[TimeSpread], factor: str, levels: Sequence[str]
) -> Drawing:
    """Draw the times of people in each condition, a panel for each group of participants and measure."""
    kinds = {one.group: one.kind for one in spreads}
    look = looks(kinds)
    panels = list(dict.fromkeys((one.group, one.measure) for one in spreads))
    shown = [level for level in levels if any(one.level == level for one in spreads)]
    between, top, below = 0.72, 0.42, 0.52
    room = (TALLEST - top - below - (len(panels) - 1) * between) / len(panels) - 0.1
    row = float(np.clip(room / len(shown), _LEAST_ROW, _ROW))
    size = size_in(row)
    lines = [fitted(in_words(level), 18) for level in shown]
    if row < height_of(max(map(len, lines)), size):
        lines = [fitted(in_words(level), 36) for level in shown]
    names = ["\n".join(one) for one in lines]
    left = 0.25 + 0.072 * max(5, *(len(line) for text in names for line in text.split("\n")))
    with styled():
        tall = row * len(shown) + 0.1
        whole = top + len(panels) * tall + (len(panels) - 1) * between + below
        figure = Figure(figsize=(WIDTH, whole))
        for place, (group, measure) in enumerate(panels):
            bottom = whole - top - (place + 1) * tall - place * between
            axes = axes_at(figure, left, bottom, WIDTH - left - 0.15, tall)
            own = [one for one in spreads if (one.group, one.measure) == (group, measure)]
            peak = max(float(one.density.max()) for one in own)
            for one in own:
                _row(axes, one, shown.index(one.level), peak, look[group].colour)
            _times_frame(axes, names, own)
            axes.tick_params(axis="y", labelsize=size)
            letter = f"{'ABCDEFGH'[place % 8]}  " if len(panels) > 1 else ""
            axes.set_title(f"{letter}{marked(group, kinds[group])}: {TITLES[measure].lower()}")
            axes.set_xlabel(f"{TITLES[measure]} (ms, log scale)")
        mark_not_data(figure, kinds)
    measures = " and ".join(dict.fromkeys(TITLES[one.measure].lower() for one in spreads))
    title = f"Distributions of {measures} by {factor}"
    alternative = _times_in_words(spreads)
    return Drawing.of(name, title, _times_note(spreads), alternative, figure)


def _row(axes: Axes, one: TimeSpread, row: int, peak: float, colour: str) -> None:
    base = row + 0.12
    axes.fill_between(
        one.grid, base - 0.58 * one.density / peak, base, color=colour, alpha=0.28, linewidth=0, zorder=2
    )
    axes.plot(one.grid, base - 0.58 * one.density / peak, color=colour, lw=0.9, zorder=3)
    p5, _, p25, p50, p75, _, p95 = one.percentiles
    axes.plot([p5, p95], [base, base], color="#222222", lw=0.9, zorder=4, solid_capstyle="butt")
    axes.plot([p25, p75], [base, base], color="#222222", lw=3.4, zorder=4, solid_capstyle="butt")
    axes.plot(p50, base, marker="o", ms=4.2, mfc="white", mec="#222222", mew=1.0, zorder=5)
    alpha = float(np.clip(14 / max(len(one.medians), 1), 0.06, 0.75))
    axes.vlines(one.medians, base + 0.1, base + 0.26, color=colour, lw=1.0, alpha=alpha, zorder=3)


def _times_frame(axes: Axes, names: list[str], own: Sequence[TimeSpread]) -> None:
    axes.set_xscale("log")
    low = min(float(min(one.percentiles[0], one.medians.min())) for one in own)
    high = max(float(max(one.percentiles[-1], one.medians.max())) for one in own)
    stretch = (high / low) ** 0.16 if high > low else 1.2
    axes.set_xlim(low / stretch, high * stretch)
    wide = high * stretch * stretch / low
    if wide > 4:
        subs = (1, 1.5, 2, 3, 5, 7) if wide < 15 else (1, 2, 5) if wide < 500 else (1,)
        axes.xaxis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(len(names) - 0.5, -0.56)
    axes.set_yticks([row + 0.12 for row in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")


def _times_note(spreads: Sequence[TimeSpread]) -> str:
    people = max(len(one.medians) for one in spreads)
    ticks = "Ticks under a curve are medians of single participants" + (
        " (paler where many lie together)." if people < 20 else "; darker where many lie together."
    )
    return (
        "Valid answers within the study's time bounds. Curves are densities of log times (Gaussian kernel), all to one "
        "scale in a "
        f"panel; the circle is the median, thick bars hold the middle 50%, thin ones the middle 90% of all times. {ticks}"
        + kinds_in_words({one.kind for one in spreads})
    )


def _times_in_words(spreads: Sequence[TimeSpread]) -> str:
    told = [
        f"{one.group}, {TITLES[one.measure].lower()}, {one.level}: median {apa.milliseconds(one.percentiles[3])}, middle 90% "
        f"from {apa.milliseconds(one.percentiles[0])} to {apa.milliseconds(one.percentiles[-1])}"
        for one in spreads
    ]
    return "; ".join(told) + "."


COLUMNS = 2
_MOST = 8
MOST_TOGETHER = 8
"""Conditions of one panel; more are drawn in several panels, the first condition in each."""


def reading_profile_figures(name: str, profile: ReadingProfile) -> list[Drawing]:
    """Draw means by place around a changed word: people's times, then each model's surprisal."""
    table = profile.table
    if table["place"].nunique() < 2:
        return []
    levels = [level for level in profile.levels if (table[profile.factor] == level).any()]
    shares = _shares(levels)
    series = [
        (key, own[own[profile.factor].isin(share)])
        for key, own in series_of(table, "measure", "reader_group")
        for share in shares
        if own[profile.factor].isin(share[1:] or share).any()
    ]
    found = []
    for number, start in enumerate(range(0, len(series), _MOST)):
        own = series[start : start + _MOST]
        title = f"Reading word by word around a changed word, by {profile.factor}"
        title += ", continued" if number else ""
        found.append(_reading_figure(f"{name}{f'_{number + 1}' if number else ''}", title, own, profile))
    return found


def _shares(levels: list[str]) -> list[list[str]]:
    """Return which conditions share a panel: all, or of many a few at a time, each beside the first."""
    if len(levels) <= MOST_TOGETHER:
        return [levels]
    panels = ceil((len(levels) - 1) / (MOST_TOGETHER - 1))
    each = ceil((len(levels) - 1) / panels)
    return [[levels[0], *levels[at : at + each]] for at in range(1, len(levels), each)]


def _reading_figure(
    name: str, title: str, series: list[tuple[tuple[str, str], pd.DataFrame]], profile: ReadingProfile
) -> Drawing:
    table = profile.table
    kinds = dict(zip(table["reader_group"], table["reader_kind"], strict=True))
    of_readers = looks(kinds)
    look = condition_looks([level for level in profile.levels if (table[profile.factor] == level).any()])
    key = key_height(look)
    places = sorted(table["place"].unique())
    with styled():
        figure, panels = grid(len(series), 2.05, below=key + 0.45, left=0.55, columns=COLUMNS, between=0.62)
        for place, (axes, ((measure, group), own)) in enumerate(zip(panels, series, strict=True)):
            _lines(axes, own, profile.factor, look)
            _reading_frame(axes, places, str(measure), last=in_last_row(place, len(series), COLUMNS))
            if in_first_column(place, COLUMNS) or measure != series[place - 1][0][0]:
                axes.set_ylabel("ms a word" if measure == TIME else "Bits a word", fontsize=8.5, labelpad=2)
            _name(axes, str(measure), group, kinds[group], of_readers[group].colour, "ABCDEFGH"[place])
        _one_scale(panels, [key for key, _ in series])
        axis_name(figure, panels, "Place of the word, counted from a changed word (0)", key + 0.1)
        condition_key(figure, panels, look, lines=True)
        mark_not_data(figure, {group: kinds[group] for (_, group), _ in series})
    alternative = _reading_in_words(series, profile.factor)
    note = _reading_note(table, profile)
    return Drawing.of(name, title, note, alternative, figure)


def _one_scale(panels: list[Axes], keys: list[tuple[str, str]]) -> None:
    """Give the panels among which a reader's conditions are shared one vertical scale."""
    for key in dict.fromkeys(keys):
        own = [axes for axes, one in zip(panels, keys, strict=True) if one == key]
        ends = [axes.get_ylim() for axes in own]
        for axes in own:
            axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _name(axes: Axes, measure: str, group: str, kind: str, colour: str, letter: str) -> None:
    what = "reading time" if measure == TIME else "surprisal"
    lines = fitted(f"{letter}  {marked(group, kind)}: {what}", 44)
    axes.annotate(
        "\n".join(lines), (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=8.5,
        weight="bold", color=colour, va="bottom", linespacing=1.0,
    )  # fmt: skip


def _lines(axes: Axes, own: pd.DataFrame, factor: str, look: dict[str, Look]) -> None:
    shown = {level: it for level, it in look.items() if (own[factor] == level).any()}
    gap = min(0.09, 0.5 / max(len(shown), 1))
    for turn, (level, it) in enumerate(shown.items()):
        rows = own[own[factor] == level].sort_values("place")
        if rows.empty:
            continue
        x = rows["place"].to_numpy(dtype=float) + gap * (turn - (len(shown) - 1) / 2)
        axes.vlines(x, rows["low"], rows["high"], color=it.colour, lw=1.1, zorder=3)
        axes.plot(
            x, rows["mean"], color=it.colour, ls=it.line, lw=1.2, marker=it.marker, ms=4.4, mec=it.colour,
            mfc="white" if list(look).index(level) % 2 else it.colour, mew=1.0, zorder=4,
        )  # fmt: skip


def _reading_frame(axes: Axes, places: list[int], measure: str, *, last: bool) -> None:
    axes.set_xlim(min(places) - 0.5, max(places) + 0.5)
    names = ["changed" if place == 0 else apa.number(place, 0) for place in places]
    axes.set_xticks(
        places, [f"+{name}" if place > 0 else name for place, name in zip(places, names, strict=True)]
    )
    axes.tick_params(labelsize=8, labelbottom=last)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=measure == TIME))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.axvspan(-0.5, 0.5, color="#F1F1F1", zorder=0, linewidth=0)


def _reading_note(table: pd.DataFrame, profile: ReadingProfile) -> str:
    base = profile.levels[0]
    shares = _shares([level for level in profile.levels if (table[profile.factor] == level).any()])
    told = (
        "Means of single words by their place: counted from the changed word before them, up to three words behind it; else from "
        f"the next one. In {base} the same words count as changed that another condition changes."
    )
    if len(shares) > 1:
        told += f" Conditions are drawn in {len(shares)} panels, {base} in each; the panels of one reader have one scale."
    if table["reader_kind"].map(is_person).any():
        told += " Bars of times are 95% within-participant intervals (Cousineau–Morey) of the conditions at a place."
    if not table["reader_kind"].map(is_person).all():
        told += " Bars of surprisal are the same within items, or Student's over items where items are not in all conditions."
    return told + kinds_in_words(set(table["reader_kind"]))


def _reading_in_words(series: list[tuple[tuple[str, str], pd.DataFrame]], factor: str) -> str:
    told = []
    for (measure, group), own in series:
        for level, rows in own.groupby(factor, sort=False):
            places = 0 if measure == TIME else 1
            values = ", ".join(
                f"{apa.number(row['place'], 0)}: {apa.number(row['mean'], places)}"
                for row in rows.to_dict("records")
            )
            told.append(f"{group}, {'ms' if measure == TIME else 'bits'}, {level}: {values}")
    return "Mean of words by place around a changed one. " + "; ".join(told) + "."
