"""Costs: against accuracy, as profiles, as distributions of times, and word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.costs.ratios import TITLES, ShownIntervals, TimeSpread
from analysis.costs.words import TIME, ReadingProfile
from analysis.figures import marks
from analysis.figures.drawing import TALLEST, Drawing, MarkStyle, looks, styled
from analysis.figures.labels import height_of, size_in
from analysis.figures.marks import INK, STEPS, IntervalMarks
from analysis.figures.panels import (
    Room,
    Series,
    axis_name,
    condition_key,
    condition_looks,
    fitted,
    is_person,
    key_height,
    lettered,
    name_above,
    paged,
    series_of,
)
from analysis.intervals import OF_SHARES
from analysis.readers import PARTICIPANT_KINDS

_LEAST = 0.1  # the axis of costs is at least this long, so that no cost at all looks like none


def _readers(table: pd.DataFrame) -> dict[str, MarkStyle]:
    return looks(dict(zip(table["reader_group"], table["reader_kind"], strict=True)))


def cost_accuracy_figures(
    name: str, points: pd.DataFrame, factor: str, levels: tuple[str, ...]
) -> list[Drawing]:
    """Draw each reader's accuracy over its costs, a panel for each reader and cost, on common axes."""
    look = _readers(points)
    shapes = condition_looks([level for level in levels if (points[factor] == level).any()])
    people = points[points["reader_kind"].isin(PARTICIPANT_KINDS)]
    reach = marks.widened([points[["log_ratio", "cost_low", "cost_high"]]], 0.07, 0.0, _LEAST)
    key = key_height(shapes)

    def draw(name: str, title: str, series: Series) -> Drawing:
        with styled():
            figure, panels = Room(1.75, below=key + 0.48, between=0.34, widest=3.6).panels(len(series))
            for axes, ((group, measure), reader_points) in zip(panels, series, strict=True):
                background = people if not is_person(look[group].kind) else people[:0]
                for level, shape in shapes.items():
                    rows, grey = (
                        background[background[factor] == level],
                        replace(shape, colour="#C4C4C4", is_hollow=False),
                    )
                    _points(axes, grey, rows, size=4.5, edge=0, bar=0, zorder=2)
                    mark = replace(look[group], marker=shape.marker)
                    size = 8.5 if shape.marker == "*" else 6
                    _points(
                        axes,
                        mark,
                        reader_points[reader_points[factor] == level],
                        size=size,
                        edge=1.2,
                        bar=1.1,
                    )
                name_above(axes, look[group], measure)
                axes.set(xlim=reach, ylim=(-4, 104), yticks=range(0, 101, 25))
                axes.axvline(0, color=INK, lw=0.7, zorder=1)
                axes.grid(True, axis="both")
                marks.numbered(
                    axes.xaxis, lambda value: apa.number(value, 2).removesuffix("0"), nbins=4, steps=STEPS
                )
                marks.numbered(axes.yaxis, marks.percent)
                axes.tick_params(labelsize=8)
            for axes in panels[:: Room.columns]:
                axes.set_ylabel("Correct answers", fontsize=8.5)
            text = f"Cost against the reader's own {levels[0]} condition (natural log ratio)"
            axis_name(figure, panels, text, key + 0.1)
            condition_key(figure, panels, shapes, lines=False)
        drawn = pd.concat([rows for _, rows in series])
        values = {
            "points": points,
            "factor": factor,
            "base": levels[0],
            "of_shares": OF_SHARES,
            "intervals": ShownIntervals.of(
                zip(drawn["reader_kind"], drawn["is_tested"], drawn["cost_low"], strict=True)
            ),
        }
        return Drawing.described(name, figure, look, "cost_accuracy", title=title, **values)

    title = f"Cost against accuracy by {factor} and reader"
    return paged(name, title, series_of(points, "reader_group", "measure"), draw)


def _points(axes: Axes, look: MarkStyle, rows: pd.DataFrame, **style: float) -> None:
    costs = IntervalMarks(rows["log_ratio"], rows["cost_low"], rows["cost_high"])
    marks.points(axes, look, costs, IntervalMarks.of(rows, "correct", 100), **style)


_FARTHEST = 4.0  # ends of the axis at most, from 1: a profile whose mean is near 0 reaches beyond anything


