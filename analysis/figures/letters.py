"""Letter position: curves, maps, people and models, and competing predictors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import apa
from analysis.figures.drawing import (
    WIDTH,
    Drawing,
    Look,
    axes_at,
    intervals,
    keep_width,
    looks,
    mark_not_data,
    marks,
    shortened,
    styled,
)
from analysis.letters.letter_costs import BITS, RIGHT, TIME, Beside, Cost, Pair
from analysis.readers import marked, spoken

KIND_LOOKS = {
    "transposition": ("o", "-", True),
    "substitution": ("s", (0, (4, 1.6)), False),
    "shuffle": ("^", (0, (1.2, 1.2)), True),
    "other": ("D", (0, (6, 1.5, 1.2, 1.5)), False),
}
"""Marker, line and whether the marker is filled: kinds differ in grey as in colour."""
KIND_WORDS = {
    "transposition": "two letters transposed",
    "substitution": "letters substituted",
    "shuffle": "several letters moved",
    "other": "other changes",
}
PLACE_TICKS = {"outer": "both ends"}
"""Places whose names in tables of data are not those of the text."""
FEWEST_ITEMS = 3
"""A point of fewer items has no interval: resampling could not tell items apart."""
MOST_ROWS = 5
CURVES_TOP, CURVES_BOTTOM, CURVES_HEAD, GAP = 0.66, 0.50, 0.47, 0.16
"""Inches above the first row of panels, under the last, above each panel for its name, and between segments."""
DODGE = 0.055
"""Inches between the points of two kinds at one place."""
LONGEST_NAME = 38
"""Letters of a reader's name that have room above half a figure."""


@dataclass(frozen=True)
class CurvePoint:
    """One point of a curve: ``place`` is a position from 1 or a zone, ``kind`` what was done there; ends may be nan."""

    place: str
    kind: str
    cost: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class CurvePanel:
    """One reader's costs on one measure.

    Attributes
    ----------
    group, kind : str
        Reader group and reader kind.
    measure : str
        In words, for the text alternative.
    axis : str
        What the vertical axis counts, with its unit.
    segments : tuple of (str, tuple of str, tuple of CurvePoint)
        Title of each segment (``from the start``), its places from left to right, and its points.
    """

    group: str
    kind: str
    measure: str
    axis: str
    segments: tuple[tuple[str, tuple[str, ...], tuple[CurvePoint, ...]], ...]


def letter_curves(name: str, panels: Sequence[CurvePanel], title: str, note: str) -> Drawing:
    """Draw the panels: readers from top to bottom, measures side by side."""
    readers = list(dict.fromkeys(panel.group for panel in panels))
    kinds = {panel.group: panel.kind for panel in panels}
    look = looks(kinds)
    places, grid = _laid_out(panels, readers), len(readers) == len(panels)
    rows = 1 + max(row for row, _ in places)
    columns = 1 + max(column for _, column in places)
    each = 1.75 if rows < 3 else 1.4 if rows < 5 else 1.2
    height = CURVES_TOP + CURVES_BOTTOM + rows * each + (rows - 1) * CURVES_HEAD
    limits = _curves_limits(panels)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        left, right = 0.66, 0.12
        between = 0.76 if any("\n" in panel.axis for panel in panels) else 0.62
        width = WIDTH * (0.72 if columns == 1 else 1.0) - left - right
        wide = (width - between * (columns - 1)) / columns
        for panel, (row, column) in zip(panels, places, strict=True):
            x = left + column * (wide + between)
            y = height - CURVES_TOP - (row + 1) * each - row * CURVES_HEAD
            last = (row + 1, column) not in places
            box = (x / WIDTH, y / height, wide / WIDTH, each / height)
            _curves_panel(figure, box, panel, look[panel.group].colour, limits[panel.axis], last)
            if column == 0 or grid:
                head = middle_shortened(look[panel.group].label, LONGEST_NAME if grid else 2 * LONGEST_NAME)
                figure.text(
                    x / WIDTH, (y + each + 0.07) / height, head, fontsize=9, weight="bold", va="bottom"
                )
        _curves_key(figure, panels, height)
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _curves_in_words(panels)
    return Drawing.of(name, title, note, alternative, figure)


