"""H-TEST (Lee & Lim, 2024): the released A/B tasks, and rules that make matched pairs of our own."""

from stimuli.htest.making import GeneratedItem, RuleItems, generate
from stimuli.htest.released import (
    RELEASED_TASKS,
    Fault,
    ReleasedItem,
    ReleasedTask,
    label_noise,
    load_released,
    load_released_task,
    released_faults,
)
from stimuli.htest.rule import Label, Pair, Rule
from stimuli.htest.rules import rule, rules

__all__ = [
    "RELEASED_TASKS",
    "Fault",
    "GeneratedItem",
    "Label",
    "Pair",
    "ReleasedItem",
    "ReleasedTask",
    "Rule",
    "RuleItems",
    "generate",
    "label_noise",
    "load_released",
    "load_released_task",
    "released_faults",
    "rule",
    "rules",
]
