"""``wrods withdraw``: erases a participant's data."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.cli.study_store import Opened
    from experiment.custody.withdrawal import Scope, Scrubbed

_EXAMPLE = """\b
Examples:
  wrods withdraw my-study --participant P014
  wrods withdraw my-study --station 7 --at "2026-11-21 14:05"
  wrods withdraw my-study --again --backups /media/stick
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--participant", metavar="P014", help="The participant's number.")
@click.option("--platform-id", metavar="ID", help="The id at Prolific, SONA or MTurk, as long as it is kept.")
@click.option("--station", metavar="S", help="The station; together with --at.")
@click.option(
    "--at", metavar="TIME", help="A moment of the session, in this computer's time unless it names a zone."
)
@click.option(
    "--backups",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Clean the backups here too. Repeatable.",
)
@click.option(
    "--again", is_flag=True, help="Only clean up after earlier withdrawals: backups that were out of reach."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found and erased as JSON.")
def withdraw(
    study: Path,
    participant: str | None,
    platform_id: str | None,
    station: str | None,
    at: str | None,
    folders: tuple[Path, ...],
    again: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase a participant's data for good.

    Says first what will be erased and what lies beyond reach, and asks. Erased are the rows of every table, sessions of
    models that read the participant's answers, cached calls, hidden states, and all of it in every known backup; the
    files are rewritten, so that no bytes stay. A tombstone without a name is left, and `wrods freeze --verify` still
    holds.
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.custody import withdrawal

    when = _moment(participant, platform_id, station, at, again)
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if missing:
        raise UserError(
            f"--backups {missing[0]}: there is no such folder", mend="Attach it, or leave it out."
        )
    with opened_study(study) as opened:
        name, folder = opened.study.id, opened.study.folder
        if again:
            _finish({}, withdrawal.scrub(opened.store, name, folder, backups=folders), as_json)
            return
        scope = _scope(opened, participant, platform_id, station, when, folders)
        told: dict[str, Any] = {
            "sessions": [_session(one) for one in scope.sessions],
            "beyond": list(scope.beyond),
        }
        if not (as_json and yes):
            _tell(scope)
        if not yes:
            _confirm()
        ids = [one.session_id for one in scope.sessions]
        erased, scrubbed = withdrawal.withdraw(
            opened.store, name, folder, ids, actor=this_user(), backups=folders
        )
        _finish({**told, "erased": dict(erased.rows)}, scrubbed, as_json)


def _confirm() -> None:
    """Ask whether to erase; raise where nobody answers."""
    try:
        wanted = click.confirm("\nErase this for good?", err=True)
    except click.Abort as unanswered:
        raise UserError(
            "nothing was erased: nobody answered",
            mend="Where nobody sits at the terminal, give --yes.",
            exit_code=1,
        ) from unanswered
    if not wanted:
        raise UserError("nothing was erased", exit_code=1)


def _moment(
    participant: str | None, platform_id: str | None, station: str | None, at: str | None, again: bool
) -> datetime | None:
    ways = [participant is not None, platform_id is not None, station is not None or at is not None, again]
    if sum(ways) != 1 or (station is None) != (at is None):
        raise UserError(
            "a participant is named in one way",
            mend="Give --participant P014, or --platform-id ID, or --station S with --at TIME (or --again alone).",
        )
    if at is None:
        return None
    try:
        return datetime.fromisoformat(at)
    except ValueError as error:
        raise UserError(f"--at {at!r} is no time", mend='Write it as "2026-11-21 14:05".') from error


def _scope(
    opened: Opened,
    participant: str | None,
    platform_id: str | None,
    station: str | None,
    when: datetime | None,
    folders: tuple[Path, ...],
) -> Scope:
    from experiment.custody.withdrawal import find_sessions, scope_of

    with opened.store.read() as connection:
        found = find_sessions(
            connection,
            opened.study.id,
            participant=participant,
            platform_id=platform_id,
            station=station,
            at=when,
        )
    if not found:
        raise UserError(
            f"no session of {opened.study.id} is {participant or platform_id or f'at station {station} at {when}'}",
            mend="Numbers and times are on the dashboard. A platform id that was forgotten finds nobody.",
            exit_code=1,
        )
    return scope_of(opened.store, opened.study.id, opened.study.folder, found, backups=folders)


def _session(one: Any) -> dict[str, Any]:
    return {
        "session_id": one.session_id,
        "reader": one.reader,
        "began_at": one.began_at,
        "trials": one.trials,
    }


def _tell(scope: Scope) -> None:
    click.echo(click.style("Will be erased", bold=True), err=True)
    for one in scope.sessions:
        where = f", station {one.station}" if one.station else ""
        pilot = ", a pilot" if one.is_pilot else ""
        click.echo(
            f"  {one.reader}: began {one.began_at}{where}, {one.trials} trials, {one.state}{pilot}", err=True
        )
    if scope.derived:
        click.echo(f"  {scope.derived} sessions of models that read these answers", err=True)
    click.echo(
        f"  the same in backups ({len(scope.backups)}) and folders of hidden states ({len(scope.states)})",
        err=True,
    )
    click.echo(click.style("Beyond reach", bold=True), err=True)
    for line in scope.beyond:
        click.echo(f"  {line}", err=True)


def _finish(told: dict[str, Any], scrubbed: Scrubbed, as_json: bool) -> None:
    if as_json:
        done = {
            "backups_cleaned": [str(file) for file in scrubbed.backups],
            "state_rows": scrubbed.state_rows,
            "left": scrubbed.left,
        }
        click.echo(json.dumps({**told, **done}, ensure_ascii=False, indent=1))
    else:
        rows = sum(told.get("erased", {}).values())
        if told:
            click.echo(f"Erased: rows {rows}, sessions {len(told['sessions'])}.")
        click.echo(f"Cleaned: backups {len(scrubbed.backups)}, rows of hidden states {scrubbed.state_rows}.")
        for line in scrubbed.left:
            click.echo(click.style("Left: ", fg="red") + line)
    if scrubbed.left:
        sys.exit(1)
