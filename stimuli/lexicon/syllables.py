"""Number of syllables from pronunciations: the CMU Pronouncing Dictionary for English, nothing for other languages.

Hyphenation patterns and rules of thumb give other numbers than people speak, so no language is served by them.
"""

from __future__ import annotations

from stimuli.lexicon.pronunciations import pronunciations
from stimuli.lexicon.words import base_language

PRONOUNCED = "en"


def syllables_reason(language: str) -> str | None:
    """Return why a language has no syllable counts; None if it has them."""
    if base_language(language) == PRONOUNCED:
        return None
    return f"syllables are counted in pronunciations, and there is no dictionary of them for language {language!r}"


def syllables(word: str, language: str) -> int | None:
    """Return the syllables (vowels with a stress mark) of a word's first pronunciation; None where it is not listed."""
    if syllables_reason(language) is not None:
        return None
    ways = pronunciations(word.lower().replace("’", "'"))
    return sum(sound[-1].isdigit() for sound in ways[0]) if ways else None
