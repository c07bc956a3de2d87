"""Finds the words of a text and the letters in them that may move; also reads ``*stars*`` that mark words.

A word is a run of letters (with digits in it), joined across apostrophes. Letters are grapheme clusters and never
cross an apostrophe, hyphen, digit or space: in ``company’s`` only ``company`` moves, and ``well-known`` is two words.
Web and mail addresses and names of files count as one word each whose letters stay. A run of letters of a script that is
written without spaces counts as one word, for we cannot cut it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

import regex

from stimuli.errors import UserError
from stimuli.scramble.addresses import find_addresses

_MAKE = tuple.__new__  # half the time of a call
_NONE: frozenset[int] = frozenset()
APOSTROPHES = frozenset("'’ʼ＇՚׳")
SOFT_HYPHEN = "\u00ad"
_CLUSTER = regex.compile(r"\X")
# Characters that are each a grapheme cluster whatever stands beside them, and whose letters Python's \w knows.
_SIMPLE = re.compile(
    r"[\t\n\x20-\x7e\xa0-\xac\xae-\xb1\xb4-\xb8\xba\xbb\xbf-\u02af\u0386-\u03ff\u0400-\u0482\u048a-\u052f"
    r"\u1e00-\u1eff\u2010-\u2027\u2030-\u203a\u20ac]*"
)
_LETTER = r"[^\W\d_]"
_SIMPLE_WORD = re.compile(rf"((?<![\d_])(?=[\d_]*{_LETTER})\w+(?:(?<={_LETTER})['’](?={_LETTER})\w+)*)")
_SIGN = "[0-9_A-Za-z]"  # takes less than \w
# Opens with one class of characters, which lets the search skip over everything else: a letter, or the first of a run of
# digits that comes to a letter. What follows opens with an apostrophe, which is told from anything else without a try.
_ASCII_WORD = re.compile(
    rf"({_SIGN}(?:(?<=[A-Za-z]){_SIGN}*+|(?<![0-9_].)[0-9_]*[A-Za-z]{_SIGN}*+)"
    rf"(?:'(?<=[A-Za-z].)[A-Za-z]{_SIGN}*+(?:(?<=[A-Za-z])'[A-Za-z]{_SIGN}*+)*+|))"
)
# Between two ASCII characters that are no spaces themselves, a space stands alone whatever else the text holds.
_SURE_SPACE = re.compile(r"(?<=[!-~]) (?=[!-~])")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_STARRED = regex.compile(r"\*(?=[^*\s])([^*]*[^*\s])\*")
_ESCAPED_STAR = "\ue000"


@dataclass(frozen=True)
class Word:
    """A word of a text."""

    index: int  # place in reading order, from 0
    start: int  # characters of the text (NFC) before it
    clusters: tuple[str, ...]  # its grapheme clusters
    # places of the letters that may move: those of the longest part between apostrophes
    movable: tuple[int, ...]

    @property
    def text(self) -> str:
        """The word as written."""
        return "".join(self.clusters)

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that may move, as written."""
        return tuple(self.clusters[place] for place in self.movable)

    @property
    def end(self) -> int:
        """Characters of the text (NFC) up to its end."""
        return self.start + len(self.text)

    @property
    def letter_count(self) -> int:
        """Number of letters, those that stay included."""
        return sum(is_letter(cluster) for cluster in self.clusters)


@dataclass(frozen=True)
class Starred:
    """A text without its stars, and the words that they marked."""

    text: str
    words: tuple[int, ...]


def nfc(text: str) -> str:
    """Return the text in Unicode's composed form, in which all positions are counted."""
    return unicodedata.normalize("NFC", text)


def clusters_of(text: str) -> list[str]:
    """Cut a text into grapheme clusters (what a reader takes for one character)."""
    return list(text) if text.isascii() and "\r" not in text else _CLUSTER.findall(text)


def is_letter(cluster: str) -> bool:
    """Tell whether a grapheme cluster is a letter of any script."""
    return cluster[0].isalpha() and cluster not in APOSTROPHES


class Cut(NamedTuple):
    """A text in pieces."""

    # what stands before the first word, the first word, what stands between, …, what stands after the last word
    pieces: list[str]
    fixed: frozenset[int]  # places of the words whose letters stay: addresses and names of files


