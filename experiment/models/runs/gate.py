"""Keeps the models and lists of a run together: nobody is more than one block ahead of whoever is least far.

A *place* says how far a trial stands in the run: the number of its round, and how much of its block lies before it (3.5 is the
middle of the fourth round's block). A trial may be asked when its place is less than one block beyond the first trial, of
whichever model and list, that has no answer yet. So a request that takes long holds the others up only once they are a
whole block ahead, and whatever ends a run leaves all within one block of each other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable

from experiment.models.runs.limits import Stop

Affords = Callable[[int], str | None]
"""Says why a round cannot be begun by anybody any more, or None where it can."""

LOOK_S = 0.25


class Gate:
    """Decides which trials a model may ask."""

    def __init__(self, readers: Iterable[str], affords: Affords = lambda number: None) -> None:
        self._at = dict.fromkeys(readers, 0.0)
        self._affords = affords
        self._change = threading.Condition()
        self.furthest = -1
        self.end = math.inf
        self.why: str | None = None

    def may_ask(self, reader: str, place: float, *, ahead: float = 0.0) -> bool:
        """Say whether a model may ask a trial now, and all that stand ``ahead`` (a share of a block) behind it."""
        with self._change:
            least = min(self._at.values(), default=math.inf)
            if place >= self.end or place >= least + 1.0:
                return False
            others = (at for name, at in self._at.items() if name != reader)
            if place + ahead > min(self.end, min(others, default=math.inf) + 1.0):
                return False
            if int(place) > self.furthest:
                why = self._affords(int(place))
                if why is not None:
                    self._close(why)
                    return False
                self.furthest = int(place)
            return True

    def advance(self, reader: str, place: float) -> None:
        """Note that a model has answers to all trials before this place."""
        with self._change:
            if self._at.get(reader, place) < place:
                self._at[reader] = place
                self._change.notify_all()

    def wait(self, reader: str, place: float, stop: Stop, *, ahead: float = 0.0) -> bool:
        """Wait until a model may ask a trial; False where it never may."""
        while not stop.is_asked:
            with self._change:
                if place >= self.end:
                    return False
                # what is left before the end may be less than was hoped for
                share = min(ahead, self.end - place)
                if self.may_ask(reader, place, ahead=share):
                    return True
                if place < self.end:
                    self._change.wait(LOOK_S)
        return False

    def leave(self, reader: str) -> None:
        """Take a model out that is done, or that the others do not wait for."""
        with self._change:
            self._at.pop(reader, None)
            self._change.notify_all()

    def hold(self, reader: str, why: str) -> None:
        """Have the others finish the round under way and begin none, since a model stays where it is."""
        with self._change:
            at = self._at.pop(reader, None)
            if at is not None:
                self.end = min(self.end, at + 1.0)
            self._close(why)

    def close(self, why: str) -> None:
        """Let rounds that were begun be finished, and none be begun."""
        with self._change:
            self._close(why)

    def _close(self, why: str) -> None:
        self.why = self.why or why
        self.end = min(self.end, self.furthest + 1.0)
        self._change.notify_all()
