"""Finds the sentences of a text and the words of a sentence that may be reordered.

``data/front_words.json`` lists words and names for capitals. Frequency lists have no capitals, so if neither these lists
nor the text decide, a word keeps its capital if it is rare or followed by another capital.

Abbreviations are listed by language in ``data/abbreviations.json``; a language without a list goes without. Those of
several parts are one, with or without spaces after their inner stops (``z. B.``, ``z.B.``). In languages that write
ordinal numbers with a full stop, one after a number of up to three digits (in some also after a Roman one) may be such.

A sentence ends with a mark of ``data/sentence_marks.json`` (and the quotes or brackets that close after it) before a
space, with some marks also without one, and with a line. No full stop ends a sentence inside a number (``3.5``,
``1,250``), after an abbreviation, an ordinal number, an initial or letters with full stops between them, or before a
small letter in a text that has capitals; but some of these (``p.m.``, ``n. Chr.``, ``plan B.``) end it before a word that
is lower-case inside sentences (``She``).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from stimuli.lexicon import tells_words, zipf
from stimuli.scramble.changes import KEPT_UP_TO
from stimuli.words import base_language, find_addresses, scramble_data

FREQUENT = 3.5
"""Smallest Zipf frequency for a word in no list of names to count as a common word."""

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
    """Return whether a word has a capital that it would not have inside a sentence."""
    return word[:1].isupper() and _plain(word) in _small(language)


def loses_capital(word: str, following: str, text: str, language: str) -> bool:
    """Return whether a word with a capital at a sentence's front is written small inside the sentence."""
    by_itself = _loses_by_itself if len(word) <= KEPT_UP_TO else _loses_by_itself.__wrapped__
    decided = by_itself(word, language)
    if decided is not None:
        return decided
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
    """Return the same from the word alone; None if that depends on the text."""
    remainder = word[1:]
    if remainder != remainder.lower() or "." in word or any(map(str.isdecimal, word)) or find_addresses(word):
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
    """Return whether a word that comes to a sentence's front gets a capital there: not addresses, abbreviations or iPhone."""
    return word == word.lower() and "." not in word and not find_addresses(word)


def _plain(word: str) -> str:
    return word.lower().replace("’", "'").strip("\"'“”‘’»«,;:!?.)(")


class _Seen(NamedTuple):
    """Runs of letters and digits of a text, and the beginnings of capitalised words inside its sentences."""

    runs: frozenset[str]
    inside: frozenset[str]

    def has(self, word: str, text: str) -> bool:
        """Return whether the text has a word in exactly this form."""
        run = _RUN.match(word)
        if run is None or run.group() not in self.runs:
            return False
        return run.group() == word or re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


@functools.lru_cache(maxsize=4)
def _seen(text: str) -> _Seen:
    """Return the runs and capitalised words of a text; cached, since each of its sentences needs them."""
    inside = set()
    for match in _INSIDE.finditer(text):
        token = match.group(1)[:_LONGEST]
        if token[0].isupper():
            inside |= {token[: end.start()] for end in _AFTER_A_WORD.finditer(token)}
    return _Seen(frozenset(_RUN.findall(text)), frozenset(inside))


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


class StopContext(NamedTuple):
    """Word or abbreviation before a full stop."""

    text: str  # the word, an abbreviation of several parts without its spaces: Dr, U.S, z.B
    begin: int  # characters of the text before it
    inside: bool = False  # whether the stop is an inner one of an abbreviation with spaces


@functools.cache
def _abbreviations(language: str, kind: str) -> frozenset[str]:
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
    return frozenset().union(*[_abbreviations(language, kind) for kind in _KINDS_KEPT])


def _is_among(listed: frozenset[str], token: str) -> bool:
    if "'" in token or "’" in token:
        token = _ELIDED.sub("", token)
    return token in listed or token.lower() in listed or (token[:1].lower() + token[1:]) in listed


def _is(token: str, kind: str, language: str) -> bool:
    return _is_among(_abbreviations(language, kind), token)


def _is_kept(token: str, language: str) -> bool:
    return _is_among(_kept(language), token) or _has_listed_end(token, language)


def _several(language: str) -> list[str]:
    return [abbreviation for abbreviation in _kept(language) if "." in abbreviation]


@functools.cache
def spaced_abbreviations(language: str) -> re.Pattern[str] | None:
    """Return a pattern of a language's abbreviations of several parts, before their last stop; None where it has none."""
    several = sorted(_several(language), key=len, reverse=True)
    if not several:
        return None
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(_with_gaps, several))})(?=\.)")


