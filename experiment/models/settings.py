"""What a study says of one model, as engines take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stimuli.errors import UserError


class NotThereYet(UserError):
    """A model is well named, and something that it needs is not on this machine: a folder, a package, a key."""


@dataclass(frozen=True)
class ModelSettings:
    """One model of a study as its engine needs it."""

    use: str  # `kind:name`, as written in the study
    # the other settings of the model (`temperature`, `base_url`, `dtype` …)
    options: Mapping[str, object] = field(default_factory=dict)
    folder: Path = Path()  # folder against which a relative model path is read
    # work key to right answer; only the oracle reads it
    answers: Mapping[str, str] = field(default_factory=dict)
    # work key to the answers that can be chosen, also where a prompt asks for them as text; only baselines read it
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sends: bool = True  # whether requests will be sent; what only shows them needs no key

    @classmethod
    def of(cls, given: Mapping[str, Any], folder: Path) -> ModelSettings:
        """Return a model as a study in a folder names it: ``use`` and its other settings."""
        return cls(str(given["use"]), {name: value for name, value in given.items() if name != "use"}, folder)

    @property
    def kind(self) -> str:
        """The part before the colon."""
        return self.use.partition(":")[0]

    @property
    def name(self) -> str:
        """The part after the colon."""
        return self.use.partition(":")[2]
