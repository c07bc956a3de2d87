"""Prompts for planned trials, from the same plan that participants see; their texts and papers' prompts are data."""

from experiment.models.prompts.prompter import (
    Prompter,
    Strategy,
    Turn,
    changed_field,
    instructions_before,
    read_step,
    render,
)

__all__ = [
    "Prompter",
    "Strategy",
    "Turn",
    "changed_field",
    "instructions_before",
    "read_step",
    "render",
]
