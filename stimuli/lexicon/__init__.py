"""Words of a language, their frequencies, and pronunciations of English words.

Whether a string is a word is decided with a strictness: ``frequent`` words, ``words`` as spelled in small letters,
``strict`` (also rare words, names and abbreviations), or ``off``. English words come from SCOWL up to size 35, 60 and 70.
Other languages have no list of their own: there every string of wordfreq counts from Zipf 3, 2 and 1, and with it
frequent misspellings. ``wordfreq:2`` is that list from Zipf 2 in every language, by which earlier versions judged.
"""

from __future__ import annotations

import functools
import gzip
import lzma
from collections.abc import Iterable, Mapping
from importlib import metadata, resources
from typing import Literal, cast, get_args

from stimuli.errors import UserError
from stimuli.files import data_file
from stimuli.words import base_language, is_turkic

REAL_WORD_ZIPF = 2.0
"""Least Zipf frequency of words to draw: once in ten million words (van Heuven et al., 2014).

Below it English lists mostly hold typing errors and names; ``spilt``, ``minuet`` and ``toady`` lie above it. Languages
with wordfreq's small list only reach down to Zipf 3.
"""

Strictness = Literal["off", "frequent", "words", "strict", "wordfreq:2"]
STRICTNESSES: tuple[Strictness, ...] = get_args(Strictness)
_ZIPF: Mapping[Strictness, float] = {
    "frequent": 3.0,
    "words": REAL_WORD_ZIPF,
    "strict": 1.0,
    "wordfreq:2": REAL_WORD_ZIPF,
}
_SCOWL: Mapping[Strictness, tuple[str, ...]] = {
    "frequent": ("words 35",),
    "words": ("words 35", "words 60"),
    "strict": ("words 35", "words 60", "words 70", "names 70", "abbreviations 70"),
}
"""Parts of the list by strictness; a part holds what no earlier one does, all in small letters."""


ENGLISH = "en"


@functools.cache
def _known() -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.available_languages("best"))


def has_lexicon(language: str) -> bool:
    """Return whether word frequencies exist for a language."""
    return base_language(language) in _known()


def tells_words(language: str) -> bool:
    """Return whether a language has a usable word list to distinguish real words from other strings."""
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
            mend="Give each word a foil in a column foil.",
        )
    import wordfreq

    listed = wordfreq.top_n_list(base_language(language), FOIL_CANDIDATES)
    return tuple(word for word in listed if len(word) > 2 and word.isalpha())


_LATIN = frozenset({"de", "en", "es", "fr", "it", "nl", "pt"})
"""Languages in which a run of the letters a to z is one token of wordfreq."""


def is_plain(word: str) -> bool:
    """Return whether a word is a run of the letters a to z."""
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
        if not tokens or any(token not in listed and not any(map(str.isdigit, token)) for token in tokens):
            return 0.0
        return float(wordfreq.zipf_frequency(word, base))
    except ImportError:
        # Chinese, Japanese and Korean lists need segmenters that wordfreq does not bring along.
        return None


_SEGMENTED = frozenset({"zh", "ja", "ko"})


def listed_words(language: str, strictness: Strictness = "words") -> frozenset[str] | None:
    """Return the real words of ASCII letters in lower case; None if a list cannot decide that."""
    base = base_language(language)
    return None if base in _SEGMENTED or is_turkic(base) else _listed_words(base, strictness)


@functools.cache
def _listed_words(base: str, strictness: Strictness) -> frozenset[str]:
    curated = curated_words(base, strictness)
    if curated is not None:
        return frozenset(word for word in curated if word.isascii() and word.isalpha())
    import wordfreq

    # Rounded as zipf_frequency does, so that both agree on every word.
    least = 10 ** (_ZIPF[strictness] - 0.005 - 9)
    listed = wordfreq.get_frequency_dict(base)
    return frozenset(
        word for word, frequency in listed.items() if frequency >= least and word.isascii() and word.isalpha()
    )


