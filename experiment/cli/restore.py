"""``wrods restore``: puts a backup in the place of a study's database."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from experiment.store.restoring import Checked, Contents


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--despite-broken", is_flag=True, help="Restore even if rows in the backup were changed by hand."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def restore(study: Path, file: Path, yes: bool, despite_broken: bool, as_json: bool) -> None:
    """Put a backup in the place of a study's database.

    The backup is checked first: a sound file, tables that this version knows, the right study, every session's hash chain.
    The present database is kept in backups/, and comes back by restoring it. Sessions that were withdrawn since the backup
    stay withdrawn. Stop `wrods serve` and `wrods run` of the study before.

    Example: wrods restore my-study my-study/backups/study-20261121T140000Z.db
    """
    from experiment.checking import load_study
    from experiment.cli.study_store import this_user
    from experiment.configuration import read_config, store_address
    from experiment.custody.withdrawal import remembered
    from experiment.store.database import SQLITE_FILE, address_of
    from experiment.store.restoring import check_backup, discard, restore_postgres, take_place

    loaded = load_study(study)
    address = address_of(store_address(read_config()) or loaded.folder)
    gone = remembered(loaded.folder)
    if address.get_backend_name() != "sqlite":
        if not yes:
            click.confirm(f"Replace what {address.host or 'the server'} holds by {file}?", abort=True)
        kept, checked = restore_postgres(
            address, file, loaded.folder, loaded.id, gone=gone, actor=this_user()
        )
        _tell(checked, kept, as_json, _clean(address, loaded.id, loaded.folder))
        if checked.broken:
            sys.exit(1)
        return
    database = Path(address.database or loaded.folder / SQLITE_FILE)
    checked = check_backup(database, file, loaded.id, gone=gone, actor=this_user())
    try:
        if checked.broken and not despite_broken:
            raise UserError(
                f"{file} was changed after it was written: {_first_broken(checked)}",
                mend="Choose another backup, or add --despite-broken.",
                exit_code=1,
            )
        if not yes:
            click.echo(f"Backup:  {_say(checked.backup)}", err=True)
            click.echo(f"Present: {_say(checked.present)}", err=True)
            click.confirm("Put the backup in its place (the present database is kept)?", abort=True, err=True)
        aside = take_place(database, checked.ready)
    finally:
        discard(checked.ready)
    _tell(checked, aside, as_json, _clean(address, loaded.id, loaded.folder))


def _clean(address: URL, study: str, folder: Path) -> list[str]:
    """Clean the files of the sessions that the backup brought back and that stay withdrawn."""
    from experiment.custody.withdrawal import clean_up
    from experiment.store import open_store

    with open_store(address.render_as_string(hide_password=False)) as store:
        return clean_up(store, study, folder)


def _tell(checked: Checked, aside: Path | None, as_json: bool, left: Sequence[str]) -> None:
    if as_json:
        told = {
            "sessions": checked.backup.sessions,
            "trials": checked.backup.trials,
            "withdrawn": checked.withdrawn,
            "broken": {one: broken.row for one, broken in checked.broken.items()},
            "former": None if aside is None else str(aside),
            "left": list(left),
        }
        click.echo(json.dumps(told))
        return
    click.echo(f"Restored: {_say(checked.backup)}; {len(checked.broken) or 'no'} broken chains")
    if checked.withdrawn:
        click.echo(f"{checked.withdrawn} sessions in it were withdrawn since and stay withdrawn")
    if checked.broken:
        click.echo(click.style("Broken: ", fg="red") + _first_broken(checked))
    if aside is not None:
        click.echo(f"The former database is kept as {aside}")
    for line in left:
        click.echo(line)


def _say(held: Contents | None) -> str:
    if held is None:
        return "none that can be read"
    last = f", last heard of {held.newest}" if held.newest else ""
    return f"{held.sessions} sessions, {held.trials} trials{last}"


def _first_broken(checked: Checked) -> str:
    session, broken = next(iter(checked.broken.items()))
    more = f" (and {len(checked.broken) - 1} sessions more)" if len(checked.broken) > 1 else ""
    return f"session {session}, {broken.row}: {broken.fault}{more}"
