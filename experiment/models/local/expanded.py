"""The second way through a model: each group's prefix once in a transformers cache, then padded batches that go on from it.

A cache that a model is given grows in place, so every batch gets a fork: new cache and layer objects over the same
tensors, which the layers replace and never write to. Rows to score are padded on the right, where causal attention
cannot see it; rows to continue have one length in a batch, so nothing is padded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.grouping import Group, batches, plan_groups
from experiment.models.local.head import CausalModel
from experiment.models.local.noting import note
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row
from stimuli.seeds import generator

FORKABLE = ("DynamicLayer", "DynamicSlidingWindowLayer")


@dataclass(frozen=True)
class _Prefix:
    """A computed prefix: its length in tokens and the cache to fork."""

    length: int
    cache: Any


class ExpandedWay:
    """Computes rows in batches that share a prefix.

    Parameters
    ----------
    model : CausalModel
    """

    name = "expanded"

    def __init__(self, model: CausalModel) -> None:
        self.model = model

    def is_possible(self) -> bool:
        """Whether every layer's cache is one that forks safely."""
        from transformers import DynamicCache

        try:
            layers = DynamicCache(config=self.model.model.config).layers
        except (KeyError, AttributeError, ValueError):
            return False
        return bool(layers) and all(type(layer).__name__ in FORKABLE for layer in layers)

    def compute(self, rows: Sequence[Row], budget: Budget) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete."""
        for group in plan_groups(rows):
            prefix = self._prefix(rows[group.members[0]].ids[: group.prefix].tolist())
            paid = prefix.length == 0
            left = list(group.members)
            while left:
                batch = next(batches(Group(prefix.length, tuple(left)), rows, budget))
                taken = [rows[place] for place in batch]
                for number, one in self._batch(prefix, taken):
                    own = len(taken[number].ids) - prefix.length
                    one.computed = own + (0 if paid or number else prefix.length)
                    yield batch[number], one
                paid = True
                left = [place for place in left if place not in set(batch)]

    def _prefix(self, ids: Sequence[int]) -> _Prefix:
        import torch
        from transformers import DynamicCache

        cache = DynamicCache(config=self.model.model.config)
        if ids:
            with torch.inference_mode():
                tokens = torch.tensor([list(ids)], device=self.model.device)
                self.model.logits(tokens, [len(ids) - 1], past_key_values=cache, use_cache=True)
            self.model.forwarded += len(ids)
        return _Prefix(len(ids), cache)

    def _batch(self, prefix: _Prefix, rows: Sequence[Row]) -> Iterator[tuple[int, Found]]:
        import torch

        start = prefix.length
        suffixes = [row.ids[start:].tolist() for row in rows]
        longest = max(map(len, suffixes))
        keep = sorted({at - start for row in rows for at in row.asked_at()}) or [longest - 1]
        states = [(number, at - start) for number, row in enumerate(rows) for at in row.states]
        found = [Found() for _ in rows]
        with torch.inference_mode():
            padded = [[*suffix, *[0] * (longest - len(suffix))] for suffix in suffixes]
            tokens = torch.tensor(padded, device=self.model.device)
            cache = _fork(prefix, len(rows))
            with self.model.watched(states) as hidden:
                logits = self.model.logits(tokens, keep, past_key_values=cache, use_cache=True)
            column = {at + start: number for number, at in enumerate(keep)}
            note(self.model, rows, found, logits, column, hidden)
        self.model.forwarded += sum(map(len, suffixes))
        how = [row.decoding for row in rows]
        for number, one in enumerate(how):
            if one is None:
                yield number, found[number]
        continued = [number for number, one in enumerate(how) if one is not None]
        if continued:
            last = [logits[number, column[len(rows[number].ids) - 1]] for number in continued]
            decodings = [one for one in how if one is not None]
            for line, decoded in self._continue(cache, torch.stack(last), decodings):
                found[continued[line]].decoded = decoded
                yield continued[line], found[continued[line]]

    def _continue(self, cache: Any, logits: Any, how: Sequence[Decoding]) -> Iterator[tuple[int, Decoded]]:
        """Continue all rows of a cache; each draws from its own generator and leaves the batch when it is done."""
        import torch

        done = [Decoded() for _ in how]
        draws = [generator("sampling", one.seed) for one in how]
        active = list(range(len(how)))
        nothing = [line for line in active if how[line].max_tokens <= 0]
        yield from ((line, done[line]) for line in nothing)
        while active:
            chosen = choose(logits, [how[line] for line in active], [draws[line] for line in active])
            stay = [
                number
                for number, (line, token) in enumerate(zip(active, chosen, strict=True))
                if line not in nothing and goes_on(done[line], token, how[line], self.model.ends)
            ]
            for line in sorted({*active} - {active[number] for number in stay} - {*nothing}):
                yield line, done[line]
            if not stay:
                return
            with torch.inference_mode():
                if len(stay) < len(active):
                    cache.batch_select_indices(torch.tensor(stay, device=self.model.device))
                active = [active[number] for number in stay]
                tokens = torch.tensor([[chosen[number]] for number in stay], device=self.model.device)
                logits = self.model.logits(tokens, [0], past_key_values=cache, use_cache=True)[:, 0]
            self.model.forwarded += len(active)


def _fork(prefix: _Prefix, count: int) -> Any:
    """Return a cache of its own for ``count`` rows, over the tensors of the prefix."""
    cache = copy.copy(prefix.cache)
    cache.layers = [copy.copy(layer) for layer in prefix.cache.layers]
    for layer in cache.layers:
        if layer.is_initialized:
            layer.keys = layer.keys.expand(count, -1, -1, -1)
            layer.values = layer.values.expand(count, -1, -1, -1)
    return cache
