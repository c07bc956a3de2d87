"""What all figures share: the style of each reader group, labels that do not overlap, and saving as SVG and PNG."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from analysis.readers import PARTICIPANT_KINDS, marked

NOT_DATA = "Simulated readers: not data"
PILOT_LABEL = "you (pilot)"
WIDTH = 6.7
TALLEST = 8.2
"""Inches of a figure that fills a page; Word and LaTeX make it a little smaller, for its number, title and note stand there too."""


@dataclass(frozen=True)
class Look:
    """How one reader group is drawn: colour, marker and line differ, so that grey prints stay legible."""

    colour: str
    marker: str
    line: Any
    label: str


@dataclass(frozen=True)
class Drawing:
    """A finished figure.

    Attributes
    ----------
    name : str
        File name without ending.
    title : str
        The figure's title, in words.
    note : str
        The note under it: what points, bars and marks are.
    alternative : str
        What the figure shows, for those who cannot see it.
    svg : str
        The figure as an SVG element without prolog, ids made unique by the name.
    figure : matplotlib.figure.Figure
    """

    name: str
    title: str
    note: str
    alternative: str
    svg: str
    figure: Figure

    @classmethod
    def of(cls, name: str, title: str, note: str, alternative: str, figure: Figure) -> Drawing:
        """Return a figure that is drawn, with its SVG."""
        return cls(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)

    def save(self, folder: Path) -> tuple[Path, Path]:
        """Write ``name.svg`` and ``name.png`` (300 dots per inch) and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        svg, png = folder / f"{self.name}.svg", folder / f"{self.name}.png"
        svg.write_text('<?xml version="1.0" encoding="utf-8"?>\n' + self.svg, "utf-8")
        with styled():
            self.figure.savefig(png, bbox_inches=filled(self.figure), metadata={"Software": None})
        return svg, png

    def renamed(self, name: str, title: str) -> Drawing:
        """Return the same figure under another name and title."""
        svg = as_svg(self.figure, name, title, self.alternative)
        return replace(self, name=name, title=title, svg=svg)


@cache
def style() -> dict[str, Any]:
    """Return colours, markers, lines and settings of all figures."""
    return dict(json.loads(resources.files(__package__).joinpath("style.json").read_text("utf-8")))


@contextmanager
def styled() -> Iterator[None]:
    """Draw with the report's settings and leave matplotlib as it was."""
    with mpl.rc_context({**mpl.rcParamsDefault, **style()["settings"], "backend": "agg"}):
        yield


def looks(kinds: dict[str, str]) -> dict[str, Look]:
    """Give each reader group its look: people blue, models by turn, baselines grey."""
    found: dict[str, Look] = {}
    turn = {"model": 0, "baseline": 0}
    people = 0
    for group, kind in kinds.items():
        if kind in PARTICIPANT_KINDS:
            spec = style()["people"] if people == 0 else style()["models"][-1]
            people += 1
        else:
            choices = style()["baselines"]
            place = turn[kind]
            spec = _model(place) if kind == "model" else choices[place % len(choices)]
            turn[kind] += 1
        line = spec["line"] if isinstance(spec["line"], str) else (0, tuple(spec["line"]))
        found[group] = Look(spec["colour"], spec["marker"], line, marked(group, kind))
    return found


def shown_of(kinds: Mapping[str, str], groups: Collection[str]) -> tuple[dict[str, Look], dict[str, str]]:
    """Return the looks and kinds of the groups that a figure shows; each looks as among all, in every figure of a chapter."""
    shown = {group: kind for group, kind in kinds.items() if group in groups}
    return {group: look for group, look in looks(dict(kinds)).items() if group in shown}, shown


def _model(place: int) -> dict[str, Any]:
    """Return the look of a model by its place: colours, markers and lines by turn, in cycles of 5, 11 and 7."""
    given = style()["models"]
    if place < len(given):
        return dict(given[place])
    more = style()["further_models"]
    return {
        "colour": given[place % len(given)]["colour"],
        "marker": more["markers"][place % len(more["markers"])],
        "line": more["lines"][place % len(more["lines"])],
    }


def shortened(name: str, most: int) -> str:
    """Cut a name that is longer than so many letters, with an ellipsis in its place."""
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def marks(
    axes: Axes, x: Any, y: Any, marker: Any, colour: Any, face: Any = None, *, size: float = 5.5, edge: float = 1.3,
    zorder: float = 5, **more: Any,
) -> Line2D:  # fmt: skip
    """Draw marks that no line joins, filled with their colour unless another is given."""
    (drawn,) = axes.plot(
        x, y, ls="", marker=marker, ms=size, mfc=colour if face is None else face, mec=colour, mew=edge, zorder=zorder, **more
    )  # fmt: skip
    return drawn


def intervals(
    axes: Axes, at: Any, low: Any, high: Any, colour: Any, *, across: bool = False, width: float = 1.3, zorder: float = 4,
    **more: Any,
) -> None:  # fmt: skip
    """Draw intervals upwards, or across; one without two ends is left out."""
    for place, first, last in np.broadcast(at, low, high):
        if np.isfinite(first) and np.isfinite(last):
            ends, fixed = [first, last], [place, place]
            axes.plot(
                *((ends, fixed) if across else (fixed, ends)), color=colour, lw=width, zorder=zorder, **more
            )


