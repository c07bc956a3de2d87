"""Reads a raw reply: which label was meant, or which text was restored. Parsers never raise and never guess.

A reply that names no label, or more than one, is ``unparsed``; one that declines is ``refused``. An article or a letter
inside a sentence ("A good question", "I cannot tell") is never read as the label A, nor "no" in "There is no way to tell"
as the label No. A longer label that stands alone in a sentence without a negation ("The word is garden") counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiment.free_answers import read_free

ResponseStatus = Literal["valid", "unparsed", "refused", "truncated", "empty", "timeout", "skipped", "error"]

REFUSALS = re.compile(
    r"\b(i(?:['’]m| am) (?:sorry|unable|not able)|i (?:can ?not|can['’]t|won['’]t|do not know|don['’]t know)|as an ai|"
    r"cannot (?:tell|determine|answer)|es tut mir leid|ich kann (?:nicht|das nicht|diese)|lo siento|no (?:lo )?sé|"
    r"no puedo (?:responder|saber|decir|determinar))\b",
    re.IGNORECASE,
)
UNRESTORED = re.compile(
    r"(?:i(?:['’]m| am) sorry\b[,.]? (?:but )?i\b|as an ai\b|"
    r"(?:i(?:['’]m| am) (?:unable|not able) to|i (?:can ?not|can['’]t|won['’]t)) "
    r"(?:recover|restore|reconstruct|determine|decipher|unscramble|decode|help|assist|provide|make out)\b|"
    r"ich kann (?:den|diesen|das|dies) (?:text|satz|wort)?\s?(?:leider )?nicht\b|"
    r"(?:lo siento\b[,.]? )?(?:pero )?no puedo (?:restaurar|recuperar|descifrar|determinar|ayudar)\b)",
    re.IGNORECASE,
)
"""How a reply begins that gives no text back; narrower than refusals, for a restored sentence may begin with "I cannot"."""
ANNOUNCED = (
    r"(?i:answer|label|choice|option|antwort|wahl|respuesta|elección|opción)[\"'*_]{0,4}\s*"
    r"(?i:is|ist|lautet|es)?\s*[:=]?\s*"
)
CLOSING = re.compile(
    r"(?:^|\n)[>#*_\s\"']{0,8}(?:final )?(?:answer|antwort|respuesta)[*_\"']{0,4}\s?[:=]", re.IGNORECASE
)
"""Where a reply that thinks aloud announces its answer."""
THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)
"""Marks around thoughts in the replies of open models."""
NEGATIONS = re.compile(
    r"\b(?:not|never|neither|nor|cannot|without|nicht|kein\w*|weder|nunca|tampoco|ningun\w*)\b|n['’]t\b",
    re.IGNORECASE,
)
CORRECTIONS = re.compile(
    r"\b(?:wait|actually|correction|rather|instead|i mean|no|nein|doch|vielmehr|espera|mejor dicho|en realidad)\b",
    re.IGNORECASE,
)
EVERYDAY = frozenset(
    {
        "true",
        "false",
        "none",
        "both",
        "same",
        "different",
        "word",
        "wahr",
        "falsch",
        "wort",
        "falso",
        "palabra",
        "igual",
    }
)
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n(?: ?\n)+")
WRAPPING = " \t\r\n\"'`*_()[]{}<>“”‘’„«».,:;!?"


@dataclass(frozen=True)
class Parsed:
    """What a reply says (None unless valid) and how it is to be counted."""

    value: str | None
    status: ResponseStatus


def fold(text: str) -> str:
    """Return text in NFC, case-folded, with runs of white space as one space."""
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
    return next((line.strip() for line in reversed(lines.split("\n")) if line.strip()), ""), False


def tidy(reply: str) -> str:
    """Return a reply with runs of blanks as one, and empty lines as one: what patterns then take is linear in its length."""
    return _LINES.sub("\n\n", _BLANKS.sub(" ", reply.replace("\r\n", "\n").replace("\r", "\n")))


def parse_label(reply: str | None, labels: Sequence[str], options: Sequence[str] | None = None) -> Parsed:
    """Find the one label that a reply gives.

    Parameters
    ----------
    reply : str or None
    labels : sequence of str
        The labels as shown.
    options : sequence of str, optional
        What each label stands for where labels are letters; an option in its own words counts as its label.
    """
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    reply = tidy(reply)
    exact = {fold(label.strip(WRAPPING) or label): label for label in labels}
    if fold(reply.strip(WRAPPING)) in exact:
        return Parsed(exact[fold(reply.strip(WRAPPING))], "valid")
    given = {label for label in labels if _gives(label, reply)}
    if len(given) == 1 and not _takes_back(next(iter(given)), reply, labels):
        return Parsed(given.pop(), "valid")
    if given:
        return Parsed(None, "unparsed")
    worded = _by_option(reply, labels, options or ())
    if worded is not None:
        return Parsed(worded, "valid")
    if REFUSALS.search(reply):
        return Parsed(None, "refused")
    mentioned = {label for label in labels if _is_telling(label) and _stands_in(label, reply)}
    if len(mentioned) == 1 and not NEGATIONS.search(reply):
        return Parsed(mentioned.pop(), "valid")
    return Parsed(None, "unparsed")


def _gives(label: str, reply: str) -> bool:
    """Say whether a reply gives a label as its answer: announced, alone on its first line, or first and then a mark."""
    escaped = re.escape(label)
    flags = re.IGNORECASE if len(label) > 1 else 0
    closed = rf"[\"'(*]{{0,4}}{escaped}[\"')*]{{0,4}}\s*(?:[.,;:)!\n]|$)"
    first_line = next(line.strip() for line in reply.splitlines() if line.strip())
    alone = fold(first_line.strip(WRAPPING)) == fold(label.strip(WRAPPING) or label)
    return bool(alone or re.search(ANNOUNCED + closed, reply, flags) or re.match(closed, first_line, flags))


def _by_option(reply: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the label of the option that a reply is, or announces, in the option's own words."""
    lines = [line for line in reply.split("\n") if line.strip()]
    last = deque(re.finditer(ANNOUNCED, reply), maxlen=1)
    announced = [reply[match.end() :].split("\n")[0] for match in last]
    told = {fold(text.strip(WRAPPING)) for text in (*announced, reply, *lines[:1], *lines[-1:])}
    found = [
        label
        for label, option in zip(labels, options, strict=False)
        if fold(option.strip(WRAPPING) or option) in told
    ]
    return found[0] if len(found) == 1 else None