def _with_gaps(abbreviation: str) -> str:
    first = abbreviation[0]
    remainder = re.sub(r"\\\.(?=\w)", rf"\\.{_GAP}?", re.escape(abbreviation[1:]))
    return (f"[{first}{first.upper()}]" if len(first.upper()) == 1 else re.escape(first)) + remainder


@functools.cache
def _parts(language: str) -> frozenset[str]:
    """Return the parts, between a space and a stop, of a language's abbreviations of several parts."""
    parts = {
        part.rpartition(".")[2]
        for abbreviation in _several(language)
        for part in re.split(r"\.(?=\w)", abbreviation)
    }
    return frozenset(parts | {part[:1].upper() + part[1:] for part in parts})


def token_before(text: str, stop: int, language: str) -> StopContext:
    """Return the word or abbreviation before the full stop at a position of a text."""
    last = _SPACES.split(text[max(0, stop - 40) : stop])[-1].lstrip(OPENING + "—–")
    begin = stop - len(last)
    pattern = spaced_abbreviations(language)
    if pattern is None or last.rpartition(".")[2] not in _parts(language):
        return StopContext(last, begin)
    for match in pattern.finditer(text, max(0, stop - _WINDOW), stop + _WINDOW):
        if match.start() < stop <= match.end():
            return StopContext(_GAPS.sub("", match.group()), match.start(), inside=stop < match.end())
    return StopContext(last, begin)


def goes_on(text: str, token: StopContext, after: str, language: str) -> bool:
    """Return whether a sentence continues after a full stop that a space and a capital, digit or sign follow."""
    if token.inside:
        return True
    if not keeps_its_stop(token.text, language, after):
        return False
    if _is(token.text, "often_last", language) or _counts(token, text, language):
        return False
    begins = begins_sentence(after, language) or _is(after.rstrip(".,;:!?"), "begins", language)
    return not (begins and _may_be_last(token, text, language))


def numbers_an_item(token: StopContext, text: str, begin: int, earlier: int | None, language: str) -> bool:
    """Return whether a number with a full stop opens its sentence and numbers it: at a line's beginning, or the next one up."""
    number = token.text
    if not number.isdecimal() or len(number) >= _LONG_ORDINAL or text[begin : token.begin].strip(OPENING):
        return False
    return (
        bool(_ordinals(language))
        or (earlier is not None and int(number) == earlier + 1)
        or not text[text.rfind("\n", 0, begin) + 1 : begin].strip()
    )


def _may_be_last(token: StopContext, text: str, language: str) -> bool:
    """Return whether a sentence may end with an abbreviation: ``p.m.``, ``U.S.``, a capital after a small word (``plan B.``)."""
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


def _counts(token: StopContext, text: str, language: str) -> bool:
    """Return whether a number follows an abbreviation that takes one (``S. 7``), and so is no ordinal."""
    before = _before(token, text) if token.text.isdecimal() else ""
    return before[-1:] == "." and _is(before[:-1], "before_number", language)


def _before(token: StopContext, text: str) -> str:
    return _SPACES.split(text[max(0, token.begin - 41) : max(0, token.begin - 1)])[-1].lstrip(OPENING)


@functools.cache
def _listed_endings(language: str) -> tuple[str, ...]:
    return tuple(_abbreviations(language, "endings"))


def _has_listed_end(word: str, language: str) -> bool:
    ends = _listed_endings(language)
    return bool(ends) and word.lower().endswith(ends)


def _is_ordinal(word: str, language: str) -> bool:
    how = _ordinals(language)
    if word.isdecimal():
        return bool(how) and len(word) < _LONG_ORDINAL
    return how == "capital" and len(word) > 1 and _ROMAN.fullmatch(word) is not None


def keeps_its_stop(token: str, language: str, following: str) -> bool:
    """Return whether a full stop after a token belongs to it."""
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
    """Return whether a word is an abbreviation of several letters, written with a full stop: ``approx``, ``p.m``, ``z. B``."""
    if "." in word and _DOTTED.fullmatch(word := _GAPS.sub("", word)):
        return not word[-1].isdigit() and all(len(part) < _LONG_PART for part in word.split("."))
    return _is_kept(word, language)


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
    """Move apostrophes that belong to a word from the pieces around it to the word."""
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
    """Return whether the piece before a word ends with an apostrophe that is part of the word."""
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
    """Return whether a word may end with an apostrophe."""
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


class TextSpan(NamedTuple):
    """A stretch of a text: characters (NFC) from ``begin`` to before ``end``."""

    begin: int
    end: int


