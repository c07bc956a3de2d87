"""Orthographic neighbours and bigram frequencies of words and nonwords in the vocabulary of a language.

The vocabulary is a defined part of wordfreq's list: the 50,000 most frequent strings of a language that are letters
only, two at least, with Zipf 2.0 or more (once in ten million words). In English only words of SCOWL up to size 60 count.
Languages with wordfreq's small list reach down to Zipf 3 and have fewer.

A type count is the number of vocabulary words with the bigram (each place counts), a token count the sum of their
frequencies per million. Both are log10(1 + count). ``position`` counts a bigram only at the same place of words of the
same length (Solso & Juel, 1980); otherwise it counts anywhere.

A word is not its own neighbour. For a nonword both measures say how close it comes to the words of the language.
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stimuli.lexicon import REAL_WORD_ZIPF, curated_words, has_lexicon, zipf
from stimuli.words import base_language, clusters_of, find_words, is_letter, nfc

VOCABULARY_SIZE = 50_000
LEAST_ZIPF = REAL_WORD_ZIPF
LEAST_LETTERS = 2
_PER_MILLION = 1e6
_PRIVATE = 0xF0000


@dataclass(frozen=True)
class Vocabulary:
    """Words of a language, most frequent first."""

    language: str  # base language, such as en
    spelled: tuple[str, ...]  # the words with one character a letter (see spell)
    per_million: tuple[float, ...]  # their frequencies per million words
    members: frozenset[str] = field(repr=False)  # the words again, to look up


def vocabulary_reason(language: str) -> str | None:
    """State why there is no vocabulary for a language; None where there is one."""
    if not has_lexicon(language):
        return f"wordfreq has no word list for language {language!r}"
    if zipf("a", language) is None:
        return (
            f"wordfreq's word list for {language!r} needs a segmenter that is not installed (wordfreq[cjk])"
        )
    return None


@functools.cache
def vocabulary(language: str) -> Vocabulary | None:
    """Return the vocabulary of a language, None without one (see :func:`vocabulary_reason`)."""
    base = base_language(language)
    if base != language:
        return vocabulary(base)
    if vocabulary_reason(language) is not None:
        return None
    import wordfreq

    spelled: list[str] = []
    per_million: list[float] = []
    curated = curated_words(base, "words")
    least = 10 ** (LEAST_ZIPF - 9) * 0.999  # the list's frequencies are rounded powers
    for word, frequency in wordfreq.get_frequency_dict(base, "best").items():
        if len(spelled) == VOCABULARY_SIZE or frequency < least:
            break
        if curated is not None and word not in curated:
            continue
        letters = _letters(word)
        if letters is not None and len(letters) >= LEAST_LETTERS:
            spelled.append(letters)
            per_million.append(frequency * _PER_MILLION)
    return Vocabulary(base, tuple(spelled), tuple(per_million), frozenset(spelled))


def spell(word: str, language: str) -> str:
    """Return a word's letters, one character each, as the language's list has them.

    wordfreq's own preparation folds case and, by language, variants of letters (``ß`` is ``ss`` there, Turkish
    ``I`` is ``ı``). Other characters are left out; of parts between apostrophes the longest is kept, as scrambles
    do. A grapheme cluster of several characters is replaced by a private character, constant within the process.
    """
    # Lower-case letters a to z stand for themselves in every language, and most forms have no others.
    return word if word.isascii() and word.isalpha() and word.islower() else _spelled(word, language)


@functools.lru_cache(maxsize=200_000)
def _spelled(word: str, language: str) -> str:
    prepared = _prepared(nfc(word), base_language(language))
    words = find_words(prepared)
    clusters = words[0].letters if len(words) == 1 and words[0].letters else clusters_of(prepared)
    return "".join(_one_character(cluster) for cluster in clusters if is_letter(cluster))


def _prepared(word: str, language: str) -> str:
    from wordfreq.preprocess import preprocess_text

    return nfc(preprocess_text(word, language))


def _letters(word: str) -> str | None:
    if word.isascii():
        return word if word.isalpha() else None
    word = nfc(word)
    if not all(unicodedata.category(character)[0] in "LM" for character in word):
        return None
    clusters = clusters_of(word)
    if not all(is_letter(cluster) for cluster in clusters):
        return None
    return "".join(map(_one_character, clusters))


_private: dict[str, str] = {}


def _one_character(cluster: str) -> str:
    if len(cluster) == 1:
        return cluster
    return _private.setdefault(cluster, chr(_PRIVATE + len(_private)))


_Place = tuple[int, int, str]


class _Count(NamedTuple):
    """Frequency of a bigram, as log10(1 + count)."""

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


BIGRAM_MEASURES = tuple(measure.name for measure in fields(BigramFrequency))


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
    counted = _found(word, language)
    if counted is None:
        return None
    letters, free = counted
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
    counted = _found(word, language)
    if counted is None:
        return None
    logs = [count.tokens for count in counted[1]]
    return fmean(logs), min(logs)


def _found(word: str, language: str) -> tuple[str, list[_Count]] | None:
    """Return the letters of a string and the counts of its bigrams."""
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


NEAREST = 20
SMALL_STEPS = 3
"""Up to here one more edit costs little; then the next search is wide enough to settle the mean."""


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbours of a string in a language's vocabulary."""

    coltheart_n: int  # words of the same length that differ in one letter (Coltheart et al., 1977)
    old20: float  # mean Levenshtein distance to the 20 nearest words (Yarkoni et al., 2008), in letters


