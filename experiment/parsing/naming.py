"""How a label is spelt where a reply names it, and where only a longer label or a saying has its letters.

"Agree" is not named by "strongly agree" where that is a label too, nor is it by "I somewhat agree" on such a scale; "no" is not named
by "no doubt".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from experiment.parsing.text import fold, words

MOST_LABELS = 4096
"""Labels whose patterns are kept: a study has a handful."""
BLANK = "\N{MIDDLE DOT}"
"""Stands where a letter of something else stood than the label that is looked for."""
_BETWEEN = r"[ ,(*_\"'-]{1,4}"
DETERMINERS = r"(?:(?:the|this|that|given|das|dieses|die|diese|la|esta|el|este) ){1,2}"


@dataclass(frozen=True)
class Told:
    """A reply as it is searched for labels.

    ``shown``: for each label the text, of the same length, in which longer labels that hold it are blank.
    """

    text: str
    labels: tuple[str, ...]
    shown: Mapping[str, str]

    def places(self, label: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Return where a label is named between two places, as (begin, end)."""
        text = self.shown[label][start:end]
        return [(start + m.start(), start + m.end()) for m in _named(label).finditer(text)]

    def others(self, label: str) -> list[str]:
        """Return the other labels."""
        return [other for other in self.labels if other != label]


def told(reply: str, labels: Sequence[str]) -> Told:
    """Return a tidy reply with words of longer labels put in their order, and sayings that hold a label blank.

    Only a label that is another with words before or behind it is put in order: "agree strongly" becomes "strongly agree".
    """
    together = tuple(labels)
    for turned, label in _turned(together):
        reply = label.join(turned.split(reply))
    if not _have_idioms(together):
        reply = pattern("idiom").sub(_blank, reply)
    return Told(reply, together, {label: _without_longer(reply, label, together) for label in together})


@lru_cache(MOST_LABELS)
def _naming_the_item(label: str) -> re.Pattern[str] | None:
    """Return where a label that is a word for items names the item and no answer: "the word is", "this word 'garden'"."""
    if re.fullmatch(words("item"), label, re.IGNORECASE) is None:
        return None
    quoted = r"[\"'“„«*_`]{1,3}[^\"'”“»*_`\n]{1,60}[\"'”“»*_`]{1,3}"
    being = rf"(?:{words('being')}|isn't|is|was|looks|seems|appears|cannot|can't|does|has|contains|you|shown|given|above|below)"
    return re.compile(
        rf"(?<!\w){DETERMINERS}(?P<noun>{spelt(label)})(?= {quoted}| {being}(?!\w))", re.IGNORECASE
    )


@lru_cache(MOST_LABELS)
def _named(label: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){spelt(label)}(?!\w)", flags(label))


@lru_cache(MOST_LABELS)
def _turned(labels: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return how labels of several words are told in another order, and the label that is meant."""
    found = []
    for label in labels:
        for other in labels:
            more = _more(other, label)
            if more is None or _is_negation(more):
                continue
            turned = f"{other} {more}" if fold(label).endswith(fold(other)) else f"{more} {other}"
            if fold(turned) not in map(fold, labels):
                found.append((re.compile(rf"(?<!\w){re.escape(turned)}(?!\w)", re.IGNORECASE), label))
    return tuple(found)


@lru_cache(MOST_LABELS)
def _have_idioms(labels: tuple[str, ...]) -> bool:
    return any(pattern("idiom").search(label) for label in labels)


def _blank(found: re.Match[str]) -> str:
    return BLANK * len(found[0])


def is_graded(label: str, reply: Told) -> bool:
    """Say whether a reply gives a word of a scale more or less than the label has: "somewhat agree" is not "agree"."""
    return any(pattern.search(reply.shown[label]) for pattern in _graded(label, reply.labels))


@lru_cache(MOST_LABELS)
def _graded(label: str, labels: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return patterns of a label with a word of degree beside it; none where no longer label has it."""
    longer = [more for other in labels if (more := _more(label, other)) is not None]
    if not longer:
        return ()
    degree = "|".join([words("degree"), *(re.escape(more) for more in longer if not _is_negation(more))])
    by_label = rf"(?<!\w){spelt(label)}(?!\w)"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"(?<!\w)(?:{degree}){_BETWEEN}(?:\w+ ){{0,2}}{by_label}",
            rf"{by_label}{_BETWEEN}(?:\w+ ){{0,2}}(?:{degree})(?!\w)",
        )
    )


@lru_cache(MOST_LABELS)
def spelt(label: str) -> str:
    """Return a label as a pattern; "nonword" is also written non-word and non word."""
    return re.sub(r"\A(?i:(non|pseudo))(?=\w)", r"\1[- ]?", re.escape(label))


@lru_cache(MOST_LABELS)
def cased(label: str) -> str:
    """Return a label as a pattern in which a letter keeps its case, for an article is none."""
    return spelt(label) if len(label) == 1 else f"(?i:{spelt(label)})"


def flags(label: str) -> re.RegexFlag:
    """Return the flags with which :func:`spelt` is searched."""
    return re.IGNORECASE if len(label) > 1 else re.RegexFlag(0)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return the words of a kind as a pattern."""
    return re.compile(rf"(?<!\w)(?:{words(name)})(?!\w)", re.IGNORECASE)


def _is_negation(more: str) -> bool:
    return pattern("denied").search(more) is not None or pattern("nay").search(more) is not None


def _more(label: str, longer: str) -> str | None:
    """Return the words that a longer label has before or behind another, None where it is no such label."""
    one, other = fold(label), fold(longer)
    if other.endswith(f" {one}"):
        return other[: -len(one) - 1]
    return other[len(one) + 1 :] if other.startswith(f"{one} ") else None


def _without_longer(reply: str, label: str, labels: tuple[str, ...]) -> str:
    item = _naming_the_item(label)
    if item is not None:
        reply = item.sub(lambda found: found[0][: -len(found["noun"])] + BLANK * len(found["noun"]), reply)
    for longer in _longer(label, labels):
        reply = longer.sub(_blank, reply)
    return reply


@lru_cache(MOST_LABELS)
def _longer(label: str, labels: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of longer labels that hold a label."""
    found = []
    for other in labels:
        spellings = (other, re.sub(r"\A(non|pseudo)(?=\w)", r"\1 ", other, flags=re.IGNORECASE))
        within = rf"(?<!\w){re.escape(label)}(?!\w)"
        if other != label and any(
            len(one) > len(label) and re.search(within, one, flags(label)) for one in spellings
        ):
            found.append(re.compile(rf"(?<!\w){spelt(other)}(?!\w)", flags(other)))
    return tuple(found)
