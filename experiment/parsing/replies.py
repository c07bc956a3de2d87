"""Parsers of raw replies: labels, restored texts, free answers. They never raise or guess.

A reply that names no label, or more than one, is ``unparsed``; one that declines is ``refused``
(:mod:`experiment.parsing.labels`). The words in replies are data (``words.json``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiment.parsing.free_answers import completion_of, ratings_in, read_free
from experiment.parsing.label_sets import read_set
from experiment.parsing.labels import parse_label
from experiment.parsing.restored import inside, parse_recovered
from experiment.parsing.text import Parsed, fold, tidy, unmarked, words


def parse_free(
    reply: str | None,
    read_as: str,
    *,
    multiline: bool,
    decimal: str = ".",
    options: Sequence[str] | None = None,
    shown: str | None = None,
) -> Parsed:
    """Return the free answer in a reply, as text, a number, an option, a program or the continuation of the text ``shown``."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    if read_as != "code":
        reply = inside(reply.strip())
        reply = reply if multiline and read_as == "text" else unmarked(tidy(reply))
        if _declines(reply):
            return Parsed(None, "refused")
    value = read_free(reply, read_as, multiline=multiline, decimal=decimal, options=options or ())
    if read_as == "completion":
        value = completion_of(value or "", shown) or None
    return Parsed(value, "unparsed" if value is None else "valid")


def _declines(reply: str) -> bool:
    return (
        re.match(rf"(?:{words('refused')})(?!\w)", reply.strip().replace("’", "'"), re.IGNORECASE) is not None
    )


def parse_rating(reply: str | None, step: Mapping[str, Any]) -> Parsed:
    """Return the point of a scale in a reply: a button, or a slider's number; ends may be named by what they mean.

    A number beyond the scale, and several numbers none of which is announced as the answer, are ``unparsed``.
    """
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    labels = step["labels"]
    ends = labels[:: len(labels) - 1] if labels else (str(step["from"]), str(step["to"]))
    plain = unmarked(tidy(inside(reply.strip())))
    for end, meaning in zip(ends, (step["low"], step["high"]), strict=True):
        if meaning and fold(plain).strip(" .!") == fold(meaning):
            return Parsed(end, "valid")
    if labels:
        return parse_label(reply, labels)
    if _declines(plain):
        return Parsed(None, "refused")
    numbers = ratings_in(plain, step["from"], step["to"], step["decimal"])
    if len(numbers) != 1 or not step["from"] <= numbers[0] <= step["to"]:
        return Parsed(None, "unparsed")
    return Parsed(f"{numbers[0]:f}", "valid")


Parser = Callable[[str | None, Mapping[str, Any]], Parsed]

# the names that declarations of trial types use; a parser receives the raw reply and the answering step of the plan
PARSERS: dict[str, Parser] = {
    "label": lambda reply, step: (read_set if step.get("several") else parse_label)(
        reply, step["labels"], step.get("options")
    ),
    "rating": parse_rating,
    "recovered_text": lambda reply, step: parse_recovered(
        reply, multiline=step.get("multiline", False), shown=step.get("text")
    ),
    "free_answer": lambda reply, step: parse_free(
        reply,
        step["read_as"],
        multiline=step.get("multiline", False),
        decimal=step.get("decimal", "."),
        options=step.get("options"),
        shown=step.get("text"),
    ),
}
