"""How long work is shown on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

SECONDS_BETWEEN_LINES = 10.0
"""Where nobody looks at a terminal."""


def bar_with(*columns: str | ProgressColumn, transient: bool = False) -> Progress:
    """Return bars with a description, a bar and how many of how many, before columns of one's own."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *columns,
        console=Console(stderr=True),
        transient=transient,
    )


def bar_of(noun: str) -> Progress:
    """Return bars that count something and say how long the rest takes."""
    from rich.progress import TimeRemainingColumn

    return bar_with(f"{noun}, left:", TimeRemainingColumn(elapsed_when_finished=True))
