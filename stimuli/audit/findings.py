"""Findings of the audit, intervals of proportions correct, and weights of lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeVar

from stimuli.item import Item
from stimuli.lexicon import Strictness

Level = Literal["grave", "mend", "look"]
LEVELS: tuple[Level, ...] = ("grave", "mend", "look")


@dataclass(frozen=True)
class AuditFinding:
    """A finding."""

    # grave: results could not be trusted (one text under two answers, test texts among the exemplars); mend: a
    # confound that a reviewer would ask about; look: to be judged by a person
    level: Level
    section: str  # section of the page that holds the details
    text: str  # one sentence

    def line(self) -> str:
        """Return the finding as a line for the command line."""
        return f"{self.level}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Settings of a study that the sections of an audit use."""

    language: str
    seed: int = 0
    tokenizer: Any = None  # what cuts a text into tokens, by itself or by its method ``tokenize``
    lists: Mapping[str, str] | None = None  # the list of each item, by its id
    by_design: Collection[str] = ()  # covariates that groups of items differ in on purpose
    every_line: bool = False  # whether a session shows each line of an item
    strictness: Strictness = "words"  # which changed forms are words that the study avoids


class InSet(Protocol):
    """An object that belongs to a set of items."""

    @property
    def set_name(self) -> str:
        """Return the name of the set."""
        ...


Member = TypeVar("Member", bound=InSet)


def by_set(members: Iterable[Member]) -> dict[str, list[Member]]:
    """Return items, or what was found in them, by their set, sets in the order of their first member."""
    sets: dict[str, list[Member]] = {}
    for member in members:
        sets.setdefault(member.set_name, []).append(member)
    return sets


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 item``, ``2 items``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def quoted(texts: Sequence[str], most: int = 3) -> str:
    """Return the first few texts in quotation marks, and how many more there are."""
    shown = ", ".join(f"“{' '.join(text.split())}”" for text in texts[:most])
    return shown + (f" and {len(texts) - most} more" if len(texts) > most else "")


DIGITS = 4
LEVEL = 0.95
_PSEUDO = 2


@dataclass(frozen=True)
class ShareInterval:
    """A share with its interval, rounded to four decimals."""

    estimate: float
    low: float
    high: float


def sidak(tests: int, level: float = LEVEL) -> float:
    """Return the error that each of some tests may have so that all intervals hold together (Šidák, 1967)."""
    return 1.0 - math.pow(level, 1.0 / max(tests, 1))


def exact_interval(right: int, number: int, tests: int = 1) -> ShareInterval:
    """Return the Clopper–Pearson interval of a share, simultaneous over ``tests`` of them (Clopper & Pearson, 1934)."""
    from scipy.special import betaincinv

    half = sidak(tests) / 2
    low = 0.0 if right == 0 else float(betaincinv(right, number - right + 1, half))
    high = 1.0 if right == number else float(betaincinv(right + 1, number - right, 1 - half))
    return ShareInterval(round(right / number, DIGITS), round(low, DIGITS), round(high, DIGITS))


def cluster_interval(scores: Sequence[float], weights: Sequence[float], tests: int = 1) -> ShareInterval:
    """Return the interval of a weighted share over clusters, simultaneous over ``tests`` of them.

    Members of a pair are answered alike more or less often than strangers, so the cluster is what varies: the
    share is a ratio of cluster totals, its variance that of the linearised totals (Cochran, 1977, eq. 6.13), its
    distribution Student's t. Two clusters that are all right and two that are all wrong are added, after Agresti
    and Coull (1998), so that the interval has a width even where all clusters agree.
    """
    from scipy.special import stdtrit

    estimate = math.fsum(scores) / math.fsum(weights)
    usual = math.fsum(weights) / len(weights)
    score = [*scores, *[usual] * _PSEUDO, *[0.0] * _PSEUDO]
    weight = [*weights, *[usual] * (2 * _PSEUDO)]
    centre = math.fsum(score) / math.fsum(weight)
    number = len(weight)
    squares = math.fsum((s - centre * w) ** 2 for s, w in zip(score, weight, strict=True))
    error = math.sqrt(number / (number - 1) * squares) / math.fsum(weight)
    reach = float(stdtrit(number - 1, 1 - sidak(tests) / 2)) * error
    return ShareInterval(
        round(estimate, DIGITS),
        round(max(min(centre - reach, estimate), 0.0), DIGITS),
        round(min(max(centre + reach, estimate), 1.0), DIGITS),
    )


def line_weights(items: Sequence[Item], *, every_line: bool = False) -> list[Fraction]:
    """Return how often a session shows each line of a set, on average over the lists.

    A Latin square shows each item once a session, in every condition equally often over the lists: a line of an
    item in three conditions weighs a third, a filler's only line weighs 1.
    """
    if every_line:
        return [Fraction(1)] * len(items)
    lines = Counter(item.item_id for item in items)
    return [Fraction(1, lines[item.item_id]) for item in items]


def answers_vary(items: Sequence[Item]) -> bool:
    """Return whether the right answer of an item depends on its condition, as that of words and nonwords does."""
    first: dict[str, str | None] = {}
    return any(first.setdefault(item.item_id, item.answer) != item.answer for item in items)


def whole(value: Fraction) -> float:
    """Return a number of items: an int where it is whole, else two decimals."""
    return int(value) if value.denominator == 1 else round(float(value), 2)
