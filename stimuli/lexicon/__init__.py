"""What counts as a word of a language and how common it is; its neighbours, bigrams and syllables in rooms of their own."""

from stimuli.lexicon.words import (
    FOIL_CANDIDATES,
    REAL_WORD_ZIPF,
    base_language,
    frequent_words,
    has_lexicon,
    is_real_word,
    is_turkic,
    require_lexicon,
    tells_words,
    zipf,
)

__all__ = [
    "FOIL_CANDIDATES",
    "REAL_WORD_ZIPF",
    "base_language",
    "frequent_words",
    "has_lexicon",
    "is_real_word",
    "is_turkic",
    "require_lexicon",
    "tells_words",
    "zipf",
]
