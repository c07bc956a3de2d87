"""Limits that end a run before everything is answered, checked before a request is sent."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class CommandLimits:
    """Limits of one command; None is no limit."""

    cost: float | None = None  # US dollars, all models together
    minutes: float | None = None  # from the start of the command
    trials: int | None = None  # trials per model


class Deadline:
    """The time limit of a command."""

    def __init__(self, minutes: float | None) -> None:
        self.began = time.monotonic()
        self._ends = None if minutes is None else self.began + 60 * minutes

    @property
    def left(self) -> float | None:
        """Seconds until the deadline; None if there is no limit."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.left == 0


class Stop:
    """A request to end a run, with its first reason."""

    def __init__(self) -> None:
        # the lock is reentrant: a signal may arrive while the same thread sets or waits
        self._change = threading.Condition(threading.RLock())
        self._is_asked = False
        self.reason: str | None = None
        self.interrupted = False

    def ask(self, reason: str, *, interrupted: bool = False) -> None:
        """Request the end of the run."""
        with self._change:
            if self.reason is None:
                self.reason, self.interrupted = reason, interrupted
            self._is_asked = True
            self._change.notify_all()

    @property
    def is_asked(self) -> bool:
        """Whether the end was requested."""
        return self._is_asked

    def wait(self, seconds: float) -> bool:
        """Wait for a request to end, up to ``seconds``; return whether there was one."""
        with self._change:
            return self._change.wait_for(lambda: self._is_asked, seconds)


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Handle signals: the first requests the end, the second raises KeyboardInterrupt; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        if stop.is_asked:
            raise KeyboardInterrupt
        stop.ask("interrupted", interrupted=True)

    handlers_before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)


LOOK_S = 0.25


class Gate:
    """Decides which trials a model may send, so that all models stay together; one that has ended holds up nobody."""

    def __init__(self, readers: Iterable[str]) -> None:
        self._at = dict.fromkeys(readers, 0.0)
        self._change = threading.Condition()

    def may_ask(self, reader: str, place: float, *, ahead: float = 0.0) -> bool:
        """Return whether a model may send a trial now, and all those ``ahead`` (a share of a block) of it."""
        with self._change:
            if place >= min(self._at.values(), default=math.inf) + 1.0:
                return False
            others = (at for name, at in self._at.items() if name != reader)
            return place + ahead <= min(others, default=math.inf) + 1.0

    def advance(self, reader: str, place: float) -> None:
        """Record that a model has answers to all trials before this place."""
        with self._change:
            if self._at.get(reader, place) < place:
                self._at[reader] = place
                self._change.notify_all()

    def wait(self, reader: str, place: float, stop: Stop, *, ahead: float = 0.0) -> bool:
        """Wait until a model may send a trial; return False if the run ends before."""
        while not stop.is_asked:
            with self._change:
                if self.may_ask(reader, place, ahead=ahead):
                    return True
                self._change.wait(LOOK_S)
        return False

    def leave(self, reader: str) -> None:
        """Remove a model that has ended."""
        with self._change:
            self._at.pop(reader, None)
            self._change.notify_all()
