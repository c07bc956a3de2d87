"""Parses and judges free answers: words, numbers and programs that a reader typed or a model wrote.

Parsing finds a reply's final answer, not intermediate ones: the last announcement ("The answer is 18"), or else, for numbers,
the last number. Judging compares it with every accepted answer, as question-answering data sets do (ignoring case, articles and
punctuation; Rajpurkar et al., 2016), and numbers by value.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from textwrap import dedent

DECIMAL_COMMA = frozenset(
    (
        "af", "be", "bg", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr", "hu", "id", "is", "it", "ka",
        "kk", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tr", "uk", "vi",
    )
)  # fmt: skip
"""Languages that write 3,5 and 1.500 (Unicode CLDR 46, decimal and group separators of standard numbers)."""
_ANNOUNCED = re.compile(
    r"(?:\banswer\s{0,3}(?:is|:|=)|####|\bantwort\s{0,3}(?:ist|lautet|:)|\brespuesta\s{0,3}(?:correcta\s|final\s)?(?:es|:)(?:\s(?:la|el)\b)?)"
    r"\s{0,3}:?\s{0,3}(?P<given>[^\n]+)",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|nicht|no)\s+[-−]?\d[\d.,]*", re.IGNORECASE)
_FRACTION = re.compile(r"\\[dt]?frac\{\s*(\d+)\s*\}\{\s*(\d+)\s*\}")
_NUMBERS = {
    ".": re.compile(
        r"(?<![\w.,])[-−]?(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?(?!\w|[.,]\d)"
    ),
    ",": re.compile(
        r"(?<![\w.,])[-−]?(?:\d{1,3}(?:[.' \u00a0\u2009\u202f]\d{3})+(?:,\d+)?|\d+(?:[.,]\d+)?)(?:/\d+)?(?!\w|[.,]\d)"
    ),
}
_FENCED = re.compile(r"```[^\n`]*\n(?P<code>.*?)(?:```|\Z)", re.DOTALL)
_CODE_MARK = re.compile(r"(?:\A|[\n:.!?*])[ \t]*>code:|\A\s*code:", re.IGNORECASE)
_NEXT_MARK = re.compile(r"\n[ \t]*>[a-z_]+:")
_STATEMENT = re.compile(r"(?:async|class|def|from|import)\b")
_WRAPPING = " \t\r\n\"'`*_“”‘’„«»"
_ARTICLES = frozenset({"a", "an", "the"})


def decimal_mark(language: str) -> str:
    """Return a language's decimal separator."""
    return "," if language.split("-")[0].lower() in DECIMAL_COMMA else "."


def read_free(
    reply: str, read_as: str, *, multiline: bool, decimal: str = ".", options: Sequence[str] = ()
) -> str | None:
    """Return the answer in a reply, or None if it has none of this kind."""
    if read_as == "code":
        return program_of(reply) or None
    announced = [match["given"] for match in _ANNOUNCED.finditer(reply)]
    if read_as == "number":
        return _number(reply, announced, decimal)
    if read_as == "option":
        return _option(reply, announced, options)
    if announced:
        return announced[-1].strip(_WRAPPING) or None
    if multiline:
        return reply.strip() or None
    return next(line.strip(_WRAPPING) for line in reply.splitlines() if line.strip()) or None


