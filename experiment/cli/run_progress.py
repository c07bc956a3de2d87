"""Shows how far a run is: a table that stays in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import click

if TYPE_CHECKING:
    from experiment.models.runs import Figures

SECONDS_BETWEEN_LINES = 10.0


class Display:
    """Draws the figures of a run on standard error."""

    def __init__(self) -> None:
        self._live: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the figures."""
        if self._live is not None:
            self._live.console.print(line, highlight=False, markup=False)
        else:
            click.echo(line, err=True)

    def draw(self, figures: Sequence[Figures]) -> None:
        """Show the figures of all models."""
        if self._live is not None:
            self._live.update(table(figures))
            return
        if time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            for one in figures:
                if one.state not in ("finished", "waits"):
                    click.echo(line(one), err=True)


def table(figures: Sequence[Figures]) -> Any:
    """Return the figures as a table of rich."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("model", "", "trials", "a second", "left", "tokens", "USD", ""):
        shown.add_column(name, justify="left" if name in ("model", "") else "right", no_wrap=name != "")
    for one in figures:
        shown.add_row(
            one.reader, ProgressBar(total=max(1, one.planned), completed=one.done, width=20),
            f"{one.done} of {one.planned}", f"{one.per_second:.1f}" if one.per_second else "", duration(one.seconds_left),
            f"{sum(one.tokens.get(name, 0) for name in ('prompt_tokens', 'completion_tokens')):,}",
            f"{one.cost_usd:.2f}" if one.cost_usd else "", remark(one),
        )  # fmt: skip
    return shown


def line(one: Figures) -> str:
    """Return the figures of a model in one line."""
    parts = [f"{one.reader}: {one.done} of {one.planned} trials"]
    if one.per_second:
        parts.append(f"{one.per_second:.1f} a second")
    if one.seconds_left is not None:
        parts.append(f"{duration(one.seconds_left)} left")
    tokens = sum(one.tokens.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if one.cost_usd:
        parts.append(f"{one.cost_usd:.2f} USD")
    said = remark(one)
    return ", ".join(parts) + (f" ({said})" if said else "")


def remark(one: Figures) -> str:
    """Return errors by kind, what is waited for, and how many answers came from the cache."""
    parts = [] if one.state in ("runs", "finished") else [one.state]
    parts += [f"{count} × {kind}" for kind, count in list(one.error_kinds.items())[:3]]
    if one.cached:
        parts.append(f"{one.cached} from the cache")
    if one.engine:
        parts.append(one.engine)
    if one.waits and one.waits not in (one.engine or ""):
        parts.append(f"waits: {one.waits}")
    return "; ".join(parts)


def duration(seconds: float | None) -> str:
    """Return a time as people say it."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