def pages(panels: Sequence[CurvePanel]) -> list[list[CurvePanel]]:
    """Divide panels among figures so that none has more than :data:`MOST_ROWS` rows; a reader's panels stay together."""
    readers = list(dict.fromkeys(panel.group for panel in panels))
    single = len(readers) == len(panels)
    most = MOST_ROWS * (2 if single else 1)
    pieces = -(-len(readers) // most) or 1
    size = -(-len(readers) // pieces)
    groups = [readers[start : start + size] for start in range(0, len(readers), size)]
    return [[panel for panel in panels if panel.group in own] for own in groups]


def middle_shortened(name: str, most: int) -> str:
    """Cut a long name: first what stands before the last slash, then its middle."""
    if len(name) > most:
        name = name.rsplit("/", 1)[-1]
    keep = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - keep]}…{name[-keep:]}"


def _laid_out(panels: Sequence[CurvePanel], readers: Sequence[str]) -> list[tuple[int, int]]:
    if len(readers) == len(panels):
        return [(n // 2, n % 2) for n in range(len(panels))]
    seen: dict[str, int] = {}
    found = []
    for panel in panels:
        seen[panel.group] = seen.get(panel.group, -1) + 1
        found.append((readers.index(panel.group), seen[panel.group]))
    return found


def _curves_limits(panels: Sequence[CurvePanel]) -> dict[str, tuple[float, float]]:
    """Give all panels with one axis one range, so that readers can be compared; zero is always in it."""
    found: dict[str, tuple[float, float]] = {}
    for axis in dict.fromkeys(panel.axis for panel in panels):
        points = [p for panel in panels if panel.axis == axis for _, _, own in panel.segments for p in own]
        ends = [v for p in points for v in (p.cost, *((p.low, p.high) if drawn(p) else ())) if np.isfinite(v)]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        room = 0.07 * (high - low) or 1.0
        found[axis] = (low - room, high + room)
    return found


def drawn(point: CurvePoint) -> bool:
    """Whether a point has an interval that means something."""
    return bool(np.isfinite(point.low)) and point.items >= FEWEST_ITEMS


def _curves_panel(
    figure: Figure,
    box: tuple[float, float, float, float],
    panel: CurvePanel,
    colour: str,
    limits: tuple[float, float],
    last: bool,
) -> None:
    x, y, wide, high = box
    gap = GAP / WIDTH * (len(panel.segments) - 1)
    sizes = [max(len(places), 3.6) for _, places, _ in panel.segments]
    start = x
    kinds = kinds_in([panel])
    for turn, (title, places, points) in enumerate(panel.segments):
        share = (wide - gap) * sizes[turn] / sum(sizes)
        axes = figure.add_axes((start, y, share, high))
        start += share + GAP / WIDTH
        axes.set_xlim(-0.6, len(places) - 0.4)
        inch = (len(places) + 0.2) / (share * WIDTH)
        axes.set_ylim(*limits)
        axes.axhline(0, color="#333333", lw=0.8, zorder=1)
        axes.set_xticks(range(len(places)), [PLACE_TICKS.get(place, place) for place in places])
        axes.tick_params(axis="x", labelsize=8)
        if last:
            axes.set_xlabel(title, fontsize=8.5, labelpad=3)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(_tick))
        if turn:
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0, labelleft=False)
        else:
            axes.set_ylabel(panel.axis, fontsize=8.5, labelpad=3)
        for at, kind in enumerate(kinds):
            own = [point for point in points if point.kind == kind and np.isfinite(point.cost)]
            if own:
                _line(axes, own, places, kind, colour, inch * DODGE * (at - (len(kinds) - 1) / 2))


def _tick(value: float, _: object) -> str:
    return apa.number(value, 0 if float(value).is_integer() else 1 if float(10 * value).is_integer() else 2)


