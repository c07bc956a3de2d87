"""What is computed of a model: rows of tokens, what is asked of each, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from experiment.models.local.causal_model import CausalModel

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
    first_at: float | None = None  # when the first token was chosen, by the performance counter


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
class MemoryBudget:
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
    """Return which tokens are in which sum.

    ``sums``: a line, and the tokens of it that are summed.
    Ones and zeros, shape (lines, most sums of a line, tokens); line and place there of each sum.
    """
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


def padded(rows: Sequence[Ids | Sequence[int]], device: str) -> Any:
    """Return tokens, shape (rows, longest); what is padded is token 0."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([[*map(int, row), *[0] * (longest - len(row))] for row in rows], device=device)


def asked_of(rows: Sequence[Row], start: int = 0, before: Sums | None = None) -> Asked:
    """Return what rows ask of a batch in which each stands on its own line from position ``start`` on.

    ``before``: sums of hidden states over the tokens before ``start``, which all rows share.
    """
    asked = Asked()
    for number, row in enumerate(rows):
        asked.add(number, row, range(len(row.ids) - start), start=start, line=number, before=before)
    return asked
