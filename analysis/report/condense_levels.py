"""Sentences about many conditions or differences: a few by name, more by their number or range."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import apa

MOST_TOLD = 8
"""Conditions whose values are told one by one; of more, a sentence tells the lowest and the highest, and a table holds all."""
MOST_DIFFERENCES_NAMED = 4
"""Largest number of differences between conditions that a sentence names; of more it gives the number, and a table lists them."""


def by_level(levels: Sequence[str], values: Sequence[str], sizes: Sequence[float]) -> str:
    """Return the words before "condition" in a sentence."""
    phrases = [f"{value} in the {level}" for value, level in zip(values, levels, strict=True)]
    if len(set(values)) == 1 < len(values):
        return f"{values[0]} in each"
    if len(phrases) <= MOST_TOLD:
        return apa.listing(phrases)
    order = sorted(range(len(phrases)), key=lambda index: sizes[index])
    return f"{phrases[order[0]]} condition to {phrases[order[-1]]}"


def which_of(names: Sequence[str], of: int, noun: str = "difference") -> str:
    """Return a few by name, of more how many they are."""
    if len(names) <= MOST_DIFFERENCES_NAMED:
        return apa.listing(list(names))
    return f"all {apa.counted(of, noun)}" if len(names) == of else f"{len(names)} of {apa.counted(of, noun)}"
