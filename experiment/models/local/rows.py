"""What is computed of a model: rows of tokens, what is asked of each, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Decoding:
    """How one row is to be continued."""

    max_tokens: int
    temperature: float  # 0 takes the most probable token each time
    seed: int  # of this row's own draws
    stopped: Callable[[Sequence[int]], bool]  # says of the tokens so far whether a stop text has been reached
    top_p: float = 1.0  # draws come from the most probable tokens that together reach this probability
    top_k: int | None = None  # draws come from this many most probable tokens


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
class Decoded:
    """What a row was continued with; ``finish`` is ``eos``, ``stop`` or ``length``."""

    ids: list[int] = field(default_factory=list)
    finish: str = "length"


@dataclass
class Found:
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
    decoded: Decoded | None = None
    # milliseconds, first_ms: time from beginning to end and to the first token chosen; only where a row ran
    # alone
    milliseconds: float | None = None
    first_ms: float | None = None


@dataclass
class Budget:
    """How much is computed at once; halved when memory runs out, for the rest of the run."""

    tokens: int  # most tokens in one pass, padding counted
    held: int  # most tokens whose keys and values are held for rows under way
    positions: int = 2**31  # most positions whose logits are held at once

    @property
    def exhausted(self) -> bool:
        """Whether halving again would leave nothing."""
        return self.tokens <= 1

    def halve(self) -> None:
        """Take half of everything from now on."""
        self.tokens = max(1, self.tokens // 2)
        self.held = max(1, self.held // 2)
        self.positions = max(1, self.positions // 2)


def common_length(left: Ids, right: Ids) -> int:
    """Return how many leading tokens two rows have in common."""
    shorter = min(len(left), len(right))
    differ = left[:shorter] != right[:shorter]
    return int(differ.argmax()) if differ.any() else shorter