def cost_profile_figures(name: str, shapes: pd.DataFrame, factor: str, base: str) -> list[Drawing]:
    """Draw each reader's log ratios divided by their own mean, a panel for each reader and cost."""
    look = _readers(shapes)
    levels = list(dict.fromkeys(shapes[factor]))
    names = ["\n".join(fitted(level, 18)) for level in levels]
    widest = max(len(line) for text in names for line in text.split("\n"))
    certain = shapes[~shapes["unsure"].astype(bool)]
    ends = certain[["scaled", "low", "high"]].to_numpy(dtype=float)
    low, high = marks.widened([ends], 0.0, 0.0, 2.0)
    reach = max(low, 1 - _FARTHEST) - 0.15, min(high, 1 + _FARTHEST) + 0.15
    sure = certain[certain["reader_kind"].isin(PARTICIPANT_KINDS)]
    people = next((rows for _, rows in sure.groupby(["reader_group", "measure"], sort=False)), sure)
    tall = 0.26 if all("\n" not in text for text in names) else 0.34
    room = Room(tall * len(levels) + 0.18, below=0.47, left=0.25 + 0.072 * max(widest, 5), widest=3.6)

    def draw(name: str, title: str, series: Series) -> Drawing:
        with styled():
            figure, panels = room.panels(len(series))
            for axes, ((group, measure), profile) in zip(panels, series, strict=True):
                if not is_person(look[group].kind):
                    y = np.array([levels.index(level) for level in people[factor]])
                    axes.vlines(people["scaled"], y - 0.32, y + 0.32, color="#BDBDBD", lw=3, zorder=2)
                name_above(axes, look[group], measure)
                marks.name_rows(axes, names)
                axes.set_xlim(*reach)
                axes.axvline(1, color=INK, lw=0.8, zorder=1)
                axes.axvline(0, color=INK, lw=0.8, ls=(0, (1, 2)), zorder=1)
                marks.numbered(axes.xaxis, lambda value: apa.number(value, 0), nbins=5, integer=True)
                axes.tick_params(labelsize=8)
                if profile["unsure"].any():
                    marks.in_the_middle(axes, f"no shape: its mean cost\n{_doubt(profile)}", style="italic")
                    continue
                inside = profile["scaled"].where(profile["scaled"].between(*reach))
                clipped = profile[["low", "high"]].clip(*reach)
                ends_of = IntervalMarks(inside, clipped["low"], clipped["high"])
                marks.points(
                    axes, look[group], ends_of, [levels.index(level) for level in profile[factor]], edge=1.2
                )
            text = f"Cost against {base} as a multiple of the reader's mean cost"
            axis_name(figure, panels, text, 0.12)
        values = {
            "title": title,
            "shapes": shapes,
            "base": base,
            "factor": factor,
            "doubt": _doubt,
            "is_cut": np.nanmin(ends, initial=0.0) < reach[0] or np.nanmax(ends, initial=0.0) > reach[1],
            "has_people": len(sure) > 0,
        }
        return Drawing.described(name, figure, look, "cost_profiles", **values)

    title = f"Cost profiles by {factor}, scaled to each reader's mean"
    return paged(name, title, series_of(shapes, "reader_group", "measure"), draw)


def _doubt(profile: pd.DataFrame) -> str:
    """Return why a profile has no shape."""
    return "may be 0" if profile["mean_low"].notna().all() else "has no interval"


_ROW, _LEAST_ROW = 0.52, 0.105
"""Inches of a row: with few conditions, and where a page would else not hold them."""


