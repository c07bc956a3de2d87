"""What is computed of a model: rows of tokens, what is asked of each, and what was found."""

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
    """Settings by which one row is continued."""

    max_tokens: int
    temperature: float  # 0 takes the most probable token each time
    seed: int  # of this row's own draws
    stopped: Callable[[Sequence[int]], bool]  # says of the tokens so far whether a stop text has been reached
    top_p: float = 1.0  # draws come from the most probable tokens that together reach this probability
    top_k: int | None = None  # draws come from this many most probable tokens


@dataclass(frozen=True)
class Seen:
    """What a model that looks at pictures is shown, with its processor's marks in the text for each."""

    text: str
    scored: str  # the text with a label behind it that goes on from the row's tokens
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """One sequence of tokens to compute and what is asked of it."""

    ids: Ids  # shape (length,); at least one token
    # Position and token: the log-probability of the token at that position after all before it, 1 ≤ position
    # ≤ length
    targets: tuple[tuple[int, int], ...] = ()
    # Positions at which the log-probability that a new word begins is asked, 1 ≤ position ≤ length
    borders: tuple[int, ...] = ()
    states: tuple[int, ...] = ()  # positions whose hidden states are kept, 0 ≤ position < length
    decoding: Decoding | None = None  # how the row is to be continued
    # What an encoder reads, where the model has one; ``ids`` is then what its decoder begins with
    source: Ids | None = None
    mean: bool = False  # whether the mean of the hidden states over all its tokens is kept
    seen: Seen | None = None

    def asked_at(self) -> set[int]:
        """Return the positions of tokens after which the next token's distribution is needed."""
        found = {position - 1 for position, _ in self.targets} | {position - 1 for position in self.borders}
        if self.decoding is not None:
            found.add(len(self.ids) - 1)
        return found

    @property
    def shareable(self) -> int:
        """How many leading tokens may come from an earlier computation: nothing is asked of them."""
        return min({*self.asked_at(), *self.states, len(self.ids) - 1})


@dataclass
class Continuation:
    """What a row was continued with; ``finish`` is ``eos``, ``stop`` or ``length``."""

    ids: list[int] = field(default_factory=list)
    finish: str = "length"
    first_at: float | None = None  # when the first token was chosen, by the performance counter


@dataclass
class RowOutcome:
    """What was found of a row."""

    # Natural log-probability of each of the row's targets
    logprobs: dict[tuple[int, int], float] = field(default_factory=dict)
    # Natural log-probability at each position asked that the next token begins a word
    borders: dict[int, float] = field(default_factory=dict)
    # Position to an array, shape (layers + 1, width), float16
    states: dict[int, NDArray[np.float16]] = field(default_factory=dict)
    # Mean of the hidden states over all tokens of the row, shape (layers + 1, width)
    mean: NDArray[np.float16] | None = None
    computed: int = 0  # tokens of the row that were computed for it; the others came with earlier rows
    decoded: Continuation | None = None
    # milliseconds, first_ms: time from beginning to end and to the first token chosen; only where a row ran
    # alone
    milliseconds: float | None = None
    first_ms: float | None = None

    def time_since(self, started: float) -> None:
        """Take the times of a row that ran alone, by the performance counter."""
        self.milliseconds = (time.perf_counter() - started) * 1000
        if self.decoded is not None and self.decoded.first_at is not None:
            self.first_ms = (self.decoded.first_at - started) * 1000


@dataclass
class MemoryBudget:
    """How much is computed at once; halved when memory runs out, for the rest of the run."""

    tokens: int  # most tokens in one pass, padding counted
    held: int  # most tokens whose keys and values are held for rows under way
    positions: int = 2**31  # most positions whose logits are held at once

    def halve(self) -> None:
        """Take half of everything from now on."""
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
"""Sums over the first so many tokens."""

LARGEST = float(np.finfo(np.float16).max)
"""What is larger is kept as this number: 65,504."""


@dataclass
class Hidden:
    """What was seen of the hidden states in passes, a layer each."""

    at: list[NDArray[np.float32]] = field(default_factory=list)  # shape (places, width)
    sums: list[NDArray[np.float32]] = field(default_factory=list)  # shape (sums, width)

    def of_place(self, number: int) -> NDArray[np.float32]:
        """Return the states at one place, shape (layers + 1, width)."""
        return np.stack([layer[number] for layer in self.at])

    def of_sum(self, number: int) -> Sums:
        """Return one sum over tokens, shape (layers + 1, width)."""
        return np.stack([layer[number] for layer in self.sums])


def deepest(marks: Iterable[int], most: int) -> int:
    """Return the deepest mark that lies no deeper than ``most``; 0 where there is none."""
    return max((depth for depth in marks if depth <= most), default=0)


def up_to(marks: Mapping[int, Sums], most: int) -> Marks:
    """Return the marks that lie no deeper than ``most``."""
    return {depth: sums for depth, sums in marks.items() if depth <= most}


def weights_of(sums: Sequence[tuple[int, Sequence[int]]], lines: int, tokens: int, device: Any) -> Any:
    """Return ones and zeros of shape (lines, most sums of a line, tokens), and line and place there of each sum."""
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
    """Return tokens, shape (rows, longest); what is padded is token 0."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([[*map(int, row), *[0] * (longest - len(row))] for row in rows], device=device)
