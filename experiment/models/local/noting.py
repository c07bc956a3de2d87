"""What rows ask of a batch, each place in it once, and how that is read out of its logits and hidden states.

A batch has lines of tokens. On the ways that put rows side by side, a row is a line; where rows stand in one line as the
branches of a trie, a row is a selection of its tokens, and several rows may ask at the same token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.head import CausalModel
from experiment.models.local.rows import Found, Row
from experiment.models.local.sums import Hidden, Sums

Wanting = list[tuple[int, int]]
"""Rows, by their place, and the position at which each asks."""


class Asked:
    """What is asked of one batch.

    ``states``: line and token where hidden states are kept, and who wants them.
    ``sums``: tokens of a line over which hidden states are summed, by the line and the last of them: what stands
    before a token in its row is known by the token.
    """

    def __init__(self) -> None:
        self.states: dict[tuple[int, int], Wanting] = {}
        self.sums: dict[tuple[int, int], Sequence[int] | NDArray[np.int64]] = {}
        self._means: list[tuple[tuple[int, int], int, int, Sums | None]] = []
        self._after: set[int] = set()
        self._targets: dict[tuple[int, int, int], Wanting] = {}
        self._borders: dict[tuple[int, int], Wanting] = {}

    def add(
        self,
        place: int,
        row: Row,
        index: Sequence[int] | NDArray[np.int64],
        *,
        start: int = 0,
        line: int = 0,
        ends: bool = True,
        before: Sums | None = None,
    ) -> None:
        """Take what a row asks of those of its tokens that stand in the batch.

        ``place``: of the row in the sequence that is computed.
        ``index``: shape (n,); where in the line the row's tokens from position ``start`` on stand.
        ``ends``: whether the row's last token is among them.
        ``before``: sums of hidden states over the row's tokens before ``start``.
        """
        end = start + len(index)
        for position, token in row.targets:
            if start < position <= end:
                at = int(index[position - 1 - start])
                self._after.add(at)
                self._targets.setdefault((line, at, token), []).append((place, position))
        for position in row.borders:
            if start < position <= end:
                at = int(index[position - 1 - start])
                self._after.add(at)
                self._borders.setdefault((line, at), []).append((place, position))
        for position in row.states:
            if start <= position < end:
                self.states.setdefault((line, int(index[position - start])), []).append((place, position))
        if row.decoding is not None and ends:
            self._after.add(int(index[-1]))
        if row.mean and ends:
            self._means.append((self.sum(index, line=line), place, len(row.ids), before))

    def sum(self, index: Sequence[int] | NDArray[np.int64], *, line: int = 0) -> tuple[int, int]:
        """Ask for the sum of hidden states over all tokens of a row in the batch up to some place; return its name."""
        name = (line, int(index[-1]))
        self.sums.setdefault(name, index)
        return name

    def watched(self) -> tuple[list[tuple[int, int]], list[tuple[int, Any]]]:
        """Return places and sums as the model's :meth:`~CausalModel.watched` takes them."""
        return list(self.states), [(line, index) for (line, _), index in self.sums.items()]

    def summed(self, hidden: Hidden) -> dict[tuple[int, int], Sums]:
        """Return the sums that were asked for, by name."""
        return {name: hidden.of_sum(number) for number, name in enumerate(self.sums)}

    def columns(self) -> dict[int, int]:
        """Return the tokens of a line after which a distribution is needed, each with its column; never none."""
        return {at: column for column, at in enumerate(sorted(self._after) or [0])}

    def note(self, model: CausalModel, found: Sequence[Found], logits: Any, hidden: Hidden) -> None:
        """Write what the batch tells of its rows.

        ``found``: by place.
        ``logits``: shape (lines, columns, vocabulary).
        ``hidden``: states and sums in the order of :attr:`states` and :attr:`sums`.
        """
        import torch

        column = self.columns()
        if self._targets or self._borders:
            normaliser = torch.logsumexp(logits, dim=-1)
        if self._targets:
            lines, places, tokens = torch.tensor(
                [(line, column[at], token) for line, at, token in self._targets], device=logits.device
            ).unbind(1)
            values = (logits[lines, places, tokens] - normaliser[lines, places]).tolist()
            for ((_, _, token), wanting), value in zip(self._targets.items(), values, strict=True):
                for place, position in wanting:
                    found[place].logprobs[position, token] = value
        if self._borders:
            lines, places = torch.tensor(
                [(line, column[at]) for line, at in self._borders], device=logits.device
            ).unbind(1)
            begin = model.word_beginnings()
            masses = torch.logsumexp(logits[lines, places].masked_fill(~begin, -torch.inf), dim=-1)
            values = (masses - normaliser[lines, places]).tolist()
            for wanting, value in zip(self._borders.values(), values, strict=True):
                for place, position in wanting:
                    found[place].borders[position] = value
        for number, wanting in enumerate(self.states.values()):
            stack = model.in_16_bits(hidden.of_place(number))
            for place, position in wanting:
                found[place].states[position] = stack
        if self._means:
            sums = self.summed(hidden)
            for name, place, count, before in self._means:
                total = sums[name] if before is None else sums[name] + before
                found[place].mean = model.in_16_bits(total / np.float32(count))
