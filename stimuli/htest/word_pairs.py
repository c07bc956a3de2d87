"""Matched pairs for rules about words and their order, marks and numbers: the same words stand in A and in B."""

from __future__ import annotations

import functools
import random

from stimuli.htest.rule import Pair
from stimuli.htest.words import data, drawn, fill, listed, mentioned_words, twins
from stimuli.lexicon import zipf

_LONG = 9
"""Letters of a word that few words of a sentence exceed."""


def repeated_pair(draw: random.Random) -> Pair:
    """Two clauses with a word in common: said twice in a row (A), or once in each clause (B)."""
    frame = draw.choice(data("sentences")["doubled"])
    x = drawn(frame["kind"], draw)
    a, b = fill(f"{frame['a']}\n{frame['b']}", draw, x=x).split("\n")
    return Pair(a, b, b)


def end_mark_pair(draw: random.Random) -> Pair:
    """Two clauses with one mark, at the end (A) or between them (B)."""
    if draw.randrange(3):
        kind, mark = "statements", draw.choice(listed("statement_marks"))
    else:
        kind, mark = "questions", "?"
    first, second = (fill(sentence, draw) for sentence in draw.sample(listed(kind), 2))
    return Pair(f"{first} {second}{mark}", f"{first}{mark} {second}", f"{first} {second}")


def hyphen_pair(draw: random.Random) -> Pair:
    """Two trades and two numbers: the trades joined by a hyphen and the numbers by a stroke (A), or the reverse."""
    low = draw.randrange(1, 80)
    trades = draw.sample(listed("trades"), 2)
    sentence = fill(
        draw.choice(listed("ranges")),
        draw,
        trades="{0}".join(trades),
        range=f"{low}{{1}}{low + draw.randrange(1, 4)}",
    )
    return Pair(sentence.format("-", "/"), sentence.format("/", "-"), sentence)


def operation_pair(draw: random.Random) -> Pair:
    """Sum and name of its sign: spelled between the numbers and a sign as the name (A), or the reverse.

    The released items show one notation (``The sum plus 12.``, ``The limit < 10.``). Both stand here, because a
    spelled operation alone makes a text longer by words, letters and tokens than a sign does: with both, A and B
    have the same characters and words, and only which of them stands between the numbers tells them apart.
    """
    operation = draw.choice(data("numbers")["used_in_items"])
    low, high = sorted(draw.sample(range(2, 13), 2))
    match operation["numbers"]:
        case "rising":
            numbers = low, high
        case "falling":
            numbers = high, low
        case "multiple":
            numbers = low * high, low
        case _:
            numbers = (low, high) if draw.randrange(2) else (high, low)
    ways = operation["word"], operation["sign"]
    sentence = fill(draw.choice(listed("sums")), draw, sum="{sum}", sign="{sign}")
    a, b = (
        sentence.format(sum=f"{numbers[0]} {between} {numbers[1]}", sign=named)
        for between, named in (ways, ways[::-1])
    )
    return Pair(a, b, b)


def number_pair(draw: random.Random) -> Pair:
    """One number twice, first in letters and then in digits (A), or the reverse.

    The released items show it once. Both notations stand here, because a number in letters alone is longer than
    in digits and adds a frequent word: with both, A and B have the same characters and words, and the first
    number tells.
    """
    value = draw.randrange(2, 21)
    ways = data("numbers")["number_words"][value], str(value)
    sentence = fill(draw.choice(listed("numbers")), draw, n="{n}", m="{m}")
    a, b = (sentence.format(n=n, m=m) for n, m in (ways, ways[::-1]))
    return Pair(a, b, b)


def shared_initial_pair(draw: random.Random) -> Pair:
    """Four listed things, two of them with the same first letter: side by side (A) or parted by another (B)."""
    kind = draw.choice(("things", "animals"))
    first, other, last = (drawn(kind, draw) for _ in range(3))
    twins = [noun + "s" for noun in listed(kind, of="nouns") if noun[0] == first[0] and noun + "s" != first]
    if not twins:
        return shared_initial_pair(draw)
    twin = draw.choice(twins)
    together, parted = draw.choice(
        (
            ((first, twin, other, last), (first, other, twin, last)),
            ((other, first, twin, last), (other, first, last, twin)),
        )
    )
    return _listing(draw, together, parted)


def longest_last_pair(draw: random.Random) -> Pair:
    """Three or four mentioned words, the longest last (A), or before a word as common as it is (B)."""
    longest, last = draw.choice(_long_twins())
    rest = draw.sample(mentioned_words(), draw.choice((1, 2)))
    rarity = [-(zipf(word, "en") or 0.0) for word in (*rest, longest)]
    if max(map(len, rest)) >= len(longest) or rarity[0] <= max(rarity[1:]):
        # Another word would be the longest, or the rarest word would change its place.
        return longest_last_pair(draw)
    place = draw.randrange(1, len(rest) + 1)
    return _listing(draw, (*rest, last, longest), (*rest[:place], longest, *rest[place:], last), "word_lists")


@functools.cache
def _long_twins() -> tuple[tuple[str, str], ...]:
    """Return twins of which the first is longer than most words of a sentence are."""
    return tuple((one, other) for one, other in twins(as_long=False) if len(one) >= _LONG)


def _listing(draw: random.Random, a: tuple[str, ...], b: tuple[str, ...], frames: str = "listing") -> Pair:
    sentence = fill(draw.choice(listed(frames)), draw, list="{list}")
    texts = [sentence.format(list=f"{', '.join(words[:-1])} and {words[-1]}") for words in (a, b)]
    return Pair(texts[0], texts[1], sentence + " ".join(sorted(a)))


def alphabetical_pair(draw: random.Random) -> Pair:
    """Four or five mentioned words in alphabetical order (A), or with two like inner ones exchanged (B)."""
    one, other = sorted(draw.choice(twins()))
    words = sorted({one, other, *draw.sample(mentioned_words(), draw.choice((2, 3)))})
    if one == words[0] or other == words[-1]:
        return alphabetical_pair(draw)
    place, following = words.index(one), words.index(other)
    moved = words.copy()
    moved[place], moved[following] = other, one
    return Pair(", ".join(words), ", ".join(moved), " ".join(words))


def chain_pair(draw: random.Random) -> Pair:
    """Four or five words of which each begins as the one before ends (A), or with two like inner ones exchanged (B)."""
    words = list(draw.choice(_linked_twins()))
    place = 0
    for before in draw.choice(((True, False), (True, True, False), (True, False, False))):
        end = words[0][0] if before else words[-1][-1]
        fitting = [
            word for word in mentioned_words() if word[-1 if before else 0] == end and word not in words
        ]
        if not fitting:
            return chain_pair(draw)
        words.insert(0 if before else len(words), draw.choice(fitting))
        place += before
    moved = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
    return Pair(", ".join(words), ", ".join(moved), " ".join(sorted(words)))


@functools.cache
def _linked_twins() -> tuple[tuple[str, str], ...]:
    return tuple((one, other) for one, other in twins() if one[-1] == other[0] != one[0])