def time_distribution_figure(
    name: str, spreads: Sequence[TimeSpread], factor: str, levels: Sequence[str]
) -> Drawing:
    """Draw the times of people in each condition, a panel for each group of participants and measure."""
    look = looks({spread.group: spread.kind for spread in spreads})
    keys = list(dict.fromkeys((spread.group, spread.measure) for spread in spreads))
    shown = [level for level in levels if any(spread.level == level for spread in spreads)]
    between, top, below = 0.72, 0.42, 0.52
    room = (TALLEST - top - below - (len(keys) - 1) * between) / len(keys) - 0.1
    row = float(np.clip(room / len(shown), _LEAST_ROW, _ROW))
    size = size_in(row)
    lines = [fitted(level, 18) for level in shown]
    if row < height_of(max(map(len, lines)), size):
        lines = [fitted(level, 36) for level in shown]
    names = ["\n".join(line) for line in lines]
    left = 0.25 + 0.072 * max(5, *(len(line) for text in names for line in text.split("\n")))
    frame = Room(
        row * len(shown) + 0.1, left, below, 1, right=0.15, above=top, gap=between - top, top=0, shared=""
    )
    with styled():
        figure, panels = frame.panels(len(keys))
        for index, (axes, (group, measure)) in enumerate(zip(panels, keys, strict=True)):
            panel_spreads = [
                spread for spread in spreads if (spread.group, spread.measure) == (group, measure)
            ]
            peak = max(float(spread.density.max()) for spread in panel_spreads)
            for spread in panel_spreads:
                _row(axes, spread, shown.index(spread.level), peak, look[group].colour)
            _log_times(axes, panel_spreads)
            marks.name_rows(axes, names, size, 0.56)
            axes.set_ylim(len(names) - 0.5, -0.56)
            axes.set_yticks([row_index + 0.12 for row_index in range(len(names))], names, fontsize=size)
            axes.set_title(lettered(index, len(keys), f"{look[group].label}: {TITLES[measure].lower()}"))
            axes.set_xlabel(f"{TITLES[measure]} (ms, log scale)")
    values = {"spreads": spreads, "factor": factor, "people": max(len(spread.medians) for spread in spreads)}
    return Drawing.described(name, figure, look, "time_distributions", **values)


def _row(axes: Axes, spread: TimeSpread, row: int, peak: float, colour: str) -> None:
    base, dark = row + 0.12, MarkStyle("#222222", "o", is_hollow=True)
    curve = base - 0.58 * spread.density / peak
    axes.fill_between(spread.grid, curve, base, color=colour, alpha=0.28, linewidth=0, zorder=2)
    axes.plot(spread.grid, curve, color=colour, lw=0.9, zorder=3)
    p5, _, p25, p50, p75, _, p95 = spread.percentiles
    axes.hlines([base] * 2, [p5, p25], [p95, p75], color=dark.colour, lw=[0.9, 3.4], zorder=4)
    marks.points(axes, dark, p50, base, size=4.2, edge=1.0)
    alpha = float(np.clip(14 / max(len(spread.medians), 1), 0.06, 0.75))
    axes.vlines(spread.medians, base + 0.1, base + 0.26, color=colour, lw=1.0, alpha=alpha, zorder=3)


def _log_times(axes: Axes, spreads: Sequence[TimeSpread]) -> None:
    axes.set_xscale("log")
    low = min(float(min(spread.percentiles[0], spread.medians.min())) for spread in spreads)
    high = max(float(max(spread.percentiles[-1], spread.medians.max())) for spread in spreads)
    stretch = (high / low) ** 0.16 if high > low else 1.2
    axes.set_xlim(low / stretch, high * stretch)
    wide = high * stretch * stretch / low
    subs = (1, 1.5, 2, 3, 5, 7) if wide < 15 else (1, 2, 5) if wide < 500 else (1,)
    marks.numbered(axes.xaxis, lambda value: f"{value:,.0f}")
    axes.xaxis.set_major_locator(
        LogLocator(10, subs=subs, numticks=12) if wide > 4 else MaxNLocator(nbins=7, steps=STEPS)
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=8)


COLUMNS = 2
_MOST = 8
MOST_TOGETHER = 8  # conditions of one panel; more are drawn in several panels, the first condition in each


_UNITS: dict[bool, dict[str, Any]] = {  # by whether it is a time
    True: {"noun": "reading time", "axis": "ms a word", "short": "ms", "decimals": 0},
    False: {"noun": "surprisal", "axis": "Bits a word", "short": "bits", "decimals": 1},
}


