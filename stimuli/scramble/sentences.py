"""Finds the sentences of a text and the words of a sentence that may change places.

A sentence ends with a mark of ``data/sentence_marks.json`` (and the quotes or brackets that close after it) before a
space, with some marks also without one, and with a line. No full stop ends a sentence inside a number (``3.5``,
``1,250``), after an abbreviation, an ordinal number, an initial or letters with full stops between them, or before a
small letter in a text that has capitals; but some of these (``p.m.``, ``n. Chr.``, ``plan B.``) end it before a word that
is written small inside sentences (``She``); see :mod:`stimuli.scramble.stops`.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from stimuli.lexicon import base_language
from stimuli.scramble.alphabets import scramble_data
from stimuli.scramble.stops import (
    OPENING,
    Token,
    goes_on,
    keeps_its_stop,
    numbers_an_item,
    spaced_abbreviations,
    token_before,
)

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


# Quotes that close in one language open in another: attached to a mark before a space they close.
_ALWAYS_CLOSE = "\"'”’»›)]}」』）》〉】"
_ALSO_OPEN = "“‘«‹"
_CLOSING = _ALWAYS_CLOSE + _ALSO_OPEN
_MARKS = ".,;:!?…。！？｡।॥۔։።፧။។‼⁇⁈⁉‽؟،؛、，；：·—―"
_EDGE = re.escape(_CLOSING + _MARKS)
# Most words are letters up to a space; only of the others the end has to be looked for from behind.
_CORE = rf"[^\s{re.escape(OPENING)}{_EDGE}]\w*+(?:(?=\s)|(?=[.,;:!?]\s)|(?:\S*[^\s{_EDGE}])?)"
_WORD = re.compile(rf"({_CORE})")
_FIRST = operator.itemgetter(0)
_STOP_AND_GAP = re.compile(r"\.\s")
_SPACE = re.compile(r"\s*")
# A dash after speech, before who says it: «Иди!» — сказал он.
_DASH = re.compile(r"\s*(?:[—–―]|-\s)\s*")


class Span(NamedTuple):
    """A stretch of a text: characters (NFC) from ``begin`` to before ``end``."""

    begin: int
    end: int


@functools.cache
def _marks(kind: str) -> str:
    return str(scramble_data("sentence_marks")[kind])


@functools.cache
def _end_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern of what may end a sentence: a mark, further marks, and what closes after them."""
    own = scramble_data("sentence_marks")["in_language"].get(language, "")
    marks = re.escape(_marks("ends") + _marks("without_space") + own)
    sure, unsure = re.escape(_ALWAYS_CLOSE), re.escape(_ALSO_OPEN)
    # Opens with one class of characters, which lets the search skip over everything else.
    return re.compile(
        rf"[{marks}\n]([{marks}]*)"
        rf"((?:[{sure}]|[{unsure}](?=[\s{sure}{unsure}]|$)|[ \u00a0\u2009\u202f][»›](?=[\s.,;:!?)\]]|$))*)"
    )


def find_sentences(text: str, language: str) -> list[Span]:
    """Return the sentences of a text with their marks, without the space around them."""
    has_capitals = text[:1] != text[:1].lower() or text != text.lower()
    found = []
    begin = _skip_space(text, 0)
    item: int | None = None
    for match in _end_pattern(base_language(language)).finditer(text):
        token = _stopped(text, match, language)
        if token is not None and numbers_an_item(token, text, begin, item, language):
            item = int(token.text)
            continue
        end = _end(text, match, begin, token, language, has_capitals)
        if end is not None and end > begin:
            found.append(Span(begin, end))
            begin = _skip_space(text, end)
    end = len(text.rstrip())
    if begin < end:
        found.append(Span(begin, end))
    return found


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _stopped(text: str, match: re.Match[str], language: str) -> Token | None:
    """Return what stands before a full stop that has a space and more text in its line behind it; None for other marks."""
    end = match.end()
    if text[match.start()] != "." or match[1] or not text[end : end + 1].isspace() or _next_line(text, end):
        return None
    return token_before(text, match.start(), language)