def _line(
    axes: Axes, points: Sequence[CurvePoint], places: Sequence[str], kind: str, colour: str, shift: float
) -> None:
    marker, style, filled = KIND_LOOKS.get(kind, KIND_LOOKS["other"])
    x = np.array([places.index(point.place) for point in points], dtype=float)
    order = np.argsort(x)
    y = np.array([point.cost for point in points])[order]
    x = x[order] + shift
    broken = np.flatnonzero(np.diff(x) > 1.5) + 1
    for run in np.split(np.arange(len(x)), broken):
        axes.plot(x[run], y[run], color=colour, ls=style, lw=1.4, zorder=3)
    for at, point in zip(x, np.array(points, dtype=object)[order], strict=True):
        if drawn(point):
            intervals(axes, at, point.low, point.high, colour, width=1.1, solid_capstyle="butt")
    face = colour if filled else "white"
    marks(axes, x, y, marker, colour, face, size=4.8, edge=1.2)


def kinds_in(panels: Sequence[CurvePanel]) -> list[str]:
    """Return the kinds of change that panels show, in one order."""
    seen = {p.kind for panel in panels for _, _, points in panel.segments for p in points}
    return [kind for kind in KIND_LOOKS if kind in seen]


def _curves_key(figure: Figure, panels: Sequence[CurvePanel], height: float) -> None:
    """Say once, above all panels, which line is which kind of change."""
    lines = []
    for kind in kinds_in(panels):
        marker, style, filled = KIND_LOOKS[kind]
        face = "#333333" if filled else "white"
        line = Line2D([], [], color="#333333", ls=style, lw=1.4, marker=marker, ms=4.8, mfc=face, mew=1.2)
        line.set_label(KIND_WORDS[kind])
        lines.append(line)
    figure.legend(
        handles=lines,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.12 / height),
        ncols=len(lines),
        frameon=False,
        fontsize=8.5,
        handlelength=3.4,
        columnspacing=2.0,
        borderaxespad=0.0,
    )


def _curves_in_words(panels: Sequence[CurvePanel]) -> str:
    told = []
    for panel in panels:
        parts = []
        for title, places, points in panel.segments:
            for kind in kinds_in([panel]):
                own = {point.place: point for point in points if point.kind == kind}
                values = ", ".join(
                    f"{PLACE_TICKS.get(p, p)} {apa.number(own[p].cost, 1)}" for p in places if p in own
                )
                parts += [f"{KIND_WORDS[kind]}, {title}: {values}"] if values else []
        who = looks({panel.group: panel.kind})[panel.group].label
        told.append(
            f"{who}, {panel.measure} ({panel.axis.lower().replace(chr(10), ' ')}): {'; '.join(parts)}."
        )
    return " ".join(told)


KIND_NAMES = {
    "transposition": "transposed",
    "substitution": "substituted",
    "shuffle": "several moved",
    "other": "other",
}
SHADES = LinearSegmentedColormap.from_list("cost", ["#FFFFFF", "#CFE1F2", "#6AAED6", "#08306B"])
ACROSS = 3
WIDEST, CHARACTER = 2.9, 0.053
"""Inches: a map at its widest, and what a character of an interval takes in a cell."""
CELL, MAP_HEAD, FOOT, MAP_LEFT = 0.44, 0.42, 0.30, 0.95
"""Inches: height of a cell, room above and below a map, room for the names of rows."""


