"""What a model is trained on, one thing at a time: a text to go on with, or a prompt with its reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Told = str | int | float | None


@dataclass(frozen=True)
class Passage:
    """A text for language modelling: every token of it is to be predicted."""

    text: str  # the text, in NFC
    # where it comes from and what was done to it
    provenance: Mapping[str, Told] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the line of a training file: ``{"text": …, "provenance": …}``."""
        return {"text": self.text, "provenance": dict(self.provenance)}


@dataclass(frozen=True)
class Exchange:
    """A prompt and the reply to learn: only the reply is to be predicted."""

    prompt: str  # what the model reads
    reply: str  # what it is to answer
    # task, label, number of the pair, and how it was made
    provenance: Mapping[str, Told] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the line of a training file: ``{"prompt": …, "reply": …, "provenance": …}``."""
        return {"prompt": self.prompt, "reply": self.reply, "provenance": dict(self.provenance)}
