"""People and models: contrasts, items, and models among each other."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.arrays import Array
from analysis.figures import marks
from analysis.figures.drawing import WIDTH, Drawing, MarkStyle, looks, shortened, styled
from analysis.figures.labels import cut_to_lines, height_of, in_lines
from analysis.figures.marks import INK, IntervalMarks
from analysis.figures.panels import Room
from analysis.readers import headed
from stimuli.seeds import stable_seed

SIDE = 3.9
ACROSS = 3
TOGETHER = 3  # so many models share a panel; more have one each


@dataclass(frozen=True)
class MapScale:
    """The measure of models on a fidelity map, its unit, and the measure of people, if that differs."""

    noun: str
    unit: str
    people: str = ""

    @property
    def both(self) -> str:
        """The measure of people and models."""
        same = self.people in ("", self.noun)
        return self.noun if same else f"{self.people} (people) and {self.noun} (models)"


def fidelity_map(
    name: str, effects: pd.DataFrame, kinds: Mapping[str, str], scale: MapScale, said: str = ""
) -> Drawing:
    """Draw each planned contrast of people against each model's; many models have a panel each, and letters stand for contrasts."""
    models = list(dict.fromkeys(effects["model"]))
    people = str(effects["people"].iloc[0])
    look = looks({people: kinds[people]} | {model: kinds[model] for model in models})
    contrasts = effects.drop_duplicates("contrast").sort_values("human")
    columns = ["human_low", "human_high", "machine_low", "machine_high", "human", "machine"]
    ends, bound = marks.widened([effects[columns]], 0.07, 0.0), float(effects["bound"].iloc[0])
    nouns = {headed(people): scale.people or scale.noun, "Model": scale.noun}
    x_label, y_label = (f"{reader}: difference in {noun} ({scale.unit})" for reader, noun in nouns.items())
    names = {letter_of(index): str(contrast) for index, contrast in enumerate(contrasts["contrast"])}
    key = textwrap.wrap("   ".join(f"{sign} {contrast}" for sign, contrast in names.items()), 108)
    is_apart = len(models) > TOGETHER
    letters = {contrast: sign for sign, contrast in names.items()}
    same_place = contrasts["human"].diff() < 0.005 * (ends[1] - ends[0])
    tied = set(contrasts.loc[same_place | same_place.shift(-1, fill_value=False), "contrast"])
    foot = 0.62 + 0.16 * len(key)
    room = (
        Room(1.72, 0.095 * WIDTH, foot, ACROSS, 0.305 * WIDTH - 1.82, above=0.7, gap=0, top=0.1, widest=1.82)
        if is_apart
        else Room(SIDE, left=0.1 * WIDTH, below=0.54, above=0.96, top=0, widest=SIDE)
    )
    with styled():
        figure, panels = room.panels(len(models) if is_apart else 1)
        high = figure.get_figheight()
        for axes, shown in zip(panels, [[model] for model in models] if is_apart else [models], strict=True):
            _ground(axes, ends, bound)
            for turn, model in enumerate(shown):
                model_effects = effects[effects["model"] == model]
                human = IntervalMarks.of(model_effects, "human")
                # models share people's estimate: a small step aside keeps their bars apart
                aside = 0.008 * (ends[1] - ends[0]) * (turn - (len(shown) - 1) / 2)
                human = IntervalMarks(human.value + aside, human.low, human.high)
                marks.points(axes, look[model], human, IntervalMarks.of(model_effects, "machine"), bar=1.0)
                for x, one in zip(human.value, model_effects.to_dict("records"), strict=True):
                    if one["contrast"] in tied:
                        text = letters[one["contrast"]] if is_apart else one["contrast"]
                        axes.annotate(
                            text, (x, one["machine"]), (5, 3), textcoords="offset points", fontsize=7.5
                        )
            if is_apart:
                _name_contrasts(axes, contrasts["human"], list(names), 0.07, rotation=0)
                axes.set_title(wrapped(look[shown[0]].label, 26), fontsize=8, pad=19)
                axes.tick_params(labelsize=7.5)
            else:
                _name_contrasts(axes, contrasts["human"], list(names.values()), 0.03, rotation=40)
        if is_apart:
            figure.text(0.54, (foot - 0.42) / high, x_label, ha="center", va="bottom", fontsize=9)
            figure.text(0.005, 0.55, y_label, ha="left", va="center", rotation=90, fontsize=9)
            figure.text(0.095, 0.03 / high, "\n".join(key), ha="left", va="bottom", fontsize=7.5)
        else:
            panels[0].set(xlabel=x_label, ylabel=y_label)
            handles = [
                marks.handle(look[model], wrapped(look[model].label), ls="-", lw=1.2, mew=1.3, ms=6)
                for model in models
            ]
            lines = [("the same effect", {"color": INK, "lw": 0.9})]
            if np.isfinite(bound):
                lines.append(
                    ("equivalent\n(bound fixed beforehand)", {"color": "#BBBBBB", "lw": 7, "alpha": 0.6})
                )
            handles += [marks.handle(MarkStyle("", ""), text, **line) for text, line in lines]
            at = (0.1 + SIDE / WIDTH + 0.02, 0.1 + SIDE / high / 2)
            figure.legend(handles=handles, loc="center left", bbox_to_anchor=at, fontsize=8, frameon=False)
    values = {"people": people, "scale": scale, "is_bounded": np.isfinite(bound), "said": said}
    values["tied"] = tied
    return Drawing.described(name, figure, look, "fidelity_map", effects=effects, **values)


