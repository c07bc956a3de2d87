"""Shows how far simulated studies are and how long the rest will take: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import click

from stimuli.durations import duration_in_words, short_duration

from .bars import SECONDS_BETWEEN_LINES, bar_of

LONG = 600.0
"""Seconds of all fits from which on they are foretold."""


class FitProgress:
    """Draws the progress of one plan on standard error; called as ``analysis.power.simulate`` asks.

    Parameters
    ----------
    name : str
        Name of the plan.
    processes : int
        At work at once.
    """

    def __init__(self, name: str, processes: int = 1) -> None:
        self.name, self.processes = name, processes
        self._bar: Any = None
        self._task: Any = None
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = bar_of("fits")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, before: int) -> None:
        """Show ``done`` of ``total`` fits, of which ``before`` were kept from earlier; after the first one what all will take."""
        if done == before + 1:
            self._foretell(time.monotonic() - self._begun, total - done)
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self.name, total=total, completed=done)
            self._bar.update(self._task, completed=done)
            return
        now = time.monotonic()
        if done == before and before:
            click.echo(f"{self.name}: {before} of {total} fits are kept from before", err=True)
        if now - self._last < SECONDS_BETWEEN_LINES and done < total:
            return
        self._last = now
        made = done - before
        left = (now - self._begun) * (total - done) / made if made else 0.0
        told = f", about {short_duration(left)} left" if made and done < total else ""
        click.echo(f"{self.name}: {done} of {total} fits{told}", err=True)

    def _foretell(self, seconds: float, left: int) -> None:
        """Say how long the rest takes where that is long, by the first fit, with its setting up, of the smallest size."""
        whole = seconds * left / self.processes
        if whole < LONG:
            return
        click.echo(
            f"{self.name}: the first fit, of the smallest size, took {duration_in_words(seconds)}; {left:,} more take some "
            f"{duration_in_words(whole)} ({self.processes} at once). "
            "Fits are kept: stop and go on at will, or see what --fits 50 says; --full is faster.",
            err=True,
        )
