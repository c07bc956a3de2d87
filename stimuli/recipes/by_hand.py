"""Scrambles that the user made by hand: read from a column per level, checked against the intact text, described."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stimuli.errors import UserError
from stimuli.scramble import changes_between
from stimuli.scramble.text import LeftIntact, Scrambled
from stimuli.scramble.words import Word, find_words, nfc

BY_HAND = "hand-made"
LEFT_BY_HAND = "left by hand"


@dataclass(frozen=True)
class ByHand:
    """A level whose texts stand in a column."""

    column: str


def by_hand(
    factor: str | None, levels: Mapping[str, Any], columns: Collection[str]
) -> tuple[dict[str, ByHand], dict[str, Any]]:
    """Part the levels of a factor into those made by hand and those that an operation makes."""
    made: dict[str, ByHand] = {}
    operations: dict[str, Any] = {}
    for level, given in levels.items():
        own = f"{factor}:{level}"
        if isinstance(given, ByHand):
            made[level] = given
        elif isinstance(given, str) and given.strip().lower().replace("_", "-").replace(" ", "-") == BY_HAND:
            made[level] = ByHand(own)
        elif isinstance(given, Mapping) and set(given) == {"column"}:
            made[level] = ByHand(str(given["column"]))
        elif own in columns:
            raise UserError(
                f"the table has a column {own!r} made by hand, but level {level!r} is to be made by {given!r}",
                mend=f"Write {level}: {BY_HAND}, or take the column out.",
            )
        else:
            operations[level] = given
    return made, operations


def describe_by_hand(intact: str, shown: str, targets: Collection[int] | None, *, column: str) -> Scrambled:
    """Describe a text made by hand as a scramble of ours is described."""
    before, after = nfc(intact), nfc(shown)
    words, found = find_words(before), find_words(after)
    if len(words) != len(found):
        raise UserError(
            f"column {column!r}: {shown!r} has {len(found)} words, the intact text {len(words)}",
            mend="Change letters within words; spaces, hyphens and marks stay as they are.",
        )
    if _between(before, words) != _between(after, found):
        place = next(
            place
            for place, pair in enumerate(zip(_between(before, words), _between(after, found), strict=True))
            if pair[0] != pair[1]
        )
        raise UserError(
            f"column {column!r}: {shown!r} has other spaces or marks than the intact text "
            + (f"before {words[place].text!r}" if place < len(words) else "at its end"),
            mend="Change letters within words; spaces, hyphens and marks stay as they are.",
        )
    for word, made in zip(words, found, strict=True):
        if word.text != made.text and targets is not None and word.index not in targets:
            raise UserError(
                f"column {column!r}: {shown!r} changes word {word.index + 1}, {word.text!r} to {made.text!r}, "
                "which is not a word to change",
                mend="Mark that word as well, or leave it as it is.",
            )
    changes = changes_between(before, after, "any")
    if not changes:
        raise UserError(
            f"column {column!r}: {shown!r} is the intact text", mend="Change a word, or leave the row out."
        )
    changed = {change.word for change in changes}
    left = sorted(set(targets or ()) - changed)
    return Scrambled(
        after, changes, tuple(LeftIntact(place, words[place].text, LEFT_BY_HAND) for place in left)
    )


def _between(text: str, words: Sequence[Word]) -> list[str]:
    ends = [0, *(word.end for word in words)]
    starts = [*(word.start for word in words), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]