def _ground(axes: Axes, ends: tuple[float, float], bound: float) -> None:
    """Draw what lies under the points: zero lines, the diagonal, the band of the bound."""
    axes.grid(visible=True, axis="both")
    axes.set(xlim=ends, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        marks.numbered(axis, nbins=5)
    axes.axhline(0, color="#999999", lw=0.6, zorder=1)
    axes.axvline(0, color="#999999", lw=0.6, zorder=1)
    if np.isfinite(bound):
        x = np.array(ends)
        axes.fill_between(
            x, x - bound, x + bound, color="#BBBBBB", alpha=0.35, lw=0, zorder=0.5, hatch="...", ec="#999999"
        )
    axes.plot(ends, ends, color=INK, lw=0.9, zorder=1.5)


def _name_contrasts(
    axes: Axes, at: pd.Series[float], labels: Sequence[str], up: float, rotation: float
) -> None:
    """Write each contrast's name or letter above its people's estimate, moved apart where they would overlap."""
    low, high = axes.get_xlim()
    wished = [float(value) for value in at]
    if rotation:
        gap = 0.035 * (high - low) * (1.35 if len(labels) < 20 else 0.9)
        placed, size = marks.spread(wished, gap, low, high + gap * len(labels)), 7.5
    else:
        placed, size = marks.spread(wished, 0.07 * (high - low), low, high), 7.0
        placed = [position - (sum(placed) - sum(wished)) / len(placed) for position in placed]
    arrow = {"arrowstyle": "-", "color": "#777777", "lw": 0.5, "shrinkA": 0, "shrinkB": 0}
    for x, text_x, label in zip(wished, placed, labels, strict=True):
        axes.plot([x, x], [low, high], color="#777777", lw=0.5, ls=(0, (1, 2)), zorder=0.8)
        axes.annotate(
            label, (x, high), (text_x, high + up * (high - low)), fontsize=size, rotation=rotation, va="bottom",
            ha="left" if rotation else "center", rotation_mode="anchor", annotation_clip=False, arrowprops=arrow,
        )  # fmt: skip


def letter_of(index: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1, …."""
    first, last = divmod(index, 26)
    return (letter_of(first - 1) if first else "") + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[last]


def wrapped(label: str, width: int = 20) -> str:
    """Break a long name where it has a joint, or anywhere."""
    parts, line = [], ""
    for sign in label:
        line += sign
        if len(line) >= width or (sign in "-_/ " and len(line) > 0.6 * width):
            parts.append(line)
            line = ""
    return "\n".join([*parts, line] if line else parts)


MOST_POINTS = 600
_ACROSS = 4
SIZES = (9.0, 8.0, 7.0)  # points of a panel's title: the largest at which no word has to be broken
AXES = {
    "correct": "% correct",
    "reading_time": "log reading time, from own mean",
    "rt": "log response time, from own mean",
    "margin": "margin (nats)",
    "surprisal": "surprisal (bits)",
    "completion_tokens": "log tokens written",
    "reasoning_tokens": "log tokens of thought",
    "latency_ms": "log latency (ms)",
}


def item_scatter(
    name: str,
    means: tuple[pd.DataFrame, pd.DataFrame],
    agreement: pd.DataFrame,
    readers: tuple[str, str],
    kinds: dict[str, str],
    measures: tuple[str, str],
) -> Drawing:
    """Draw one model's item means against people's, with one panel per condition."""
    levels = [str(level) for level in means[0].columns if level in agreement.index]
    rows = agreement.loc[levels]
    look = looks({reader: kinds[reader] for reader in readers})
    across = min(_ACROSS, len(levels))
    width = WIDTH * (0.9 / across if across > 1 else 0.55)
    room = width - 0.2
    size = next(
        (
            font_size
            for font_size in SIZES
            if all(in_lines(level, room, font_size, bold=True) for level in levels)
        ),
        SIZES[-1],
    )
    titles = ["\n".join(cut_to_lines(level, room, size, bold=True)) for level in levels]
    above = 1.05 + height_of(max(title.count("\n") for title in titles), size)
    gap, left = 0.022 * WIDTH, 0.095 * WIDTH
    frame = Room(1.42, left, 0.5, across, gap, above=above, gap=0, top=0, widest=width - gap)
    hidden = 0
    with styled():
        figure, panels = frame.panels(len(levels))
        ends = [_range(table[levels], measure) for table, measure in zip(means, measures, strict=True)]
        for axes, level, title, row in zip(panels, levels, titles, rows.to_dict("records"), strict=True):
            shown, left_out = _items(means, level, measures)
            hidden += left_out
            axes.grid(visible=True, axis="both")
            axes.set(xlim=ends[0], ylim=ends[1])
            marks.points(axes, look[readers[1]], *shown, size=3.6, edge=0.8, face="none", alpha=0.75)
            for axis, measure in ((axes.xaxis, measures[0]), (axes.yaxis, measures[1])):
                axis.set_ticks([0, 50, 100]) if measure == "correct" else marks.numbered(axis, nbins=3)
            axes.tick_params(labelsize=7.5)
            axes.text(
                0, 1.03, _agreed(row), transform=axes.transAxes, fontsize=7, va="bottom", linespacing=1.25
            )
            axes.set_title(title, fontsize=size, pad=33)
        x_label, y_label = (
            f"{reader}: {AXES[measure]}"
            for reader, measure in zip((headed(readers[0]), shortened(readers[1], 26)), measures, strict=True)
        )
        figure.text(0.54, 0.1 / figure.get_figheight(), x_label, ha="center", va="bottom")
        figure.text(0.005, 0.52, y_label, ha="left", va="center", rotation=90, fontsize=8.5)
    values = {"readers": readers, "measures": measures, "axes": AXES, "hidden": hidden, "most": MOST_POINTS}
    return Drawing.described(name, figure, look, "item_scatter", rows=rows, **values)


def _range(table: pd.DataFrame, measure: str) -> tuple[float, float]:
    return (-6.0, 106.0) if measure == "correct" else marks.widened([table], 0.06)


def _items(
    means: tuple[pd.DataFrame, pd.DataFrame], level: str, measures: tuple[str, str]
) -> tuple[list[Any], int]:
    """Return both sides' means of the items of a condition that are drawn, and how many are not."""
    pairs = pd.concat([side_means[level] for side_means in means], axis=1, keys=["x", "y"]).dropna()
    shown = pairs
    if len(pairs) > MOST_POINTS:
        turn = sorted(pairs.index, key=lambda item: stable_seed("item scatter", str(item)))
        shown = pairs.loc[turn[:MOST_POINTS]]
    random = np.random.default_rng(stable_seed("jitter", level))
    sides = []
    for side, measure in zip("xy", measures, strict=True):
        values = (100.0 if measure == "correct" else 1.0) * shown[side].to_numpy(dtype=float)
        if measure == "correct" and len(np.unique(values)) <= 5:
            values += random.uniform(-3, 3, len(values))
        sides.append(values)
    return sides, len(pairs) - len(shown)


def _agreed(row: Mapping[Hashable, Any]) -> str:
    """Write correlation and ceiling above a panel."""
    lines = [f"r = {apa.correlation(row['correlation'])} {apa.correlations(row['low'], row['high'])}"]
    if not np.isfinite(row["ceiling"]):
        return "\n".join([*lines, "no ceiling: items", "are not reliable"])
    ceiling = f"ceiling {apa.correlation(row['ceiling'])}"
    if row["unsure"]:
        return "\n".join([*lines, f"{ceiling}*", "r is not divided"])
    return "\n".join([*lines, ceiling, f"corrected {apa.correlation(row['corrected'])}"])


def told_size(parameters: float) -> str:
    """Write a number of parameters as people say it: 350M, 1.4B."""
    for value, sign in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if parameters >= value:
            return f"{parameters / value:.3g}{sign}"
    return f"{parameters:.0f}"


def size_figure(name: str, table: pd.DataFrame, slopes: pd.DataFrame) -> Drawing:
    """Draw points of accuracy lost against the number of parameters, one line per family."""
    steep = slopes[slopes["measure"] == "lost"].groupby("family")["slope"].first()
    families = list(dict.fromkeys(slopes["family"]))
    look = looks(dict.fromkeys(families, "model"))
    sizes = table[table["family"].isin(families)]
    low, high = float(sizes["parameters"].min()), float(sizes["parameters"].max())
    with styled():
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.1, 0.14, 0.66, 0.78))
        axes.set(xscale="log", xlim=(low / 1.6, high * 1.6))
        ends = []
        for turn, (family, mark) in enumerate(look.items()):
            family_sizes = sizes[sizes["family"] == family].sort_values("parameters")
            logs = np.log10(family_sizes["parameters"].to_numpy())
            fitted = family_sizes["lost"].mean() + steep[family] * (logs - logs.mean())
            axes.plot(family_sizes["parameters"], fitted, color=mark.colour, ls=mark.line, lw=1.3, zorder=2)
            x = family_sizes["parameters"] * 1.04 ** (turn - (len(families) - 1) / 2)
            marks.points(axes, mark, x, IntervalMarks.of(family_sizes, "lost"))
            ends.append(
                (
                    float(family_sizes["parameters"].iloc[-1]),
                    float(fitted[-1]),
                    wrapped(mark.label, 22),
                    mark.colour,
                )
            )
        marks.numbered(axes.xaxis, told_size)
        axes.set_xticks(_ticks(low, high))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.axhline(0, color=INK, lw=0.8, zorder=1)
        axes.set(xlabel="Parameters (log scale)", ylabel="Percentage points of accuracy lost")
        marks.label_ends(axes, ends, high * 1.75)
    return Drawing.described(name, figure, look, "robustness_by_size", sizes=sizes, told_size=told_size)