def _end(
    text: str, match: re.Match[str], begin: int, token: Token | None, language: str, has_capitals: bool
) -> int | None:
    """Return where the sentence ends that a mark or a line's end may close, None where it goes on."""
    if text[match.start()] == "\n":
        return match.start()
    end = match.end()
    closed = match[2]
    if end == len(text):
        return end
    if text[match.start(2) - 1] in _marks("without_space"):
        aside = closed[-1:] in ("）", ")") and text[begin] not in "（("
        quoted = closed and text.startswith(_quoted_on(), end)
        return None if aside or quoted else end
    if not text[end].isspace():
        return None
    if _next_line(text, end):
        return end
    dash = _DASH.match(text, end)
    following = _following(text, dash.end() if dash else end)
    small = has_capitals and following.islower()
    if token is None:
        marks = text[match.start()] + match[1]
        return None if small and (closed or dash or "…" in marks or ".." in marks) else end
    if small or goes_on(text, token, _word_after(text, end), language):
        return None
    return end


@functools.cache
def _quoted_on() -> tuple[str, ...]:
    return tuple(scramble_data("sentence_marks")["quoted_on"])


def _next_line(text: str, start: int) -> bool:
    return "\n" in text[start : _skip_space(text, start)]


def _following(text: str, start: int) -> str:
    rest = text[start : start + 40].lstrip().lstrip(OPENING + _CLOSING)
    return rest.lstrip()[:1]


def _word_after(text: str, start: int) -> str:
    """Return the next word, without quotes or a dash before it; marks that stand alone are none."""
    for word in text[start : start + 40].split():
        bare = word.lstrip(OPENING + _CLOSING + "—–―")
        if bare:
            return bare
    return ""


@functools.cache
def _spaced_word(language: str) -> re.Pattern[str]:
    spaced = spaced_abbreviations(language)
    return re.compile(f"({spaced.pattern}|{_CORE})") if spaced else _WORD


def word_pieces(sentence: str, language: str) -> list[str]:
    """Cut a sentence into words that may move and what stands between them.

    A word is what stands between spaces, without the marks around it: hyphened words, numbers, addresses and
    abbreviations and ordinal numbers with their full stop are one word each, abbreviations of several parts (``z.
    B.``) with their spaces; marks that stand alone are none.
    """
    words = _spaced_word(language) if _STOP_AND_GAP.search(sentence) else _WORD
    pieces = words.split(sentence)
    if "'" in sentence or "’" in sentence or "‘" in sentence:
        pieces = with_own_apostrophes(sentence, pieces, language)
    # Most sentences have no full stop after a word but the last, and no sign at the front of a word.
    stopped = sentence.find(".", 0, -1) >= 0 and "." in [marks[:1] for marks in pieces[2:-1:2]]
    if not stopped and "".join(map(_FIRST, pieces[1::2])).isalnum():
        return pieces
    kept = [pieces[0]]
    for place in range(1, len(pieces), 2):
        core, following = pieces[place], pieces[place + 1]
        if not core[0].isalnum() and not any(map(str.isalnum, core)):
            kept[-1] += core + following
            continue
        # Only the last word may have its full stop as the mark of the sentence.
        if (
            following[:1] == "."
            and place + 2 < len(pieces)
            and _keeps(core, following, pieces[place + 2], language)
        ):
            core, following = f"{core}.", following[1:]
        kept += [core, following]
    return kept


def _keeps(core: str, marks: str, following: str, language: str) -> bool:
    """Tell whether a full stop inside a sentence belongs to the word before it: before a space or comma it does."""
    return (
        marks[1:2].isspace()
        or marks[1:2] in tuple(",;:")
        or keeps_its_stop("".join(core.split()), language, following)
    )


def word_slots(text: str, sentence: Span, language: str) -> list[Span]:
    """Return the places of a sentence's words that may move (see :func:`word_pieces`)."""
    pieces = word_pieces(text[sentence.begin : sentence.end], language)
    starts = list(accumulate(map(len, pieces), initial=sentence.begin))
    return [Span(starts[place], starts[place + 1]) for place in range(1, len(pieces), 2)]
