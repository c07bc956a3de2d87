"""The effect of each level of a factor on a text, as recorded in the items: nothing, a change, other letters, no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from analysis.tables import Tables, mapping_in
from stimuli.scramble.types import scramble_types

Does = Literal["intact", "changed", "substituted", "withheld"]

SUBSTITUTES = ("substitute:all", "other symbols", "published SUB")
"""Operations that replace all letters (symbols) of the words: Scrambled Bench's *Sub*."""
WITHHELD = "withheld"
_NOTHING = "none"


@dataclass(frozen=True)
class LevelMeanings:
    """The meanings of the levels of one factor."""

    factor: str
    intact: str | None
    substituted: tuple[str, ...]
    withheld: tuple[str, ...]
    changed: tuple[str, ...]  # levels that scramble
    unknown: tuple[str, ...]  # levels of which the items do not say what was done to the text

    @property
    def without_evidence(self) -> tuple[str, ...]:
        """Levels at which an answer cannot rest on the text."""
        return (*self.substituted, *self.withheld)


def levels_of(
    items: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    between: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> LevelMeanings:
    """State what each level of a factor does to the texts of a study's test items."""
    meanings: dict[str, Does | None] = dict.fromkeys(levels)
    if factor in items:
        rows = items[items["role"] == "test"] if "role" in items else items
        for level, rows_of_level in rows.groupby(factor, observed=True):
            if str(level) in meanings:
                texts = [
                    rows_of_level.get(name, [None] * len(rows_of_level))
                    for name in ("provenance", "shown", "intact")
                ]
                kinds = {done_to(*record) for record in zip(*texts, strict=True)}
                meanings[str(level)] = (
                    kinds.pop() if len(kinds) == 1 else None if None in kinds else "changed"
                )
    for level, sets in ((between or {}).get(factor) or {}).items():
        if level in meanings and (sets.get("exemplars") == 0 or sets.get("example_labels") == "shuffled"):
            meanings[level] = "withheld"

    def those(does: Does | None) -> tuple[str, ...]:
        return tuple(level for level in levels if meanings[level] == does)

    intact, others = those("intact"), (those("substituted"), those("withheld"), those("changed"), those(None))
    return LevelMeanings(factor, intact[0] if len(intact) == 1 else None, *others)


def scrambled_levels(tables: Tables, factor: str) -> list[str]:
    """Return the levels but the first that still show the scrambled text."""
    others = tables.levels_of(factor)[1:]
    meanings = levels_of(tables.items, factor, others, tables.dictionary.get("between"))
    return [level for level in others if level not in (*meanings.substituted, *meanings.withheld)] or others


def done_to(provenance: Any, shown: Any, intact: Any) -> Does | None:
    """State what was done to one item's text; None where neither its record nor its texts say it."""
    operation = str(mapping_in(provenance).get("operation") or "")
    name, _, rates = operation.partition("@")
    rate = rates.partition(";")[0]
    texts = operation.partition("texts=")[2]
    if operation == WITHHELD:
        return "withheld"
    if operation == _NOTHING or _is_zero(rate) or _is_zero(texts):
        return "intact"
    kind = name.partition("(")[0].partition(";")[0]
    if kind in SUBSTITUTES:
        return "substituted"
    if kind.partition(":")[0] in {scramble_type.family for scramble_type in scramble_types().values()}:
        return "changed"
    intact_fields, shown_fields = mapping_in(intact), mapping_in(shown)
    pairs = [
        (text, shown_fields[field]) for field, text in intact_fields.items() if field in shown_fields and text
    ]
    if not pairs:
        return None
    return "intact" if all(text == other for text, other in pairs) else "changed"


def _is_zero(text: str) -> bool:
    try:
        return float(text) == 0
    except ValueError:
        return False
