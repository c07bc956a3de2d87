"""How far a run is and what it will cost, in words; the name of a run."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from experiment.models.money import written
from experiment.models.money.estimate import Estimate
from experiment.models.planning import ModelSession
from experiment.models.runs.asking import Asking


def growth_of(session: ModelSession) -> float:
    """Return how much longer than its first the turns of a conversation are on average, by characters."""
    lengths = []
    total = 0
    for number, place in enumerate(session.script.places):
        total += len(place.lead) + len(session.script.turn(number).text) + 2
        lengths.append(total)
    return sum(lengths) / len(lengths) / lengths[0] if lengths and lengths[0] else 1.0


def blocks_of(asking: Asking) -> str:
    """Say in words how far a model is."""
    total = len(asking.found.rounds)
    begun = [count for count in asking.found.missing.values() if count > 0]
    if asking.found.left - sum(asking.found.missing.values()) >= 0 and not begun:
        return f"all {total} blocks of each list"
    return f"{total - len(begun)} of {total} blocks of each list"


def told_estimate(reader: str, one: Estimate) -> str:
    """Say what the rest of a model's trials will cost."""
    high = "open" if one.high == float("inf") else written(one.high)
    return (
        f"{reader}: {one.sampled} trials asked; the other {one.trials} will cost {written(one.total)} "
        f"(95% interval {written(one.low)} to {high})"
    )


def new_run_id() -> str:
    """Return the name of a run that begins now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
