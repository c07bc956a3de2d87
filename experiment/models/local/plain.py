"""Plain backends: full passes that share nothing but a common beginning (others are checked against them), and encoder–decoders.

Row by row, it serves timed trials and ``determinism: exact``. Models whose attention does not support packed branches use it in
batches padded on the right, which earlier tokens cannot see: after a common beginning that is computed once (``expanded``) if
several rows can continue the model's cache, otherwise with each row whole (``batched``).

Each text is encoded once, in batches of similar length; labels are scored by teacher forcing in the decoder, and generating
rows leave the batch when they end. There is no causal prefix to share: every token of an encoder attends to all others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiment.models.local.causal_model import CausalModel, Closed, asked_of, continue_rows, fork, new_cache
from experiment.models.local.rows import (
    Hidden,
    Ids,
    MemoryBudget,
    Row,
    RowOutcome,
    Sums,
    common_length,
    padded,
)

GROUP_COST = 32
"""Cost of one more group in tokens: a pass for its prefix and a less full batch."""

_DEEPEST = 64


class EncoderDecoderBackend:
    """Computes rows whose ``source`` an encoder reads, each ``alone`` for exact repetition and for times."""

    def __init__(self, model: CausalModel, *, alone: bool = False) -> None:
        self.model = model
        self.alone = alone
        self.name = "plain" if alone else "batched"

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


@dataclass(frozen=True, eq=False)
class _Prefix:
    """A computed beginning: its tokens, the cache to fork, and the sums of hidden states if a row needs a mean."""

    ids: Ids
    cache: Any = None
    sums: Sums | None = None


class PlainBackend:
    """Computes rows in full, each ``alone`` or in batches; ``shares`` computes a common beginning once.

    With ``keeps_memory``, a row is continued from its prompt's cache, otherwise by full passes.
    """

    def __init__(
        self, model: CausalModel, *, keeps_memory: bool = False, alone: bool = True, shares: bool = False
    ) -> None:
        self.model = model
        self.keeps_memory = keeps_memory or shares
        self.alone = alone
        self.shares = shares
        self.name = "plain" if alone else "expanded" if shares else "batched"

    def compute(
        self, rows: Sequence[Row], budget: MemoryBudget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Yield the place and outcome of each row; rows computed alone have ``milliseconds`` and ``first_ms``."""
        for group in plan_groups(rows) if self.shares else [Group(0, tuple(range(len(rows))))]:
            members = [rows[place] for place in group.members]
            prefix = self._prefix(members[0].ids[: group.prefix], budget, any(row.mean for row in members))
            paid = len(prefix.ids)
            for batch in self._batches(group, rows, budget):
                started = time.perf_counter()
                for number, outcome in self._batch(prefix, [rows[place] for place in batch]):
                    outcome.computed = len(rows[batch[number]].ids) - len(prefix.ids) + paid
                    paid = 0
                    if self.alone:
                        outcome.time_since(started)
                    yield batch[number], outcome

    def _batches(self, group: Group, rows: Sequence[Row], budget: MemoryBudget) -> Iterator[tuple[int, ...]]:
        def is_single(place: int) -> bool:
            return self.alone or (rows[place].decoding is not None and not self.keeps_memory)

        together = tuple(place for place in group.members if not is_single(place))
        yield from batches(Group(group.prefix, together), rows, budget)
        yield from ((place,) for place in group.members if is_single(place))

    def _prefix(self, ids: Ids, budget: MemoryBudget, wants_sums: bool) -> _Prefix:
        """Return a computed beginning of rows."""
        import torch

        if not len(ids):
            return _Prefix(ids)
        cache, sums = new_cache(self.model), None
        with torch.inference_mode():
            for start in range(0, len(ids), budget.tokens):
                piece = ids[start : start + budget.tokens]
                tokens = torch.tensor([piece.tolist()], device=self.model.device)
                with self.model.watched([], [(0, range(len(piece)))] if wants_sums else []) as hidden:
                    self.model.logits(tokens, [len(piece) - 1], **self.model.going_on(cache))
                if wants_sums:
                    sums = hidden.of_sum(0) if sums is None else sums + hidden.of_sum(0)
        self.model.forwarded += len(ids)
        return _Prefix(ids, cache, sums)

    def _batch(self, prefix: _Prefix, rows: Sequence[Row]) -> Iterator[tuple[int, RowOutcome]]:
        import torch

        start = len(prefix.ids)
        outcomes = [RowOutcome() for _ in rows]
        selection = asked_of(rows, start, prefix.sums)
        columns = selection.columns()
        decodings = [row.decoding for row in rows if row.decoding is not None]
        cache = None
        with torch.inference_mode():
            tokens = padded([row.ids[start:] for row in rows], self.model.device)
            if start:
                cache = fork(prefix.cache, len(rows), self.model.device)
            elif decodings and self.keeps_memory:
                cache = new_cache(self.model)
            with self.model.watched(*selection.watched()) as hidden:
                logits = self.model.logits(tokens, list(columns), **self.model.going_on(cache))
            selection.note(self.model, outcomes, logits, hidden)
        self.model.forwarded += sum(len(row.ids) - start for row in rows)
        if not decodings:
            yield from enumerate(outcomes)
            return
        all_ids = rows[0].ids.tolist()

        def advance(unfinished: list[int] | None, chosen: list[int]) -> Any:
            if cache is None:
                all_ids.extend(chosen)
                rows_of_ids = [all_ids]
            else:
                if unfinished is not None:
                    cache.reorder_cache(torch.tensor(unfinished, device=self.model.device))
                rows_of_ids = [[token] for token in chosen]
            tokens = torch.tensor(rows_of_ids, device=self.model.device)
            self.model.forwarded += tokens.numel()
            return self.model.logits(tokens, [len(rows_of_ids[0]) - 1], **self.model.going_on(cache))[:, 0]

        after = logits[:, columns[len(all_ids) - 1 - start]]
        for _, row, decoded in continue_rows(after, decodings, self.model.ends, advance):
            outcomes[row].decoded = decoded
            yield row, outcomes[row]


