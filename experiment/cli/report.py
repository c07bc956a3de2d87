"""``wrods report``: a dated report of a study, or of a folder with its exported tables."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiment.cli.progress import WorkProgress

_BESIDE_TABLES = ("dictionary.json", "codebook.md", "documentation/codebook.md")
"""Files that only an analysis export, an export and a Psych-DS export contain, in this order."""


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the report; reports/ in the study by default."
)
@click.option(
    "--with",
    "wanted",
    multiple=True,
    metavar="CHAPTER",
    help="Add an optional chapter, such as cost; can be repeated.",
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
    from experiment.cli.progress import WorkProgress

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
