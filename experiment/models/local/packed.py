"""The fastest backend: a trie of all rows, with its branches packed into each pass.

Rows are continued together, one token each per pass, after a path that all share. Each row's own tokens after the shared path
are in buffers with room for all that it may still generate. A row leaves when it is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.causal_model import CausalModel, OutputSelection, RowSpan, continue_rows
from experiment.models.local.kv_cache_tree import SLACK, CacheMemory, Layers, Memory
from experiment.models.local.rows import (
    Decoding,
    Ids,
    Marks,
    MemoryBudget,
    Row,
    RowOutcome,
    common_length,
    up_to,
)

NAME = "wrods_branches"
_UNDERSTOOD = frozenset({"dropout", "scaling", "sliding_window", "softcap", "is_causal", "s_aux"})
_WITHOUT_MEANING = frozenset(
    {"position_ids", "use_cache", "output_attentions", "output_hidden_states", "output_router_logits"}
)


class NotUnderstood(ValueError):
    """A model's attention needs a feature that this backend lacks."""


@dataclass
class Branches:
    """A pass over branches that continue from the path."""

    memory: Memory
    start: int  # length of the path
    positions: Any  # shape (n,); position of each token
    # shape (n, n); which tokens of the pass each token attends to; None for plain causal attention without a path
    seen: Any
    _masks: dict[int | None, Any] = field(default_factory=dict)

    def attend(self, layer: int, query: Any, key: Any, value: Any, options: Mapping[str, Any]) -> Any:
        """Return the attention's output, shape (1, n, heads, value width)."""
        import torch

        keys, values = self.memory.write(layer, self.start, key[0], value[0])
        window = options.get("sliding_window")
        groups = query.shape[1] // keys.shape[0]
        if options.get("softcap") or options.get("s_aux") is not None:
            return _stepwise(query, keys, values, self._mask(window), groups, options)
        if groups > 1:
            keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
        mask = None if self.seen is None and window is None else self._mask(window)
        output = torch.nn.functional.scaled_dot_product_attention(
            query,
            keys[None],
            values[None],
            attn_mask=mask,
            is_causal=mask is None,
            scale=options.get("scaling"),
        )
        return output.transpose(1, 2).contiguous()

    def _mask(self, window: int | None) -> Any:
        """Return the keys that each token attends to, shape (n, start + n)."""
        import torch

        if window not in self._masks:
            count = len(self.positions)
            seen = self.seen
            if seen is None:
                seen = torch.ones((count, count), dtype=torch.bool, device=self.positions.device).tril()
            path = torch.ones((count, self.start), dtype=torch.bool, device=self.positions.device)
            mask = torch.cat([path, seen], dim=1)
            if window is not None:
                before = torch.arange(self.start, device=self.positions.device)
                mask &= self.positions[:, None] - torch.cat([before, self.positions])[None, :] < window
            self._masks[window] = mask
        return self._masks[window]


