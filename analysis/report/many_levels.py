"""Says a value in each condition, or, of so many conditions that nobody would read them all, the ends of their range."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import apa

MOST_TOLD = 8
"""Conditions whose values are told one by one; of more, a sentence tells the lowest and the highest, and a table holds all."""


def by_level(levels: Sequence[str], told: Sequence[str], sizes: Sequence[float]) -> str:
    """Return what stands before "condition" in a sentence.

    Parameters
    ----------
    levels : sequence of str
    told : sequence of str
        The value of each level in words.
    sizes : sequence of float
        By which the lowest and the highest are found.

    Returns
    -------
    str
        ``M = 92% in the intact and M = 80% in the final``; of many ``from 12% in the REO-REV to 92% in the BASE``, or
        ``92% in each``.
    """
    each = [f"{value} in the {level}" for value, level in zip(told, levels, strict=True)]
    if len(each) <= MOST_TOLD:
        return apa.listing(each)
    order = sorted(range(len(each)), key=lambda place: sizes[place])
    if len(set(told)) == 1:
        return f"{told[0]} in each"
    return f"from {each[order[0]]} to {each[order[-1]]}"
