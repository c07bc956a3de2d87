"""Solved examples shown before the items: their text is scrambled at a rate of its own, crossed with the items'.

Any labelled records can be examples; those that Cao et al. (2023) print (three WikiQA sentences for recovery, the four
chain-of-thought problems of Wei et al., 2022) are kept in ``demonstrations.json``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, cast

from stimuli.corpora.record import Record
from stimuli.errors import UserError
from stimuli.recipes.asking import Asked, Levels, corrected_shown
from stimuli.recipes.conditions import OperationSpec, Shown, describe
from stimuli.scramble import changes_between, parse_operation
from stimuli.scramble.published import published_operation, scramble_demonstrations
from stimuli.scramble.text import Scrambled, ScrambleSettings
from stimuli.scramble.words import nfc

_RS = "shuffle:all"


@functools.cache
def _printed() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("demonstrations.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text))


def printed_examples(task: str) -> tuple[Record, ...]:
    """Return the examples that the papers print for a task."""
    printed = {name: given for name, given in _printed().items() if isinstance(given, Mapping)}
    if task not in printed:
        raise UserError(
            f"the papers print no examples for task {task!r}",
            mend=f"Give records as examples, or use one of: {', '.join(sorted(printed))}.",
        )
    entry = printed[task]
    return tuple(
        Record(
            record_id=f"example-{number}",
            corpus=entry["source"],
            split=None,
            licence=entry["licence"],
            texts=given["texts"],
            choices=tuple(given["choices"]) if "choices" in given else None,
            answer=given.get("answer"),
            rationale=given.get("rationale"),
        )
        for number, given in enumerate(entry["records"], 1)
    )


def examples_shown(
    examples: Sequence[Asked], levels: Levels, *, seed: int, settings: ScrambleSettings, published: bool
) -> list[list[dict[str, Shown]]]:
    """Show examples at every rate that they come in."""
    if not published:
        return [corrected_shown(one, levels, seed=seed, settings=settings) for one in examples]
    passes = {
        level: demonstration_pass([nfc(one.text) for one in examples], given)
        for level, given in levels.given.items()
    }
    labels = {level: f"{published_operation(given).label}, examples" for level, given in levels.given.items()}
    return [
        [
            {one.field: replace(shown, operation=labels[shown.level])}
            for shown in describe(
                one.text,
                {level: _changed(nfc(one.text), texts[place]) for level, texts in passes.items()},
                dict.fromkeys(levels.given, parse_operation("none")),
                field=one.field,
                language=settings.language,
            )
        ]
        for place, one in enumerate(examples)
    ]


def _changed(intact: str, shown: str) -> Scrambled:
    return Scrambled(shown, changes_between(intact, shown))


def demonstration_pass(texts: Sequence[str], given: OperationSpec) -> list[str]:
    """Scramble examples as the published ones were: the whole rate at once, one random stream over the list.

    The rate of the test texts is reached in steps instead, so that the two are other draws.
    """
    operation = parse_operation(given)
    if operation.changes_nothing:
        return list(texts)
    if operation.type.name != _RS:
        raise UserError(
            f"examples were published at RS only, not at {operation.label}",
            mend="Use none, RS-20, RS-50 or RS-100 for the examples, or the corrected mode.",
        )
    return scramble_demonstrations(texts, operation.rate)
