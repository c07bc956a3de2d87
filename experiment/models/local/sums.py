"""Sums of hidden states over the tokens of a text, from which their means are made.

A mean over all tokens of a prompt is never taken of a stack of tokens: while a pass is made, each layer's states are summed over
the tokens of each row, in 32 bits. What rows share is computed once and summed once: a path or a prefix carries *marks*, sums over
all its tokens up to some places, and a row adds what lies behind the place from which it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
