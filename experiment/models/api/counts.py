"""Token counts, the same whatever a provider calls them.

Providers differ in what holds what: some leave the cached part out of the input, some leave thoughts out of the output.
A reply always holds whole prompt and whole output, with the cached and the thought part beside; :func:`disjoint` takes
them apart for prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Reply

MOST_TOKENS = 2**31 - 1
"""More no store takes and no server reads: such a count is none."""


@dataclass(frozen=True)
class Usage:
    """Counts of one response."""

    prompt: int | None = None  # all tokens read, and how many of them came from the provider's cache
    cached: int | None = None
    completion: int | None = None  # all tokens written, and how many of them were thoughts
    reasoning: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.prompt, other.prompt),
            _sum(self.cached, other.cached),
            _sum(self.completion, other.completion),
            _sum(self.reasoning, other.reasoning),
        )


@dataclass(frozen=True)
class Disjoint:
    """Counts of which none holds another: their sum is what was billed."""

    fresh: int
    cached: int
    output: int
    reasoning: int


def read_usage(payload: Mapping[str, Any]) -> Usage:
    """Return the counts of a response body in any of the forms seen."""
    found = payload.get("usage")
    usage: Mapping[str, Any] = found if isinstance(found, dict) else {}
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    completion = _count(usage, "completion_tokens", "output_tokens")
    cached = _part(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    reasoning = _part(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    if reasoning is None:
        reasoning = _count(usage, "reasoning_tokens")
    apart = _count(usage, "cache_read_input_tokens")
    if apart is not None and cached is None:
        prompt = _sum(_sum(prompt, apart), _count(usage, "cache_creation_input_tokens"))
        cached = apart
    total = _count(usage, "total_tokens")
    if completion is not None and reasoning and prompt is not None:
        is_apart = reasoning > completion or total == prompt + completion + reasoning
        completion += reasoning if is_apart else 0
    if cached is not None and prompt is not None:
        cached = min(cached, prompt)
    return Usage(prompt, cached, completion, reasoning)


def disjoint(reply: Reply) -> Disjoint:
    """Return fresh and cached input, answer and thought of a reply; what was not told counts as 0."""
    cached, reasoning = reply.cached_tokens or 0, reply.reasoning_tokens or 0
    return Disjoint(
        fresh=max(0, (reply.prompt_tokens or 0) - cached),
        cached=cached,
        output=max(0, (reply.completion_tokens or 0) - reasoning),
        reasoning=reasoning,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None


def _part(usage: Mapping[str, Any], holders: tuple[str, ...], name: str) -> int | None:
    for holder in holders:
        inner = usage.get(holder)
        if isinstance(inner, dict) and (value := _count(inner, name)) is not None:
            return value
    return None
