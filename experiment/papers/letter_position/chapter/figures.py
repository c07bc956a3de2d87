"""Letter position: curves, maps, people and models, and competing predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis import apa
from analysis.figures import marks
from analysis.figures.drawing import WIDTH, Drawing, MarkStyle, keep_width, shortened, shown_of, styled
from analysis.figures.marks import INK, STEPS, IntervalMarks
from analysis.figures.panels import Room, axes_at, paged
from analysis.letters.letter_costs import BITS, RIGHT, TIME, CostInterval, HumanModelCost, HumanModelPair
from analysis.measures.resampling import FEWEST_UNITS
from analysis.readers import marked, spoken
from analysis.results import as_percent

WORDS = Path(__file__).with_name("figures.yaml")
KIND_LOOKS = {
    "transposition": MarkStyle(INK, "o", "-", "two letters transposed"),
    "substitution": MarkStyle(INK, "s", (0, (4, 1.6)), "letters substituted", is_hollow=True),
    "shuffle": MarkStyle(INK, "^", (0, (1.2, 1.2)), "several letters moved"),
    "other": MarkStyle(INK, "D", (0, (6, 1.5, 1.2, 1.5)), "other changes", is_hollow=True),
}
"""Kinds differ in grey as in colour."""
KIND_NAMES = {
    "transposition": "transposed",
    "substitution": "substituted",
    "shuffle": "several moved",
    "other": "other",
}
PLACE_TICKS = {"outer": "both ends"}  # places whose names in tables of data are not those of the text
FEWEST_ITEMS = FEWEST_UNITS  # a point of fewer items has no interval
MOST_ROWS = 5
CURVES_HEAD, GAP = 0.47, 0.16  # inches above each panel for its name, and between segments
DODGE = 0.055  # inches between the points of two kinds at one place
LONGEST_NAME = 38  # letters of a reader's name that have room above half a figure


@dataclass(frozen=True)
class CurvePoint:
    """One point of a curve: ``place`` is a position from 1 or a zone, ``kind`` what was done there; ends may be nan."""

    place: str
    kind: str
    cost: float
    low: float
    high: float
    items: int
    is_tested: bool = False  # whether it is reported in the Results

    @property
    def ends(self) -> tuple[float, float]:
        """Its interval, if it has one that means something."""
        has_interval = not np.isnan(self.low) and self.items >= FEWEST_ITEMS
        return (self.low, self.high) if has_interval else (np.nan, np.nan)


@dataclass(frozen=True)
class CurvePanel:
    """One reader's costs on one measure."""

    group: str
    kind: str
    measure: str  # in words, for the text alternative
    axis: str  # what the vertical axis counts, with its unit
    segments: tuple[tuple[str, tuple[str, ...], tuple[CurvePoint, ...]], ...]  # title, places, points

    @property
    def points(self) -> list[CurvePoint]:
        """The points of all segments."""
        return [point for _, _, points in self.segments for point in points]


def _kinds_in(panels: Sequence[CurvePanel]) -> list[str]:
    """Return the kinds of change that panels show, in one order."""
    present = {point.kind for panel in panels for point in panel.points}
    return [kind for kind in KIND_LOOKS if kind in present]


def _sides(chosen: Sequence[CurvePoint]) -> IntervalMarks:
    return IntervalMarks(
        *np.array([(point.cost, *point.ends) for point in chosen], dtype=float).reshape(-1, 3).T
    )


