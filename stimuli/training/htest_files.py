"""The released fine-tuning files of H-TEST: as they are, or without doubles and texts of the study, balanced and shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stimuli.corpora.source_text import json_lines
from stimuli.errors import UserError, unknown_name
from stimuli.htest.released import LABELS, RELEASED_TASKS
from stimuli.seeds import stable_seed
from stimuli.training.held_out import barred_keys, word_keys
from stimuli.training.records import Exchange


@dataclass(frozen=True)
class ReleasedTraining:
    """One released fine-tuning file.

    Parameters
    ----------
    task : str
        Name of the task.
    exchanges : tuple of Exchange
        What is trained on.
    lines, doubles, near_copies, unbalanced : int
        Lines of the file; lines whose text came before; lines that are texts of the study or near copies; lines of
        the larger class beyond the smaller one. The last three are left out, unless the file is taken as published.
    """

    task: str
    exchanges: tuple[Exchange, ...]
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
    """Load the fine-tuning file of a task.

    Parameters
    ----------
    folder : Path
        The folder with files such as ``uppercase_train.jsonl``, or the one that holds it as ``train``.
    task : str
        One of the ten released tasks.
    seed : int
        Seeds the order.
    held_out : iterable of str
        Every text of the study's items of the task.
    of_other_tasks : iterable of str
        Every text of its other items, on which the trained model is tested, too.
    published : bool
        Take every line as it stands and in its order, all A before all B; faults are counted all the same.

    Raises
    ------
    UserError
        For an unknown task, a missing file, or a broken line.
    """
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
