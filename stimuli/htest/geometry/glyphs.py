"""Symbols as arrays of ink: outlines of an open font, filled by our own scan-line rule.

The DejaVu fonts come with matplotlib. Their outlines are whole numbers that have not changed since 2016, and they are
filled here and not by a font engine, so that no version of Pillow, FreeType or matplotlib moves a pixel.
"""

from __future__ import annotations

import functools
import itertools
import json
import unicodedata
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name

Ink = NDArray[np.bool_]
Point = tuple[float, float]

FONTS: Mapping[str, str] = {
    "sans": "DejaVuSans.ttf",
    "mono": "DejaVuSansMono.ttf",
    "serif": "DejaVuSerif.ttf",
}
UNITS_PER_PIXEL = 12.0
_CURVE_STEPS = 12


@functools.cache
def _table(name: str) -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@functools.cache
def alphabet() -> tuple[str, ...]:
    """Return the symbols that a question may name and an answer may be, in the order of ``alphabet.json``."""
    return tuple(itertools.chain.from_iterable(_table("alphabet.json")["symbols"].values()))


@functools.cache
def same_by_rule() -> tuple[frozenset[str], ...]:
    """Return the sets of symbols that count as one: the same shape but for case, size or trifles."""
    return tuple(frozenset(group) for group in _table("alphabet.json")["same"])


@functools.cache
def apart_by_rule() -> tuple[frozenset[str], ...]:
    """Return the sets of symbols that differ but never stand in one list: a reader may take one for the other."""
    return tuple(frozenset(group) for group in _table("alphabet.json")["apart"])


def symbol_name(symbol: str) -> str:
    """Return the Unicode name of a symbol: ``LATIN CAPITAL LETTER REVERSED E``."""
    return unicodedata.name(symbol)


@functools.cache
def _font(style: str) -> Any:
    import matplotlib
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    if style not in FONTS:
        raise unknown_name("font", style, FONTS)
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / FONTS[style]
    if not path.exists():
        raise UserError(f"{path} is missing", mend="Install matplotlib again; the DejaVu fonts come with it.")
    return TTFont(path)


def has_glyph(symbol: str, style: str) -> bool:
    """Say whether a font draws a symbol."""
    return len(symbol) == 1 and ord(symbol) in _font(style).getBestCmap()


@functools.cache
def glyph(symbol: str, style: str = "sans") -> Ink:
    """Render one symbol, cropped to its ink."""
    if not has_glyph(symbol, style):
        raise UserError(f"font {FONTS[style]} draws no {symbol!r}", mend="Use a single printed character.")
    contours = _contours(symbol, style)
    ink = crop(_filled(contours)) if contours else np.zeros((0, 0), dtype=np.bool_)
    if not ink.size:
        raise UserError(f"{symbol!r} has no ink", mend="Use a printed character.")
    ink.setflags(write=False)
    return ink


@functools.cache
def stem(style: str) -> float:
    """Return the width of the font's upright stroke in pixels, as drawn in its bar ``|``."""
    return float(glyph("l" if style == "sans" else "|", style).shape[1])


def crop(ink: Ink) -> Ink:
    """Cut an array down to its ink; an array without ink comes back with shape (0, 0)."""
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    if not rows.size:
        return np.zeros((0, 0), dtype=np.bool_)
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _contours(symbol: str, style: str) -> list[list[Point]]:
    from fontTools.pens.recordingPen import DecomposingRecordingPen  # type: ignore[import-untyped]

    font = _font(style)
    glyphs = font.getGlyphSet()
    pen = DecomposingRecordingPen(glyphs)
    glyphs[font.getBestCmap()[ord(symbol)]].draw(pen)
    contours: list[list[Point]] = []
    for command, points in pen.value:
        if command == "moveTo":
            contours.append([points[0]])
        elif command == "lineTo":
            contours[-1].append(points[0])
        elif command == "qCurveTo" and points[-1] is None:  # a closed curve without a point of its own
            start = _halfway(points[-2], points[0])
            contours.append([start, *_curve(start, (*points[:-1], start))])
        elif command == "qCurveTo":
            contours[-1].extend(_curve(contours[-1][-1], points))
    return contours


def _halfway(a: Point, b: Point) -> Point:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def _curve(start: Point, points: tuple[Point, ...]) -> list[Point]:
    """Flatten a TrueType curve: quadratic pieces whose joints lie halfway between neighbouring controls."""
    controls = points[:-1]
    joints = [*itertools.starmap(_halfway, itertools.pairwise(controls)), points[-1]]
    flat: list[Point] = []
    for control, end in zip(controls, joints, strict=True):
        for step in range(1, _CURVE_STEPS + 1):
            t = step / _CURVE_STEPS
            weights = ((1 - t) ** 2, 2 * t * (1 - t), t**2)
            flat.append(
                (
                    weights[0] * start[0] + weights[1] * control[0] + weights[2] * end[0],
                    weights[0] * start[1] + weights[1] * control[1] + weights[2] * end[1],
                )
            )
        start = end
    return flat


def _filled(contours: list[list[Point]]) -> Ink:
    """Fill contours by the non-zero winding rule, sampled at the middle of each pixel."""
    edges = np.array(
        [
            (*one, *other)
            for points in contours
            for one, other in zip(points, points[1:] + points[:1], strict=True)
        ]
    )
    low, high = edges.reshape(-1, 2).min(axis=0), edges.reshape(-1, 2).max(axis=0)
    width, height = (np.ceil((high - low) / UNITS_PER_PIXEL).astype(int) + 2).tolist()
    x0, y0, x1, y1 = ((edges - np.tile(low, 2)) / UNITS_PER_PIXEL + 0.5).T
    winding = np.zeros((height + 1, width + 1), dtype=np.int64)
    for row in range(height):
        middle = row + 0.5
        crossing = (y0 <= middle) != (y1 <= middle)
        x = x0[crossing] + (middle - y0[crossing]) / (y1 - y0)[crossing] * (x1 - x0)[crossing]
        first = np.clip(np.ceil(x - 0.5).astype(int), 0, width)
        np.add.at(winding[row], first, np.where(y1[crossing] > y0[crossing], 1, -1))
    inside: Ink = np.cumsum(winding, axis=1) != 0
    return inside[:height, :width][::-1]
