"""A short yes/no vocabulary test in the manner of LexTALE (Lemhöfer & Broersma, 2012), with items of our own.

Words are spread evenly over the less frequent part of a language's vocabulary; nonwords are words with letters replaced
whose letter pairs all occur in the language. Its score is the mean of the shares of words accepted and of nonwords
rejected, which guessing brings to .5. Our items have no norms: scores compare participants of one study, not studies.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Collection, Sequence
from random import Random

from stimuli.errors import UserError
from stimuli.lexical.base_words import WordBounds, drawable_words, unlike
from stimuli.lexicon import is_real_word
from stimuli.orthography.bigrams import bigram_frequency
from stimuli.seeds import generator

BOUNDS = WordBounds((4, 10), (2.0, 4.0))
_BASES = WordBounds((5, 9), (2.5, 5.0))
_REPLACED = 2
_RAREST_PAIR = 0.7
"""Lowest count of words of the same length with a nonword's letter pair at its place, as log10(1 + count)."""
_TRIES = 200


def vocabulary_test(
    language: str, *, words: int, nonwords: int, seed: int, name: str = "vocabulary"
) -> dict[str, list[str]]:
    """Draw the items of a test."""
    return {key: list(value) for key, value in _drawn(language, words, nonwords, seed, name).items()}


@functools.lru_cache(maxsize=8)
def _drawn(language: str, words: int, nonwords: int, seed: int, name: str) -> dict[str, tuple[str, ...]]:
    draw = generator(seed, "vocabulary test", name, language)
    known = drawable_words(language, BOUNDS)
    if len(known) < 4 * words:
        raise UserError(
            f"a vocabulary test of {words} words needs more words of language {language!r} than the list has"
        )
    chosen = _spread(known, words, draw)
    invented = _invent(drawable_words(language, _BASES), nonwords, chosen, language, draw)
    shown = [*chosen, *invented]
    draw.shuffle(shown)
    return {"words": tuple(chosen), "nonwords": tuple(invented), "shown": tuple(shown)}


def score(chosen: Collection[str], words: Sequence[str], nonwords: Sequence[str]) -> float:
    """Return the score of a test, 0 to 1: the mean of words accepted and nonwords rejected, as shares."""
    accepted = sum(word in chosen for word in words) / len(words)
    rejected = sum(word not in chosen for word in nonwords) / len(nonwords)
    return (accepted + rejected) / 2


def _spread(known: Sequence[str], number: int, draw: Random) -> list[str]:
    """Draw one word from each of ``number`` equal stretches of a list in order of frequency."""
    found: list[str] = []
    for place in range(number):
        stretch = list(known[place * len(known) // number : (place + 1) * len(known) // number])
        draw.shuffle(stretch)
        found.append(next((word for word in stretch if unlike(word, found)), stretch[0]))
    return found


def _invent(
    bases: Sequence[str], number: int, taken: Sequence[str], language: str, draw: Random
) -> list[str]:
    found: list[str] = []
    order = list(bases)
    draw.shuffle(order)
    for base in order:
        if len(found) == number:
            return found
        made = _altered(base, language, draw)
        if made is not None and unlike(made, (*taken, *found)):
            found.append(made)
    raise UserError(f"only {len(found)} of {number} nonwords could be made in language {language!r}")


def _altered(base: str, language: str, draw: Random) -> str | None:
    """Replace letters of a word within their class, so that what comes out could be a word and is none."""
    vowels = "aeiou"
    for _ in range(_TRIES):
        letters = list(base)
        for place in draw.sample(range(len(letters)), _REPLACED):
            same = (
                vowels if letters[place] in vowels else [c for c in string.ascii_lowercase if c not in vowels]
            )
            letters[place] = draw.choice([c for c in same if c != letters[place]])
        made = "".join(letters)
        frequency = bigram_frequency(made, language)
        common = frequency is not None and frequency.bigram_position_type_min >= _RAREST_PAIR
        if common and sorted(made) != sorted(base) and not is_real_word(made, language):
            return made
    return None
