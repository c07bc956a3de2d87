"""Tells real words from other strings of letters fast enough to look at every form of a long text."""

from __future__ import annotations

import functools

from stimuli.lexicon import REAL_WORD_ZIPF, base_language, is_real_word, is_turkic


@functools.cache
def _listed(language: str) -> frozenset[str]:
    """Return the listed words of ASCII letters that count as real, in small letters."""
    import wordfreq

    # Rounded as zipf_frequency does, so that both say the same of every word.
    least = 10 ** (REAL_WORD_ZIPF - 0.005 - 9)
    listed = wordfreq.get_frequency_dict(language)
    return frozenset(
        word for word, frequency in listed.items() if frequency >= least and word.isascii() and word.isalpha()
    )


def listed_words(language: str) -> frozenset[str] | None:
    """Return the real words of ASCII letters in small letters; None where a list does not say it."""
    base = base_language(language)
    return None if base in _SEGMENTED or is_turkic(base) else _listed(base)


def is_real(string: str, language: str) -> bool:
    """Tell whether a string is a word of the language, as :func:`stimuli.lexicon.is_real_word`."""
    base = base_language(language)
    if string.isascii() and string.isalpha() and base not in _SEGMENTED and not is_turkic(base):
        return string.lower() in _listed(base)
    return is_real_word(string, language)


_SEGMENTED = frozenset({"zh", "ja", "ko"})
