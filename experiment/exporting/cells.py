"""Cells of a CSV file that a spreadsheet cannot mistake for a formula, and the way back.

Text that begins with ``=``, ``+``, ``-``, ``@`` or ``|`` (also of full width), with ``%=``, a tab or the end of a line gets an
apostrophe before it, also where blanks, marks without width or apostrophes come first; reading back takes one away. Numbers and
truth values are written as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u2066-\u206f\ufeff]"
"""Blanks and signs without width, which some spreadsheets take away before they read a cell."""
_BEGINNING = rf"(?:[\t\r\n\x0b\x0c\x85\u2028\u2029\ufeff]|{_UNSEEN}*(?:[=+\-@|＝＋－＠｜−]|[%％][=＝]))"
_FORMULA = re.compile(f"'*{_BEGINNING}")
_GUARDED = re.compile(f"'+{_BEGINNING}")


def cell(value: object, *, is_text: bool) -> object:
    """Return what stands in a cell; nothing for null, TRUE and FALSE for truth values."""
    if value is None:
        return ""
    if isinstance(value, str):
        # nearly every text begins with a letter or a digit, and needs no search
        is_formula = is_text and not value[:1].isalnum() and _FORMULA.match(value)
        return f"'{value}" if is_formula else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return value


def text_of(given: str) -> str:
    """Return the text that a cell stands for, as :func:`cell` was given it."""
    return given[1:] if _GUARDED.match(given) else given


def line(values: Iterable[object]) -> str:
    """Return one line of a CSV file with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(list(values))
    return text.getvalue()
