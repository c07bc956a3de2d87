r"""Finds the words of a text and the letters in them that may move; also reads ``*stars*`` that mark words.

An address with a scheme, ``www.`` or ``@`` is one by its form, and so are ``10.1000/xyz123``, ``C:\data\file.txt``,
``/usr/bin/x``, ``@name`` and ``#tag``; ``and/or`` is none. Without (``bbc.co.uk``, ``foo.io/x``, ``report.pdf``) its
end must be a top-level domain or a file's ending of ``data/addresses.json``, in small letters or the whole in capitals, so
that ``end.Next`` stays two words; ends that are words as well (``in``, ``it``, ``news``) need another sign of an address.

A word is a run of letters (with digits in it), joined across apostrophes. Letters are grapheme clusters and never
cross an apostrophe, hyphen, digit or space: in ``company’s`` only ``company`` moves, and ``well-known`` is two words.
Web and mail addresses and names of files count as one word each whose letters stay. A run of letters of a script that is
written without spaces counts as one word, for we cannot cut it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import regex

from stimuli.errors import UserError
from stimuli.files import data_file


@functools.lru_cache(maxsize=256)
def base_language(language: str) -> str:
    """Return the language of a tag: ``de-AT`` → ``de``."""
    return language.replace("_", "-").split("-")[0].lower()


_TURKIC = frozenset({"tr", "az"})


@functools.lru_cache(maxsize=256)
def is_turkic(language: str) -> bool:
    """Return whether a language tells dotted from dotless i, so that ``I`` is the capital of ``ı`` and ``İ`` that of ``i``."""
    return base_language(language) in _TURKIC


def scramble_data(name: str) -> Mapping[str, Any]:
    """Return a data file of the scramble engine (``letters``, ``shapes``, ``abbreviations``)."""
    loaded: Mapping[str, Any] = data_file(f"scramble/data/{name}.json")
    return loaded


# Each branch opens with a character of its own, which lets the search skip over everything else.
_MAYBE = re.compile(r"\.(?=[^\W\d_])|\.7z|@|:(?=//)|\\|/(?=\w)|#(?=\w)")
_SPACE = re.compile(r"\s")
_SPACE_BEFORE = regex.compile(r"(?r)\s")
_LONGEST_KEPT = 40
_AFTER = ".,;:!?)]}\"'»”’…>"
_LEAST_OF_FILE = 3  # a.txt is a file, a.py may be two letters of an abbreviation


@functools.cache
def _pattern() -> regex.Pattern[str]:
    data = scramble_data("addresses")
    ends = {*data["country"], *data["generic"], *data["files"]}
    return regex.compile(
        r"(?:https?://|ftp://|file://|www\.)\S+"
        r"|(?<![\w.])(?:doi:)?10\.\d{4,9}/\S+"
        r"|(?<!\w)[A-Za-z]:[\\/](?![/\\])\S*"
        r"|(?<![\w\\])\\\\[\w.-]+\\\S+"
        r"|(?<![\w.~\\-])(?:[\w.~-]++\\)++[\w~-]++(?:\.[\w~-]+)*\.\L<files>(?!\w)"
        r"|(?<![\w.~/\\])(?:(?:~|\.{1,2})/[\w.@+-]+|/[\w.@+-]+(?=/[\w.@+-]))(?:/[\w.@+-]+)*/?"
        r"|(?<![\w.+-])[\w+-][\w.+-]*@(?:[\w-]+(?:\.[\w-]+)+|[\w-]{2,})"
        r"|(?<!\w)@\w+(?:@[\w-]+(?:\.[\w-]+)+)?"
        r"|(?<![\w&#])#(?=\d*[^\W\d])[\w]+"
        r"|(?<![\w.~/-])(?:(?P<folders>)|(?P<folders>(?:[\w.~-]++/)++))"
        r"(?P<host>[\w-]++(?:\.[\w-]+)*)\.(?P<end>\L<ends>)(?![\w-])(?P<path>(?::\d+)?[/?#]\S*)?",
        files=sorted({*data["files"], *map(str.upper, data["files"])}),
        ends=sorted(ends | {end.upper() for end in ends}),
    )


@functools.cache
def _ends(of: str) -> frozenset[str]:
    return frozenset(scramble_data("addresses")[of])


def find_addresses(text: str) -> list[tuple[int, int]]:
    """Return where the addresses and names of files of a text begin and end, without the marks after them."""
    spans: list[tuple[int, int]] = []
    end = 0
    # Only what stands between spaces around a sign of an address is looked at, for few texts have more.
    while (sign := _MAYBE.search(text, end)) is not None:
        space = _SPACE_BEFORE.search(text, end, sign.start())
        begin = space.end() if space else end
        after = _SPACE.search(text, sign.end())
        end = after.start() if after else len(text)
        token = text[begin:end]
        addresses = _addresses_in(token) if len(token) <= _LONGEST_KEPT else _addresses_in.__wrapped__(token)
        spans += [(begin + first, begin + last) for first, last in addresses]
    return spans


@functools.lru_cache(maxsize=4096)
def _addresses_in(token: str) -> tuple[tuple[int, int], ...]:
    spans = []
    for match in _pattern().finditer(token):
        host = match["host"]
        if host is None or _is_address(host, match["end"], with_path=match["path"] is not None):
            # Words before a slash belong to the name of a file (data/a.csv), but not to an address (yes/no.com).
            skipped = (
                match["folders"] if host is not None and match["end"].lower() not in _ends("files") else None
            )
            begin = match.start() + len(skipped or "")
            address = token[begin : match.end()].rstrip(_AFTER)
            if any(map(str.isalpha, address)):
                spans.append((begin, begin + len(address)))
    return tuple(spans)


def _is_address(host: str, end: str, *, with_path: bool) -> bool:
    """Return whether ``host.end`` is an address or a file's name rather than words with a missing space."""
    small = end.lower()
    if end != small and host != host.upper():
        return False
    if with_path:
        return True
    parts = host.split(".")
    if not any(map(str.isalpha, host)) or (all(len(part) == 1 for part in parts[:-1]) and len(parts) > 1):
        return False
    if len(parts[-1]) == 1 and small not in _ends("generic") and len(small) < _LEAST_OF_FILE:
        return False
    return small not in _ends("also_words") or len(parts) > 1 or not host.isalpha()


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
    movable: tuple[int, ...]  # places of the letters that may move: the longest part between apostrophes

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
    """Return whether a grapheme cluster is a letter of any script."""
    return cluster[0].isalpha() and cluster not in APOSTROPHES


