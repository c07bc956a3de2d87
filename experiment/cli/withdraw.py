"""``wrods withdraw``: erases a participant's data."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, confirm, option, print_json
from stimuli.audit.findings import counted
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.cli.study_store import OpenedStudy
    from experiment.integrity.withdrawal import PersonSession, Scope, Scrubbed

KEY = 12
"""Characters of a session's id that are shown, as on the dashboard."""
SHOWN = ("session_id", "reader", "began_at", "trials")
_EXAMPLE = """\b
Examples:
  wrods withdraw my-study --participant P014
  wrods withdraw my-study --session 4f0c21ab93de
  wrods withdraw my-study --again --backups /media/stick
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option("--participant P014", "The participant's number.")
@option("--platform-id ID", "The id at Prolific, SONA or MTurk, while it is stored.")
@option("--session ID", "The id of one of the person's sessions, or its beginning.")
@option("--backups DIR", "Also clean the backups in this folder. Repeatable.", name="folders", multiple=True)
@option("--again", "Only clean up after earlier erasures: what could not be reached then.")
@option("--yes", "Do not ask for confirmation.")
@option("--json", "Print what was found and erased as JSON.", name="as_json")
def withdraw(study: Path, **options: Any) -> None:
    """Permanently erase a participant's data.

    First lists what will be erased and what will not, then asks. A number that fits two people is refused, and both are
    listed; numbers that look alike are named. A person who was invited and has not begun is found by the name in the
    invitation. All sessions of the person are erased: the rows of every table, sessions of models that read the person's answers,
    stored replies, hidden states, and all of it in every known backup. The database and its write-ahead log are then
    rewritten, on SQLite and PostgreSQL. Any remaining copies of answers are listed, and the exit code is then 1. A
    tombstone without a name remains, and `wrods freeze --verify` still succeeds.
    """
    from experiment.cli.study_store import opened_study, this_user
    from experiment.integrity import withdrawal

    chosen = SimpleNamespace(**options)
    how = {"participant": chosen.participant, "platform_id": chosen.platform_id, "session": chosen.session}
    for name, value in (*how.items(), *(("backups", folder) for folder in chosen.folders)):
        if value is not None and not value.strip():
            raise UserError(
                f"--{name.replace('_', '-')} is empty, which names nobody",
                mend="Give a value; perhaps a variable of the shell is not set.",
            )
    if sum(value is not None for value in how.values()) + chosen.again != 1:
        raise UserError(
            "a participant must be named in exactly one way",
            mend="Give --participant P014, --platform-id ID, or --session ID (or --again alone). The dashboard lists each "
            "session with its station and times.",
        )
    places = [Path(folder) for folder in chosen.folders]
    missing = [str(place) for place in places if not place.is_dir()]
    if missing:
        raise UserError(
            f"--backups {missing[0]}: there is no such folder",
            mend="Attach the disk, or leave the option out.",
        )
    with opened_study(study) as opened:
        name, folder = opened.study.id, opened.study.folder
        if chosen.again:
            _finish(study, {}, withdrawal.scrub(opened.store, name, folder, backups=places), chosen.as_json)
            return
        scope, alike = _scope(opened, study, how, places)
        summary: dict[str, Any] = {
            "sessions": [{name: getattr(session, name) for name in SHOWN} for session in scope.sessions],
            "links": len(scope.links),
            "look_alikes": alike,
            "beyond": list(scope.beyond),
        }
        if not (chosen.as_json and chosen.yes):
            _tell(scope, chosen.participant, alike)
        if not chosen.yes:
            confirm("\nPermanently erase this?", "nothing was erased")
        ids = [*(session.session_id for session in scope.sessions), *scope.links]
        erased, scrubbed = withdrawal.withdraw(
            opened.store, name, folder, ids, actor=this_user(), backups=places
        )
        _finish(study, {**summary, "erased": dict(erased.rows)}, scrubbed, chosen.as_json)


def _scope(
    opened: OpenedStudy, folder: Path, how: Mapping[str, Any], folders: Sequence[Path]
) -> tuple[Scope, list[str]]:
    """Return the scope of the withdrawal, and other participants with similar numbers."""
    from experiment.integrity.withdrawal import (
        SeveralPersons,
        find_person,
        look_alikes,
        scope_of,
        unopened_links,
    )

    study, participant = opened.study.id, how["participant"]
    try:
        with opened.store.read() as connection:
            person_sessions = find_person(connection, study, **how)
            links = unopened_links(connection, study, participant) if participant else []
            alike = look_alikes(connection, study, participant) if participant else []
    except SeveralPersons as several:
        raise _several(folder, how, several.found) from None
    if not person_sessions and not links:
        similar = f" Similar: {_quoted(alike)}." if alike else ""
        raise UserError(
            f"no session of {study} {_described(how)}",
            mend=f"Check numbers and times on the dashboard.{similar} A platform id that was deleted cannot be found.",
            exit_code=1,
        )
    return scope_of(
        opened.store, study, opened.study.folder, person_sessions, links=links, backups=folders
    ), alike


def _quoted(names: Sequence[str]) -> str:
    """Return names with ambiguous characters as codes, ready to be copied into a shell."""
    return ", ".join(
        name if name.isascii() and name.isprintable() else f"{name} ({name!a})" for name in names
    )


def _described(how: Mapping[str, Any]) -> str:
    if how["session"] is not None:
        return f"has an id that begins with {how['session']}"
    return f"belongs to {how['participant'] or how['platform_id']}"


def _several(folder: Path, how: Mapping[str, Any], person_sessions: Sequence[PersonSession]) -> UserError:
    """Return the error for a search that matches several persons, with a line and a command for each."""
    persons: dict[str, list[PersonSession]] = {}
    for session in person_sessions:
        persons.setdefault(session.person, []).append(session)
    lines = []
    for theirs in persons.values():
        lines += [f"  {_line(their)}" for their in theirs]
        lines.append(f"    wrods withdraw {shlex.quote(str(folder))} --session {theirs[0].session_id[:KEY]}")
    return UserError(
        f"nothing was erased: {len(persons)} people have a session that {_described(how)}",
        mend="Choose one:\n" + "\n".join(lines),
    )


def _line(session: PersonSession) -> str:
    """Describe a session: number, id, start, station, trials, state, platform ids."""
    number = session.reader
    if session.participant_id not in (None, session.reader):
        number += f" (typed {session.participant_id})"
    parts = [f"{number}: session {session.session_id[:KEY]}, began {session.began_at}"]
    if session.station:
        parts.append(session.station if re.search(r"\D", session.station) else f"station {session.station}")
    parts += [
        counted(session.trials, "trial"),
        session.state,
        *(["a pilot"] if session.is_pilot else []),
        *session.known_as,
    ]
    return ", ".join(parts)


def _tell(scope: Scope, participant: str | None, alike: Sequence[str]) -> None:
    click.echo(click.style("Will be erased", bold=True), err=True)
    for session in scope.sessions:
        click.echo(f"  {_line(session)}", err=True)
    if scope.links:
        click.echo(f"  {participant}: invited, has not begun; the personal link no longer works", err=True)
    if scope.derived:
        click.echo(f"  {counted(scope.derived, 'session')} of models that read these answers", err=True)
    click.echo(
        f"  the same data in backups ({len(scope.backups)}) and folders of hidden states ({len(scope.states)})",
        err=True,
    )
    click.echo(click.style("Not erased", bold=True), err=True)
    if alike:
        click.echo(f"  other participants with a similar number: {_quoted(alike)}", err=True)
    for line in scope.beyond:
        click.echo(f"  {line}", err=True)


def _finish(study: Path, summary: dict[str, Any], scrubbed: Scrubbed, as_json: bool) -> None:
    if as_json:
        done = {
            "backups_cleaned": [str(file) for file in scrubbed.backups],
            "state_rows": scrubbed.state_rows,
            "replies": scrubbed.replies,
            "left": scrubbed.left,
        }
        print_json({**summary, **done})
    else:
        if summary:
            rows = sum(summary["erased"].values())
            whose = [counted(len(summary["sessions"]), "session")]
            whose += [counted(summary["links"], "unopened link")] if summary["links"] else []
            click.echo(f"Erased: {counted(rows, 'row')} of {' and '.join(whose)}.")
        click.echo(
            f"Cleaned: {counted(len(scrubbed.backups), 'backup')}, {counted(scrubbed.state_rows, 'row')} of hidden states, "
            f"{counted(scrubbed.replies, 'stored reply', 'stored replies')} of models."
        )
        for line in scrubbed.left:
            click.echo(click.style("Not erased: ", fg="red") + line)
        if scrubbed.left:
            click.echo(f"Once this is resolved, run: wrods withdraw {shlex.quote(str(study))} --again")
        else:
            click.echo("No file of the database, its log or its backups holds the answers.")
    if scrubbed.left:
        sys.exit(1)
