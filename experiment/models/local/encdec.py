"""Backend for encoder–decoder models (T5, UL2, ByT5).

Each text is encoded once, in batches of similar length; labels are scored by teacher forcing in the decoder, and generating
rows leave the batch when they end. There is no causal prefix to share: every token of an encoder attends to all others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from typing import Any

from experiment.models.local.causal_model import CausalModel, Closed, asked_of, continue_rows
from experiment.models.local.rows import Hidden, Ids, MemoryBudget, Row, RowOutcome, padded


class EncoderDecoderBackend:
    """Computes rows whose ``source`` an encoder reads, each ``alone`` for exact repetition and for times."""

    def __init__(self, model: CausalModel, *, alone: bool = False) -> None:
        self.model = model
        self.alone = alone
        self.name = "plain" if alone else "batched"

    def together(self) -> EncoderDecoderBackend:
        """Return the same backend with batches."""
        return EncoderDecoderBackend(self.model)

    def compute(
        self, rows: Sequence[Row], budget: MemoryBudget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Yield the place and outcome of each row as soon as it is complete."""
        of_source: dict[bytes, list[int]] = {}
        for place, row in enumerate(rows):
            key = _source(row).tobytes()
            of_source.setdefault(key if not self.alone else key + place.to_bytes(4, "big"), []).append(place)
        waiting = sorted(of_source.values(), key=lambda places: -len(_source(rows[places[0]])))
        while waiting:
            longest = len(_source(rows[waiting[0][0]]))
            most = 1 if self.alone else max(1, min(budget.tokens // longest, budget.positions))
            batch = [
                places
                for places in waiting[:most]
                if len(_source(rows[places[0]])) >= longest - 16 - longest // 4
            ]
            waiting = waiting[len(batch) :]
            yield from self._batch(rows, batch, budget)

    def _batch(
        self, rows: Sequence[Row], batch: Sequence[Sequence[int]], budget: MemoryBudget
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Encode each text of a batch once, then decode all rows that continue from it."""
        import torch

        started = time.perf_counter()
        sources = [_source(rows[places[0]]) for places in batch]
        longest = max(map(len, sources))
        with torch.inference_mode():
            seen = torch.arange(longest) < torch.tensor([len(source) for source in sources])[:, None]
            seen = seen.long().to(self.model.device)
            if self.model.is_closed:
                raise Closed
            read = self.model.model.get_encoder()(
                input_ids=padded(sources, self.model.device), attention_mask=seen
            )
        self.model.forwarded += sum(map(len, sources))
        lines = [(number, place) for number, places in enumerate(batch) for place in places]
        first = {places[0]: len(source) for places, source in zip(batch, sources, strict=True)}
        for continues in (False, True):
            remaining = [line for line in lines if (rows[line[1]].decoding is not None) == continues]
            while remaining:
                length = max(len(rows[place].ids) for _, place in remaining)
                n_positions = max(1, *(len(rows[place].asked_at()) for _, place in remaining))
                at_once = min(
                    budget.tokens // length,
                    budget.held // (longest + length),
                    budget.positions // n_positions,
                )
                together = [line for line in remaining if not continues or len(rows[line[1]].ids) == length]
                together = together[: 1 if self.alone else max(1, at_once)]
                for place, outcome in self._decode(rows, together, read, seen):
                    outcome.computed = first.get(place, 0)
                    if self.alone:
                        outcome.time_since(started)
                    yield place, outcome
                taken = set(together)
                remaining = [line for line in remaining if line not in taken]

    def _decode(
        self, rows: Sequence[Row], lines: Sequence[tuple[int, int]], read: Any, seen: Any
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Score or continue rows, given as (line of the encoder's output ``read``, place); ``seen`` masks the texts' padding."""
        import torch

        rows_of_lines = [rows[place] for _, place in lines]
        outcomes = [RowOutcome() for _ in rows_of_lines]
        selection = asked_of(rows_of_lines)
        decodings = [row.decoding for row in rows_of_lines if row.decoding is not None]
        with torch.inference_mode():
            of_line = torch.tensor([number for number, _ in lines], device=self.model.device)
            read, mask = _of_lines(read, of_line), seen[of_line]
            begun = padded([row.ids for row in rows_of_lines], self.model.device)
            output = self._pass(begun, read, mask, None, use_cache=bool(decodings))
            logits = output.logits[:, list(selection.columns())].float()
            selection.note(self.model, outcomes, logits, Hidden())
        self.model.forwarded += sum(len(row.ids) for row in rows_of_lines)
        if not decodings:
            yield from ((place, outcomes[number]) for number, (_, place) in enumerate(lines))
            return
        cache = output.past_key_values

        def advance(unfinished: list[int] | None, chosen: list[int]) -> Any:
            nonlocal read, mask, cache
            if unfinished is not None:
                indices = torch.tensor(unfinished, device=self.model.device)
                cache.reorder_cache(indices)
                read, mask = _of_lines(read, indices), mask[indices]
            new_tokens = torch.tensor([[token] for token in chosen], device=self.model.device)
            output = self._pass(new_tokens, read, mask, cache, use_cache=True)
            cache = output.past_key_values
            self.model.forwarded += len(chosen)
            return output.logits[:, -1].float()

        for _, number, decoded in continue_rows(logits[:, -1], decodings, self.model.ends, advance):
            outcomes[number].decoded = decoded
            yield lines[number][1], outcomes[number]

    def _pass(self, tokens: Any, read: Any, mask: Any, cache: Any, *, use_cache: bool) -> Any:
        if self.model.is_closed:
            raise Closed
        self.model.calls += 1
        return self.model.model(
            encoder_outputs=read,
            attention_mask=mask,
            decoder_input_ids=tokens,
            past_key_values=cache,
            use_cache=use_cache,
        )


def _of_lines(read: Any, lines: Any) -> Any:
    """Return the encoder's output with one line per decoder row."""
    return type(read)(last_hidden_state=read.last_hidden_state[lines])


def _source(row: Row) -> Ids:
    assert row.source is not None
    return row.source