@dataclass(frozen=True)
class _Index:
    """A language's vocabulary from the shortest to the longest word, and what is known of neighbourhoods in it."""

    words: npt.NDArray[np.object_]
    lengths: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint64]
    members: frozenset[str]
    known: dict[str, Neighbourhood] = field(default_factory=dict)

    def within(self, word: str, edits: int) -> tuple[list[str], npt.NDArray[np.bool_]]:
        """Return all words that may be no more than ``edits`` away, with some that are further, and which are as long."""
        begin, end = np.searchsorted(self.lengths, [len(word) - edits, len(word) + edits + 1])
        letter_bits, theirs = _letter_bits(word), self.letters[begin:end]
        lost, new = np.bitwise_count(letter_bits & ~theirs), np.bitwise_count(theirs & ~letter_bits)
        near = np.flatnonzero(np.maximum(lost, new) <= edits) + begin
        return self.words[near].tolist(), self.lengths[near] == len(word)


def _letter_bits(word: str) -> np.uint64:
    """Return which letters occur, one bit each, and in the upper half which occur again."""
    bits = 0
    for letter in word:
        bit = 1 << (ord(letter) % 32)
        bits |= bit << 32 if bits & bit else bit
    return np.uint64(bits)


_indices: dict[str, _Index] = {}


def neighbourhoods(words: Iterable[str], language: str) -> list[Neighbourhood | None]:
    """Return the neighbourhoods of words; results are cached."""
    listed = vocabulary(language)
    if listed is None:
        return [None for _ in words]
    index = _index(listed)
    spelled = [spell(word, language) for word in words]
    for word in spelled:
        if word and word not in index.known:
            index.known[word] = _measured(word, index)
    return [index.known.get(word) for word in spelled]


def _index(listed: Vocabulary) -> _Index:
    if listed.language not in _indices:
        words = sorted(listed.spelled, key=len)
        _indices[listed.language] = _Index(
            np.array(words, dtype=object),
            np.array([len(word) for word in words], dtype=np.int64),
            np.array([_letter_bits(word) for word in words], dtype=np.uint64),
            listed.members,
        )
    return _indices[listed.language]


def _measured(word: str, index: _Index) -> Neighbourhood:
    """Compare a word with those that may be near, with more of them until the 20 nearest are settled."""
    most = max(len(word), int(index.lengths[-1]))
    edits = 1
    while True:
        near, as_long = index.within(word, edits)
        distances = _distances(word, near)
        nearest = np.sort(
            np.partition(distances, NEAREST)[: NEAREST + 1] if len(near) > NEAREST else distances
        )
        nearest = nearest[1:] if word in index.members else nearest[:NEAREST]
        enough = len(nearest) == NEAREST
        if edits >= most or (enough and nearest[-1] <= edits + 1):
            break
        edits = int(nearest[-1]) - 1 if enough and edits >= SMALL_STEPS else edits + 1
    substituted = np.count_nonzero(as_long & (distances == 1))
    return Neighbourhood(int(substituted), float(nearest.mean()) if len(nearest) else 0.0)


def _distances(word: str, near: Sequence[str]) -> npt.NDArray[np.int64]:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    if not near:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(cdist([word], near, scorer=Levenshtein.distance, dtype=np.int64)[0])
