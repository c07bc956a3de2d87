"""Every question that the rendering can answer: symbols, operations, and the symbol that the result reads as.

Two shapes are stretched to one square and compared by ink: the share of each one's ink that lies on or near ink of
the other (a Gaussian of the distance, so that the thickness of strokes and small shifts cost little); the smaller
of the two shares counts, which makes a missing or an extra stroke weigh. A difference in proportion then costs a
little: 1 for equal proportions, .94 at 1.6 times as wide, .75 at 3 times, .01 for an upright bar against a flat one.

A question is *valid* where the shape reads clearly as one symbol in DejaVu Sans and in another font, and in no font
clearly as another one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError, unknown_name
from stimuli.files import data_file
from stimuli.htest.geometry import shapes
from stimuli.htest.geometry.shapes import (
    Ink,
    alphabet,
    apart_by_rule,
    glyph,
    has_glyph,
    same_by_rule,
    scaled,
    stem,
)

SIDE = 48  # pixels of the square on which shapes are compared
TOLERANCE = 2.0  # standard deviation of the tolerance in those pixels: 4 % of the symbol's size
PROPORTION = 1.4  # standard deviation of the tolerance for log(width / height)

MATCH = 0.80  # a shape reads as a symbol from this similarity on …
MARGIN = 0.05  # … where every other symbol is so much less similar …
FLAW = 0.25  # … and no patch is ink of one alone to more than this share
GUARD = 0.02  # a generated item keeps this far from each of the three borders

_PATCH = 9  # side of a patch in pixels of the square: a stroke and a half
_APART = 3.0  # ink this far from the other's ink is ink of one alone

Table = NDArray[np.float64]


@dataclass(frozen=True)
class ShapeImage:
    """Symbol that a shape resembles in one font."""

    symbol: str  # the most similar symbol
    match: float  # its similarity, 0 to 1
    next_symbol: str  # the most similar one of those that may stand beside it among options
    next_match: float  # its similarity
    # the largest share of a patch (a fifth of the size wide and high) that is ink of the shape or of the symbol and
    # has none of the other near: a stroke too many or too few, which a similarity of the whole forgives too easily
    flaw: float | None

    @property
    def margin(self) -> float:
        """Similarity of the best symbol less that of the next."""
        return self.match - self.next_match

    def reads(self, guard: float = 0.0) -> bool:
        """Return whether the shape reads as its best symbol, ``guard`` beyond all three borders."""
        alike = self.match >= MATCH + guard and self.margin >= MARGIN + guard
        return alike and self.flaw is not None and self.flaw <= FLAW - guard


@dataclass(frozen=True)
class _Compared:
    """Shapes ready for comparison: ink as shares (n × pixels), nearness to ink (n × pixels), log proportions (n)."""

    shares: Table
    nearness: Table
    proportions: Table


def _squared(inks: Sequence[Ink]) -> tuple[Table, Table]:
    squares = np.array([scaled(ink, SIDE, SIDE) for ink in inks], dtype=np.float64).reshape(len(inks), -1)
    sums = squares.sum(axis=1, keepdims=True)
    proportions = np.array([math.log(ink.shape[1] / ink.shape[0]) for ink in inks])
    return squares / np.maximum(sums, 1), proportions


def _nearness(shares: Table) -> Table:
    from scipy.ndimage import distance_transform_edt

    distances = [distance_transform_edt(row.reshape(SIDE, SIDE) == 0).ravel() for row in shares]
    return np.exp(-(np.array(distances).reshape(len(shares), -1) ** 2) / (2 * TOLERANCE**2))


@functools.cache
def _alphabet(style: str) -> tuple[tuple[str, ...], _Compared]:
    symbols = tuple(symbol for symbol in alphabet() if has_glyph(symbol, style))
    shares, proportions = _squared([glyph(symbol, style) for symbol in symbols])
    return symbols, _Compared(shares, _nearness(shares), proportions)


@functools.cache
def _rivals(style: str) -> NDArray[np.bool_]:
    """Return which symbols (columns) can be options together with each symbol (rows)."""
    symbols = _alphabet(style)[0]
    return np.array([[not kept_apart(symbol, other) for other in symbols] for symbol in symbols])


@functools.cache
def same(one: str, other: str) -> bool:
    """Return whether two symbols count as one: their shapes differ by case, size or trifles only."""
    return one == other or any(one in group and other in group for group in same_by_rule())


@functools.cache
def kept_apart(one: str, other: str) -> bool:
    """Return whether two symbols may not both be options: they count as one, or a reader may take one for the other."""
    return same(one, other) or any(one in group and other in group for group in apart_by_rule())


def _compare(shares: Table, proportions: Table, style: str) -> Table:
    """Compare n shapes with the alphabet's m symbols: n × m."""
    known = _alphabet(style)[1]
    proportional = np.exp(-(((proportions[:, None] - known.proportions) / PROPORTION) ** 2) / 2)
    on_symbol = shares @ known.nearness.T
    overlap = np.zeros_like(on_symbol)
    # The other share is the dear one; it matters only where this one leaves a chance of being read.
    hopeful = np.flatnonzero((on_symbol * proportional).max(axis=1) >= MATCH)
    if hopeful.size:
        on_shape = _nearness(shares[hopeful]) @ known.shares.T
        overlap[hopeful] = np.minimum(on_symbol[hopeful], on_shape)
    return _rounded(overlap * proportional)


