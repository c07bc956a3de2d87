"""What ends a run before everything is answered, and how that is decided before a request is sent."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from experiment.models.money import Allowance


@dataclass(frozen=True)
class Limits:
    """What one command may use; None sets no limit."""

    cost: float | None = None  # US dollars, all models together
    tokens: int | None = None  # tokens read and written, all models together
    minutes: float | None = None  # from the beginning of the command
    trials: int | None = None  # trials of each model


class Clock:
    """Says when a command's time is over."""

    def __init__(self, minutes: float | None) -> None:
        self.began = time.monotonic()
        self._ends = None if minutes is None else self.began + 60 * minutes

    @property
    def left(self) -> float | None:
        """Seconds that are left; None where there is no limit."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.left == 0


class Stop:
    """That a run is to end, and why; the first reason stands."""

    def __init__(self) -> None:
        # its lock may be taken again by the thread that has it: a signal may come while its own thread asks or waits
        self._change = threading.Condition(threading.RLock())
        self._is_asked = False
        self.reason: str | None = None
        self.interrupted = False

    def ask(self, reason: str, *, interrupted: bool = False) -> None:
        """Ask for the end."""
        with self._change:
            if self.reason is None:
                self.reason, self.interrupted = reason, interrupted
            self._is_asked = True
            self._change.notify_all()

    @property
    def is_asked(self) -> bool:
        """Whether the end was asked for."""
        return self._is_asked

    def wait(self, seconds: float) -> bool:
        """Wait until the end is asked for, at most so long; say whether it was."""
        with self._change:
            return self._change.wait_for(lambda: self._is_asked, seconds)


__all__ = ["Allowance", "Clock", "Limits", "Stop"]
