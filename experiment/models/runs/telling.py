"""How far a run is, what it will cost and what its models can give, in words; the name of a run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from experiment.models.api.capabilities import UNTRIED
from experiment.models.money import written
from experiment.models.money.estimate import Estimate
from experiment.models.runs.asking import Asking
from experiment.models.runs.outcome import SHOWN_ERRORS, Outcome


def unread(response_statuses: Mapping[str, int]) -> str:
    """Say how many answers of a run are not valid, and as what they were read; empty where all are."""
    other = {status: count for status, count in response_statuses.items() if status != "valid" and count}
    if not other:
        return ""
    named = ", ".join(f"{count} {status}" for status, count in sorted(other.items()))
    return f"{named} of {sum(response_statuses.values())} answers"


def read_beside(first_tokens: Mapping[str, int], answered: int) -> str:
    """Say how many choices are read from the reply because their first token does not say the same."""
    why = {
        "unsettled": "leaves the label open",
        "disagrees": "makes another label most probable (as it may where answers are drawn)",
    }
    named = ", ".join(
        f"of {first_tokens[mark]} it {said}" for mark, said in why.items() if mark in first_tokens
    )
    return (
        f"{sum(first_tokens.values())} of {answered} answers are read from the reply, since their first token does not say the same: "
        f"{named}; the column path names them"
    )


def told_never(outcome: Outcome) -> list[str]:
    """Say which trials of a model can never be answered, why, and what lets them be asked; nothing where all can be."""
    if not outcome.given_up:
        return []
    lines = [f"{count} sessions have ended: {reason}" for reason, count in outcome.ended.items()]
    lines += [f"can never be answered: {fault}" for fault in outcome.too_long[:SHOWN_ERRORS]]
    more = len(outcome.too_long) - SHOWN_ERRORS
    in_talks = outcome.given_up - len(outcome.too_long)
    parts = [
        *([f"{in_talks} trials of sessions that ended so"] if in_talks else []),
        *([f"{len(outcome.too_long)} trials whose prompts are too long"] if outcome.too_long else []),
    ]
    fewer = "Ask for fewer trials a session, or context: independent, or name" if in_talks else "Name"
    return [
        *lines,
        *([f"… and {more} more"] if more > 0 else []),
        f"{' and '.join(parts)} can never be answered and are not asked again. What was answered is in the tables. {fewer} a model "
        "that reads more; or, where its server reads more now, give --ask-again.",
    ]


_COMPUTES = {
    "packed": "what prompts share once, many endings in one pass (packed)",
    "expanded": "what prompts share once, endings side by side (expanded)",
    "stepwise": "what prompts share once, endings token by token (stepwise)",
    "plain": "each prompt whole (plain)",
    "batched": "prompts whole, several at a time (batched)",
}


def blocks_of(asking: Asking, left: int) -> str:
    """Say in words how far a model is that has so many trials left."""
    total = len(asking.found.rounds)
    found = asking.found
    begun = sum(found.missing.get(one, 0) + found.out[one] > 0 for one in found.rounds) if left > 0 else 0
    if not begun:
        return f"all {total} blocks of each list" if total > 1 else "the one block of each list"
    return f"{total - begun} of {total} blocks of each list"


def told_endpoint(reader: str, probe: object) -> list[str]:
    """Say what a model's server can give, as the probe found out; nothing where there was none."""
    if not isinstance(probe, Mapping):
        return []
    labels, prompt = probe["top_logprobs"], probe["prompt_logprobs"]
    gives = [
        f"log-probabilities of the {labels} likeliest answer tokens" if labels else "",
        "log-probabilities of the prompt (surprisal)" if prompt else "",
        f"answers held to labels ({probe['structure']})"
        if probe["structure"] not in ("none", UNTRIED)
        else "",
        "temperature" if probe["temperature"] else "",
        "seed" if probe["seed"] else "",
        "system message" if probe["system_role"] else "",
        ("thoughts (counted apart)" if probe["reasoning_counts"] else "thoughts") if probe["thinks"] else "",
    ]
    lacks = [
        "" if labels else "log-probabilities of answers (choices are read from its text)",
        "" if prompt else "log-probabilities of the prompt (no surprisal)",
        "" if probe["temperature"] else "temperature",
        "" if probe["seed"] else "seed",
    ]
    said = f"{reader}: {probe['resolved_model'] or probe['model']} at {probe['base_url']}"
    parts = [("gives", gives), ("does not give", lacks)]
    lines = [f"  {word}: {', '.join(filter(None, some))}" for word, some in parts if any(some)]
    unstable = probe["stable_prompt_logprobs"] is False
    remarks = [
        *probe["remarks"],
        *(["the same prompt had other log-probabilities twice"] if unstable else []),
    ]
    return [said, *lines, *(f"  {remark}" for remark in remarks)]


def told_parity(reader: str, parity: Mapping[str, object]) -> list[str]:
    """Say by which way a model on this machine computes and how far it is from plain passes; nothing where none was checked."""
    if not parity.get("checked"):
        return []
    how = _COMPUTES.get(str(parity["path"]), str(parity["path"]))
    apart, checked = parity.get("max_abs_difference"), parity["checked"]
    far = ""
    if isinstance(apart, float):
        prompts = "1 prompt" if checked == 1 else f"{checked} prompts"
        far = f"; in {prompts} checked, log-probabilities are at most {apart:.1g} nats from plain passes"
    return [f"{reader}: computes {how}{far}"]


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
