"""Texts of a plain text file: one a line, or one a paragraph between empty lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Unit = Literal["line", "paragraph"]
_LINE = re.compile(r"\r\n|\r|\n")


def plain_texts(text: str, unit: Unit) -> Iterator[tuple[int, str]]:
    """Yield each text with the line where it begins; a paragraph's lines are joined by a space."""
    gathered: list[str] = []
    begin = 0
    for number, raw in enumerate([*_LINE.split(text), ""], 1):
        line = raw.strip()
        if unit == "line":
            if line:
                yield number, line
        elif line:
            begin = begin if gathered else number
            gathered.append(line)
        elif gathered:
            yield begin, " ".join(gathered)
            gathered = []
