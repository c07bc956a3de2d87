"""Letter position, people beside models: what a change costs people in reading time against what it costs a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, Look, as_svg, looks, mark_not_data, shortened, styled
from analysis.figures.letter_curves import FEWEST_ITEMS, KIND_WORDS
from analysis.letters.beside import BITS, RIGHT, TIME, Beside, Cost, Pair
from analysis.readers import marked, spoken

MARKERS = {"initial": "^", "internal": "o", "final": "s", "outer": "D"}
PLACE_WORDS = {
    "initial": "initial letters",
    "internal": "internal letters",
    "final": "final letters",
    "outer": "first and last letter",
}
TOGETHER = "all distances"
"""Said of a place whose distances are not told apart where those of others are, for dark marks would say the shortest."""
MOST_MODELS = 4
LIGHTEST = 0.55
"""How far towards white the farthest letters are drawn."""
AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    BITS: ("Surprisal added (bits a text)", lambda value: value),
    RIGHT: ("Accuracy lost (points)", lambda value: 100.0 * value),
}
EACH, TOP, BOTTOM, HEAD = 2.05, 0.76, 0.52, 0.30
"""Inches of a panel's height, above the first row, under the last, and above each row for its name."""


def percent_added(log_ratio: float) -> float:
    """Return a log ratio of times as percent added."""
    return 100.0 * float(np.expm1(log_ratio))


def letter_beside_figures(name: str, pairs: Sequence[Pair], title: str, note: str) -> list[Drawing]:
    """Draw people's added reading time against a model's added surprisal and lost accuracy, a row of panels for each model.

    Parameters
    ----------
    name : str
        File name without ending; further figures have a number behind it.
    pairs : sequence of Pair
        The same people with each model; a model that lacks a measure has an empty panel that says so.
    title, note : str
        As :class:`~analysis.figures.drawing.Drawing`.

    Returns
    -------
    list of Drawing
        One for each four models; all have common axes.
    """
    found = []
    for start in range(0, len(pairs), MOST_MODELS):
        named = name if start == 0 else f"{name}_{start // MOST_MODELS + 1}"
        found.append(_figure(named, pairs[start : start + MOST_MODELS], pairs, title, note))
    return found


