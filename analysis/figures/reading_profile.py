"""Reading word by word: mean times, and a model's surprisal, before, on and behind a changed word, condition by condition."""

from __future__ import annotations

from math import ceil

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.costs.around import TIME, ReadingProfile
from analysis.figures.cost_panels import (
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
    series_of,
)
from analysis.figures.drawing import Drawing, Look, as_svg, looks, mark_not_data, styled
from analysis.readers import marked

COLUMNS = 2
_MOST = 8
MOST_TOGETHER = 8
"""Conditions of one panel; more are drawn in several panels, the first condition in each."""


def reading_profile_figures(name: str, profile: ReadingProfile) -> list[Drawing]:
    """Draw means by place around a changed word: people's times, then each model's surprisal.

    Parameters
    ----------
    name : str
        File name without ending; further figures have a number behind it.
    profile : ReadingProfile

    Returns
    -------
    list of Drawing
        One for each eight panels; empty where there are not two places to join.
    """
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
        found.append(_figure(f"{name}{f'_{number + 1}' if number else ''}", title, own, profile))
    return found


def _shares(levels: list[str]) -> list[list[str]]:
    """Return which conditions share a panel: all, or of many a few at a time, each beside the first."""
    if len(levels) <= MOST_TOGETHER:
        return [levels]
    panels = ceil((len(levels) - 1) / (MOST_TOGETHER - 1))
    each = ceil((len(levels) - 1) / panels)
    return [[levels[0], *levels[at : at + each]] for at in range(1, len(levels), each)]


def _figure(
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
            _frame(axes, places, str(measure), last=in_last_row(place, len(series), COLUMNS))
            if in_first_column(place, COLUMNS) or measure != series[place - 1][0][0]:
                axes.set_ylabel("ms a word" if measure == TIME else "Bits a word", fontsize=8.5, labelpad=2)
            _name(axes, str(measure), group, kinds[group], of_readers[group].colour, "ABCDEFGH"[place])
        _one_scale(panels, [key for key, _ in series])
        axis_name(figure, panels, "Place of the word, counted from a changed word (0)", key + 0.1)
        condition_key(figure, panels, look, lines=True)
        mark_not_data(figure, {group: kinds[group] for (_, group), _ in series})
    alternative = _in_words(series, profile.factor)
    note = _note(table, profile)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


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


def _frame(axes: Axes, places: list[int], measure: str, *, last: bool) -> None:
    axes.set_xlim(min(places) - 0.5, max(places) + 0.5)
    names = ["changed" if place == 0 else apa.number(place, 0) for place in places]
    axes.set_xticks(
        places, [f"+{name}" if place > 0 else name for place, name in zip(places, names, strict=True)]
    )
    axes.tick_params(labelsize=8, labelbottom=last)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=measure == TIME))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.axvspan(-0.5, 0.5, color="#F1F1F1", zorder=0, linewidth=0)


def _note(table: pd.DataFrame, profile: ReadingProfile) -> str:
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


def _in_words(series: list[tuple[tuple[str, str], pd.DataFrame]], factor: str) -> str:
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
