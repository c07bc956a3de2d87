"""Caches of transformers as rows go on from them: new ones, and forks that leave the original as it is.

A layer's keys and values grow: the layer replaces its tensors and never writes to them, so that a fork may hold the same
ones. The states of convolutions and of linear attention are written in place, so that a fork needs a copy; they are small,
since they do not grow with the text.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from experiment.models.local.head import CausalModel

_GROWING = frozenset({"DynamicLayer", "DynamicSlidingWindowLayer", "DynamicIndexedLayer", "DummyLayer"})
_WRITTEN = frozenset(
    {
        *("LinearAttentionLayer", "LinearAttentionAndFullAttentionLayer"),
        "LinearAttentionAndSlidingWindowAttentionLayer",
    }
)
_GROW = ("keys", "values", "indexer_keys")


def new_cache(model: CausalModel) -> Any:
    """Return an empty cache of the kind that a model uses."""
    from transformers import DynamicCache

    return DynamicCache(config=model.model.config)


def kinds(model: CausalModel) -> frozenset[str]:
    """Return the kinds of layers of a model's cache; none where it has no such cache."""
    if model.cache_name is None:
        return frozenset()
    try:
        return frozenset(type(layer).__name__ for layer in new_cache(model).layers)
    except (KeyError, AttributeError, ValueError):
        return frozenset()


def is_forkable(model: CausalModel) -> bool:
    """Whether every layer's cache is one that forks safely."""
    found = kinds(model)
    return bool(found) and found <= _GROWING | _WRITTEN


def has_states(model: CausalModel) -> bool:
    """Whether some layer keeps a state of fixed size, which not every model takes up again for several tokens at once."""
    return bool(kinds(model) & _WRITTEN)


def fork(cache: Any, count: int) -> Any:
    """Return a cache of its own for ``count`` rows that go on from a cache of one row."""
    forked = copy.copy(cache)
    forked.layers = [_forked(layer, count) for layer in cache.layers]
    return forked


def _forked(layer: Any, count: int) -> Any:
    forked = copy.copy(layer)
    for name, value in vars(layer).items():
        if name in _GROW and getattr(value, "ndim", 0) > 1:
            setattr(forked, name, value.expand(count, *[-1] * (value.ndim - 1)))
        elif isinstance(value, Mapping):
            setattr(
                forked,
                name,
                {
                    key: part.expand(count, *[-1] * (part.ndim - 1)).clone()
                    if hasattr(part, "expand")
                    else part
                    for key, part in value.items()
                },
            )
    return forked
