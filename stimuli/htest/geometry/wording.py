"""Reads the questions of the released letter geometry, whose wording is their own, and draws what they describe.

The released questions do not say where an added or subtracted symbol goes or how large it is. So a question stands
for a set of drawings, one for each way of placing it, and its key is right if any of them looks like it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stimuli.htest.geometry import shapes
from stimuli.htest.geometry.glyphs import Ink, crop, glyph, has_glyph, stem

ReleasedFamily = Literal["rotation", "flip", "add_subtract", "composite"]
Drawings = dict[str, Ink]

_SYMBOL = r'"([^"]*)"'
_TURNED = r"rotate(?:d|) (?:it )?(90|180) degrees (counter|clock)"
_FLIPPED = r"flip(?:ped|) (?:\S+ )?along (?:an|the) imaginary (vertical|horizontal) line"
_DASHES = {"-": "−", "–": "−", "_": "−"}  # what the data call by three signs is one stroke


@dataclass(frozen=True)
class Described:
    """What a released question describes."""

    family: ReleasedFamily  # rotation, flip, add_subtract or composite
    # shape by the way in which symbols are placed (as said where there is one way only); None where the question
    # cannot be read
    drawings: Mapping[str, Ink] | None
    reason: str = ""  # why it cannot


def released_family(question: str) -> ReleasedFamily:
    """Sort a released question by its wording."""
    if re.search(r'^Given the (letter|number|symbol) "[^"]*", what .* when rotated', question):
        return "rotation"
    if re.search(r'^Given the (letter|number|symbol) "[^"]*", what .* when flipped', question):
        return "flip"
    if re.search(r'^Given the letters "[^"]*" and "[^"]*", what .* when (added|subtracted)', question):
        return "add_subtract"
    return "composite"


def describe(question: str, style: str = "sans") -> Described:
    """Draw what a released question describes, in every way in which its symbols can be placed."""
    family = released_family(question)
    symbols = [_DASHES.get(symbol, symbol) for symbol in re.findall(_SYMBOL, question)]
    if not symbols:
        return Described(family, None, "it names no symbol")
    if missing := [symbol for symbol in symbols if not symbol or not has_glyph(symbol, style)]:
        return Described(family, None, f"a symbol is {'empty' if not missing[0] else 'not in the font'}")
    inks = {symbol: glyph(symbol, style) for symbol in symbols}
    for pattern, draw in _FORMS:
        if found := re.search(pattern, question):
            drawings = draw(found, [inks[symbol] for symbol in symbols], stem(style))
            return Described(family, {way: ink for way, ink in drawings.items() if ink.size})
    return Described(family, None, "its wording is not known")


def _turned(ink: Ink, degrees: str, way: str) -> Ink:
    quarters = int(degrees) // 90
    return shapes.rotate(ink, quarters if way == "clock" else -quarters)


def _flipped(ink: Ink, line: str) -> Ink:
    return shapes.mirror(ink, line)


def _placed(one: Ink, other: Ink) -> Iterable[tuple[str, Ink, Ink]]:
    """Yield two arrays of one size: the second symbol at nine places of the first's box, in four sizes."""
    height, width = one.shape
    sizes = {
        "as typed": other.shape,
        "as wide": (max(1, round(other.shape[0] * width / other.shape[1])), width),
        "as tall": (height, max(1, round(other.shape[1] * height / other.shape[0]))),
        "half as tall": (height // 2, max(1, round(other.shape[1] * height / other.shape[0] / 2))),
        "two thirds as wide": (
            max(1, round(other.shape[0] * width / other.shape[1])),
            max(1, 2 * width // 3),
        ),
    }
    for (size, (rows, columns)), y, x in itertools.product(sizes.items(), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0)):
        top, left = round(y * (height - rows)), round(x * (width - columns))
        up, aside = max(0, -top), max(0, -left)
        canvas = (max(height, rows + max(top, 0)) + up, max(width, columns + max(left, 0)) + aside)
        first, second = np.zeros(canvas, dtype=np.bool_), np.zeros(canvas, dtype=np.bool_)
        first[up : up + height, aside : aside + width] = one
        top, left = top + up, left + aside
        second[top : top + rows, left : left + columns] = shapes.scaled(other, rows, columns)
        where = f"{('top', 'middle', 'bottom')[int(2 * y)]} {('left', 'centre', 'right')[int(2 * x)]}"
        yield f"{size}, {where}", first, second


def _added(one: Ink, other: Ink) -> Drawings:
    ways = {way: crop(first | second) for way, first, second in _placed(one, other)}
    for name, (a, b) in {"": (one, other), ", changed places": (other, one)}.items():
        ways[f"side by side{name}"] = shapes.beside(a, b)
        ways[f"one above the other{name}"] = shapes.above(a, b)
        ways[f"side by side, half as tall{name}"] = _side_by_side_low(a, b)
        ways[f"laid over each other{name}"] = shapes.overlay(a, b)
    return ways


def _side_by_side_low(one: Ink, other: Ink) -> Ink:
    """Put a low symbol beside a tall one, standing on one line, as ``c`` beside ``I`` makes ``d``."""
    height = max(one.shape[0], other.shape[0])
    raised = [np.pad(ink, ((height - ink.shape[0], 0), (0, 0))) for ink in (one, other)]
    return crop(np.hstack(raised))


def _subtracted(one: Ink, other: Ink, thickness: float) -> Drawings:
    from scipy.ndimage import distance_transform_edt

    ways: Drawings = {}
    for way, first, second in _placed(one, other):
        if second.all():
            continue
        wide = distance_transform_edt(~second) <= thickness / 2  # an eraser is wider than the stroke it takes
        ways[way] = crop(shapes.swept(first & ~wide))
    return ways


def _then(ways: Drawings, change: Callable[[Ink], Ink]) -> Drawings:
    return {way: change(ink) for way, ink in ways.items() if ink.size}


Form = Callable[[re.Match[str], list[Ink], float], Drawings]


def _side_by_side_with_other_turn(found: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    one, other = _turned(inks[0], found[1], found[2]), _turned(inks[0], found[3], found[4])
    return {
        "side by side": np.hstack([one, other]),
        "side by side, changed places": np.hstack([other, one]),
        "one above the other": np.vstack([one, other]),
    }


def _below_the_original(found: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    return {"as said": np.vstack([inks[0], _turned(inks[0], found[1], found[2])])}


def _doubled(found: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    turned = _turned(inks[0], found[1], found[2])
    overlap = round(turned.shape[1] / 5)
    joined = np.hstack([turned[:, : turned.shape[1] - overlap], turned])
    return {"touching": np.hstack([turned, turned]), "sharing a stroke": joined}


def _flip_then_subtract(found: re.Match[str], inks: list[Ink], thickness: float) -> Drawings:
    return _subtracted(inks[0], _flipped(inks[1], found[1]), thickness)


def _subtract_turn_add(found: re.Match[str], inks: list[Ink], thickness: float) -> Drawings:
    left = _then(_subtracted(inks[0], inks[1], thickness), lambda ink: _turned(ink, found[1], found[2]))
    return {
        f"{first}; {second}": ink
        for first, shape in left.items()
        for second, ink in _added(shape, inks[-1]).items()
        if shape.size
    }


def _turn_then_subtract(found: re.Match[str], inks: list[Ink], thickness: float) -> Drawings:
    return _subtracted(_turned(inks[0], found[1], found[2]), inks[1], thickness)


_FORMS: tuple[tuple[str, Form], ...] = (
    (rf"when {_TURNED}", lambda found, inks, _: {"as said": _turned(inks[0], found[1], found[2])}),
    (rf"when {_FLIPPED}", lambda found, inks, _: {"as said": _flipped(inks[0], found[1])}),
    (r"when added", lambda _, inks, __: _added(inks[0], inks[1])),
    (r"when subtracted", lambda _, inks, thickness: _subtracted(inks[0], inks[1], thickness)),
    (rf"{_FLIPPED}.*then subtract", _flip_then_subtract),
    (rf"subtract .* from .*, Then {_TURNED}.*add ", _subtract_turn_add),
    (r'rotate "[^"]*" (90|180) degrees (counter|clock).*multiply it by 2 side-by-side', _doubled),
    (rf"{_TURNED}.*side-by-side to the version that is {_TURNED}", _side_by_side_with_other_turn),
    (rf"{_TURNED}.*add it below the original", _below_the_original),
    (rf"{_TURNED}.*subtract .* from it", _turn_then_subtract),
)
