"""Whether the next block can be finished with the money, tokens and time that are left, and whether the rest can be paid."""

from __future__ import annotations

from collections.abc import Sequence

from experiment.models.money import Allowance, estimate, spending, written
from experiment.models.money.estimate import Estimate
from experiment.models.money.growth import estimate_growing
from experiment.models.runs.limits import Clock
from experiment.models.runs.parts import Part
from experiment.models.runs.talks import ahead_of


def shortfall(
    parts: Sequence[Part],
    counts: Sequence[int],
    clock: Clock,
    most_cost: Allowance | None,
    most_tokens: Allowance | None,
    budget: float | None,
    *,
    yes: bool = False,
) -> str | None:
    """Say why a block cannot be finished, as far as what was asked so far tells; None where it can."""
    block = "the next block" + (" of all models" if len(parts) > 1 else "")
    cost = tokens = seconds = 0.0
    for part, count in zip(parts, counts, strict=True):
        known = [one for costs in part.asking.costs.values() for one in costs]
        cost += count * sum(known) / len(known) if known else 0.0
        used = sum(part.outcome.tokens.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        tokens += count * used / part.outcome.answered if part.outcome.answered else 0.0
        seconds += count * (part.asking.trial_seconds or 0.0)
    if yes:
        cost = 0.0
    if most_cost is not None and cost > (left := most_cost.most - most_cost.used):
        return f"{block} costs about {written(cost)} and --max-cost leaves {written(left)}; --yes goes on until it is used"
    if most_tokens is not None and tokens > most_tokens.most - most_tokens.used:
        return f"{block} takes about {tokens:.0f} tokens, more than --max-tokens leaves"
    if budget is not None and cost > 0:
        spent = parts[0].recording.read(lambda connection: spending(connection, parts[0].purse.study))
        if cost > budget - spent.spent - spent.unknown:
            return (
                f"{block} costs about {written(cost)}, more than the budget leaves; raise models: budget in the study, or go on "
                "until it is used with --yes"
            )
    if clock.left is not None and seconds > clock.left:
        return f"{block} takes about {seconds:.0f} s, more than --max-minutes leaves"
    return None


def rest_of(part: Part) -> Estimate | None:
    """Return what the rest of a model's trials will cost, from all that is stored; None where nothing tells."""
    asking = part.asking
    growing = ahead_of(asking)
    if growing is not None:
        return estimate_growing(*growing, asking.price)
    return estimate(asking.costs, {kind: n for kind, n in asking.found.kinds.items() if n > 0})


def too_dear(estimates: Sequence[Estimate], left: float | None) -> str | None:
    """Say why the rest is not begun: even the lower ends of its estimates are more than the budget leaves; None where not."""
    low = sum(one.low for one in estimates)
    if left is None or low <= left:
        return None
    return (
        f"the rest will cost at least {written(low)} and {written(max(0.0, left))} of the budget is left; "
        "raise models: budget in the study, or go on until it is used with --yes"
    )