@dataclass
class Continuations:
    """A pass over one new token per row, for rows that share a path and have their own tokens after it."""

    memory: Memory
    start: int  # length of the path
    lengths: Any  # shape (rows,); number of each row's own tokens, without the new one
    longest: int  # the largest of these lengths
    # keys, values: shape (rows, kv heads, room, width); the rows' own tokens, by layer
    keys: dict[int, Any]
    values: dict[int, Any]

    def attend(self, layer: int, query: Any, key: Any, value: Any, options: Mapping[str, Any]) -> Any:
        """Return the attention's output, shape (1, rows, heads, value width)."""
        import torch

        rows = len(self.lengths)
        own_keys, own_values = self.keys[layer], self.values[layer]
        lines = torch.arange(rows, device=query.device)
        own_keys[lines, :, self.lengths] = key[0].transpose(0, 1)
        own_values[lines, :, self.lengths] = value[0].transpose(0, 1)
        used = self.longest + 1
        own_keys, own_values = own_keys[:, :, :used], own_values[:, :, :used]
        heads = own_keys.shape[1]
        groups = query.shape[1] // heads
        scale = options.get("scaling") or query.shape[-1] ** -0.5
        grouped = query[0].transpose(0, 1).reshape(rows, heads, groups, -1)
        path_keys, path_values = self.memory.path(layer, self.start)
        flat = grouped.permute(1, 0, 2, 3).reshape(heads, rows * groups, -1)
        before = (flat @ path_keys.transpose(1, 2)).reshape(heads, rows, groups, -1).permute(1, 0, 2, 3)
        scores = torch.cat([before, grouped @ own_keys.transpose(2, 3)], dim=-1).float() * scale
        if softcap := options.get("softcap"):
            scores = torch.tanh(scores / softcap) * softcap
        hidden = torch.arange(used, device=query.device)[None, :] > self.lengths[:, None]
        if (window := options.get("sliding_window")) is not None:
            places = torch.arange(self.start + used, device=query.device)[None, :]
            gone = (self.start + self.lengths)[:, None] - places >= window
            scores = scores.masked_fill(gone[:, None, None, :], -torch.inf)
        scores[..., self.start :] = scores[..., self.start :].masked_fill(
            hidden[:, None, None, :], -torch.inf
        )
        weights = _weights(scores, options).to(query.dtype)
        shared = (
            weights[..., : self.start].permute(1, 0, 2, 3).reshape(heads, rows * groups, -1) @ path_values
        )
        output = shared.reshape(heads, rows, groups, -1).permute(1, 0, 2, 3)
        output = output + weights[..., self.start :] @ own_values
        return output.reshape(1, rows, heads * groups, -1)

    def stay(self, lines: Any) -> None:
        """Keep these rows only."""
        self.lengths = self.lengths[lines]
        self.longest = int(self.lengths.max())
        for buffers in (self.keys, self.values):
            for layer, buffer in buffers.items():
                buffers[layer] = buffer[lines]

    def own(self, row: int) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return keys and values of a row's own tokens, by layer, shape (kv heads, own tokens, width)."""
        count = int(self.lengths[row])
        keys, values = (
            {layer: buffer[row, :, :count] for layer, buffer in buffers.items()}
            for buffers in (self.keys, self.values)
        )
        return keys, values

    def goes_on(self) -> None:
        """Count the new token as one of each row's own."""
        self.lengths = self.lengths + 1
        self.longest += 1


class _CurrentPass(threading.local):
    """The current pass of a thread."""

    one: Branches | Continuations | None = None


_current = _CurrentPass()


@contextmanager
def passing(model: Any, packed_pass: Branches | Continuations) -> Iterator[None]:
    """Make the model's attention compute this pass inside the context."""
    before = model.config._attn_implementation
    if before != NAME:
        register()
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise NotUnderstood(f"{type(model).__name__} has its own attention")
    _current.one = packed_pass
    try:
        yield
    finally:
        _current.one = None
        if before != NAME:
            model.set_attn_implementation(before)


def register() -> None:
    """Register this implementation with transformers under :data:`NAME`."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attention)


def _attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[Any, None]:
    """Compute attention for transformers: query (1, heads, n, width), key and value (1, kv heads, n, width)."""
    strange = {
        name
        for name, value_given in options.items()
        if value_given is not None and name not in _UNDERSTOOD | _WITHOUT_MEANING
    }
    layer = getattr(module, "layer_idx", None)
    current = _current.one
    if current is None or attention_mask is not None or layer is None or strange:
        raise NotUnderstood(f"attention of {type(module).__name__} with {sorted(strange) or 'a mask'}")
    return current.attend(layer, query, key, value, options), None


def _weights(scores: Any, options: Mapping[str, Any]) -> Any:
    """Return the softmax of scores, shape (rows, kv heads, groups, …, keys), with the model's attention sinks if any."""
    import torch

    sinks = options.get("s_aux")
    if sinks is None:
        return torch.softmax(scores, dim=-1)
    shape = (1, *scores.shape[1:3], *[1] * (scores.dim() - 3))
    column = sinks.float().reshape(shape).expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], dim=-1), dim=-1)[..., :-1]


def _stepwise(query: Any, keys: Any, values: Any, mask: Any, groups: int, options: Mapping[str, Any]) -> Any:
    """Return attention with soft-capped scores or sinks, shape (1, n, heads, value width)."""
    import torch

    heads, count = keys.shape[0], query.shape[2]
    scale = options.get("scaling") or query.shape[-1] ** -0.5
    grouped = query[0].reshape(heads, groups * count, -1)
    scores = (grouped @ keys.transpose(1, 2)).float() * scale
    if softcap := options.get("softcap"):
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.reshape(heads, groups, count, -1).masked_fill(~mask, -torch.inf)
    weights = _weights(scores[None], options)[0].to(query.dtype).reshape(heads, groups * count, -1)
    return (weights @ values).reshape(heads * groups, count, -1).transpose(0, 1).contiguous()[None]


