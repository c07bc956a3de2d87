"""Breaks a text into lines that are the same for every reader, whatever the window or font.

Letters are counted as cells of the bundled monospaced font: wide letters of East Asian scripts take two, combining marks none.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise

LINE_LENGTH = 64
"""Default cells of a line."""
NOT_FIRST = frozenset(
    "、。，．・：；？！…‥ー）〕］｝〉》」』】〙〗〟’”々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.:;?!)]}%"
)
NOT_LAST = frozenset("（〔［｛〈《「『【〘〖〝‘“([{")
"""Signs of East Asian scripts that may not begin or end a line."""


def cells(text: str) -> int:
    """Return the cells of a monospaced font that a text fills."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def break_lines(text: str, length: int = LINE_LENGTH, *, keeps_words: bool = True) -> list[str]:
    """Return a text broken at its spaces into lines of at most ``length`` cells.

    Existing line breaks stay. A word longer than a line gets a separate line; only the single spaces at line breaks are
    removed.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, width = "", 0
        for number, word in enumerate(paragraph.split(" ")):
            for place, piece in enumerate([word] if keeps_words else _pieces(word, length)):
                gap, wide = " " if number and not place else "", cells(piece)
                if width + len(gap) + wide <= length or not line.strip():
                    line, width = line + gap + piece, width + len(gap) + wide
                else:
                    lines.append(line)
                    line, width = piece, wide
        lines.append(line)
    return lines


def _pieces(word: str, length: int) -> list[str]:
    """Return the parts of a word between which a line may break: one, unless it is too long and has wide signs."""
    if cells(word) <= length:
        return [word]
    pieces = [word[:1]]
    for before, sign in pairwise(word):
        is_break = (
            2 in (_width(before), _width(sign))
            and _width(sign) > 0
            and sign not in NOT_FIRST
            and before not in NOT_LAST
        )
        if is_break:
            pieces.append(sign)
        else:
            pieces[-1] += sign
    return pieces
