"""H-TEST items: released tasks, further ones of their making, or matched pairs of rules; exemplars come first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stimuli.covariate_table import WORD, covariate_table
from stimuli.covariates import text_covariates, words_covariates
from stimuli.errors import UserError, unknown_name
from stimuli.htest.making import GeneratedItem, Making, Order, generate
from stimuli.htest.released import LABELS, RELEASED_TASKS, ReleasedItem, load_released_task
from stimuli.htest.rules import rule
from stimuli.item import Item, Provenance, Role
from stimuli.recipes.asking import WITHHELD, WITHHOLD
from stimuli.recipes.conditions import Shown, show_in_conditions
from stimuli.recipes.sampling import draw_some
from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.text import ScrambleSettings
from stimuli.scramble.words import find_words, nfc

FIELD = "text"
FACTOR = "task"
_LANGUAGE = "en"
_RELEASED_LICENCE = "MIT"


def htest_released_items(
    folder: Path,
    tasks: Sequence[str] = RELEASED_TASKS,
    *,
    exemplars: int,
    items: int | None = None,
    seed: int,
    factor: str | None = FACTOR,
) -> list[Item]:
    """Make items from the released tasks."""
    made: list[Item] = []
    for name in tasks:
        task = load_released_task(folder, name)
        parts: tuple[tuple[Role, str, Sequence[ReleasedItem]], ...] = (
            ("exemplar", "dev", task.first_exemplars(exemplars)),
            ("test", "test", _drawn(task.test, items, seed, name)),
        )
        _look_up_words(one.text for _, _, texts in parts for one in texts)
        for role, split, texts in parts:
            for one in texts:
                identity = f"{name}-{split}-{one.line:03d}"
                made.append(
                    _item(
                        identity,
                        name,
                        role,
                        one.text,
                        one.label,
                        factor,
                        Provenance(
                            source="H-TEST",
                            source_id=f"{name}_{split}.jsonl:{one.line}",
                            split=split,
                            licence=_RELEASED_LICENCE,
                            operation="released",
                            seed=None if items is None else seed,
                        ),
                    )
                )
    return made


def _look_up_words(texts: Iterable[str]) -> None:
    """Measure the words of all texts at once: one by one they cost several times as much."""
    words_covariates(sorted({word.text for text in texts for word in find_words(nfc(text))}), _LANGUAGE)


def _drawn(test: Sequence[ReleasedItem], number: int | None, seed: int, name: str) -> list[ReleasedItem]:
    if number is None:
        return list(test)
    if number % 2 or number < 2:
        raise UserError(f"items is {number}; both labels get the same number, so it is an even whole number")
    kept: set[int] = set()
    for label in LABELS:
        of_label = [one for one in test if one.label == label]
        drawn = draw_some(
            of_label,
            number // 2,
            seed=seed,
            key=lambda one: f"{name} {one.line}",
            what=f"{label} items of {name}",
        )
        kept |= {one.line for one in drawn}
    return [one for one in test if one.line in kept]


def htest_rule_items(
    rules: Sequence[str],
    *,
    exemplars: int,
    items: int,
    seed: int,
    factor: str | None = FACTOR,
    order: Order = "alternating",
) -> list[Item]:
    """Make items from rules (see :func:`stimuli.htest.making.generate`); each rule is a set of its name."""
    return [
        item
        for name in rules
        for item in _generated(name, "corrected", None, exemplars, items, seed, factor, order)
    ]


def htest_published_items(
    folder: Path,
    tasks: Sequence[str] = RELEASED_TASKS,
    *,
    exemplars: int,
    items: int,
    seed: int,
    factor: str | None = FACTOR,
    order: Order = "alternating",
) -> list[Item]:
    """Make further items of released tasks as the paper's code made them, faults included, with a new seed."""
    return [
        item
        for name in tasks
        for item in _generated(name, "published", folder, exemplars, items, seed, factor, order)
    ]


def _generated(
    name: str,
    making: Making,
    folder: Path | None,
    exemplars: int,
    items: int,
    seed: int,
    factor: str | None,
    order: Order,
) -> list[Item]:
    generated = generate(
        name, exemplars=exemplars, items=items, seed=seed, making=making, folder=folder, order=order
    )
    parts: tuple[tuple[Role, str, Sequence[GeneratedItem]], ...] = (
        ("exemplar", "dev", generated.exemplars),
        ("test", "test", generated.test),
    )
    _look_up_words(one.text for _, _, texts in parts for one in texts)
    made = []
    for role, split, texts in parts:
        origin = Provenance(
            source=rule(name).source,
            source_id=None,
            split=split,
            licence=_RELEASED_LICENCE if making == "published" else None,
            operation=f"rule:{name}" if making == "corrected" else f"published making:{name}",
            seed=seed,
        )
        for one in texts:
            identity = f"{name}-{split}-{one.number:03d}"
            pair = None if one.pair is None else f"{name}-{split}-pair-{one.pair:03d}"
            made.append(_item(identity, name, role, one.text, one.label, factor, origin, pair))
    return made


def _item(
    item_id: str,
    task: str,
    role: Role,
    text: str,
    label: str,
    factor: str | None,
    origin: Provenance,
    pair: str | None = None,
) -> Item:
    described = text_covariates(text, language=_LANGUAGE)
    covariates = {name: described[name] for name in (*WORD, "words")}
    return Item(
        item_id=item_id,
        set_name=task,
        role=role,
        condition={} if factor is None else {factor: task},
        shown={FIELD: text},
        intact={},
        choices=LABELS,
        answer=label,
        covariates=covariates if pair is None else {**covariates, "pair": pair},
        provenance=origin,
    )


AS_IT_IS, SUBSTITUTED = "none", "Sub"
ARMS = (AS_IT_IS, SUBSTITUTED, WITHHOLD)
OTHER_SYMBOLS = "other symbols"
"""Operation of a question whose symbols were replaced."""

Levels = Mapping[str, str]


def text_in_arms(
    items: Sequence[Item], factor: str, levels: Levels, *, field: str, seed: int, language: str
) -> list[Item]:
    """Show the text of test items as it is, with other letters, or not at all; other items stay as they are."""
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