@dataclass(frozen=True)
class _WaitingRow:
    """A row to be continued after a path that it shares with others."""

    place: int
    decoding: Decoding
    # keys, values: shape (kv heads, own tokens, width); what follows the path, by layer
    keys: Layers
    values: Layers
    logits: Any  # shape (vocabulary,)

    @property
    def own(self) -> int:
        """Number of tokens after the path."""
        return int(self.keys[min(self.keys)].shape[1])

    @property
    def tokens(self) -> int:
        """Most tokens that the row will have after the path."""
        return self.own + self.decoding.max_tokens


@dataclass
class _UnderWay:
    """Rows that are being computed."""

    rows: Sequence[Row]
    found: Sequence[RowOutcome]
    hold: Set[int]  # rows whose keys and values are stored
    floor: int  # length of the path that no walk overwrites
    # Rows to be continued, by the length of their shared path
    waiting: dict[int, list[_WaitingRow]] = field(default_factory=dict)
    # Sums of hidden states over leading tokens, for rows whose keys and values are stored
    marks: dict[int, Marks] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Number of tokens that the waiting rows will hold."""
        return sum(row.tokens for group in self.waiting.values() for row in group)


class PackedBackend:
    """Computes rows along their trie; a window of rows continues from what the previous one left in memory."""

    name = "packed"

    def __init__(self, model: CausalModel) -> None:
        self.model = model
        self.memory = CacheMemory()

    def compute(
        self, rows: Sequence[Row], budget: MemoryBudget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Yield the place of each row and its outcome as soon as it is complete; later rows will continue from those in ``hold``."""
        import torch

        if not hold:
            self.memory.kept.shrink(0)
        outcomes = [RowOutcome() for _ in rows]
        try:
            walks = self.memory.walks(rows)
            floor = min(_common([row.ids for row in rows]), *(walk.known for walk in walks)) if walks else 0
            under_way = _UnderWay(rows, outcomes, hold, floor if len(walks) > 1 else -1)
            for walk in walks:
                with torch.inference_mode():
                    n_cached = self.memory.begin(walk, rows[walk.places[0]])
                for place in self._walk(under_way, walk.places, n_cached, budget):
                    yield place, outcomes[place]
                self.memory.kept.shrink(budget.held)
            for place in self._continue(under_way, under_way.waiting):
                yield place, outcomes[place]
            self.memory.kept.shrink(budget.held)
        except BaseException:
            self.memory.forget()
            raise

    def _walk(
        self, under_way: _UnderWay, places: Sequence[int], n_cached: int, budget: MemoryBudget
    ) -> Iterator[int]:
        """Yield the rows of a walk as they are completed; those that wait at the floor may stay for the next walk."""
        waiting = under_way.waiting
        trie = Trie([under_way.rows[place] for place in places])
        for pass_ in trie.passes(budget, n_cached):
            yield from self._continue(under_way, [length for length in waiting if length > pass_.start])
            yield from self._pass(under_way, places, pass_)
            while waiting and under_way.held >= budget.held:
                largest = max(waiting, key=lambda length: sum(row.tokens for row in waiting[length]))
                yield from self._continue(under_way, [largest])
            full = [length for length, group in waiting.items() if len(group) >= budget.positions]
            yield from self._continue(under_way, full)
        yield from self._continue(under_way, [length for length in waiting if length != under_way.floor])

    def _pass(self, under_way: _UnderWay, places: Sequence[int], step: ForwardPass) -> list[int]:
        """Compute one pass, store its outputs, and return the rows that are complete."""
        import torch

        selection = OutputSelection()
        path = self.memory.path
        before = path.marks.get(step.start)
        for line in step.lines:
            place = places[line.place]
            selection.add(
                place, under_way.rows[place], RowSpan(line.index, step.start), ends=line.ends, before=before
            )
        marks = _marks(under_way, places, step, selection)
        with torch.inference_mode():
            positions = torch.from_numpy(step.depths).to(self.model.device)
            seen = None
            if not step.extends or step.start:
                seen = torch.from_numpy(_seen(step)).to(self.model.device)
            tokens = torch.from_numpy(step.tokens.astype(np.int64)).to(self.model.device)
            path.cut(step.start)
            with (
                passing(self.model.model, Branches(path, step.start, positions, seen)),
                self.model.watched(*selection.watched()) as hidden,
            ):
                columns = selection.columns()
                logits = self.model.logits(
                    tokens[None], list(columns), position_ids=positions[None], use_cache=False
                )
            if not path.keys:
                raise NotUnderstood(f"{type(self.model.model).__name__} has no attention")
            self.model.forwarded += len(step.tokens)
            selection.note(self.model, under_way.found, logits, hidden)
            sums = selection.summed(hidden)
            for owner, depths in marks.items():
                new_marks: Marks = {
                    depth: sums[name] if before is None else np.add(sums[name], before)
                    for depth, name in depths.items()
                }
                if owner is None:
                    path.marks |= new_marks
                else:
                    under_way.marks[owner] = {**up_to(path.marks, step.start), **new_marks}
            complete = []
            alone = len(places) == 1
            for line in step.lines:
                place = places[line.place]
                under_way.found[place].computed += line.new
                if not line.ends:
                    continue
                if under_way.rows[place].decoding is not None:
                    after = logits[0, columns[int(line.index[-1])]].clone()
                    self._wait(under_way, place, step, line, after, alone=alone)
                    continue
                if place in under_way.hold:
                    cached = path.taken(self._places(step, line, step.start))
                    self.memory.keep(
                        under_way.rows[place].ids, step.start, *cached, under_way.marks.get(place, {})
                    )
                complete.append(place)
            first = step.tokens if step.extends else step.tokens[: len(step.lines[0].index)]
            path.ids = np.concatenate([path.ids, first])
        return complete

    def _wait(
        self, under_way: _UnderWay, place: int, step: ForwardPass, line: TrieRow, logits: Any, *, alone: bool
    ) -> None:
        """Queue a row to be continued with others that share a path; a row alone in its walk shares only the common path."""
        decoding = under_way.rows[place].decoding
        assert decoding is not None
        length = step.start + len(step.tokens) if step.extends else step.start
        if alone and 0 <= under_way.floor < length:
            length = under_way.floor
        cached = self.memory.path.taken(self._places(step, line, length))
        under_way.waiting.setdefault(length, []).append(_WaitingRow(place, decoding, *cached, logits))

    def _places(self, step: ForwardPass, line: TrieRow, first: int) -> Any:
        """Return the places of a row's tokens from position ``first`` on in the path's buffers during a pass."""
        import torch

        places: NDArray[np.int64] = np.concatenate([np.arange(step.start), step.start + line.index])[first:]
        return torch.from_numpy(places).to(self.model.device)

    def _continue(
        self, under_way: _UnderWay, lengths: Sequence[int] | dict[int, list[_WaitingRow]]
    ) -> Iterator[int]:
        """Continue the waiting rows after paths of these lengths, the longest path first."""
        import torch

        for length in sorted(lengths, reverse=True):
            group = under_way.waiting.pop(length)
            with torch.inference_mode():
                state = _continuations(self.memory.path, length, group)
                logits = torch.stack([row.logits for row in group])

            def advance(unfinished: list[int] | None, chosen: list[int], state: Continuations = state) -> Any:
                if unfinished is not None:
                    state.stay(torch.tensor(unfinished, device=self.model.device))
                positions = (state.start + state.lengths)[None]
                tokens = torch.tensor([chosen], device=self.model.device)
                with passing(self.model.model, state):
                    logits = self.model.logits(
                        tokens, range(len(chosen)), position_ids=positions, use_cache=False
                    )
                self.model.forwarded += len(chosen)
                state.goes_on()
                return logits[0]

            decodings = [row.decoding for row in group]
            for line, number, decoded in continue_rows(logits, decodings, self.model.ends, advance):
                place = group[number].place
                under_way.found[place].decoded = decoded
                if place in under_way.hold:  # all but the last token, which was chosen but not computed
                    new_ids = np.asarray(decoded.ids[:-1], dtype=np.int32)
                    with torch.inference_mode():
                        ids = np.concatenate([under_way.rows[place].ids, new_ids])
                        self.memory.keep(ids, length, *state.own(line), under_way.marks.get(place, {}))
                yield place


