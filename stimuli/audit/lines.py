"""What a session shows of the lines of an items file, which holds every item once a condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from stimuli.item import Item


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
    """Tell whether the right answer of an item depends on its condition, as that of words and nonwords does."""
    first: dict[str, str | None] = {}
    return any(first.setdefault(item.item_id, item.answer) != item.answer for item in items)


def whole(value: Fraction) -> float:
    """Return a number of items: an int where it is whole, else two decimals."""
    return int(value) if value.denominator == 1 else round(float(value), 2)
