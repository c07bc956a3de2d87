"""Keys and values of conversations that will go on, in a tree: what several have in common is held once.

A *stretch* holds tokens that lie behind one another; stretches behind it go on from its last token, each with another
token first. A conversation is the way from the root to a leaf. What exceeds the budget is given up leaf by leaf, the
longest unused first, so that a beginning which others need stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.rows import Ids, common_length
from experiment.models.local.sums import Marks, Sums, up_to

Layers = dict[int, Any]
"""A tensor a layer, shape (kv heads, tokens, width)."""

SLACK = 16
"""Tokens at a conversation's end that its next turn may not have in common with it (a template's opening of an answer)."""

_MARKS = 4
"""Of a conversation that goes on, no more sums over its tokens are needed than the last ones."""


@dataclass(eq=False)
class Stretch:
    """Tokens that lie behind one another."""

    ids: Ids  # shape (n,)
    # keys, values: shape (kv heads, n, width)
    keys: Layers
    values: Layers
    before: Stretch | None = None
    after: dict[int, Stretch] = field(default_factory=dict)  # by their first token
    used: int = 0  # when it was last needed
    # Sums of hidden states over all tokens up to places of this stretch, counted from the beginning of the
    # conversation
    marks: Marks = field(default_factory=dict)

    def follow(self, other: Stretch) -> None:
        """Let another stretch stand behind this one."""
        other.before = self
        self.after[int(other.ids[0])] = other


class Kept:
    """All conversations that are kept.

    ``tokens``: how many tokens are held.
    """

    def __init__(self) -> None:
        self._root = Stretch(np.empty(0, dtype=np.int32), {}, {})
        self._clock = 0
        self.tokens = 0

    def find(self, ids: Ids) -> tuple[Stretch, int]:
        """Return the stretch in which the longest known beginning of a row ends, and the length of that beginning."""
        way = list(self._way(ids))
        return way[-1][0] if way else self._root, sum(taken for _, taken in way)

    def marks(self, ids: Ids) -> Marks:
        """Return the sums that are known of what a row and the conversations have in common."""
        found: Marks = {}
        depth = 0
        for stretch, taken in self._way(ids):
            depth += taken
            found |= up_to(stretch.marks, depth)
        return found

    def load(self, ids: Ids, start: int) -> Iterator[tuple[int, Layers, Layers]]:
        """Yield place, keys and values of everything that is known of a row from ``start`` on, in order."""
        self._clock += 1
        depth = 0
        for stretch, taken in self._way(ids):
            stretch.used = self._clock
            skip = min(taken, max(0, start - depth))
            if skip < taken:
                yield depth + skip, _cut(stretch.keys, skip, taken), _cut(stretch.values, skip, taken)
            depth += taken

    def keep(
        self,
        ids: Ids,
        rest: Callable[[int], tuple[Layers, Layers]],
        marks: Mapping[int, Sums] | None = None,
    ) -> None:
        """Keep a row.

        ``rest``: gives keys and values of the row's tokens from a position on, in tensors of their own.
        ``marks``: sums of hidden states over the row's first so many tokens.
        """
        self._keep(ids, rest)
        depth = 0
        for stretch, taken in self._way(ids) if marks else ():
            own = {place: sums for place, sums in (marks or {}).items() if depth < place <= depth + taken}
            depth += taken
            known = stretch.marks | own
            stretch.marks = {place: known[place] for place in sorted(known)[-_MARKS:]}

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
            last.follow(Stretch(ids[depth:].copy(), keys, values, used=self._clock))
            return
        last.ids = np.concatenate([last.ids, ids[depth:]])
        last.keys, last.values = _joined(last.keys, keys), _joined(last.values, values)

    def shrink(self, most: int) -> None:
        """Give up what has not been used for longest, until no more than ``most`` tokens are held."""
        while self.tokens > most:
            leaf = min((one for one in self._stretches() if not one.after), key=lambda one: one.used)
            self._give_up(leaf)

    def _way(self, ids: Ids) -> Iterator[tuple[Stretch, int]]:
        """Yield the stretches that a row runs through, and how many tokens it has in common with each."""
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

    def _split(self, stretch: Stretch, at: int, depth: int) -> None:
        """Make two of a stretch; a short end to which nothing more can come is given up.

        ``at, depth``: where, counted from the beginning of the stretch and from that of the conversation.
        """
        count = len(stretch.ids)
        end = Stretch(
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

    def _give_up(self, leaf: Stretch) -> None:
        assert leaf.before is not None
        del leaf.before.after[int(leaf.ids[0])]
        self.tokens -= len(leaf.ids)

    def _stretches(self) -> Iterator[Stretch]:
        waiting = list(self._root.after.values())
        while waiting:
            stretch = waiting.pop()
            yield stretch
            waiting += stretch.after.values()


def _cut(layers: Layers, first: int, last: int, *, own: bool = False) -> Layers:
    """Return tokens ``first`` to before ``last``; ``own`` in tensors of their own, so that the rest can be freed."""
    parts = {layer: tensor[:, first:last] for layer, tensor in layers.items()}
    return {layer: part.clone() for layer, part in parts.items()} if own else parts


def _joined(left: Layers, right: Layers) -> Layers:
    import torch

    return {layer: torch.cat([tensor, right[layer]], dim=1) for layer, tensor in left.items()}
