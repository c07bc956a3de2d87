"""Finds the restored text in a reply by removing what surrounds it: greetings, headings, fences, JSON, quotes, stars.

A sentence's own beginning stays: "I cannot see the harbour" is a restored text, "I cannot restore it" a refusal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache

from experiment.parsing.text import Parsed, unmarked, words

UNRESTORED = re.compile(
    r"(?:i(?:['’]m| am) sorry\b[,.]? (?:but )?i\b|as an ai\b|"
    r"(?:i(?:['’]m| am) (?:unable|not able) to|i (?:can ?not|can['’]t|won['’]t)) "
    r"(?:recover|restore|reconstruct|determine|decipher|unscramble|decode|help|assist|provide|make out|"
    r"make (?:any )?sense of (?:this|the|that|it))\b|"
    r"ich kann (?:den|diesen|das|dies|ihn|es) (?:text|satz|wort)?\s?(?:leider )?nicht\b|"
    r"(?:lo siento\b[,.]? )?(?:pero )?no (?:puedo|es posible) (?:restaurar|recuperar|descifrar|determinar|ayudar)\w{0,5}\b)",
    re.IGNORECASE,
)
"""Beginnings of replies without a text; narrower than refusals, because a restored sentence may begin with "I cannot"."""
_ALIKE = 0.8
"""Share of common letters at which a reply may be the text itself: "The text is correct"."""
_FENCED = re.compile(r"```[^\n`]*\n(?P<inside>.*?)(?:\n ?```|\Z)", re.DOTALL)
_PAIRS = (("\"", "\""), ("'", "'"), ("“", "”"), ("„", "“"), ("«", "»"), ("»", "«"), ("‘", "’"), ("**", "**"), ("__", "__"),
          ("*", "*"), ("`", "`"))  # fmt: skip
_MARKERS = re.compile(r"(?:> ?|[-*•] )")
_MOST_TAKEN_OFF = 6


@cache
def _left() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a reply that calls a text correct as it is, without and with the text after it."""
    unchanged = rf"(?:{words('unchanged')})"
    return (
        re.compile(rf"(?:{unchanged}(?:[.!]+\s*|\s*\Z))+\Z", re.IGNORECASE),
        re.compile(rf"(?:{unchanged}[.!]*\s*)+(?::\s*|\n+)(?=\S)", re.IGNORECASE),
    )


@cache
def _remarks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of lines and of brackets after a restored text that explain the changes."""
    title = rf"(?:{words('remark_title')})[*_]{{0,2}} ?[:：]"
    remark_words = rf"(?:{words('remark')})(?!\w)"
    return (
        re.compile(rf"\n[*_>\s(\[-]{{0,6}}(?:{title}|{remark_words})", re.IGNORECASE),
        re.compile(
            rf"\s\((?:{title}|{remark_words}|(?:{words('remark_participle')})(?!\w))[^()\n]{{0,300}}\)\W{{0,3}}\Z",
            re.IGNORECASE,
        ),
    )


@cache
def _headings() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of announcements of a text: at the reply's beginning, and at the beginning of any line."""
    marks, noun, restored = r"[*_\"'#> ]{0,6}", words("text"), words("restored")
    called = rf"(?:(?:the |your |der |die |das |ihr |el |la |su )?(?:(?:{restored}) (?:{noun})|(?:{noun}) (?:{restored})))"
    closed = r"[:：](?:[*_\"']{1,3}(?=\s))?\s*"
    verb = r"(?:is|was|ist|war|lautet|lautete|es|era|reads|should be|should read)"
    ending = rf"(?: {verb})?{marks}{closed}"
    # without a colon the rest is the text if it is quoted, or a single word: "The unscrambled word is garden."
    quoted = rf"(?: {verb} (?=[\"“„«*`])|(?<=word|wort) {verb} (?=[\w'’-]+[.!]?\s*\Z)|(?<=palabra) {verb} (?=[\w'’-]+[.!]?\s*\Z))"
    owner = r"(?:(?:the |my |your |der |die |das |la |el |mi |meine )?(?:final |correct |endgültige )?)"
    named = rf"{owner}(?:{words('answer')}|{noun}|spelling)(?: final)?"
    # "The answer is: yes, said the dog" may be the text itself; a new beginning or a single word is not
    begins = r"(?=[\"“„«*`\n]|(?-i:[A-ZÀ-Þ])|[\w'’-]+[.!]?\s*\Z)"
    heading = rf"(?:{named}{marks}{closed}|{named} {verb}{marks}{closed}{begins})"
    greeting = rf"(?:(?:{words('greeting')})[!,.]? ?\s?)?"
    here = rf"(?:(?:{words('here')}) )"
    first = rf"{marks}{greeting}(?:{here}?{called}(?: [^:\n]{{1,40}})??(?:{ending}|{quoted})|{here}[^:\n]{{0,40}}?:[*_]{{0,3}}(?=\n)|"
    first += rf"{heading}|(?:it|this|that) should (?:be|read|say){marks}{closed}|here you (?:go|are){marks}{closed}|"
    first += rf"(?:fixed|output|answer|antwort|respuesta|restored|recovered|corrected|result){marks}{closed})"
    return (
        re.compile(first, re.IGNORECASE),
        re.compile(
            rf"(?:^|\n){marks}(?:{called}|restored|recovered|unscrambled){marks}{closed}", re.IGNORECASE
        ),
    )


