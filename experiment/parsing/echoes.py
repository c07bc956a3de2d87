"""What a reply repeats of the question before it answers, and how it names a rating: "Answer (A or B): B", "4 out of 5".

A list of labels is an echo only where a colon or a question mark stands behind it, a question only where it names no label or
several, and a highest rating only on a scale of three or more numbers; everything else stays for the parser to doubt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from experiment.parsing.naming import MOST_LABELS, cased
from experiment.parsing.text import words

_MARKS = r"[\"'*_`>#-]{0,4}"
_DASH = r"\s?[-–—]\s?"
_FEWEST_RATINGS = 3


def without_echo(reply: str, labels: Sequence[str]) -> str:
    """Return a tidy reply without the question's own labels and scale before its answer, and "4 out of 5" as "4".

    Where nothing would be left, the reply stays as it is.
    """
    together = tuple(labels)
    asks, tells = "?" in reply, ":" in reply
    if asks:
        reply = _without_question(reply, together)
    if asks or tells:
        reply = _unlisted(_listed(together), reply)
    ratings = _ratings(together)
    if ratings is not None:
        scale, share = ratings
        if "-" in reply or "–" in reply or scale.search(reply):
            reply = _unlisted(scale, reply)
        reply = share.sub(r"\g<rating>", reply)
    return reply


def _without_question(reply: str, labels: tuple[str, ...]) -> str:
    found = _question().match(reply)
    if found is None:
        return reply
    named = sum(_word(label).search(found[0]) is not None for label in labels)
    return reply if named == 1 else reply[found.end() :]


def _unlisted(echo: re.Pattern[str], reply: str) -> str:
    left = echo.sub(r"\g<before>", reply)
    return left if re.search(r"\w", left) else reply


@cache
def _question() -> re.Pattern[str]:
    begins = rf"\A[\s>*_\"'#-]{{0,4}}(?:(?:{words('asking')})(?= )|¿)"
    return re.compile(rf"{begins}[^.!?\n:;]{{4,300}}\?[\"'*_]{{0,3}}\s+(?=\S)", re.IGNORECASE)


@lru_cache(MOST_LABELS)
def _word(label: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){cased(label)}(?!\w)")


@lru_cache(MOST_LABELS)
def _listed(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return several labels that are offered, at the beginning of a line or behind the name of the answer."""
    one = rf"[\"'*_`(]{{0,3}}(?:{'|'.join(cased(label) for label in sorted(labels, key=len, reverse=True))})[\"'*_`)]{{0,3}}"
    offered = rf"\(?{one}(?:\s?(?:,? (?i:{words('or')}) |[,/|])\s?{one})+\)?"
    answer = rf"(?i:{words('answer')})[\"'*_]{{0,3}} ?"
    before = rf"(?P<before>^[ ]?{_MARKS}(?:{answer})?|(?<!\w){answer}(?=\())"
    return re.compile(rf"{before}{offered}[\"'*_]{{0,3}}\s?[:?][\"'*_]{{0,3}}[ \n]{{0,2}}", re.MULTILINE)


@lru_cache(MOST_LABELS)
def _ratings(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return how the scale is named, and a rating with the highest one behind it; None where labels are no scale of numbers."""
    if len(labels) < _FEWEST_RATINGS or not all(re.fullmatch(r"\d{1,3}", label) for label in labels):
        return None
    numbers = sorted(map(int, labels))
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        return None
    low, high = numbers[0], numbers[-1]
    span = (
        rf"(?:{low} (?:{words('up_to')}) {high}|{low}{_DASH}{high})(?:[- ](?:point )?scale| skala| escala)?"
    )
    scale = rf"(?P<before>)(?:(?<!\w)(?:{words('scale')}) {span}(?:,| ?:)?\s?|\s?\((?:(?:{words('scale')}) )?{span}\))"
    rating = "|".join(sorted(labels, key=len, reverse=True))
    share = rf"(?<![\w.,/-])(?P<rating>{rating})(?:\s?/\s?| (?:{words('of_most')}) ){high}(?![\w/%]|[.,]\d)"
    return re.compile(scale, re.IGNORECASE), re.compile(share, re.IGNORECASE)
