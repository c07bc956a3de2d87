"""Moves letters while capitals stay where they are, for languages whose case rules differ."""

from __future__ import annotations

import functools

from stimuli.lexicon import is_turkic

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