def _figure(name: str, shown: Sequence[Pair], every: Sequence[Pair], title: str, note: str) -> Drawing:
    kinds = {every[0].people: every[0].people_kind, **dict.fromkeys((one.model for one in every), "model")}
    look = looks(kinds)
    height = TOP + BOTTOM + len(shown) * EACH + (len(shown) - 1) * (HEAD + 0.18)
    times = _limits(percent_added, [row.people[TIME] for one in every for row in one.apart])
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        left, right, between = 0.72, 0.12, 0.34
        wide = (WIDTH - left - right - between) / 2
        for at, pair in enumerate(shown):
            below = height - TOP - EACH - at * (EACH + HEAD + 0.18)
            for column, (measure, (axis, scaled)) in enumerate(AXES.items()):
                box = (left + column * (wide + between), below, wide, EACH)
                axes = figure.add_axes((box[0] / WIDTH, box[1] / height, wide / WIDTH, EACH / height))
                values = [row.model[measure] for one in every for row in one.apart if measure in row.model]
                axes.set_ylim(*times)
                axes.set_xlim(*_limits(scaled, values))
                _panel(axes, pair, measure, scaled, look[pair.model])
                axes.tick_params(labelsize=8, labelleft=column == 0)
                if at == len(shown) - 1:
                    axes.set_xlabel(axis, fontsize=8.5, labelpad=3)
                if column == 0:
                    axes.set_ylabel(
                        f"Reading time added,\n{spoken(every[0].people)} (%)", fontsize=8.5, labelpad=3
                    )
            figure.text(
                left / WIDTH, (below + EACH + 0.06) / height, shortened(marked(pair.model, "model"), 70),
                fontsize=9, weight="bold", color=look[pair.model].colour, va="bottom",
            )  # fmt: skip
        _key(figure, shown, height)
        mark_not_data(figure, kinds)
    alternative = _in_words(shown)
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _limits(scaled: Callable[[float], float], costs: Sequence[Cost]) -> tuple[float, float]:
    """Return a range that holds all points, their intervals and zero."""
    ends = [scaled(value) for one in costs for value in _ends(one) if np.isfinite(value)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.07 * (high - low) or 1.0
    return low - room, high + room


def _ends(cost: Cost) -> tuple[float, ...]:
    """Return a cost and its interval; of fewer than three items there is none that means something."""
    return (cost.value, cost.low, cost.high) if cost.items >= FEWEST_ITEMS else (cost.value,)


def _panel(axes: Axes, pair: Pair, measure: str, scaled: Callable[[float], float], look: Look) -> None:
    axes.axhline(0, color="#333333", lw=0.7, zorder=1)
    axes.axvline(0, color="#333333", lw=0.7, zorder=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    drawn, distances = [row for row in pair.apart if measure in row.model], _distances([pair])
    if not drawn:
        said = "tells no surprisal" if measure == BITS else "answers no questions"
        axes.text(
            0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", fontsize=8.5, color="#555555"
        )
    for row in drawn:
        x, *wide = (scaled(value) for value in _ends(row.model[measure]))
        y, *high = (percent_added(value) for value in _ends(row.people[TIME]))
        colour = _shade(look.colour, row.distance, distances)
        if wide:
            axes.plot(wide, [y, y], color=colour, lw=0.9, alpha=0.75, zorder=3)
        if high:
            axes.plot([x, x], high, color=colour, lw=0.9, alpha=0.75, zorder=3)
        face = colour if row.kind == "transposition" else "white"
        axes.plot(x, y, ls="", marker=MARKERS[row.place], ms=6.2, mfc=face, mec=colour, mew=1.2, zorder=5)


def _distances(pairs: Sequence[Pair]) -> list[str]:
    """Return the distances that are told apart, the shortest first."""
    return sorted({row.distance for one in pairs for row in one.rows if row.distance}, key=float)


def _shade(colour: str, distance: str, distances: Sequence[str]) -> str:
    """Return the colour of a distance: the shortest is dark, the farthest light; so is one that stands for all."""
    if distance not in distances or len(distances) < 2:
        return colour
    white = LIGHTEST * distances.index(distance) / (len(distances) - 1)
    return to_hex([one + (1.0 - one) * white for one in to_rgb(colour)])


def _key(figure: Figure, shown: Sequence[Pair], height: float) -> None:
    """Say once, above all panels, which marker is which place and which filling which kind of change."""
    rows = [row for pair in shown for row in pair.rows]
    distances = _distances(shown)
    handles = []
    for place, marker in MARKERS.items():
        own = [row for row in rows if row.place == place]
        if own:
            together = bool(distances) and not any(row.distance for row in own)
            label = f"{PLACE_WORDS[place]} ({TOGETHER})" if together else PLACE_WORDS[place]
            handles.append(_mark(marker, "#333333", label))
    for kind in KIND_WORDS:
        if any(row.kind == kind for row in rows):
            handles.append(_mark("p", "#333333" if kind == "transposition" else "white", KIND_WORDS[kind]))
    handles += [
        _mark("p", colour, f"distance {one}", edge=colour)
        for one in distances
        for colour in [_shade("#333333", one, distances)]
    ]
    columns = len(handles) if len(handles) < 6 else 3 if len(handles) == 6 else 4
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.0, 1 - 0.12 / height), ncols=columns,
        frameon=False, fontsize=8, handlelength=1.2, handletextpad=0.4, columnspacing=1.6, borderaxespad=0.0,
    )  # fmt: skip


def _mark(marker: str, face: str, label: str, edge: str = "#333333") -> Line2D:
    return Line2D(
        [], [], color="#333333", ls="", marker=marker, ms=6, mfc=face, mec=edge, mew=1.1, label=label
    )


def _in_words(shown: Sequence[Pair]) -> str:
    told = []
    for pair in shown:
        cells = "; ".join(_row(row) for row in pair.apart)
        told.append(f"{marked(pair.people, pair.people_kind)} and {marked(pair.model, 'model')}: {cells}.")
    return " ".join(told)


def _row(row: Beside) -> str:
    def parts() -> Iterator[str]:
        yield f"{apa.number(percent_added(row.people[TIME].value), 1)}% time"
        for measure, unit, decimals in ((BITS, "bits", 2), (RIGHT, "points", 1)):
            if measure in row.model:
                value = AXES[measure][1](row.model[measure].value)
                yield f"{apa.number(value, decimals)} {unit}"

    where = PLACE_WORDS[row.place] + (f", distance {row.distance}" if row.distance else "")
    return f"{KIND_WORDS[row.kind]}, {where}: {', '.join(parts())}"
