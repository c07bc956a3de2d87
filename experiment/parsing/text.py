"""What every parser does to a reply before it reads it: thoughts cut off, blanks made one, marks around an answer told apart."""

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
"""Where a reply that thinks aloud announces its answer."""
THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)
"""Marks around thoughts in the replies of open models."""
WRAPPING = " \t\r\n\"'`*_()[]{}<>“”‘’„«».,:;!?$\\。．、，：；！？（）「」『』【】؟،؛۔।"
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n(?: ?\n)+")
_FENCE = re.compile(r"^ ?(?:```|~~~)[\w+-]{0,20} ?$", re.MULTILINE)
_BOXED = re.compile(r"\\(?:boxed|fbox|text|textbf|mathbf|mathrm|mathtt)\{([^{}\n]{0,200})\}")


@cache
def words(name: str) -> str:
    """Return the words of a kind in all languages as alternatives of a regular expression, longer ones first."""
    text = resources.files(__package__).joinpath("words.json").read_text("utf-8")
    of_kind = json.loads(text)[name]
    found = {word for language in ("en", "de", "es") for word in of_kind[language]}
    return "|".join(sorted(found, key=lambda word: (-len(word), word)))


@dataclass(frozen=True)
class Parsed:
    """What a reply says (None unless valid) and how it is to be counted."""

    value: str | None
    status: ResponseStatus


def fold(text: str) -> str:
    """Return text in NFC, case-folded, with runs of white space as one space."""
    if text.isascii():
        return " ".join(text.lower().split())
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def without_thought(reply: str) -> str:
    """Return a reply without the thoughts that stand between marks before it; empty where its thought never ends."""
    for opening, ending in THOUGHTS:
        place = reply.rfind(ending)
        if place >= 0:
            reply = reply[place + len(ending) :]
        elif reply.lstrip().startswith(opening):
            return ""
    return reply.lstrip("\r\n")


def final_answer(reply: str) -> tuple[str, bool]:
    """Return what a reply that thinks aloud gives in the end, and whether it announces it ("Answer: …").

    Without an announcement it is the last line.
    """
    lines = tidy(reply)
    announced = [match.end() for match in CLOSING.finditer(lines)]
    if announced:
        return lines[announced[-1] :].strip(), True
    told = [line.strip() for line in unmarked(lines).split("\n") if line.strip()]
    return told[-1] if told else "", False


def tidy(reply: str) -> str:
    """Return a reply with runs of blanks as one, and empty lines as one: what patterns then take is linear in its length."""
    return _LINES.sub("\n\n", _BLANKS.sub(" ", reply.replace("\r\n", "\n").replace("\r", "\n")))


def unmarked(reply: str) -> str:
    """Return a tidy reply without the fences of code blocks and LaTeX's boxes around what they hold."""
    return _BOXED.sub(r"\1", _BOXED.sub(r"\1", _FENCE.sub("", reply)))
