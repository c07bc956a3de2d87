"""``wrods export``: a study's data as CSV, Parquet, jsPsych's JSON or a Psych-DS folder."""

from __future__ import annotations

import json
from pathlib import Path

import click

from experiment.offered import FORMS

KINDS = ("human", "model", "simulated", "baseline")
_EXAMPLE = """\b
Examples:
  wrods export my-study --format csv --out my-data
  wrods export my-study --format psych-ds --out my-dataset --author "Ada Lovelace" \\
    --licence https://creativecommons.org/licenses/by/4.0/
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="csv",
    show_default=True,
    help="The form of the files.",
)
@click.option(
    "--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="A new or empty folder."
)
@click.option("--no-pilots", is_flag=True, help="Leave pilots out.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these readers. Repeatable."
)
@click.option(
    "--prompts",
    is_flag=True,
    help="Also write what each call sent to a model (the calls table, column request), and the pictures in it.",
)
@click.option("--replace", is_flag=True, help="Write over an earlier export in DIR.")
@click.option("--author", "authors", multiple=True, metavar="NAME", help="Psych-DS: an author. Repeatable.")
@click.option("--licence", metavar="TEXT", help="Psych-DS: the licence, best as an address.")
@click.option("--keyword", "keywords", multiple=True, metavar="WORD", help="Psych-DS: a keyword. Repeatable.")
@click.option("--citation", metavar="TEXT", help="Psych-DS: how to cite the data.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def export(
    study: Path,
    form: str,
    out: Path,
    no_pilots: bool,
    kinds: tuple[str, ...],
    prompts: bool,
    replace: bool,
    authors: tuple[str, ...],
    licence: str | None,
    keywords: tuple[str, ...],
    citation: str | None,
    as_json: bool,
) -> None:
    """Write a study's data for other programs, also while it is served.

    Trials, regions, participants (with their answers by question), events, calls to models and items, with a codebook. Ids of
    recruitment platforms are never exported. In CSV, text that a spreadsheet would take for a formula gets an apostrophe before it.
    Authors, licence, keywords and citation of a Psych-DS folder come from `about:` in study.yaml where they are not given.
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.exporting import Choice, export_study
    from experiment.exporting.psychds import Credits
    from experiment.integrity.maintenance import note_place

    choice = Choice(pilots=not no_pilots, kinds=frozenset(kinds) or None, prompts=prompts)
    credits = Credits(authors, licence, keywords, citation)
    with opened_study(study) as opened:
        done = export_study(
            opened.study, opened.store, out, form, choice=choice, credits=credits, replace=replace
        )
        # a withdrawal names the exports that it cannot reach
        note_place(opened.store, opened.study.id, "export", out, this_user())
    if as_json:
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
            f"Note: no {' and no '.join(done.missing)} given, so a stand-in was written; say them in study.yaml (about:).",
            err=True,
        )