def letter_curves(
    name: str, panels: Sequence[CurvePanel], kinds_of_readers: Mapping[str, str], title: str, note: str
) -> Drawing:
    """Draw the panels: readers from top to bottom, measures side by side; or readers alone, two in a row."""
    readers = list(dict.fromkeys(panel.group for panel in panels))
    look = shown_of(kinds_of_readers, readers)
    is_single = len(readers) == len(panels)
    places = []
    for n, panel in enumerate(panels):
        before = sum(other.group == panel.group for other in panels[:n])
        places.append(divmod(n, 2) if is_single else (readers.index(panel.group), before))
    rows, columns = (1 + max(indices) for indices in zip(*places, strict=True))
    panel_height = 1.75 if rows < 3 else 1.4 if rows < 5 else 1.2
    limits = {
        axis: marks.widened(
            [
                (ends.value, ends.low, ends.high)
                for panel in panels if panel.axis == axis for ends in [_sides(panel.points)]
            ], 0.07, 0.0
        )
        for axis in dict.fromkeys(panel.axis for panel in panels)
    }  # fmt: skip
    left, top, between = 0.66, 0.66, 0.76 if any("\n" in panel.axis for panel in panels) else 0.62
    wide = (WIDTH * (0.72 if columns == 1 else 1.0) - left - 0.12 - between * (columns - 1)) / columns
    kinds = _kinds_in(panels)
    with styled():
        high = top + 0.5 + rows * (panel_height + CURVES_HEAD) - CURVES_HEAD
        figure = Figure(figsize=(WIDTH, high))
        for panel, (row, column) in zip(panels, places, strict=True):
            x, y = (
                left + column * (wide + between),
                high - top - panel_height - row * (panel_height + CURVES_HEAD),
            )
            colour, sizes = (
                look[panel.group].colour,
                [max(len(segment_places), 3.6) for _, segment_places, _ in panel.segments],
            )
            start, room = x, wide - GAP * (len(sizes) - 1)
            for turn, (text, segment_places, segment_points) in enumerate(panel.segments):
                axes = axes_at(figure, start, y, room * sizes[turn] / sum(sizes), panel_height)
                start += room * sizes[turn] / sum(sizes) + GAP
                _segment(axes, segment_places, segment_points, _kinds_in([panel]), colour)
                axes.set_ylim(*limits[panel.axis])
                if (row + 1, column) not in places:
                    axes.set_xlabel(text, fontsize=8.5, labelpad=3)
                if turn:
                    axes.spines["left"].set_visible(False)
                    axes.tick_params(axis="y", length=0, labelleft=False)
                else:
                    axes.set_ylabel(panel.axis, fontsize=8.5, labelpad=3)
            if column == 0 or is_single:
                most = LONGEST_NAME * (1 if is_single else 2)
                head = middle_shortened(look[panel.group].label, most)
                at = (x / WIDTH, (y + panel_height + 0.07) / high)
                figure.text(*at, head, fontsize=9, weight="bold", va="bottom")
        handles = [marks.handle(KIND_LOOKS[kind], lw=1.4, ms=4.8, mew=1.2) for kind in kinds]
        _key_above(figure, handles, len(handles), fontsize=8.5, handlelength=3.4, columnspacing=2.0)
        keep_width(figure)
    described_panels = [
        {"who": look[panel.group].label, "panel": panel, "parts": _parts(panel)} for panel in panels
    ]
    return Drawing.described(
        name, figure, look, WORDS / "letter_curves", title=title, note=note, told=described_panels
    )


def _parts(panel: CurvePanel) -> list[tuple[str, str, list[CurvePoint]]]:
    """Return the points of each kind in each segment, in the order of places."""
    parts = []
    for title, places, points in panel.segments:
        for kind in _kinds_in([panel]):
            of_place = {point.place: point for point in points if point.kind == kind}
            parts.append((KIND_LOOKS[kind].label, title, [of_place[p] for p in places if p in of_place]))
    return [part for part in parts if part[2]]


def pages(panels: Sequence[CurvePanel]) -> list[list[CurvePanel]]:
    """Divide panels among figures so that none has more than :data:`MOST_ROWS` rows; a reader's panels stay together."""
    readers = list(dict.fromkeys(panel.group for panel in panels))
    most = MOST_ROWS * (2 if len(readers) == len(panels) else 1)
    size = -(-len(readers) // (-(-len(readers) // most) or 1))
    groups = [readers[start : start + size] for start in range(0, len(readers), size)]
    return [[panel for panel in panels if panel.group in page_readers] for page_readers in groups]


def middle_shortened(name: str, most: int) -> str:
    """Cut a long name: first everything up to the last slash, then its middle."""
    if len(name) > most:
        name = name.rsplit("/", 1)[-1]
    keep = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - keep]}…{name[-keep:]}"


