"""What counts as a word of a language, and how common it is, from wordfreq's lists."""

from __future__ import annotations

import functools

from stimuli.errors import UserError

REAL_WORD_ZIPF = 2.0
"""A string is a real word from Zipf 2.0 upwards: once in ten million words (van Heuven et al., 2014).

Below it English lists mostly hold typing errors and names; ``spilt``, ``minuet`` and ``toady`` lie above it. Frequent
misspellings (``thier``) count as words: a reader knows them. Languages with wordfreq's small list only reach down to
Zipf 3, so there every listed string counts.
"""


@functools.cache
def _known() -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.available_languages("best"))


@functools.lru_cache(maxsize=256)
def base_language(language: str) -> str:
    """Return the language of a tag: ``de-AT`` → ``de``."""
    return language.replace("_", "-").split("-")[0].lower()


_TURKIC = frozenset({"tr", "az"})


@functools.lru_cache(maxsize=256)
def is_turkic(language: str) -> bool:
    """Tell whether a language tells dotted from dotless i, so that ``I`` is the capital of ``ı`` and ``İ`` that of ``i``."""
    return base_language(language) in _TURKIC


def has_lexicon(language: str) -> bool:
    """Tell whether word frequencies exist for a language."""
    return base_language(language) in _known()


def tells_words(language: str) -> bool:
    """Tell whether real words of a language can be told from other strings: it has a word list that can be used."""
    return zipf("a", language) is not None


def require_lexicon(language: str) -> None:
    """Refuse a language without word frequencies."""
    if not has_lexicon(language):
        raise UserError(
            f"avoid_real_words: there is no word list for language {language!r}",
            mend=f"Leave avoid_real_words out, or use one of: {', '.join(sorted(_known()))}.",
        )


FOIL_CANDIDATES = 20_000


@functools.cache
def frequent_words(language: str) -> tuple[str, ...]:
    """Return the most frequent words of a language (letters only, 3 or more), most frequent first."""
    if not has_lexicon(language):
        raise UserError(
            f"there is no word list for language {language!r} to take foils from",
            mend="Give each word a foil of its own in a column foil.",
        )
    import wordfreq

    listed = wordfreq.top_n_list(base_language(language), FOIL_CANDIDATES)
    return tuple(word for word in listed if len(word) > 2 and word.isalpha())


_LATIN = frozenset({"de", "en", "es", "fr", "it", "nl", "pt"})
"""Languages in which a run of the letters a to z is one token of wordfreq."""


def is_plain(word: str) -> bool:
    """Say whether a word is a run of the letters a to z."""
    return word.isascii() and word.isalpha() and word.islower()


@functools.lru_cache(maxsize=200_000)
def zipf(word: str, language: str) -> float | None:
    """Return a word's Zipf frequency (log10 per billion words), 0 where unlisted, None without a list."""
    return _zipf(word, language)


def _zipf(word: str, language: str) -> float | None:
    if not has_lexicon(language):
        return None
    import wordfreq

    base = base_language(language)
    listed = wordfreq.get_frequency_dict(base)
    try:
        # A form that no list holds is 0 in wordfreq as well, which would remember each of a hundred thousand of them.
        plain = is_plain(word) and base in _LATIN
        tokens = [word] if plain else wordfreq.lossy_tokenize(word, base)
        if not tokens or any(token not in listed and not _has_digit(token) for token in tokens):
            return 0.0
        return float(wordfreq.zipf_frequency(word, base))
    except ImportError:
        # Chinese, Japanese and Korean lists need segmenters that wordfreq does not bring along.
        return None


def _has_digit(token: str) -> bool:
    return any(map(str.isdigit, token))


# Scrambled forms hardly ever come twice: of a long stream few are worth remembering.
_lately = functools.lru_cache(maxsize=1 << 13)(_zipf)


def is_real_word(word: str, language: str) -> bool:
    """Tell whether a string is a word of the language (Zipf ≥ :data:`REAL_WORD_ZIPF`)."""
    require_lexicon(language)
    frequency = _lately(word, language)
    if frequency is None:
        raise UserError(
            f"avoid_real_words: the word list of {language!r} needs a segmenter that is not installed",
            mend="Leave avoid_real_words out for this language.",
        )
    return frequency >= REAL_WORD_ZIPF
