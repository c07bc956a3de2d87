"""``wrods report``, ``analyse`` and ``reproduce``: reports of a study, of any table of trials, and of a paper's own tables."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, option
from stimuli.errors import unknown_name
from stimuli.papers import Paper, papers

if TYPE_CHECKING:
    from experiment.cli.terminal import WorkProgress


_BESIDE_TABLES = ("dictionary.json", "codebook.md", "documentation/codebook.md")
"""Files that only an analysis export, an export and a Psych-DS export contain, in this order."""

_EXAMPLE = """\b
Examples:
  wrods analyse trials.csv --participant subject --item word \\
    --condition cond=intact,scrambled --correct acc --rt rt
  wrods analyse both.csv --participant id --item item --condition cond \\
    --correct correct --model agent=gpt-4.1,llama
"""


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option("--out", "Folder for the report; reports/ in the study by default.", type=PATH)
@option(
    "--with CHAPTER", "Add an optional chapter, such as cost; can be repeated.", name="wanted", multiple=True
)
def report(study: Path, out: Path | None, wanted: tuple[str, ...]) -> None:
    """Write a dated report: an Answer of two pages, a manuscript (Method and Results), and a supplement.

    STUDY is a study's folder, an export of one (CSV, Parquet or Psych-DS), or a folder with trials.parquet and dictionary.json.
    The dated folder holds report.html (one page that needs no network), report.docx and supplement.docx to edit, report.tex and
    supplement.tex with a LaTeX file for each table and references.bib, figures as SVG and PNG, tables as CSV (as shown and
    unrounded), all trials, models.R, which recomputes the estimates and refits each model with lme4, and numbers.json, which names
    the source of each number.
    The sentences of the Answer are printed as soon as they are known, then the files; the path of the page is the last line.

    Optional chapters: asking, companions, ratios, cost, fidelity, profiles, rankings.

    Example: wrods report my-study --with cost
    """
    from analysis.report.chapters import checked_names
    from analysis.report.write import claimed_folder

    checked_names(wanted)
    folder = out or study / "reports"
    with claimed_folder(folder, datetime.now().astimezone()) as when:
        write_and_print(_handover(study, out, when), folder, when, wanted)


def write_and_print(data: Path, out: Path, when: datetime, wanted: tuple[str, ...] = ()) -> None:
    """Write the report of a folder of tables and print its files."""
    from analysis import load
    from analysis.report import files_of, write_report
    from experiment.cli.terminal import WorkProgress

    tables = load(data)
    with WorkProgress("layers") as progress:
        page = write_report(tables, out, when, partial(tell_step, progress), wanted)
    for name, words in files_of(page.parent):
        click.echo(f"  {name}: {words}", err=True)
    click.echo(page)


def tell_step(progress: WorkProgress, step: str) -> None:
    """Print a step of a report; a layer of hidden states advances its model's bar."""
    if type(step) is not str:  # what reads hidden states is imported where some are read
        from experiment.papers.inside.chapters.layers.hidden_states import LayersDone

        if isinstance(step, LayersDone):
            progress.draw(f"  {step.what}", step.done, step.of)
            return
    progress.end()
    progress.say(indent(step, "  "))


def _handover(study: Path, out: Path | None, when: datetime) -> Path:
    """Return a folder with the tables: the given one, or the report's folder with a new export of the study."""
    is_study = (study / "study.yaml").is_file()
    is_export = not is_study and any((study / name).is_file() for name in _BESIDE_TABLES)
    if is_export or (study / "trials.parquet").is_file():
        return study
    from analysis.report.write import dated_folder
    from experiment.cli.study_store import opened_study
    from experiment.exporting.export import hand_over

    with opened_study(study) as opened:
        folder = dated_folder(out or opened.study.folder / "reports", when) / "data"
        return hand_over(opened.study, opened.store, folder)


@click.command(epilog=_EXAMPLE)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@option("--participant COLUMN", "The person, or the session of a model.", required=True)
@option("--item COLUMN", "The item.", required=True)
@option(
    "--condition COLUMN[=a,b,c]",
    "The condition, with its levels in order, the reference first; by default in alphabetical order. Repeatable.",
    required=True,
    multiple=True,
)
@option("--correct COLUMN", "1 for a correct response, 0 for a wrong one.")
@option("--rt COLUMN", "The response time in milliseconds.")
@option("--seconds", "The response times are in seconds.")
@option("--rating COLUMN", "A rating, a number on a scale.")
@option(
    "--model ROWS",
    "Which rows are a model's. COLUMN: the column names the model and is empty for people. COLUMN=VALUE,VALUE: rows with "
    "one of these values are of the model with that name.",
)
@option("--out", "Folder for the report.", type=PATH, default=Path("reports"), show_default=True)
def analyse(file: Path, out: Path, condition: tuple[str, ...], **given: Any) -> None:
    """Write a report on a table of trials, without a study.

    FILE has one row per trial, of participants only or also of models: CSV, TSV, XLSX or JSONL. You name its columns; all problems
    of the table are reported at once. The dated folder is that of `wrods report`, with the same estimates, checks and files. A
    table has no preregistered plan, so its results are exploratory. Rows without a response are excluded and counted.
    """
    from analysis.long_table import Roles, hand_over_table
    from analysis.report.write import claimed_folder, dated_folder

    levels = {}
    for text in condition:
        column, _, level_names = text.partition("=")
        levels[column.strip()] = [level.strip() for level in level_names.split(",") if level.strip()]
    with claimed_folder(out, datetime.now().astimezone()) as when:
        folder = dated_folder(out, when) / "data"
        data = hand_over_table(file, Roles(conditions=levels, **given), folder, when)
        write_and_print(data, out, when)


@click.command()
@click.argument("paper", metavar="PAPER")
@click.argument("data", metavar="DATA...", nargs=-1, required=True, type=PATH)
@option("--out", "Folder for the page; reproduced-PAPER by default.", type=PATH)
@option(
    "--dream FOLDER",
    "Your copy of DREAM, whose categories Tables 7 and 8 of Scrambled Bench need.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@option("--json", "Print the counts as JSON.", name="as_json")
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
    from analysis.reproductions import reproduce_paper, write_page
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