def reading_profile_figures(name: str, profile: ReadingProfile) -> list[Drawing]:
    """Draw means by place around a changed word or a named region: people's times, then each model's surprisal."""
    table, factor = profile.table, profile.factor
    if table["place"].nunique() < 2:
        return []
    levels = [level for level in profile.levels if (table[factor] == level).any()]
    shares = _shares(levels)
    series = [
        (key, rows[rows[factor].isin(share)])
        for key, rows in series_of(table, "measure", "reader_group")
        for share in shares
        if rows[factor].isin(share[1:] or share).any()
    ]
    look, shapes = _readers(table), condition_looks(levels)
    key = key_height(shapes)
    places = sorted(table["place"].unique())
    regions = profile.regions or {"changed": (0, 1)}
    names = [
        "changed"
        if place == 0 and not profile.regions
        else f"{'+' if place > 0 else ''}{apa.number(place, 0)}"
        for place in places
    ]
    room = Room(2.05, below=key + 0.45, left=0.55, columns=COLUMNS, between=0.62, shared="x", widest=3.6)

    def draw(name: str, title: str, series: Series) -> Drawing:
        with styled():
            figure, panels = room.panels(len(series))
            for index, (axes, ((measure, group), rows)) in enumerate(zip(panels, series, strict=True)):
                _lines(axes, rows, factor, shapes)
                unit = _UNITS[measure == TIME]
                axes.set_xlim(min(places) - 0.5, max(places) + 0.5)
                axes.set_xticks(places, names)
                axes.tick_params(labelsize=8)
                marks.numbered(axes.yaxis, marks.general, nbins=6, integer=measure == TIME)
                _shade(axes, regions, is_named=bool(profile.regions))
                if index % COLUMNS == 0 or measure != series[index - 1][0][0]:
                    axes.set_ylabel(unit["axis"], fontsize=8.5, labelpad=2)
                title_of = fitted(f"{'ABCDEFGH'[index]}  {look[group].label}: {unit['noun']}", 44)
                marks.above(axes, "\n".join(title_of), 5, weight="bold", color=look[group].colour)
            for keys in dict.fromkeys(keys for keys, _ in series):  # a reader's panels have one scale
                reader_axes = [
                    axes for axes, (panel_keys, _) in zip(panels, series, strict=True) if panel_keys == keys
                ]
                ends = np.array([axes.get_ylim() for axes in reader_axes])
                for axes in reader_axes:
                    axes.set_ylim(ends.min(), ends.max())
            counted = next(
                (f"the first word of {region}" for region, span in profile.regions.items() if span[0] == 0),
                "a changed word",
            )
            axis_name(figure, panels, f"Place of the word, counted from {counted} (0)", key + 0.1)
            condition_key(figure, panels, shapes, lines=True)
        shown = {group: look[group] for (_, group), _ in series}
        conditions = [
            {"group": group, "unit": _UNITS[measure == TIME], "level": level, "rows": rows.to_dict("records")}
            for (measure, group), profile_rows in series
            for level, rows in profile_rows.groupby(factor, sort=False)
        ]
        kinds = {mark.kind for mark in look.values()}
        values = {"base": profile.levels[0], "shares": len(shares), "told": conditions, "every": kinds}
        values["regions"] = list(profile.regions)
        return Drawing.described(name, figure, shown, "reading_profiles", title=title, **values)

    where = "the named regions" if profile.regions else "a changed word"
    return paged(name, f"Reading word by word around {where}, by {factor}", series, draw, _MOST)


def _shade(axes: Axes, regions: Mapping[str, tuple[int, int]], *, is_named: bool) -> None:
    """Shade the places of regions, with their names above the points."""
    in_order = sorted(regions.items(), key=lambda region: region[1])
    for turn, (region, (begin, end)) in enumerate(in_order):
        shade = "#F1F1F1" if turn % 2 == 0 else "#E6E6E6"
        axes.axvspan(begin - 0.5, end - 0.5, color=shade, zorder=0, linewidth=0)
        if is_named:
            x, y = (begin + end - 1) / 2, 0.98
            where = axes.get_xaxis_transform()
            axes.text(x, y, region, transform=where, ha="center", va="top", fontsize=7)
    if is_named:
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.1 * (high - low))


def _shares(levels: list[str]) -> list[list[str]]:
    """Return which conditions share a panel: all, or a few of many at a time, each with the first."""
    if len(levels) <= MOST_TOGETHER:
        return [levels]
    panels = ceil((len(levels) - 1) / (MOST_TOGETHER - 1))
    per_panel = ceil((len(levels) - 1) / panels)
    return [[levels[0], *levels[at : at + per_panel]] for at in range(1, len(levels), per_panel)]


def _lines(axes: Axes, profile: pd.DataFrame, factor: str, look: dict[str, MarkStyle]) -> None:
    shown = [level for level in look if (profile[factor] == level).any()]
    for turn, level in enumerate(shown):
        rows = profile[profile[factor] == level].sort_values("place")
        x = rows["place"] + marks.dodged(turn, len(shown), 0.09, 0.5)
        ends = IntervalMarks(rows["mean"], rows["low"], rows["high"])
        marks.points(axes, look[level], x, ends, join=1.2, size=4.4, edge=1.0, bar=1.1)