@dataclass(frozen=True)
class Group:
    """Rows computed from one common prefix."""

    prefix: int  # tokens that all members share and that are computed once; 0 shares nothing
    members: tuple[int, ...]  # places of the rows in the planned sequence


def plan_groups(rows: Sequence[Row]) -> list[Group]:
    """Return groups of rows with a common prefix each, cut through the tree of their tokens so that the fewest are computed."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].ids.astype(">u4").tobytes())
    shareable = [row.shareable for row in rows]
    shared = [
        min(common_length(rows[a].ids, rows[b].ids), shareable[a], shareable[b]) for a, b in pairwise(order)
    ]

    def cut(start: int, stop: int, depth: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return tokens to compute and (prefix, start, stop) spans for the sorted rows start..stop-1."""
        length = sum(len(rows[place].ids) for place in order[start:stop])
        if stop - start == 1:
            return length, [(0, start, stop)]
        prefix = min(shared[start : stop - 1])
        together = length - (stop - start - 1) * prefix + (GROUP_COST if prefix else 0)
        if depth >= _DEEPEST:
            return together, [(prefix, start, stop)]
        borders = [place + 1 for place in range(start, stop - 1) if shared[place] == prefix]
        parts = [
            cut(low, high, depth + 1) for low, high in zip([start, *borders], [*borders, stop], strict=True)
        ]
        apart = sum(tokens for tokens, _ in parts)
        if apart < together or prefix == 0:
            return apart, [span for _, spans in parts for span in spans]
        return together, [(prefix, start, stop)]

    if not rows:
        return []
    spans = cut(0, len(rows), 0)[1]
    groups = [Group(prefix, tuple(order[start:stop])) for prefix, start, stop in spans if prefix]
    alone = tuple(place for prefix, start, stop in spans if not prefix for place in order[start:stop])
    return [*groups, Group(0, alone)] if alone else groups


def batches(group: Group, rows: Sequence[Row], budget: MemoryBudget) -> Iterator[tuple[int, ...]]:
    """Yield batches of a group's members within the current budget; rows to be continued only with others of their length."""
    waiting = sorted(
        group.members, key=lambda place: (rows[place].decoding is None, -len(rows[place].ids), place)
    )
    while waiting:
        first = rows[waiting[0]]
        longest, continued = len(first.ids), first.decoding is not None
        n_own = longest - group.prefix
        n_positions = max(1, len(first.asked_at()))
        most = max(1, min(budget.tokens // n_own, budget.held // longest, budget.positions // n_positions))
        least = longest if continued else group.prefix + (1 if n_own <= 64 else n_own * 3 // 4)
        batch = []
        for place in waiting[:most]:
            if (rows[place].decoding is not None) != continued or len(rows[place].ids) < least:
                break
            batch.append(place)
        yield tuple(batch)
        waiting = waiting[len(batch) :]
