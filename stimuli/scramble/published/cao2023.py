"""Order-bound copy of the scrambling that made the published stimuli of Cao et al. (2023), fault for fault.

One pass goes over the whole list of texts with one random stream, so every text depends on those before it. Words are
what splitting at non-word characters leaves (``don’t`` is two), digits keep their places, capitals travel, and a
shuffled word can come out as it was (``see``), as in the released code.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence

from stimuli.scramble.published.protocol import PublishedOperation
from stimuli.scramble.registry import checked_rate

PUBLISHED_SEED = 10
WORD_BOUNDARY = re.compile(r"(\W)")
_SPACES = re.compile(r" +")
_KEPT = {"KF": (1, 0), "KFL": (1, 1)}


def scramble(texts: Sequence[str], operation: PublishedOperation, seed: int) -> list[str]:
    """Make one pass over a list of texts: RS in its nested steps of 10 %, KF, KFL or Sub."""
    assert operation.protocol is not None
    name = operation.protocol.name
    if name == "RS":
        return _in_steps(texts, operation.steps, seed)
    draw = random.Random(seed)
    if name == "SUB":
        return [
            _chosen_words(text, lambda words: len(words), lambda t: _other_letters(t, draw), draw)
            for text in texts
        ]
    first, last = _KEPT[name]
    return [tidy(_each_token(text, lambda token: _keep(token, first, last, draw))) for text in texts]


def scramble_demonstrations(texts: Sequence[str], rate: float, *, seed: int = PUBLISHED_SEED) -> list[str]:
    """Scramble few-shot demonstrations as published: RS in one go, without the steps of 10 %."""
    share = checked_rate(rate)
    draw = random.Random(seed)
    return [
        _chosen_words(
            text, lambda words: round(len(words) * share), lambda token: _keep(token, 0, 0, draw), draw
        )
        for text in texts
    ]


def tidy(text: str) -> str:
    """Make runs of spaces one space and line ends line feeds, as the released code did after scrambling."""
    return "\n".join(_SPACES.sub(" ", line) for line in text.splitlines())


def _in_steps(texts: Sequence[str], steps: int, seed: int) -> list[str]:
    tokens = [WORD_BOUNDARY.split(text) for text in texts]
    eligible = [_eligible(row) for row in tokens]
    waiting = [list(places) for places in eligible]
    for step in range(1, steps + 1):
        draw = random.Random(seed)
        for row, places, left in zip(tokens, eligible, waiting, strict=True):
            count = round(0.1 * len(places) * step) - round(0.1 * len(places) * (step - 1))
            for place in draw.sample(left, count):
                row[place] = _keep(row[place], 0, 0, draw)
                left.remove(place)
    return [tidy("".join(row)) for row in tokens]


def _chosen_words(
    text: str, count: Callable[[Sequence[int]], int], change: Callable[[str], str], draw: random.Random
) -> str:
    """Change so many of a text's words of two or more letters, in the order in which they are drawn."""
    row = WORD_BOUNDARY.split(text)
    eligible = _eligible(row)
    for place in draw.sample(eligible, count(eligible)):
        row[place] = change(row[place])
    return tidy("".join(row))


def _eligible(row: Sequence[str]) -> list[int]:
    return [place for place, token in enumerate(row) if sum(map(str.isalpha, token)) >= 2]


def _each_token(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(token) for token in WORD_BOUNDARY.split(text))


def _other_letters(token: str, draw: random.Random) -> str:
    """Put for every letter another of a to z and A to Z."""
    return "".join(
        draw.choice(string.ascii_letters.replace(character, "")) if character.isalpha() else character
        for character in token
    )


def _keep(token: str, first: int, last: int, draw: random.Random) -> str:
    """Shuffle the letters of a token but for the outer ones that are kept; digits keep their places."""
    places = [place for place, character in enumerate(token) if character.isalpha()]
    if len(places) < first + last + 2:
        return token
    inner = places[first : len(places) - last]
    characters = list(token)
    for place, source in zip(inner, _different_shuffle(inner, draw), strict=True):
        characters[place] = token[source]
    return "".join(characters)


def _different_shuffle(places: Sequence[int], draw: random.Random) -> list[int]:
    """Shuffle so that the order differs: at one index, drawn first, the partner comes from strictly below."""
    order = list(places)
    (forced,) = draw.sample(range(1, len(order)), 1)
    for i in range(len(order) - 1, 0, -1):
        partner = int(draw.random() * (i if i == forced else i + 1))
        order[i], order[partner] = order[partner], order[i]
    return order
