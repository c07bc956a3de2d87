"""How a label is spelt where a reply names it, and where only a longer label or a saying has its letters.

"Agree" is not named by "strongly agree" where that is a label too, nor is it by "I somewhat agree" on such a scale; "no" is not named
by "no doubt".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from experiment.parsing.text import fold, words

_BLANK = "\N{MIDDLE DOT}"
_BETWEEN = r"[ ,(*_\"'-]{1,4}"


@dataclass(frozen=True)
class Told:
    """A reply as it is searched for labels.

    Attributes
    ----------
    text : str
        The reply.
    labels : tuple of str
    shown : mapping of str to str
        For each label the text, of the same length, in which longer labels that hold it are blank.
    """

    text: str
    labels: tuple[str, ...]
    shown: Mapping[str, str]

    def places(self, label: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Return where a label is named between two places, as (begin, end)."""
        text = self.shown[label][start:end]
        return [
            (start + m.start(), start + m.end())
            for m in re.finditer(rf"(?<![\w-]){spelt(label)}(?!\w)", text, flags(label))
        ]

    def others(self, label: str) -> list[str]:
        """Return the other labels."""
        return [other for other in self.labels if other != label]


def told(reply: str, labels: Sequence[str]) -> Told:
    """Return a tidy reply with words of longer labels put in their order, and sayings that hold a label blank.

    Notes
    -----
    Only a label that is another with words before or behind it is put in order: "agree strongly" becomes "strongly agree".
    """
    for label in labels:
        for other in labels:
            more = _more(other, label)
            if more is None or _is_negation(more):
                continue
            turned = f"{other} {more}" if fold(label).endswith(fold(other)) else f"{more} {other}"
            if fold(turned) in map(fold, labels):
                continue
            parts = re.split(rf"(?<!\w){re.escape(turned)}(?!\w)", reply, flags=re.IGNORECASE)
            reply = label.join(parts)
    if not any(_pattern("idiom").search(label) for label in labels):
        reply = _pattern("idiom").sub(lambda found: _BLANK * len(found[0]), reply)
    return Told(reply, tuple(labels), {label: _without_longer(reply, label, labels) for label in labels})


def is_graded(label: str, reply: Told) -> bool:
    """Say whether a reply gives a word of a scale more or less than the label has: "somewhat agree" is not "agree"."""
    longer = [more for other in reply.labels if (more := _more(label, other)) is not None]
    if not longer:
        return False
    degree = "|".join([words("degree"), *(re.escape(more) for more in longer if not _is_negation(more))])
    by_label = rf"(?<!\w){spelt(label)}(?!\w)"
    return any(
        re.search(pattern, reply.shown[label], re.IGNORECASE)
        for pattern in (
            rf"(?<!\w)(?:{degree}){_BETWEEN}(?:\w+ ){{0,2}}{by_label}",
            rf"{by_label}{_BETWEEN}(?:\w+ ){{0,2}}(?:{degree})(?!\w)",
        )
    )


def spelt(label: str) -> str:
    """Return a label as a pattern; "nonword" is also written non-word and non word."""
    return re.sub(r"\A(?i:(non|pseudo))(?=\w)", r"\1[- ]?", re.escape(label))


def cased(label: str) -> str:
    """Return a label as a pattern in which a letter keeps its case, for an article is none."""
    return spelt(label) if len(label) == 1 else f"(?i:{spelt(label)})"


def flags(label: str) -> re.RegexFlag:
    """Return the flags with which :func:`spelt` is searched."""
    return re.IGNORECASE if len(label) > 1 else re.RegexFlag(0)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words(name)})(?!\w)", re.IGNORECASE)


def _is_negation(more: str) -> bool:
    return _pattern("denied").search(more) is not None or _pattern("nay").search(more) is not None


def _more(label: str, longer: str) -> str | None:
    """Return the words that a longer label has before or behind another, None where it is no such label."""
    one, other = fold(label), fold(longer)
    if other.endswith(f" {one}"):
        return other[: -len(one) - 1]
    return other[len(one) + 1 :] if other.startswith(f"{one} ") else None


def _without_longer(reply: str, label: str, labels: Sequence[str]) -> str:
    for other in labels:
        spellings = (other, re.sub(r"\A(non|pseudo)(?=\w)", r"\1 ", other, flags=re.IGNORECASE))
        within = rf"(?<!\w){re.escape(label)}(?!\w)"
        if other != label and any(
            len(one) > len(label) and re.search(within, one, flags(label)) for one in spellings
        ):
            longer = rf"(?<!\w){spelt(other)}(?!\w)"
            reply = re.sub(longer, lambda found: _BLANK * len(found[0]), reply, flags=flags(other))
    return reply
