"""Problems with one right number, option or program: the problem's own text changes, options and tests stay.

Cao et al. (2023) ask AQuA-RAT behind solved examples (see :mod:`stimuli.recipes.demonstrations`); Mind Scramble asks
GSM8K, MBPP and CSQA without any.
"""

from __future__ import annotations

import re
from typing import Any

from stimuli.corpora.record import Record
from stimuli.recipes.asking import Asked, Unsuitable, has_text, labelled, where_is
from stimuli.recipes.questions import QUESTION, ask_question, other_answers
from stimuli.scramble.words import nfc

_CALCULATOR = re.compile(r"<<[^<>]*>>")
_LETTER = r"\(?[A-E]\)?"
_LETTER_LAST = re.compile(
    rf"(?:\n[^\S\n]*{_LETTER}|(?:\A|(?<=[.,;:>()\s]))(?:(?:(?:hence|so|thus|therefore|the|correct|right|will|would|be|is|it)\W+)*"
    rf"(?:answer|ans|option|choice)\b\W*(?:(?:will|would|be|is|option|choice|answer)\b\W*)*{_LETTER}"
    rf"|(?:(?:hence|so|thus|therefore)\W+)*(?:option\W+)?{_LETTER}\W+is\W+(?:the\W+)?(?:correct|right|answer|choice|\W)+))"
    r"[\s.!)]*\Z",
    re.IGNORECASE,
)


def ask_problem(record: Record, field: str) -> Asked:
    """Ask a problem; its worked solution goes along in the key, for examples to show."""
    has_text(record, field)
    answer = labelled(record)
    return Asked(
        record, field, (), record.choices, answer, {**other_answers(record, answer), **worked(record)}
    )


def ask_completion(record: Record, field: str) -> Asked:
    """Ask what the record's corpus asks: a question about a text, a problem to solve, a program that passes its tests."""
    has_text(record, field)
    if QUESTION in record.texts and field != QUESTION:
        return ask_question(record, field)
    if not record.tests:
        return ask_problem(record, field) if record.rationale else ask_question(record, field)
    key: dict[str, Any] = {"tests": list(record.tests)} | ({"setup": record.setup} if record.setup else {})
    return Asked(record, field, (), None, record.answer, key)


def worked(record: Record) -> dict[str, Any]:
    """Return a record's worked solution as an item's key holds it.

    What is no part of the prose goes: GSM8K's calculator marks, and an ending that only names the letter of an option, which
    would be wrong where options are dealt anew.
    """
    prose = _CALCULATOR.sub("", record.rationale or "").strip()
    if record.choices is not None and (found := _LETTER_LAST.search(prose)):
        prose = prose[: found.start()].rstrip(" \t\n,;:>(")
    return {"rationale": nfc(prose)} if prose else {}


def require_worked(record: Record) -> None:
    """Refuse an example without a worked solution."""
    if not worked(record):
        raise Unsuitable(
            f"{where_is(record)} has no worked solution, which an example of a problem shows",
            mend="Take examples from a corpus with solutions, such as aqua or gsm8k.",
        )
