"""The second way through a model: each group's prefix once in a transformers cache, then padded batches that go on from it.

A cache that a model is given grows in place, so every batch gets a fork: new cache and layer objects over the same
tensors, which the layers replace and never write to. Rows to score are padded on the right, where causal attention
cannot see it; rows to continue have one length in a batch, so nothing is padded.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.grouping import Group, batches, plan_groups
from experiment.models.local.head import CausalModel
from experiment.models.local.noting import note
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Ids, Row, common_length
from stimuli.seeds import generator

FORKABLE = ("DynamicLayer", "DynamicSlidingWindowLayer")


@dataclass(frozen=True, eq=False)
class _Prefix:
    """A computed prefix: its tokens and the cache to fork."""

    ids: Ids
    cache: Any

    @property
    def length(self) -> int:
        return len(self.ids)


class ExpandedWay:
    """Computes rows in batches that share a prefix.

    Parameters
    ----------
    model : CausalModel
    remembers : bool
        Whether a window of rows goes on from prefixes of the window before.
    """

    name = "expanded"

    def __init__(self, model: CausalModel, *, remembers: bool = True) -> None:
        self.model = model
        self.remembers = remembers
        self._kept: list[_Prefix] = []

    def is_possible(self) -> bool:
        """Whether every layer's cache is one that forks safely."""
        from transformers import DynamicCache

        try:
            layers = DynamicCache(config=self.model.model.config).layers
        except (KeyError, AttributeError, ValueError):
            return False
        return bool(layers) and all(type(layer).__name__ in FORKABLE for layer in layers)

    def forget(self) -> None:
        """Give up what is remembered."""
        self._kept = []

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete.

        Parameters
        ----------
        hold : set of int
            Places of rows that later ones will go on from.
        """
        if not self.remembers:
            self._kept = []
        groups = [Group(rows[place].shareable, (place,)) for place in sorted(hold)]
        others = [place for place in range(len(rows)) if place not in hold]
        for group in plan_groups([rows[place] for place in others]):
            groups.append(Group(group.prefix, tuple(others[place] for place in group.members)))
        for group in groups:
            ids = rows[group.members[0]].ids[: group.prefix]
            prefix, paid = self._prefix(ids, budget)
            left = list(group.members)
            while left:
                batch = next(batches(Group(prefix.length, tuple(left)), rows, budget))
                taken = [rows[place] for place in batch]
                for number, one in self._batch(prefix, taken):
                    own = len(taken[number].ids) - prefix.length
                    one.computed = own + (0 if number else paid)
                    yield batch[number], one
                paid = 0
                left = [place for place in left if place not in set(batch)]

    def _prefix(self, ids: Ids, budget: Budget) -> tuple[_Prefix, int]:
        """Return a computed prefix and how many tokens were computed for it; it goes on from the longest that is kept."""
        import torch
        from transformers import DynamicCache

        if not len(ids):
            return _Prefix(ids, DynamicCache(config=self.model.model.config)), 0
        known = max(
            (one for one in self._kept if common_length(one.ids, ids) == one.length),
            key=lambda one: one.length,
            default=None,
        )
        if known is not None and known.length == len(ids):
            return known, 0
        cache = DynamicCache(config=self.model.model.config) if known is None else _fork(known, 1)
        start = 0 if known is None else known.length
        with torch.inference_mode():
            while start < len(ids):
                piece = ids[start : start + max(1, budget.tokens)]
                tokens = torch.tensor([piece.tolist()], device=self.model.device)
                self.model.logits(tokens, [len(piece) - 1], past_key_values=cache, use_cache=True)
                start += len(piece)
        paid = len(ids) - (0 if known is None else known.length)
        self.model.forwarded += paid
        prefix = _Prefix(ids, cache)
        self._kept = [*(one for one in self._kept if one is not known), prefix]
        while sum(one.length for one in self._kept[:-1]) > budget.held:
            self._kept.pop(0)
        return prefix, paid

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
