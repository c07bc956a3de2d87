"""Levels of a factor that show the same: nothing is compared where two conditions are one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stimuli.audit.findings import Finding, counted
from stimuli.item import Item

SECTION = "changes"


@dataclass(frozen=True)
class Alike:
    """Two levels of a factor that show items alike.

    Attributes
    ----------
    set_name, factor : str
    levels : tuple of str
        The two.
    same : int
        Items shown alike in both, all else equal.
    compared : int
        Items that either of the two changes (all items where neither changes any).
    """

    set_name: str
    factor: str
    levels: tuple[str, str]
    same: int
    compared: int

    def finding(self) -> Finding:
        """Say how many items the two levels show alike, and what to do where it is all of them."""
        which = f"{self.set_name}: levels {' and '.join(self.levels)} of {self.factor} show"
        if self.same == self.compared:
            return Finding(
                "mend",
                SECTION,
                f"{which} the same in every item: there is nothing to compare; take one of them out, change its options, "
                "or take texts in which they differ",
            )
        items = counted(self.compared, "item that they change", "items that they change")
        return Finding("look", SECTION, f"{which} the same in {self.same:,} of {items}")


def levels_alike(items: Sequence[Item]) -> tuple[Alike, ...]:
    """Find levels of factors within items that show some items alike.

    Items that no level of the two changes (the intact condition crossed with options of a scramble) count only where
    the two change no item at all.
    """
    lines: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Item]] = {}
    for item in items:
        for factor, level in item.condition.items():
            others = tuple((name, there) for name, there in item.condition.items() if name != factor)
            key = item.set_name, factor, (("", item.item_id), *others)
            lines.setdefault(key, {})[level] = item
    pairs: dict[tuple[str, str, str, str], list[tuple[bool, bool]]] = {}
    for (set_name, factor, _), by_level in lines.items():
        for (one, first), (other, second) in itertools.combinations(by_level.items(), 2):
            pairs.setdefault((set_name, factor, one, other), []).append(
                (_changes_anything(first) or _changes_anything(second), _same(first, second))
            )
    found = []
    for (set_name, factor, one, other), compared in pairs.items():
        changed = [same for changes, same in compared if changes] or [same for _, same in compared]
        if any(changed):
            found.append(Alike(set_name, factor, (one, other), sum(changed), len(changed)))
    return tuple(found)


def _changes_anything(item: Item) -> bool:
    return bool(item.changes) or any(item.shown.get(field) != text for field, text in item.intact.items())


def _same(one: Item, other: Item) -> bool:
    return (one.shown, one.choices, one.answer) == (other.shown, other.choices, other.answer)
