"""Bigram frequency: how common the neighbouring letters of a string are in a language's vocabulary.

A type count is the number of vocabulary words with the bigram (each place counts), a token count the sum of their
frequencies per million. Both are log10(1 + count). ``position`` counts a bigram only at the same place of words of the
same length (Solso & Juel, 1980); otherwise it counts anywhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import fmean
from typing import NamedTuple

from stimuli.lexicon.words import base_language
from stimuli.orthography.vocabulary import spell, vocabulary

_Place = tuple[int, int, str]


class _Count(NamedTuple):
    """How often a bigram occurs, as log10(1 + count)."""

    types: float
    tokens: float


@dataclass(frozen=True)
class BigramFrequency:
    """Bigram frequencies of a string: mean and minimum over its bigrams, log10(1 + count)."""

    bigram_mean: float  # token counts per million, anywhere in a word
    bigram_min: float
    bigram_type_mean: float  # type counts, anywhere in a word
    bigram_type_min: float
    bigram_position_mean: float  # token counts per million, same place and word length
    bigram_position_min: float
    bigram_position_type_mean: float  # type counts, same place and word length
    bigram_position_type_min: float


BIGRAM_MEASURES = tuple(one.name for one in fields(BigramFrequency))


@functools.cache
def _tables(language: str) -> tuple[Mapping[str, _Count], Mapping[_Place, _Count]]:
    listed = vocabulary(language)
    assert listed is not None
    anywhere: dict[str, list[float]] = {}
    placed: dict[_Place, list[float]] = {}
    for word, frequency in zip(listed.spelled, listed.per_million, strict=True):
        letters = len(word)
        for place in range(letters - 1):
            bigram = word[place : place + 2]
            for count in (
                anywhere.setdefault(bigram, [0, 0.0]),
                placed.setdefault((letters, place, bigram), [0, 0.0]),
            ):
                count[0] += 1
                count[1] += frequency
    return (
        {bigram: _logarithms(*count) for bigram, count in anywhere.items()},
        {place: _logarithms(*count) for place, count in placed.items()},
    )


def _logarithms(types: float, tokens: float) -> _Count:
    return _Count(math.log10(1 + types), math.log10(1 + tokens))


_NONE = _Count(0.0, 0.0)


@functools.lru_cache(maxsize=200_000)
def bigram_frequency(word: str, language: str) -> BigramFrequency | None:
    """Return the bigram frequencies of any string of letters, real word or not."""
    found = _found(word, language)
    if found is None:
        return None
    letters, free = found
    _, placed = _tables(base_language(language))
    fixed = [placed.get((len(letters), place, bigram), _NONE) for place, bigram in enumerate(_pairs(letters))]
    values: list[float] = []
    for counts in (free, fixed):
        for which in (1, 0):
            logs = [count[which] for count in counts]
            values += [fmean(logs), min(logs)]
    return BigramFrequency(*values)


def bigram_tokens(word: str, language: str) -> tuple[float, float] | None:
    """Return ``bigram_mean`` and ``bigram_min`` alone, for strings that are too many to measure in full."""
    found = _found(word, language)
    if found is None:
        return None
    logs = [count.tokens for count in found[1]]
    return fmean(logs), min(logs)


def _found(word: str, language: str) -> tuple[str, list[_Count]] | None:
    """Return the letters of a string and what is known of each of its bigrams."""
    listed = vocabulary(language)
    if listed is None:
        return None
    letters = spell(word, language)
    if len(letters) < 2:
        return None
    anywhere, _ = _tables(listed.language)
    return letters, [anywhere.get(bigram, _NONE) for bigram in _pairs(letters)]


def _pairs(letters: str) -> list[str]:
    return [letters[place : place + 2] for place in range(len(letters) - 1)]
