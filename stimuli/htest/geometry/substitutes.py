"""Other symbols for a question: what is asked stays, what it is asked of does not, and none of the options is right any more.

So the question reads as before and its options stand as before, but it tells nothing of the answer that counts: who
answers above chance knows it from the options alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from stimuli.errors import UserError
from stimuli.htest.geometry.glyphs import alphabet
from stimuli.htest.geometry.likeness import kept_apart, read
from stimuli.htest.geometry.operations import symbol_kind
from stimuli.htest.geometry.questions import Question, question_name, questions, reads_as
from stimuli.htest.geometry.wording import describe
from stimuli.seeds import stable_seed

_QUOTED = re.compile(r'"([^"]+)"')
_SUM = re.compile(r"\((\S+) ([+-]) (\S*)\)")
"""How released questions say once more what is added or subtracted: (c + I)."""
_STROKES = ("_", "-", "–", "−", "|", "/")
_TRIES = 40
"""Drawn symbols that are tried in a released question, whose drawings take time."""


def other_symbols(
    question: Question, options: Sequence[str], seed: int, name: str, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """Return symbols for a computed question, drawn by the seed, whose result is none of the options and like none."""
    family = questions(question.family)

    def drawn(found: Iterator[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return sorted(set(found), key=lambda one: stable_seed(seed, "geometry substitutes", name, *one))

    asked = drawn(
        one.symbols
        for one in family
        if one.operations == question.operations and _is_far((one.answer,), options)
    )
    rest = drawn(one.symbols for one in family if len(one.symbols) == len(question.symbols))
    again: tuple[str, ...] | None = None
    for symbols in itertools.chain(asked, rest):
        if set(symbols) & set(question.symbols) or not _is_far(symbols, options):
            continue
        result = reads_as(symbols, question.operations)
        if result is not None and not _is_far((result,), options):
            continue
        if question_name(symbols, question.operations) not in taken:
            return symbols
        again = again or symbols
    if again is not None:
        return again
    raise UserError(
        f"no other symbols can stand in the question {question.text()!r}",
        mend="Leave the level Sub out, or ask for items of other families.",
    )


def other_wording(
    question: str, options: Sequence[str], seed: int, name: str, taken: Collection[str] = ()
) -> str:
    """Return a released question with other symbols of the same kinds, of which no option can be the result."""
    symbols = list(dict.fromkeys(_QUOTED.findall(question)))
    if not symbols:
        return question
    tried = ""
    for number in range(_TRIES):
        tried = _reworded(question, _other_of_kind(symbols, options, (seed, name, number)))
        if tried in taken:
            continue
        drawings = describe(tried).drawings
        found = [] if drawings is None else read(list(drawings.values()))
        if not any(one is not None and one.reads() and not _is_far((one.symbol,), options) for one in found):
            return tried
    return tried


def _reworded(question: str, others: Mapping[str, str]) -> str:
    quoted = _QUOTED.sub(lambda found: f'"{others[found[1]]}"', question)
    return _SUM.sub(
        lambda found: f"({others.get(found[1], found[1])} {found[2]} {others.get(found[3], found[3])})",
        quoted,
    )


def _kind(symbol: str) -> str:
    """Return what stands for what: a stroke for a stroke, a capital for a capital."""
    return "stroke" if symbol in _STROKES else symbol_kind(symbol)


def _other_of_kind(
    symbols: Sequence[str], options: Sequence[str], draw: tuple[int, str, int]
) -> dict[str, str]:
    """Return another symbol of its kind for each, no two the same, none of them an option or in the question."""
    others: dict[str, str] = {}
    for symbol in symbols:
        kind = _kind(symbol)
        free = [
            one
            for one in alphabet()
            if _kind(one) == kind
            and one not in others.values()
            and not any(kept_apart(one, known) for known in symbols)
        ]
        best = [one for one in free if _is_far((one,), options)] or free
        ordered = sorted(best, key=lambda one: stable_seed(draw[0], "geometry substitutes", *draw[1:], one))
        others[symbol] = ordered[0] if ordered else symbol
    return others


def _is_far(symbols: Sequence[str], options: Sequence[str]) -> bool:
    return not any(kept_apart(symbol, option) for symbol in symbols for option in options)
