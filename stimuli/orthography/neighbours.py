"""Orthographic neighbours: Coltheart's N and OLD20, exact, for words and nonwords alike.

A word is not its own neighbour. For a nonword both measures say how close it comes to the words of the language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stimuli.orthography.vocabulary import Vocabulary, spell, vocabulary

NEAREST = 20
SMALL_STEPS = 3
"""Up to here one more edit costs little; then the next search is wide enough to settle the mean."""


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbours of a string in a language's vocabulary."""

    # words of the same length that differ in one letter (Coltheart, Davelaar, Jonasson & Besner, 1977)
    coltheart_n: int
    # mean Levenshtein distance to the 20 nearest words (Yarkoni, Balota & Yap, 2008), in letters
    old20: float


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
        own, theirs = _letter_bits(word), self.letters[begin:end]
        lost, new = np.bitwise_count(own & ~theirs), np.bitwise_count(theirs & ~own)
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
    """Return the neighbourhoods of words; those of words that were asked for before are remembered."""
    listed = vocabulary(language)
    if listed is None:
        return [None for _ in words]
    index = _index(listed)
    spelled = [spell(word, language) for word in words]
    for word in spelled:
        if word and word not in index.known:
            index.known[word] = _measured(word, index)
    return [index.known.get(word) for word in spelled]


def neighbourhood(word: str, language: str) -> Neighbourhood | None:
    """Return the neighbourhood of one word (see :func:`neighbourhoods`)."""
    return neighbourhoods([word], language)[0]


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
