"""Settings of one model of a study, for its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stimuli.errors import UserError


class NotThereYet(UserError):
    """A model is named correctly, but something that it needs is missing on this machine: a folder, a package, a key."""


@dataclass(frozen=True)
class ModelSettings:
    """One model of a study, for its engine."""

    use: str  # `kind:name`, as written in the study
    # the other settings of the model (`temperature`, `base_url`, `dtype` …)
    options: Mapping[str, object] = field(default_factory=dict)
    folder: Path = Path()  # folder to which a relative model path refers
    # work key to correct answer; only the oracle uses it
    answers: Mapping[str, str] = field(default_factory=dict)
    # work key to the possible answers, even if a prompt asks for them as text; only baselines use it
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sends: bool = True  # whether requests will be sent; a preview needs no key

    @classmethod
    def of(cls, given: Mapping[str, Any], folder: Path) -> ModelSettings:
        """Return the settings of a model from its entry in a study: ``use`` and other settings."""
        return cls(str(given["use"]), {name: value for name, value in given.items() if name != "use"}, folder)

    @property
    def kind(self) -> str:
        """The part before the colon."""
        return self.use.partition(":")[0]

    @property
    def name(self) -> str:
        """The part after the colon."""
        return self.use.partition(":")[2]
