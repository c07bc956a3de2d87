"""Reads a raw reply: which label was meant, which text was restored, what was answered freely. Parsers never raise or guess.

A reply that names no label, or more than one, is ``unparsed``; one that declines is ``refused``
(:mod:`experiment.parsing_labels`). Words that replies have are data (``parsing_words.json``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiment.free_answers import read_free
from experiment.parsing_labels import parse_label, words
from experiment.parsing_text import Parsed, ResponseStatus, final_answer, fold, tidy, without_thought

__all__ = [
    "PARSERS",
    "Parsed",
    "Parser",
    "ResponseStatus",
    "final_answer",
    "fold",
    "parse_free",
    "parse_label",
    "parse_recovered",
    "tidy",
    "without_thought",
]

UNRESTORED = re.compile(
    r"(?:i(?:['’]m| am) sorry\b[,.]? (?:but )?i\b|as an ai\b|"
    r"(?:i(?:['’]m| am) (?:unable|not able) to|i (?:can ?not|can['’]t|won['’]t)) "
    r"(?:recover|restore|reconstruct|determine|decipher|unscramble|decode|help|assist|provide|make out)\b|"
    r"ich kann (?:den|diesen|das|dies) (?:text|satz|wort)?\s?(?:leider )?nicht\b|"
    r"(?:lo siento\b[,.]? )?(?:pero )?no puedo (?:restaurar|recuperar|descifrar|determinar|ayudar)\b)",
    re.IGNORECASE,
)
"""How a reply begins that gives no text back; narrower than refusals, for a restored sentence may begin with "I cannot"."""
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
        if re.match(rf"(?:{words('refused')})(?!\w)", reply.strip().replace("’", "'"), re.IGNORECASE):
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
