"""``wrods reproduce``: a paper's tables from its released outputs or your own studies, with the effect of each error."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from pathlib import Path

import click

from stimuli.errors import unknown_name
from stimuli.papers import Paper, papers


@click.command()
@click.argument("paper", metavar="PAPER")
@click.argument("data", metavar="DATA...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the page; reproduced-PAPER by default."
)
@click.option(
    "--dream",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Your copy of DREAM, whose categories Tables 7 and 8 of Scrambled Bench need.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def reproduce(
    paper: str, data: tuple[Path, ...], out: Path | None, dream: Path | None, as_json: bool
) -> None:
    """Recompute a paper's tables and quantify each error in its scoring.

    PAPER is scrambled-bench (Cao et al., 2023), mind-scramble or h-test (both 2024). The new folder contains index.html, a
    page that needs no network and works on any server, and every table as CSV.

    scrambled-bench: DATA is the folder of released outputs (outputs/ and stimuli/), or the authors' repository (output/). Cells
    that differ from the published table are marked. Exit code 1 if an unknown difference is found.

    mind-scramble released no replies: DATA... are your studies made from its template, each with a report. The tables
    have one part for each study, with the readers' ranks in perception and completion.

    h-test: DATA... are your studies of its tasks and of letter geometry, each with a report, with the same model names. The page
    shows Figure 5, which compares the two.

    Example: wrods reproduce mind-scramble gsm8k boolq csqa rectify
    """
    ways = {
        name: paper_named
        for name, paper_named in papers().items()
        if paper_named.reproduction or paper_named.together
    }
    if paper not in ways:
        raise unknown_name("paper", paper, ways)
    if ways[paper].together:
        _together(ways[paper], data, out or Path(f"reproduced-{paper}"), as_json=as_json)
        return
    from analysis.reproductions.reproductions import reproduce_paper, write_page
    from experiment.version import installed_version

    if len(data) > 1:
        raise click.UsageError(f"{paper} is made from one folder; {len(data)} were given.")
    readings = {"choice": own_choice, "text": own_text}
    further_data = {} if dream is None else {"dream": dream}
    reproduction = reproduce_paper(
        paper, data[0], readings, lambda step: click.echo(f"  {step}", err=True), further_data
    )
    page = write_page(reproduction, out or Path(f"reproduced-{paper}"), installed_version())
    same, n_cells = int(reproduction.cells["same"].sum()), len(reproduction.cells)
    if as_json:
        n_known = n_cells - same - reproduction.unexplained
        click.echo(
            json.dumps({"paper": paper, "cells": n_cells, "same": same, "known": n_known, "page": str(page)})
        )
    else:
        for number, fault in enumerate(reproduction.faults, 1):
            click.echo(f"{number}. {fault.title}: {fault.about}")
        for line in reproduction.lacking:
            click.echo(f"Not here: {line}")
        click.echo(f"{same} of {n_cells} cells are those in print.")
        if n_cells - same - reproduction.unexplained:
            click.echo(f"{n_cells - same - reproduction.unexplained} of the others are known to differ.")
        click.echo(page)
    if reproduction.unexplained:
        raise click.exceptions.Exit(1)


def _together(paper: Paper, studies: Sequence[Path], out: Path, *, as_json: bool) -> None:
    """Write the tables of several studies on one page."""
    from analysis.figures import Drawing
    from analysis.report.studies_page import write_studies_page
    from experiment.version import installed_version

    tables = paper.part(f"{paper.together}:together")(studies, lambda remark: click.echo(remark, err=True))
    page = write_studies_page(paper.part(f"{paper.together}:ABOUT"), tables, out, installed_version())
    if as_json:
        named = [table.name for table in tables]
        click.echo(
            json.dumps({"paper": paper.name, "studies": len(studies), "tables": named, "page": str(page)})
        )
    else:
        for table in tables:
            click.echo(
                f"  {table.name}.{'png' if isinstance(table, Drawing) else 'csv'}: {table.title}", err=True
            )
        click.echo(page)


def own_choice(reply: str, options: Sequence[str]) -> str:
    """Return the letter of an option as wrods parses it; empty if there is none."""
    from experiment.parsing.labels import parse_label

    letters = list(string.ascii_uppercase[: len(options)])
    return parse_label(reply, letters, options).value or ""


def own_text(reply: str, shown: Sequence[str]) -> str:
    """Return a restored text as wrods parses it; empty if there is none."""
    from experiment.parsing.restored import parse_recovered

    return parse_recovered(reply, shown=shown[0] if shown else None).value or ""
