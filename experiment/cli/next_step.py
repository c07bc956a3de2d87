"""What a command names as the next one once answers are stored."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiment.study import Study


def tell_report(study: Study, place: Path) -> None:
    """Name the command that reports; where programs are among the answers, first the one that runs their tests."""
    where = shlex.quote(str(place))
    if any(item.key.get("tests") for item in study.items):
        click.echo(
            f"Programs are scored by their tests, which run only on request: wrods score {where} --execute"
        )
    click.echo(f"Next: wrods report {where}")
