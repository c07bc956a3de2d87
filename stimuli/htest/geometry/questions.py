"""Every question that the rendering can answer: symbols, operations, and the symbol that the result reads as.

A question is *valid* where the shape reads clearly as one symbol in DejaVu Sans and in another font, and in no font
clearly as another one.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib import resources

from stimuli.errors import unknown_name
from stimuli.htest.geometry.glyphs import FONTS, alphabet, has_glyph
from stimuli.htest.geometry.likeness import GUARD, Reading, kept_apart, read, same, similarities
from stimuli.htest.geometry.operations import FAMILIES, Family, Operation, drawn, operations, sentence

MAIN_FONT = "sans"


@dataclass(frozen=True)
class Question:
    """A question with a computed answer."""

    family: Family  # rotation, reflection, addition, subtraction or composition
    symbols: tuple[str, ...]  # what it is about: one symbol or two
    operations: tuple[str, ...]  # what is done, in order
    reading: Reading  # what the result looks like in the main font; its symbol is the answer
    fonts: tuple[str, ...]  # fonts in which it clearly reads as that symbol

    @property
    def answer(self) -> str:
        """The symbol that the result looks like."""
        return self.reading.symbol

    @property
    def name(self) -> str:
        """A name of its own: operations and symbols."""
        return question_name(self.symbols, self.operations)

    def text(self, language: str = "en") -> str:
        """Return the question in words."""
        return sentence(self.symbols, self.operations, language)


def question_name(symbols: Sequence[str], names: Sequence[str]) -> str:
    """Return how the question of operations on symbols is called."""
    return f"{'+'.join(names)}:{' '.join(symbols)}"


def likeness(question: Question) -> dict[str, float]:
    """Return how much the result looks like each symbol in the main font, most similar first."""
    return dict(_likeness(question.symbols, question.operations))


@functools.lru_cache(maxsize=4096)
def _likeness(symbols: tuple[str, ...], names: tuple[str, ...]) -> Mapping[str, float]:
    shape = drawn(symbols, names, MAIN_FONT)
    return {} if shape is None else similarities(shape, MAIN_FONT)


def readings(symbols: Sequence[str], names: Sequence[str]) -> dict[str, Reading | None]:
    """Read one question in every font that draws its symbols."""
    found: dict[str, Reading | None] = {}
    for style in FONTS:
        if all(has_glyph(symbol, style) for symbol in symbols):
            shape = drawn(symbols, names, style)
            found[style] = None if shape is None else read([shape], style)[0]
    return found


@functools.lru_cache(maxsize=8192)
def reads_as(symbols: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    """Return the symbol that the result reads as in the main font, without the guard; None where it reads as nothing."""
    shape = drawn(symbols, names, MAIN_FONT)
    found = None if shape is None else read([shape], MAIN_FONT)[0]
    return found.symbol if found is not None and found.reads() else None


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


def _undoes(first: Operation, second: Operation) -> bool:
    return first.quarters > 0 and (first.quarters + second.quarters) % 4 == 0


@functools.cache
def _sources(kind: str) -> tuple[str, ...]:
    text = resources.files(__package__).joinpath("sources.json").read_text(encoding="utf-8")
    symbols = json.loads(text)["symbols"][kind]
    return tuple(alphabet() if symbols == "all" else symbols)


@functools.cache
def questions(family: Family) -> tuple[Question, ...]:
    """Return every valid question of a family, in a fixed order, as ``questions.json`` keeps them."""
    if family not in FAMILIES:
        raise unknown_name("family of geometry questions", family, FAMILIES)
    text = resources.files(__package__).joinpath("questions.json").read_text(encoding="utf-8")
    return tuple(
        Question(family, tuple(symbols), tuple(names), Reading(*reading), tuple(fonts))
        for symbols, names, reading, fonts in json.loads(text)["questions"][family]
    )


def kept_questions() -> str:
    """Return the text of ``questions.json``: the valid questions of every family, computed now."""
    about = (
        "Valid letter-geometry questions by family: symbols, operations, reading in the main font (symbol, match, next "
        "symbol, next match, flaw), fonts that agree. Computed from the DejaVu outlines; write it anew with "
        "python -c 'from stimuli.htest.geometry.questions import kept_questions; print(kept_questions(), end=str())'."
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


def computed_questions(family: Family) -> tuple[Question, ...]:
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


def _read_all(asked: Iterable[tuple[tuple[str, ...], tuple[str, ...]]], style: str) -> list[Reading | None]:
    """Read questions in one font; None where it lacks a symbol or the shape reads as nothing."""
    import numpy as np

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
    main: Reading,
    others: Mapping[str, Reading | None],
) -> Question | None:
    if family in ("addition", "subtraction") and any(same(main.symbol, one) for one in symbols):
        return None
    found = {style: one.symbol for style, one in others.items() if one is not None and one.reads(GUARD)}
    if not found or not all(kept_apart(one, main.symbol) for one in found.values()):
        return None
    return Question(family, symbols, names, main, (MAIN_FONT, *found))