def _segment(
    axes: Axes, places: Sequence[str], points: Sequence[CurvePoint], kinds: Sequence[str], colour: str
) -> None:
    axes.set_xlim(-0.6, len(places) - 0.4)
    unit = (len(places) + 0.2) / float(axes.get_position().width * WIDTH)
    axes.axhline(0, color=INK, lw=0.8, zorder=1)
    axes.set_xticks(range(len(places)), [PLACE_TICKS.get(place, place) for place in places])
    axes.tick_params(axis="x", labelsize=8)
    marks.numbered(axes.yaxis, _tick, nbins=5, steps=STEPS)
    for turn, kind in enumerate(kinds):
        drawn = [point for point in points if point.kind == kind and np.isfinite(point.cost)]
        drawn = sorted(drawn, key=lambda point: places.index(point.place))
        at = np.array([places.index(point.place) for point in drawn], dtype=float)
        look = replace(KIND_LOOKS[kind], colour=colour)
        for run in np.split(np.arange(len(at)), np.flatnonzero(np.diff(at) > 1.5) + 1):
            x = at[run] + marks.dodged(turn, len(kinds), unit * DODGE, np.inf)
            marks.points(
                axes, look, x, _sides([drawn[n] for n in run]), join=1.4, size=4.8, edge=1.2, bar=1.1
            )


def _tick(value: float) -> str:
    return apa.number(value, 0 if float(value).is_integer() else 1 if float(10 * value).is_integer() else 2)


def _key_above(figure: Figure, handles: Sequence[Any], columns: int, **more: Any) -> None:
    """Write once, above all panels, which mark is which."""
    at = (0.0, 1 - 0.12 / figure.get_figheight())
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=at, ncols=columns, frameon=False, borderaxespad=0.0, **more
    )  # fmt: skip


SHADES = LinearSegmentedColormap.from_list("cost", ["#FFFFFF", "#CFE1F2", "#6AAED6", "#08306B"])
ACROSS = 3
WIDEST, CHARACTER = 2.9, 0.053
"""Inches: a map at its widest, and what a character of an interval takes in a cell."""
CELL, MAP_LEFT = 0.44, 0.95  # inches: height of a cell, room for the names of rows


def letter_map(
    name: str, panels: Sequence[CurvePanel], kinds: Mapping[str, str], title: str, note: str
) -> Drawing:
    """Draw a map for each panel: kinds as rows, places as columns, darker where it costs more."""
    look = shown_of(kinds, {panel.group for panel in panels})
    shown = [point for panel in panels for point in panel.segments[0][2]]
    rows = [kind for kind in KIND_LOOKS if any(point.kind == kind for point in shown)]
    costs = [point.cost for point in shown if np.isfinite(point.cost)]
    largest = max(map(abs, costs), default=0.0)
    decimals = 0 if largest >= 20 else 1 if largest >= 2 else 2
    written = [apa.interval(*point.ends, decimals) for point in shown if not np.isnan(point.ends[0])]
    needed = (
        max(map(len, written), default=0) * CHARACTER * max(len(panel.segments[0][1]) for panel in panels)
    )

    def wide(across: int) -> float:
        room = (WIDTH - MAP_LEFT - 0.05 - 0.2 * (across - 1)) / across
        return float(min(room, max(WIDEST, needed)))

    fitting = [across for across in range(1, ACROSS + 1) if wide(across) >= needed]
    across = min(max(fitting, default=1), len(panels))
    widest = wide(across)
    room = Room(CELL * len(rows), MAP_LEFT, 0.3, across, above=0.42, top=0.28, widest=widest, shared="y")
    norm = Normalize(0, max([*costs, 1e-9]), clip=True)
    with styled():
        figure, drawn = room.panels(len(panels))
        for axes, panel in zip(drawn, panels, strict=True):
            _map(axes, panel, rows, norm, decimals)
            label = middle_shortened(look[panel.group].label, int(13 * widest))
            axes.set_title(label, fontsize=9)
        keep_width(figure)
    values = {"panels": panels, "names": KIND_NAMES, "ticks": PLACE_TICKS}
    return Drawing.described(name, figure, look, WORDS / "letter_map", title=title, note=note, **values)


