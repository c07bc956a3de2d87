"""Pronunciations of English words: the CMU Pronouncing Dictionary, unchanged in ``cmudict/`` next to its licence."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterable, Mapping
from importlib import resources

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


_FOLDER = resources.files(__package__) / "cmudict"


@functools.cache
def dictionary_source() -> Mapping[str, str]:
    """Return where the dictionary comes from: ``source``, ``version``, ``commit``, ``licence``, ``sha256``."""
    source: Mapping[str, str] = json.loads((_FOLDER / "source.json").read_text(encoding="utf-8"))
    return source


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
