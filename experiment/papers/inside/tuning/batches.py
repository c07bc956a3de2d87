"""Training data of each step: a function of the seed and the epoch alone, so that any step can be reproduced.

Running text is laid end to end in the epoch's order and cut into sequences, each beginning with the last token of the one
before it, so that every token but the very first is predicted once. Prompts with replies are taken whole.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.engine import Request
from experiment.models.local.tokens import Wording
from experiment.models.runs.limits import Stop
from experiment.papers.inside.tuning.records import Records, messages_of
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

TOKENS = "tokens"
MOST_HELD_OUT = 500
"""Records that are kept for the validation loss at most."""
_TEXTS_AT_ONCE = 256

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class TokenRows:
    """Records in tokens."""

    ids: Ids  # the tokens of all records, one after the other; a memory map
    starts: NDArray[np.int64]  # shape (records + 1,); where each record begins in ``ids``
    # shape (records,); the first token of each that is to be predicted, counted from its beginning
    scored: NDArray[np.int32]
    replies: bool  # whether records are prompts with replies
    left_out: int  # records that are longer than the model reads
    key: str  # names records, tokenizer and wording

    def __len__(self) -> int:
        return len(self.scored)

    def lengths(self) -> NDArray[np.int64]:
        """Return how many tokens each record has."""
        return np.diff(self.starts)

    def row(self, number: int) -> Ids:
        """Return the tokens of a record."""
        return self.ids[self.starts[number] : self.starts[number + 1]]


def parted(number: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of so many records are trained on and which are held out, drawn by the seed."""
    apart = min(MOST_HELD_OUT, max(1, round(share * number))) if share > 0 and number > 1 else 0
    order = permutation(number, seed, "training: which records are held out")
    return np.sort(order[apart:]), np.sort(order[:apart])


def permutation(number: int, *parts: str | int) -> NDArray[np.int64]:
    """Return the numbers below ``number`` in an order drawn by named parts."""
    return np.random.Generator(np.random.PCG64(stable_seed(*parts))).permutation(number)


def encoded(
    folder: Path, records: Records, wording: Wording, *, most: int | None, stop: Stop | None = None
) -> TokenRows:
    """Return a training run's records in tokens, computed once and then read from a file.

    ``most``: the model's context length in tokens; longer prompts with replies are left out, running text is cut.
    ``stop``: if an interruption is requested, nothing is stored.
    """
    settings = [records.sha256, wording.describe(), most]
    key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]
    place = folder / TOKENS
    stored = _kept_rows(place, key, replies=records.replies)
    if stored is not None:
        return stored
    partial = folder / f".{TOKENS}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    lengths, scored, left_out = [0], [], 0
    ends = _end(wording)
    of_records = _replies(records, wording) if records.replies else _texts(records, wording)
    try:
        with (partial / "ids.bin").open("wb") as stream:
            for ids, start in of_records:
                if stop is not None and stop.is_asked:
                    raise KeyboardInterrupt
                tokens = (*ids, *ends)
                if records.replies and most is not None and len(tokens) > most:
                    left_out += 1
                    continue
                stream.write(np.asarray(tokens, dtype=np.int32).tobytes())
                lengths.append(len(tokens))
                scored.append(start)
        if not scored:
            raise UserError(
                f"every one of {left_out} prompts is longer than the {most} tokens that the model reads",
                mend="Train with asked: bare, with fewer examples, or a model that reads more.",
            )
        np.save(partial / "starts.npy", np.cumsum(lengths, dtype=np.int64))
        np.save(partial / "scored.npy", np.asarray(scored, dtype=np.int32))
        (partial / "about.json").write_text(json.dumps({"key": key, "left_out": left_out}), "utf-8")
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    rows = _kept_rows(place, key, replies=records.replies)
    assert rows is not None
    return rows


def _kept_rows(place: Path, key: str, *, replies: bool) -> TokenRows | None:
    try:
        about = json.loads((place / "about.json").read_text("utf-8"))
        if about["key"] != key:
            return None
        return TokenRows(
            np.memmap(place / "ids.bin", dtype=np.int32, mode="r"),
            np.load(place / "starts.npy"),
            np.load(place / "scored.npy"),
            replies,
            int(about["left_out"]),
            key,
        )
    except (OSError, ValueError, KeyError):
        return None


