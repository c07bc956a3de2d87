"""The released letter geometry: its 90 questions as they are, and what rendering says about their keys.

The released questions do not say where an added or subtracted symbol goes or how large it is. So a question stands
for a set of drawings, one for each way of placing it, and its key is right if any of them looks like it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stimuli.corpora.rows import json_lines
from stimuli.errors import UserError
from stimuli.htest.geometry import shapes
from stimuli.htest.geometry.questions import FLAW, MARGIN, MATCH, flaw, read, same, similarities
from stimuli.htest.geometry.shapes import Ink, alphabet, crop, glyph, has_glyph, stem

ReleasedFamily = Literal["rotation", "flip", "add_subtract", "composite"]
Drawings = dict[str, Ink]

_SYMBOL = r'"([^"]*)"'
_TURNED = r"rotate(?:d|) (?:it )?(90|180) degrees (counter|clock)"
_FLIPPED = r"flip(?:ped|) (?:\S+ )?along (?:an|the) imaginary (vertical|horizontal) line"
_DASHES = {"-": "−", "–": "−", "_": "−"}  # what the data call by three signs is one stroke


@dataclass(frozen=True)
class Described:
    """Shapes that a released question describes."""

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
        if match := re.search(pattern, question):
            drawings = draw(match, [inks[symbol] for symbol in symbols], stem(style))
            return Described(family, {way: ink for way, ink in drawings.items() if ink.size})
    return Described(family, None, "its wording is not known")


def _turned(ink: Ink, degrees: str, way: str) -> Ink:
    quarters = int(degrees) // 90
    return shapes.rotate(ink, quarters if way == "clock" else -quarters)


def _placed(ink: Ink, other: Ink) -> Iterable[tuple[str, Ink, Ink]]:
    """Yield two arrays of one size: the second symbol at nine places of the first's box, in four sizes."""
    height, width = ink.shape
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
        first[up : up + height, aside : aside + width] = ink
        top, left = top + up, left + aside
        second[top : top + rows, left : left + columns] = shapes.scaled(other, rows, columns)
        where = f"{('top', 'middle', 'bottom')[int(2 * y)]} {('left', 'centre', 'right')[int(2 * x)]}"
        yield f"{size}, {where}", first, second


def _added(ink: Ink, other: Ink) -> Drawings:
    ways = {way: crop(first | second) for way, first, second in _placed(ink, other)}
    for name, (a, b) in {"": (ink, other), ", changed places": (other, ink)}.items():
        ways[f"side by side{name}"] = shapes.beside(a, b)
        ways[f"one above the other{name}"] = shapes.above(a, b)
        ways[f"side by side, half as tall{name}"] = _side_by_side_low(a, b)
        ways[f"laid over each other{name}"] = shapes.overlay(a, b)
    return ways


def _side_by_side_low(one: Ink, other: Ink) -> Ink:
    """Return two symbols side by side on one base line, as ``c`` and ``I`` make ``d``."""
    height = max(one.shape[0], other.shape[0])
    raised = [np.pad(ink, ((height - ink.shape[0], 0), (0, 0))) for ink in (one, other)]
    return crop(np.hstack(raised))


def _subtracted(ink: Ink, other: Ink, thickness: float) -> Drawings:
    from scipy.ndimage import distance_transform_edt

    ways: Drawings = {}
    for way, first, second in _placed(ink, other):
        if second.all():
            continue
        wide = distance_transform_edt(~second) <= thickness / 2  # an eraser is wider than the stroke it takes
        ways[way] = crop(shapes.swept(first & ~wide))
    return ways


Form = Callable[[re.Match[str], list[Ink], float], Drawings]