@functools.cache
def curated_words(base: str, strictness: Strictness) -> frozenset[str] | None:
    """Return all words of a language in lower case from a list made for it; None where there is none."""
    parts = _SCOWL.get(strictness)
    if base != ENGLISH or parts is None:
        return None
    lists = _scowl()
    return frozenset().union(*(lists[part] for part in parts))


@functools.cache
def _scowl() -> dict[str, list[str]]:
    text = lzma.decompress((resources.files(__package__) / "scowl" / "english.txt.xz").read_bytes()).decode()
    sections = (section.split("\n") for section in text.removeprefix("[").rstrip("\n").split("\n["))
    return {title.rstrip("]"): words for title, *words in sections}


def words_source(language: str, strictness: Strictness) -> str | None:
    """Name the list, with its version, by which strings are words; None where no word is told from another string."""
    if strictness == "off" or not tells_words(language):
        return None
    if curated_words(base_language(language), strictness) is not None:
        return f"SCOWL {word_list_source()['version']} ({', '.join(_SCOWL[strictness])})"
    return f"wordfreq {metadata.version('wordfreq')} (Zipf {_ZIPF[strictness]:g} or more)"


# Scrambled forms hardly ever come twice: of a long stream few are worth remembering.
_lately = functools.lru_cache(maxsize=1 << 13)(_zipf)


def is_real_word(word: str, language: str, strictness: Strictness = "words") -> bool:
    """Return whether a string is a word of the language."""
    if strictness == "off":
        return False
    require_lexicon(language)
    if word.isascii() and word.isalpha() and (listed := listed_words(language, strictness)) is not None:
        return word.lower() in listed
    curated = curated_words(base_language(language), strictness)
    if curated is not None:
        return word.lower().replace("’", "'") in curated
    frequency = _lately(word, language)
    if frequency is None:
        raise UserError(
            f"avoid_real_words: the word list of {language!r} needs a segmenter that is not installed",
            mend="Leave avoid_real_words out for this language.",
        )
    return frequency >= _ZIPF[strictness]


def syllables_reason(language: str) -> str | None:
    """Return why a language has no syllable counts; None if it has them."""
    if base_language(language) == ENGLISH:
        return None
    return f"syllables are counted in pronunciations, and there is no dictionary of them for language {language!r}"


def syllables(word: str, language: str) -> int | None:
    """Return the syllables (vowels with a stress mark) of a word's first pronunciation; None where it is not listed."""
    if syllables_reason(language) is not None:
        return None
    ways = pronunciations(word.lower().replace("’", "'"))
    return sum(sound[-1].isdigit() for sound in ways[0]) if ways else None


_FOLDER = resources.files(__package__) / "cmudict"


@functools.cache
def dictionary_source() -> Mapping[str, str]:
    """Return where the dictionary comes from: ``source``, ``version``, ``commit``, ``licence``, ``sha256``."""
    return cast(Mapping[str, str], data_file("lexicon/cmudict/source.json"))


@functools.cache
def word_list_source() -> Mapping[str, str]:
    """Return where the English word list comes from, by the same keys."""
    return cast(Mapping[str, str], data_file("lexicon/scowl/source.json"))


def pronunciations(word: str) -> list[list[str]]:
    """Return the pronunciations of a word in small letters, each as its sounds; empty if the word is not listed."""
    return [sounds.split() for sounds in _listed().get(word, ())]


def pronounced_words() -> Iterable[str]:
    """Return every listed word, in the order of the dictionary."""
    return _listed().keys()


@functools.cache
def _listed() -> dict[str, list[str]]:
    text = gzip.decompress((_FOLDER / "cmudict.dict.gz").read_bytes()).decode("ascii")
    listed: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, _, sounds = line.partition(" ")
        if word[-1] == ")":  # "read(2)" is a further pronunciation of "read"
            word = word[: word.rindex("(")]
        if "#" in sounds:
            sounds = sounds[: sounds.index("#")]
        listed.setdefault(word, []).append(sounds)
    return listed
