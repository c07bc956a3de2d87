"""Fidelity map: the effect of people against the model's, contrast by contrast; on the identity line a model is as people are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    as_svg,
    looks,
    mark_not_data,
    spread,
    styled,
)
from analysis.readers import headed, spoken

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
    """Draw each planned contrast of people against each model's.

    Parameters
    ----------
    name : str
        File name without ending.
    effects : pandas.DataFrame
        From :func:`analysis.fidelity.effects`, of one analysis: estimable rows alone.
    kinds : mapping
        Reader kind of each group.
    scale : MapScale
    said : str
        The bound as the study writes it; the band is drawn where the rows have one.
    """
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
    note = _note(people, np.isfinite(bound), said, present)
    alternative = _in_words(effects, scale, people)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


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
        axes.plot(
            x,
            y,
            ls="",
            marker=it.marker,
            ms=5.5,
            mfc="white",
            mec=it.colour,
            mew=1.3,
            color=it.colour,
            zorder=4,
        )


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


def _note(people: str, bounded: bool, said: str, kinds: Mapping[str, str]) -> str:
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
    if "simulated" in kinds.values():
        told.append("Simulated readers were generated by wrods with known effects; they are not data.")
    if "baseline" in kinds.values():
        told.append("Baselines answer by rule and are not data.")
    return " ".join(told)


def _in_words(effects: pd.DataFrame, scale: MapScale, people: str) -> str:
    told = [
        f"{row['contrast']}, {row['model']}: {spoken(people)} {apa.number(row['human'], 1)}, model {apa.number(row['machine'], 1)}"
        for row in effects.to_dict("records")
    ]
    return f"Differences in {scale.both} ({scale.unit}). " + "; ".join(told) + "."
