"""What is known of a language's letters: alphabet, vowels and consonants, and the outlines of small letters."""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, cast

from stimuli.errors import UserError
from stimuli.lexicon import base_language


@functools.cache
def scramble_data(name: str) -> Mapping[str, Any]:
    """Return a data file of the scramble engine (``letters``, ``shapes``, ``abbreviations``)."""
    text = resources.files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text))


@dataclass(frozen=True)
class Alphabet:
    """The letters of a language."""

    language: str  # its code
    letters: tuple[str, ...]  # small letters that may be put in as new ones
    # vowels, and letters that are neither vowel nor consonant for us since they can be both
    vowels: frozenset[str]
    either: frozenset[str]

    def writes(self, letters: Sequence[str]) -> bool:
        """Say whether letters, case aside, are of the alphabet's script: none of its own would stand out among them."""
        own = script(self.letters[0])
        return all(script(letter) == own for letter in letters)

    def letter_class(self, letter: str) -> str:
        """Return ``vowel``, ``consonant`` or ``either`` for a small letter, one with marks by its base letter."""
        for one in (letter, unicodedata.normalize("NFD", letter)[0]):
            if one in self.vowels:
                return "vowel"
            if one in self.either:
                return "either"
            if one in self.letters:
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
    own = shape(base) if base != letter else "neutral"
    rises = own in ("ascender", "both") or any(mark in data["rises"] for mark in marks)
    falls = own in ("descender", "both") or any(mark in data["falls"] for mark in marks)
    return {(True, True): "both", (True, False): "ascender", (False, True): "descender"}.get(
        (rises, falls), "neutral"
    )
