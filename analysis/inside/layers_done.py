"""Progress over the layers of a model: a line to print, with the numbers that a bar needs."""

from __future__ import annotations

from typing import Self

from stimuli.durations import short_duration


class LayersDone(str):
    """A line such as ``probing net: layer 3 of 28, about 5 min left``."""

    what: str  # what is done to which model
    done: int  # layers that are done, and all of them
    of: int

    @classmethod
    def before(cls, what: str, number: int, layers: int, seconds: float | None = None) -> Self:
        """Return the line that is told before a layer."""
        said = f"{what}: layer {number} of {layers - 1}"
        if seconds is not None:
            left = seconds * (layers - number)
            said += f", about {short_duration(left)} left"
        told = cls(said)
        told.what, told.done, told.of = what, number, layers
        return told
