"""Keys and values that a model has computed: the path of a walk, and those of conversations that will go on.

A *strand* is a buffer a layer and the tokens that lie in it. The first one is the path of the last walk, so that a new
window of rows goes on from what it shares with the window before. Others belong to one conversation each: its next turn
computes its new tokens only. They are given up, the longest unused first, when together they hold more than the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.rows import Budget, Ids, Row, common_length

WORTH_KEEPING = 16
"""A stretch of so many tokens is taken from memory; a shorter one is computed anew."""

_SLACK = 16
"""Tokens at a conversation's end that its next turn may not have in common with it (a template's opening of an answer)."""

_LITTLE = 4
_ROOM = 256


@dataclass
class Memory:
    """Keys and values of the path, one buffer a layer of shape (kv heads, room, width)."""

    keys: dict[int, Any] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)

    def write(self, layer: int, start: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Write behind the first ``start`` entries and return all up to the new ones.

        Parameters
        ----------
        keys, values : tensor, shape (kv heads, n, width)
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

    def taken(self, start: int, index: Any) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return copies of keys and values at places behind the first ``start``, by layer."""
        return (
            {layer: buffer[:, start + index] for layer, buffer in self.keys.items()},
            {layer: buffer[:, start + index] for layer, buffer in self.values.items()},
        )

    def copied(
        self, length: int, keys: dict[int, Any] | None = None, values: dict[int, Any] | None = None
    ) -> Memory:
        """Return a memory of its own: the first ``length`` entries, then the ones given."""
        copy = Memory()
        for new, old, more in ((copy.keys, self.keys, keys), (copy.values, self.values, values)):
            for layer, buffer in old.items():
                own = buffer[:, :0] if more is None else more[layer]
                end = length + own.shape[1]
                larger = buffer.new_empty((buffer.shape[0], end + _ROOM, buffer.shape[2]))
                larger[:, :length] = buffer[:, :length]
                larger[:, length:end] = own
                new[layer] = larger
        return copy


@dataclass(eq=False)
class Strand:
    """Keys and values of one sequence of tokens."""

    memory: Memory = field(default_factory=Memory)
    ids: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class Walk:
    """Rows that go on from one strand; ``known`` of their leading tokens lie in it."""

    strand: Strand
    known: int
    places: tuple[int, ...]


class Strands:
    """What a model remembers between windows of rows.

    Attributes
    ----------
    path : Strand
        That of the last walk which belonged to no conversation.
    kept : list of Strand
        One a conversation, the one used last at the end.
    """

    def __init__(self) -> None:
        self.path = Strand()
        self.kept: list[Strand] = []

    def walks(self, rows: Sequence[Row]) -> list[Walk]:
        """Share rows out over the strands from which they have most to take, those that reach deepest first."""
        of_strand: dict[int, list[tuple[int, int]]] = {}
        strands = [self.path, *self.kept]
        for place, row in enumerate(rows):
            taken = [min(common_length(row.ids, strand.ids), row.shareable) for strand in strands]
            best = max(range(len(strands)), key=lambda number: taken[number] - (_LITTLE if number else 0))
            known = taken[best] if taken[best] >= WORTH_KEEPING else 0
            of_strand.setdefault(best if known else 0, []).append((known, place))
        walks = []
        for number, some in of_strand.items():
            some.sort(key=lambda one: (-one[0], one[1]))
            cluster: list[tuple[int, int]] = []
            for known, place in some:
                if cluster and known < cluster[0][0] - WORTH_KEEPING:
                    walks.append(_walk(strands[number], cluster))
                    cluster = []
                cluster.append((known, place))
            walks.append(_walk(strands[number], cluster))
        return sorted(walks, key=lambda walk: walk.strand is self.path)

    def begin(self, walk: Walk) -> Strand:
        """Return the strand that a walk writes to: its own, or a copy where it would write over another conversation."""
        strand = walk.strand
        if strand is self.path or walk.known >= len(strand.ids) - _SLACK:
            return strand
        return Strand(strand.memory.copied(walk.known), strand.ids[: walk.known])

    def keep(self, strand: Strand) -> None:
        """Keep a conversation's strand in the place of what it goes on from."""
        self.kept = [one for one in self.kept if one is not strand and not _begins(one, strand)]
        self.kept.append(strand)

    def shrink(self, budget: Budget) -> None:
        """Give up what has not been used for longest, down to the budget."""
        held = 0
        for number, strand in reversed(list(enumerate(self.kept))):
            held += len(strand.ids)
            if held > budget.held:
                del self.kept[: number + 1]
                return

    def forget(self) -> None:
        """Give up everything."""
        self.path, self.kept = Strand(), []


def _walk(strand: Strand, cluster: Iterable[tuple[int, int]]) -> Walk:
    some = list(cluster)
    return Walk(strand, some[-1][0], tuple(place for _, place in some))


def _begins(old: Strand, new: Strand) -> bool:
    return len(old.ids) <= len(new.ids) and bool((new.ids[: len(old.ids)] == old.ids).all())
