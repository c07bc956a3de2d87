"""Writes ``stimuli/htest/geometry/questions.json``: ``python -m tests.write_geometry_questions``."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np

from stimuli.files import data_file
from stimuli.htest.geometry.questions import (
    FAMILIES,
    GUARD,
    MAIN_FONT,
    Family,
    GeometryOperation,
    GeometryQuestion,
    ShapeImage,
    drawn,
    kept_apart,
    operations,
    read,
    same,
)
from stimuli.htest.geometry.shapes import FONTS, alphabet, has_glyph

FILE = Path(__file__).parents[1] / "stimuli/htest/geometry/questions.json"


def readings(symbols: Sequence[str], names: Sequence[str]) -> dict[str, ShapeImage | None]:
    """Read one question in every font that draws its symbols."""
    found: dict[str, ShapeImage | None] = {}
    for style in FONTS:
        if all(has_glyph(symbol, style) for symbol in symbols):
            shape = drawn(symbols, names, style)
            found[style] = None if shape is None else read([shape], style)[0]
    return found


def _asked(family: Family) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the symbols and operations of every question of a family that could be asked."""
    sources = _sources(family)
    alone = [step for step in operations().values() if step.takes == 1]
    if family == "composition":
        turns = [step for step in alone if step.family in ("rotation", "reflection")]
        pairs = [(turn, step) for turn in turns for step in alone]
        pairs += [(step, turn) for step in alone if step not in turns for turn in turns]
        for symbol, (first, second) in itertools.product(sources, pairs):
            if first.name != second.name and not _undoes(first, second):
                yield (symbol,), (first.name, second.name)
        return
    for step in operations().values():
        if step.family != family:
            continue
        if step.takes == 1:
            yield from (((symbol,), (step.name,)) for symbol in sources)
            continue
        for pair in itertools.product(_sources("pairs"), repeat=2):
            if step.does != "overlay" or pair[0] < pair[1]:
                yield pair, (step.name,)


def _undoes(first: GeometryOperation, second: GeometryOperation) -> bool:
    return first.quarters > 0 and (first.quarters + second.quarters) % 4 == 0


@functools.cache
def _sources(kind: str) -> tuple[str, ...]:
    symbols = data_file("htest/geometry/sources.json")["symbols"][kind]
    return tuple(alphabet() if symbols == "all" else symbols)


def kept_questions() -> str:
    """Return the text of ``questions.json``: the valid questions of every family, computed now."""
    about = (
        "Valid letter-geometry questions by family: symbols, operations, reading in the main font (symbol, match, next "
        "symbol, next match, flaw), fonts that agree. Computed from the DejaVu outlines; write it anew with "
        "python -m tests.write_geometry_questions."
    )
    rows = {
        family: [
            [one.symbols, one.operations, list(astuple(one.reading)), one.fonts]
            for one in computed_questions(family)
        ]
        for family in FAMILIES
    }
    lines = ",\n".join(
        f'"{family}": [\n' + ",\n".join(json.dumps(row, ensure_ascii=False) for row in own) + "]"
        for family, own in rows.items()
    )
    head = json.dumps({"about": about, "source": "computed by wrods", "licence": "MIT"})[:-1]
    return f'{head}, "questions": {{{lines}}}}}\n'


def computed_questions(family: Family) -> tuple[GeometryQuestion, ...]:
    """Render and read every question of a family that could be asked, and return the valid ones in a fixed order."""
    asked = list(_asked(family))
    clear = [
        (one, reading)
        for one, reading in zip(asked, _read_all(asked, MAIN_FONT), strict=True)
        if reading is not None and reading.reads(GUARD)
    ]
    others = {style: _read_all([one for one, _ in clear], style) for style in FONTS if style != MAIN_FONT}
    return tuple(
        question
        for place, ((symbols, names), main) in enumerate(clear)
        if (
            question := _valid(
                family, symbols, names, main, {style: others[style][place] for style in others}
            )
        )
    )


def _read_all(
    asked: Iterable[tuple[tuple[str, ...], tuple[str, ...]]], style: str
) -> list[ShapeImage | None]:
    """Read questions in one font; None where it lacks a symbol or the shape reads as nothing."""
    nothing = np.zeros((0, 0), dtype=np.bool_)
    inks = []
    for symbols, names in asked:
        shape = drawn(symbols, names, style) if all(has_glyph(one, style) for one in symbols) else None
        inks.append(nothing if shape is None else shape)
    return read(inks, style)


def _valid(
    family: Family,
    symbols: tuple[str, ...],
    names: tuple[str, ...],
    main: ShapeImage,
    others: Mapping[str, ShapeImage | None],
) -> GeometryQuestion | None:
    if family in ("addition", "subtraction") and any(same(main.symbol, one) for one in symbols):
        return None
    found = {style: one.symbol for style, one in others.items() if one is not None and one.reads(GUARD)}
    if not found or not all(kept_apart(one, main.symbol) for one in found.values()):
        return None
    return GeometryQuestion(family, symbols, names, main, (MAIN_FONT, *found))


if __name__ == "__main__":
    FILE.write_text(kept_questions(), encoding="utf-8")