def _continuations(memory: Memory, start: int, group: Sequence[_WaitingRow]) -> Continuations:
    """Return rows in parallel, each with room for all that it may still generate."""
    import torch

    counts = [row.own for row in group]
    room = max(row.tokens for row in group)

    def stacked(parts: Sequence[Layers]) -> Layers:
        stacked_layers = {}
        for layer, first in parts[0].items():
            stacked_layers[layer] = first.new_zeros((len(parts), first.shape[0], room, first.shape[2]))
            for number, part in enumerate(parts):
                stacked_layers[layer][number, :, : part[layer].shape[1]] = part[layer]
        return stacked_layers

    lengths = torch.tensor(counts, device=group[0].logits.device)
    keys, values = stacked([row.keys for row in group]), stacked([row.values for row in group])
    return Continuations(memory, start, lengths, max(counts), keys, values)


def _marks(
    under_way: _UnderWay, places: Sequence[int], step: ForwardPass, selection: OutputSelection
) -> dict[int | None, dict[int, tuple[int, int]]]:
    """Request the sums from which later passes and turns continue, by length, for the path (None) and each stored row."""
    if not any(under_way.rows[place].mean for place in places):
        return {}
    first = step.lines[0].index
    common = min((len(line.index) - line.new for line in step.lines[1:]), default=len(first))
    shared = {step.start + length: selection.sum(first[:length]) for length in (common, len(first)) if length}
    marks: dict[int | None, dict[int, tuple[int, int]]] = {None: shared}
    for line in step.lines:
        place = places[line.place]
        if line.ends and place in under_way.hold and under_way.rows[place].mean:
            lengths = [common, len(line.index) - SLACK, len(line.index)]
            marks[place] = {
                step.start + length: selection.sum(line.index[:length]) for length in lengths if length > 0
            }
    return marks


