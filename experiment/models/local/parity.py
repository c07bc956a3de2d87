"""The check at the start of a run: which way through the model gives the numbers of plain passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from experiment.models.local.branching import BranchingWay
from experiment.models.local.expanded import ExpandedWay
from experiment.models.local.head import CausalModel, is_out_of_memory
from experiment.models.local.plain import PlainWay
from experiment.models.local.rows import Budget, Decoding, Found, Row, common_length

TOLERANCE = {"float32": 1e-3}
TOLERANCE_16_BIT = 0.25
"""Nats. Two plain passes in 16 bits differ from 32 bits by some 0.04 in a model of 30 million parameters."""

_CHECKED_TOKENS = 4
_COMPARED = 16
_CHECK_BUDGET = 256
_CANDIDATES = 400


def choose_way(
    model: CausalModel, rows: Sequence[Row], dtype: str, plain: PlainWay
) -> tuple[BranchingWay | ExpandedWay | PlainWay, dict[str, object]]:
    """Return the fastest way whose log-probabilities are those of plain passes, and what the check saw.

    Three rows that share as much as any are scored and continued by a few tokens; what a way makes of them is held
    against a plain pass over the same tokens.
    """
    tolerance = TOLERANCE.get(dtype, TOLERANCE_16_BIT)
    chosen = _sample(rows)
    forwarded, calls = model.forwarded, model.calls
    refused: dict[str, str] = {}
    expanded = ExpandedWay(model)
    ways: list[BranchingWay | ExpandedWay] = [BranchingWay(model)]
    if expanded.is_possible():
        ways.append(expanded)
    else:
        refused["expanded"] = "the model's memory is no plain key-value cache"
    for way in ways:
        try:
            worst = _difference(model, way, chosen)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            refused[way.name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        if worst <= tolerance:
            model.forwarded, model.calls = forwarded, calls
            return way, {
                "path": way.name, "checked": len(chosen), "max_abs_difference": worst, "tolerance": tolerance,
                "refused": refused,
            }  # fmt: skip
        refused[way.name] = f"differs from plain passes by {worst:.3g} nats; at most {tolerance:g} is rounding"
    model.forwarded, model.calls = forwarded, calls
    return plain, {"path": "plain", "checked": len(chosen), "tolerance": tolerance, "refused": refused}


def _sample(rows: Sequence[Row]) -> list[Row]:
    """Return up to three rows: the two neighbours with most in common, and one more."""
    some = rows[:: max(1, len(rows) // _CANDIDATES)]
    order = sorted(some, key=lambda row: row.ids.astype(">u4").tobytes())
    if len(order) < 2:
        return order
    best = max(range(len(order) - 1), key=lambda place: common_length(order[place].ids, order[place + 1].ids))
    return [order[best], order[best + 1], *([order[-1 if best != len(order) - 2 else 0]] if len(order) > 2 else [])]


def _difference(model: CausalModel, way: BranchingWay | ExpandedWay, rows: Sequence[Row]) -> float:
    """Return the largest difference in a log-probability between a way and plain passes, in nats.

    Where a way continues a row, it may choose another token than plain passes only where the two are that close.
    """
    short = Decoding(_CHECKED_TOKENS, 0.0, 0, lambda _: False)
    asked = [
        replace(row, targets=_targets(row), borders=(), states=(), decoding=short if row.decoding else None)
        for row in rows
    ]
    found = dict(way.compute(asked, Budget(_CHECK_BUDGET, 16 * _CHECK_BUDGET)))
    return max(_apart_from_plain(model, row, found[place]) for place, row in enumerate(asked))


def _targets(row: Row) -> tuple[tuple[int, int], ...]:
    """Return what is compared of a row: what it asks, its own last tokens, and its first ones as candidates behind it."""
    length = len(row.ids)
    own = [(position, int(row.ids[position])) for position in range(max(1, length - _COMPARED), length)]
    candidates = [(length, token) for token in dict.fromkeys(row.ids[:_COMPARED].tolist())]
    return tuple(dict.fromkeys([*row.targets[:_COMPARED], *own, *candidates]))


def _apart_from_plain(model: CausalModel, row: Row, found: Found) -> float:
    import torch

    news = [] if found.decoded is None else found.decoded.ids
    ids = [*row.ids.tolist(), *news]
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=model.device)
        first = min([position for position, _ in row.targets] + [len(row.ids)]) - 1
        logprobs = model.logits(tokens, range(first, len(ids)), use_cache=False)[0].log_softmax(-1)
    apart = [
        abs(logprobs[position - 1 - first, token].item() - found.logprobs[position, token])
        for position, token in row.targets
    ]
    for step, token in enumerate(news):
        after = logprobs[len(row.ids) - 1 + step - first]
        apart.append((after.max() - after[token]).item())
    return max(value if math.isfinite(value) else math.inf for value in apart)
