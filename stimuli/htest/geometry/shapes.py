"""Symbols as arrays of ink, filled from the outlines of an open font, and exact operations on them.

The DejaVu fonts come with matplotlib. Their outlines are whole numbers that have not changed since 2016, and they are
filled here and not by a font engine, so that no version of Pillow, FreeType or matplotlib moves a pixel.

Positions in a symbol are given in its *box*, 0 to 1 from left to right and from top to bottom; a stroke's middle line
runs half a stroke inside the box, so that a stroke along an edge stays within the symbol's size.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name
from stimuli.files import data_file

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
def alphabet() -> tuple[str, ...]:
    """Return the symbols that a question may name and an answer may be, in the order of ``alphabet.json``."""
    return tuple(itertools.chain.from_iterable(data_file("htest/geometry/alphabet.json")["symbols"].values()))


@functools.cache
def same_by_rule() -> tuple[frozenset[str], ...]:
    """Return the sets of symbols that count as one: the same shape but for case, size or trifles."""
    return tuple(frozenset(group) for group in data_file("htest/geometry/alphabet.json")["same"])


@functools.cache
def apart_by_rule() -> tuple[frozenset[str], ...]:
    """Return the sets of different symbols that are never options together because readers may confuse them."""
    return tuple(frozenset(group) for group in data_file("htest/geometry/alphabet.json")["apart"])


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
    """Return whether a font draws a symbol."""
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
            x, y = (
                weights[0] * start[axis] + weights[1] * control[axis] + weights[2] * end[axis]
                for axis in (0, 1)
            )
            flat.append((x, y))
        start = end
    return flat


def _filled(contours: list[list[Point]]) -> Ink:
    """Fill contours by the non-zero winding rule, sampled at the middle of each pixel."""
    pairs = [pair for points in contours for pair in zip(points, points[1:] + points[:1], strict=True)]
    edges = np.array([(*point, *other) for point, other in pairs])
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


Line = tuple[Point, ...]

_SLENDER = 0.35  # a box narrower or lower than this share of its other side is widened …
_ROOM = 0.7  # … to this share, so that a bar across an I has a length
_WIDER = 1.3  # an eraser is this much wider than the stroke it takes
_SIDE = 100  # pixels of the longer side of two symbols that are put together
_CRUMB = 0.02  # what is left of less than this share of the ink is swept away


def rotate(ink: Ink, quarters: int) -> Ink:
    """Turn by so many quarters clockwise."""
    return np.rot90(ink, -quarters)


def mirror(ink: Ink, axis: str) -> Ink:
    """Mirror across a ``vertical`` line (left and right are swapped) or a ``horizontal`` one (top and bottom)."""
    return ink[:, ::-1] if axis == "vertical" else ink[::-1]


def keep_box(ink: Ink, left: float, top: float, right: float, bottom: float) -> Ink:
    """Keep what lies within a part of the box and cut the rest away."""
    height, width = ink.shape
    part = ink[round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
    return crop(part)


def scaled(ink: Ink, height: int, width: int) -> Ink:
    """Sample an array at another size, nearest pixel."""
    rows = ((np.arange(height) + 0.5) * ink.shape[0] / height).astype(int)
    columns = ((np.arange(width) + 0.5) * ink.shape[1] / width).astype(int)
    return ink[np.ix_(rows, columns)]


@functools.lru_cache(maxsize=2048)
def stroke_region(shape: tuple[int, int], line: Line, thickness: float) -> Ink:
    """Return the pixels within half a thickness of a line, with square ends cut at the array's edge."""
    height, width = shape
    inset = min(thickness, height, width) / 2
    y, x = np.mgrid[0:height, 0:width] + 0.5
    near = np.full(shape, np.inf)
    points = [(inset + px * (width - 2 * inset), inset + py * (height - 2 * inset)) for px, py in line]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        length = max((x1 - x0) ** 2 + (y1 - y0) ** 2, 1e-9)
        along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length
        slack = thickness / 2 / np.sqrt(length)
        on = np.clip(along, -slack, 1 + slack)
        distance = np.hypot(x - (x0 + on * (x1 - x0)), y - (y0 + on * (y1 - y0)))
        near = np.minimum(near, distance)
    region: Ink = near <= thickness / 2
    region.setflags(write=False)
    return region


def with_room(ink: Ink) -> Ink:
    """Widen a slender box evenly to both sides; others stay as they are."""
    height, width = ink.shape
    rows = round(_ROOM * width) - height if height < _SLENDER * width else 0
    columns = round(_ROOM * height) - width if width < _SLENDER * height else 0
    return np.pad(ink, ((rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)))