def _map(axes: Axes, panel: CurvePanel, rows: Sequence[str], norm: Normalize, decimals: int) -> None:
    _, places, points = panel.segments[0]
    costs = np.full((len(rows), len(places)), np.nan)
    of_cell = {(rows.index(point.kind), places.index(point.place)): point for point in reversed(points)}
    for (down, across), point in of_cell.items():
        costs[down, across] = point.cost if np.isfinite(point.cost) else np.nan
        if np.isnan(costs[down, across]):
            continue
        ink = marks.ink_on(SHADES(float(norm(point.cost))))
        has_ends = not np.isnan(point.ends[0])
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
        text = apa.number(point.cost, decimals)
        axes.text(across + 0.5, down + (0.36 if has_ends else 0.5), text, fontsize=9, **style)
        if has_ends:
            axes.text(across + 0.5, down + 0.74, apa.interval(*point.ends, decimals), fontsize=6.5, **style)
    axes.patch.set(hatch="////", edgecolor="#AAAAAA", linewidth=0)
    marks.cells(axes, costs, SHADES, norm, edgecolors="#D5D5D5", linewidth=0.8)
    axes.set_xticks(
        np.arange(len(places)) + 0.5, [PLACE_TICKS.get(place, place) for place in places], fontsize=8.5
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, [KIND_NAMES[kind] for kind in rows])
    axes.tick_params(length=0)


MARKERS = {"initial": "^", "internal": "o", "final": "s", "outer": "D"}
PLACE_WORDS = {
    "initial": "initial letters",
    "internal": "internal letters",
    "final": "final letters",
    "outer": "first and last letter",
}
TOGETHER = "all distances"
"""Added to a place whose distances are not separated where those of others are, since dark marks would mean the shortest."""
MOST_MODELS = 4
LIGHTEST = 0.55  # how far towards white the farthest letters are drawn
AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    BITS: ("Surprisal added (bits a text)", lambda value: value),
    RIGHT: ("Accuracy lost (points)", lambda value: 100.0 * value),
}


def letter_beside_figures(
    name: str, pairs: Sequence[HumanModelPair], kinds: Mapping[str, str], title: str, note: str
) -> list[Drawing]:
    """Draw people's added reading time against a model's added surprisal and lost accuracy, a row of panels for each model."""

    def page(page_name: str, _: str, shown: Sequence[HumanModelPair]) -> Drawing:
        return _beside(page_name, shown, pairs, kinds, (title, note))

    return paged(name, title, pairs, page, MOST_MODELS)