def _side_by_side_with_other_turn(match: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    one, other = _turned(inks[0], match[1], match[2]), _turned(inks[0], match[3], match[4])
    return {
        "side by side": np.hstack([one, other]),
        "side by side, swapped": np.hstack([other, one]),
        "one above the other": np.vstack([one, other]),
    }


def _doubled(match: re.Match[str], inks: list[Ink], _: float) -> Drawings:
    turned = _turned(inks[0], match[1], match[2])
    overlap = round(turned.shape[1] / 5)
    joined = np.hstack([turned[:, : turned.shape[1] - overlap], turned])
    return {"touching": np.hstack([turned, turned]), "sharing a stroke": joined}


def _subtract_turn_add(match: re.Match[str], inks: list[Ink], thickness: float) -> Drawings:
    return {
        f"{first}; {second}": ink
        for first, shape in _subtracted(inks[0], inks[1], thickness).items()
        if shape.size
        for second, ink in _added(_turned(shape, match[1], match[2]), inks[-1]).items()
    }


_FORMS: tuple[tuple[str, Form], ...] = (
    (rf"when {_TURNED}", lambda found, inks, _: {"as said": _turned(inks[0], found[1], found[2])}),
    (rf"when {_FLIPPED}", lambda found, inks, _: {"as said": shapes.mirror(inks[0], found[1])}),
    (r"when added", lambda _, inks, __: _added(inks[0], inks[1])),
    (r"when subtracted", lambda _, inks, thickness: _subtracted(inks[0], inks[1], thickness)),
    (
        rf"{_FLIPPED}.*then subtract",
        lambda found, inks, thickness: _subtracted(inks[0], shapes.mirror(inks[1], found[1]), thickness),
    ),
    (rf"subtract .* from .*, Then {_TURNED}.*add ", _subtract_turn_add),
    (r'rotate "[^"]*" (90|180) degrees (counter|clock).*multiply it by 2 side-by-side', _doubled),
    (rf"{_TURNED}.*side-by-side to the version that is {_TURNED}", _side_by_side_with_other_turn),
    (
        rf"{_TURNED}.*add it below the original",
        lambda found, inks, _: {"as said": np.vstack([inks[0], _turned(inks[0], found[1], found[2])])},
    ),
    (
        rf"{_TURNED}.*subtract .* from it",
        lambda found, inks, thickness: _subtracted(_turned(inks[0], found[1], found[2]), inks[1], thickness),
    ),
)


FILE = "letter_geometry_test.jsonl"
Verdict = Literal["agree", "weak", "dispute", "unread"]


@dataclass(frozen=True)
class ReleasedGeometry:
    """One released question with its options, its key and its line in the file, from 1."""

    question: str
    options: tuple[str, ...]
    answer: str
    family: ReleasedFamily
    line: int


@dataclass(frozen=True)
class KeyReading:
    """Comparison of one released key with the rendering."""

    item: ReleasedGeometry  # the question
    # agree: the described shape looks like the key
    verdict: Verdict
    way: str  # how the symbols were placed in the drawing that is nearest to the key
    # the three symbols that this drawing looks like most, with similarities
    nearest: tuple[tuple[str, float], ...]
    key_match: float | None  # similarity to the key
    note: str = ""  # why it cannot be interpreted


@dataclass(frozen=True)
class GeometryFaults:
    """Errors in the released letter-geometry items."""

    readings: tuple[KeyReading, ...]  # one for each question, in the order of the file
    # lines of questions that are word for word the same and have different keys
    contradictions: tuple[tuple[int, int], ...]
    # lines whose options hold two symbols that look the same (O and 0), one of them the key
    two_right: tuple[int, ...]
    empty_symbol: tuple[int, ...]  # lines that name an empty symbol
    common_options: tuple[str, ...]  # the three options that stand in most items
    # items answered rightly by "the option that is none of these three" (the key where exactly one is left)
    leak: int
    non_ascii: tuple[int, ...]  # lines whose key is not ASCII: more than one token for many models

    def by_verdict(self) -> Mapping[str, int]:
        """Return how many questions got each verdict."""
        return Counter(reading.verdict for reading in self.readings)


def load_released_geometry(folder: Path) -> tuple[ReleasedGeometry, ...]:
    """Load the released questions."""
    places = (folder / FILE, folder / "letter_geometry" / FILE)
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise UserError(f"no {FILE} in {folder}", mend="Give the folder of the released H-TEST data.")
    return tuple(_item(record, f"{path}, line {number}", number) for number, record in json_lines(path))


def _item(record: Mapping[str, Any], where: str, number: int) -> ReleasedGeometry:
    question, options, right = (record.get(key) for key in ("centerpiece", "options", "correct_options"))
    if not isinstance(question, str) or not question:
        raise UserError(f"{where}: 'centerpiece' is missing or no text")
    if (
        not isinstance(options, list)
        or len(options) < 2
        or not all(isinstance(o, str) and o for o in options)
    ):
        raise UserError(f"{where}: options are {options!r}; they are two or more symbols")
    if not isinstance(right, list) or len(right) != 1 or right[0] not in range(len(options)):
        raise UserError(
            f"{where}: correct_options is {right!r}; it is one place among {len(options)} options"
        )
    return ReleasedGeometry(question, tuple(options), options[right[0]], released_family(question), number)


def geometry_faults(folder: Path) -> GeometryFaults:
    """Compare every released key with the rendering, and look for what makes options give the answer away."""
    items = load_released_geometry(folder)
    counts = Counter(option for item in items for option in item.options)
    common = tuple(sorted(counts, key=lambda option: (-counts[option], option))[:3])
    left = [[option for option in item.options if option not in common] for item in items]
    return GeometryFaults(
        readings=tuple(read_key(item) for item in items),
        contradictions=_contradictions(items),
        two_right=tuple(
            item.line
            for item in items
            if any(option != item.answer and same(option, item.answer) for option in item.options)
        ),
        empty_symbol=tuple(item.line for item in items if '""' in item.question),
        common_options=common,
        leak=sum(remaining == [item.answer] for remaining, item in zip(left, items, strict=True)),
        non_ascii=tuple(item.line for item in items if not item.answer.isascii()),
    )


def read_key(item: ReleasedGeometry) -> KeyReading:
    """State whether the drawing of a released question looks like its key."""
    described = describe(item.question)
    key = {"_": "−"}.get(item.answer, item.answer)
    if described.drawings is None or key not in alphabet():
        return KeyReading(item, "unread", "", (), None, described.reason or "the key is not in the alphabet")
    looked = {way: _look(ink, key) for way, ink in described.drawings.items()}
    way = max(looked, key=lambda placement: (_RANK[looked[placement][0]], looked[placement][2]))
    verdict, nearest, match = looked[way]
    return KeyReading(item, verdict, way, nearest, match)


_RANK: Mapping[Verdict, int] = {"agree": 2, "weak": 1, "dispute": 0, "unread": 0}


def _look(ink: Ink, key: str) -> tuple[Verdict, tuple[tuple[str, float], ...], float]:
    similar = similarities(ink)
    nearest = tuple((symbol, round(match, 3)) for symbol, match in list(similar.items())[:3])
    best = nearest[0][0]
    # A key counts by the member of its class that is most alike: W upside down is ʍ, which the data write M.
    match = max(value for symbol, value in similar.items() if same(symbol, key))
    twin = next(symbol for symbol, value in similar.items() if value == match and same(symbol, key))
    near = match >= similar[best] - (0 if same(best, key) else MARGIN)
    reading = read([ink])[0]
    if reading is not None and reading.reads() and not same(reading.symbol, key):
        verdict: Verdict = "dispute"
    elif near and match >= MATCH and flaw(ink, glyph(twin)) <= FLAW:
        verdict = "agree"
    elif near:
        verdict = "weak"
    else:
        verdict = "unread"
    return verdict, nearest, round(similar[key], 3)


def _contradictions(items: Sequence[ReleasedGeometry]) -> tuple[tuple[int, int], ...]:
    asked: dict[str, list[ReleasedGeometry]] = defaultdict(list)
    for item in items:
        asked[item.question].append(item)
    return tuple(
        (one.line, other.line)
        for same_question in asked.values()
        for place, one in enumerate(same_question)
        for other in same_question[place + 1 :]
        if one.answer != other.answer
    )
