"""Tells apostrophes that belong to the word at whose edge they stand (``nations’``, ``’90s``, ``po'``) from quotes.

Words and endings are listed by language in ``data/apostrophes.json``. Where a single quotation mark has opened before,
the last apostrophe at a word's end closes it, unless none but apostrophes could have opened it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from stimuli.lexicon import base_language
from stimuli.scramble.alphabets import scramble_data

_ALIKE = "'’‘"
_QUOTES = frozenset("'’‘‚")
# Opens with one class of characters, which lets the search skip over everything else.
_AT_AN_EDGE = re.compile(r"['’‘](?:(?<!\w.)(?=\w)|(?<=\w.)(?!\w))", re.DOTALL)
_TRAILING = re.compile(r"['’](?!['’])")  # two of them are a double quotation mark
_OPENS = ("'", "‘", "‚")


@functools.cache
def _listed(kind: str, language: str) -> frozenset[str]:
    data = scramble_data("apostrophes")[kind]
    return frozenset([*data.get("any", ()), *data.get(base_language(language), ())])


@functools.cache
def _endings(language: str) -> tuple[str, ...]:
    return tuple(_listed("endings", language))


def with_own_apostrophes(sentence: str, pieces: list[str], language: str) -> list[str]:
    """Move apostrophes that belong to a word from what stands around it to the word."""
    if _AT_AN_EDGE.search(sentence) is None:
        return pieces
    pieces = pieces.copy()
    quoted = [not _QUOTES.isdisjoint(marks) for marks in pieces[::2]]
    # Nothing is to be told of a word that has no apostrophe or quotation mark beside it.
    places = [place for place in range(1, len(pieces), 2) if quoted[place // 2] or quoted[place // 2 + 1]]
    own_front = {place for place in places if _fronts(pieces, place, language)}
    closing = _closing(pieces, places, own_front)
    for place in places:
        if place in own_front:
            pieces[place] = pieces[place - 1][-1] + pieces[place]
            pieces[place - 1] = pieces[place - 1][:-1]
        marks = pieces[place + 1]
        if _TRAILING.match(marks) and place not in closing and _ends(pieces[place], language):
            pieces[place] += marks[0]
            pieces[place + 1] = marks[1:]
    return pieces


def _fronts(pieces: Sequence[str], place: int, language: str) -> bool:
    """Tell whether what stands before a word ends with an apostrophe that is part of it."""
    marks, word = pieces[place - 1], pieces[place]
    if not marks or marks[-1] not in _ALIKE:
        return False
    closes = pieces[place + 1][:1] in ("'", "’")
    small = word.lower()
    if closes:
        return small in scramble_data("apostrophes")["both"]
    if re.match(r"\d\d(?!\d)", word):
        return True
    return re.split(r"\W", small)[0] in _listed("fronts", language)


def _closing(pieces: Sequence[str], places: Sequence[int], own_front: set[int]) -> set[int]:
    """Return the places of words after which an apostrophe closes a quotation: the last one before the next opens."""
    closing: set[int] = set()
    opened = False
    last: int | None = None
    for place in places:
        opens = pieces[place - 1].endswith(_OPENS) or (
            pieces[place - 1].endswith("’") and not pieces[place - 1][:-1].strip()
        )
        if opens and place not in own_front:
            closing |= {last} if opened and last is not None else set()
            opened, last = True, None
        marks = pieces[place + 1]
        # After a mark (He said ‘come.’) an apostrophe belongs to no word, so the quotation is closed there.
        if opened and marks[:1] in ("'", "’"):
            last = place
        elif opened and re.match(r"[.,;:!?…]+['’‘]", marks):
            opened, last = False, None
    return closing | ({last} if opened and last is not None else set())


def _ends(word: str, language: str) -> bool:
    """Tell whether a word may end with an apostrophe."""
    small = word.lower().lstrip(_ALIKE)
    if base_language(language) in scramble_data("apostrophes")["ends_in_any_letter"]:
        return True
    if small in scramble_data("apostrophes")["both"] and word[0] in _ALIKE:
        return True
    return small.endswith(_endings(language)) or small in _listed("ends", language)
