"""Tells whether a full stop belongs to the word before it, and whether it may end a sentence all the same.

Abbreviations are listed by language in ``data/abbreviations.json``; a language without a list goes without. Those of
several parts are one, with or without spaces after their inner stops (``z. B.``, ``z.B.``). In languages that write
ordinal numbers with a full stop, one after a number of up to three digits (in some also after a Roman one) may be such.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from stimuli.lexicon import base_language
from stimuli.scramble.alphabets import scramble_data
from stimuli.scramble.sentence_fronts import begins_sentence

OPENING = "\"'“‘„‚«‹»›([{¿¡「『（《〈【"
_GAP = "[ \u00a0\u2009\u202f]"
_GAPS = re.compile(r"\s+")
_SPACES = re.compile(r"\s")
_DOTTED = re.compile(r"(?:\w\.)+\w")
_INITIALS = re.compile(r"[^\W\d_](?:\.-[^\W\d_])+")
_ROMAN = re.compile(r"[IVXLC]+")
_ELIDED = re.compile(r"^\w+['’](?=\w)")  # l'ing. Rossi
_LONG_PART = 4
_LONG_ORDINAL = 4  # digits; a number of four is a year
_WINDOW = 24  # characters; no abbreviation with spaces is longer
_KINDS_KEPT = ("never_last", "always", "may_be_last", "often_last")


class Token(NamedTuple):
    """What stands before a full stop."""

    text: str  # the word, an abbreviation of several parts without its spaces: Dr, U.S, z.B
    begin: int  # characters of the text before it
    inside: bool = False  # whether the stop is an inner one of an abbreviation with spaces


@functools.cache
def _listed(language: str, kind: str) -> frozenset[str]:
    known = _known(language).get(kind, ())
    return frozenset(known)


def _known(language: str) -> dict[str, list[str]]:
    data = scramble_data("abbreviations")
    base = base_language(language)
    languages: dict[str, dict[str, list[str]]] = data["languages"]
    return languages.get(data["same_as"].get(base, base), {})


@functools.cache
def _ordinals(language: str) -> str:
    return str(_known(language).get("ordinals", ""))


@functools.cache
def _kept(language: str) -> frozenset[str]:
    return frozenset().union(*[_listed(language, kind) for kind in _KINDS_KEPT])


def _is_among(listed: frozenset[str], token: str) -> bool:
    if "'" in token or "’" in token:
        token = _ELIDED.sub("", token)
    return token in listed or token.lower() in listed or (token[:1].lower() + token[1:]) in listed


def _is(token: str, kind: str, language: str) -> bool:
    return _is_among(_listed(language, kind), token)


def _is_kept(token: str, language: str) -> bool:
    return _is_among(_kept(language), token) or _has_listed_end(token, language)


@functools.cache
def spaced_abbreviations(language: str) -> re.Pattern[str] | None:
    """Return a pattern of a language's abbreviations of several parts, before their last stop; None where it has none."""
    several = sorted(
        {one for kind in _KINDS_KEPT for one in _listed(language, kind) if "." in one}, key=len, reverse=True
    )
    if not several:
        return None
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(_with_gaps, several))})(?=\.)")


def _with_gaps(abbreviation: str) -> str:
    first = abbreviation[0]
    rest = re.sub(r"\\\.(?=\w)", rf"\\.{_GAP}?", re.escape(abbreviation[1:]))
    return (f"[{first}{first.upper()}]" if len(first.upper()) == 1 else re.escape(first)) + rest


@functools.cache
def _parts(language: str) -> frozenset[str]:
    """Return the parts of a language's abbreviations of several parts: what stands between a space and a stop in them."""
    several = [one for kind in _KINDS_KEPT for one in _listed(language, kind) if "." in one]
    parts = {part.rpartition(".")[2] for one in several for part in re.split(r"\.(?=\w)", one)}
    return frozenset(parts | {part[:1].upper() + part[1:] for part in parts})


