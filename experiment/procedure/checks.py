"""Instructed-response checks: trials that say themselves what is to be answered, placed among the trials of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from experiment.procedure.lines import LINE_LENGTH
from experiment.procedure.steps import Labels, make_step
from experiment.study import Study
from experiment.trials import TYPED
from stimuli.item import Item

SET = "attention checks"
FIELD = "text"
WORDS = 4
"""How many words there are to ask for."""


def checks(
    number: int, step: Mapping[str, Any], labels: Sequence[str], study: Study, draw: Random
) -> list[tuple[Item, str]]:
    """Make checks for a block, each with the answer that it asks for."""
    (kind,) = step
    if not number:
        return []
    texts = study.pack.texts
    words = [texts[f"check_word_{place}"] for place in range(1, WORDS + 1)]
    made = []
    for place in range(1, number + 1):
        if kind in TYPED:
            asked = str(draw.choice(words))
            text = texts["check_typed"].format(word=asked)
        else:
            asked = str(draw.choice(list(labels)))
            text = texts["check_choose"].format(label=asked)
        provenance: Any = {
            "source": "wrods",
            "source_id": None,
            "split": None,
            "licence": None,
            "operation": "none",
            "seed": study.seed,
        }
        item = Item(
            item_id=f"check-{place}",
            set_name=SET,
            role="attention_check",
            condition={},
            shown={FIELD: text},
            intact={},
            choices=tuple(labels) if kind == "choose" else None,
            answer=asked,
            provenance=provenance,
        )
        made.append((item, asked))
    return made


def check_step(
    step: Mapping[str, Any], item: Item, labels: Sequence[str], *, line_length: int = LINE_LENGTH
) -> dict[str, Any]:
    """Return the one step of a check: the block's answering step with the check's own text and no time limit."""
    (kind, settings), *_ = step.items()
    own = (
        {"show": FIELD, "keys": settings["keys"], "answer_by": "text"}
        if kind == "choose"
        else {"show": FIELD}
    )
    names = Labels({label: label for label in labels})
    return make_step(kind, own, item, range(len(labels)), names, line_length=line_length)


def places(number: int, trials: int, draw: Random) -> list[int]:
    """Return before which trials checks come: one in each equal stretch of the block, never first, never two together."""
    if trials < 2 or number < 1:
        return [trials] * max(number, 0)
    found: list[int] = []
    for place in range(number):
        low = max(1, round(place * trials / number), (found[-1] + 1) if found else 1)
        high = max(low, round((place + 1) * trials / number) - 1)
        found.append(min(draw.randint(low, high), trials))
    return found