def _common(rows: Sequence[NDArray[np.int32]]) -> int:
    """Return how many leading tokens all rows have in common."""
    return min((common_length(rows[0], row) for row in rows[1:]), default=len(rows[0]))


def _seen(step: ForwardPass) -> NDArray[np.bool_]:
    """Return the tokens of a pass that each token attends to: itself and its ancestors, shape (n, n)."""
    count = len(step.tokens)
    if step.extends:
        return np.tri(count, dtype=bool)
    seen = np.zeros((count, count), dtype=bool)
    for line in step.lines:
        new = line.index[len(line.index) - line.new :]
        for number, at in enumerate(new, start=len(line.index) - line.new):
            seen[at, line.index[: number + 1]] = True
    return seen


WORTH_SHARING = 16
"""Least length of a common stretch that is computed before what follows when rows are to be continued from it."""


@dataclass(frozen=True)
class TrieRow:
    """One row within a pass."""

    place: int  # place of the row in the sequence that was planned
    # shape (n,); indices in the pass of the row's tokens
    index: NDArray[np.int64]
    new: int  # number of tokens of the pass that were added for this row
    ends: bool  # whether the row's last token is among them


@dataclass(frozen=True)
class ForwardPass:
    """Tokens to compute at once."""

    start: int  # length of the path that precedes all of them; anything beyond it on the path is dropped
    tokens: Ids  # shape (n,)
    depths: NDArray[np.int64]  # shape (n,); position of each token in its rows
    lines: tuple[TrieRow, ...]  # the rows in this pass
    extends: bool  # whether the tokens are one stretch that extends the path