def completion_of(text: str, shown: str | None = None) -> str:
    """Return a continuation as it is compared: one case, single blanks, no punctuation around it, without the text before it."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    begins = " ".join(unicodedata.normalize("NFC", shown or "").casefold().split()).rstrip(" .…_")
    if begins and folded.startswith(begins):
        folded = folded[len(begins) :]
    return folded.strip(" .,;:!?…_\"'“”‘’„«»()-–—")


def program_of(reply: str) -> str:
    """Return the program in a reply: from Mind Scramble's mark ``>code:`` to its next mark, in the first fence there.

    The mark must begin a line or follow a sentence, so that a comparison in a program is not mistaken for it. Braces around a
    program come from the prompt, which has ``>code: {Python code here}``.
    """
    mark = _CODE_MARK.search(reply)
    begin, end = 0, len(reply)
    if mark is not None:
        begin = mark.end()
        end = following.start() if (following := _NEXT_MARK.search(reply, begin)) else end
    # the first fence that does not end before the mark, which may be inside it
    fenced = next(
        (fence for fence in _FENCED.finditer(reply) if fence.end() > begin and fence.start() < end), None
    )
    if fenced is not None:
        begin, end = max(begin, fenced.start("code")), min(end, fenced.end("code"))
    given = reply[begin:end]
    first, _, rest = given.partition("\n")
    program = (given.lstrip(" \t") if first.strip() else dedent(rest)).strip("\r\n")
    inner = (
        program.strip()[1:-1].strip() if program.lstrip()[:1] == "{" and program.rstrip()[-1:] == "}" else ""
    )
    return inner if _STATEMENT.match(inner) else program


def _number(reply: str, announced: Sequence[str], decimal: str) -> str | None:
    """Return the first number in the announced answer, or else the last in the reply, without negated ones."""
    for text, place in [*((announcement, 0) for announcement in announced[-1:]), (reply, -1)]:
        plain = _DENIED.sub(" ", _FRACTION.sub(r"\1/\2", text))
        numbers = _NUMBERS[decimal].findall(plain)
        if numbers:
            return str(numbers[place])
    return None


def ratings_in(reply: str, low: float, high: float, decimal: str = ".") -> list[Decimal]:
    """Return the different numbers on a scale that a reply gives as its rating, in order; its ends as such are none.

    "62 out of 100" and "on a scale from 0 to 100, 62" give 62 alone.
    """
    ends = [re.escape(f"{end:g}").replace(r"\.", "[.,]") for end in (low, high)]
    whole_scale = rf"(?<![\w.,]){ends[0]}\s?(?:-|–|to|and|bis|und|a|y|hasta)\s?{ends[1]}(?![\w]|[.,]\d)"
    out_of = rf"\s?(?:/|out of|of|von|de|sobre)\s?{ends[1]}(?![\w]|[.,]\d)"
    plain = re.sub(out_of, " ", re.sub(whole_scale, " ", reply, flags=re.IGNORECASE), flags=re.IGNORECASE)
    announced = [match["given"] for match in _ANNOUNCED.finditer(plain)][-1:]
    texts = _NUMBERS[decimal].findall(_DENIED.sub(" ", announced[0] if announced else plain))
    numbers = [number for text in texts if (number := number_of(text, decimal)) is not None]
    return list(dict.fromkeys(numbers))


def _option(reply: str, announced: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the option in a reply: alone, announced, or as its last line, by letter or by its text."""
    letters = string.ascii_uppercase[: len(options)]
    last = [line for line in reply.splitlines() if line.strip()][-1:]
    for text in (*announced[-1:], *last):
        plain = text.strip(_WRAPPING + ".,;:!")
        same = [option for option in options if _words(option) == _words(plain)]
        if len(same) == 1:
            return same[0]
        leading = re.match(r"\(?([A-Za-z])\)?(?:[.):,\s]|$)", plain)
        if leading and leading[1].upper() in letters and (len(plain) <= 3 or not leading[1].islower()):
            rest = plain[leading.end() :].strip()
            by_letter = options[letters.index(leading[1].upper())]
            if (
                not rest
                or plain[0] == "("
                or _words(rest) == _words(by_letter)
                or plain[leading.end() - 1] in ").:"
            ):
                return by_letter
        named = {letter for letter in re.findall(r"\(([A-Z])\)", plain) if letter in letters}
        if len(named) == 1:
            return options[letters.index(named.pop())]
    return None


def is_accepted(given: str, answers: Sequence[str], read_as: str, *, decimal: str = ".") -> bool:
    """Return whether an answer is one of the accepted ones."""
    if read_as == "number":
        value = number_of(given, decimal)
        return value is not None and any(number_of(answer, decimal) == value for answer in answers)
    if read_as == "option":
        return given in answers
    if read_as == "code":
        return any(given.split() == answer.split() for answer in answers)
    if read_as == "completion":
        return completion_of(given) in map(completion_of, answers)
    return any(_words(given) == _words(answer) for answer in answers)


def overlap(given: str, answers: Sequence[str]) -> float:
    """Return the word F1 of an answer and the most similar accepted answer (Rajpurkar et al., 2016), 0 to 1."""
    words = _words(given)

    def f1(wanted: Sequence[str]) -> float:
        shared = (Counter(words) & Counter(wanted)).total()
        return 2 * shared / (len(words) + len(wanted)) if shared else 0.0

    return max((f1(_words(answer)) for answer in answers), default=0.0)


def number_of(text: str, decimal: str = ".") -> Decimal | None:
    """Return the value of a number in a language's notation; None if the text has none.

    With a decimal point ``1,200``, ``−3.50``, ``1/4``; with a decimal comma ``1.200``, ``3,50`` and, because no group of three
    follows the point, ``3.5``.
    """
    match = _NUMBERS[decimal].search(_FRACTION.sub(r"\1/\2", text).replace("−", "-"))
    if match is None:
        return None
    above, _, below = match.group().partition("/")
    plain = re.sub(r"[' \u00a0\u2009\u202f]", "", above)
    if decimal == ",":
        grouped = re.fullmatch(r"-?\d{1,3}(?:\.\d{3})+(?:,\d+)?", plain)
        plain = plain.replace(".", "") if grouped else plain
        plain = plain.replace(",", ".")
    else:
        plain = plain.replace(",", "")
    try:
        return (Decimal(plain) / Decimal(below) if below else Decimal(plain)).normalize()
    except ArithmeticError:  # no number, or one that is implausibly large
        return None


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", text).casefold()
    return [word for word in re.findall(r"[^\W_]+", folded) if word not in _ARTICLES] or re.findall(
        r"\S+", folded
    )
