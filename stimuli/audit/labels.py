"""Answers that are in doubt: where a rule, taken at its word, gives a text the other answer, or a source says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stimuli.audit.agreement import first_lines
from stimuli.audit.findings import Finding, counted, quoted
from stimuli.audit.grouping import shown_text
from stimuli.audit.intervals import exact_interval
from stimuli.item import Item

if TYPE_CHECKING:
    from stimuli.htest import Rule

SECTION = "labels"
DISPUTED = "disputed"
"""Covariate by which the maker of an item says that its answer is in doubt: a text with the reason, or 1."""

_RULE = "rule:"
CHANCE = 0.5
"""Share of texts of two classes to which a rule gives the right answer by chance."""


@dataclass(frozen=True)
class Doubt:
    """One item whose answer is in doubt, with the reason."""

    set_name: str
    item: str
    role: str
    text: str
    answer: str
    reason: str


@dataclass(frozen=True)
class Kept:
    """How many changed texts of a set still follow its rule, at one level of a factor.

    Attributes
    ----------
    set_name, level : str
    items : int
        Items whose text the level changes.
    kept : int
        Those to whose changed text the rule still gives the right answer.
    low : float
        Lower bound of their share (exact, 95%, simultaneous over all sets and levels).
    """

    set_name: str
    level: str
    items: int
    kept: int
    low: float


@dataclass(frozen=True)
class Labels:
    """Items looked at, those whose answers are in doubt, and what is left of rules in changed texts."""

    checked: int
    doubts: tuple[Doubt, ...]
    kept: tuple[Kept, ...] = ()

    def findings(self) -> list[Finding]:
        """Name the doubtful answers of each set."""
        told = []
        for set_name in dict.fromkeys(one.set_name for one in self.doubts):
            own = [one.text for one in self.doubts if one.set_name == set_name]
            told.append(
                Finding("mend", SECTION, f"{set_name}: {counted(len(own), 'answer')} in doubt: {quoted(own)}")
            )
        return [*told, *self._of_kept()]

    def _of_kept(self) -> list[Finding]:
        """Name the sets in which a level that takes evidence away leaves it."""
        told = []
        for level in dict.fromkeys(one.level for one in self.kept):
            left = [one for one in self.kept if one.level == level and one.low > CHANCE]
            if left:
                named = ", ".join(f"{one.set_name} ({one.kept} of {one.items})" for one in left)
                told.append(
                    Finding(
                        "look",
                        SECTION,
                        f"level {level}: changed texts still follow their rule in {named}: these rules are about more than "
                        "letters, and the level takes no evidence away there",
                    )
                )
        return told


def labels(items: Sequence[Item]) -> Labels | None:
    """Hold answers against the rule of their set and the word of their maker; None where neither speaks.

    Parameters
    ----------
    items : sequence of Item
        Items of every role; of an item in several conditions the first line counts.
    """
    checked = 0
    doubts = []
    for set_name in dict.fromkeys(item.set_name for item in items):
        own = first_lines([item for item in items if item.set_name == set_name and item.answer is not None])
        predicate = _predicate(own)
        for item in own:
            if predicate is None and DISPUTED not in item.covariates:
                continue
            checked += 1
            reason = _reason(item, predicate)
            if reason:
                doubts.append(
                    Doubt(set_name, item.item_id, item.role, shown_text(item), str(item.answer), reason)
                )
    return Labels(checked, tuple(doubts), _kept(items)) if checked else None


def _kept(items: Sequence[Item]) -> tuple[Kept, ...]:
    """Count the changed texts to which the rule of their set still gives the right answer."""
    counts: dict[tuple[str, str], list[bool]] = {}
    for set_name in dict.fromkeys(item.set_name for item in items):
        own = [item for item in items if item.set_name == set_name and item.answer is not None]
        predicate = _predicate(own)
        if predicate is None:
            continue
        for item in own:
            text = shown_text(item)
            if item.role == "test" and text and item.intact and text != next(iter(item.intact.values())):
                level = [*item.condition.values(), ""][: len(item.condition) or 1][-1]
                counts.setdefault((set_name, level), []).append(predicate(text) == item.answer)
    return tuple(
        Kept(set_name, level, len(kept), sum(kept), exact_interval(sum(kept), len(kept), len(counts)).low)
        for (set_name, level), kept in counts.items()
    )


def rules_of(items: Sequence[Item]) -> Mapping[str, Rule]:
    """Return the rules that items were made by, or, for released H-TEST items, that of their task."""
    from stimuli.htest import rules

    operations = {item.provenance["operation"] for item in items}
    names = {one.removeprefix(_RULE) for one in operations if one.startswith(_RULE)}
    if not names and items and all("H-TEST" in item.provenance["source"] for item in items):
        names = {item.condition.get("task", item.set_name) for item in items}
    return {name: rules()[name] for name in sorted(names) if name in rules()}


def _predicate(items: Sequence[Item]) -> Callable[[str], str] | None:
    found = list(rules_of(items).values())
    return found[0].predicate if len(found) == 1 and all(len(item.shown) == 1 for item in items) else None


def _reason(item: Item, predicate: Callable[[str], str] | None) -> str | None:
    said = item.covariates.get(DISPUTED)
    if said:
        return said if isinstance(said, str) else "its maker disputes it"
    given = None if predicate is None else predicate(shown_text(item))
    return None if given in (None, item.answer) else f"the rule gives {given}"
