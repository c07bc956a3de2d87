"""What a model remembers between passes and between windows of rows.

The *path* is one buffer a layer with the tokens that lie in it: passes write into it, and a window of rows goes on from
what it has in common with the window before. Conversations that will go on are kept beside it
(:mod:`~experiment.models.local.kept`); before their next turn is computed, what the path does not hold of them is copied
into it, so that a turn costs its new tokens only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.kept import Kept, Layers, Stretch
from experiment.models.local.rows import Ids, Row, common_length
from experiment.models.local.sums import Marks, Sums, deepest, up_to

WORTH_KEEPING = 16
"""A stretch of so many tokens is taken from memory; a shorter one is computed anew."""

_LITTLE = 4
_ROOM = 256


@dataclass
class Memory:
    """Keys and values of the path, one buffer a layer of shape (kv heads, room, width)."""

    keys: Layers = field(default_factory=dict)
    values: Layers = field(default_factory=dict)
    ids: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # the tokens that lie in it
    # Sums of hidden states over the first so many of them, at the places from which passes went on
    marks: Marks = field(default_factory=dict)

    def cut(self, length: int) -> None:
        """Give up what lies behind the first ``length`` tokens."""
        self.ids, self.marks = self.ids[:length], up_to(self.marks, length)

    def write(self, layer: int, start: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write behind the first ``start`` entries and return all up to the new ones.

        ``keys, values``: shape (kv heads, n, width).
        """
        end = start + keys.shape[1]
        for buffers, news in ((self.keys, keys), (self.values, values)):
            buffer = buffers.get(layer)
            if buffer is None or buffer.shape[1] < end:
                larger = news.new_empty((news.shape[0], max(end, start * 3 // 2 + _ROOM), news.shape[2]))
                if buffer is not None:
                    larger[:, :start] = buffer[:, :start]
                buffers[layer] = buffer = larger
            buffer[:, start:end] = news
        return self.keys[layer][:, :end], self.values[layer][:, :end]

    def path(self, layer: int, length: int) -> tuple[Any, Any]:
        """Return keys and values of the first ``length`` tokens."""
        return self.keys[layer][:, :length], self.values[layer][:, :length]

    def taken(self, places: Any) -> tuple[Layers, Layers]:
        """Return copies of keys and values at places of the buffers, by layer."""
        return (
            {layer: buffer[:, places] for layer, buffer in self.keys.items()},
            {layer: buffer[:, places] for layer, buffer in self.values.items()},
        )


@dataclass(frozen=True)
class Walk:
    """Rows that go on from the same tokens; ``known`` of these are remembered, with their ``sums`` where a row wants a mean."""

    known: int
    places: tuple[int, ...]
    sums: bool = False


class Remembered:
    """The path, and the conversations that are kept."""

    def __init__(self) -> None:
        self.path = Memory()
        self.kept = Kept()

    def forget(self) -> None:
        """Give up everything."""
        self.path, self.kept = Memory(), Kept()

    def walks(self, rows: Sequence[Row]) -> list[Walk]:
        """Share rows out over what they go on from: first the path, deepest first, then one conversation after the other."""
        of_source: dict[Stretch | None, list[tuple[int, int]]] = {}
        for place, row in enumerate(rows):
            lying = min(common_length(row.ids, self.path.ids), row.shareable)
            stretch, depth = self.kept.find(row.ids)
            depth = min(depth, row.shareable)
            if row.mean:
                lying, depth = deepest(self.path.marks, lying), deepest(self.kept.marks(row.ids), depth)
            source = stretch if depth > lying + _LITTLE and depth >= WORTH_KEEPING else None
            known = depth if source is not None else lying if lying >= WORTH_KEEPING else 0
            of_source.setdefault(source, []).append((known, place))
        on_path = _clusters(of_source.pop(None, []), rows, lambda _: self.path.marks)
        talks = [walk for some in of_source.values() for walk in _clusters(some, rows, self.kept.marks)]
        talks.sort(key=lambda walk: rows[walk.places[0]].ids.astype(">u4").tobytes())
        return [*on_path, *talks]

    def begin(self, walk: Walk, row: Row) -> int:
        """Bring what a walk's first row goes on from onto the path, and return how many tokens of it are there."""
        ids = row.ids[: walk.known]
        lying = common_length(self.path.ids, ids)
        if lying < len(ids):
            self.path.cut(lying)
            for place, keys, values in self.kept.load(ids, lying):
                for layer in keys:
                    self.path.write(layer, place, keys[layer], values[layer])
                lying = place + keys[min(keys)].shape[1]
            self.path.ids = ids[:lying].copy()
            self.path.marks |= up_to(self.kept.marks(ids), lying)
        return deepest(self.path.marks, lying) if walk.sums else lying

    def keep(self, ids: Ids, start: int, keys: Layers, values: Layers, marks: Mapping[int, Sums]) -> None:
        """Keep a row: the first ``start`` tokens as they lie on the path, then those given.

        ``keys, values``: shape (kv heads, len(ids).
        ``marks``: sums of hidden states over the first so many tokens.
        """
        import torch

        def rest(depth: int) -> tuple[Layers, Layers]:
            cut = max(0, depth - start)
            pairs = ((self.path.keys, keys), (self.path.values, values))
            left, right = (
                {n: torch.cat([lying[n][:, depth:start], own[n][:, cut:]], dim=1) for n in own}
                for lying, own in pairs
            )
            return left, right

        self.kept.keep(ids, rest, marks)


def _clusters(
    some: Iterable[tuple[int, int]], rows: Sequence[Row], marks: Callable[[Ids], Marks]
) -> list[Walk]:
    """Return walks of rows that know about as much as each other, those that know most first.

    ``some``: how many tokens a row knows, and its place.
    ``marks``: gives the sums that are known of a row; where one of a walk wants a mean, all of it go on from such a
    place.
    """
    clusters: list[list[tuple[int, int]]] = []
    for known, place in sorted(some, key=lambda one: (-one[0], one[1])):
        if not clusters or known < clusters[-1][0][0] - WORTH_KEEPING:
            clusters.append([])
        clusters[-1].append((known, place))
    walks = []
    for cluster in clusters:
        known, places = cluster[-1][0], tuple(place for _, place in cluster)
        sums = any(rows[place].mean for place in places)
        known = deepest(marks(rows[places[0]].ids), known) if sums else known
        walks.append(Walk(known, places, sums))
    return walks
