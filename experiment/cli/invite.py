"""``wrods invite`` and ``wrods reconcile``: personal links, and a platform's submission list compared with the store."""

from __future__ import annotations

import csv
import io
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, option, print_json

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from experiment.people.recruitment.admission import Invitation
    from experiment.people.recruitment.reconciliation import Line, Report
    from experiment.study import Study


SHOWN = 20


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--participants FILE",
    "Participants to invite: one name, number or address per line, or a CSV with a column `participant`.",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@option("--number N", "Make N links that are not assigned to anyone.", type=click.IntRange(1, 100_000))
@option("--days D", "Days for which the links are valid.", type=click.FloatRange(min=0, min_open=True))
@option("--base-url URL", "Address at which participants reach the server.", required=True)
@option("--again", "Replace the unused links of participants who were invited before.")
@option("--signed", "Sign links for the ids in --participants instead of storing invitations.")
@option("--out FILE", "File for the links.  [default: a new CSV in the study]", type=PATH)
def invite(study: Path, **options: Any) -> None:
    """Make personal links to a study.

    Each link begins one session and continues it when opened again. Once a study with `recruit: link` has personal links,
    its open link no longer admits anyone. The links are written only to a CSV that only you can read; the store keeps
    digests of them.

    With --signed, each link contains one of your ids, its expiry and a signature; nothing is stored until a participant
    begins. A panel or another system that has the key can make the same links (docs/online.md).

    Example: wrods invite my-study --number 40 --days 14 --base-url https://study.example.org
    """
    from experiment.checking import load_study
    from experiment.cli.study_store import own_store, this_user
    from experiment.integrity.maintenance import note_place
    from experiment.integrity.withdrawal import INVITED_TO
    from experiment.people.recruitment.admission import invite as invite_people
    from experiment.people.recruitment.admission import numbered
    from experiment.store.records import now
    from stimuli.audit.findings import counted
    from stimuli.errors import UserError

    chosen = SimpleNamespace(**options)
    if (chosen.participants is None) == (chosen.number is None):
        raise UserError(
            "exactly one of --participants and --number is needed",
            mend="Give either --participants FILE or --number N.",
        )
    if not chosen.base_url.startswith(("https://", "http://")):
        raise UserError(
            f"--base-url is {chosen.base_url!r}; it must be a full address", mend="Write https://…"
        )
    loaded = load_study(study)
    if loaded.get("participants", "recruit", default="lab") == "lab":
        raise UserError(
            f"{loaded.place('participants')}: the study recruits in a lab, where links are not used",
            mend="Set participants.recruit to link.",
        )
    file = chosen.out or loaded.folder / f"invitations-{now()[:19].replace(':', '')}.csv"
    if file.exists():
        raise UserError(f"{file} already exists", mend="Give another name with --out.")
    names = [] if chosen.participants is None else _named(chosen.participants)
    if chosen.signed:
        _write(file, _signed(loaded, names, chosen.days, chosen.base_url))
        click.echo(f"Wrote {counted(len(names), 'signed link')} to {file}, valid for {chosen.days:g} days.")
        return
    with own_store(loaded) as store:

        def make(connection: Connection) -> list[Invitation]:
            whom = names or numbered(connection, loaded.id, chosen.number or 0)
            return invite_people(
                connection, loaded.id, whom, base_url=chosen.base_url, days=chosen.days, again=chosen.again
            )

        invitations = store.write(make).result()
        note_place(store, loaded.id, INVITED_TO, file, this_user())
    _write(file, invitations)
    click.echo(
        f"Wrote {counted(len(invitations), 'link')} to {file}"
        + (f", valid for {chosen.days:g} days." if chosen.days else ".")
    )


def _signed(study: Study, names: list[str], days: float | None, base_url: str) -> list[Invitation]:
    """Return a signed link for each id."""
    from experiment.configuration import config_file, read_config
    from experiment.people.recruitment.admission import Invitation
    from experiment.people.recruitment.codes import recruitment_for
    from experiment.people.recruitment.return_links import signed_link
    from experiment.store.session_activity import stamp
    from stimuli.errors import UserError

    if not names or days is None:
        raise UserError(
            "--signed needs --participants FILE and --days D",
            mend="Each signed link contains an id and an expiry.",
        )
    recruitment = recruitment_for(study, read_config())
    if recruitment.platform is None or recruitment.platform.key != "link":
        raise UserError(
            f"{study.place('participants')}: only studies with recruit: link accept links that you sign",
            mend="Set participants.recruit to link.",
        )
    if recruitment.link_key is None:
        raise UserError(
            f"there is no key to sign with: {config_file()} has no link_key under [recruitment.{study.id}]",
            mend=f'Add link_key = "{secrets.token_hex(16)}" there, on the server too, and restart it.',
        )
    end = datetime.now(UTC) + timedelta(days=days)
    until = int(end.timestamp())
    key = recruitment.link_key
    return [Invitation(name, signed_link(base_url, key, study.id, name, until), stamp(end)) for name in names]


def _write(file: Path, invitations: list[Invitation]) -> None:
    """Write links to a CSV that only its owner can read, because it contains names."""
    from experiment.exporting.tables import cell
    from stimuli.files import replace_file

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["participant", "link", "expires_at"])
    for invitation in invitations:
        writer.writerow(
            cell(value, is_text=True)
            for value in (invitation.participant, invitation.link, invitation.expires_at)
        )
    replace_file(file, text.getvalue(), is_private=True)