def letter_map(name: str, panels: Sequence[CurvePanel], title: str, note: str) -> Drawing:
    """Draw a map for each panel: kinds as rows, places as columns, darker where it costs more."""
    kinds = {panel.group: panel.kind for panel in panels}
    look = looks(kinds)
    rows = [k for k in KIND_LOOKS if any(p.kind == k for panel in panels for p in panel.segments[0][2])]
    decimals = _decimals(panels)
    needed = _needed(panels, decimals)
    across = _across(len(panels), needed)
    down = -(-len(panels) // across)
    each = MAP_HEAD + FOOT + CELL * len(rows)
    top = 0.28
    height = top + down * each
    most = max([p.cost for panel in panels for p in panel.segments[0][2] if np.isfinite(p.cost)] + [1e-9])
    wide = _wide(across, needed)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for turn, panel in enumerate(panels):
            row, column = divmod(turn, across)
            x, y = MAP_LEFT + column * (wide + 0.2), height - top - row * each - MAP_HEAD - CELL * len(rows)
            axes = axes_at(figure, x, y, wide, CELL * len(rows))
            _map(axes, panel, rows, most, decimals, column == 0)
            label = middle_shortened(look[panel.group].label, int(13 * wide))
            axes.set_title(label, fontsize=9)
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _map_in_words(panels, look)
    return Drawing.of(name, title, note, alternative, figure)


def _wide(across: int, needed: float) -> float:
    """Return the inches that a map is wide where so many stand beside each other and one needs so much."""
    return min((WIDTH - MAP_LEFT - 0.05 - 0.2 * (across - 1)) / across, max(WIDEST, needed))


def _needed(panels: Sequence[CurvePanel], decimals: int) -> float:
    """Return the inches that a map has to be wide for each cell to hold its interval."""
    ends = [_map_ends(point, decimals) for panel in panels for point in panel.segments[0][2] if drawn(point)]
    places = max(len(panel.segments[0][1]) for panel in panels)
    return max(map(len, ends), default=0) * CHARACTER * places


def _across(many: int, needed: float) -> int:
    """Return how many maps stand beside each other: as many as have the width that they need."""
    fitting = [across for across in range(1, ACROSS + 1) if _wide(across, needed) >= needed]
    return min(max(fitting, default=1), many)


def _decimals(panels: Sequence[CurvePanel]) -> int:
    """Return the decimals of numbers of the size of the largest cost or saving."""
    sizes = [abs(p.cost) for panel in panels for p in panel.segments[0][2] if np.isfinite(p.cost)]
    largest = max(sizes, default=0.0)
    return 0 if largest >= 20 else 1 if largest >= 2 else 2


def _map_ends(point: CurvePoint, decimals: int) -> str:
    return apa.interval(point.low, point.high, decimals)


def _map(axes: Axes, panel: CurvePanel, rows: Sequence[str], most: float, decimals: int, first: bool) -> None:
    _, places, points = panel.segments[0]
    axes.set_xlim(0, len(places))
    axes.set_ylim(len(rows), 0)
    axes.grid(False)
    axes.set_xticks(np.arange(len(places)) + 0.5, [PLACE_TICKS.get(one, one) for one in places], fontsize=8.5)
    axes.set_yticks(
        np.arange(len(rows)) + 0.5, [KIND_NAMES[kind] for kind in rows] if first else [""] * len(rows)
    )
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for down, kind in enumerate(rows):
        for across, place in enumerate(places):
            own = next((p for p in points if p.kind == kind and p.place == place), None)
            if own is None or not np.isfinite(own.cost):
                empty = Rectangle((across, down), 1, 1, fc="white", ec="#AAAAAA", hatch="////", lw=0.6)
                axes.add_patch(empty)
                continue
            share = min(max(own.cost / most, 0.0), 1.0)
            axes.add_patch(Rectangle((across, down), 1, 1, fc=SHADES(share), ec="#D5D5D5", lw=0.8))
            ink = "white" if share > 0.78 else "#111111"
            middle = down + (0.36 if drawn(own) else 0.5)
            told = apa.number(own.cost, decimals)
            axes.text(across + 0.5, middle, told, ha="center", va="center", fontsize=9, color=ink)
            if drawn(own):
                axes.text(
                    across + 0.5,
                    down + 0.74,
                    _map_ends(own, decimals),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=ink,
                )


def _map_in_words(panels: Sequence[CurvePanel], look: dict[str, Look]) -> str:
    told = []
    for panel in panels:
        values = ", ".join(
            f"{KIND_NAMES[p.kind]} {PLACE_TICKS.get(p.place, p.place)} {apa.number(p.cost, 1)}"
            for p in panel.segments[0][2]
        )
        told.append(f"{look[panel.group].label}, {panel.axis}: {values}.")
    return " ".join(told)


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
EACH, BESIDE_TOP, BESIDE_BOTTOM, BESIDE_HEAD = 2.05, 0.76, 0.52, 0.30
"""Inches of a panel's height, above the first row, under the last, and above each row for its name."""


def percent_added(log_ratio: float) -> float:
    """Return a log ratio of times as percent added."""
    return 100.0 * float(np.expm1(log_ratio))


def letter_beside_figures(name: str, pairs: Sequence[Pair], title: str, note: str) -> list[Drawing]:
    """Draw people's added reading time against a model's added surprisal and lost accuracy, a row of panels for each model."""
    found = []
    for start in range(0, len(pairs), MOST_MODELS):
        named = name if start == 0 else f"{name}_{start // MOST_MODELS + 1}"
        found.append(_figure(named, pairs[start : start + MOST_MODELS], pairs, title, note))
    return found


def _figure(name: str, shown: Sequence[Pair], every: Sequence[Pair], title: str, note: str) -> Drawing:
    kinds = {every[0].people: every[0].people_kind, **dict.fromkeys((one.model for one in every), "model")}
    look = looks(kinds)
    height = BESIDE_TOP + BESIDE_BOTTOM + len(shown) * EACH + (len(shown) - 1) * (BESIDE_HEAD + 0.18)
    times = _beside_limits(percent_added, [row.people[TIME] for one in every for row in one.apart])
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        left, right, between = 0.72, 0.12, 0.34
        wide = (WIDTH - left - right - between) / 2
        for at, pair in enumerate(shown):
            below = height - BESIDE_TOP - EACH - at * (EACH + BESIDE_HEAD + 0.18)
            for column, (measure, (axis, scaled)) in enumerate(AXES.items()):
                axes = axes_at(figure, left + column * (wide + between), below, wide, EACH)
                values = [row.model[measure] for one in every for row in one.apart if measure in row.model]
                axes.set_ylim(*times)
                axes.set_xlim(*_beside_limits(scaled, values))
                _beside_panel(axes, pair, measure, scaled, look[pair.model])
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
        _beside_key(figure, shown, height)
        mark_not_data(figure, kinds)
    alternative = _beside_in_words(shown)
    return Drawing.of(name, title, note, alternative, figure)


def _beside_limits(scaled: Callable[[float], float], costs: Sequence[Cost]) -> tuple[float, float]:
    """Return a range that holds all points, their intervals and zero."""
    ends = [scaled(value) for one in costs for value in _beside_ends(one) if np.isfinite(value)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.07 * (high - low) or 1.0
    return low - room, high + room


def _beside_ends(cost: Cost) -> tuple[float, ...]:
    """Return a cost and its interval; of fewer than three items there is none that means something."""
    return (cost.value, cost.low, cost.high) if cost.items >= FEWEST_ITEMS else (cost.value,)


def _beside_panel(axes: Axes, pair: Pair, measure: str, scaled: Callable[[float], float], look: Look) -> None:
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
        x, *wide = (scaled(value) for value in _beside_ends(row.model[measure]))
        y, *high = (percent_added(value) for value in _beside_ends(row.people[TIME]))
        colour = _shade(look.colour, row.distance, distances)
        if wide:
            intervals(axes, y, wide[0], wide[1], colour, across=True, width=0.9, zorder=3, alpha=0.75)
        if high:
            intervals(axes, x, high[0], high[1], colour, width=0.9, zorder=3, alpha=0.75)
        face = colour if row.kind == "transposition" else "white"
        marks(axes, x, y, MARKERS[row.place], colour, face, size=6.2, edge=1.2)


def _distances(pairs: Sequence[Pair]) -> list[str]:
    """Return the distances that are told apart, the shortest first."""
    return sorted({row.distance for one in pairs for row in one.rows if row.distance}, key=float)


def _shade(colour: str, distance: str, distances: Sequence[str]) -> str:
    """Return the colour of a distance: the shortest is dark, the farthest light; so is one that stands for all."""
    if distance not in distances or len(distances) < 2:
        return colour
    white = LIGHTEST * distances.index(distance) / (len(distances) - 1)
    return to_hex([one + (1.0 - one) * white for one in to_rgb(colour)])


def _beside_key(figure: Figure, shown: Sequence[Pair], height: float) -> None:
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


def _beside_in_words(shown: Sequence[Pair]) -> str:
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


MOST_READERS = 3
LINE, WEIGHTS_LEFT = 0.175, 1.72
"""Inches: height of a predictor's line, room for its name."""


@dataclass(frozen=True)
class Explained:
    """How well one predictor explains one reader: Akaike weight, and held-out gain in nats per 1,000 observations (nan: not known)."""

    group: str
    kind: str
    predictor: str
    weight: float
    gain: float
    low: float
    high: float


def letter_weights(
    name: str, found: Sequence[Explained], predictors: Sequence[str], title: str, note: str
) -> Drawing:
    """Draw weights as bars above, gains as points with intervals below."""
    kinds = {one.group: one.kind for one in found}
    look = looks(kinds)
    high = LINE * len(predictors)
    top, between, bottom = 0.55, 0.62, 0.45
    height = top + 2 * high + between + bottom
    room = WIDTH - WEIGHTS_LEFT - 0.1
    wide = min((room - 0.22 * (len(kinds) - 1)) / len(kinds), 2.6)
    spans = [v for one in found for v in (one.gain, one.low, one.high) if np.isfinite(v)] + [0.0]
    margin = 0.06 * (max(spans) - min(spans)) or 1.0
    ends = (min(spans) - margin, max(spans) + margin)
    with styled():
        figure = Figure(figsize=(WIDTH, height))
        for turn, group in enumerate(kinds):
            own = {one.predictor: one for one in found if one.group == group}
            x = WEIGHTS_LEFT + turn * (wide + 0.22)
            for part, y in enumerate((bottom + high + between, bottom)):
                axes = axes_at(figure, x, y, wide, high)
                axes.set_ylim(len(predictors) - 0.4, -0.6)
                axes.set_yticks(range(len(predictors)), predictors if turn == 0 else [""] * len(predictors))
                axes.tick_params(axis="y", labelsize=8, length=0)
                axes.tick_params(axis="x", labelsize=8)
                axes.grid(True, axis="x")
                draw = _gains if part else _bars
                draw(axes, own, predictors, look[group].colour, ends)
                if not part:
                    axes.set_title(middle_shortened(look[group].label, int(15 * wide)), fontsize=8.5)
                if turn == 0:
                    text = "B  Held-out gain (nats per 1,000)" if part else "A  Akaike weight"
                    figure.text(
                        0.01, (y + high + 0.12 + 0.2 * (1 - part)) / height, text, fontsize=9, weight="bold"
                    )
        mark_not_data(figure, kinds)
        keep_width(figure)
    alternative = _weights_in_words(found)
    return Drawing.of(name, title, note, alternative, figure)


def _bars(
    axes: Axes, own: dict[str, Explained], predictors: Sequence[str], colour: str, _: tuple[float, float]
) -> None:
    axes.set_xlim(0, 1.02)
    axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    for place, name in enumerate(predictors):
        if name not in own:
            axes.text(0.02, place, "not known", fontsize=6.5, color="#666666", va="center")
        elif np.isfinite(own[name].weight):
            axes.barh(place, own[name].weight, height=0.66, color=colour, zorder=3)


def _gains(
    axes: Axes, own: dict[str, Explained], predictors: Sequence[str], colour: str, ends: tuple[float, float]
) -> None:
    axes.set_xlim(*ends)
    axes.axvline(0, color="#333333", lw=0.8, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: apa.number(value, 0 if float(value).is_integer() else 1))
    for place, name in enumerate(predictors):
        one = own.get(name)
        if one is None or not np.isfinite(one.gain):
            continue
        intervals(axes, place, one.low, one.high, colour, across=True, width=1.2, zorder=3)
        sure = np.isfinite(one.low) and one.low > 0
        axes.plot(
            one.gain, place, ls="", marker="o", ms=4.2, mfc=colour if sure else "white", mec=colour, zorder=4
        )


def _weights_in_words(found: Sequence[Explained]) -> str:
    told = []
    for group in dict.fromkeys(one.group for one in found):
        own = sorted((one for one in found if one.group == group), key=lambda one: -one.weight)
        values = ", ".join(f"{one.predictor} {apa.number(one.weight)}" for one in own)
        told.append(f"Akaike weights of {group}: {values}.")
    return " ".join(told)
