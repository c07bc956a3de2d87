"""What a run came to, model by model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SHOWN_ERRORS = 100
"""Trials without an answer that are listed one by one; all are counted."""


@dataclass
class Outcome:
    """What one run of one model came to."""

    reader: str
    use: str
    run_id: str
    sessions: int = 0  # sessions and trials of the plan
    planned: int = 0
    # trials that were stored without this run (when it began, or by another meanwhile), and those stored by it
    stored_before: int = 0
    answered: int = 0
    # sessions of this reader in the store that are not planned now and count: of another setting or a wider plan
    other_sessions: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0  # how many trials were asked by this run and have no answer; the next run asks for them
    unanswered: dict[str, int] = field(default_factory=dict)  # how many of these ended in which status
    # by how many of these which error came last, in the words of its first line
    error_kinds: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)  # how often which reply status came
    # how the answers stored by this run were read: how many are `valid`, `unparsed`, `refused`, …
    response_statuses: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    first_tokens: dict[str, int] = field(default_factory=dict)
    # texts that the model was to restore first and did not (it refused, or was cut off): it was asked about them as they were
    unrestored: int = 0
    cost_usd: float = 0.0  # what the calls of this run cost
    # how many times the most that a request can cost, by its length and `max_tokens`, the dearest reply did cost
    dearest: float = 1.0
    cached: int = 0  # replies that came from the cache
    lost_usd: float = 0.0  # what an earlier run that was killed had set aside: it may have been spent
    unanswered_usd: float = 0.0  # what tries of this run that brought no answer may have cost
    estimate: dict[str, object] | None = None  # what the probe said of the price of the rest
    handed_over: int = 0  # requests that were handed over as batches
    batches: str = ""  # what became of all batches, in words
    # trials that can never be answered: longer than the model reads, or of conversations that became so before them
    given_up: int = 0
    # how many conversations of the plan ended so, in this run or before it, by reason
    ended: dict[str, int] = field(default_factory=dict)
    # those that are so by themselves, in this run or before it, with the reason
    too_long: list[str] = field(default_factory=list)
    blocks: str = ""  # how far the model is, in words
    engine: dict[str, object] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None  # why the run ended early

    @property
    def left(self) -> int:
        """Trials still to be asked, errors included."""
        return self.planned - self.stored_before - self.answered - self.given_up

    @property
    def is_whole(self) -> bool:
        """Whether the same command would ask for nothing more that this one was to ask for."""
        return not (self.failed or self.interrupted or self.stopped)
