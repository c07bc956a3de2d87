"""Words that fit: labels of axes and titles of panels are measured, then written in one line, in several, or slanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, radians, sin

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from analysis.figures.drawing import style

LINES = 3  # lines of a label at most
SLANT = 40  # degrees by which labels are turned that fit in no other way
LABEL_SIZE = 9.0  # points of an axis' labels, as the style has them
SMALLEST = 6.0  # points of labels where a page would else not hold all rows
_APART = 0.09  # inches between two labels that stand side by side
_LEAST_SLANTED = 1.5
"""Inches that a slanted line may take however near the first mark stands to the left edge."""
_LINE = 1.25  # height of a line by the size of its letters


@lru_cache(maxsize=4096)
def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is, in inches, at a font size in points."""
    if not text.strip():
        return 0.0
    font = FontProperties(
        family=style()["settings"]["font.sans-serif"][0], weight="bold" if bold else "normal", size=size
    )
    return float(TextPath((0, 0), text.replace("$", "S"), prop=font).get_extents().width) / 72


def in_lines(text: str, room: float, size: float, *, bold: bool = False) -> list[str] | None:
    """Break a name behind blanks, underscores, hyphens and slashes into lines no wider than so many inches."""
    lines: list[str] = []
    for piece in re.findall(r"[^\s_/-]*[_/-]?\s*", text):
        joined = (lines[-1] if lines else "") + piece
        if lines and width_of(joined.rstrip(), size, bold=bold) <= room:
            lines[-1] = joined
        elif piece.strip():
            if width_of(piece.rstrip(), size, bold=bold) > room:
                return None
            lines.append(piece)
    return [line.rstrip() for line in lines] or [text]


def cut_to_lines(text: str, room: float, size: float, lines: int = LINES, *, bold: bool = False) -> list[str]:
    """Break a name into so many lines at most."""
    broken = in_lines(text, room, size, bold=bold)
    if broken is not None and len(broken) <= lines:
        return broken
    pieces: list[str] = []
    remaining = text
    while remaining:
        last = len(pieces) == lines - 1
        if width_of(remaining, size, bold=bold) <= room:
            return [*pieces, remaining]
        fits = _letters_that_fit(remaining, room, size, bold=bold, end="…" if last else "")
        if last:
            return [*pieces, f"{remaining[:fits].rstrip()}…"]
        at = max((match.end() for match in re.finditer(r"[\s_/-]", remaining[: fits + 1])), default=0)
        at = at if fits // 2 < at <= fits else fits
        pieces.append(remaining[:at].rstrip())
        remaining = remaining[at:].lstrip()
    return pieces


def _letters_that_fit(text: str, room: float, size: float, *, bold: bool, end: str) -> int:
    """Return how many letters fit, at least one."""
    fits = len(text)
    while fits > 1 and width_of(text[:fits].rstrip() + end, size, bold=bold) > room:
        fits -= 1
    return fits


def size_in(row: float) -> float:
    """Return the size of letters, in points, of names in rows of so many inches."""
    return min(LABEL_SIZE, max(SMALLEST, 0.8 * 72 * row))


def height_of(lines: int, size: float) -> float:
    """Return how many inches so many lines take."""
    return lines * _LINE * size / 72


@dataclass(frozen=True)
class LaidOut:
    """Labels of an axis as they are to be written."""

    texts: tuple[str, ...]  # with line breaks
    is_slanted: bool
    depth: float  # inches that they reach below the axis


def laid_out(texts: Sequence[str], places: Sequence[float], size: float = LABEL_SIZE) -> LaidOut:
    """Lay out labels so that none runs into the next: in one line, in several, or slanted."""
    steps = np.abs(np.diff(np.asarray(places, dtype=float)))
    widths = np.array([width_of(text, size) for text in texts])
    if not len(steps) or bool(((widths[:-1] + widths[1:]) / 2 + _APART <= steps).all()):
        return LaidOut(tuple(texts), False, height_of(1, size))
    step = float(steps.min())
    broken = [in_lines(text, step - _APART, size) or () for text in texts]
    most = max(map(len, broken))
    if all(broken) and most <= LINES:
        return LaidOut(tuple("\n".join(lines) for lines in broken), False, height_of(most, size))
    turn = radians(SLANT)
    room = max(_LEAST_SLANTED, min(places) / cos(turn))
    deep = max(1, min(LINES, int(step * sin(turn) / height_of(1, size))))
    cut = [cut_to_lines(text, room, size, deep) for text in texts]
    widest = max(width_of(line, size) for lines in cut for line in lines)
    depth = widest * sin(turn) + height_of(max(map(len, cut)), size) * cos(turn)
    return LaidOut(tuple("\n".join(lines) for lines in cut), True, depth)


def places_of(levels: int, left: float, width: float, margin: float = 0.45) -> list[float]:
    """Return where levels stand that are drawn at 0, 1, 2 …, in inches; ``margin`` is what the axis reaches beyond both ends."""
    return [left + width * (index + margin) / (levels - 1 + 2 * margin) for index in range(levels)]


def fit_labels(axes: Axes) -> LaidOut | None:
    """Lay out the labels of a horizontal axis; marks, labels, limits and the place of the axes must be set before."""
    marks = np.asarray(axes.get_xticks(), dtype=float)
    labels = axes.get_xticklabels()
    figure = axes.get_figure(root=True)
    if figure is None or not len(marks) or len(marks) != len(labels):
        return None
    low, high = axes.get_xlim()
    frame = axes.get_position()
    places = (frame.x0 + frame.width * (marks - low) / (high - low)) * float(figure.get_figwidth())
    layout = laid_out([label.get_text() for label in labels], list(places), float(labels[0].get_fontsize()))
    axes.set_xticks(marks, layout.texts)
    if layout.is_slanted:
        for label in axes.get_xticklabels():
            label.set(rotation=SLANT, ha="right", rotation_mode="anchor", linespacing=1.0)
    return layout