def _beside(
    name: str,
    shown: Sequence[HumanModelPair],
    all_pairs: Sequence[HumanModelPair],
    kinds: Mapping[str, str],
    caption: tuple[str, str],
) -> Drawing:
    people = all_pairs[0].people
    look = shown_of(kinds, {people, *(pair.model for pair in all_pairs)})
    times = _limits(as_percent, [row.people[TIME] for pair in all_pairs for row in pair.apart])
    room = Room(2.05, 0.72, 0.52, 2, between=0.34, right=0.12, above=0.48, gap=0.0, top=0.28)
    with styled():
        figure, panels = room.panels(2 * len(shown))
        for n, axes in enumerate(panels):
            pair, (measure, (axis, scaled)) = shown[n // 2], list(AXES.items())[n % 2]
            costs = [row.model[measure] for pair in all_pairs for row in pair.apart if measure in row.model]
            axes.set(xlim=_limits(scaled, costs), ylim=times)
            _beside_panel(axes, pair, measure, look[pair.model])
            axes.tick_params(labelsize=8, labelbottom=True)
            if pair is shown[-1]:
                axes.set_xlabel(axis, fontsize=8.5, labelpad=3)
            if n % 2 == 0:
                axes.set_ylabel(f"Reading time added,\n{spoken(people)} (%)", fontsize=8.5, labelpad=3)
                frame = axes.get_position()
                at = (frame.x0, frame.y1 + 0.06 / figure.get_figheight())
                head = shortened(look[pair.model].label, 70)
                colour = look[pair.model].colour
                figure.text(*at, head, fontsize=9, weight="bold", color=colour, va="bottom")
        handles = _beside_handles(shown)
        columns = len(handles) if len(handles) < 6 else 3 if len(handles) == 6 else 4
        _key_above(
            figure, handles, columns, fontsize=8, handlelength=1.2, handletextpad=0.4, columnspacing=1.6
        )
    title, note = caption
    people_label = marked(people, all_pairs[0].people_kind)
    described_pairs = [
        {"pair": pair, "people": people_label, "rows": [_row(row) for row in pair.apart]} for pair in shown
    ]
    return Drawing.described(
        name, figure, look, WORDS / "letter_beside", title=title, note=note, told=described_pairs
    )


def _limits(scaled: Callable[[float], float], costs: Sequence[CostInterval]) -> tuple[float, float]:
    """Return a range that holds all points, their intervals and zero."""
    return marks.widened([[scaled(value) for cost in costs for value in _ends(cost)]], 0.07, 0.0)


def _ends(cost: CostInterval) -> tuple[float, float, float]:
    """Return a cost and its interval; of fewer than three items there is none that means something."""
    ends = (cost.low, cost.high) if cost.items >= FEWEST_ITEMS else (np.nan, np.nan)
    return (cost.value, *ends)


def _beside_panel(axes: Axes, pair: HumanModelPair, measure: str, look: MarkStyle) -> None:
    axes.axhline(0, color=INK, lw=0.7, zorder=1)
    axes.axvline(0, color=INK, lw=0.7, zorder=1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, steps=STEPS))
    drawn, distances = [row for row in pair.apart if measure in row.model], _distances([pair])
    if not drawn:
        text = "reports no surprisal" if measure == BITS else "answers no questions"
        marks.in_the_middle(axes, text, fontsize=8.5)
    for row in drawn:
        x = IntervalMarks(*map(AXES[measure][1], _ends(row.model[measure])))
        y = IntervalMarks(*map(as_percent, _ends(row.people[TIME])))
        colour = _shade(look.colour, row.distance, distances)
        mark = MarkStyle(colour, MARKERS[row.place], is_hollow=row.kind != "transposition")
        marks.points(axes, mark, x, y, size=6.2, edge=1.2, bar=0.9)


def _distances(pairs: Sequence[HumanModelPair]) -> list[str]:
    """Return the distances that are told apart, the shortest first."""
    return sorted({row.distance for pair in pairs for row in pair.apart if row.distance}, key=float)


def _shade(colour: str, distance: str, distances: Sequence[str]) -> str:
    """Return the colour of a distance: the shortest is dark, the farthest light; so is one that stands for all."""
    if distance not in distances or len(distances) < 2:
        return colour
    white = LIGHTEST * distances.index(distance) / (len(distances) - 1)
    return to_hex([channel + (1.0 - channel) * white for channel in to_rgb(colour)])


def _beside_handles(shown: Sequence[HumanModelPair]) -> list[Any]:
    """Return which marker is which place and, where several are drawn, which filling which kind and which shade which distance."""
    rows = [row for pair in shown for row in pair.apart if any(measure in row.model for measure in AXES)]
    distances = _distances(shown)
    handles: list[Any] = []
    for place, marker in MARKERS.items():
        if place_rows := [row for row in rows if row.place == place]:
            together = bool(distances) and not any(row.distance for row in place_rows)
            label = PLACE_WORDS[place] + (f" ({TOGETHER})" if together else "")
            handles.append(marks.handle(MarkStyle(INK, marker, "", label), ms=6, mew=1.1))
    kinds = [kind for kind in KIND_LOOKS if any(row.kind == kind for row in rows)]
    fillings = {KIND_LOOKS[kind].label: INK if kind == "transposition" else "white" for kind in kinds}
    shades = {f"distance {distance}": _shade(INK, distance, distances) for distance in distances}
    for swatches in (fillings, shades):
        if len(swatches) > 1:
            handles += [Patch(facecolor=face, edgecolor=INK, label=label) for label, face in swatches.items()]
    return handles


