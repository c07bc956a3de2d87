"""Attention of tokens that stand side by side in one pass, each seeing the path and its own ancestors.

Registered with transformers as an attention implementation, so that a model's own layers call it. Keys and values never
go through a transformers cache: the path of a walk (:mod:`~experiment.models.local.trie`) lies in one buffer a layer, into
which a pass writes behind the path, and rows that are being continued have buffers of their own beside it. All tokens of a
pass form one row of a batch of one, so that nothing is padded and the path is stored once however many rows go on from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from experiment.models.local.memory import Memory

NAME = "wrods_branches"
_UNDERSTOOD = frozenset({"dropout", "scaling", "sliding_window", "softcap", "is_causal", "s_aux"})
_WITHOUT_MEANING = frozenset(
    {"position_ids", "use_cache", "output_attentions", "output_hidden_states", "output_router_logits"}
)


class NotUnderstood(ValueError):
    """A model's attention needs something that this implementation does not do."""


@dataclass
class Branches:
    """A pass over branches that go on from the path."""

    memory: Memory
    start: int  # length of the path
    positions: Any  # shape (n,); position of each token
    # shape (n, n); which tokens of the pass each token sees; None where each sees all before it and there is
    # no path
    seen: Any
    _masks: dict[int | None, Any] = field(default_factory=dict)

    def attend(self, layer: int, query: Any, key: Any, value: Any, how: Mapping[str, Any]) -> Any:
        """Return the attention's output, shape (1, n, heads, value width)."""
        import torch

        keys, values = self.memory.write(layer, self.start, key[0], value[0])
        window = how.get("sliding_window")
        groups = query.shape[1] // keys.shape[0]
        if how.get("softcap") or how.get("s_aux") is not None:
            return _stepwise(query, keys, values, self._mask(window), groups, how)
        if groups > 1:
            keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
        mask = None if self.seen is None and window is None else self._mask(window)
        output = torch.nn.functional.scaled_dot_product_attention(
            query, keys[None], values[None], attn_mask=mask, is_causal=mask is None, scale=how.get("scaling")
        )
        return output.transpose(1, 2).contiguous()

    def _mask(self, window: int | None) -> Any:
        """Return which keys each token sees, shape (n, start + n)."""
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
    """A pass over one new token a row, for rows that share a path and have tokens of their own behind it."""

    memory: Memory
    start: int  # length of the path
    lengths: Any  # shape (rows,); how many tokens of its own each row has, the new one left out
    longest: int  # the largest of them
    # keys, values: shape (rows, kv heads, room, width); of the rows' own tokens, by layer
    keys: dict[int, Any]
    values: dict[int, Any]

    def attend(self, layer: int, query: Any, key: Any, value: Any, how: Mapping[str, Any]) -> Any:
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
        scale = how.get("scaling") or query.shape[-1] ** -0.5
        asked = query[0].transpose(0, 1).reshape(rows, heads, groups, -1)
        path_keys, path_values = self.memory.path(layer, self.start)
        flat = asked.permute(1, 0, 2, 3).reshape(heads, rows * groups, -1)
        before = (flat @ path_keys.transpose(1, 2)).reshape(heads, rows, groups, -1).permute(1, 0, 2, 3)
        scores = torch.cat([before, asked @ own_keys.transpose(2, 3)], dim=-1).float() * scale
        if softcap := how.get("softcap"):
            scores = torch.tanh(scores / softcap) * softcap
        hidden = torch.arange(used, device=query.device)[None, :] > self.lengths[:, None]
        if (window := how.get("sliding_window")) is not None:
            places = torch.arange(self.start + used, device=query.device)[None, :]
            gone = (self.start + self.lengths)[:, None] - places >= window
            scores = scores.masked_fill(gone[:, None, None, :], -torch.inf)
        scores[..., self.start :] = scores[..., self.start :].masked_fill(
            hidden[:, None, None, :], -torch.inf
        )
        weights = _weights(scores, how).to(query.dtype)
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

    def goes_on(self) -> None:
        """Count the new token among the rows' own."""
        self.lengths = self.lengths + 1
        self.longest += 1


class _UnderWay(threading.local):
    """The pass that a thread is making."""

    one: Branches | Continuations | None = None


_under_way = _UnderWay()


@contextmanager
def passing(model: Any, one: Branches | Continuations) -> Iterator[None]:
    """Let the model's attention work on this pass while entered."""
    before = model.config._attn_implementation
    if before != NAME:
        register()
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise NotUnderstood(f"{type(model).__name__} brings attention of its own")
    _under_way.one = one
    try:
        yield
    finally:
        _under_way.one = None
        if before != NAME:
            model.set_attn_implementation(before)


def register() -> None:
    """Make the implementation known to transformers under :data:`NAME`."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attention)


def _attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **how: Any
) -> tuple[Any, None]:
    """Answer transformers' call: query (1, heads, n, width), key and value (1, kv heads, n, width)."""
    strange = {
        name
        for name, given in how.items()
        if given is not None and name not in _UNDERSTOOD | _WITHOUT_MEANING
    }
    layer = getattr(module, "layer_idx", None)
    one = _under_way.one
    if one is None or attention_mask is not None or layer is None or strange:
        raise NotUnderstood(f"attention of {type(module).__name__} with {sorted(strange) or 'a mask'}")
    return one.attend(layer, query, key, value, how), None


def _weights(scores: Any, how: Mapping[str, Any]) -> Any:
    """Return the softmax of scores, shape (rows, kv heads, groups, …, keys), with a model's sinks where it has them."""
    import torch

    sinks = how.get("s_aux")
    if sinks is None:
        return torch.softmax(scores, dim=-1)
    shape = (1, *scores.shape[1:3], *[1] * (scores.dim() - 3))
    column = sinks.float().reshape(shape).expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], dim=-1), dim=-1)[..., :-1]


def _stepwise(query: Any, keys: Any, values: Any, mask: Any, groups: int, how: Mapping[str, Any]) -> Any:
    """Return attention with scores bent towards a limit, or with sinks, shape (1, n, heads, value width)."""
    import torch

    heads, count = keys.shape[0], query.shape[2]
    scale = how.get("scaling") or query.shape[-1] ** -0.5
    asked = query[0].reshape(heads, groups * count, -1)
    scores = (asked @ keys.transpose(1, 2)).float() * scale
    if softcap := how.get("softcap"):
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.reshape(heads, groups, count, -1).masked_fill(~mask, -torch.inf)
    weights = _weights(scores[None], how)[0].to(query.dtype).reshape(heads, groups * count, -1)
    return (weights @ values).reshape(heads * groups, count, -1).transpose(0, 1).contiguous()[None]
