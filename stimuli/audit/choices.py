"""Clues in the choices alone: position, length and rarity of the correct one, and how often each is correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stimuli.audit.balance import shared_answers
from stimuli.audit.findings import AuditFinding, ShareInterval, by_set, exact_interval, line_weights, whole
from stimuli.item import Item

SECTION = "choices"
_MOST_ANSWERS = 12


@dataclass(frozen=True)
class Heuristic:
    """A way to answer without reading: its accuracy with a simultaneous 95% interval, and chance accuracy."""

    name: str
    right: float
    items: float
    accuracy: ShareInterval
    chance: float

    @property
    def leaks(self) -> bool:
        """Return whether the heuristic reliably exceeds chance."""
        return self.accuracy.low > self.chance


@dataclass(frozen=True)
class ChoiceSet:
    """The choices of one set."""

    set_name: str
    # items with choices and an answer that a session shows. In a set whose answers depend on the condition the
    # places, the answers and what is right are means over lists
    items: float
    options: tuple[int, ...]  # numbers of choices that occur
    places: tuple[float, ...]  # how often the right answer stands in the first, second … place
    answers: tuple[tuple[str, float], ...]  # how often each answer is right, the most frequent first
    heuristics: tuple[Heuristic, ...]  # best first


@dataclass(frozen=True)
class Choices:
    """The choices of every set that has any."""

    sets: tuple[ChoiceSet, ...]

    def findings(self) -> list[AuditFinding]:
        """Return the heuristics that exceed chance."""
        return [
            AuditFinding(
                "mend",
                SECTION,
                f"{choice_set.set_name}: “{best.name}” is right for {best.right:g} of {best.items} items "
                f"({best.accuracy.estimate:.0%}, chance {best.chance:.0%})",
            )
            for choice_set in self.sets
            for best in [heuristic for heuristic in choice_set.heuristics if heuristic.leaks][:1]
        ]


def choices(items: Sequence[Item], *, every_line: bool = False) -> Choices | None:
    """Test what the choices of each set give away; None where no item has choices."""
    sets = []
    offered = by_set(item for item in items if item.choices and item.answer in item.choices)
    for set_name, members in offered.items():
        sets.append(_choice_set(set_name, members, line_weights(members, every_line=every_line)))
    return Choices(tuple(sets)) if sets else None


def _choice_set(set_name: str, items: Sequence[Item], weights: Sequence[Fraction]) -> ChoiceSet:
    lists = [list(item.choices or ()) for item in items]
    right = [choice.index(str(item.answer)) for choice, item in zip(lists, items, strict=True)]
    most = max(map(len, lists))
    places: dict[int, Fraction] = {}
    answers: dict[str, Fraction] = {}
    for item, place, weight in zip(items, right, weights, strict=True):
        places[place] = places.get(place, Fraction(0)) + weight
        answers[str(item.answer)] = answers.get(str(item.answer), Fraction(0)) + weight
    named: list[tuple[str, Callable[[list[str]], list[int]]]] = [
        (f"take choice {place + 1}", _at(place)) for place in range(most)
    ]
    if shared_answers(items):
        named += [(f"answer {answer}", _being(answer)) for answer in sorted(answers)]
    else:
        often = Counter(choice for options in lists for choice in options)
        named += [
            ("take the longest choice", lambda one: _extreme(one, len)),
            ("take the shortest choice", lambda one: _extreme(one, lambda choice: -len(choice))),
            ("take the choice that is rarest over all lists", lambda one: _extreme(one, lambda c: -often[c])),
            (
                "take the choice that is commonest over all lists",
                lambda one: _extreme(one, lambda c: often[c]),
            ),
        ]
    number = sum(weights, Fraction(0))
    expected = sum((w / len(one) for one, w in zip(lists, weights, strict=True)), Fraction(0)) / number
    chance = round(float(expected), 4)
    heuristics = []
    for name, pick in named:
        score = _score(pick, lists, right, weights)
        bounds = exact_interval(int(score), int(number), len(named))
        accuracy = ShareInterval(round(float(score / number), 4), bounds.low, bounds.high)
        heuristics.append(Heuristic(name, round(float(score), 2), whole(number), accuracy, chance))
    return ChoiceSet(
        set_name,
        whole(number),
        tuple(sorted(set(map(len, lists)))),
        tuple(whole(places.get(place, Fraction(0))) for place in range(most)),
        tuple(
            (answer, whole(often))
            for answer, often in sorted(answers.items(), key=lambda one: (-one[1], one[0]))[:_MOST_ANSWERS]
        ),
        tuple(sorted(heuristics, key=lambda heuristic: (-heuristic.accuracy.estimate, heuristic.name))),
    )


def _at(place: int) -> Callable[[list[str]], list[int]]:
    return lambda options: [place] if place < len(options) else []


def _being(answer: str) -> Callable[[list[str]], list[int]]:
    return lambda options: [options.index(answer)] if answer in options else []


def _extreme(options: list[str], key: Callable[[str], int]) -> list[int]:
    best = max(map(key, options))
    return [place for place, option in enumerate(options) if key(option) == best]


def _score(
    pick: Callable[[list[str]], list[int]],
    lists: Sequence[list[str]],
    right: Sequence[int],
    weights: Sequence[Fraction],
) -> Fraction:
    """Return the weighted number of items that a heuristic gets right."""
    score = Fraction(0)
    for options, answer, weight in zip(lists, right, weights, strict=True):
        picked = pick(options)
        if answer in picked:
            score += weight / len(picked)
    return score
