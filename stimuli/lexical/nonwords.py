"""What a nonword is to its base word: two letters exchanged, the same two replaced, or something else.

Transposed-letter nonwords (``jugde``) and their controls with both letters replaced (``jupte``) differ in how much they
resemble the base word and in nothing else (Perea & Lupker, 2004, Can CANISO activate CASINO?).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from stimuli.similarity.letters import letters_of

Kind = Literal["same", "transposed", "replaced", "other"]
VOWELS = frozenset("aeiouyæøœ")


@dataclass(frozen=True)
class Relation:
    """How a string differs from its base word, capitals aside.

    Parameters
    ----------
    kind : {"same", "transposed", "replaced", "other"}
        ``transposed``: two letters stand in each other's place; ``replaced``: two letters are new ones at their
        places; ``other``: anything else.
    places : tuple of int
        Letters of the base word that differ, from 0; empty where lengths differ.
    classes : tuple of str
        ``consonant`` or ``vowel`` for each of these letters of the base word (``y`` counts as a vowel).
    """

    kind: Kind
    places: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def distance(self) -> int | None:
        """Places from the first differing letter to the last; 1 for neighbours, None where nothing differs."""
        return self.places[-1] - self.places[0] if self.places else None


def relation(base: str, string: str) -> Relation:
    """Find out how a string was made from its base word."""
    before, after = letters_of(base), letters_of(string)
    if before == after:
        return Relation("same")
    if len(before) != len(after):
        return Relation("other")
    places = tuple(place for place, letter in enumerate(before) if after[place] != letter)
    classes = tuple(letter_class(before[place]) for place in places)
    if len(places) != 2:
        return Relation("other", places, classes)
    i, j = places
    if (before[i], before[j]) == (after[j], after[i]):
        return Relation("transposed", places, classes)
    fresh = after[i] != before[j] and after[j] != before[i]
    return Relation("replaced" if fresh else "other", places, classes)


def letter_class(letter: str) -> Literal["vowel", "consonant"]:
    """Tell vowels from consonants by the letter without its marks; ``y`` counts as a vowel."""
    return "vowel" if unicodedata.normalize("NFD", letter.casefold())[0] in VOWELS else "consonant"
