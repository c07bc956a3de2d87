"""Preparation of replies for all parsers: removal of reasoning, normalisation of blanks, marks around answers."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

ResponseStatus = Literal["valid", "unparsed", "refused", "truncated", "empty", "timeout", "skipped", "error"]

CLOSING = re.compile(
    r"(?:^|\n)[>#*_\s\"']{0,8}(?:(?:my |the )?(?:final |correct )?answer|(?:die |meine )?(?:endgültige |richtige )?antwort|"
    r"(?:la |mi )?respuesta(?: final| correcta)?)[*_\"']{0,4}\s?[:=]",
    re.IGNORECASE,
)
"""The announcement of the answer in a reply with reasoning."""
THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)
"""Marks around reasoning in the replies of open models."""
WRAPPING = " \t\r\n\"'`*_()[]{}<>“”‘’„«».,:;!?$\\。．、，：；！？（）「」『』【】؟،؛۔।"
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n(?: ?\n)+")
_FENCE = re.compile(r"^ ?(?:```|~~~)[\w+-]{0,20} ?$", re.MULTILINE)
_BOXED = re.compile(r"\\(?:boxed|fbox|text|textbf|mathbf|mathrm|mathtt)\{([^{}\n]{0,200})\}")


@cache
def words(name: str) -> str:
    """Return a kind of words in all languages as alternatives of a regular expression, longer ones first."""
    text = resources.files(__package__).joinpath("words.json").read_text("utf-8")
    of_kind = json.loads(text)[name]
    alternatives = {word for language in ("en", "de", "es") for word in of_kind[language]}
    return "|".join(sorted(alternatives, key=lambda word: (-len(word), word)))


@dataclass(frozen=True)
class Parsed:
    """The value in a reply (None unless valid) and its response status."""

    value: str | None
    status: ResponseStatus


def fold(text: str) -> str:
    """Return text in NFC, case-folded, with runs of white space as one space."""
    if text.isascii():
        return " ".join(text.lower().split())
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def without_thought(reply: str) -> str:
    """Return a reply without marked reasoning before it; empty if the reasoning never ends."""
    for opening, ending in THOUGHTS:
        place = reply.rfind(ending)
        if place >= 0:
            reply = reply[place + len(ending) :]
        elif reply.lstrip().startswith(opening):
            return ""
    return reply.lstrip("\r\n")


def final_answer(reply: str) -> tuple[str, bool]:
    """Return the final answer of a reply with reasoning, and whether it is announced ("Answer: …").

    Without an announcement it is the last line.
    """
    lines = tidy(reply)
    announced = [match.end() for match in CLOSING.finditer(lines)]
    if announced:
        return lines[announced[-1] :].strip(), True
    answer_lines = [line.strip() for line in unmarked(lines).split("\n") if line.strip()]
    return answer_lines[-1] if answer_lines else "", False


def tidy(reply: str) -> str:
    """Return a reply with runs of blanks and of empty lines reduced to one, so that patterns take linear time."""
    return _LINES.sub("\n\n", _BLANKS.sub(" ", reply.replace("\r\n", "\n").replace("\r", "\n")))


def unmarked(reply: str) -> str:
    """Return a tidy reply without code fences and LaTeX boxes around their contents."""
    return _BOXED.sub(r"\1", _BOXED.sub(r"\1", _FENCE.sub("", reply)))
