"""Shows what a report is at: a line a step, and for layers of hidden states a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self

import click

from .bars import SECONDS_BETWEEN_LINES, bar_of

if TYPE_CHECKING:
    from analysis.inside.hidden_states import LayersDone


class ReportProgress:
    """Prints steps on standard error; called with a line before each."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._what: str | None = None
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, step: str) -> None:
        """Print a step; a layer moves the bar of its model."""
        from analysis.inside.hidden_states import LayersDone

        if not isinstance(step, LayersDone):
            self._end()
            click.echo(indent(step, "  "), err=True)
        elif sys.stderr.isatty():
            self._move(step)
        elif step.what != self._what or time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._what, self._last = step.what, time.monotonic()
            click.echo(f"  {step}", err=True)

    def _move(self, step: LayersDone) -> None:
        if step.what != self._what:
            self._end()
            self._bar = bar_of("layers")
            self._bar.start()
            self._what = step.what
            self._task = self._bar.add_task(f"  {step.what}", total=step.of, completed=step.done)
        self._bar.update(self._task, completed=step.done)

    def _end(self) -> None:
        """Take the last bar as full: the next step begins only when its layers are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._bar.tasks[0].total)
            self._bar.stop()
        self._bar = self._what = None
