"""Participant numbers as an experimenter types them, written as the study's pattern has them."""

from __future__ import annotations

import re
import unicodedata


def written(typed: str, pattern: str | None) -> str | None:
    """Return a typed number as the study writes it, or None where it does not fit the pattern.

    Parameters
    ----------
    typed : str
        What was typed: ``P014``, ``p14`` and ``14`` are all P014 under ``P###``; full-width letters and digits are written
        as usual ones, and invisible characters are left out.
    pattern : str or None
        Letters with one run of ``#``, each a digit; None leaves the number as it was typed.
    """
    plain = unicodedata.normalize("NFKC", typed)
    number = "".join(letter for letter in plain if unicodedata.category(letter) not in ("Cc", "Cf")).strip()
    if pattern is None:
        return number or None
    before, marks, after = _parts(pattern)
    found = re.fullmatch(
        rf"(?:{re.escape(before)})?([0-9]{{1,{len(marks)}}})(?:{re.escape(after)})?", number, re.IGNORECASE
    )
    return None if found is None else f"{before}{found[1].zfill(len(marks))}{after}"


def example(pattern: str) -> str:
    """Return the first number of a pattern: P001 for ``P###``."""
    before, marks, after = _parts(pattern)
    return f"{before}{'1'.zfill(len(marks))}{after}"


def _parts(pattern: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"([^#]*)(#+)([^#]*)", pattern)
    if found is None:
        raise ValueError(f"{pattern!r} has no single run of #")
    return found[1], found[2], found[3]
