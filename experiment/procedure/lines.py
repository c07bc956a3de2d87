"""Breaks a text into the lines in which every reader meets it, so that no window or font breaks it elsewhere.

Letters are counted as cells of the bundled monospaced font: wide letters of East Asian scripts take two, marks none.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise

LINE_LENGTH = 64
"""Cells of a line where a study says none."""
NOT_FIRST = frozenset(
    "、。，．・：；？！…‥ー）〕］｝〉》」』】〙〗〟’”々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.:;?!)]}%"
)
NOT_LAST = frozenset("（〔［｛〈《「『【〘〖〝‘“([{")
"""Signs of East Asian scripts that begin or end no line."""


def cells(text: str) -> int:
    """Return how many cells of a monospaced font a text fills."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def break_lines(text: str, length: int = LINE_LENGTH, *, keeps_words: bool = True) -> list[str]:
    """Break a text at its spaces into lines of at most ``length`` cells.

    Line breaks in the text stay. A word longer than a line stands in a line of its own; nothing is ever lost but the
    single spaces at which lines break.
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
