"""Renders planned trials to text: the same plan that people's pages show; wordings and papers' prompts are data."""

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
