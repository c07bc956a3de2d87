"""Draws some of the materials by a stable hash of their ids, so that a larger draw holds a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Thing = TypeVar("Thing")


def draw_some(
    things: Sequence[Thing],
    number: int | None,
    *,
    seed: int,
    key: Callable[[Thing], str],
    what: str = "items",
) -> list[Thing]:
    """Draw a number of things and keep them in the order given."""
    if number is None:
        return list(things)
    if not 0 <= number <= len(things):
        raise UserError(f"{number} {what} are asked for; there are {len(things)}")
    lucky = sorted(range(len(things)), key=lambda place: stable_seed(seed, "draw", what, key(things[place])))
    return [things[place] for place in sorted(lucky[:number])]
