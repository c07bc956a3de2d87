"""Output of commands at a terminal: questions, errors, and the progress of long work on standard error."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from stimuli.durations import short_duration
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.models.runs.status import RunStatus
    from experiment.study import Study


Decorated = TypeVar("Decorated", bound=Callable[..., Any])
WIDTH = 96
PATH = click.Path(path_type=Path)
ADD_YES = "Add --yes to run the command without confirmation."

SECONDS_BETWEEN_LINES = 10.0
"""Interval for output that is not a terminal."""
WITH_BAR, WITH_SHARE, WITH_TOKENS, WITH_SPEED = 108, 84, 76, 66
"""Numbers of columns from which bars, percent, tokens, and trials per second are shown."""
ENDED = ("finished", "stopped", "interrupted", "failed")


def option(
    declared: str, help: str, *, name: str | None = None, **more: Any
) -> Callable[[Decorated], Decorated]:
    """Declare an option of a command: ``--days D`` takes a value, ``--yes`` is a flag unless it has a type.

    ``name``: of the parameter, where it is not that of the option.
    """
    flag, _, metavar = declared.partition(" ")
    takes_value = metavar or {"type", "default", "multiple", "required"} & more.keys()
    more |= {"metavar": metavar or None} if takes_value else {"is_flag": True}
    return click.option(flag, *([] if name is None else [name]), help=help, **more)


def has_screen() -> bool:
    """Return whether a browser window can be opened here; a text browser in a terminal is not useful."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def print_json(output: object) -> None:
    """Print the output of ``--json``, with types that JSON lacks, such as paths, as text."""
    click.echo(json.dumps(output, ensure_ascii=False, indent=1, default=str))


def print_error(text: object) -> None:
    """Print an error that a user can fix, on standard error."""
    click.echo(click.style("Error: ", fg="red", bold=True) + str(text), err=True)


def wrapped(paragraph: str) -> str:
    """Return a paragraph wrapped between words, so that names and commands stay whole; later lines are indented."""
    first, *lines = paragraph.split("\n")
    return "\n".join((_filled(first), *(_filled(line, "  ", "    ") for line in lines)))


