"""Keys and values of conversations that will continue, in a tree that stores common beginnings once.

A *span* contains consecutive tokens; the spans after it continue from its last token, each with a different first token. A
conversation is the path from the root to a leaf. Beyond the budget, leaves are removed, the least recently used first, so that
shared beginnings remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.rows import Ids, Marks, Row, Sums, common_length, deepest, up_to

Layers = dict[int, Any]
"""One tensor per layer, shape (kv heads, tokens, width)."""

SLACK = 16
"""Tokens at a conversation's end that its next turn may not share (a template's opening of an answer)."""

_MARKS = 4
"""Number of latest running sums over tokens to keep for a continuing conversation."""


@dataclass(eq=False)
class TokenSpan:
    """Consecutive tokens."""

    ids: Ids  # shape (n,)
    # keys, values: shape (kv heads, n, width)
    keys: Layers
    values: Layers
    before: TokenSpan | None = None
    after: dict[int, TokenSpan] = field(default_factory=dict)  # by their first token
    used: int = 0  # time of last use
    # Sums of hidden states over all tokens up to places in this span, counted from the beginning of the conversation
    marks: Marks = field(default_factory=dict)

    def follow(self, other: TokenSpan) -> None:
        """Append this span to another one."""
        other.before = self
        self.after[int(other.ids[0])] = other


class KVCacheTree:
    """All stored conversations."""

    def __init__(self) -> None:
        self._root = TokenSpan(np.empty(0, dtype=np.int32), {}, {})
        self._clock = 0
        self.tokens = 0

    def find(self, ids: Ids) -> tuple[TokenSpan, int]:
        """Return the span in which the longest stored beginning of a row ends, and the length of that beginning."""
        way = list(self._way(ids))
        return way[-1][0] if way else self._root, sum(taken for _, taken in way)

    def marks(self, ids: Ids) -> Marks:
        """Return the stored sums over the part that a row shares with the conversations."""
        marks: Marks = {}
        depth = 0
        for stretch, taken in self._way(ids):
            depth += taken
            marks |= up_to(stretch.marks, depth)
        return marks

    def load(self, ids: Ids, start: int) -> Iterator[tuple[int, Layers, Layers]]:
        """Yield place, keys and values of everything stored for a row from ``start`` on, in order."""
        self._clock += 1
        depth = 0
        for stretch, taken in self._way(ids):
            stretch.used = self._clock
            skip = min(taken, max(0, start - depth))
            if skip < taken:
                yield depth + skip, _cut(stretch.keys, skip, taken), _cut(stretch.values, skip, taken)
            depth += taken

    def keep(
        self, ids: Ids, rest: Callable[[int], tuple[Layers, Layers]], marks: Mapping[int, Sums] | None = None
    ) -> None:
        """Store a row with ``marks``, sums by number of leading tokens; ``rest`` gives keys and values from a position on."""
        self._keep(ids, rest)
        depth = 0
        for stretch, taken in self._way(ids) if marks else ():
            new_marks = {
                n_tokens: sums
                for n_tokens, sums in (marks or {}).items()
                if depth < n_tokens <= depth + taken
            }
            depth += taken
            all_marks = stretch.marks | new_marks
            stretch.marks = {n_tokens: all_marks[n_tokens] for n_tokens in sorted(all_marks)[-_MARKS:]}

    def _keep(self, ids: Ids, rest: Callable[[int], tuple[Layers, Layers]]) -> None:
        self._clock += 1
        last, taken, depth = self._root, 0, 0
        for last, taken in self._way(ids):
            last.used = self._clock
            depth += taken
        if depth == len(ids):
            return
        if taken < len(last.ids):
            self._split(last, taken, depth)
        keys, values = rest(depth)
        self.tokens += len(ids) - depth
        if last is self._root or last.after:
            last.follow(TokenSpan(ids[depth:].copy(), keys, values, used=self._clock))
            return
        last.ids = np.concatenate([last.ids, ids[depth:]])
        last.keys, last.values = _joined(last.keys, keys), _joined(last.values, values)

    def shrink(self, most: int) -> None:
        """Remove the least recently used leaves until no more than ``most`` tokens are stored."""
        while self.tokens > most:
            leaf = min(
                (stretch for stretch in self._stretches() if not stretch.after),
                key=lambda stretch: stretch.used,
            )
            assert leaf.before is not None
            del leaf.before.after[int(leaf.ids[0])]
            self.tokens -= len(leaf.ids)

    def _way(self, ids: Ids) -> Iterator[tuple[TokenSpan, int]]:
        """Yield the spans along a row, and how many tokens it shares with each."""
        stretch, depth = self._root, 0
        while depth < len(ids):
            following = stretch.after.get(int(ids[depth]))
            if following is None:
                return
            taken = common_length(following.ids, ids[depth:])
            yield following, taken
            if taken < len(following.ids):
                return
            stretch, depth = following, depth + taken

    def _split(self, stretch: TokenSpan, at: int, depth: int) -> None:
        """Split a span ``at`` a token, ``depth`` tokens into the conversation; a short end with nothing after it is removed."""
        count = len(stretch.ids)
        end = TokenSpan(
            stretch.ids[at:].copy(), _cut(stretch.keys, at, count, own=True), _cut(stretch.values, at, count, own=True),
            after=stretch.after, used=stretch.used - 1,
            marks={place: sums for place, sums in stretch.marks.items() if place > depth},
        )  # fmt: skip
        for following in end.after.values():
            following.before = end
        stretch.ids, stretch.after = stretch.ids[:at].copy(), {}
        stretch.marks = up_to(stretch.marks, depth)
        stretch.keys, stretch.values = (
            _cut(stretch.keys, 0, at, own=True),
            _cut(stretch.values, 0, at, own=True),
        )
        if end.after or len(end.ids) > SLACK:
            stretch.follow(end)
        else:
            self.tokens -= len(end.ids)

    def _stretches(self) -> Iterator[TokenSpan]:
        waiting = list(self._root.after.values())
        while waiting:
            stretch = waiting.pop()
            yield stretch
            waiting += stretch.after.values()


def _cut(layers: Layers, first: int, last: int, *, own: bool = False) -> Layers:
    """Return tokens ``first`` to ``last`` (exclusive), with ``own`` as copies, so that the rest can be freed."""
    parts = {layer: tensor[:, first:last] for layer, tensor in layers.items()}
    return {layer: part.clone() for layer, part in parts.items()} if own else parts


def _joined(left: Layers, right: Layers) -> Layers:
    import torch

    return {layer: torch.cat([tensor, right[layer]], dim=1) for layer, tensor in left.items()}


WORTH_KEEPING = 16
"""Smallest number of tokens taken from the cache; shorter stretches are recomputed."""

_LITTLE = 4
_ROOM = 256


@dataclass
class Memory:
    """Keys and values of the current path, one buffer per layer of shape (kv heads, room, width)."""

    keys: Layers = field(default_factory=dict)
    values: Layers = field(default_factory=dict)
    ids: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # the tokens in it
    # Sums of hidden states over leading tokens, at the places from which passes continued
    marks: Marks = field(default_factory=dict)

    def cut(self, length: int) -> None:
        """Drop everything after the first ``length`` tokens."""
        self.ids, self.marks = self.ids[:length], up_to(self.marks, length)

    def write(self, layer: int, start: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write keys and values, shape (kv heads, n, width), after the first ``start``; return all up to the new ones."""
        end = start + keys.shape[1]
        for buffers, added in ((self.keys, keys), (self.values, values)):
            buffer = buffers.get(layer)
            if buffer is None or buffer.shape[1] < end:
                larger = added.new_empty((added.shape[0], max(end, start * 3 // 2 + _ROOM), added.shape[2]))
                if buffer is not None:
                    larger[:, :start] = buffer[:, :start]
                buffers[layer] = buffer = larger
            buffer[:, start:end] = added
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
    """Rows that continue from the same tokens; ``known`` of these are stored, with their ``sums`` if a row needs a mean."""

    known: int
    places: tuple[int, ...]
    sums: bool = False


class CacheMemory:
    """The current path and the stored conversations."""

    def __init__(self) -> None:
        self.path = Memory()
        self.kept = KVCacheTree()

    def forget(self) -> None:
        """Clear everything."""
        self.path, self.kept = Memory(), KVCacheTree()

    def walks(self, rows: Sequence[Row]) -> list[Walk]:
        """Return rows grouped by what they continue: first the path, deepest first, then one conversation after another."""
        of_source: dict[TokenSpan | None, list[tuple[int, int]]] = {}
        for place, row in enumerate(rows):
            n_on_path = min(common_length(row.ids, self.path.ids), row.shareable)
            stretch, depth = self.kept.find(row.ids)
            depth = min(depth, row.shareable)
            if row.mean:
                n_on_path, depth = (
                    deepest(self.path.marks, n_on_path),
                    deepest(self.kept.marks(row.ids), depth),
                )
            source = stretch if depth > n_on_path + _LITTLE and depth >= WORTH_KEEPING else None
            n_stored = depth if source is not None else n_on_path if n_on_path >= WORTH_KEEPING else 0
            of_source.setdefault(source, []).append((n_stored, place))
        on_path = _clusters(of_source.pop(None, []), rows, lambda _: self.path.marks)
        talks = [walk for entries in of_source.values() for walk in _clusters(entries, rows, self.kept.marks)]
        talks.sort(key=lambda walk: rows[walk.places[0]].ids.astype(">u4").tobytes())
        return [*on_path, *talks]

    def begin(self, walk: Walk, row: Row) -> int:
        """Load what a walk's first row continues onto the path; return how many of its tokens are there."""
        ids = row.ids[: walk.known]
        n_on_path = common_length(self.path.ids, ids)
        if n_on_path < len(ids):
            self.path.cut(n_on_path)
            for place, keys, values in self.kept.load(ids, n_on_path):
                for layer in keys:
                    self.path.write(layer, place, keys[layer], values[layer])
                n_on_path = place + keys[min(keys)].shape[1]
            self.path.ids = ids[:n_on_path].copy()
            self.path.marks |= up_to(self.kept.marks(ids), n_on_path)
        return deepest(self.path.marks, n_on_path) if walk.sums else n_on_path

    def keep(self, ids: Ids, start: int, keys: Layers, values: Layers, marks: Mapping[int, Sums]) -> None:
        """Store a row: the first ``start`` tokens from the path, then the given keys and values."""
        import torch

        def rest(depth: int) -> tuple[Layers, Layers]:
            cut = max(0, depth - start)
            pairs = ((self.path.keys, keys), (self.path.values, values))
            left, right = (
                {n: torch.cat([stored[n][:, depth:start], added[n][:, cut:]], dim=1) for n in added}
                for stored, added in pairs
            )
            return left, right

        self.kept.keep(ids, rest, marks)


def _clusters(
    entries: Iterable[tuple[int, int]], rows: Sequence[Row], marks: Callable[[Ids], Marks]
) -> list[Walk]:
    """Return walks of rows (stored tokens, place) with similar numbers of stored tokens, the largest first."""
    clusters: list[list[tuple[int, int]]] = []
    for n_stored, place in sorted(entries, key=lambda entry: (-entry[0], entry[1])):
        if not clusters or n_stored < clusters[-1][0][0] - WORTH_KEEPING:
            clusters.append([])
        clusters[-1].append((n_stored, place))
    walks = []
    for cluster in clusters:
        n_stored, places = cluster[-1][0], tuple(place for _, place in cluster)
        sums = any(rows[place].mean for place in places)
        n_stored = deepest(marks(rows[places[0]].ids), n_stored) if sums else n_stored
        walks.append(Walk(n_stored, places, sums))
    return walks