def key_below(figure: Figure, handles: Sequence[Any], columns: int, **more: Any) -> None:
    """Write a key under all panels."""
    given = {"frameon": False, "fontsize": 8, "borderaxespad": 0.1}
    figure.legend(handles=handles, loc="lower center", ncols=columns, **(given | more))


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes so many inches from the lower left corner of a figure, and so many wide and high."""
    whole, high = figure.get_size_inches()
    return figure.add_axes((left / whole, bottom / high, width / whole, height / high))


def reader_handle(look: Look, kind: str, label: str) -> Line2D:
    """Return a key's entry for a reader: its line and marker, hollow for a model."""
    face = "white" if kind == "model" else look.colour
    return Line2D(
        [],
        [],
        color=look.colour,
        ls=look.line,
        marker=look.marker,
        ms=5,
        mfc=face,
        mec=look.colour,
        label=label,
    )


def are_numbers_in_order(levels: Sequence[str]) -> bool:
    """Return whether levels are numbers or percentages that rise or fall, so that a line may join them."""
    found = [re.fullmatch(r"([-\u2212]?\d+(?:\.\d+)?)\s*%?", level.strip()) for level in levels]
    values = [float(one[1].replace("\u2212", "-")) for one in found if one is not None]
    return 1 < len(levels) == len(values) and values in (sorted(values), sorted(values, reverse=True))


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart until they are at least ``gap`` from each other, within ``low`` and ``high``."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    placed: dict[int, float] = {}
    floor = low
    for i in order:
        placed[i] = max(positions[i], floor)
        floor = placed[i] + gap
    ceiling = high
    for i in reversed(order):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return [placed[i] for i in range(len(positions))]


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], x: float) -> None:
    """Write each line's name in its colour beside its right end, moved apart where they would overlap."""
    if not ends:
        return
    axes.set_ylim(axes.get_ylim())
    points = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    lines = max(label.count("\n") + 1 for _, _, label, _ in ends)
    wished = [float(axes.transData.transform((x, end[1]))[1]) for end in ends]
    placed = spread(wished, (9.5 * lines + 1.5) * points, float(frame.y0), float(frame.y1))
    for (end_x, end_y, label, colour), height in zip(ends, placed, strict=True):
        axes.annotate(
            label,
            (end_x, end_y),
            (x, float(axes.transData.inverted().transform((0, height))[1])),
            fontsize=8,
            color=colour,
            va="center",
            ha="left",
            annotation_clip=False,
            linespacing=1.05,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.5,
                "alpha": 0.55,
                "shrinkA": 1,
                "shrinkB": 5,
            },
        )


def mark_not_data(figure: Figure, kinds: dict[str, str]) -> None:
    """Write over the figure which of its readers are not data."""
    told = []
    if "simulated" in kinds.values():
        told.append(NOT_DATA)
    if "baseline" in kinds.values():
        told.append("Baselines: not data")
    if told:
        text = " · ".join(told)
        figure.text(0.995, 0.995, text, ha="right", va="top", fontsize=7.5, color="#8A1C00", weight="bold")


def not_data_in_words(kinds: Collection[str], rules: str = "answer by rule and are not data") -> list[str]:
    """Return the sentences of a note on which reader kinds are not data."""
    simulated = "Simulated readers were generated by wrods with known effects; they are not data."
    return [simulated] * ("simulated" in kinds) + [f"Baselines {rules}."] * ("baseline" in kinds)


_FILLED: WeakKeyDictionary[Figure, Bbox] = WeakKeyDictionary()


def keep_width(figure: Figure) -> None:
    """Let a figure that leaves its right side empty keep its width, so that a page does not blow its text up."""
    figure.add_artist(Line2D([0.0, 1.0], [0.5, 0.5], alpha=0.0, transform=figure.transFigure))


def filled(figure: Figure) -> Bbox:
    """Lay a figure out, once for all of its files, and return the part that is drawn on with a margin around it, in inches."""
    if figure not in _FILLED:
        with styled():
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            margin = float(mpl.rcParams["savefig.pad_inches"])
            _FILLED[figure] = figure.get_tightbbox().padded(margin)
    return _FILLED[figure]


def as_svg(figure: Figure, name: str, title: str, alternative: str) -> str:
    """Return a figure as an SVG element that can stand in a page beside others."""
    stream = io.StringIO()
    with styled():
        figure.savefig(
            stream,
            format="svg",
            bbox_inches=filled(figure),
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="|href="|url\()#', rf"\1#{name}-", text)
    label = f'role="img" aria-labelledby="{name}-t {name}-d"'
    words = (
        f'<title id="{name}-t">{_escaped(title)}</title><desc id="{name}-d">{_escaped(alternative)}</desc>'
    )
    return re.sub(r"<svg([^>]*)>", rf"<svg\1 {label}>{words}", text, count=1)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\\", "")
