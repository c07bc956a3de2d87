"""``wrods analyse``: the report of a study on any table of trials."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from experiment.cli.report import write_and_print

_EXAMPLE = """\b
Examples:
  wrods analyse trials.csv --participant subject --item word \\
    --condition cond=intact,scrambled --correct acc --rt rt
  wrods analyse both.csv --participant id --item item --condition cond \\
    --correct correct --model agent=gpt-4.1,llama
"""


@click.command(epilog=_EXAMPLE)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--participant", required=True, metavar="COLUMN", help="The person, or the session of a model.")
@click.option("--item", required=True, metavar="COLUMN", help="The item.")
@click.option(
    "--condition",
    required=True,
    multiple=True,
    metavar="COLUMN[=a,b,c]",
    help="The condition, with its levels in order, the reference first; by default in alphabetical order. Repeatable.",
)
@click.option("--correct", metavar="COLUMN", help="1 for a correct response, 0 for a wrong one.")
@click.option("--rt", metavar="COLUMN", help="The response time in milliseconds.")
@click.option("--seconds", is_flag=True, help="The response times are in seconds.")
@click.option("--rating", metavar="COLUMN", help="A rating, a number on a scale.")
@click.option(
    "--model",
    metavar="ROWS",
    help="Which rows are a model's. COLUMN: the column names the model and is empty for people. COLUMN=VALUE,VALUE: rows with "
    "one of these values are of the model with that name.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("reports"),
    show_default=True,
    help="Folder for the report.",
)
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
