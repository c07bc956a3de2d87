"""What of a word may change: its letters, in small form, and where they stand."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from stimuli.lexicon import is_turkic
from stimuli.scramble.capitals import lower
from stimuli.scramble.words import clusters_of, is_letter, movable_places


class Plan(NamedTuple):
    """What of a word may change."""

    # the letters that may move, in lower case; a string where every letter is one character
    letters: Sequence[str]
    counted: int  # number of letters of the word
    case: str  # lower, title or upper where the whole word is letters in that pattern, one character each


_PLAN = tuple.__new__  # half the time of a call


class Parts(NamedTuple):
    """A word's grapheme clusters and the places of those that may move."""

    clusters: tuple[str, ...]
    movable: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def parts_of(word: str) -> Parts:
    """Return a word's grapheme clusters and which of them may move."""
    return Parts(tuple(clusters_of(word)), movable_places(word))


def plan_of(word: str, language: str) -> Plan:
    """Return what of a word may change."""
    if word.isalpha() and word.isascii() and not is_turkic(language):
        if word.islower():
            return _PLAN(Plan, (word, len(word), "lower"))
        small = word.lower()
        case = "title" if word[0] + small[1:] == word else "upper" if word.isupper() else "mixed"
        return _PLAN(Plan, (small, len(word), case))
    clusters, movable = parts_of(word)
    if word.isascii() and not is_turkic(language):
        small = word.lower()
        return _PLAN(Plan, (tuple([small[place] for place in movable]), sum(map(str.isalpha, word)), "mixed"))
    letters = tuple(lower(clusters[place], language) for place in movable)
    counted = sum(is_letter(cluster) for cluster in clusters)
    plain = len(movable) == len(word) and letters == clusters and all(map(_simple_small, clusters))
    return Plan("".join(letters) if plain else letters, counted, "lower" if plain else "mixed")


@functools.lru_cache(maxsize=4096)
def _simple_small(letter: str) -> bool:
    return "\u00df" <= letter <= "\u02af" or "\u0370" <= letter <= "\u052f" or letter.isascii()