def token_before(text: str, stop: int, language: str) -> Token:
    """Return what stands before the full stop at a place of a text."""
    last = _SPACES.split(text[max(0, stop - 40) : stop])[-1].lstrip(OPENING + "—–")
    begin = stop - len(last)
    pattern = spaced_abbreviations(language)
    if pattern is None or last.rpartition(".")[2] not in _parts(language):
        return Token(last, begin)
    for match in pattern.finditer(text, max(0, stop - _WINDOW), stop + _WINDOW):
        if match.start() < stop <= match.end():
            return Token(_GAPS.sub("", match.group()), match.start(), inside=stop < match.end())
    return Token(last, begin)


def goes_on(text: str, token: Token, after: str, language: str) -> bool:
    """Tell whether a sentence goes on after a full stop before a space and a word that is not written small."""
    if token.inside:
        return True
    if not keeps_its_stop(token.text, language, after):
        return False
    if _is(token.text, "often_last", language) or _counts(token, text, language):
        return False
    begins = begins_sentence(after, language) or _is(after.rstrip(".,;:!?"), "begins", language)
    return not (begins and _may_be_last(token, text, language))


def numbers_an_item(token: Token, text: str, begin: int, earlier: int | None, language: str) -> bool:
    """Tell whether a number with a full stop opens its sentence and numbers it: at a line's beginning, or the next one up."""
    number = token.text
    if not number.isdecimal() or len(number) >= _LONG_ORDINAL or text[begin : token.begin].strip(OPENING):
        return False
    return (
        bool(_ordinals(language))
        or (earlier is not None and int(number) == earlier + 1)
        or not text[text.rfind("\n", 0, begin) + 1 : begin].strip()
    )


def _may_be_last(token: Token, text: str, language: str) -> bool:
    """Tell whether a sentence may end with an abbreviation: ``p.m.``, ``U.S.``, a capital after a small word (``plan B.``)."""
    word = token.text
    if _is(word, "never_last", language):
        return False
    if _is(word, "may_be_last", language) or _has_listed_end(word, language) or _is_ordinal(word, language):
        return True
    if _DOTTED.fullmatch(word):
        return True
    if len(word) > 1 or _is(word, "always", language):
        return False
    before = _before(token, text)
    return before[:1].islower() or before[:1].isdecimal()


def _counts(token: Token, text: str, language: str) -> bool:
    """Tell whether a number follows an abbreviation that takes one (``S. 7``), and so is no ordinal."""
    before = _before(token, text) if token.text.isdecimal() else ""
    return before[-1:] == "." and _is(before[:-1], "before_number", language)


def _before(token: Token, text: str) -> str:
    return _SPACES.split(text[max(0, token.begin - 41) : max(0, token.begin - 1)])[-1].lstrip(OPENING)


@functools.cache
def _endings(language: str) -> tuple[str, ...]:
    return tuple(_listed(language, "endings"))


def _has_listed_end(word: str, language: str) -> bool:
    ends = _endings(language)
    return bool(ends) and word.lower().endswith(ends)


def _is_ordinal(word: str, language: str) -> bool:
    how = _ordinals(language)
    if word.isdecimal():
        return bool(how) and len(word) < _LONG_ORDINAL
    return how == "capital" and len(word) > 1 and _ROMAN.fullmatch(word) is not None


def keeps_its_stop(token: str, language: str, following: str) -> bool:
    """Tell whether a full stop after a token belongs to it."""
    if (len(token) == 1 and token.isupper() and token != "I") or _INITIALS.fullmatch(token):
        return True
    if _DOTTED.fullmatch(token) and not token[-1].isdigit():
        return True
    if _is_kept(token, language):
        return True
    if _is_ordinal(token, language):
        return (
            _ordinals(language) == "capital"
            or not following[:1].isupper()
            or _is(following.rstrip(".,;:!?"), "after_ordinal", language)
        )
    return following[:1].isdecimal() and _is(token, "before_number", language)


def is_abbreviation(word: str, language: str) -> bool:
    """Tell whether a word is an abbreviation of several letters, written with a full stop: ``approx``, ``p.m``, ``z. B``."""
    if "." in word and _DOTTED.fullmatch(word := _GAPS.sub("", word)):
        return not word[-1].isdigit() and all(len(part) < _LONG_PART for part in word.split("."))
    return _is_kept(word, language)
