"""``wrods reconcile``: compares a platform's submission list with the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiment.cli.terminal import print_json

if TYPE_CHECKING:
    from experiment.people.recruitment.reconciliation import Line, Report

SHOWN = 20


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--approve-csv",
    "approve_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write whom to approve, in the form that the platform takes.",
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