class Trie:
    """Rows sorted by their tokens; ``size`` is the least number of tokens to compute."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.order = sorted(range(len(rows)), key=lambda place: rows[place].ids.astype(">u4").tobytes())
        ids = [rows[place].ids for place in self.order]
        lengths = [len(row_ids) for row_ids in ids]
        shared = [0, *(common_length(ids[n - 1], ids[n]) for n in range(1, len(ids)))]
        self._lengths = np.array(lengths, dtype=np.int64)
        self._shared = np.array(shared, dtype=np.int64)
        self._added = np.concatenate([[0], np.cumsum(self._lengths - self._shared)])
        n_positions = [len(rows[place].asked_at()) for place in self.order]
        self._asked = np.concatenate([[0], np.cumsum(n_positions)])
        self._continued = np.array(
            [number for number, place in enumerate(self.order) if rows[place].decoding is not None],
            dtype=np.int64,
        )
        self._common = np.array(
            [
                int(self._shared[left + 1 : right + 1].min())
                for left, right in zip(self._continued, self._continued[1:], strict=False)
            ],
            dtype=np.int64,
        )
        self.size = int(self._added[-1])

    def passes(self, budget: MemoryBudget, n_cached: int = 0) -> Iterator[ForwardPass]:
        """Yield passes in the order of a walk after ``n_cached`` tokens on the path, within the budget at the time of each."""
        if not self.order:
            return
        waiting = [(0, len(self.order), n_cached)]
        while waiting:
            low, high, depth = waiting.pop()
            if self._fits(low, high, depth, budget):
                yield self._branches(low, high, depth)
                continue
            fork = int(self._shared[low + 1 : high].min()) if high - low > 1 else int(self._lengths[low])
            if fork > depth:
                step = min(budget.tokens, budget.positions)
                reach = min(fork, depth + step)
                yield self._stretch(low, high, depth, reach)
                while low < high and self._lengths[low] == reach:
                    low += 1  # a row that ends here precedes those that continue
                if low < high:
                    waiting.append((low, high, reach))
                continue
            waiting += reversed(list(self._bins(low, high, depth, budget)))

    def _fits(self, low: int, high: int, depth: int, budget: MemoryBudget) -> bool:
        return (
            self._count(low, high, depth) <= budget.tokens
            and self._asked[high] - self._asked[low] <= budget.positions
            and not self._is_worth_sharing(low, high, depth)
        )

    def _is_worth_sharing(self, low: int, high: int, depth: int) -> bool:
        """Return whether rows to be continued share a stretch that each would otherwise store separately."""
        first, last = np.searchsorted(self._continued, (low, high))
        return bool((self._common[first : max(first, last - 1)] >= depth + WORTH_SHARING).any())

    def _count(self, low: int, high: int, depth: int) -> int:
        """Return the number of tokens of rows low … high-1 beyond their common ``depth``."""
        return int(self._lengths[low] - depth + self._added[high] - self._added[low + 1])

    def _bins(self, low: int, high: int, depth: int, budget: MemoryBudget) -> Iterator[tuple[int, int, int]]:
        """Yield runs of neighbouring branches below ``depth`` that fit the budget together, or single ones."""
        forks = np.flatnonzero(self._shared[low + 1 : high] == depth) + low + 1
        borders = [low, *(int(fork) for fork in forks), high]
        start = low
        for left, right in pairwise(borders[1:]):
            if not self._fits(start, right, depth, budget):
                yield start, left, depth
                start = left
        yield start, high, depth

    def _branches(self, low: int, high: int, depth: int) -> ForwardPass:
        """Return the pass that computes everything of rows low … high-1 beyond ``depth``."""
        lines, pieces, depths = [], [], []
        count = 0
        before = np.empty(0, dtype=np.int64)
        for number in range(low, high):
            place = self.order[number]
            start = depth if number == low else int(self._shared[number])
            ids = self.rows[place].ids[start:]
            index = np.concatenate([before[: start - depth], np.arange(count, count + len(ids))])
            pieces.append(ids)
            depths.append(np.arange(start, start + len(ids)))
            lines.append(TrieRow(place, index, len(ids), ends=True))
            count += len(ids)
            before = index
        return ForwardPass(depth, np.concatenate(pieces), np.concatenate(depths), tuple(lines), extends=False)

    def _stretch(self, low: int, high: int, depth: int, reach: int) -> ForwardPass:
        """Return the pass that extends the path from ``depth`` to ``reach``, which rows low … high-1 share."""
        tokens = self.rows[self.order[low]].ids[depth:reach]
        index = np.arange(reach - depth)
        lines = [
            TrieRow(
                self.order[number],
                index,
                len(tokens) if number == low else 0,
                ends=int(self._lengths[number]) == reach,
            )
            for number in range(low, high)
        ]
        return ForwardPass(depth, tokens, np.arange(depth, reach), tuple(lines), extends=True)