def _row(row: HumanModelCost) -> str:
    values = [f"{apa.number(as_percent(row.people[TIME].value), 1)}% time"]
    for measure, unit, decimals in ((BITS, "bits", 2), (RIGHT, "points", 1)):
        if measure in row.model:
            values.append(f"{apa.number(AXES[measure][1](row.model[measure].value), decimals)} {unit}")
    where = PLACE_WORDS[row.place] + (f", distance {row.distance}" if row.distance else "")
    return f"{KIND_LOOKS[row.kind].label}, {where}: {', '.join(values)}"


MOST_READERS = 3
LINE, WEIGHTS_LEFT = 0.175, 1.72  # inches: height of a predictor's line, room for its name


@dataclass(frozen=True)
class Explained:
    """Fit of one predictor to one reader: Akaike weight, and held-out gain in nats per 1,000 observations (nan: not known)."""

    group: str
    predictor: str
    weight: float
    gain: float
    low: float
    high: float


def letter_weights(
    name: str,
    explanations: Sequence[Explained],
    predictors: Sequence[str],
    kinds: Mapping[str, str],
    title: str,
    note: str,
) -> Drawing:
    """Draw weights as bars above, gains as points with intervals below."""
    look = shown_of(kinds, {explained.group for explained in explanations})
    ends = marks.widened(
        [(explained.gain, explained.low, explained.high) for explained in explanations], 0.06, 0.0
    )
    room = Room(
        LINE * len(predictors), WEIGHTS_LEFT, 0.45, len(look), between=0.22, right=0.1, above=0.55, gap=0.07, top=0, widest=2.6,
        shared="y",
    )  # fmt: skip
    with styled():
        figure, panels = room.panels(2 * len(look))
        for n, axes in enumerate(panels):
            is_gain, turn = divmod(n, len(look))
            group, mark = list(look.items())[turn]
            by_predictor = {
                explained.predictor: explained for explained in explanations if explained.group == group
            }
            marks.name_rows(axes, predictors, 8, 0.6)
            axes.tick_params(axis="x", labelsize=8)
            draw = _gains if is_gain else _bars
            axes.set_xlim(*(ends if is_gain else (0, 1.02)))
            draw(axes, by_predictor, predictors, mark)
            frame = axes.get_position()
            if not is_gain:
                wide = frame.width * WIDTH
                axes.set_title(middle_shortened(mark.label, int(15 * wide)), fontsize=8.5)
            if turn == 0:
                text = "B  Held-out gain (nats per 1,000)" if is_gain else "A  Akaike weight"
                up = (0.12 if is_gain else 0.32) / figure.get_figheight()
                figure.text(0.01, frame.y1 + up, text, fontsize=9, weight="bold")
        keep_width(figure)
    by_weight = sorted(explanations, key=lambda explained: -explained.weight)
    ranked = {group: [explained for explained in by_weight if explained.group == group] for group in look}
    return Drawing.described(
        name, figure, look, WORDS / "letter_weights", title=title, note=note, ranked=ranked
    )


def _bars(
    axes: Axes, by_predictor: Mapping[str, Explained], predictors: Sequence[str], look: MarkStyle
) -> None:
    axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    for row, name in enumerate(predictors):
        if name not in by_predictor:
            axes.text(0.02, row, "not known", fontsize=6.5, color="#666666", va="center")
        elif np.isfinite(by_predictor[name].weight):
            axes.barh(row, by_predictor[name].weight, height=0.66, color=look.colour, zorder=3)


def _gains(
    axes: Axes, by_predictor: Mapping[str, Explained], predictors: Sequence[str], look: MarkStyle
) -> None:
    axes.axvline(0, color=INK, lw=0.8, zorder=1)
    marks.numbered(axes.xaxis, _tick, nbins=4, steps=[1, 2, 5, 10])
    for row, name in enumerate(predictors):
        if name in by_predictor:
            explained = by_predictor[name]
            mark = replace(look, marker="o", is_hollow=not explained.low > 0)
            ends = IntervalMarks(explained.gain, explained.low, explained.high)
            marks.points(axes, mark, ends, row, size=4.2, edge=1.0, bar=1.2)
