"""Renders planned trials to text: the same plan that people's pages show; wordings and papers' prompts are data."""

from experiment.models.prompts.prompter import Prompter, Strategy, Turn, changed_field, read_step
from experiment.models.prompts.render import Rendered, instructions_before, render

__all__ = [
    "Prompter",
    "Rendered",
    "Strategy",
    "Turn",
    "changed_field",
    "instructions_before",
    "read_step",
    "render",
]
