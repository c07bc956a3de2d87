"""Loads the released H-TEST tasks from the folder in which their user keeps them, in their original format.

Per task ``<task>_dev.jsonl`` holds 50 exemplars and ``<task>_test.jsonl`` 200 test items, both alternating A, B.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stimuli.corpora.source_text import json_lines
from stimuli.errors import UserError, unknown_name
from stimuli.htest.rules import rule

RELEASED_TASKS = (
    "end_ly",
    "end_punctuation",
    "hyphenated_word",
    "palindrome",
    "repeated_word",
    "rhyme",
    "spelled_math",
    "spelled_number",
    "start_vowel",
    "uppercase",
)
LABELS = ("A", "B")


@dataclass(frozen=True)
class ReleasedItem:
    """One released text with its label and its line in the file, from 1."""

    text: str
    label: str
    line: int


@dataclass(frozen=True)
class ReleasedTask:
    """One released task: all exemplars and all test items, in the order of the files."""

    name: str
    exemplars: tuple[ReleasedItem, ...]
    test: tuple[ReleasedItem, ...]

    def first_exemplars(self, k: int) -> tuple[ReleasedItem, ...]:
        """Return the first ``k`` exemplars, half of each label; a smaller set is the beginning of a larger one."""
        return self.exemplars[: checked_exemplars(k, most=len(self.exemplars))]


def checked_exemplars(k: int, *, most: int | None = None) -> int:
    """Return a number of exemplars that gives both labels the same share."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 0 or k % 2:
        raise UserError(
            f"exemplars is {k!r}; both labels get the same number, so it is an even whole number",
            mend=f"Use {k + 1}." if isinstance(k, int) and k > 0 else None,
        )
    if most is not None and k > most:
        raise UserError(f"exemplars is {k}; there are {most}")
    return k


def task_folder(folder: Path) -> Path:
    """Return the folder with the task files: the one given, or ``abtasks`` in it."""
    for candidate in (folder, folder / "abtasks"):
        if any(candidate.glob("*_test.jsonl")):
            return candidate
    raise UserError(
        f"no H-TEST files in {folder}",
        mend="Give the folder with files such as uppercase_dev.jsonl and uppercase_test.jsonl.",
    )


def load_released_task(folder: Path, name: str) -> ReleasedTask:
    """Load one released task."""
    if name not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", name, RELEASED_TASKS)
    where = task_folder(folder)
    exemplars = _load(where / f"{name}_dev.jsonl")
    test = _load(where / f"{name}_test.jsonl")
    return ReleasedTask(name, exemplars, test)


def load_released(folder: Path, names: Iterable[str] = RELEASED_TASKS) -> dict[str, ReleasedTask]:
    """Load released tasks by name; all ten where none is named."""
    return {name: load_released_task(folder, name) for name in names}


def _load(path: Path) -> tuple[ReleasedItem, ...]:
    return tuple(_item(record, f"{path}, line {number}", number) for number, record in json_lines(path))


def _item(record: Mapping[str, Any], where: str, number: int) -> ReleasedItem:
    # The exemplars of start_vowel were released under another key.
    text = record.get("centerpiece", record.get("question"))
    options: Sequence[Any] = record.get("options", ())
    right = record.get("correct_options")
    if not isinstance(text, str) or not text:
        raise UserError(f"{where}: 'centerpiece' is missing or no text")
    if list(options) != list(LABELS):
        raise UserError(f"{where}: options are {options!r}; an A/B task has ['A', 'B']")
    if not isinstance(right, list) or right not in ([0], [1]):
        raise UserError(f"{where}: correct_options is {right!r}; it is [0] or [1]")
    return ReleasedItem(text, LABELS[right[0]], number)


FaultKind = Literal["label", "duplicate", "leak"]


@dataclass(frozen=True)
class Fault:
    """One released text that a careful study leaves out or mends."""

    task: str  # task and file: dev (exemplars) or test
    split: str
    line: int  # its line in the file, from 1
    text: str  # as released
    label: str
    # the rule gives it the other label; its text came before in its file; a test text is an exemplar too
    kind: FaultKind
    reason: str  # the same in words


def label_noise(name: str, released: Iterable[ReleasedItem]) -> list[ReleasedItem]:
    """Return the released items whose label the rule, taken at its word, disagrees with."""
    predicate = rule(name).predicate
    return [item for item in released if predicate(item.text) != item.label]


def released_faults(folder: Path, tasks: Iterable[str] = RELEASED_TASKS) -> list[Fault]:
    """List the faults of the released items, task by task, exemplars before test items."""
    found: list[Fault] = []
    for name, task in load_released(folder, tasks).items():
        exemplars = {item.text: item for item in reversed(task.exemplars)}
        for split, items in (("dev", task.exemplars), ("test", task.test)):
            noisy = {item.line for item in label_noise(name, items)}
            first: dict[str, ReleasedItem] = {}
            for item in items:
                before = first.setdefault(item.text, item)
                reasons: list[tuple[FaultKind, str]] = []
                if item.line in noisy:
                    other = "B" if item.label == "A" else "A"
                    reasons.append(
                        ("label", f"labelled {item.label}, {other} by the rule: {rule(name).statement}")
                    )
                if before is not item:
                    reasons.append(("duplicate", f"the text of line {before.line} again"))
                if split == "test" and item.text in exemplars:
                    reasons.append(
                        ("leak", f"the exemplar on line {exemplars[item.text].line} of {name}_dev.jsonl")
                    )
                found += [
                    Fault(name, split, item.line, item.text, item.label, kind, reason)
                    for kind, reason in reasons
                ]
    return found
