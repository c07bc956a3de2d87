"""Rows: sequences of tokens for a model to compute, the outputs requested of each, and their outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.pictures import Picture

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Decoding:
    """Settings for the continuation of one row."""

    max_tokens: int
    temperature: float  # 0 takes the most probable token each time
    seed: int  # seed of this row's own random numbers
    stopped: Callable[[Sequence[int]], bool]  # returns whether the tokens so far complete a stop text
    top_p: float = 1.0  # sample from the most probable tokens that together reach this probability
    top_k: int | None = None  # sample from this many most probable tokens


@dataclass(frozen=True)
class Seen:
    """Input of a vision model, with its processor's marks in the text for each picture."""

    text: str
    scored: str  # the text followed by a label that continues the row's tokens
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """One sequence of tokens to compute and its requested outputs."""

    ids: Ids  # shape (length,); at least one token
    # Position and token: the log-probability of the token at that position given all before it, 1 ≤ position ≤ length
    targets: tuple[tuple[int, int], ...] = ()
    # Positions at which the log-probability that a new word begins is requested, 1 ≤ position ≤ length
    borders: tuple[int, ...] = ()
    states: tuple[int, ...] = ()  # positions whose hidden states are stored, 0 ≤ position < length
    decoding: Decoding | None = None  # how the row is to be continued
    # Input of the encoder, if the model has one; ``ids`` is then the beginning of its decoder's text
    source: Ids | None = None
    mean: bool = False  # whether the mean of the hidden states over all its tokens is stored
    seen: Seen | None = None
    # Positions at which the entropy of the next token is requested: at borders over tokens that begin a word, 1 ≤ position ≤ length
    entropies: tuple[int, ...] = ()

    def asked_at(self) -> set[int]:
        """Return the positions of tokens after which the next token's distribution is needed."""
        positions = {position - 1 for position, _ in self.targets} | {
            position - 1 for position in (*self.borders, *self.entropies)
        }
        if self.decoding is not None:
            positions.add(len(self.ids) - 1)
        return positions

    @property
    def shareable(self) -> int:
        """Number of leading tokens that may come from an earlier computation, because no output of them is requested."""
        return min({*self.asked_at(), *self.states, len(self.ids) - 1})


@dataclass
class Continuation:
    """The continuation of a row; ``finish`` is ``eos``, ``stop`` or ``length``."""

    ids: list[int] = field(default_factory=list)
    finish: str = "length"
    first_at: float | None = None  # time at which the first token was chosen, by the performance counter


@dataclass
class RowOutcome:
    """Outcome of a row."""

    # Natural log-probability of each of the row's targets
    logprobs: dict[tuple[int, int], float] = field(default_factory=dict)
    # Natural log-probability at each requested position that the next token begins a word
    borders: dict[int, float] = field(default_factory=dict)
    # Entropy at each requested position, in nats
    entropies: dict[int, float] = field(default_factory=dict)
    # Position to an array, shape (layers + 1, width), float16
    states: dict[int, NDArray[np.float16]] = field(default_factory=dict)
    # Mean of the hidden states over all tokens of the row, shape (layers + 1, width)
    mean: NDArray[np.float16] | None = None
    computed: int = 0  # tokens that were computed for this row; the others came from earlier rows
    decoded: Continuation | None = None
    # milliseconds, first_ms: time from start to end and to the first chosen token; only if the row ran alone
    milliseconds: float | None = None
    first_ms: float | None = None

    def time_since(self, started: float) -> None:
        """Set the times of a row that ran alone, by the performance counter."""
        self.milliseconds = (time.perf_counter() - started) * 1000
        if self.decoded is not None and self.decoded.first_at is not None:
            self.first_ms = (self.decoded.first_at - started) * 1000


@dataclass
class MemoryBudget:
    """Limits of what is computed at once; halved when memory runs out, for the rest of the run."""

    tokens: int  # most tokens in one pass, padding included
    held: int  # most tokens whose keys and values are held for rows being computed
    positions: int = 2**31  # most positions whose logits are held at once

    def halve(self) -> None:
        """Halve all limits."""
        self.tokens = max(1, self.tokens // 2)
        self.held = max(1, self.held // 2)
        self.positions = max(1, self.positions // 2)


def common_length(left: Ids | Sequence[int], right: Ids | Sequence[int]) -> int:
    """Return how many leading tokens two rows have in common."""
    shorter = min(len(left), len(right))
    differ = np.asarray(left[:shorter]) != np.asarray(right[:shorter])
    return int(differ.argmax()) if differ.any() else shorter


Sums = NDArray[np.float32]
"""Sums over tokens, shape (layers + 1, width)."""

Marks = dict[int, Sums]
"""Sums by number of leading tokens."""

LARGEST = float(np.finfo(np.float16).max)
"""Largest stored value, 65,504; larger ones are clipped to it."""


@dataclass
class Hidden:
    """Hidden states collected in passes, by layer."""

    at: list[NDArray[np.float32]] = field(default_factory=list)  # shape (places, width)
    sums: list[NDArray[np.float32]] = field(default_factory=list)  # shape (sums, width)

    def of_place(self, number: int) -> NDArray[np.float32]:
        """Return the states at one place, shape (layers + 1, width)."""
        return np.stack([layer[number] for layer in self.at])

    def of_sum(self, number: int) -> Sums:
        """Return one sum over tokens, shape (layers + 1, width)."""
        return np.stack([layer[number] for layer in self.sums])


def deepest(marks: Iterable[int], most: int) -> int:
    """Return the deepest mark up to ``most``; 0 if there is none."""
    return max((depth for depth in marks if depth <= most), default=0)


def up_to(marks: Mapping[int, Sums], most: int) -> Marks:
    """Return the marks up to ``most``."""
    return {depth: sums for depth, sums in marks.items() if depth <= most}


def weights_of(sums: Sequence[tuple[int, Sequence[int]]], lines: int, tokens: int, device: Any) -> Any:
    """Return ones and zeros of shape (lines, most sums of a line, tokens), and each sum's line and index there."""
    import torch

    of_line = [0] * lines
    places = []
    for line, _ in sums:
        places.append((line, of_line[line]))
        of_line[line] += 1
    weights = np.zeros((lines, max(of_line), tokens), dtype=np.float32)
    for place, (_, index) in zip(places, sums, strict=True):
        weights[place][np.asarray(index)] = 1.0
    return torch.from_numpy(weights).to(device), torch.tensor(places, device=device)


def padded(rows: Sequence[Ids | Sequence[int]], device: str) -> Any:
    """Return tokens, shape (rows, longest), padded with token 0."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([[*map(int, row), *[0] * (longest - len(row))] for row in rows], device=device)
