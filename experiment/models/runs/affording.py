"""Whether the next block of all models can be finished with the money, tokens and time that are left."""

from __future__ import annotations

from collections.abc import Sequence

from experiment.models.money import Allowance, spending, written
from experiment.models.runs.limits import Clock
from experiment.models.runs.parts import Part


def shortfall(
    parts: Sequence[Part],
    counts: Sequence[int],
    clock: Clock,
    most_cost: Allowance | None,
    most_tokens: Allowance | None,
    budget: float | None,
) -> str | None:
    """Say why a block cannot be finished, as far as what was asked so far tells; None where it can.

    Parameters
    ----------
    counts : sequence of int
        Trials of each model up to the end of the block.
    most_cost, most_tokens : Allowance or None
        Limits of this command.
    budget : float or None
        US dollars that the study may cost in all.
    """
    cost = tokens = seconds = 0.0
    for part, count in zip(parts, counts, strict=True):
        known = [one for costs in part.asking.costs.values() for one in costs]
        cost += count * sum(known) / len(known) if known else 0.0
        used = sum(part.outcome.tokens.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        tokens += count * used / part.outcome.answered if part.outcome.answered else 0.0
        seconds += count * (part.asking.trial_seconds or 0.0)
    if most_cost is not None and cost > (left := most_cost.most - most_cost.used):
        return (
            f"the next block of all models costs about {written(cost)} and --max-cost leaves {written(left)}"
        )
    if most_tokens is not None and tokens > most_tokens.most - most_tokens.used:
        return f"the next block of all models takes about {tokens:.0f} tokens, more than --max-tokens leaves"
    if budget is not None and cost > 0:
        spent = parts[0].recording.read(lambda connection: spending(connection, parts[0].purse.study))
        if cost > budget - spent.spent - spent.unknown:
            return f"the next block of all models costs about {written(cost)}, more than the budget leaves"
    if clock.left is not None and seconds > clock.left:
        return f"the next block of all models takes about {seconds:.0f} s, more than --max-minutes leaves"
    return None
