"""Output and questions of commands at a terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.study import Study

WIDTH = 96
ADD_YES = "Add --yes to run the command without confirmation."


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
