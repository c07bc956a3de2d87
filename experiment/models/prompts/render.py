"""From a session plan to the exact messages of one trial behind the study's instructions (context: independent)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Message, Span
from experiment.models.prompts.prompter import BLANK, Prompter


@dataclass(frozen=True)
class Rendered:
    """A trial as a model meets it."""

    messages: tuple[Message, ...]
    labels: tuple[str, ...] | None  # what to score by log-probability; None asks for generated text
    max_tokens: int  # most tokens to generate
    # Where a local model stops generating; an API gets none (its first line is read instead)
    stop: tuple[str, ...]
    regions: tuple[Span, ...] = ()  # words whose surprisal is asked


def render(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> Rendered:
    """Render one trial of a plan by itself, as it is asked without practice and directly.

    A study with `published: [prompts]` gets the paper's prompt alone, as its code sent it.
    """
    prompter = Prompter(plan)
    turn = prompter.turn(trial)
    before = "" if prompter.is_published else instructions_before(plan, trial)
    content = BLANK.join(part for part in (before, turn.text) if part)
    shift = len(content) - len(turn.text)
    regions = tuple(Span(0, begin + shift, end + shift) for begin, end in turn.words)
    return Rendered((Message("user", content),), turn.labels, turn.max_tokens, turn.stop, regions)


def instructions_before(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the instructions that a reader has read when a trial comes: every page above its screen."""
    pages: list[str] = []
    for screen in plan["screens"]:
        if screen.get("block") == trial["block"] and "trials" in screen:
            break
        if screen["kind"] == "instructions":
            pages += [page["text"] for page in screen["pages"]]
    return BLANK.join(page for page in pages if page)
