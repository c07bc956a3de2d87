"""What is wrong with the released items: labels against the rule, texts that come twice, test texts shown before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stimuli.htest.released import RELEASED_TASKS, ReleasedItem, load_released
from stimuli.htest.rules import rule

FaultKind = Literal["label", "duplicate", "leak"]


@dataclass(frozen=True)
class Fault:
    """One released text that a careful study leaves out or mends.

    Parameters
    ----------
    task, split : str
        Task and file: ``dev`` (exemplars) or ``test``.
    line : int
        Its line in the file, from 1.
    text, label : str
        As released.
    kind : {"label", "duplicate", "leak"}
        The rule gives it the other label; its text came before in its file; a test text is an exemplar too.
    reason : str
        The same in words.
    """

    task: str
    split: str
    line: int
    text: str
    label: str
    kind: FaultKind
    reason: str


def label_noise(name: str, released: Iterable[ReleasedItem]) -> list[ReleasedItem]:
    """Return the released items whose label the rule, taken at its word, disagrees with."""
    predicate = rule(name).predicate
    return [item for item in released if predicate(item.text) != item.label]


def released_faults(folder: Path, tasks: Iterable[str] = RELEASED_TASKS) -> list[Fault]:
    """List the faults of the released items, task by task, exemplars before test items.

    An item with several faults is listed once for each.
    """
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
