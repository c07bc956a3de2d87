"""Changes the order of words within sentences, and of sentences within a text.

Words move among the places of words while marks, spaces and a capital at the sentence's beginning stay; an abbreviation
takes its full stop along, and one at the end lends it to the sentence. Sentences move with their own marks and are joined
by the separators that stood between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from stimuli.scramble.capitals import lower, upper
from stimuli.scramble.changes import Form, described
from stimuli.scramble.orders import Rule
from stimuli.scramble.sentence_fronts import gains_capital, loses_capital
from stimuli.scramble.sentences import Span, find_sentences, word_pieces
from stimuli.scramble.stops import is_abbreviation
from stimuli.scramble.words import nfc, written_without_spaces

_OTHER_MARKS = tuple("?!…,;:")
ONE_WORD = "one word"
WITHOUT_SPACES = "script written without spaces"
ONE_SENTENCE = "one sentence"
NO_OTHER_ORDER = "no other order"


class Sentence(NamedTuple):
    """A sentence of a text."""

    span: Span  # where it stands
    pieces: list[str]  # what stands before its first word that may move, that word, what stands between, …


def sentences_of(text: str, language: str, allowed: Sequence[Span] | None = None) -> list[Sentence]:
    """Return the sentences of a text that have words, of which only those that touch an ``allowed`` span may move."""
    found = []
    ends = [one.end for one in allowed or ()]
    for span in find_sentences(text, language):
        pieces = word_pieces(text[span.begin : span.end], language)
        if allowed is not None:
            pieces = _only(pieces, span.begin, allowed, ends)
        if len(pieces) > 1:
            found.append(Sentence(span, pieces))
    return found


def _only(pieces: Sequence[str], start: int, allowed: Sequence[Span], ends: Sequence[int]) -> list[str]:
    """Keep the words that touch a span; the spans are in reading order, with their ends."""
    kept = [""]
    for place, piece in enumerate(pieces):
        end = start + len(piece)
        near = bisect_right(ends, start)
        if place % 2 and near < len(allowed) and allowed[near].begin < end:
            kept += [piece, ""]
        else:
            kept[-1] += piece
        start = end
    return kept


def reordered_words(
    text: str, sentence: Sentence, rule: Rule, number: int, *, capital_stays: bool, language: str
) -> Form | str:
    """Return a sentence with its words in another order, or why there is none."""
    words = sentence.pieces[1::2]
    if len(words) < max(2, rule.least):
        return WITHOUT_SPACES if any(map(written_without_spaces, words)) else ONE_WORD
    intact = text[sentence.span.begin : sentence.span.end]
    before = sentence.pieces[0]
    front = words[0][_front(words[0]) :]
    heads = capital_stays and front[:1].isupper() and not (before and any(map(str.isalnum, before)))
    loose = _with_own_stop(words, sentence.pieces[-1], language)
    lent = loose[-1] != words[-1]
    if heads and loses_capital(front, words[1], text, language):
        loose[0] = _with_front(loose[0], lower, language)
    stops = _stops(sentence.pieces, intact)
    for arrangement in rule.candidates(tuple(loose), number):
        sources = cast(tuple[int, ...], arrangement)
        if str in map(type, arrangement):
            sources = tuple([one for one in sources if isinstance(one, int)])
        placed = list(map(loose.__getitem__, sources))
        if heads and gains_capital(placed[0]):
            placed[0] = _with_front(placed[0], upper, language)
        pieces = sentence.pieces.copy()
        pieces[1::2] = placed
        for place in stops:
            at_end = place == len(pieces) - 1
            pieces[place] = _marks_after(pieces[place - 1], pieces[place], lent=lent and at_end)
        shown = "".join(pieces)
        if shown != intact and (shown.isascii() or nfc(shown) == shown):
            return described(intact, shown, sources, pieces=len(words), unit="word")
    return NO_OTHER_ORDER


def _stops(pieces: Sequence[str], intact: str) -> list[int]:
    """Return the places of the marks between words that open with a full stop."""
    if intact.find(".", 0, -1) < 0:
        return [len(pieces) - 1] if pieces[-1][:1] == "." else []
    return [place for place in range(2, len(pieces), 2) if pieces[place][:1] == "."]


def _front(word: str) -> int:
    """Return the place of the letter that takes a capital: after an apostrophe of the word (``’Twas``)."""
    return 1 if word[0] in "'’‘" and len(word) > 1 else 0


def _with_front(word: str, cased: Callable[[str, str], str], language: str) -> str:
    place = _front(word)
    return word[:place] + cased(word[place], language) + word[place + 1 :]


def _with_own_stop(words: Sequence[str], after: str, language: str) -> list[str]:
    """Return words of which the last, an abbreviation whose full stop ends the sentence too, has its stop with it."""
    last = words[-1]
    if after[:1] == "." and after[:2] != ".." and is_abbreviation(last, language):
        return [*words[:-1], f"{last}."]
    return list(words)


def _marks_after(word: str, marks: str, *, lent: bool) -> str:
    """Return marks that open with a full stop, without it where the word has it itself or it went with an abbreviation."""
    doubled = word.endswith(".") and marks[:2] != ".."
    return marks[1:] if doubled or (lent and marks[1:2] in _OTHER_MARKS) else marks


def reordered_sentences(text: str, spans: Sequence[Span], rule: Rule, number: int) -> Form | str:
    """Return a text with its sentences in another order, or why there is none."""
    if len(spans) < max(2, rule.least):
        return ONE_SENTENCE
    sentences = tuple(text[span.begin : span.end] for span in spans)
    intact = text[spans[0].begin : spans[-1].end]
    for arrangement in rule.candidates(sentences, number):
        sources = [one for one in arrangement if isinstance(one, int)]
        parts = []
        for place, source in enumerate(sources):
            between = text[spans[place].end : spans[place + 1].begin] if place + 1 < len(spans) else ""
            parts += [sentences[source], between]
        shown = "".join(parts)
        if shown != intact and nfc(shown) == shown:
            return described(intact, shown, sources, pieces=len(sentences), unit="sentence")
    return NO_OTHER_ORDER
