"""Order-bound copy of the transforms of Mind Scramble (TypoBench, 2024), fault for fault.

The paper published no stimuli; this follows what its released code does (the faults are listed in
``protocols.json``). One stream, seeded once, is consumed text after text. Three units move: letters of a token (a run
of letters, digits and underscores), words of a clause, sentences of a text.

Inserted letters (INS) were drawn with a string hash that differs from process to process. Here a stable hash of the
same parts stands in for it: letters come from the same pool and hang on word and place alone, but they are not the
letters of any released run.
"""

from __future__ import annotations

import itertools
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stimuli.scramble.published.cao2023 import WORD_BOUNDARY
from stimuli.scramble.published.protocol import PublishedOperation
from stimuli.seeds import stable_seed

PUBLISHED_SEED = 42
CLAUSE_MARKS = ".!?,;:"
MASK = "_"
_CLAUSE = re.compile(f"[^{CLAUSE_MARKS}]+[{CLAUSE_MARKS}]")
_SENTENCE = re.compile("[^.!]+[.!?]")
_LONGEST_LEFT_ALONE = 3
_EXCHANGE = 0.5


@dataclass(frozen=True)
class MovedSpan:
    """A clause whose words, or a text whose sentences, were put in another order."""

    begin: int  # characters of the intact and of the shown text before it
    start: int
    intact: str  # the span before and after
    shown: str
    # for each place of the shown span, the place of the intact span whose piece stands there
    order: tuple[int, ...]
    pieces: int  # number of pieces of the intact span, dropped ones included


@dataclass(frozen=True)
class Passed:
    """A text after a pass, and where its words or sentences changed places (not told for letters)."""

    text: str
    spans: tuple[MovedSpan, ...] = ()


def scramble(texts: Sequence[str], operation: PublishedOperation, seed: int) -> list[str]:
    """Transform a list of texts with one stream."""
    return [passed.text for passed in trace(texts, operation, seed)]


def trace(texts: Sequence[str], operation: PublishedOperation, seed: int) -> list[Passed]:
    """Transform a list of texts as :func:`scramble` does and tell which words or sentences changed places."""
    assert operation.protocol is not None
    change = _transform(operation.protocol.name)
    draw = random.Random(seed)
    return [change(text, draw) for text in texts]


_Transform = Callable[[str, random.Random], Passed]
_Reorder = Callable[[list[int], random.Random], None]


def _transform(name: str) -> _Transform:
    unit, _, kind = name.partition("-REO-")
    if unit in ("WORD", "SENT"):
        moved = _words_moved if unit == "WORD" else _sentences_moved
        reorder = _REORDERS[kind]
        return lambda text, draw: moved(text, lambda order: reorder(order, draw), reverse=kind == "REV")
    if name == "REO-REV":
        return lambda text, draw: Passed("".join(token[::-1] for token in WORD_BOUNDARY.split(text)))
    operation, _, position = name.partition("-")
    place, _, times = position.partition("_")
    change = _LETTERS[operation]

    def each_token(text: str, draw: random.Random) -> Passed:
        return Passed(
            "".join(
                change(token, place, int(times or 0), draw) if _takes_part(token) else token
                for token in WORD_BOUNDARY.split(text)
            )
        )

    return each_token


def _takes_part(token: str) -> bool:
    return len(token) > _LONGEST_LEFT_ALONE and not any(map(str.isdigit, token))


def _reordered(token: str, place: str, times: int, draw: random.Random) -> str:
    letters = list(token)
    last = len(letters) - 1
    if place == "ALL":
        draw.shuffle(letters)
    elif place == "INT" and not times:
        inner = letters[1:-1]
        draw.shuffle(inner)
        letters[1:-1] = inner
    elif place == "INT":
        for _ in range(times):
            _exchange(letters, *draw.sample(range(1, last), 2))
    else:
        middle = len(letters) // 2
        _exchange(letters, *{"BEG": (0, 1), "END": (last - 1, last), "MID": (middle - 1, middle)}[place])
    return "".join(letters)


def _exchange(things: list[str], one: int, other: int) -> None:
    things[one], things[other] = things[other], things[one]


def _masked(token: str, place: str, times: int, draw: random.Random) -> str:
    letters = list(token)
    for position in _positions(token, place, times, draw, end=len(token) - 1):
        letters[position] = MASK
    return "".join(letters)


def _lengthened(token: str, place: str, times: int, draw: random.Random) -> str:
    # Places were drawn in the intact token and not moved on: a later letter can land beside or before an earlier one.
    for position in _positions(token, place, times, draw, end=len(token)):
        token = token[:position] + _inserted(token, position) + token[position:]
    return token


def _positions(token: str, place: str, times: int, draw: random.Random, *, end: int) -> list[int]:
    if place == "INT":
        return draw.sample(range(1, len(token) - 1), min(len(token) // 2, times))
    return [0 if place == "BEG" else end]


def _inserted(token: str, position: int) -> str:
    """Draw the letter to insert; the stable hash stands in for Python's salted one."""
    own = random.Random(stable_seed("TypoBench insertion", token) + len(token) + position)
    return own.choice(token + string.ascii_letters)


_LETTERS = {"REO": _reordered, "DEL": _masked, "INS": _lengthened}


def _words_moved(text: str, reorder: Callable[[list[int]], None], *, reverse: bool) -> Passed:
    """Reorder the words of each clause and set one space behind its mark; what follows the last mark is lost."""
    done: list[str] = []
    spans: list[MovedSpan] = []
    start = 0
    for found in _CLAUSE.finditer(text):
        clause = found.group()
        inner = clause[:-1].strip() if reverse else clause.strip()[:-1]
        words = inner.split(" ")
        order = list(range(len(words)))
        reorder(order)
        shown = " ".join(words[place] for place in order)
        if shown != inner:
            begin = found.start() + len(clause) - len(clause.lstrip())
            spans.append(MovedSpan(begin, start, inner, shown, tuple(order), len(words)))
        done.append(f"{shown}{clause[-1]} ")
        start += len(done[-1])
    return Passed("".join(done), tuple(spans))


def _sentences_moved(text: str, reorder: Callable[[list[int]], None], *, reverse: bool) -> Passed:
    """Reorder the sentences of a text and join them as they are; what follows the last mark is lost."""
    pieces = [(found.start(), found.end()) for found in _SENTENCE.finditer(text)]
    order = list(range(len(pieces)))
    reorder(order)
    shown = "".join(text[slice(*pieces[place])] for place in order)
    if shown == text:
        return Passed(text)
    lost = [
        begin
        for begin, end in itertools.pairwise([0, *itertools.chain(*pieces), len(text)])
        if (begin, end) not in pieces and re.search(r"\w", text[begin:end])
    ]
    places = [place + sum(begin < pieces[place][0] for begin in lost) for place in order]
    return Passed(shown, (MovedSpan(0, 0, text, shown, tuple(places), len(pieces) + len(lost)),))


def _shuffled(order: list[int], draw: random.Random) -> None:
    draw.shuffle(order)


def _neighbours_exchanged(order: list[int], draw: random.Random) -> None:
    """Go from left to right; with even odds exchange two neighbours and go on after them."""
    place = 0
    while place < len(order) - 1:
        if draw.random() < _EXCHANGE:
            order[place], order[place + 1] = order[place + 1], order[place]
            place += 1
        place += 1


def _reversed(order: list[int], draw: random.Random) -> None:
    order.reverse()


_REORDERS: dict[str, _Reorder] = {"ALL": _shuffled, "ADJ": _neighbours_exchanged, "REV": _reversed}
