"""Rhymes as the paper's code looked them up: alike from the last stressed vowel on in the CMU Pronouncing Dictionary.

Unlike :func:`stimuli.htest.predicates.rhymes`, stress counts and words that sound the same all through are rhymes: a copy of
what the released code did.
"""

from __future__ import annotations

import functools
from collections import defaultdict

from stimuli.lexicon.pronunciations import pronounced_words, pronunciations

_SPELLED = 2
"""Letters at the end in which the two words of a couple differ."""


def rhymes_of(word: str) -> str:
    """Return the slot of a harvest that holds the rhymes of a word."""
    return f"rhymes of {word}"


def rhymes_as_published(word: str) -> list[str]:
    """Return the rhymes of a word in alphabetical order, the word itself left out; empty for a word that is not listed."""
    ends, by_end = _listed()
    return sorted({one for end in ends.get(word, ()) for one in by_end[end]} - {word})


def spelled_otherwise(word: str) -> list[str]:
    """Return the rhymes of a word whose last two letters differ from its own, in alphabetical order."""
    return [one for one in rhymes_as_published(word) if one[-_SPELLED:] != word[-_SPELLED:]]


@functools.cache
def _listed() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the ends of every listed word, and the words of every end."""
    ends: dict[str, set[str]] = {}
    by_end: dict[str, set[str]] = defaultdict(set)
    for word in pronounced_words():
        ends[word] = {_end(sounds) for sounds in pronunciations(word)}
        for end in ends[word]:
            by_end[end].add(word)
    return ends, by_end


def _end(sounds: list[str]) -> str:
    stressed = [place for place, sound in enumerate(sounds) if sound[-1] in "12"]
    return " ".join(sounds[stressed[-1] if stressed else 0 :])
