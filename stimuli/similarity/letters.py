"""The letters that match scores compare: grapheme clusters in Unicode's composed form, without regard to case.

Case never changes how many letters a word has: ``ß`` and the ligature ``ﬁ`` are one letter each, whatever Unicode's full
case folding (``ss``, ``fi``) makes of them. A final sigma is a sigma. Turkish and Azerbaijani have two letters i.
"""

from __future__ import annotations

import functools

from stimuli.lexicon.words import is_turkic
from stimuli.scramble.words import clusters_of, nfc

Letters = tuple[str, ...]

_TURKIC_SMALL = str.maketrans({"I": "ı", "İ": "i"})


@functools.lru_cache(maxsize=100_000)
def letters_of(word: str, language: str | None = None) -> Letters:
    """Return the letters of a word as schemes compare them, as many as are written."""
    return tuple(clusters_of(word.lower()) if word.isascii() and language is None else _small(word, language))


def without_case(text: str, language: str | None = None) -> str:
    """Return a text as :func:`letters_of` compares it: with small letters, no letter more or fewer."""
    return text.lower() if text.isascii() and language is None else "".join(_small(text, language))


def _small(text: str, language: str | None) -> list[str]:
    text = nfc(text)
    if language is not None and is_turkic(language):
        text = text.translate(_TURKIC_SMALL)
    return clusters_of(text.lower()) if text.isascii() else list(map(_small_letter, clusters_of(text)))


@functools.lru_cache(maxsize=10_000)
def _small_letter(cluster: str) -> str:
    """Return a letter without case; full case folding counts where it leaves one letter."""
    full = nfc(cluster.casefold())
    return full if len(clusters_of(full)) == 1 else nfc(cluster.lower())
