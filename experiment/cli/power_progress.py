"""Progress of simulated studies: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import click

from stimuli.durations import short_duration

from .bars import SECONDS_BETWEEN_LINES, bar_of


class PowerProgress:
    """Draws the progress of one plan on standard error; called as ``analysis.power.simulate`` asks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bar: Any = None
        self._task: Any = None
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = bar_of("studies")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` studies are simulated, and about how long the rest takes."""
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task(self.name, total=total)
            self._bar.update(self._task, completed=done)
            return
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES and done < total:
            return
        self._last = now
        left = short_duration((now - self._begun) * (total - done) / done)
        told = f", about {left} left" if done < total else ""
        click.echo(f"{self.name}: {done} of {total} studies{told}", err=True)
