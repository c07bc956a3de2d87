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
    help="Existing folder, or new file.  [default: backups/ in the study]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the location and contents of the copy as JSON.")
def backup(study: Path, target: Path | None, as_json: bool) -> None:
    """Copy a study's database, even while participants answer.

    The copy contains all answers confirmed so far and is checked. Restore it with `wrods restore`. PostgreSQL databases are
    copied with pg_dump. `wrods serve` makes copies automatically: when it starts, every hour and when it stops.

    Example: wrods backup my-study --to /media/stick
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.integrity.maintenance import copy_of
    from experiment.store.backups import FOLDER
    from experiment.store.restoring import contents
    from stimuli.audit.findings import counted

    with opened_study(study) as opened:
        backup_folder = opened.study.folder / FOLDER
        backup_folder.mkdir(exist_ok=True)
        stem = "study" if target is None else opened.study.id
        copied = copy_of(opened.store, opened.study.id, target or backup_folder, stem=stem, actor=this_user())
        file = copied.resolve()
        with opened.store.read() as connection:
            counts = contents(connection, opened.study.id)
    size = file.stat().st_size
    if as_json:
        click.echo(
            json.dumps(
                {"file": str(file), "bytes": size, "sessions": counts.sessions, "trials": counts.trials}
            )
        )
        return
    click.echo(
        f"{file}  ({counted(counts.sessions, 'session')}, {counted(counts.trials, 'trial')}, {size / 1e6:.1f} MB)"
    )
    click.echo(f"Restore it with: wrods restore {shlex.quote(str(study))} {shlex.quote(str(file))}")
