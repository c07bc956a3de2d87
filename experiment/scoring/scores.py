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
    """One scorer's score for one trial.

    Attributes
    ----------
    response : str or None
        The parsed response; None unless the status is valid.
    correct : bool or None
        None unless the status is valid and a correct answer is known.
    score : float or None
        From 0 to 1.
    version : int
        Version of the scorer's rules.
    """

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
    """Return the recovery score of a restored text, from 0 to 1.

    It is 1 − d / n, at least 0, with the optimal string alignment distance d to the intact text (insertions, deletions,
    substitutions and transpositions of neighbours) and the number n of its characters, both after NFC normalisation.
    """
    restored, other = (unicodedata.normalize("NFC", text.strip()) for text in (given, intact))
    return max(0.0, 1.0 - OSA.distance(restored, other) / max(1, len(other)))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold(text))
