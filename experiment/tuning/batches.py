"""What each step is trained on: a function of the seed and the epoch alone, so that any step can be made again.

Running text is laid end to end in the epoch's order and cut into sequences, each beginning with the last token of the one
before it, so that every token but the very first is predicted once. Prompts with replies are taken whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.tuning.rows import Rows, permutation

IGNORED = -100
"""What stands where nothing is to be predicted."""


@dataclass(frozen=True)
class Piece:
    """Tokens that are read together."""

    ids: NDArray[Any]
    scored: int  # the first of them that is to be predicted, at least 1

    @property
    def targets(self) -> int:
        """How many tokens are to be predicted."""
        return len(self.ids) - self.scored


@dataclass(frozen=True)
class Part:
    """Pieces that are computed at once, padded on the right."""

    # ids, wanted: shape (pieces, tokens); what is read; the next token where it is to be predicted, else
    # :data:`IGNORED`
    ids: NDArray[np.int64]
    wanted: NDArray[np.int64]
    mask: NDArray[np.int64] | None  # 1 for tokens, 0 for padding; None where there is none


class Order:
    """The steps of every epoch.

    ``train``: the records that are trained on.
    ``batch_tokens``: tokens of one step: as many pieces as fit, at least one.
    ``sequence_length``: tokens of a piece of running text.
    """

    def __init__(
        self, rows: Rows, train: NDArray[np.int64], *, seed: int, batch_tokens: int, sequence_length: int
    ) -> None:
        self.rows = rows
        self._train = train
        self._lengths = rows.lengths()
        self._seed = seed
        self._batch = batch_tokens
        self._length = min(sequence_length, max(2, int(self._lengths[train].sum()) - 1))
        self._plan = lru_cache(maxsize=2)(self._planned)

    def steps_in(self, epoch: int) -> int:
        """Return how many steps an epoch, counted from 0, has."""
        return len(self._plan(epoch)[1]) - 1

    def tokens_in_epoch(self) -> int:
        """Return how many tokens an epoch reads."""
        return int(self._lengths[self._train].sum())

    def pieces(self, epoch: int, step: int) -> list[Piece]:
        """Return what a step, counted from 0 in its epoch, is trained on."""
        order, bounds = self._plan(epoch)
        first, last = int(bounds[step]), int(bounds[step + 1])
        if self.rows.replies:
            return [Piece(self.rows.row(one), int(self.rows.scored[one])) for one in order[first:last]]
        ends = np.cumsum(self._lengths[order])
        return [self._window(order, ends, number) for number in range(first, last)]

    def _planned(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the order of the records, and the first piece of each step with the number of all behind them."""
        order = self._train[
            permutation(len(self._train), self._seed, "training: order of the records", epoch)
        ]
        lengths = self._lengths[order]
        if not self.rows.replies:
            number = -(-(int(lengths.sum()) - 1) // self._length)
            bounds = np.arange(0, number, max(1, self._batch // self._length))
            return order, np.append(bounds, number)
        starts, filled = [0], 0
        for place, length in enumerate(lengths):
            if filled and filled + length > self._batch:
                starts.append(place)
                filled = 0
            filled += int(length)
        return order, np.asarray([*starts, len(order)])

    def _window(self, order: NDArray[np.int64], ends: NDArray[np.int64], number: int) -> Piece:
        begin, end = number * self._length, min(number * self._length + self._length + 1, int(ends[-1]))
        place = int(np.searchsorted(ends, begin, side="right"))
        found, at = [], begin
        while at < end:
            row = self.rows.row(int(order[place]))
            start = int(ends[place]) - len(row)
            part = row[at - start : end - start]
            found.append(part)
            at += len(part)
            place += 1
        return Piece(np.concatenate(found), 1)


def held_out_pieces(rows: Rows, held_out: NDArray[np.int64], length: int) -> list[Piece]:
    """Return what the validation loss is computed on: each record by itself, texts cut into sequences."""
    found = []
    for one in held_out:
        row = rows.row(int(one))
        if rows.replies:
            found.append(Piece(row, int(rows.scored[one])))
            continue
        found += [Piece(row[at : at + length + 1], 1) for at in range(0, max(1, len(row) - 1), length)]
    return [piece for piece in found if len(piece.ids) > 1]


def parts_of(pieces: Sequence[Piece], most: int, padding: int) -> Iterator[Part]:
    """Yield pieces in parts of at most so many tokens, padding included; of similar length, each part one piece at least."""
    by_length = sorted(pieces, key=lambda piece: len(piece.ids))
    some: list[Piece] = []
    for piece in by_length:
        if some and len(piece.ids) * (len(some) + 1) > most:
            yield _part(some, padding)
            some = []
        some.append(piece)
    if some:
        yield _part(some, padding)


def _part(pieces: Sequence[Piece], padding: int) -> Part:
    width = max(len(piece.ids) for piece in pieces) - 1
    ids = np.full((len(pieces), width), padding, dtype=np.int64)
    wanted = np.full((len(pieces), width), IGNORED, dtype=np.int64)
    mask = np.zeros((len(pieces), width), dtype=np.int64)
    for place, piece in enumerate(pieces):
        end = len(piece.ids) - 1
        ids[place, :end] = piece.ids[:-1]
        wanted[place, piece.scored - 1 : end] = piece.ids[piece.scored :]
        mask[place, :end] = 1
    return Part(ids, wanted, None if mask.all() else mask)