def _filled(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def confirm(question: str, otherwise: str, mend: str = ADD_YES) -> None:
    """Ask whether to continue; raise ``otherwise`` if the answer is no or nobody answers."""
    try:
        wanted = click.confirm(question, err=True)
    except click.Abort as unanswered:
        raise UserError(f"{otherwise}: the question was not answered", mend=mend, exit_code=1) from unanswered
    if not wanted:
        raise UserError(otherwise, exit_code=1)


def tell_report(study: Study, place: Path) -> None:
    """Name the command that reports, after the one that runs tests if programs are among the answers."""
    where = shlex.quote(str(place))
    if any(item.key.get("tests") for item in study.items):
        click.echo(
            f"Programs are scored by their tests, which run only on request: wrods score {where} --execute"
        )
    click.echo(f"Next: wrods report {where}")


class _Display:
    """A display that is updated in place on a terminal, and elsewhere prints an occasional line."""

    def __init__(self) -> None:
        self._live: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the display."""
        if self._live is not None:
            self._live.console.print(line, highlight=False, markup=False)
        else:
            click.echo(line, err=True)

    def _is_line_due(self) -> bool:
        is_due = time.monotonic() - self._last >= SECONDS_BETWEEN_LINES
        self._last = time.monotonic() if is_due else self._last
        return is_due


class WorkProgress(_Display):
    """Counts work of one kind, such as studies or layers, with a bar for each name in turn."""

    def __init__(self, noun: str) -> None:
        super().__init__()
        self._noun = noun
        self._name = ""
        self._task: Any = None
        self._begun = (self._last, 0)

    def draw(self, name: str, done: int, total: int, more: str = "") -> None:
        """Show that ``done`` of ``total`` are done, the estimated remaining time, and a note."""
        if name != self._name:
            self.end()
            self._name, self._begun = name, (time.monotonic(), done)
            if sys.stderr.isatty():
                self._live = _bars(self._noun)
                self._live.start()
                self._task = self._live.add_task(name, total=total, completed=done, more=more)
        if self._live is not None:
            self._live.update(self._task, completed=done, more=more)
        elif self._is_line_due():
            began, before = self._begun
            parts = [f"{name}: {done:,} of {total:,} {self._noun}", *([more] if more else [])]
            if before < done < total:
                left = (time.monotonic() - began) * (total - done) / (done - before)
                parts.append(f"about {short_duration(left)} left")
            click.echo(", ".join(parts), err=True)

    def end(self) -> None:
        """Show the bar as full: the next step begins only when its work is done."""
        if self._live is not None:
            self._live.update(self._task, completed=self._live.tasks[0].total)
            self._live.stop()
        self._live, self._name = None, ""


def _bars(noun: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        f"{noun}, left:",
        TimeRemainingColumn(elapsed_when_finished=True),
        "{task.fields[more]}",
        console=Console(stderr=True),
    )


class RunTable(_Display):
    """Shows the status of a run, one row per model."""

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def draw(self, figures: Sequence[RunStatus]) -> None:
        """Show the status of all models."""
        if self._live is not None:
            self._live.update(table(figures, self._live.console.width))
        elif self._is_line_due():
            for figure in figures:
                if figure.state not in ("finished", "waits"):
                    click.echo(line(figure), err=True)


def table(figures: Sequence[RunStatus], width: int) -> Any:
    """Return the status as a table of some width: one row per model, with its notes below.

    A narrow table has fewer columns; costs are shown if there are any.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    most = max(12, min(28, width // 4))
    has_money = any(figure.cost_usd for figure in figures)
    rows = list(figures) if len(figures) < 2 else [*figures, _together(figures)]
    shown = Table(
        box=None, pad_edge=False, header_style="dim", padding=(0, 2 if width >= WITH_BAR else 1, 0, 0)
    )
    columns = [
        ("", width >= WITH_BAR), ("trials", True), ("%", width >= WITH_SHARE), ("a second", width >= WITH_SPEED),
        ("left", True), ("tokens", width >= WITH_TOKENS), ("USD", has_money), ("", True),
    ]  # fmt: skip
    shown.add_column("model", no_wrap=True, max_width=most)
    for name, is_there in columns:
        if is_there:
            shown.add_column(name, justify="right", no_wrap=True)
    for place, row in enumerate(rows):
        title = Text(shortened(row.reader, most), style="dim" if place == len(figures) else "")
        cells: list[Any] = [
            ProgressBar(total=max(1, row.planned), completed=row.done, width=16),
            f"{row.done:,}/{row.planned:,}",
            f"{100 * row.done // max(1, row.planned)}",
            f"{row.per_second:.1f}" if row.per_second else "",
            "" if row.seconds_left is None else short_duration(row.seconds_left),
            compact(_tokens(row)),
            f"{row.cost_usd:.2f}" if row.cost_usd else "",
            Text("" if row.state == "runs" else row.state, style="dim"),
        ]
        shown.add_row(title, *(cell for cell, (_, is_there) in zip(cells, columns, strict=True) if is_there))
    remarks = [
        Text(f"{figure.reader}: {remark}", style="dim", no_wrap=True, overflow="ellipsis")
        for figure in figures
        for remark in remarks_of(figure)
    ]
    return Group(shown, *remarks)


def _together(figures: Sequence[RunStatus]) -> RunStatus:
    """Return the combined status of all models."""
    from experiment.models.runs.status import RunStatus

    speed = sum(figure.per_second for figure in figures)
    left = sum(figure.planned - figure.done for figure in figures if figure.state not in ENDED)
    return RunStatus(
        "together", "runs", sum(figure.planned for figure in figures), sum(figure.stored_before for figure in figures),
        sum(figure.answered for figure in figures), tokens={"prompt_tokens": sum(map(_tokens, figures))},
        cost_usd=sum(figure.cost_usd for figure in figures), per_second=speed, seconds_left=left / speed if speed else None,
    )  # fmt: skip


def _tokens(status: RunStatus) -> int:
    return sum(status.tokens.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))


def compact(count: int) -> str:
    """Return a number of tokens in short form."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= limit:
            return f"{count / min(limit, 1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{count:,}"


def shortened(name: str, most: int) -> str:
    """Return a long name without its middle, because its end distinguishes models."""
    return name if len(name) <= most else f"{name[: most // 3]}…{name[-(most - most // 3 - 1) :]}"


def line(status: RunStatus) -> str:
    """Return the status of a model in one line."""
    parts = [f"{status.reader}: {status.done:,} of {status.planned:,} trials"]
    if status.given_up:
        parts.append(f"{status.given_up:,} can never be answered")
    if status.per_second:
        parts.append(f"{status.per_second:.1f} a second")
    if status.seconds_left is not None:
        parts.append(f"{short_duration(status.seconds_left)} left")
    if _tokens(status):
        parts.append(f"{_tokens(status):,} tokens")
    if status.cost_usd:
        parts.append(f"{status.cost_usd:.2f} USD")
    notes = "; ".join(([] if status.state in ("runs", "finished") else [status.state]) + remarks_of(status))
    return ", ".join(parts) + (f" ({notes})" if notes else "")


def remarks_of(status: RunStatus) -> list[str]:
    """Return errors by kind, reasons for waiting, and the number of answers from the journal."""
    parts = [f"{count} × {kind}" for kind, count in list(status.error_kinds.items())[:3]]
    if status.waits and status.waits not in (status.engine or ""):
        parts.append(f"waits: {status.waits}")
    notes = [f"{status.cached:,} from the journal"] if status.cached else []
    if status.engine and status.state not in ENDED:
        notes.insert(0, status.engine)
    return [*parts, *(["; ".join(notes)] if notes else [])]