def _ticks(low: float, high: float) -> list[float]:
    candidates = [
        10.0**power * step
        for power in range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
        for step in ((1, 3) if high / low < 1e3 else (1,))
    ]
    return [tick for tick in candidates if low / 1.6 <= tick <= high * 1.6] or [low, high]


def recovery_figure(name: str, table: pd.DataFrame) -> Drawing:
    """Draw what models recover against what they answer right."""
    look = looks(dict.fromkeys(map(str, table["model"]), "model"))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.9))
        axes = figure.add_axes((0.1, 0.13, 0.56, 0.8))
        axes.grid(visible=True, axis="both")
        ends = []
        for row, (model, mark) in zip(table.to_dict("records"), look.items(), strict=True):
            marks.points(
                axes, mark, IntervalMarks.of(row, "recovery"), IntervalMarks.of(row, "task"), size=6, bar=1.2
            )
            ends.append((float(row["recovery"]), float(row["task"]), wrapped(model, 24), mark.colour))
        axes.set(xlabel="Mean recovery of changed text (%)", ylabel="Answers right on changed text (%)")
        left, right = axes.get_xlim()
        axes.set_xlim(left, right)
        marks.label_ends(axes, ends, right + 0.03 * (right - left))
    return Drawing.described(name, figure, look, "recovery_and_task", table=table)


