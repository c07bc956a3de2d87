"""Keeps the models of a run together: no model begins a round before all others have finished all rounds before it.

Rounds are numbered in the order in which they are worked through. Models on this machine take turns and do several rounds a
turn, so that weights are not loaded for each; the others may then be as many rounds ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from experiment.models.runs.limits import Stop

Affords = Callable[[int], str | None]
"""Says why a round cannot be begun by anybody any more, or None where it can."""


class Gate:
    """Decides which rounds a model may begin.

    Parameters
    ----------
    readers : iterable of str
        The models that take part.
    affords : callable
        Asked once for each round, before the first model begins it.
    """

    def __init__(self, readers: Iterable[str], affords: Affords = lambda number: None) -> None:
        self._at = dict.fromkeys(readers, 0)
        self._affords = affords
        self._change = threading.Condition()
        self.furthest = -1
        self.ceiling: int | None = None
        self.slack = 0
        self.why: str | None = None

    def may_begin(self, reader: str, number: int) -> bool:
        """Say whether a model may begin a round now."""
        with self._change:
            if self.ceiling is not None and number > self.ceiling:
                return False
            others = (at for name, at in self._at.items() if name != reader)
            if any(at < number - self.slack for at in others):
                return False
            if number > self.furthest:
                why = self._affords(number)
                if why is not None:
                    self._close(why)
                    return False
                self.furthest = number
            return True

    def advance(self, reader: str, number: int) -> None:
        """Note that a model has finished all rounds before this one."""
        with self._change:
            if self._at.get(reader, number) < number:
                self._at[reader] = number
                self._change.notify_all()

    def wait(self, reader: str, number: int, stop: Stop) -> bool:
        """Wait until a model may begin a round; False where it never may."""
        while not stop.is_asked:
            if self.may_begin(reader, number):
                return True
            with self._change:
                if self.ceiling is not None and number > self.ceiling:
                    return False
                self._change.wait(0.25)
        return False

    def leave(self, reader: str) -> None:
        """Take a model out: it is done, or can do no more."""
        with self._change:
            self._at.pop(reader, None)
            self._change.notify_all()

    def close(self, why: str) -> None:
        """Let rounds that were begun be finished, and none be begun."""
        with self._change:
            self._close(why)

    def _close(self, why: str) -> None:
        if self.ceiling is None:
            self.ceiling, self.why = self.furthest, why
        self._change.notify_all()
