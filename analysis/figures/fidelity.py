"""People and models: contrasts, items, and models among each other."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    label_ends,
    looks,
    mark_not_data,
    marks,
    not_data_in_words,
    shortened,
    spread,
    styled,
)
from analysis.figures.labels import cut_to_lines, height_of, in_lines
from analysis.readers import headed, spoken
from stimuli.seeds import stable_seed

SIDE, HEIGHT = 3.9, 5.4
ACROSS = 3
TOGETHER = 3
"""So many models share a panel; more have one each."""
_GAP = 0.035


@dataclass(frozen=True)
class MapScale:
    """On which scale a fidelity map is drawn.

    Attributes
    ----------
    noun : str
        What is measured of models, inside a sentence.
    unit : str
        What an axis says after it.
    people : str
        What is measured of people, where that is something else.
    """

    noun: str
    unit: str
    people: str = ""

    @property
    def of_people(self) -> str:
        """What an axis says of people's effects."""
        return f"difference in {self.people or self.noun} ({self.unit})"

    @property
    def of_models(self) -> str:
        """What an axis says of a model's effects."""
        return f"difference in {self.noun} ({self.unit})"

    @property
    def both(self) -> str:
        """What is measured, of people and models."""
        same = self.people in ("", self.noun)
        return self.noun if same else f"{self.people} (people) and {self.noun} (models)"


def fidelity_map(
    name: str, effects: pd.DataFrame, kinds: Mapping[str, str], scale: MapScale, said: str = ""
) -> Drawing:
    """Draw each planned contrast of people against each model's."""
    models = list(dict.fromkeys(effects["model"]))
    people = str(effects["people"].iloc[0])
    present = {people: kinds[people]} | {model: kinds[model] for model in models}
    look = looks(present)
    contrasts = effects.drop_duplicates("contrast").sort_values("human")
    columns = ["human_low", "human_high", "machine_low", "machine_high", "human", "machine"]
    low, high = (
        float(np.nanmin([effects[columns].min().min(), 0])),
        float(np.nanmax([effects[columns].max().max(), 0])),
    )
    room = 0.07 * max(high - low, 1e-9)
    ends = (low - room, high + room)
    bound = float(effects["bound"].iloc[0])
    with styled():
        if len(models) <= TOGETHER:
            figure = Figure(figsize=(WIDTH, HEIGHT))
            axes = figure.add_axes((0.1, 0.1, SIDE / WIDTH, SIDE / HEIGHT))
            _ground(axes, ends, bound)
            _points(axes, effects, models, look)
            _contrast_labels(axes, contrasts)
            axes.set_xlabel(f"{headed(people)}: {scale.of_people}")
            axes.set_ylabel(f"Model: {scale.of_models}")
            _legend(figure, models, look, bound)
        else:
            figure = _apart(effects, models, look, contrasts, ends, bound, (headed(people), scale))
        mark_not_data(figure, present)
    title = f"Fidelity map: differences in {scale.both}, {spoken(people)} and each model"
    note = _map_note(people, np.isfinite(bound), said, present)
    alternative = _map_in_words(effects, scale, people)
    return Drawing.of(name, title, note, alternative, figure)


