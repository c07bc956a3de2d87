"""``wrods backup``: a copy of a study's database, while it is in use."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A folder or a new file; backups/ in the study by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print where the copy is and what it holds as JSON.")
def backup(study: Path, target: Path | None, as_json: bool) -> None:
    """Copy a study's database, also while people answer.

    The copy holds everything confirmed so far, is checked, and can be put back with `wrods restore`. PostgreSQL is copied
    by pg_dump. `wrods serve` makes copies by itself: when it starts, every hour and when it ends.

    Example: wrods backup my-study --to /media/stick
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.custody.upkeep import copy_of, note_place
    from experiment.store.backups import FOLDER
    from experiment.store.restoring import contents

    with opened_study(study) as opened:
        place = opened.study.folder / FOLDER if target is None else target
        stem = "study" if target is None else opened.study.id
        file = copy_of(opened.store, place, stem=stem).resolve()
        note_place(opened.store, opened.study.id, "backup", file, this_user())
        with opened.store.read() as connection:
            held = contents(connection, opened.study.id)
    size = file.stat().st_size
    if as_json:
        click.echo(
            json.dumps({"file": str(file), "bytes": size, "sessions": held.sessions, "trials": held.trials})
        )
        return
    click.echo(f"{file}  ({held.sessions} sessions, {held.trials} trials, {size / 1e6:.1f} MB)")
    click.echo(f"Put it back with: wrods restore {shlex.quote(str(study))} {shlex.quote(str(file))}")
