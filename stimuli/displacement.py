"""How far changes moved letters: the one number that tables of conditions and audits share."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from stimuli.item import ChangeRecord


def displacement(changes: Iterable[ChangeRecord]) -> float:
    """Return how many places displaced letters (words, sentences) moved on average; 0 where none moved."""
    moved = [
        abs(place - source)
        for change in changes
        for place, source in enumerate(change["permutation"])
        if source is not None and source != place
    ]
    return fmean(moved) if moved else 0.0
