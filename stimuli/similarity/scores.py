"""All match scores and distances of a pair of words at once."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Mapping

from rapidfuzz.distance import OSA, Levenshtein

from stimuli.similarity.bigrams import open_bigram, overlap_open_bigram, seriol
from stimuli.similarity.letters import Letters, letters_of
from stimuli.similarity.positions import overlap_model, slot, spatial_coding, spatial_coding_by_length


def levenshtein(target: str, shown: str) -> int:
    """Return the least number of letters to insert, delete or substitute (Levenshtein, 1966)."""
    return int(Levenshtein.distance(letters_of(target), letters_of(shown)))


def osa(target: str, shown: str) -> int:
    """Return the same with a swap of two neighbours as one edit (optimal string alignment; Damerau, 1964)."""
    return int(OSA.distance(letters_of(target), letters_of(shown)))


def edit_similarity(target: str, shown: str) -> float:
    """Return 1 − Levenshtein distance / letters of the longer word, from 0 to 1; 1 for two empty words."""
    return float(Levenshtein.normalized_similarity(letters_of(target), letters_of(shown)))


SCORES: Mapping[str, Callable[[str, str], float]] = {
    "match_slot": slot,
    "match_open_bigram": open_bigram,
    "match_open_bigram_overlap": overlap_open_bigram,
    "match_seriol": seriol,
    "match_overlap_model": overlap_model,
    "match_spatial": spatial_coding,
    "match_spatial_length": spatial_coding_by_length,
    "match_levenshtein": edit_similarity,
    "levenshtein": levenshtein,
    "osa": osa,
}
"""The scores by name; those named ``match_`` lie between 0 (nothing shared) and 1 (the same word)."""


_SIGNS = (*string.ascii_lowercase, *map(chr, range(0x4E00, 0x9F00)))
"""Signs that do not combine and stand for themselves without case and in every Unicode form; the cheapest first."""


def match_scores(target: str, shown: str, language: str | None = None) -> dict[str, float]:
    """Compare a changed word with the intact one on every scheme."""
    return dict(zip(SCORES, _of_words(target, shown, language), strict=True))


@functools.lru_cache(maxsize=200_000)
def _of_words(target: str, shown: str, language: str | None) -> tuple[float, ...]:
    """Return the scores of two words; texts repeat their commonest words, and so do their scrambles."""
    return _scores(*_pattern(letters_of(target, language), letters_of(shown, language)))


def _pattern(target: Letters, shown: Letters) -> tuple[str, str]:
    """Write both words with the same few signs in place of their letters, numbered as they first occur."""
    signs: dict[str, str] = {}
    for letter in (*target, *shown):
        if letter not in signs:
            signs[letter] = _SIGNS[len(signs)]
    return "".join([signs[letter] for letter in target]), "".join([signs[letter] for letter in shown])


@functools.lru_cache(maxsize=300_000)
def _scores(target: str, shown: str) -> tuple[float, ...]:
    return tuple(score(target, shown) for score in SCORES.values())
