"""Training sets of H-TEST tasks: a thousand labelled texts a task, none of them a text of the study or a near copy of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stimuli.corpora.source_text import json_lines
from stimuli.errors import UserError, unknown_name
from stimuli.htest.making import GeneratedItem, generate
from stimuli.htest.released import LABELS, RELEASED_TASKS
from stimuli.htest.rules import rule
from stimuli.seeds import stable_seed
from stimuli.training.held_out import Key, barred_keys, word_keys
from stimuli.training.records import Exchange


@dataclass(frozen=True)
class ReleasedTraining:
    """One released fine-tuning file."""

    task: str  # name of the task
    exchanges: tuple[Exchange, ...]  # what is trained on
    # lines of the file; lines whose text came before; lines that are texts of the study or near copies; lines of the
    # larger class beyond the smaller one
    lines: int
    doubles: int
    near_copies: int
    unbalanced: int


def released_training_set(
    folder: Path,
    task: str,
    *,
    seed: int,
    held_out: Iterable[str],
    of_other_tasks: Iterable[str] = (),
    published: bool = False,
) -> ReleasedTraining:
    """Load the fine-tuning file of a task."""
    if task not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", task, RELEASED_TASKS)
    barred = barred_keys(task, held_out, of_other_tasks)
    seen: set[str] = set()
    kept: list[tuple[str, str, int]] = []
    every: list[tuple[str, str, int]] = []
    doubles = near_copies = 0
    for number, record in json_lines(training_file(folder, task)):
        text, label = _line(record, f"{task}_train.jsonl, line {number}")
        every.append((text, label, number))
        if text in seen:
            doubles += 1
        elif word_keys(text, task) & barred:
            near_copies += 1
        else:
            kept.append((text, label, number))
        seen.add(text)
    classes = {label: [one for one in kept if one[1] == label] for label in LABELS}
    fewer = min(map(len, classes.values()))
    if not fewer:
        raise UserError(
            f"{task}_train.jsonl has no {min(classes, key=lambda label: len(classes[label]))} texts beside those of the study",
            mend="Make a training set by the rule instead, or take the file as published.",
        )

    def drawn(one: tuple[str, str, int]) -> int:
        return stable_seed(seed, "released training set of H-TEST", task, one[2])

    balanced = [one for label in LABELS for one in sorted(classes[label], key=drawn)[:fewer]]
    exchanges = tuple(
        Exchange(text, label, {"task": task, "text": text, "label": label, "line": number})
        for text, label, number in (every if published else sorted(balanced, key=drawn))
    )
    return ReleasedTraining(task, exchanges, len(every), doubles, near_copies, len(kept) - 2 * fewer)


def training_file(folder: Path, task: str) -> Path:
    """Return the fine-tuning file of a task."""
    for candidate in (folder, folder / "train", folder.parent / "train"):
        if (file := candidate / f"{task}_train.jsonl").is_file():
            return file
    raise UserError(
        f"no {task}_train.jsonl in {folder} or its folder train",
        mend="Give the folder with the released files.",
    )


def _line(record: Mapping[str, Any], where: str) -> tuple[str, str]:
    messages = record.get("messages")
    match messages:
        case [{"role": "user", "content": str(text)}, {"role": "assistant", "content": "A" | "B" as label}]:
            return text, label
    raise UserError(f"{where}: no text with the reply A or B: {messages!r}")


NUMBER = 1000
"""Texts of a task, half of each label (Lee & Lim, 2024, section 5)."""
_MORE = 1.5


@dataclass(frozen=True)
class HtestSet:
    """The training set of one task."""

    task: str  # name of the rule
    exchanges: tuple[Exchange, ...]  # each text by itself with its label, in an order drawn with the seed
    # pairs that were made and left out because one of their texts is a text of the study or a near copy
    near_copies: int
    repeated: int  # pairs left out because they are near copies of others of the set


def htest_training_set(
    task: str,
    *,
    seed: int,
    held_out: Iterable[str],
    of_other_tasks: Iterable[str] = (),
    number: int = NUMBER,
) -> HtestSet:
    """Make the training set of one task with the rule's own generator."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 2 or number % 2:
        raise UserError(
            f"number of texts is {number!r}; both labels get the same number, so it is an even whole number from 2"
        )
    rule(task)
    barred = barred_keys(task, held_out, of_other_tasks)
    own = stable_seed(seed, "training set of H-TEST", task)
    asked = number
    while True:
        found = _apart(task, generate(task, exemplars=0, items=asked, seed=own).test, barred)
        if len(found.pairs) >= number // 2:
            break
        asked = 2 * int(asked / 2 * _MORE + 1)
    items = sorted(
        (item for pair in found.pairs[: number // 2] for item in pair),
        key=lambda item: stable_seed(own, "order", item.number),
    )
    exchanges = tuple(
        Exchange(
            item.text,
            item.label,
            {"task": task, "text": item.text, "label": item.label, "pair": item.pair, "seed": seed},
        )
        for item in items
    )
    return HtestSet(task, exchanges, found.near_copies, found.repeated)


@dataclass(frozen=True)
class _Apart:
    pairs: list[list[GeneratedItem]]
    near_copies: int
    repeated: int


def _apart(task: str, items: Iterable[GeneratedItem], barred: set[Key]) -> _Apart:
    """Keep the pairs that are near copies neither of a text held out nor of a pair kept before."""
    by_pair: dict[int | None, list[GeneratedItem]] = {}
    for item in items:
        by_pair.setdefault(item.pair, []).append(item)
    kept: list[list[GeneratedItem]] = []
    seen: set[Key] = set()
    near_copies = repeated = 0
    for pair in by_pair.values():
        keys: set[Key] = set().union(*(word_keys(item.text, task) for item in pair))
        whole: set[Key] = set().union(*(word_keys(item.text) for item in pair))
        if keys & barred:
            near_copies += 1
        elif whole & seen:
            repeated += 1
        else:
            seen |= whole
            kept.append(pair)
    return _Apart(kept, near_copies, repeated)
