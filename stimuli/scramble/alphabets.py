"""Letters of languages: alphabet, vowels and consonants, outlines, and capitals."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from stimuli.errors import UserError
from stimuli.words import base_language, is_turkic, scramble_data


@dataclass(frozen=True)
class Alphabet:
    """The letters of a language."""

    language: str  # its code
    letters: tuple[str, ...]  # small letters that may be put in as new ones
    # vowels, and letters that are neither vowel nor consonant for us since they can be both
    vowels: frozenset[str]
    either: frozenset[str]

    def writes(self, letters: Sequence[str]) -> bool:
        """Return whether letters are in the alphabet's script, so that new letters would not stand out."""
        alphabet_script = script(self.letters[0])
        return all(script(letter) == alphabet_script for letter in letters)

    def letter_class(self, letter: str) -> str:
        """Return ``vowel``, ``consonant`` or ``either`` for a small letter, one with marks by its base letter."""
        for form in (letter, unicodedata.normalize("NFD", letter)[0]):
            if form in self.vowels:
                return "vowel"
            if form in self.either:
                return "either"
            if form in self.letters:
                return "consonant"
        return "either"


@functools.cache
def alphabet(language: str, wanted_by: str) -> Alphabet:
    """Return the letters of a language."""
    known = scramble_data("letters")["languages"]
    entry = known.get(base_language(language))
    if entry is None:
        raise UserError(
            f"{wanted_by} needs the alphabet of language {language!r}, which is not known here",
            mend=f"Use a type or option that puts in no new letters, or one of: {', '.join(sorted(known))}.",
        )
    return Alphabet(
        base_language(language),
        tuple(entry["alphabet"]),
        frozenset(entry["vowels"]),
        frozenset(entry["either"]),
    )


@functools.lru_cache(maxsize=4096)
def script(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name, such as ``LATIN`` or ``HANGUL``."""
    return unicodedata.name(letter[0], "").partition(" ")[0]


@functools.lru_cache(maxsize=4096)
def shape(letter: str) -> str:
    """Return the outline of a small letter: ``ascender``, ``descender``, ``both`` or ``neutral``."""
    data = scramble_data("shapes")
    for outline in ("ascender", "descender", "both", "neutral"):
        if letter in data[outline]:
            return outline
    base, *marks = list(unicodedata.normalize("NFD", letter))
    base_shape = shape(base) if base != letter else "neutral"
    rises = base_shape in ("ascender", "both") or any(mark in data["rises"] for mark in marks)
    falls = base_shape in ("descender", "both") or any(mark in data["falls"] for mark in marks)
    return {(True, True): "both", (True, False): "ascender", (False, True): "descender"}.get(
        (rises, falls), "neutral"
    )


_UPPER = {"ß": "ẞ"}
_LOWER = {"ẞ": "ß"}
_TURKIC_UPPER = {"i": "İ", "ı": "I"}
_TURKIC_LOWER = {"İ": "i", "I": "ı"}


def upper(letter: str, language: str) -> str:
    """Return a letter as a capital, or unchanged where the capital would not be one character for one."""
    special = {**_UPPER, **_TURKIC_UPPER} if is_turkic(language) else _UPPER
    return _one_for_one(letter, special.get(letter[0], letter[0].upper()))


def lower(letter: str, language: str) -> str:
    """Return a letter in lower case, or unchanged where that would not be one character for one."""
    special = {**_LOWER, **_TURKIC_LOWER} if is_turkic(language) else _LOWER
    return _one_for_one(letter, special.get(letter[0], letter[0].lower()))


@functools.lru_cache(maxsize=1 << 13)
def with_case_of(letter: str, model: str, language: str) -> str | None:
    """Return ``letter`` as a capital where ``model`` is one, in lower case where it is not."""
    if model[0].isupper() or model[0].istitle():
        changed = upper(letter, language)
        return None if changed[0].islower() and changed[0].upper() != changed[0] else changed
    if model[0].islower() and model[0].upper() != model[0]:
        changed = lower(letter, language)
        return None if changed[0].isupper() and changed[0].lower() != changed[0] else changed
    return letter


def _one_for_one(letter: str, changed: str) -> str:
    return changed + letter[1:] if len(changed) == 1 else letter
