"""H-TEST as its released code asked and read it, errors included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiment.models.prompts.prompter import PromptedTask
from experiment.scoring.published import VERSION, Score, published_choice
from stimuli.recipes.tasks import TASKS


def prompt_name(asked: PromptedTask) -> str | None:
    """Name the prompt of letter geometry, or of a choice that is no task on a corpus: the label of a rule."""
    if asked.task == "letter_geometry":
        return "letter_geometry"
    if not asked.is_choice or asked.task in TASKS:
        return None
    return "htest_chain_of_thought" if asked.thinks else "htest"


def htest_label(reply: str) -> str | None:
    """Read H-TEST's label: A for any text with an "a" and no "b" ("I cannot tell"), B likewise, None for all else."""
    said = reply.lower().strip()
    for label, other in (("a", "b"), ("b", "a")):
        only = label in said and other not in said
        if only or f"label: {label}" in said or (f"is {label}" in said and f"or {other}" not in said):
            return label.upper()
    return None


def score_htest(trial: Mapping[str, Any], reply: str) -> Score:
    """Score a reply by the label that the released code reads in it."""
    step, label = trial["steps"][-1], htest_label(reply)
    labels = step.get("labels", ())
    return published_choice(
        step["responses"][labels.index(label)] if label in labels else None, trial, "htest"
    )


def score_letter_geometry(trial: Mapping[str, Any], reply: str) -> Score:
    """Score a reply as right where it is the answer and nothing else."""
    correct = reply.strip() == trial["answer"]
    return Score(reply.strip(), "valid", correct, float(correct), f"published_letter_geometry-{VERSION}")
