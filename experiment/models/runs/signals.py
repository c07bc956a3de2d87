"""Ctrl-C and SIGTERM end a run in order: what is under way comes in, nothing further is asked, the next one ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from experiment.models.runs.limits import Stop


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Have the first signal ask for the end and the second raise KeyboardInterrupt; other threads than the main one get none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        if stop.is_asked:
            raise KeyboardInterrupt
        stop.ask("interrupted", interrupted=True)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
