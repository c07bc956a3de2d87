"""What a command did for one training, here or at a provider."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What a command did for a training.

    Attributes
    ----------
    training, base, use : str
        Its name, the model's name in the study, and what ``use`` names the trained model.
    state : str
        ``finished``, ``stopped``, ``written`` (the files of a job), or a provider's word for its job.
    was_finished : bool
        Nothing was to be done.
    steps, planned : int
        Steps made, and all.
    tokens : int
        Tokens read.
    seconds : float
        Spent in steps.
    stopped : str or None
        Why it ended before the end.
    interrupted : bool
    first_validation_loss, validation_loss : float or None
        Before the first step and after the last one, in nats a token.
    folder : str
    most_usd, cost_usd : float or None
        The most that a provider's training can cost, and what it did cost.
    job_id, model_name : str or None
        As the provider names them.
    remark : str or None
        What else is to be known.
    """

    training: str
    base: str
    use: str
    state: str
    was_finished: bool = False
    steps: int = 0
    planned: int = 0
    tokens: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    interrupted: bool = False
    first_validation_loss: float | None = None
    validation_loss: float | None = None
    folder: str = ""
    most_usd: float | None = None
    cost_usd: float | None = None
    job_id: str | None = None
    model_name: str | None = None
    remark: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the same command would do nothing more."""
        return self.state in ("finished", "written")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as ``--json`` prints it."""
        return asdict(self)