class TextPieces(NamedTuple):
    """A text in pieces."""

    # what stands before the first word, the first word, what stands between, …, what stands after the last word
    pieces: list[str]
    fixed: frozenset[int]  # places of the words whose letters stay: addresses and names of files


def cut(text: str) -> TextPieces:
    """Return a text in NFC cut into words and the pieces between them."""
    addresses = find_addresses(text)
    if not addresses:
        return _MAKE(TextPieces, (_words_of(text), _NONE))
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
    return TextPieces(pieces, frozenset(fixed))


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
    """Return the number of characters before each word of a text in NFC."""
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


WITHOUT_SPACES = "script written without spaces"


def written_without_spaces(word: str) -> bool:
    """Return whether a word has letters of a script that sets no spaces between words, so that it may be several words."""
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
    remaining = nfc(text).replace(r"\*", _ESCAPED_STAR)
    plain: list[str] = []
    spans: list[tuple[int, int]] = []
    length = position = 0
    for match in _STARRED.finditer(remaining):
        before = remaining[position : match.start()]
        plain += [before, match.group(1)]
        spans.append((length + len(before), length + len(before) + len(match.group(1))))
        length = spans[-1][1]
        position = match.end()
    plain.append(remaining[position:])
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


Letters = tuple[str, ...]


_TURKIC_SMALL = str.maketrans({"I": "ı", "İ": "i"})


@functools.lru_cache(maxsize=100_000)
def letters_of(word: str, language: str | None = None) -> Letters:
    """Return the letters of a word as schemes compare them, as many as are written."""
    return tuple(clusters_of(word.lower()) if word.isascii() and language is None else _small(word, language))


def without_case(text: str, language: str | None = None) -> str:
    """Return a text as :func:`letters_of` compares it: with small letters, no letter more or fewer."""
    return text.lower() if text.isascii() and language is None else "".join(_small(text, language))


def _small(text: str, language: str | None) -> list[str]:
    text = nfc(text)
    if language is not None and is_turkic(language):
        text = text.translate(_TURKIC_SMALL)
    return clusters_of(text.lower()) if text.isascii() else list(map(_small_letter, clusters_of(text)))


@functools.lru_cache(maxsize=10_000)
def _small_letter(cluster: str) -> str:
    """Return a letter without case; full case folding counts where it leaves one letter."""
    full = nfc(cluster.casefold())
    return full if len(clusters_of(full)) == 1 else nfc(cluster.lower())
