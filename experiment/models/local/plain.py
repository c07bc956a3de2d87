"""The plain way through a model: each row by itself in full passes, nothing shared; the yardstick of the others.

It is the way of trials that are timed, of ``determinism: exact``, and of models whose memory is no plain key-value cache.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from typing import Any

from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.head import CausalModel
from experiment.models.local.noting import note
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row
from stimuli.seeds import generator


class PlainWay:
    """Computes one row after the other.

    Parameters
    ----------
    model : CausalModel
    keeps_memory : bool
        Whether a row that is continued goes on from what its prompt left in the model's cache, as everybody's
        generation does; without it every token is found by a full pass.
    """

    name = "plain"

    def __init__(self, model: CausalModel, *, keeps_memory: bool = False) -> None:
        self.model = model
        self.keeps_memory = keeps_memory

    def forget(self) -> None:
        """Give up what is remembered: nothing."""

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it; ``milliseconds`` and ``first_ms`` are this row's alone."""
        for place, row in enumerate(rows):
            yield place, self._one(row)

    def _one(self, row: Row) -> Found:
        import torch

        started = time.perf_counter()
        found = Found(computed=len(row.ids))
        keep = sorted(row.asked_at()) or [len(row.ids) - 1]
        cache = self._cache()
        given: dict[str, Any] = (
            {"use_cache": False} if cache is None else {"past_key_values": cache, "use_cache": True}
        )
        with torch.inference_mode():
            tokens = torch.tensor([row.ids.tolist()], device=self.model.device)
            with self.model.watched([(0, at) for at in row.states]) as hidden:
                logits = self.model.logits(tokens, keep, **given)
            note(self.model, [row], [found], logits, {at: n for n, at in enumerate(keep)}, hidden)
        self.model.forwarded += len(row.ids)
        if row.decoding is not None:
            found.decoded = self._continue(row, row.decoding, logits[0, -1:], cache, found, started)
        found.milliseconds = (time.perf_counter() - started) * 1000
        return found

    def _cache(self) -> Any:
        if not self.keeps_memory:
            return None
        from transformers import DynamicCache

        return DynamicCache(config=self.model.model.config)

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
            given: dict[str, Any] = (
                {"use_cache": False} if cache is None else {"past_key_values": cache, "use_cache": True}
            )
            with torch.inference_mode():
                tokens = torch.tensor([news], device=self.model.device)
                logits = self.model.logits(tokens, [len(news) - 1], **given)[0]
            self.model.forwarded += len(news)
        return decoded