def covered(ink: Ink, line: Line, thickness: float) -> float:
    """Return the share of a stroke's core (half its thickness) that is ink already."""
    core = stroke_region((ink.shape[0], ink.shape[1]), line, thickness / 2)
    return float(ink[core].mean()) if core.any() else 0.0


def add_stroke(ink: Ink, line: Line, thickness: float) -> Ink:
    """Draw a stroke into a symbol's box."""
    return crop(ink | stroke_region((ink.shape[0], ink.shape[1]), line, thickness))


def erase_stroke(ink: Ink, line: Line, thickness: float) -> Ink:
    """Take a stroke out of a symbol, and the crumbs that are left of it; strokes that run across it stay whole."""
    region = stroke_region((ink.shape[0], ink.shape[1]), line, _WIDER * thickness)
    left = ink & ~region
    (x0, y0), (x1, y1) = line[0], line[-1]
    if y0 == y1:
        left = _bridged(left, region)
    elif x0 == x1:
        left = _bridged(left.T, region.T).T
    return crop(swept(left))


def bar_height(ink: Ink, thickness: float) -> float | None:
    """Find a horizontal bar between 30 and 70 % of the height: ink without a gap from side to side."""
    height, width = ink.shape
    inset = min(thickness, height, width) / 2
    solid = []
    for row in range(round(0.3 * height), round(0.7 * height)):
        columns = np.flatnonzero(ink[row])
        long = columns.size and columns[-1] - columns[0] >= 0.6 * width
        solid.append(bool(long and columns.size == columns[-1] - columns[0] + 1))
    starts = np.flatnonzero(np.diff([False, *solid, False]))
    if starts.size != 2 or starts[1] - starts[0] > 1.5 * thickness:
        return None
    middle = round(0.3 * height) + (starts[0] + starts[1]) / 2
    return float((middle - inset) / max(height - 2 * inset, 1))


def _bridged(left: Ink, region: Ink) -> Ink:
    """Restore the strokes that cross an erased horizontal band: ink that continues above and below it."""
    rows = np.flatnonzero(region.any(axis=1))
    top, bottom = int(rows[0]) - 1, int(rows[-1]) + 1
    if top < 0 or bottom >= left.shape[0]:
        return left
    restored = left.copy()
    reach = bottom - top
    for start, end in _runs(left[top]):
        for other_start, other_end in _runs(left[bottom]):
            if abs(start - other_start) > reach or abs(end - other_end) > reach:
                continue
            for row in range(top + 1, bottom):
                share = (row - top) / reach
                first = round(start + share * (other_start - start))
                restored[row, first : round(end + share * (other_end - end))] = True
    return restored


def _runs(row: Ink) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], row, [False]))))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def swept(ink: Ink) -> Ink:
    """Remove separate pieces that hold less than 2 % of the ink."""
    from scipy.ndimage import label

    pieces, number = label(ink, structure=np.ones((3, 3)))
    if number < 2:
        return ink
    sizes = np.bincount(pieces.ravel())
    sizes[0] = 0
    cleaned: Ink = (sizes >= _CRUMB * sizes.sum())[pieces] & ink
    return cleaned


def overlay(first: Ink, second: Ink) -> Ink:
    """Lay two symbols over each other, their longer sides equally long and their middles together."""
    canvas = np.zeros((_SIDE, _SIDE), dtype=np.bool_)
    for ink in (first, second):
        height, width = _to_longer_side(ink)
        top, left = (_SIDE - height) // 2, (_SIDE - width) // 2
        canvas[top : top + height, left : left + width] |= scaled(ink, height, width)
    return crop(canvas)


def beside(ink: Ink, other: Ink) -> Ink:
    """Put the second symbol to the right of the first, their longer sides equally long, centred and touching."""
    return above(ink.T, other.T).T


def above(first: Ink, second: Ink) -> Ink:
    """Put the first symbol on top of the second, their longer sides equally long, centred and touching."""
    rows = []
    for ink in (first, second):
        height, width = _to_longer_side(ink)
        left = (_SIDE - width) // 2
        rows.append(np.pad(scaled(ink, height, width), ((0, 0), (left, _SIDE - width - left))))
    return crop(np.vstack(rows))


def _to_longer_side(ink: Ink) -> tuple[int, int]:
    height, width = ink.shape
    longer = max(height, width)
    return max(1, round(height * _SIDE / longer)), max(1, round(width * _SIDE / longer))
