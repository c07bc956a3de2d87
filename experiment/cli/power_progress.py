"""Shows how far simulated studies are and how long the rest will take: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import click

SECONDS_BETWEEN_LINES = 10.0


class FitProgress:
    """Draws the progress of one plan on standard error; called as ``analysis.power.simulate`` asks.

    Parameters
    ----------
    name : str
        Name of the plan.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._bar: Any = None
        self._task: Any = None
        self._begun = self._last = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("fits, left:"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=Console(stderr=True),
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, before: int) -> None:
        """Show ``done`` of ``total`` fits, of which ``before`` were kept from earlier."""
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
        told = f", about {_spoken(left)} left" if made and done < total else ""
        click.echo(f"{self.name}: {done} of {total} fits{told}", err=True)


def _spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
