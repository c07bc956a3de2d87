"""Tells whether a capital at a sentence's front belongs to the word, and whether a word may get one there.

The word lists are in ``data/front_words.json``. Word lists with frequencies tell no capitals, so where neither these nor
the text itself tell, a word keeps its capital if it is rare or another capital follows it.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from stimuli.lexicon import base_language, tells_words, zipf
from stimuli.scramble.addresses import find_addresses
from stimuli.scramble.alphabets import scramble_data
from stimuli.scramble.changes import KEPT_UP_TO

FREQUENT = 3.5
"""Zipf frequency from which a word in no list of names is taken for a common word."""

_AFTER_A_START = ".!?…:\n\"'”’»«‹—–―"
_INSIDE = re.compile(rf"(?<=[^{re.escape(_AFTER_A_START)}]) ([^\W\d_]\S*)")
_AFTER_A_WORD = re.compile(r"[^\w]|_|$")
_RUN = re.compile(r"\w+")
_LONGEST = 64  # characters of a word that is looked for inside sentences


@functools.cache
def _small(language: str) -> frozenset[str]:
    return frozenset(scramble_data("front_words")["small"].get(base_language(language), ()))


@functools.cache
def _names(language: str) -> frozenset[str]:
    data = scramble_data("front_words")
    english = data["english_names"] if base_language(language) == "en" else []
    return frozenset([*data["names"], *english])


def begins_sentence(word: str, language: str) -> bool:
    """Tell whether a word has a capital that it would not have inside a sentence."""
    return word[:1].isupper() and _plain(word) in _small(language)


def loses_capital(word: str, following: str, text: str, language: str) -> bool:
    """Tell whether a word with a capital at a sentence's front is written small inside the sentence."""
    by_itself = _loses_by_itself if len(word) <= KEPT_UP_TO else _loses_by_itself.__wrapped__
    told = by_itself(word, language)
    if told is not None:
        return told
    # Few texts have the word again at all, so only those are looked through.
    if f" {word}" in text and word in _seen(text).inside:
        return False
    small = word[0].lower() + word[1:]
    if small in text and _seen(text).has(small, text):
        return True
    if base_language(language) in scramble_data("front_words")["noun_capitals"]:
        return False
    if following[:1].isupper() and not find_addresses(following):
        return False
    return _is_common(word, language)


@functools.lru_cache(maxsize=4096)
def _loses_by_itself(word: str, language: str) -> bool | None:
    """Tell the same where the word alone says it; None where the text around it has to."""
    rest = word[1:]
    if rest != rest.lower() or "." in word or any(map(str.isdecimal, word)) or find_addresses(word):
        return False
    plain = _plain(word)
    alone = plain.partition("'")[0]
    if base_language(language) == "en" and alone == "i":
        return False
    return True if {plain, alone} & _small(language) else None


def _is_common(word: str, language: str) -> bool:
    plain = _plain(word)
    if {plain, plain.partition("'")[0], plain.split("-")[0]} & _names(language):
        return False
    frequency = zipf(plain, language) if tells_words(language) else None
    return frequency is not None and frequency >= FREQUENT


def gains_capital(word: str) -> bool:
    """Tell whether a word that comes to a sentence's front gets a capital there: not addresses, abbreviations or iPhone."""
    return word == word.lower() and "." not in word and not find_addresses(word)


def _plain(word: str) -> str:
    return word.lower().replace("’", "'").strip("\"'“”‘’»«,;:!?.)(")


class _Seen(NamedTuple):
    """What a text has: its runs of letters and digits, and how the words inside its sentences that have capitals begin."""

    runs: frozenset[str]
    inside: frozenset[str]

    def has(self, word: str, text: str) -> bool:
        """Tell whether a word stands in the text as it is."""
        run = _RUN.match(word)
        if run is None or run.group() not in self.runs:
            return False
        return run.group() == word or re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


@functools.lru_cache(maxsize=4)
def _seen(text: str) -> _Seen:
    """Look through a text once, however many sentences ask."""
    inside = set()
    for match in _INSIDE.finditer(text):
        token = match.group(1)[:_LONGEST]
        if token[0].isupper():
            inside |= {token[: end.start()] for end in _AFTER_A_WORD.finditer(token)}
    return _Seen(frozenset(_RUN.findall(text)), frozenset(inside))