PLANE_LONGEST = 26


def profile_plane(
    name: str,
    caption: tuple[str, str],
    people: tuple[str, Array],
    models: tuple[Sequence[str], Array],
    shares: tuple[float, float],
    kinds: Mapping[str, str],
) -> Drawing:
    """Draw a point for each person and a marker for each model on the axes that take these shares of people's variance."""
    (group, scores), (names, places), (title, note) = people, models, caption
    look = looks({group: kinds[group], **{name: kinds.get(name, "model") for name in names}})
    with styled():
        figure = Figure(figsize=(WIDTH, 3.6))
        axes = figure.add_axes((0.1, 0.14, 0.56, 0.8))
        axes.axhline(0, color="#999999", lw=0.7, zorder=0)
        axes.axvline(0, color="#999999", lw=0.7, zorder=0)
        marks.points(axes, look[group], *scores.T, size=4, edge=0, alpha=0.55, zorder=2)
        handles = [
            marks.handle(look[group], f"{look[group].label}, a point each", ls="", ms=4, mew=0, alpha=0.55)
        ]
        for model, (x, y) in zip(names, places, strict=True):
            mark = replace(look[model], is_hollow=True)
            marks.points(axes, mark, x, y, size=7.2, edge=1.6)
            handles.append(marks.handle(mark, shortened(mark.label, PLANE_LONGEST), ls="", ms=7.2, mew=1.6))
        for axis, share, nth in zip((axes.xaxis, axes.yaxis), shares, ("First", "Second"), strict=True):
            axis.set_label_text(f"{nth} component ({apa.percent(share, 0)})")
            axis.set_major_locator(MaxNLocator(nbins=6))
        at = (0.68, 0.95)
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=at, frameon=False, fontsize=8.5)
    values = {"title": title, "note": note, "group": group, "many": len(scores), "spread": scores.std(axis=0)}
    located = [(name, float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)]
    return Drawing.described(name, figure, look, "profile_plane", located=located, **values)
