"""Shows how far a training is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.bars import SECONDS_BETWEEN_LINES, bar_with
from experiment.cli.run_progress import compact
from stimuli.durations import short_duration

if TYPE_CHECKING:
    from experiment.tuning.training import Progress


class Shown:
    """Draws one training on standard error.

    Parameters
    ----------
    name : str
    live : rich.progress.Progress or None
        None where standard error is no terminal.
    """

    def __init__(self, name: str, live: Any) -> None:
        self.name = name
        self._live = live
        self._task: Any = None
        self._last = time.monotonic()

    def say(self, line: str) -> None:
        """Print a line."""
        if self._live is not None:
            self._live.console.print(line, highlight=False, markup=False)
        else:
            click.echo(line, err=True)

    def draw(self, progress: Progress) -> None:
        """Show how far the training is."""
        if self._live is not None:
            if self._task is None:
                self._task = self._live.add_task(self.name, total=progress.steps, said="")
            self._live.update(self._task, completed=progress.step, said=figures(progress))
        elif time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            click.echo(
                f"{self.name}: step {progress.step:,} of {progress.steps:,}, {figures(progress)}", err=True
            )


@contextmanager
def bar(name: str) -> Iterator[Shown]:
    """Show a training while it goes on."""
    if not sys.stderr.isatty():
        yield Shown(name, None)
        return
    with bar_with("{task.fields[said]}", transient=True) as live:
        yield Shown(name, live)


def figures(progress: Progress) -> str:
    """Return loss, speed and time left in words."""
    parts = []
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
    if progress.validation_loss is not None:
        parts.append(f"validation {progress.validation_loss:.3f}")
    if progress.tokens_per_second:
        parts.append(f"{compact(round(progress.tokens_per_second))} tokens/s")
    if progress.seconds_left is not None:
        parts.append(f"{short_duration(progress.seconds_left)} left")
    return ", ".join(parts)
