"""Sentences about many conditions or differences: a few by name, more by their number or range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isclose

from analysis import apa

MOST_TOLD = 8
"""Conditions whose values are told one by one; of more, a sentence tells the lowest and the highest, and a table holds all."""
MOST_DIFFERENCES_NAMED = 4
"""Largest number of differences between conditions that a sentence names; of more it gives the number, and a table lists them."""


def by_level(levels: Sequence[str], values: Sequence[str], sizes: Sequence[float]) -> str:
    """Return what a sentence says of a value by condition: all of a few conditions, of more the lowest and the highest."""
    if len(set(values)) == 1 < len(values) or len(values) > MOST_TOLD:
        return " to ".join(lowest_and_highest(levels, values, sizes))
    return (
        apa.listing([f"{value} in the {level}" for value, level in zip(values, levels, strict=True)])
        + " condition"
    )


def lowest_and_highest(
    levels: Sequence[str], values: Sequence[str], sizes: Sequence[float]
) -> tuple[str, ...]:
    """Return the lowest and the highest value, each with all conditions that have it; one phrase if all values are equal.

    The conditions given need not be all of a study, so none are called each condition.
    """
    if len(set(values)) == 1:
        return (f"{values[0]} {in_conditions(levels, each='each of ')}",)
    ends = (min(sizes), max(sizes))
    return tuple(
        dict.fromkeys(
            where_told(
                [
                    (level, value)
                    for level, value, size in zip(levels, values, sizes, strict=True)
                    if is_tied(size, end)
                ]
            )
            for end in ends
        )
    )


def is_tied(size: float, extreme: float) -> bool:
    """Whether a value is as extreme as another, apart from rounding."""
    return isclose(size, extreme, rel_tol=1e-9, abs_tol=1e-12)


def where_told(told: Iterable[tuple[str, str]], form: str = "{value} {where}") -> str:
    """Return values with their conditions, those that have the same value together."""
    by_value: dict[str, list[str]] = {}
    for level, value in told:
        by_value.setdefault(value, []).append(level)
    return apa.listing(
        [form.format(value=value, where=in_conditions(names)) for value, names in by_value.items()]
    )


def in_conditions(levels: Sequence[str], each: str = "") -> str:
    """Return a few conditions by name, of more their number after ``each``: ``in the a and b conditions``, ``in five conditions``."""
    if len(levels) > MOST_DIFFERENCES_NAMED:
        return f"in {each}{apa.worded(len(levels), 'condition')}"
    return f"in the {apa.listing(list(levels))} {'condition' if len(levels) == 1 else 'conditions'}"


def which_of(names: Sequence[str], of: int, noun: str = "difference") -> str:
    """Return a few by name, of more how many they are."""
    if len(names) <= MOST_DIFFERENCES_NAMED:
        return apa.listing(list(names))
    return f"all {apa.counted(of, noun)}" if len(names) == of else f"{len(names)} of {apa.counted(of, noun)}"