def _takes_back(label: str, reply: str, labels: Sequence[str]) -> bool:
    """Say whether a reply goes on to another label with a word of correction ("A. Wait, B")."""
    rest = reply[reply.casefold().find(label.casefold()) + len(label) :]
    return bool(CORRECTIONS.search(rest)) and any(
        _stands_in(other, rest) for other in labels if other != label
    )


def _stands_in(label: str, text: str) -> bool:
    flags = re.IGNORECASE if len(label) > 1 else 0
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, flags) is not None


def _is_telling(label: str) -> bool:
    """Say whether a label is no word that sentences have anyway ("no", "yes", "true")."""
    return len(label) >= 4 and fold(label) not in EVERYDAY


_HEADING = re.compile(
    r"(?:>?\s?fixed\s?:|\**(?:(?:the |der |el )?(?:recovered|restored|corrected|intact|original|wiederhergestellter?|korrigierter?)\s"
    r"(?:sentence|text|word|passage|satz)|(?:texto|frase|palabra)\s(?:restaurad[oa]|corregid[oa]|original))\**\s?:\**)\s*",
    re.IGNORECASE,
)


def parse_recovered(reply: str | None, *, multiline: bool = False) -> Parsed:
    """Return the restored text of a reply: its first line (or all of it), without an announcement or quotes around it."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    whole = reply.strip()
    heading = _HEADING.match(whole)
    if heading is not None:
        whole = whole[heading.end() :]
    lines = (line.strip() for line in whole.splitlines())
    text = whole if multiline else next((line for line in lines if line), "")
    if len(text) > 1 and (text[0], text[-1]) in {('"', '"'), ("'", "'"), ("“", "”"), ("„", "“")}:
        text = text[1:-1]
    if not text.strip():
        return Parsed(None, "empty")
    if UNRESTORED.match(text):
        return Parsed(None, "refused")
    return Parsed(text.strip(), "valid")


def parse_free(
    reply: str | None,
    read_as: str,
    *,
    multiline: bool,
    decimal: str = ".",
    options: Sequence[str] | None = None,
) -> Parsed:
    """Return the answer that a reply gives in free words, as a number, an option or a program."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    if read_as != "code":
        reply = reply if multiline and read_as == "text" else tidy(reply)
        if REFUSALS.match(reply.strip()):
            return Parsed(None, "refused")
    value = read_free(reply, read_as, multiline=multiline, decimal=decimal, options=options or ())
    return Parsed(value, "unparsed" if value is None else "valid")


Parser = Callable[[str | None, Mapping[str, Any]], Parsed]

# the names that declarations of trial types use; a parser gets the raw reply and the answering step of the plan
PARSERS: dict[str, Parser] = {
    "label": lambda reply, step: parse_label(reply, step["labels"], step.get("options")),
    "recovered_text": lambda reply, step: parse_recovered(reply, multiline=step["multiline"]),
    "free_answer": lambda reply, step: parse_free(
        reply,
        step["read_as"],
        multiline=step["multiline"],
        decimal=step.get("decimal", "."),
        options=step.get("options"),
    ),
}
