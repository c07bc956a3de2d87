"""What conditions did to their items, in numbers: for the table that a build prints and for the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from stimuli.displacement import displacement
from stimuli.item import ChangeRecord, Item, Role
from stimuli.scramble.doses import count_asked, words_by_count
from stimuli.scramble.words import nfc, word_starts


@dataclass(frozen=True)
class ConditionSummary:
    """One condition of one set of materials."""

    set_name: str  # the materials
    condition: Mapping[str, str]  # level by factor
    items: int  # number of items
    # mean number of changed words an item: words whose letters changed, or words that left their place (numbers and
    # signs that moved with them are no words, as they are none of share_changed)
    changed_words: float
    changed_words_sd: float | None  # standard deviation of that number over items; None for a single item
    share_changed: float  # share of all words that changed, 0 to 1
    moved_sentences: float  # mean number of sentences an item that left their place
    # mean number of letters that left their place in a changed word, of words in a clause or sentence, of sentences
    # in a text: after unit
    displaced: float
    # mean distance from their place of those that left it, in places: the sum of all distances over the number of
    # pieces displaced; 0 where none was
    displacement: float
    # mean of the records' mean_displacement over changed words: the distance averaged over all letters of a word,
    # those that stayed included, in places
    mean_displacement: float
    substituted: int  # letters replaced, added and taken out, over all items
    inserted: int
    deleted: int
    left_intact: Mapping[str, int]  # number of words that were meant to change and stay, by reason
    operations: tuple[str, ...]  # operations that made the items, as in their provenance
    asked: int | None = None  # how many exchanges, insertions or deletions a word the operation asks for
    # number of changed words by how many of them they took; empty where none are asked for
    words_by_count: Mapping[int, int] = field(default_factory=dict)
    unit: str = "letter"  # what left its place: letter, word or sentence; several joined by ,

    @property
    def fewer(self) -> Mapping[int, int]:
        """Number of changed words by how many they took, without those that took the whole count."""
        return {made: words for made, words in self.words_by_count.items() if made != self.asked}


def describe_conditions(
    items: Sequence[Item], *, roles: Sequence[Role] = ("test",)
) -> list[ConditionSummary]:
    """Describe what each condition did to its items."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Item]] = {}
    for item in items:
        if item.role in roles:
            groups.setdefault((item.set_name, tuple(item.condition.items())), []).append(item)
    return [_summary(name, dict(condition), group) for (name, condition), group in groups.items()]


def _summary(set_name: str, condition: Mapping[str, str], items: Sequence[Item]) -> ConditionSummary:
    changes = [change for item in items for change in item.changes]
    numbers = [_changed_words(item) for item in items]
    words = sum(len(word_starts(nfc(text))) for item in items for text in item.intact.values())
    operations = tuple(dict.fromkeys(item.provenance["operation"] for item in items))
    asked = count_asked(operations[0]) if len(operations) == 1 else None
    return ConditionSummary(
        set_name=set_name,
        condition=condition,
        items=len(items),
        changed_words=fmean(numbers),
        changed_words_sd=stdev(numbers) if len(numbers) > 1 else None,
        share_changed=sum(numbers) / words if words else 0.0,
        moved_sentences=fmean(_displaced(item, "sentence") for item in items),
        displaced=_mean([change["displaced"] for change in changes]),
        displacement=displacement(changes),
        mean_displacement=_mean([change["mean_displacement"] for change in changes]),
        substituted=sum(_count(change, "substituted") for change in changes),
        inserted=sum(_count(change, "inserted") for change in changes),
        deleted=sum(_count(change, "deleted") for change in changes),
        left_intact=_reasons(items),
        operations=operations,
        asked=asked,
        words_by_count={} if asked is None else words_by_count(_of_letters(changes)),
        unit=", ".join(dict.fromkeys(str(change.get("unit", "letter")) for change in changes)) or "letter",
    )


def _of_letters(changes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [change for change in changes if change.get("unit", "letter") == "letter"]


def _changed_words(item: Item) -> int:
    letters = sum(change.get("unit", "letter") == "letter" for change in item.changes)
    return letters + sum(_displaced_words(change) for change in item.changes if change.get("unit") == "word")


def _displaced_words(change: ChangeRecord) -> int:
    """Count the words among what left its place in a clause: papers moved numbers and signs between two spaces with them."""
    pieces = change["intact"].split(" ")
    if len(pieces) != len(change["permutation"]):
        return change["displaced"]
    return sum(
        source is not None and source != place and bool(word_starts(nfc(pieces[source])))
        for place, source in enumerate(change["permutation"])
    )


def _displaced(item: Item, unit: str) -> int:
    return sum(change["displaced"] for change in item.changes if change.get("unit") == unit)


def _count(change: Mapping[str, object], name: str) -> int:
    value = change.get(name, 0)
    return value if isinstance(value, int) else 0


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _reasons(items: Sequence[Item]) -> dict[str, int]:
    told = Counter(left["reason"] for item in items for left in item.left_intact)
    counted: Counter[str] = Counter()
    for reasons, words in told.items():
        # A reason names every operation that it holds for: "transpose:initial: too short; …".
        counted.update(dict.fromkeys([one.rpartition(": ")[2] for one in reasons.split("; ")], words))
    return dict(sorted(counted.items()))