@functools.cache
def _marks(kind: str) -> str:
    return str(scramble_data("sentence_marks")[kind])


@functools.cache
def _end_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern of what may end a sentence: a mark, further marks, and what closes after them."""
    extra_marks = scramble_data("sentence_marks")["in_language"].get(language, "")
    marks = re.escape(_marks("ends") + _marks("without_space") + extra_marks)
    sure, unsure = re.escape(_ALWAYS_CLOSE), re.escape(_ALSO_OPEN)
    # Opens with one class of characters, which lets the search skip over everything else.
    return re.compile(
        rf"[{marks}\n]([{marks}]*)"
        rf"((?:[{sure}]|[{unsure}](?=[\s{sure}{unsure}]|$)|[ \u00a0\u2009\u202f][»›](?=[\s.,;:!?)\]]|$))*)"
    )


def find_sentences(text: str, language: str) -> list[TextSpan]:
    """Return the sentences of a text with their marks, without the space around them."""
    has_capitals = text[:1] != text[:1].lower() or text != text.lower()
    sentences = []
    begin = _skip_space(text, 0)
    item: int | None = None
    for match in _end_pattern(base_language(language)).finditer(text):
        token = _stopped(text, match, language)
        if token is not None and numbers_an_item(token, text, begin, item, language):
            item = int(token.text)
            continue
        end = _end(text, match, begin, token, language, has_capitals)
        if end is not None and end > begin:
            sentences.append(TextSpan(begin, end))
            begin = _skip_space(text, end)
    end = len(text.rstrip())
    if begin < end:
        sentences.append(TextSpan(begin, end))
    return sentences


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _stopped(text: str, match: re.Match[str], language: str) -> StopContext | None:
    """Return the word before a full stop that a space and more text in its line follow; None for other marks."""
    end = match.end()
    if text[match.start()] != "." or match[1] or not text[end : end + 1].isspace() or _next_line(text, end):
        return None
    return token_before(text, match.start(), language)


def _end(
    text: str, match: re.Match[str], begin: int, token: StopContext | None, language: str, has_capitals: bool
) -> int | None:
    """Return where a mark or a line's end closes the sentence; None if the sentence continues."""
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
    remainder = text[start : start + 40].lstrip().lstrip(OPENING + _CLOSING)
    return remainder.lstrip()[:1]


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
    """Return a sentence cut into the words that may move and the pieces between them.

    A word is a run between spaces without the marks around it. Hyphenated words, numbers, addresses, and
    abbreviations and ordinal numbers with their full stop are one word each, abbreviations of several parts (``z.
    B.``) with their spaces; separate marks are not words.
    """
    words = _spaced_word(language) if _STOP_AND_GAP.search(sentence) else _WORD
    pieces = words.split(sentence)
    if "'" in sentence or "’" in sentence or "‘" in sentence:
        pieces = with_own_apostrophes(sentence, pieces, language)
    # Most sentences have no full stop after a word but the last, and no sign at the front of a word.
    stopped = sentence.find(".", 0, -1) >= 0 and "." in [marks[:1] for marks in pieces[2:-1:2]]
    if not stopped and "".join(map(_FIRST, pieces[1::2])).isalnum():
        return pieces
    joined = [pieces[0]]
    for place in range(1, len(pieces), 2):
        core, following = pieces[place], pieces[place + 1]
        if not core[0].isalnum() and not any(map(str.isalnum, core)):
            joined[-1] += core + following
            continue
        # Only the last word may have its full stop as the mark of the sentence.
        if (
            following[:1] == "."
            and place + 2 < len(pieces)
            and _keeps(core, following, pieces[place + 2], language)
        ):
            core, following = f"{core}.", following[1:]
        joined += [core, following]
    return joined


def _keeps(core: str, marks: str, following: str, language: str) -> bool:
    """Return whether a full stop inside a sentence belongs to the word before it: before a space or comma it does."""
    return (
        marks[1:2].isspace()
        or marks[1:2] in tuple(",;:")
        or keeps_its_stop("".join(core.split()), language, following)
    )


def word_slots(text: str, sentence: TextSpan, language: str) -> list[TextSpan]:
    """Return the places of a sentence's words that may move (see :func:`word_pieces`)."""
    pieces = word_pieces(text[sentence.begin : sentence.end], language)
    starts = list(accumulate(map(len, pieces), initial=sentence.begin))
    return [TextSpan(starts[place], starts[place + 1]) for place in range(1, len(pieces), 2)]
