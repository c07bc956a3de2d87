"""Plans passes over many rows so that every token that rows share from their beginning is computed once.

Rows in the order of their tokens form a trie: each row adds the tokens beyond what it has in common with the row before.
A walk through the trie computes long common stretches first and keeps them as the *path*; whatever below the path fits
the token budget goes into one pass, all branches side by side, where each token sees the path and its own ancestors only.
Rows that are to be continued share the path's memory, so that for them a common stretch becomes path even if all would fit.
The tokens of all passes together are the nodes of the trie, which is the least that any plan can compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.rows import Budget, Ids, Row, common_length

WORTH_SHARING = 16
"""A common stretch of so many tokens is computed before what follows when rows are to be continued from it."""


@dataclass(frozen=True)
class Line:
    """One row within a pass."""

    place: int  # place of the row in the sequence that was planned
    # shape (n,); where in the pass the row's tokens stand, from the start of the pass on
    index: NDArray[np.int64]
    new: int  # how many tokens of the pass were added for this row
    ends: bool  # whether the row's last token is among them


@dataclass(frozen=True)
class Pass:
    """Tokens to compute at once."""

    start: int  # length of the path that all of them follow; what lay beyond it on the path is given up
    tokens: Ids  # shape (n,)
    depths: NDArray[np.int64]  # shape (n,); position of each token in its rows
    lines: tuple[Line, ...]  # the rows that run through this pass
    extends: bool  # whether the tokens are one stretch that lengthens the path


class Trie:
    """Rows in the order of their tokens.

    ``size``: number of nodes: the least number of tokens to compute.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.order = sorted(range(len(rows)), key=lambda place: rows[place].ids.astype(">u4").tobytes())
        ids = [rows[place].ids for place in self.order]
        lengths = [len(one) for one in ids]
        shared = [0, *(common_length(ids[n - 1], ids[n]) for n in range(1, len(ids)))]
        self._lengths = np.array(lengths, dtype=np.int64)
        self._shared = np.array(shared, dtype=np.int64)
        self._added = np.concatenate([[0], np.cumsum(self._lengths - self._shared)])
        asked = [len(rows[place].asked_at()) for place in self.order]
        self._asked = np.concatenate([[0], np.cumsum(asked)])
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

    def passes(self, budget: Budget, known: int = 0) -> Iterator[Pass]:
        """Yield passes in the order of a walk; the budget is read anew for each.

        ``known``: how many leading tokens lie on the path already: common to all rows, and none of them asked for
        anything.
        """
        if not self.order:
            return
        waiting = [(0, len(self.order), known)]
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
                    low += 1  # a row that ends here stands before those that go on
                if low < high:
                    waiting.append((low, high, reach))
                continue
            waiting += reversed(list(self._bins(low, high, depth, budget)))

    def _fits(self, low: int, high: int, depth: int, budget: Budget) -> bool:
        return (
            self._count(low, high, depth) <= budget.tokens
            and self._asked[high] - self._asked[low] <= budget.positions
            and not self._is_worth_sharing(low, high, depth)
        )

    def _is_worth_sharing(self, low: int, high: int, depth: int) -> bool:
        """Whether rows that are to be continued have a stretch in common that each would else keep for itself."""
        first, last = np.searchsorted(self._continued, (low, high))
        return bool((self._common[first : max(first, last - 1)] >= depth + WORTH_SHARING).any())

    def _count(self, low: int, high: int, depth: int) -> int:
        """Return the tokens of rows low … high-1 beyond ``depth``, which all of them share."""
        return int(self._lengths[low] - depth + self._added[high] - self._added[low + 1])

    def _bins(self, low: int, high: int, depth: int, budget: Budget) -> Iterator[tuple[int, int, int]]:
        """Yield runs of neighbouring branches below ``depth`` that fit the budget together, or single ones."""
        forks = np.flatnonzero(self._shared[low + 1 : high] == depth) + low + 1
        borders = [low, *(int(fork) for fork in forks), high]
        start = low
        for left, right in pairwise(borders[1:]):
            if not self._fits(start, right, depth, budget):
                yield start, left, depth
                start = left
        yield start, high, depth

    def _branches(self, low: int, high: int, depth: int) -> Pass:
        """Return the pass that computes everything of rows low … high-1 beyond ``depth``."""
        lines, pieces, depths = [], [], []
        count = 0
        before = np.empty(0, dtype=np.int64)
        for number in range(low, high):
            place = self.order[number]
            kept = depth if number == low else int(self._shared[number])
            ids = self.rows[place].ids[kept:]
            index = np.concatenate([before[: kept - depth], np.arange(count, count + len(ids))])
            pieces.append(ids)
            depths.append(np.arange(kept, kept + len(ids)))
            lines.append(Line(place, index, len(ids), ends=True))
            count += len(ids)
            before = index
        return Pass(depth, np.concatenate(pieces), np.concatenate(depths), tuple(lines), extends=False)

    def _stretch(self, low: int, high: int, depth: int, reach: int) -> Pass:
        """Return the pass that lengthens the path from ``depth`` to ``reach``, which rows low … high-1 share."""
        tokens = self.rows[self.order[low]].ids[depth:reach]
        index = np.arange(reach - depth)
        lines = [
            Line(
                self.order[number],
                index,
                len(tokens) if number == low else 0,
                ends=int(self._lengths[number]) == reach,
            )
            for number in range(low, high)
        ]
        return Pass(depth, tokens, np.arange(depth, reach), tuple(lines), extends=True)