def _ground(axes: Axes, ends: tuple[float, float], bound: float) -> None:
    """Draw what lies under the points: zero lines, the diagonal, the band of the bound."""
    axes.grid(visible=True, axis="both")
    axes.set(xlim=ends, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.axhline(0, color="#999999", lw=0.6, zorder=1)
    axes.axvline(0, color="#999999", lw=0.6, zorder=1)
    if np.isfinite(bound):
        x = np.array(ends)
        axes.fill_between(
            x, x - bound, x + bound, color="#BBBBBB", alpha=0.35, lw=0, zorder=0.5, hatch="...", ec="#999999"
        )
    axes.plot(ends, ends, color="#333333", lw=0.9, zorder=1.5)


def _apart(
    effects: pd.DataFrame,
    models: list[str],
    look: dict[str, Look],
    contrasts: pd.DataFrame,
    ends: tuple[float, float],
    bound: float,
    words: tuple[str, MapScale],
) -> Figure:
    """Draw many models a panel each; letters stand for the differences."""
    down = ceil(len(models) / ACROSS)
    names = {str(one): letter_of(place) for place, one in enumerate(contrasts["contrast"])}
    key = textwrap.wrap("   ".join(f"{sign} {one}" for one, sign in names.items()), 108)
    foot = 0.62 + 0.16 * len(key)
    height = 2.42 * down + foot + 0.1
    figure = Figure(figsize=(WIDTH, height))
    people, scale = words
    for place, model in enumerate(models):
        row, column = divmod(place, ACROSS)
        bottom = (foot + 2.42 * (down - 1 - row)) / height
        axes = figure.add_axes((0.095 + 0.305 * column, bottom, 1.82 / WIDTH, 1.72 / height))
        _ground(axes, ends, bound)
        _points(axes, effects[effects["model"] == model], [model], look)
        low, high = ends
        wished = [float(value) for value in contrasts["human"]]
        placed = _near(wished, 0.07 * (high - low), ends)
        for x, at, sign in zip(wished, placed, names.values(), strict=True):
            axes.plot([x, x], [low, high], color="#777777", lw=0.5, ls=(0, (1, 2)), zorder=0.8)
            axes.annotate(
                sign,
                (x, high),
                (at, high + 0.07 * (high - low)),
                fontsize=7,
                ha="center",
                va="bottom",
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": "#777777", "lw": 0.5, "shrinkA": 0, "shrinkB": 0},
            )
        axes.set_title(wrapped(look[model].label, 26), fontsize=8, pad=19)
        axes.tick_params(labelsize=7.5, labelleft=column == 0, labelbottom=place + ACROSS >= len(models))
    figure.text(
        0.54, (foot - 0.42) / height, f"{people}: {scale.of_people}", ha="center", va="bottom", fontsize=9
    )
    figure.text(0.005, 0.55, f"Model: {scale.of_models}", ha="left", va="center", rotation=90, fontsize=9)
    figure.text(0.095, 0.03 / height, "\n".join(key), ha="left", va="bottom", fontsize=7.5)
    return figure


def _near(wished: list[float], gap: float, ends: tuple[float, float]) -> list[float]:
    """Spread labels as little to the left as to the right of where they would like to stand."""
    placed = spread(wished, gap, *ends)
    aside = sum(placed) - sum(wished)
    return [one - aside / len(placed) for one in placed]


def letter_of(place: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1, …."""
    first, last = divmod(place, 26)
    return (letter_of(first - 1) if first else "") + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[last]


def _points(axes: Axes, effects: pd.DataFrame, models: list[str], look: dict[str, Look]) -> None:
    width = float(np.diff(axes.get_xlim())[0])
    for turn, model in enumerate(models):
        it = look[model]
        own = effects[effects["model"] == model]
        # models share people's estimate: a small step aside keeps their bars apart
        x = own["human"].to_numpy() + 0.008 * width * (turn - (len(models) - 1) / 2)
        y = own["machine"].to_numpy()
        axes.hlines(y, own["human_low"], own["human_high"], color=it.colour, lw=0.8, alpha=0.55, zorder=2)
        axes.vlines(x, own["machine_low"], own["machine_high"], color=it.colour, lw=1.3, zorder=3)
        marks(axes, x, y, it.marker, it.colour, "white", zorder=4)


def _contrast_labels(axes: Axes, contrasts: pd.DataFrame) -> None:
    """Name each contrast above its people's estimate, moved apart where names would overlap."""
    low, high = axes.get_xlim()
    gap = _GAP * (high - low) * (1.35 if len(contrasts) < 20 else 0.9)
    wished = [float(value) for value in contrasts["human"]]
    placed = spread(wished, gap, low, high + gap * len(contrasts))
    for x, at, label in zip(wished, placed, contrasts["contrast"], strict=True):
        axes.plot([x, x], [low, high], color="#777777", lw=0.5, ls=(0, (1, 2)), zorder=0.8)
        axes.annotate(
            label,
            (x, high),
            (at, high + 0.03 * (high - low)),
            fontsize=7.5,
            rotation=40,
            ha="left",
            va="bottom",
            rotation_mode="anchor",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#777777", "lw": 0.5, "shrinkA": 0, "shrinkB": 0},
        )


def _legend(figure: Figure, models: list[str], look: dict[str, Look], bound: float) -> None:
    handles = [
        Line2D([], [], color=look[one].colour, marker=look[one].marker, mfc="white", mew=1.3, lw=1.2)
        for one in models
    ]
    labels = [wrapped(look[one].label) for one in models]
    handles.append(Line2D([], [], color="#333333", lw=0.9))
    labels.append("the same effect")
    if np.isfinite(bound):
        handles.append(Line2D([], [], color="#BBBBBB", lw=7, alpha=0.6))
        labels.append("counts as none\n(bound fixed beforehand)")
    left = 0.1 + SIDE / WIDTH + 0.02
    figure.legend(
        handles,
        labels,
        loc="center left",
        bbox_to_anchor=(left, 0.1 + SIDE / HEIGHT / 2),
        fontsize=8,
        frameon=False,
    )


def wrapped(label: str, width: int = 20) -> str:
    """Break a long name where it has a joint, or anywhere."""
    parts, line = [], ""
    for sign in label:
        line += sign
        if len(line) >= width or (sign in "-_/ " and len(line) > 0.6 * width):
            parts.append(line)
            line = ""
    return "\n".join([*parts, line] if line else parts)


def _map_note(people: str, bounded: bool, said: str, kinds: Mapping[str, str]) -> str:
    told = [
        f"Each point is one difference between conditions: of {spoken(people)} from left to right, of the model from below. Bars "
        "are 95% intervals of either; names or letters above the dotted lines say which difference it is. "
        "On the diagonal both effects are the same."
    ]
    if bounded:
        told.append(
            f"Within the band the estimates differ by less than the bound that the study fixed beforehand ({said}); whether "
            "that is shown is a matter of intervals and stands in the table."
        )
    told += not_data_in_words(kinds.values())
    return " ".join(told)


def _map_in_words(effects: pd.DataFrame, scale: MapScale, people: str) -> str:
    told = [
        f"{row['contrast']}, {row['model']}: {spoken(people)} {apa.number(row['human'], 1)}, model {apa.number(row['machine'], 1)}"
        for row in effects.to_dict("records")
    ]
    return f"Differences in {scale.both} ({scale.unit}). " + "; ".join(told) + "."


MOST_POINTS = 600
_ACROSS = 4
SIZES = (9.0, 8.0, 7.0)
"""Points of a panel's title: the largest at which no word has to be broken."""

AXES = {
    "correct": "% right",
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
    """Draw one model's item means against people's, a panel a condition."""
    levels = [str(level) for level in means[0].columns if level in agreement.index]
    present = {reader: kinds[reader] for reader in readers}
    look = looks(present)[readers[1]]
    across = min(_ACROSS, len(levels))
    down = ceil(len(levels) / across)
    hidden = 0
    told: dict[Hashable, dict[Hashable, Any]] = agreement.to_dict("index")
    width = WIDTH * (0.9 / across if across > 1 else 0.55) - 0.2
    size = next(
        (one for one in SIZES if all(in_lines(level, width, one, bold=True) for level in levels)), SIZES[-1]
    )
    titles = ["\n".join(cut_to_lines(level, width, size, bold=True)) for level in levels]
    each = 2.47 + height_of(max(one.count("\n") for one in titles), size)
    height = each * down + 0.43
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        ends = [_range(table[levels], measure) for table, measure in zip(means, measures, strict=True)]
        for place, level in enumerate(levels):
            axes = _place(figure, place, across, down, each)
            hidden += _panel(axes, level, means, told[level], look, ends, measures)
            axes.set_title(titles[place], fontsize=size, pad=33)
            if place % across:
                axes.set_yticklabels([])
            if place + across < len(levels):
                axes.set_xticklabels([])
        figure.text(
            0.54, 0.1 / height, f"{headed(readers[0])}: {AXES[measures[0]]}", ha="center", va="bottom"
        )
        side = f"{shortened(readers[1], 26)}: {AXES[measures[1]]}"
        figure.text(0.005, 0.52, side, ha="left", va="center", rotation=90, fontsize=8.5)
        mark_not_data(figure, present)
    title = f"Items of {spoken(readers[0])} and {readers[1]}: {AXES[measures[0]]} against {AXES[measures[1]]}"
    note = _scatter_note(readers[0], measures, hidden, present, agreement.loc[levels])
    alternative = _scatter_in_words(agreement.loc[levels], readers)
    return Drawing.of(name, title, note, alternative, figure)


def _place(figure: Figure, place: int, across: int, down: int, each: float) -> Axes:
    height = float(figure.get_figheight())
    width = 0.9 / across if across > 1 else 0.55
    row, column = divmod(place, across)
    left = 0.095 + column * width
    bottom = (0.5 + each * (down - 1 - row)) / height
    return figure.add_axes((left, bottom, width - 0.022, 1.42 / height))


def _range(table: pd.DataFrame, measure: str) -> tuple[float, float]:
    if measure == "correct":
        return -6.0, 106.0
    values = table.to_numpy(dtype=float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * max(high - low, 1e-9)
    return low - room, high + room


def _panel(
    axes: Axes,
    level: str,
    means: tuple[pd.DataFrame, pd.DataFrame],
    row: dict[Hashable, Any],
    look: Look,
    ends: list[tuple[float, float]],
    measures: tuple[str, str],
) -> int:
    """Draw one condition and return how many items are not shown."""
    both = pd.concat([means[0][level], means[1][level]], axis=1, keys=["x", "y"]).dropna()
    shown = both
    if len(both) > MOST_POINTS:
        turn = sorted(both.index, key=lambda item: stable_seed("item scatter", str(item)))
        shown = both.loc[turn[:MOST_POINTS]]
    draw = np.random.default_rng(stable_seed("jitter", level))
    scale = [100.0 if measure == "correct" else 1.0 for measure in measures]
    x, y = (scale[n] * shown[side].to_numpy(dtype=float) for n, side in enumerate("xy"))
    for values, measure in ((x, measures[0]), (y, measures[1])):
        if measure == "correct" and len(np.unique(values)) <= 5:
            values += draw.uniform(-3, 3, len(values))
    axes.grid(visible=True, axis="both")
    axes.set(xlim=ends[0], ylim=ends[1])
    axes.scatter(
        x, y, s=13, marker=look.marker, facecolors="none", edgecolors=look.colour, linewidths=0.8, alpha=0.75
    )
    for axis, measure in ((axes.xaxis, measures[0]), (axes.yaxis, measures[1])):
        if measure == "correct":
            axis.set_ticks([0, 50, 100])
        else:
            axis.set_major_locator(MaxNLocator(3))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.tick_params(labelsize=7.5)
    axes.text(0, 1.03, _told(row), transform=axes.transAxes, fontsize=7, va="bottom", linespacing=1.25)
    return len(both) - len(shown)


def _told(row: dict[Hashable, Any]) -> str:
    lines = [f"r = {apa.correlation(row['correlation'])} {apa.correlations(row['low'], row['high'])}"]
    if np.isfinite(row["ceiling"]) and row["unsure"]:
        lines += [f"ceiling {apa.correlation(row['ceiling'])}*", "r is not divided"]
    elif np.isfinite(row["ceiling"]):
        lines.append(f"ceiling {apa.correlation(row['ceiling'])}")
        lines.append(f"corrected {apa.correlation(row['corrected'])}")
    else:
        lines += ["no ceiling: items", "are not reliable"]
    return "\n".join(lines)


def _scatter_note(
    people: str, measures: tuple[str, str], hidden: int, kinds: dict[str, str], rows: pd.DataFrame
) -> str:
    told = [
        "A point is an item. Above each panel: Pearson's correlation within the condition with its 95% bootstrap interval over "
        "items, the ceiling that the reliabilities of both sides set (root of their product), and the correlation divided by it."
    ]
    if (rows["ceiling_of"] == "people").any():
        told.append(
            f"Where the model gave one answer an item, the ceiling holds the reliability of {spoken(people)} alone."
        )
    if (rows["ceiling"].notna() & rows["unsure"].astype(bool)).any():
        told.append(
            "* = the interval of a reliability includes 0 or is missing, and the correlation is not divided by the ceiling."
        )
    if "correct" in measures:
        told.append("Points are moved by up to 3% where only few values occur.")
    if hidden:
        told.append(
            f"{apa.count(hidden)} points are not drawn (at most {MOST_POINTS} a panel, the same items in each)."
        )
    if "simulated" in kinds.values():
        told.append("Simulated readers are not data.")
    if "baseline" in kinds.values():
        told.append("Baselines answer by rule and are not data.")
    return " ".join(told)


def _scatter_in_words(rows: pd.DataFrame, readers: Sequence[str]) -> str:
    told = [
        f"{level}: {apa.count(row['items'])} items, r {apa.correlation(row['correlation'])}, ceiling {apa.correlation(row['ceiling'])}"
        for level, row in rows.iterrows()
    ]
    return f"Item means of {spoken(readers[0])} against {readers[1]} by condition. " + "; ".join(told) + "."


def told_size(parameters: float) -> str:
    """Write a number of parameters as people say it: 350M, 1.4B."""
    for value, sign in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if parameters >= value:
            return f"{parameters / value:.3g}{sign}"
    return f"{parameters:.0f}"


def size_figure(name: str, table: pd.DataFrame, slopes: pd.DataFrame) -> Drawing:
    """Draw points of accuracy lost against the number of parameters, a line a family."""
    families = list(dict.fromkeys(slopes["family"]))
    look = looks(dict.fromkeys(families, "model"))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.1, 0.14, 0.66, 0.78))
        axes.set_xscale("log")
        sizes = table[table["family"].isin(families)]
        low, high = float(sizes["parameters"].min()), float(sizes["parameters"].max())
        axes.set_xlim(low / 1.6, high * 1.6)
        ends = []
        for turn, family in enumerate(families):
            own = sizes[sizes["family"] == family].sort_values("parameters")
            line = slopes[(slopes["family"] == family) & (slopes["measure"] == "lost")].iloc[0]
            ends.append(_family(axes, own, float(line["slope"]), look[family], turn, len(families)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told_size(value)))
        ticks = _ticks(low, high)
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.axhline(0, color="#333333", lw=0.8, zorder=1)
        axes.set_xlabel("Parameters (log scale)")
        axes.set_ylabel("Percentage points of accuracy lost")
        label_ends(axes, ends, high * 1.75)
    title = "Accuracy lost where text is changed, by number of parameters"
    note = (
        "Points are models, with 95% bootstrap intervals over items; lines are least-squares lines on log parameters within a family. "
        "Families of fewer than three sizes are in the table alone. Lower is more robust."
    )
    told = "; ".join(
        f"{row['model']} ({row['family']}, {told_size(row['parameters'])}) {apa.number(row['lost'], 1)}"
        for row in sizes.to_dict("records")
    )
    alternative = f"Percentage points lost by model size. {told}."
    return Drawing.of(name, title, note, alternative, figure)


def _ticks(low: float, high: float) -> list[float]:
    found = [
        10.0**power * step
        for power in range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
        for step in ((1, 3) if high / low < 1e3 else (1,))
    ]
    return [one for one in found if low / 1.6 <= one <= high * 1.6] or [low, high]


def _family(
    axes: Axes, own: pd.DataFrame, slope: float, it: Look, turn: int, many: int
) -> tuple[float, float, str, str]:
    x = own["parameters"].to_numpy() * 1.04 ** (turn - (many - 1) / 2)
    y = own["lost"].to_numpy()
    logs = np.log10(own["parameters"].to_numpy())
    fitted = y.mean() + slope * (logs - logs.mean())
    axes.plot(own["parameters"], fitted, color=it.colour, ls=it.line, lw=1.3, zorder=2)
    axes.vlines(x, own["lost_low"], own["lost_high"], color=it.colour, lw=1.3, zorder=3)
    marks(axes, x, y, it.marker, it.colour, "white", zorder=4)
    return float(own["parameters"].iloc[-1]), float(fitted[-1]), wrapped(it.label, 22), it.colour


def recovery_figure(name: str, table: pd.DataFrame) -> Drawing:
    """Draw what models recover against what they answer right."""
    models = [str(one) for one in table["model"]]
    look = looks(dict.fromkeys(models, "model"))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.9))
        axes = figure.add_axes((0.1, 0.13, 0.56, 0.8))
        axes.grid(visible=True, axis="both")
        ends = []
        for row in table.to_dict("records"):
            it = look[str(row["model"])]
            axes.hlines(
                row["task"], row["recovery_low"], row["recovery_high"], color=it.colour, lw=1.2, zorder=2
            )
            axes.vlines(row["recovery"], row["task_low"], row["task_high"], color=it.colour, lw=1.2, zorder=2)
            marks(axes, [row["recovery"]], [row["task"]], it.marker, it.colour, "white", size=6, zorder=3)
            ends.append(
                (float(row["recovery"]), float(row["task"]), wrapped(str(row["model"]), 24), it.colour)
            )
        axes.set_xlabel("Mean recovery of changed text (%)")
        axes.set_ylabel("Answers right on changed text (%)")
        left, right = axes.get_xlim()
        axes.set_xlim(left, right)
        label_ends(axes, ends, right + 0.03 * (right - left))
    title = "Recovery of changed text and accuracy of the task, model by model"
    note = (
        "Points are models, bars 95% bootstrap intervals over items. Answers that are not valid count as 0%."
    )
    told = "; ".join(
        f"{row['model']}: recovery {apa.number(row['recovery'], 1)}%, task {apa.number(row['task'], 1)}%"
        for row in table.to_dict("records")
    )
    return Drawing.of(name, title, note, told + ".", figure)
