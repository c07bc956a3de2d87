"""Arms of items that have no text apart from their question: other letters in their place, or the question withheld.

The answer that counts stays that of the item as it is. Where readers are right above chance all the same, they know it
from what was left: labels, options, or the shape of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stimuli.covariate_table import covariate_table
from stimuli.errors import unknown_name
from stimuli.item import Item, Provenance
from stimuli.recipes.asking import WITHHELD, WITHHOLD
from stimuli.recipes.conditions import Shown, show_in_conditions
from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.text import ScrambleSettings

AS_IT_IS, SUBSTITUTED = "none", "Sub"
ARMS = (AS_IT_IS, SUBSTITUTED, WITHHOLD)
OTHER_SYMBOLS = "other symbols"
"""Operation of a question whose symbols were replaced."""

Levels = Mapping[str, str]


def text_in_arms(
    items: Sequence[Item], factor: str, levels: Levels, *, field: str, seed: int, language: str
) -> list[Item]:
    """Show the text of test items as it is, with other letters, or not at all; other items stay as they are.

    Other letters are those of the operation ``Sub``: length, capitals, spaces, digits and marks stay.
    """
    settings = ScrambleSettings(language=language)
    operations = {
        level: parse_operation(SUBSTITUTED) for level, does in levels.items() if does == SUBSTITUTED
    }
    kept = {one.name for one in covariate_table() if one.group == "change"}
    made: list[Item] = []
    for item in items:
        if item.role != "test":
            made.append(item)
            continue
        shown = {one.level: one for one in _substituted(item, operations, field, seed, settings)}
        for one in _lines(item, factor, levels, field):
            level = one.condition[factor]
            if level not in shown:
                made.append(one)
                continue
            new = shown[level]
            changed = {name: value for name, value in new.covariates.items() if name in kept}
            made.append(
                replace(
                    one,
                    shown={**one.shown, field: new.text},
                    changes=new.changes,
                    left_intact=new.left_intact,
                    covariates={**one.covariates, **changed},
                    provenance=_operated(item, new.operation),
                )
            )
    return made


def _substituted(
    item: Item, operations: Mapping[str, Operation], field: str, seed: int, settings: ScrambleSettings
) -> list[Shown]:
    if not operations:
        return []
    return show_in_conditions(
        item.shown[field], operations, field=field, item_id=item.item_id, seed=seed, settings=settings
    )


def question_in_arms(
    items: Sequence[Item], factor: str, levels: Levels, *, field: str, others: Mapping[str, str]
) -> list[Item]:
    """Ask test items' questions as they are, of other symbols, or not at all."""
    return [
        replace(
            one, shown={**one.shown, field: others[item.item_id]}, provenance=_operated(item, OTHER_SYMBOLS)
        )
        if levels[one.condition[factor]] == SUBSTITUTED
        else one
        for item in items
        for one in _lines(item, factor, levels, field)
    ]


def _lines(item: Item, factor: str, levels: Levels, field: str) -> list[Item]:
    """Return an item at every level, with its text where it is not withheld."""
    lines = []
    for level, does in levels.items():
        if does not in ARMS:
            raise unknown_name(f"level {level!r} of {factor}", does, ARMS)
        line = replace(
            item,
            condition={**item.condition, factor: level},
            intact={**item.intact, field: item.shown[field]},
        )
        if does == WITHHOLD:
            line = replace(line, shown={**item.shown, field: ""}, provenance=_operated(item, WITHHELD))
        lines.append(line)
    return lines


def _operated(item: Item, operation: str) -> Provenance:
    return Provenance(**{**item.provenance, "operation": operation})
