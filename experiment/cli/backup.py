"""``wrods backup STUDY`` and ``wrods restore STUDY FILE``: a copy of a study's database, and the way back."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiment.cli.terminal import ADD_YES, PATH, confirm, option, print_json
from stimuli.audit.findings import counted
from stimuli.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from experiment.store.restoring import CheckedBackup, Comparison, Contents


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@click.argument("file", type=PATH)
@option("--yes", "Do not ask for confirmation.")
@option("--despite-broken", "Restore even if rows of the backup have been altered.")
@option("--json", "Print what was done as JSON.", name="as_json")
def restore(study: Path, file: Path, yes: bool, despite_broken: bool, as_json: bool) -> None:
    """Replace a study's database with a backup.

    The backup is checked first: file, tables, study, and the hash chain of each session. The current database is kept in
    backups/ and can be restored in the same way. Sessions that were withdrawn after the backup remain withdrawn. First stop
    `wrods serve` and `wrods run` for this study. A dump of PostgreSQL replaces every study in the database; if there are
    others, they are listed, and you are asked even with --yes.

    Example: wrods restore my-study my-study/backups/study-20261121T140000Z.db
    """
    from experiment.checking import load_study
    from experiment.cli.study_store import this_user
    from experiment.configuration import read_config, store_address
    from experiment.integrity.withdrawal import listed, lists_for
    from experiment.store.database import SQLITE_FILE, address_of
    from experiment.store.restoring import (
        check_backup,
        compare_dump,
        discard,
        restore_postgres,
        restoring,
        take_place,
        withdrawn_in,
    )

    loaded = load_study(study)
    address = address_of(store_address(read_config()) or loaded.folder)
    lists = lists_for(loaded.folder, file, loaded.id)
    if address.get_backend_name() != "sqlite":
        compared = compare_dump(address, file, loaded.folder, loaded.id)
        _ask(compared.backup, compared.present, yes=yes and not compared.others, others=compared)
        previous, checked = restore_postgres(
            address, file, loaded.folder, loaded.id, gone=listed(lists), actor=this_user()
        )
        _tell(checked, previous, as_json, _clean(address, loaded.id, loaded.folder))
        if checked.broken:
            sys.exit(1)
        return
    database = Path(address.database or loaded.folder / SQLITE_FILE)
    with restoring(database):
        checked = check_backup(database, file, loaded.id, gone=listed(lists), actor=this_user())
        try:
            if checked.broken and not despite_broken:
                raise UserError(
                    f"{file} was altered after it was written: {_first_broken(checked)}",
                    mend="Choose another backup, or add --despite-broken.",
                    exit_code=1,
                )
            if checked.present is None:
                _warn_of_the_unknown(file, lists)
            _ask(checked.backup, checked.present, yes=yes)
            if not checked.gone.issuperset([*withdrawn_in(database, loaded.id), *listed(lists)]):
                # someone was withdrawn while the question was displayed
                checked = check_backup(database, file, loaded.id, gone=listed(lists), actor=this_user())
            aside = take_place(database, checked.ready)
        finally:
            discard(checked.ready)
    _tell(checked, aside, as_json, _clean(address, loaded.id, loaded.folder))


def _ask(backup: Contents, present: Contents | None, *, yes: bool, others: Comparison | None = None) -> None:
    """Show what the backup and the current database hold, and ask."""
    if yes:
        return
    click.echo(f"Backup:  {_say(backup)}", err=True)
    click.echo(f"Current: {_say(present)}", err=True)
    for name, (now, then) in () if others is None else others.others.items():
        click.echo(
            f"Also replaced: {name}, with {counted(now, 'session')} now and {then} in the backup", err=True
        )
    mend = "Run it at a terminal: other studies are replaced too." if others and others.others else ADD_YES
    confirm("Replace the current database (a copy is kept) with the backup?", "nothing was replaced", mend)


def _warn_of_the_unknown(file: Path, lists: Sequence[Path]) -> None:
    """Warn about what is unknown without a current database."""
    if not lists:
        click.echo(
            "Warning: there is no readable database and no list of withdrawn participants (withdrawn.txt in backups/ or next to "
            f"{file}). Participants who withdrew after this backup come back: withdraw them again.",
            err=True,
        )
    click.echo(
        "Warning: folders to which backups or exports were first written after this backup are not known. Name them when somebody "
        "withdraws: wrods withdraw STUDY … --backups DIR",
        err=True,
    )


def _clean(address: URL, study: str, folder: Path) -> list[str]:
    """Clean the files of restored sessions that stay withdrawn."""
    from experiment.integrity.withdrawal import clean_up
    from experiment.store import open_store

    with open_store(address.render_as_string(hide_password=False)) as store:
        return clean_up(store, study, folder)


def _tell(checked: CheckedBackup, aside: Path | None, as_json: bool, left: Sequence[str]) -> None:
    if as_json:
        print_json({
            "sessions": checked.backup.sessions,
            "trials": checked.backup.trials,
            "withdrawn": checked.withdrawn,
            "broken": {session: broken.row for session, broken in checked.broken.items()},
            "former": aside,
            "left": left,
        })  # fmt: skip
        return
    click.echo(f"Restored: {_say(checked.backup)}; {len(checked.broken) or 'no'} broken hash chains")
    if checked.withdrawn:
        click.echo(f"Withdrawn since the backup, and not restored: {counted(checked.withdrawn, 'session')}")
    if checked.broken:
        click.echo(click.style("Broken: ", fg="red") + _first_broken(checked))
    if aside is not None:
        click.echo(f"The former database is kept as {aside}")
    for line in left:
        click.echo(line)


def _say(contents: Contents | None) -> str:
    if contents is None:
        return "no readable database"
    last = f", last active {contents.newest}" if contents.newest else ""
    return f"{counted(contents.sessions, 'session')}, {counted(contents.trials, 'trial')}{last}"


def _first_broken(checked: CheckedBackup) -> str:
    session, broken = next(iter(checked.broken.items()))
    more = f" (and {len(checked.broken) - 1} more sessions)" if len(checked.broken) > 1 else ""
    return f"session {session}, {broken.row}: {broken.fault}{more}"


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--to PATH", "Existing folder, or new file.  [default: backups/ in the study]", name="target", type=PATH
)
@option("--json", "Print the location and contents of the copy as JSON.", name="as_json")
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
        print_json({"file": file, "bytes": size, "sessions": counts.sessions, "trials": counts.trials})
        return
    click.echo(
        f"{file}  ({counted(counts.sessions, 'session')}, {counted(counts.trials, 'trial')}, {size / 1e6:.1f} MB)"
    )
    click.echo(f"Restore it with: wrods restore {shlex.quote(str(study))} {shlex.quote(str(file))}")