def _end(wording: Wording) -> tuple[int, ...]:
    end = wording.tokenizer.eos_token_id
    if end is None:
        raise UserError(
            "the tokenizer of this model has no token that ends a text (eos_token)",
            mend="Set eos_token in its tokenizer_config.json.",
        )
    return (int(end),)


def _replies(records: Records, wording: Wording) -> Iterator[tuple[Sequence[int], int]]:
    """Yield prompt and reply as one row, and where the reply begins."""
    for number, record in enumerate(records, 1):
        request = Request(str(number), messages_of(record), (record["reply"],), 1, 0.0, 0)
        try:
            label = wording.tokens(request).labels[0]
        except ValueError as fault:
            raise UserError(f"record {number} of {records.file.name}: {fault}") from fault
        yield label.ids, label.start


def _texts(records: Records, wording: Wording) -> Iterator[tuple[Sequence[int], int]]:
    """Yield each text behind the tokenizer's opening token, all of it to be predicted."""
    plain = wording if wording.template == "plain" else Wording(wording.tokenizer, template="plain")
    opening = plain.ids("")
    texts = (record["text"] for record in records)
    while batch := list(islice(texts, _TEXTS_AT_ONCE)):
        # texts are cut into sequences that the model reads: what the tokenizer would say of long ones does not hold
        for ids in wording.tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"]:
            yield (*opening, *ids), 1


IGNORED = -100
"""Label at positions where nothing is to be predicted."""


@dataclass(frozen=True)
class Piece:
    """Tokens that are read together."""

    ids: NDArray[Any]
    scored: int  # the first of them that is to be predicted, at least 1

    @property
    def targets(self) -> int:
        """Number of tokens to predict."""
        return len(self.ids) - self.scored


@dataclass(frozen=True)
class TrainingBatch:
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
        self, rows: TokenRows, train: NDArray[np.int64], *, seed: int, batch_tokens: int, sequence_length: int
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
            return [
                Piece(self.rows.row(number), int(self.rows.scored[number])) for number in order[first:last]
            ]
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
        parts, at = [], begin
        while at < end:
            row = self.rows.row(int(order[place]))
            start = int(ends[place]) - len(row)
            part = row[at - start : end - start]
            parts.append(part)
            at += len(part)
            place += 1
        return Piece(np.concatenate(parts), 1)


def held_out_pieces(rows: TokenRows, held_out: NDArray[np.int64], length: int) -> list[Piece]:
    """Return what the validation loss is computed on: each record by itself, texts cut into sequences."""
    pieces = []
    for number in held_out:
        row = rows.row(int(number))
        if rows.replies:
            pieces.append(Piece(row, int(rows.scored[number])))
            continue
        pieces += [Piece(row[at : at + length + 1], 1) for at in range(0, max(1, len(row) - 1), length)]
    return [piece for piece in pieces if len(piece.ids) > 1]


def parts_of(pieces: Sequence[Piece], most: int, padding: int) -> Iterator[TrainingBatch]:
    """Yield parts of at least one piece, with similar lengths and limited tokens including padding."""
    by_length = sorted(pieces, key=lambda piece: len(piece.ids))
    batch: list[Piece] = []
    for piece in by_length:
        if batch and len(piece.ids) * (len(batch) + 1) > most:
            yield _part(batch, padding)
            batch = []
        batch.append(piece)
    if batch:
        yield _part(batch, padding)


def _part(pieces: Sequence[Piece], padding: int) -> TrainingBatch:
    width = max(len(piece.ids) for piece in pieces) - 1
    ids = np.full((len(pieces), width), padding, dtype=np.int64)
    wanted = np.full((len(pieces), width), IGNORED, dtype=np.int64)
    mask = np.zeros((len(pieces), width), dtype=np.int64)
    for place, piece in enumerate(pieces):
        end = len(piece.ids) - 1
        ids[place, :end] = piece.ids[:-1]
        wanted[place, piece.scored - 1 : end] = piece.ids[piece.scored :]
        mask[place, :end] = 1
    return TrainingBatch(ids, wanted, None if mask.all() else mask)
