"""The plain way through a model: full passes over rows, nothing shared; the yardstick of the others.

Row by row it is the way of trials that are timed and of ``determinism: exact``. Models whose memory cannot be shared take
it with rows of like length in one batch, padded on the right, where what comes before cannot see it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from typing import Any

from experiment.models.local.caches import new_cache
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.grouping import Group, batches
from experiment.models.local.head import CausalModel
from experiment.models.local.padding import asked_of, padded
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row
from stimuli.seeds import generator


class PlainWay:
    """Computes rows in full.

    ``keeps_memory``: whether a row that is continued goes on from what its prompt left in the model's cache, as
    everybody's generation does; without it every token is found by a full pass.
    ``alone``: whether every row is computed by itself. Rows that are continued always are.
    """

    def __init__(self, model: CausalModel, *, keeps_memory: bool = False, alone: bool = True) -> None:
        self.model = model
        self.keeps_memory = keeps_memory
        self.alone = alone
        self.name = "plain" if alone else "batched"

    def forget(self) -> None:
        """Give up what is remembered: nothing."""

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it; rows alone have ``milliseconds`` and ``first_ms``."""
        together = [] if self.alone else [n for n, row in enumerate(rows) if row.decoding is None]
        for batch in batches(Group(0, tuple(together)), rows, budget):
            yield from zip(batch, self._several([rows[place] for place in batch]), strict=True)
        apart = set(range(len(rows))) - set(together)
        yield from ((place, self._one(rows[place])) for place in sorted(apart))

    def _several(self, rows: Sequence[Row]) -> list[Found]:
        import torch

        found = [Found(computed=len(row.ids)) for row in rows]
        asked = asked_of(rows)
        with torch.inference_mode():
            tokens = padded([row.ids for row in rows], self.model.device)
            with self.model.watched(*asked.watched()) as hidden:
                logits = self.model.logits(tokens, list(asked.columns()), use_cache=False)
            asked.note(self.model, found, logits, hidden)
        self.model.forwarded += sum(len(row.ids) for row in rows)
        return found

    def _one(self, row: Row) -> Found:
        import torch

        started = time.perf_counter()
        found = Found(computed=len(row.ids))
        asked = asked_of([row])
        cache = new_cache(self.model) if self.keeps_memory else None
        with torch.inference_mode():
            tokens = torch.tensor([row.ids.tolist()], device=self.model.device)
            with self.model.watched(*asked.watched()) as hidden:
                logits = self.model.logits(tokens, list(asked.columns()), **self.model.going_on(cache))
            asked.note(self.model, [found], logits, hidden)
        self.model.forwarded += len(row.ids)
        if row.decoding is not None:
            found.decoded = self._continue(row, row.decoding, logits[0, -1:], cache, found, started)
        found.milliseconds = (time.perf_counter() - started) * 1000
        return found

    def _continue(
        self, row: Row, how: Decoding, logits: Any, cache: Any, found: Found, started: float
    ) -> Decoded:
        import torch

        decoded, draws = Decoded(), generator("sampling", how.seed)
        ids = row.ids.tolist()
        while how.max_tokens > 0:
            token = choose(logits, [how], [draws])[0]
            if found.first_ms is None:
                found.first_ms = (time.perf_counter() - started) * 1000
            if not goes_on(decoded, token, how, self.model.ends):
                break
            ids.append(token)
            news = ids if cache is None else ids[-1:]
            with torch.inference_mode():
                tokens = torch.tensor([news], device=self.model.device)
                logits = self.model.logits(tokens, [len(news) - 1], **self.model.going_on(cache))[0]
            self.model.forwarded += len(news)
        return decoded
