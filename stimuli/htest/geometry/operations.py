"""The operations that questions ask about, read from ``operations.json``: what each does and how it is said."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, get_args

from stimuli.errors import UserError, unknown_name
from stimuli.htest.geometry import shapes
from stimuli.htest.geometry.glyphs import Ink, glyph, stem

Family = Literal["rotation", "reflection", "addition", "subtraction", "composition"]
FAMILIES: tuple[Family, ...] = get_args(Family)
LANGUAGES = ("en", "de")

_PRESENT = 0.85  # a stroke that is taken away was ink to at least this share …
_ABSENT = 0.40  # … and one that is added is ink so far to at most this share


@dataclass(frozen=True)
class Operation:
    """One thing done to one symbol or, for ``overlay``, ``beside`` and ``above``, to two."""

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
        there = shapes.covered(roomy, self.line, thickness)
        if self.does == "add":
            return shapes.add_stroke(roomy, self.line, thickness) if there <= _ABSENT else None
        return shapes.erase_stroke(roomy, self.line, thickness) if there >= _PRESENT else None


PAIRED = {"overlay": shapes.overlay, "beside": shapes.beside, "above": shapes.above}


@functools.cache
def _table() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("operations.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@functools.cache
def operations() -> Mapping[str, Operation]:
    """Return every operation by its name, in the order of ``operations.json``."""
    return {
        row["name"]: Operation(
            name=row["name"],
            family=row["family"],
            does=row["does"],
            said={language: row[language] for language in LANGUAGES},
            quarters=row.get("quarters", 0),
            axis=row.get("axis", ""),
            line=tuple((x, y) for x, y in row.get("line", ())),
            box=tuple(row.get("box", (0, 0, 1, 1))),
        )
        for row in _table()["operations"]
    }


def operation(name: str) -> Operation:
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
    words = _table()["sentences"][language]
    said = [operation(name).said[language] for name in names]
    called = [words[symbol_kind(symbol)].format(symbol) for symbol in symbols]
    form = "two" if len(symbols) == 2 else "steps" if len(said) == 2 else "one"
    parts = dict(zip(("a", "b"), called, strict=False)) | dict(zip(("first", "second"), said, strict=False))
    text = str(words[form].format(**parts))
    return text[0].upper() + text[1:]


def symbol_kind(symbol: str) -> str:
    """Return what a symbol is called: ``letter_capital``, ``letter_small``, ``digit`` or ``symbol``."""
    if symbol.isascii() and symbol.isalpha():
        return "letter_capital" if symbol.isupper() else "letter_small"
    return "digit" if symbol.isascii() and symbol.isdigit() else "symbol"