def cut(text: str) -> Cut:
    """Cut a text in NFC into words and what stands between them."""
    addresses = find_addresses(text)
    if not addresses:
        return _MAKE(Cut, (_words_of(text), _NONE))
    pieces: list[str] = [""]
    fixed: set[int] = set()
    position = 0
    for begin, end in [*addresses, (len(text), len(text))]:
        between = _words_of(text[position:begin])
        pieces[-1] += between[0]
        pieces += between[1:]
        if end > begin:
            fixed.add(len(pieces) // 2)
            pieces += [text[begin:end], ""]
        position = end
    return Cut(pieces, frozenset(fixed))


def _words_of(text: str) -> list[str]:
    if _is_plain(text):
        return _ASCII_WORD.split(text)
    if _SIMPLE.fullmatch(text):
        return _SIMPLE_WORD.split(text)
    pieces: list[str] = []
    for plain, stretches in groupby(_SURE_SPACE.split(text), _is_plain):
        stretch = " ".join(stretches)
        parts = _ASCII_WORD.split(stretch) if plain else _words_by_cluster(stretch)
        if pieces:
            parts[0] = f"{pieces.pop()} {parts[0]}"
        pieces += parts
    return pieces


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _words_by_cluster(text: str) -> list[str]:
    pieces = [""]
    clusters = clusters_of(text)
    run: list[str] = []
    for place, cluster in enumerate(clusters):
        following = clusters[place + 1] if place + 1 < len(clusters) else " "
        if (
            is_letter(cluster)
            or cluster[0].isdecimal()
            or cluster == "_"
            or (
                (cluster in APOSTROPHES or cluster == SOFT_HYPHEN)
                and run
                and is_letter(run[-1])
                and is_letter(following)
            )
        ):
            run.append(cluster)
        else:
            _close(run, pieces)
            pieces[-1] += cluster
    _close(run, pieces)
    return pieces


def _close(run: list[str], pieces: list[str]) -> None:
    if any(is_letter(cluster) for cluster in run):
        pieces += ["".join(run), ""]
    else:
        pieces[-1] += "".join(run)
    run.clear()


@functools.lru_cache(maxsize=16)
def find_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text in NFC, in reading order."""
    pieces, fixed = cut(text)
    starts = list(accumulate(map(len, pieces), initial=0))
    return tuple(
        Word(
            index,
            starts[2 * index + 1],
            tuple(clusters_of(word)),
            () if index in fixed else movable_places(word),
        )
        for index, word in enumerate(pieces[1::2])
    )


def word_starts(text: str) -> list[int]:
    """Return how many characters of a text in NFC stand before each of its words."""
    return list(accumulate(map(len, cut(text).pieces)))[:-1:2]


def movable_places(word: str) -> tuple[int, ...]:
    """Return the places (grapheme clusters) of the letters of a word that may move."""
    if not word.isascii():
        return _longest_part(clusters_of(word))
    longest: tuple[int, ...] = ()
    start = 0
    for part in word.split("'"):
        end = start + len(part)
        within = range(start, end)
        places = tuple(within if part.isalpha() else [at for at in within if word[at].isalpha()])
        if len(places) > len(longest):
            longest = places
        start = end + 1
    return longest


def written_without_spaces(word: str) -> bool:
    """Tell whether a word has letters of a script that sets no spaces between words, so that it may be several words."""
    return not word.isascii() and _UNSPACED.search(word) is not None


def _longest_part(run: list[str]) -> tuple[int, ...]:
    parts: list[list[int]] = [[]]
    for place, cluster in enumerate(run):
        if cluster in APOSTROPHES:
            parts.append([])
        elif is_letter(cluster):
            parts[-1].append(place)
    return tuple(sorted(parts, key=len, reverse=True)[0])


def parse_stars(text: str) -> Starred:
    r"""Take ``*stars*`` out of a text and return which words they marked."""
    rest = nfc(text).replace(r"\*", _ESCAPED_STAR)
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    length = position = 0
    for match in _STARRED.finditer(rest):
        before = rest[position : match.start()]
        plain += [before, match.group(1)]
        spans.append((length + len(before), length + len(before) + len(match.group(1))))
        length = spans[-1][1]
        position = match.end()
    plain.append(rest[position:])
    joined = "".join(plain)
    if "*" in joined:
        raise UserError(
            f"a star without a partner in {text!r}; stars mark words in pairs, like *this*",
            mend=r"Write \* for a star that belongs to the text.",
        )
    bare = joined.replace(_ESCAPED_STAR, "*")
    words = tuple(
        word.index
        for word in find_words(bare)
        if any(word.start < end and word.end > begin for begin, end in spans)
    )
    return Starred(bare, words)
