"""How many of the exchanges, insertions or deletions that an operation asks for a change made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from stimuli.errors import UserError
from stimuli.scramble.changes import Change
from stimuli.scramble.exchanges import exchanges_needed
from stimuli.scramble.options import FEWER
from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.words import clusters_of


def count_asked(operation: Operation | str) -> int | None:
    """Return how many exchanges, insertions or deletions an operation asks for; None where it has no such count."""
    if isinstance(operation, str):
        try:
            operation = parse_operation(operation)
        except UserError:
            return None
    if FEWER not in operation.type.options:
        return None
    return int(dict(operation.options).get("count", 1))


def count_made(change: Change | Mapping[str, Any]) -> int:
    """Return how many letters a change put in or took out, or the fewest exchanges that make it."""
    made = change if isinstance(change, Mapping) else change._asdict()
    edits = int(made.get("inserted", 0) + made.get("deleted", 0))
    if edits:
        return edits
    letters = [one.lower() for one in clusters_of(made["intact"])]
    after = [str(place) if place is None else letters[place] for place in made["permutation"]]
    return exchanges_needed(letters, after)


def words_by_count(changes: Iterable[Change | Mapping[str, Any]]) -> dict[int, int]:
    """Return the number of changed words by how many exchanges, insertions or deletions they took."""
    return dict(sorted(Counter(map(count_made, changes)).items()))
