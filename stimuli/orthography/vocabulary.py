"""The vocabulary in which neighbours and bigrams are counted, and words as strings of one character a letter.

It is cut from wordfreq's list so that it can be stated: the 50,000 most frequent strings of a language that are letters
only, two at least, with Zipf 2.0 or more (once in ten million words). Languages with wordfreq's small list reach down to
Zipf 3 and have fewer.
"""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass, field

from stimuli.lexicon.words import REAL_WORD_ZIPF, base_language, has_lexicon, zipf
from stimuli.scramble.words import clusters_of, find_words, is_letter, nfc

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
    """Say why there is no vocabulary for a language; None where there is one."""
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
    least = 10 ** (LEAST_ZIPF - 9) * 0.999  # the list's frequencies are rounded powers
    for word, frequency in wordfreq.get_frequency_dict(base, "best").items():
        if len(spelled) == VOCABULARY_SIZE or frequency < least:
            break
        letters = _letters(word)
        if letters is not None and len(letters) >= LEAST_LETTERS:
            spelled.append(letters)
            per_million.append(frequency * _PER_MILLION)
    return Vocabulary(base, tuple(spelled), tuple(per_million), frozenset(spelled))


def spell(word: str, language: str) -> str:
    """Return a word's letters, one character each, as the language's list has them.

    wordfreq's own preparation folds case and, by language, variants of letters (``ß`` is ``ss`` there, Turkish
    ``I`` is ``ı``). What is no letter is left out; of parts between apostrophes the longest is kept, as scrambles
    do. A grapheme cluster of several characters gets a private one of its own, the same throughout the process.
    """
    # Lower-case letters a to z stand for themselves in every language, and most forms have no others.
    return word if word.isascii() and word.isalpha() and word.islower() else _spelled(word, language)


@functools.lru_cache(maxsize=200_000)
def _spelled(word: str, language: str) -> str:
    prepared = _prepared(nfc(word), base_language(language))
    found = find_words(prepared)
    clusters = found[0].letters if len(found) == 1 and found[0].letters else clusters_of(prepared)
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
