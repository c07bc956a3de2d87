"""What a command did for one training, here or at a provider."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What a command did for a training."""

    # training, base, use: its name, the model's name in the study, and what ``use`` names the trained model
    training: str
    base: str
    use: str
    # ``finished``, ``stopped``, ``written`` (the files of a job), or a provider's word for its job
    state: str
    was_finished: bool = False  # nothing was to be done
    # steps, planned: steps made, and all
    steps: int = 0
    planned: int = 0
    tokens: int = 0  # tokens read
    seconds: float = 0.0  # spent in steps
    stopped: str | None = None  # why it ended before the end
    interrupted: bool = False
    # first_validation_loss, validation_loss: before the first step and after the last one, in nats a token
    first_validation_loss: float | None = None
    validation_loss: float | None = None
    folder: str = ""
    # most_usd, cost_usd: the most that a provider's training can cost, and what it did cost
    most_usd: float | None = None
    cost_usd: float | None = None
    # job_id, model_name: as the provider names them
    job_id: str | None = None
    model_name: str | None = None
    remark: str | None = None  # what else is to be known

    @property
    def is_done(self) -> bool:
        """Whether the same command would do nothing more."""
        return self.state in ("finished", "written")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as ``--json`` prints it."""
        return asdict(self)
