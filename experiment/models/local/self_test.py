"""Self-test of a model's numerical reproducibility: the same trials alone, batched, shuffled and resumed.

Batches of other shapes round differently, so log-probabilities differ in their last digits and a near-tie may flip. The
self-test measures by how much, on this machine and for this model, for each level of ``determinism``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiment.models.engine import Reply, Request
from experiment.models.local.engine import DETERMINISM, LocalEngine
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError
from stimuli.seeds import generator

TRIALS = 50
_CUT = 0.7
_TEXT_TOKENS = 16


@dataclass(frozen=True)
class ComputationDifference:
    """Difference between two computations of the same trials."""

    determinism: str
    # left, right: ``alone``, ``batched``, ``shuffled`` or ``resumed``
    left: str
    right: str
    trials: int
    # Of a label's log-probability or a region's surprisal, in nats; None if neither was requested
    largest_difference: float | None
    changed_answers: int  # trials whose text (label or generated) differs


@dataclass(frozen=True)
class SelfTest:
    """Result of a self-test."""

    model: str
    comparisons: tuple[ComputationDifference, ...]
    holds: bool  # whether ``exact`` gave the same numbers each time


def self_test(
    settings: ModelSettings,
    requests: Sequence[Request],
    *,
    levels: Sequence[str] = DETERMINISM,
    trials: int = TRIALS,
    seed: int = 1,
) -> SelfTest:
    """Compare the first trials of a run, computed alone, batched, shuffled and resumed, on each level of determinism."""
    sample = [
        replace(
            request,
            also_text=request.labels is not None,
            max_tokens=min(max(request.max_tokens, 1), _TEXT_TOKENS),
        )
        for request in list(requests)[:trials]
    ]
    if not sample:
        raise UserError(
            "there is no trial to test with", mend="Build the study's items first: wrods build STUDY."
        )
    comparisons: list[ComputationDifference] = []
    loaded: LocalEngine | None = None
    for level in levels:
        engine = LocalEngine(
            replace(settings, options={**settings.options, "determinism": level, "timing": False})
        )
        if loaded is not None:
            engine.borrow(loaded)
        loaded = engine
        replies = _computed(engine, sample, seed)
        pairs = [("batched", "resumed"), ("batched", "shuffled"), ("batched", "alone")]
        comparisons += [_compared(level, left, right, replies) for left, right in pairs]
    return SelfTest(settings.use, tuple(comparisons), all(_is_kept(comparison) for comparison in comparisons))


def _computed(engine: LocalEngine, requests: Sequence[Request], seed: int) -> dict[str, dict[str, Reply]]:
    """Return the replies of each computation, with the cache cleared between them, as in a new process."""
    shuffled = list(requests)
    generator("self-test", seed).shuffle(shuffled)
    cut = int(len(requests) * _CUT)
    orders: dict[str, list[Sequence[Request]]] = {
        "batched": [requests],
        "resumed": [requests[:cut], requests[cut:]],
        "shuffled": [shuffled],
        "alone": [[request] for request in requests],
    }
    replies: dict[str, dict[str, Reply]] = {}
    for name, parts in orders.items():
        replies[name] = {}
        for part in parts:
            engine.forget_memory()
            replies[name] |= {reply.work_key: reply for reply in engine.answer(part)} if part else {}
    return replies


def _compared(
    level: str, left: str, right: str, replies: dict[str, dict[str, Reply]]
) -> ComputationDifference:
    left_replies, other = replies[left], replies[right]
    differences: list[float] = []
    changed = 0
    for key, reply in left_replies.items():
        other_reply = other[key]
        changed += (reply.text, reply.generated) != (other_reply.text, other_reply.generated)
        labels, other_labels = reply.label_logprobs or {}, other_reply.label_logprobs or {}
        differences += [abs(value - other_labels[label]) for label, value in labels.items()]
        differences += [
            abs(a.surprisal - b.surprisal)
            for a, b in zip(reply.regions, other_reply.regions, strict=True)
            if a.surprisal is not None and b.surprisal is not None
        ]
    return ComputationDifference(
        level, left, right, len(left_replies), max(differences) if differences else None, changed
    )


def _is_kept(difference: ComputationDifference) -> bool:
    return difference.determinism != "exact" or (
        difference.changed_answers == 0 and difference.largest_difference in (None, 0.0)
    )
