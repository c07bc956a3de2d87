"""The decisions of the fifteen rules: any text is A or B, and none raises. Case is ignored except where it is the matter.

A word is a run between spaces without the marks around it; letters are compared without accents.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

import regex

from stimuli.htest.rule import Label
from stimuli.htest.words import data
from stimuli.lexicon.pronunciations import pronunciations
from stimuli.scramble.words import nfc

_END_MARKS = frozenset(".?!;:,…‽。！？；：，、؟؛۔।")
_CLOSERS = frozenset({"Pe", "Pf", "Pi"})
_HYPHENATED = regex.compile(r"\p{L}\p{M}*[-‐‑]\p{L}")
_AROUND = regex.compile(r"^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$")
_DIGITS = r"\d+"


def _label(holds: bool) -> Label:
    return "A" if holds else "B"


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and without marks around them."""
    if text.isascii():
        bare = text.lower()
    else:
        decomposed = unicodedata.normalize("NFD", text.casefold())
        bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    stripped = (word if word.isalnum() else _AROUND.sub("", word) for word in bare.split())
    return [word for word in stripped if word]


def has_capital(text: str) -> Label:
    """Tell A where a capital letter stands anywhere."""
    return _label(any(character.isupper() or character.istitle() for character in text))


def repeats_word(text: str) -> Label:
    """Tell A where two neighbouring words are the same; case and marks around words do not count (``night. night.``)."""
    return _label(any(one == other for one, other in itertools.pairwise(plain_words(text))))


def ends_with_mark(text: str) -> Label:
    """Tell A where the last character is a punctuation mark; quotes and brackets that close after it are looked through."""
    end = len(text)
    while end and (
        text[end - 1].isspace() or text[end - 1] in "\"'" or unicodedata.category(text[end - 1]) in _CLOSERS
    ):
        end -= 1
    return _label(bool(end) and text[end - 1] in _END_MARKS)


def ends_with_ly(text: str) -> Label:
    """Tell A where the last word ends in the letters *ly*, whatever its kind (``early``, ``family``)."""
    words = plain_words(text)
    return _label(bool(words) and words[-1].endswith("ly"))


def has_hyphenated_word(text: str) -> Label:
    """Tell A where a hyphen stands directly between two letters; dashes, number ranges and hanging hyphens do not count."""
    return _label(_HYPHENATED.search(text) is not None)


def is_palindrome(text: str) -> Label:
    """Tell A where the whole text reads the same backwards, capitals apart; marks and spaces inside count (``put-up`` is B)."""
    clusters = regex.findall(r"\X", unicodedata.normalize("NFC", text.strip().casefold()))
    return _label(any(cluster[0].isalpha() for cluster in clusters) and clusters == clusters[::-1])


def starts_with_vowel(text: str) -> Label:
    """Tell A where the first letter is a, e, i, o or u, accented or not; the letter counts, not the sound (``hour`` is B)."""
    words = "".join(plain_words(text))
    first = next((character for character in words if character.isalpha()), "")
    return _label(first != "" and first in "aeiou")


def spells_operation(text: str) -> Label:
    """Tell A where words for an operation (*plus*, *less than*) stand directly before a number; signs are B."""
    return _label(_operation().search(text.casefold()) is not None)


@functools.cache
def _operation() -> re.Pattern[str]:
    numbers = data("numbers")
    spelled = "|".join(sorted(map(re.escape, numbers["spelled"]), key=len, reverse=True))
    values = "|".join([_DIGITS, *(rf"{word}\b" for word in numbers["number_words"])])
    return re.compile(rf"\b(?:{spelled})\s+(?:{values})")


def spells_first_number(text: str) -> Label:
    """Tell A where the first number is written in letters; B where in digits, or where there is none."""
    found = _number().search(text.casefold())
    return _label(found is not None and not found[0][0].isdigit())


@functools.cache
def _number() -> re.Pattern[str]:
    words = "|".join(sorted(data("numbers")["number_words"], key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])|{_DIGITS}")


def rhymes(text: str) -> Label:
    """Tell A where the first and the last word of each couple rhyme; commas part couples, without one there is one.

    Words rhyme that have the same sounds from the last stressed vowel on, in any listed pronunciation; words that
    sound the same all through do, a word with itself does not, nor does one that the CMU Pronouncing Dictionary
    lacks.
    """
    couples = [words for part in text.split(",") if (words := plain_words(part))]
    return _label(
        bool(couples)
        and all(words[0] != words[-1] and _rimes(words[0]) & _rimes(words[-1]) for words in couples)
    )


def sound_alike(one: str, other: str) -> bool:
    """Return whether two words have a pronunciation in common: ``pair`` and ``pear``."""
    others = pronunciations(other)
    return any(sounds in others for sounds in pronunciations(one))


def _rimes(word: str) -> frozenset[tuple[str, ...]]:
    # Abbreviations are listed with their last stop.
    return frozenset(_rime(sounds) for sounds in pronunciations(word) or pronunciations(f"{word}."))


def _rime(sounds: list[str]) -> tuple[str, ...]:
    stressed = [place for place, sound in enumerate(sounds) if sound[-1] in "12"]
    return tuple(sound.rstrip("012") for sound in sounds[stressed[-1] if stressed else 0 :])


def neighbours_share_initial(text: str) -> Label:
    """Tell A where two neighbouring words begin with the same letter or digit."""
    return _label(any(one[0] == other[0] for one, other in itertools.pairwise(plain_words(text))))


def longest_word_is_last(text: str) -> Label:
    """Tell A where the last of two or more words has more characters than any other."""
    lengths = [len(word) for word in plain_words(text)]
    return _label(len(lengths) > 1 and lengths[-1] > max(lengths[:-1]))


def is_alphabetical(text: str) -> Label:
    """Tell A where two or more words stand in alphabetical order (the same word twice is in order)."""
    words = plain_words(text)
    return _label(len(words) > 1 and all(one <= other for one, other in itertools.pairwise(words)))


def is_word_chain(text: str) -> Label:
    """Tell A where each of two or more words begins with the letter that the word before it ends with."""
    words = plain_words(text)
    return _label(len(words) > 1 and all(one[-1] == other[0] for one, other in itertools.pairwise(words)))


def has_inner_capital(text: str) -> Label:
    """Tell A where a capital letter follows another letter directly (``seLls``); capitals that begin a word are B."""
    return _label(any(one.isalpha() and other.isupper() for one, other in itertools.pairwise(nfc(text))))
