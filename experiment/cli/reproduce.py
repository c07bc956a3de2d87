"""``wrods reproduce``: a published paper's tables from its released outputs, with the price of each scoring fault."""

from __future__ import annotations

import json
import string
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click


@click.command()
@click.argument("paper", metavar="PAPER")
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the page; reproduced-PAPER by default."
)
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def reproduce(paper: str, data: Path, out: Path | None, show: bool, as_json: bool) -> None:
    """Make a paper's tables again from what it released, and price each fault of its scoring.

    PAPER is scrambled-bench (Cao et al., 2023); DATA is the folder of its released outputs (outputs/ and stimuli/). The folder
    that is made holds index.html, one page that needs no network and can be put on any server, and every table as CSV. Cells
    that differ from print are marked. Exit code 1 where any does.

    Example: wrods reproduce scrambled-bench downloads/scrambled_bench
    """
    from analysis.published.page import write_page
    from analysis.published.reproductions import reproduce_paper
    from experiment.version import installed_version

    readings = {"choice": own_choice, "text": own_text}
    made = reproduce_paper(paper, data, readings, lambda step: click.echo(f"  {step}", err=True))
    page = write_page(made, out or Path(f"reproduced-{paper}"), installed_version())
    same, many = int(made.cells["same"].sum()), len(made.cells)
    if as_json:
        click.echo(json.dumps({"paper": paper, "cells": many, "same": same, "page": str(page)}))
    else:
        for number, fault in enumerate(made.faults, 1):
            click.echo(f"{number}. {fault.title}: {fault.about}")
        click.echo(f"{same} of {many} cells are those in print.")
        click.echo(page)
    if show:
        webbrowser.open(page.resolve().as_uri())
    if same < many:
        raise click.exceptions.Exit(1)


def own_choice(reply: str, options: Sequence[str]) -> str:
    """Read the letter of an option as wrods does; empty where none can be read."""
    from experiment.parsing.labels import parse_label

    letters = list(string.ascii_uppercase[: len(options)])
    return parse_label(reply, letters, options).value or ""


def own_text(reply: str, shown: Sequence[str]) -> str:
    """Read a restored text as wrods does; empty where there is none."""
    from experiment.parsing.restored import parse_recovered

    return parse_recovered(reply, shown=shown[0] if shown else None).value or ""