def _named(file: Path) -> list[str]:
    from experiment.people.recruitment.reconciliation import rows_of_csv
    from stimuli.corpora.encodings import read_decoded
    from stimuli.corpora.tables import misspelt
    from stimuli.errors import UserError

    rows = rows_of_csv(read_decoded(file).text, str(file))
    header = [column.strip().lower() for column in rows[0]] if rows else []
    if "participant" in header:
        index = header.index("participant")
        names = [row[index].strip() for row in rows[1:] if len(row) > index]
    elif close := next((column for column in header if misspelt(column, ["participant"])), None):
        raise UserError(
            f"{file}, line 1: column {close!r} is not read; did you mean 'participant'?",
            mend="Rename the column to participant, or remove the line of column names.",
        )
    else:
        names = [row[0].strip() for row in rows]
    named = [name for name in names if name]
    if not named:
        raise UserError(
            f"{file} contains no participants", mend="Write one name, number or address per line."
        )
    return named


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@click.argument("file", metavar="FILE", type=PATH)
@option("--json", "Print everything as JSON.", name="as_json")
@option(
    "--approve-csv FILE",
    "Write whom to approve, in the form that the platform takes.",
    name="approve_file",
    type=PATH,
)
def reconcile(study: Path, file: Path, as_json: bool, approve_file: Path | None) -> None:
    """Compare a platform's list of submissions with the answers stored here.

    FILE is the CSV that Prolific, SONA or MTurk lets you download. Reports submissions that were paid without answers,
    answers without a submission, and participants who returned, timed out or entered another code; lists whom to approve and
    whom to review. A rejection is suggested only under the platform's own rule on attention checks, with the evidence. Places
    of participants who returned are reopened. You can repeat the command at any time.

    Example: wrods reconcile my-study prolific_export_671b8ae8.csv
    """
    from dataclasses import replace

    from experiment.checking import load_study
    from experiment.cli.study_store import own_store, this_user
    from experiment.configuration import read_config
    from experiment.people.recruitment.codes import recruitment_for
    from experiment.people.recruitment.reconciliation import (
        approve_csv,
        import_submissions,
        read_export,
        reconciliation,
    )
    from stimuli.errors import UserError
    from stimuli.files import replace_file

    loaded = load_study(study)
    config = read_config()
    recruitment = recruitment_for(loaded, config)
    if recruitment.platform is None or recruitment.platform.export is None:
        raise UserError(
            f"{loaded.id} does not recruit from a platform, so it has no submissions to compare; nothing was read",
            mend="Name the study that the list belongs to, or say participants.recruit: prolific, sona or mturk.",
        )
    export = read_export(file, expected=recruitment.platform)
    recruitment = replace(recruitment, platform=export.platform, reward=recruitment.reward or export.reward)
    with own_store(loaded) as store:
        imported = import_submissions(store, recruitment, export, actor=this_user())
        report = reconciliation(store, recruitment)
    if approve_file is not None:
        text = approve_csv(report, export.platform, file.read_bytes(), str(file))
        replace_file(approve_file, text, is_private=True)  # it contains participants' ids
    if as_json:
        summary = report.as_json() | {
            "imported": vars(imported),
            "unknown_columns": list(export.unknown_columns),
        }
        print_json(summary)
        return
    click.echo(
        f"{report.platform}: {len(export.rows)} submissions in {file}; {imported.new} new, {imported.changed} changed."
    )
    if export.unknown_columns:
        click.echo(f"Columns that were left out as unknown: {', '.join(export.unknown_columns)}.")
    if imported.returned or imported.timed_out:
        click.echo(f"Places open again: {imported.returned} returned, {imported.timed_out} timed out.")
    _tell(report)
    if approve_file is not None:
        click.echo(f"\nWhom to approve is in {approve_file}.")


def _tell(report: Report) -> None:
    from experiment.people.recruitment.reconciliation import MARKS

    if report.median_minutes is not None:
        pay = (
            ""
            if report.reward is None
            else f"; at {report.reward} that is {report.hourly} {report.reward.currency} an hour"
        )
        click.echo(f"Median time {report.median_minutes:.1f} minutes{pay}.")
    _list("Approve", report.with_verdict("approve"))
    _list("Review before you decide", report.with_verdict("review"))
    _list("Rejection may be justified; read the evidence first", report.with_verdict("reject"))
    for mark, words in MARKS.items():
        if mark != "awaiting_review":
            _list(words[0].upper() + words[1:], report.marked(mark))
    click.echo(f"\n{report.rule} Comprehension questions and speed are never a reason here.")


def _list(heading: str, lines: list[Line]) -> None:
    if not lines:
        return
    click.echo(click.style(f"\n{heading}: {len(lines)}", bold=True))
    for line in lines[:SHOWN]:
        why = "; ".join(line.reasons)
        click.echo(
            f"  {line.external_id or '-':<26} {line.reader or '-':<6} {line.state or '-':<13} {why}".rstrip()
        )
        for check in line.evidence:
            click.echo(
                f"      trial {check.trial_index}: {check.asked!r} was answered with {check.answered!r}"
            )
    if len(lines) > SHOWN:
        click.echo(f"  and {len(lines) - SHOWN} more (--json has all)")