def _rounded(table: Table) -> Table:
    """Drop digits in which processors and versions of numpy may differ, so that choices by size never do."""
    return np.round(table, 6)


def flaw(ink: Ink, other: Ink) -> float:
    """Return the largest share of a patch that is ink of one shape alone, 0 to 1 (see :class:`ShapeImage`)."""
    from scipy.ndimage import distance_transform_edt, uniform_filter

    squares = scaled(ink, SIDE, SIDE), scaled(other, SIDE, SIDE)
    largest = 0.0
    for ink_here, ink_there in (squares, squares[::-1]):
        alone = ink_here & (distance_transform_edt(~ink_there) > _APART)
        if alone.any():
            shares = uniform_filter(np.pad(alone.astype(np.float64), _PATCH // 2), _PATCH, mode="constant")
            largest = max(largest, float(shares.max()))
    return largest


def similarities(ink: Ink, style: str = "sans") -> dict[str, float]:
    """Return how much a shape looks like each symbol that the font draws, 0 to 1, most similar first."""
    shares, proportions = _squared([ink])
    known = _alphabet(style)[1]
    proportional = np.exp(-(((proportions[:, None] - known.proportions) / PROPORTION) ** 2) / 2)
    overlap = np.minimum(shares @ known.nearness.T, _nearness(shares) @ known.shares.T)
    row = _rounded(overlap * proportional)[0]
    order = np.argsort(-row, kind="stable")
    return {_alphabet(style)[0][place]: float(row[place]) for place in order}


def read(inks: Sequence[Ink], style: str = "sans") -> list[ShapeImage | None]:
    """Read many shapes at once; None where no symbol can reach the threshold."""
    filled = [place for place, ink in enumerate(inks) if ink.size]
    readings: list[ShapeImage | None] = [None] * len(inks)
    if not filled:
        return readings
    table = _compare(*_squared([inks[place] for place in filled]), style)
    symbols = _alphabet(style)[0]
    for place, row in zip(filled, table, strict=True):
        best = int(np.argmax(row))
        if row[best] == 0:
            continue
        others = np.where(_rivals(style)[best], row, -1.0)
        second = int(np.argmax(others))
        match, next_match = float(row[best]), float(others[second])
        alike = match >= MATCH and match - next_match >= MARGIN
        flaw_share = flaw(inks[place], glyph(symbols[best], style)) if alike else None
        readings[place] = ShapeImage(symbols[best], match, symbols[second], next_match, flaw_share)
    return readings


Family = Literal["rotation", "reflection", "addition", "subtraction", "composition"]
FAMILIES: tuple[Family, ...] = get_args(Family)
LANGUAGES = ("en", "de")

_PRESENT = 0.85  # a stroke that is taken away was ink to at least this share …
_ABSENT = 0.40  # … and one that is added is ink so far to at most this share


@dataclass(frozen=True)
class GeometryOperation:
    """An operation on one symbol or, for ``overlay``, ``beside`` and ``above``, on two."""

    name: str  # as in operations.json
    family: Family  # rotation, reflection, addition or subtraction
    does: str  # rotate, mirror, add, erase, erase_bar, keep, overlay, beside or above
    said: Mapping[str, str]  # the predicate by language
    quarters: int = 0  # what does needs: quarter turns clockwise, mirror line, stroke, part that stays
    axis: str = ""
    line: tuple[tuple[float, float], ...] = ()
    box: tuple[float, float, float, float] = (0, 0, 1, 1)

    @property
    def takes(self) -> int:
        """Number of symbols that it is done to."""
        return 2 if self.does in ("overlay", "beside", "above") else 1

    def apply(self, inks: Sequence[Ink], thickness: float) -> Ink | None:
        """Do it to the ink of one or two symbols."""
        if self.takes == 2:
            return PAIRED[self.does](inks[0], inks[1])
        ink = inks[0]
        if self.does == "rotate":
            return shapes.rotate(ink, self.quarters)
        if self.does == "mirror":
            return shapes.mirror(ink, self.axis)
        if self.does == "keep":
            return shapes.keep_box(ink, *self.box)
        if self.does == "erase_bar":
            height = shapes.bar_height(ink, thickness)
            return None if height is None else shapes.erase_stroke(ink, ((0, height), (1, height)), thickness)
        roomy = shapes.with_room(ink)
        share = shapes.covered(roomy, self.line, thickness)
        if self.does == "add":
            return shapes.add_stroke(roomy, self.line, thickness) if share <= _ABSENT else None
        return shapes.erase_stroke(roomy, self.line, thickness) if share >= _PRESENT else None


PAIRED = {"overlay": shapes.overlay, "beside": shapes.beside, "above": shapes.above}


@functools.cache
def operations() -> Mapping[str, GeometryOperation]:
    """Return every operation by its name, in the order of ``operations.json``."""
    return {
        row["name"]: GeometryOperation(
            name=row["name"],
            family=row["family"],
            does=row["does"],
            said={language: row[language] for language in LANGUAGES},
            quarters=row.get("quarters", 0),
            axis=row.get("axis", ""),
            line=tuple((x, y) for x, y in row.get("line", ())),
            box=tuple(row.get("box", (0, 0, 1, 1))),
        )
        for row in data_file("htest/geometry/operations.json")["operations"]
    }


def operation(name: str) -> GeometryOperation:
    """Return an operation by its name."""
    if name not in operations():
        raise unknown_name("geometry operation", name, operations())
    return operations()[name]


def drawn(symbols: Sequence[str], names: Sequence[str], style: str = "sans") -> Ink | None:
    """Draw symbols and do operations to them, one after the other."""
    steps = [operation(name) for name in names]
    inks: list[Ink] = [glyph(symbol, style) for symbol in symbols]
    for step in steps:
        if len(inks) != step.takes:
            raise UserError(f"{step.name} takes {step.takes} symbol(s); {len(inks)} given: {list(symbols)}")
        shape = step.apply(inks, stem(style))
        if shape is None or not shape.size:
            return None
        inks = [shape]
    return inks[0]


def sentence(symbols: Sequence[str], names: Sequence[str], language: str = "en") -> str:
    """Put a question into words."""
    if language not in LANGUAGES:
        raise unknown_name("language of the questions", language, LANGUAGES)
    words = data_file("htest/geometry/operations.json")["sentences"][language]
    predicates = [operation(name).said[language] for name in names]
    called = [words[symbol_kind(symbol)].format(symbol) for symbol in symbols]
    form = "two" if len(symbols) == 2 else "steps" if len(predicates) == 2 else "one"
    parts = dict(zip(("a", "b"), called, strict=False)) | dict(
        zip(("first", "second"), predicates, strict=False)
    )
    text = str(words[form].format(**parts))
    return text[0].upper() + text[1:]


def symbol_kind(symbol: str) -> str:
    """Return what a symbol is called: ``letter_capital``, ``letter_small``, ``digit`` or ``symbol``."""
    if symbol.isascii() and symbol.isalpha():
        return "letter_capital" if symbol.isupper() else "letter_small"
    return "digit" if symbol.isascii() and symbol.isdigit() else "symbol"


MAIN_FONT = "sans"


@dataclass(frozen=True)
class GeometryQuestion:
    """A question with a computed answer."""

    family: Family  # rotation, reflection, addition, subtraction or composition
    symbols: tuple[str, ...]  # what it is about: one symbol or two
    operations: tuple[str, ...]  # what is done, in order
    reading: ShapeImage  # what the result looks like in the main font; its symbol is the answer
    fonts: tuple[str, ...]  # fonts in which it clearly reads as that symbol

    @property
    def answer(self) -> str:
        """The symbol that the result looks like."""
        return self.reading.symbol

    @property
    def name(self) -> str:
        """Unique name: operations and symbols."""
        return question_name(self.symbols, self.operations)

    def text(self, language: str = "en") -> str:
        """Return the question in words."""
        return sentence(self.symbols, self.operations, language)


def question_name(symbols: Sequence[str], names: Sequence[str]) -> str:
    """Return how the question of operations on symbols is called."""
    return f"{'+'.join(names)}:{' '.join(symbols)}"


def likeness(question: GeometryQuestion) -> dict[str, float]:
    """Return how much the result looks like each symbol in the main font, most similar first."""
    return dict(_likeness(question.symbols, question.operations))


@functools.lru_cache(maxsize=4096)
def _likeness(symbols: tuple[str, ...], names: tuple[str, ...]) -> Mapping[str, float]:
    shape = drawn(symbols, names, MAIN_FONT)
    return {} if shape is None else similarities(shape, MAIN_FONT)


@functools.lru_cache(maxsize=8192)
def reads_as(symbols: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    """Return the symbol that the result reads as in the main font, without the guard; None where it reads as nothing."""
    shape = drawn(symbols, names, MAIN_FONT)
    reading = None if shape is None else read([shape], MAIN_FONT)[0]
    return reading.symbol if reading is not None and reading.reads() else None


@functools.cache
def questions(family: Family) -> tuple[GeometryQuestion, ...]:
    """Return every valid question of a family, in a fixed order, as ``questions.json`` keeps them."""
    if family not in FAMILIES:
        raise unknown_name("family of geometry questions", family, FAMILIES)
    return tuple(
        GeometryQuestion(family, tuple(symbols), tuple(names), ShapeImage(*reading), tuple(fonts))
        for symbols, names, reading, fonts in data_file("htest/geometry/questions.json")["questions"][family]
    )
