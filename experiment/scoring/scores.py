"""The score of a response, and the similarity of a restored text to the intact one: shared by wrods' scorer and the papers'."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from experiment.parsing.text import ResponseStatus, fold

VERSION = 5


@dataclass(frozen=True)
class Score:
    """One scorer's score for one trial."""

    response: str | None
    response_status: ResponseStatus
    correct: bool | None
    score: float | None
    scorer: str
    version: int = VERSION


def same_words(given: str, intact: str) -> bool:
    """Return whether two texts have the same words, ignoring case, spacing and punctuation."""
    return _words(given) == _words(intact)


def recovery(given: str, intact: str) -> float:
    """Return 1 minus the edit distance (optimal string alignment) per character of the intact text, at least 0."""
    one, other = (unicodedata.normalize("NFC", text.strip()) for text in (given, intact))
    return max(0.0, 1.0 - OSA.distance(one, other) / max(1, len(other)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold(text))
