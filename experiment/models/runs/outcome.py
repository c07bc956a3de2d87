"""What a run came to, model by model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SHOWN_ERRORS = 100
"""Trials without an answer that are listed one by one; all are counted."""


@dataclass
class Outcome:
    """What one run of one model came to.

    Attributes
    ----------
    sessions, planned : int
        Sessions and trials of the plan.
    stored_before, answered : int
        Trials that were stored without this run (when it began, or by another meanwhile), and those stored by it.
    errors : list of dict
        ``session_id``, ``trial_index``, ``item_id``, ``purpose``, ``error`` and ``work_key`` of trials without an answer, the
        first of them, each once.
    failed : int
        How many trials were asked by this run and have no answer; the next run asks for them.
    error_kinds : dict
        By how many of these which error came last, in the words of its first line.
    unanswered : dict
        How many of these ended in which status.
    other_sessions : int
        Sessions of this reader in the store that are not planned now and count: of another setting or a wider plan.
    statuses : dict
        How often which reply status came.
    response_statuses : dict
        How the answers stored by this run were read: how many are ``valid``, ``unparsed``, ``refused``, ….
    first_tokens : dict
        Choices whose first token leaves the label open (``unsettled``), or makes another label most probable than the reply gives
        (``disagrees``); both are read from the reply.
    unrestored : int
        Texts that the model was to restore first and did not (it refused, or was cut off): it was asked about them as they were.
    cost_usd : float
        What the calls of this run cost.
    dearest : float
        How many times the most that a request can cost, by its length and ``max_tokens``, the dearest reply did cost.
    cached : int
        Replies that came from the cache.
    lost_usd : float
        What an earlier run that was killed had set aside: it may have been spent.
    unanswered_usd : float
        What tries of this run that brought no answer may have cost.
    estimate : dict or None
        What the probe said of the price of the rest.
    handed_over : int
        Requests that were handed over as batches.
    batches : str
        What became of all batches, in words.
    given_up : int
        Trials that can never be answered: longer than the model reads, or of conversations that became so before them.
    too_long : list of str
        Those that are so by themselves, in this run or before it, with the reason.
    ended : dict
        How many conversations of the plan ended so, in this run or before it, by reason.
    blocks : str
        How far the model is, in words.
    stopped : str or None
        Why the run ended early.
    """

    reader: str
    use: str
    run_id: str
    sessions: int = 0
    planned: int = 0
    stored_before: int = 0
    answered: int = 0
    other_sessions: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0
    unanswered: dict[str, int] = field(default_factory=dict)
    error_kinds: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    response_statuses: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    first_tokens: dict[str, int] = field(default_factory=dict)
    unrestored: int = 0
    cost_usd: float = 0.0
    dearest: float = 1.0
    cached: int = 0
    lost_usd: float = 0.0
    unanswered_usd: float = 0.0
    estimate: dict[str, object] | None = None
    handed_over: int = 0
    batches: str = ""
    given_up: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    too_long: list[str] = field(default_factory=list)
    blocks: str = ""
    engine: dict[str, object] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str | None = None

    @property
    def left(self) -> int:
        """Trials still to be asked, errors included."""
        return self.planned - self.stored_before - self.answered - self.given_up

    @property
    def is_whole(self) -> bool:
        """Whether the same command would ask for nothing more that this one was to ask for."""
        return not (self.failed or self.interrupted or self.stopped)