def parse_recovered(reply: str | None, *, multiline: bool = False, shown: str | None = None) -> Parsed:
    """Return the restored text in a reply: its first line (or all of it), without what surrounds it."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    whole = inside(reply.replace("\r\n", "\n").replace("\r", "\n").strip())
    if UNRESTORED.match(whole):
        return Parsed(None, "refused")
    if shown is not None:
        left, left_and_given = _left()
        if left.match(whole) and not _is_alike(whole, shown):
            return Parsed(shown.strip(), "valid")
        given = left_and_given.match(whole)
        whole = whole if given is None else inside(whole[given.end() :].strip())
    first, anywhere = _headings()
    match = first.match(whole)
    if match is None and not multiline:
        later = list(anywhere.finditer(whole))
        match = later[-1] if later else None
    if match is not None and whole[match.end() :].strip():
        whole = inside(whole[match.end() :].strip())
    lines = (line.strip() for line in whole.split("\n"))
    text = _without_remarks(whole, shown) if multiline else next((line for line in lines if line), "")
    if shown is not None and "(" not in shown:
        text = _remarks()[1].sub("", text)
    text = _bare(text)
    if not text:
        return Parsed(None, "empty")
    if UNRESTORED.match(text):
        return Parsed(None, "refused")
    return Parsed(text, "valid")


def _without_remarks(whole: str, shown: str | None) -> str:
    """Return a text of several lines without explanatory lines after it, but never fewer lines than shown."""
    least = 1 if shown is None else max(1, _lines(shown))
    for remark in _remarks()[0].finditer(whole):
        if _lines(whole[: remark.start()]) >= least:
            return whole[: remark.start()].rstrip()
    return whole


def _lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))


def _is_alike(reply: str, shown: str) -> bool:
    """Return whether a reply has the letters of a text."""
    letters, other = (
        Counter(letter for letter in text.lower() if letter.isalpha()) for text in (reply, shown)
    )
    return (letters & other).total() > _ALIKE * max(letters.total(), other.total(), 1)


def inside(text: str) -> str:
    """Return the contents of a code block or JSON object in the text, if there is one."""
    block = _FENCED.search(text)
    if block is not None and block["inside"].strip():
        text = block["inside"].strip()
    if text.startswith("{") and text.endswith("}"):
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return text
        strings = (
            [value for value in content.values() if isinstance(value, str)]
            if isinstance(content, dict)
            else []
        )
        if len(strings) == 1 and strings[0].strip():
            return strings[0].strip()
    return text


def _bare(text: str) -> str:
    """Return a text without surrounding quotes, stars and list marks."""
    text = unmarked(text).strip()
    for _ in range(_MOST_TAKEN_OFF):
        before = text
        marker = _MARKERS.match(text)
        if marker is not None and len(text) > marker.end():
            text = text[marker.end() :].strip()
        for opening, ending in _PAIRS:
            quoted = text.rstrip(".") if text.rstrip(".").endswith(ending) else text
            inner = quoted[len(opening) : len(quoted) - len(ending)]
            if (
                len(quoted) > len(opening) + len(ending)
                and quoted.startswith(opening)
                and quoted.endswith(ending)
            ):
                text = text if opening in inner else inner.strip()
                break
        if text == before:
            break
    return text
