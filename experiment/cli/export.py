"""``wrods export``: a study's data as CSV, Parquet, jsPsych's JSON or a Psych-DS folder."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from experiment.cli.terminal import PATH, option
from experiment.option_choices import FORMS

KINDS = ("human", "model", "simulated", "baseline")
_EXAMPLE = """\b
Examples:
  wrods export my-study --format csv --out my-data
  wrods export my-study --format psych-ds --out my-dataset
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--format",
    "The form of the files.",
    name="form",
    type=click.Choice(FORMS),
    default="csv",
    show_default=True,
)
@option("--out DIR", "A new or empty folder.", required=True, type=PATH)
@option("--no-pilots", "Leave pilots out.")
@option("--kind", "Only these readers. Repeatable.", name="kinds", multiple=True, type=click.Choice(KINDS))
@option(
    "--prompts",
    "Also write what each call sent to a model (the calls table, column request), and the pictures in it.",
)
@option("--replace", "Write over an earlier export in DIR.")
@option("--json", "Print what was written as JSON.", name="as_json")
def export(study: Path, **options: Any) -> None:
    """Write a study's data for other programs, even while the server is running.

    Trials, regions, participants (with their answers by question), events, calls to models and items, with a codebook. Ids of
    recruitment platforms are never exported. In CSV, text that a spreadsheet would read as a formula gets a leading apostrophe.
    Authors, licence, keywords and citation of a Psych-DS folder come from `about:` in study.yaml.
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.exporting import ExportChoice, export_study
    from experiment.integrity.maintenance import note_place

    chosen = SimpleNamespace(**options)
    choice = ExportChoice(
        pilots=not chosen.no_pilots, kinds=frozenset(chosen.kinds) or None, prompts=chosen.prompts
    )
    with opened_study(study) as opened:
        done = export_study(
            opened.study, opened.store, chosen.out, chosen.form, choice=choice, replace=chosen.replace
        )
        # a withdrawal lists the exports that it cannot reach
        note_place(opened.store, opened.study.id, "export", chosen.out, this_user())
    if chosen.as_json:
        click.echo(json.dumps({"folder": str(done.folder), "rows": done.rows, "missing": list(done.missing)}))
        return
    click.echo(f"Wrote {done.folder}: " + ", ".join(f"{number} {name}" for name, number in done.rows.items()))
    if done.lost_pictures:
        click.echo(
            f"Note: {done.lost_pictures} pictures that models were shown are not among them: drawn here they have other pixels. Take "
            "the versions of Pillow and of wrods that the run's record names.",
            err=True,
        )
    if done.missing:
        click.echo(
            f"Note: no {' and no '.join(done.missing)} given, so a stand-in was written; add them to study.yaml (about:).",
            err=True,
        )
