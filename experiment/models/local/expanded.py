"""The second way through a model: each group's prefix once in a transformers cache, then padded batches that go on from it.

Rows to score are padded on the right, where what comes before cannot see it; rows to continue have one length in a batch,
so nothing is padded. Some models keep a state that they take up again for one token at a time only: with *steps*, what
stands behind a prefix is computed so, all rows of a batch at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.caches import fork, new_cache
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.grouping import GROUP_COST, Group, batches, plan_groups
from experiment.models.local.head import CausalModel
from experiment.models.local.noting import Asked
from experiment.models.local.padding import asked_of, padded
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Ids, Row, common_length
from experiment.models.local.sums import Hidden, Sums
from stimuli.seeds import generator

_FEW_STEPS = 0.25
"""Tokens go behind a prefix one by one where they are at most so large a part of the whole."""


@dataclass(frozen=True, eq=False)
class _Prefix:
    """A computed prefix: its tokens and the cache to fork; ``of_many`` where several rows may still go on from it.

    ``sums`` are those of the hidden states over its tokens, where rows that go on from it want a mean.
    """

    ids: Ids
    cache: Any
    of_many: bool = False
    sums: Sums | None = None

    @property
    def length(self) -> int:
        return len(self.ids)


class ExpandedWay:
    """Computes rows in batches that share a prefix.

    ``remembers``: whether a window of rows goes on from prefixes of the window before.
    ``steps``: whether tokens go behind a prefix one at a time.
    """

    def __init__(self, model: CausalModel, *, remembers: bool = True, steps: bool = False) -> None:
        self.model = model
        self.remembers = remembers
        self.steps = steps
        self.name = "stepwise" if steps else "expanded"
        self._kept: list[_Prefix] = []
        self._sums = False

    def forget(self) -> None:
        """Give up what is remembered."""
        self._kept = []

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete.

        ``hold``: places of rows that later ones will go on from.
        """
        if not self.remembers:
            self._kept = []
        self._sums = any(row.mean for row in rows)
        paid = self._beginning([rows[place] for place in sorted(hold)], budget)
        others = [place for place in range(len(rows)) if place not in hold]
        groups = []
        for place in sorted(hold):
            ids = rows[place].ids[: rows[place].shareable]
            same = [other for other in others if _goes_on(rows[other], ids)]
            others = [other for other in others if other not in same]
            groups.append(Group(len(ids), (place, *same)))
        for group in plan_groups([rows[place] for place in others]):
            groups.append(Group(group.prefix, tuple(others[place] for place in group.members)))
        for group in groups:
            prefix, cost = self._prefix(rows[group.members[0]].ids[: group.prefix], budget)
            paid += cost
            left = list(group.members)
            while left:
                rest = Group(prefix.length, tuple(left))
                batch = next(batches(rest, rows, budget, steps=self.steps and prefix.length > 0))
                taken = [rows[place] for place in batch]
                for number, one in self._batch(prefix, taken):
                    one.computed = len(taken[number].ids) - prefix.length + paid
                    paid = 0
                    yield batch[number], one
                left = [place for place in left if place not in set(batch)]

    def _beginning(self, rows: Sequence[Row], budget: Budget) -> int:
        """Compute what conversations have in common before each of them is; return how many tokens that took."""
        if len(rows) < 2:
            return 0
        ids = rows[0].ids[: min(row.shareable for row in rows)]
        common = min(common_length(ids, row.ids) for row in rows)
        return self._prefix(ids[:common], budget, of_many=True)[1] if common >= GROUP_COST else 0

    def _prefix(self, ids: Ids, budget: Budget, *, of_many: bool = False) -> tuple[_Prefix, int]:
        """Return a computed prefix and how many tokens were computed for it; it goes on from the longest that is kept."""
        import torch

        if not len(ids):
            return _Prefix(ids, new_cache(self.model)), 0
        known = max(
            (
                one
                for one in self._kept
                if common_length(one.ids, ids) == one.length and (one.sums is not None or not self._sums)
            ),
            key=lambda one: one.length,
            default=None,
        )
        if known is not None and known.length == len(ids):
            return known, 0
        if known is not None and self.steps and len(ids) - known.length > _FEW_STEPS * len(ids):
            known = None
        cache = new_cache(self.model) if known is None else fork(known.cache, 1)
        start = 0 if known is None else known.length
        sums = None if known is None else known.sums
        at_once = budget.tokens if not self.steps else len(ids) if known is None else 1
        with torch.inference_mode():
            while start < len(ids):
                piece = ids[start : start + max(1, at_once)]
                tokens = torch.tensor([piece.tolist()], device=self.model.device)
                over = [(0, range(len(piece)))] if self._sums else []
                with self.model.watched([], over) as hidden:
                    self.model.logits(tokens, [len(piece) - 1], **self.model.going_on(cache))
                if self._sums:
                    sums = hidden.of_sum(0) if sums is None else sums + hidden.of_sum(0)
                start += len(piece)
        paid = len(ids) - (0 if known is None else known.length)
        self.model.forwarded += paid
        prefix = _Prefix(ids, cache, of_many, sums if self._sums else None)
        self._kept = [*(one for one in self._kept if one is not known or one.of_many), prefix]
        while sum(one.length for one in self._kept[:-1]) > budget.held:
            self._kept.pop(0)
        return prefix, paid

    def _batch(self, prefix: _Prefix, rows: Sequence[Row]) -> Iterator[tuple[int, Found]]:
        import torch

        start = prefix.length
        found = [Found() for _ in rows]
        asked = asked_of(rows, start, prefix.sums)
        column = asked.columns()
        with torch.inference_mode():
            tokens = padded([row.ids[start:] for row in rows], self.model.device)
            cache = fork(prefix.cache, len(rows))
            if self.steps and start:
                logits, hidden = self._stepped(tokens, asked, cache)
            else:
                with self.model.watched(*asked.watched()) as hidden:
                    logits = self.model.logits(tokens, list(column), **self.model.going_on(cache))
            asked.note(self.model, found, logits, hidden)
        self.model.forwarded += sum(len(row.ids) - start for row in rows)
        continued = [number for number, row in enumerate(rows) if row.decoding is not None]
        yield from ((number, one) for number, one in enumerate(found) if rows[number].decoding is None)
        if continued:
            last = [logits[number, column[len(rows[number].ids) - 1 - start]] for number in continued]
            decodings = [row.decoding for row in rows if row.decoding is not None]
            for line, decoded in self._continue(cache, torch.stack(last), decodings):
                found[continued[line]].decoded = decoded
                yield continued[line], found[continued[line]]

    def _stepped(self, tokens: Any, asked: Asked, cache: Any) -> tuple[Any, Hidden]:
        """Compute all lines of a batch one token at a time; return logits and hidden states as of one pass."""
        import torch

        column, (states, sums) = asked.columns(), asked.watched()
        parts: list[Any] = []
        hidden = Hidden()
        for at in range(tokens.shape[1]):
            here = [number for number, (_, step) in enumerate(states) if step == at]
            still = [number for number, (_, index) in enumerate(sums) if at < len(index)]
            places = [(states[number][0], 0) for number in here]
            with self.model.watched(places, [(sums[number][0], [0]) for number in still]) as one:
                logits = self.model.logits(tokens[:, at : at + 1], [0], **self.model.going_on(cache))
            if at in column:
                parts.append(logits)
            _gather(hidden.at, here, one.at, len(states))
            _gather(hidden.sums, still, one.sums, len(sums))
        return torch.cat(parts, dim=1), hidden

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
                    cache.reorder_cache(torch.tensor(stay, device=self.model.device))
                active = [active[number] for number in stay]
                tokens = torch.tensor([[chosen[number]] for number in stay], device=self.model.device)
                logits = self.model.logits(tokens, [0], **self.model.going_on(cache))[:, 0]
            self.model.forwarded += len(active)


def _gather(
    into: list[NDArray[np.float32]], numbers: Sequence[int], news: Sequence[NDArray[np.float32]], count: int
) -> None:
    """Add what one step gave for some places, a layer each, to what all steps give."""
    for layer, some in enumerate(news):
        if len(into) <= layer:
            into.append(np.zeros((count, some.shape[1]), dtype=np.float32))
        into[layer][numbers] += some


def _goes_on(row: Row, ids: Ids) -> bool:
    return row.shareable >= len(ids) and common_length(row.ids, ids) == len(ids)
