"""One model of a run: what asks it, what it came to so far, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiment.models.money import Purse
from experiment.models.runs.asking import Asking
from experiment.models.runs.batching import Batches
from experiment.models.runs.live import Figures, Speed
from experiment.models.runs.outcome import SHOWN_ERRORS, Outcome
from experiment.models.runs.recording import Recording


@dataclass
class Part:
    """One model of a run."""

    asking: Asking
    outcome: Outcome
    figures: Figures
    purse: Purse
    recording: Recording
    batches: Batches
    speed: Speed = field(default_factory=Speed)
    fault: BaseException | None = None
    is_local: bool = False
    is_checked: bool = False


def figures_of(part: Part) -> Figures:
    """Return a model's figures as they are now."""
    figures, outcome = part.figures, part.outcome
    figures.planned, figures.stored_before = outcome.planned, outcome.stored_before
    figures.answered, figures.failed = outcome.answered, outcome.failed
    figures.given_up = outcome.given_up
    figures.cached, figures.cost_usd = outcome.cached, outcome.cost_usd
    figures.error_kinds, figures.tokens = outcome.error_kinds, outcome.tokens
    figures.response_statuses = outcome.response_statuses
    if part.asking.waits and not outcome.answered:
        part.speed = Speed()  # what a model waits for the others before it begins says nothing of its speed
    figures.per_second = part.speed.of(outcome.answered)
    figures.seconds_left = outcome.left / figures.per_second if figures.per_second else None
    status = getattr(part.asking.engine, "status", None)
    told = status() if callable(status) else None
    figures.engine = None if told is None else str(told)
    figures.waits = part.recording.waits_for or getattr(told, "why", None) or part.asking.waits
    figures.stopped = outcome.stopped
    return figures


def count_questions(part: Part) -> None:
    """Add to what a run cost what its engine's own small questions to the server did cost since that was last asked."""
    till = getattr(part.asking.engine, "till", None)
    if till is not None:
        part.outcome.cost_usd += till.spent
        till.spent = 0.0


def ended_of(part: Part) -> dict[str, Any]:
    """Return what the record of a run says at its end."""
    outcome = part.outcome
    return {
        "answered": outcome.answered, "left": outcome.left, "errors": outcome.failed, "error_kinds": outcome.error_kinds,
        "response_statuses": outcome.response_statuses, "given_up": outcome.given_up, "ended": outcome.ended,
        "too_long": outcome.too_long[:SHOWN_ERRORS],
        "first_tokens": outcome.first_tokens,
        "statuses": outcome.statuses, "tokens": outcome.tokens, "cost_usd": outcome.cost_usd, "cached": outcome.cached,
        "estimate": outcome.estimate, "lost_usd": outcome.lost_usd,
        "unanswered_usd": outcome.unanswered_usd, "blocks": outcome.blocks,
        "interrupted": outcome.interrupted, "stopped": outcome.stopped, "engine": part.asking.describe(),
    }  # fmt: skip
