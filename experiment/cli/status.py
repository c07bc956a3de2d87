"""``wrods status``: a study's progress, with the sessions of participants and models, and the money spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, option, print_json

if TYPE_CHECKING:
    from experiment.store import Store
    from experiment.study import Study

_EXAMPLE = """\b
Examples:
  wrods status my-study
  wrods status my-study --json
"""


SHOWN = 5
"""Unanswerable trials that are listed for each model."""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option("--json", "Print everything as JSON.", name="as_json")
def status(study: Path, as_json: bool) -> None:
    """Report a study's progress: sessions by reader and state, active runs, money spent and remaining.

    The command only reads, so you can use it while participants answer and models run, from any terminal that reaches the
    store. Runs that were killed are listed separately from active runs.
    """
    from experiment.cli.study_store import opened_study

    with opened_study(study) as opened:
        summary = status_of(opened.study, opened.store)
    if as_json:
        print_json(summary)
        return
    _print(summary)


def status_of(study: Study, store: Store) -> dict[str, Any]:
    """Return a study's sessions by reader and state, its models' runs, and its costs, as JSON."""
    from experiment.models.api.batch import known_batches
    from experiment.models.journal import killed_commands, runs_not_in_journal, spending
    from experiment.models.runs.orchestrator import budget_of
    from experiment.models.runs.remaining_work import ended_of
    from experiment.models.runs.status import dead_runs, readers_of, runs_of
    from experiment.store.erasure import DECLINED, UNDECIDED, number_of

    with store.read() as connection:
        readers = readers_of(connection, study.id)
        runs = runs_of(connection, study.id)
        dead = {*dead_runs(connection, study.id), *killed_commands(connection, study)}
        spent = spending(connection, study, dead)
        not_in_journal = runs_not_in_journal(connection, study)
        ended = ended_of(connection, study.id)
        counted_only = {kind: number_of(connection, study.id, kind) for kind in (DECLINED, UNDECIDED)}
    budget = budget_of(study)
    begun = {str(row["reader"]) for row in (*readers, *runs)}
    return {
        "study": study.id,
        "readers": readers,
        **counted_only,
        "ended": ended,
        "not_run": [name for name in study.models if name not in begun],
        "runs": [_run(row) for row in runs],
        "batches": known_batches(study.folder),
        "money": {
            "spent_usd": spent.spent,
            "set_aside_usd": spent.set_aside,
            "may_have_been_spent_usd": spent.unknown,
            "budget_usd": budget,
            "left_usd": None if budget is None else max(0.0, budget - spent.total),
            "runs_not_in_journal": not_in_journal,
        },
    }


def _run(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run with its current state: an unfinished one that is not alive was killed."""
    from experiment.models.runs.status import silent_for

    state = row["state"] if row["ended_at"] is not None or row["alive"] else "killed"
    copied_names = ("run_id", "reader", "began_at", "seen_at", "ended_at", "host", "pid", "alive")
    figures = {
        name: value for name, value in (row["figures"] or {}).items() if name not in ("number", "process")
    }
    return {name: row[name] for name in copied_names} | {
        "silent_s": silent_for(row),
        "state": state,
        **figures,
    }


def _states(reader: Mapping[str, Any]) -> str:
    named = ", ".join(f"{count} {state}" for state, count in sorted(reader["states"].items()))
    return f" ({named})" if named else ""


def _print(summary: Mapping[str, Any]) -> None:
    from experiment.cli.terminal import line
    from experiment.models.costs import format_usd
    from experiment.models.journal import describe_missing
    from experiment.models.runs.status import SILENT_S, RunStatus, describe_unread
    from stimuli.audit.findings import counted
    from stimuli.durations import short_duration

    click.echo(f"{summary['study']}")
    for reader in summary["readers"]:
        ended = summary["ended"].get(reader["reader"]) if reader["reader_kind"] == "model" else None
        why = f"; {ended['sessions']} ended: {ended['reason']}" if ended and ended["sessions"] else ""
        click.echo(
            f"  {reader['reader']} ({reader['reader_kind']}): {counted(reader['sessions'], 'session')}{_states(reader)}, "
            f"{counted(reader['trials'], 'trial')}{why}"
        )
        if ended and ended["trials"]:
            click.echo(
                f"    can never be answered, and are not asked again: {counted(ended['trials'], 'trial')}"
            )
            for fault in ended["faults"][:SHOWN]:
                click.echo(f"      {fault}")
            if ended["trials"] > SHOWN:
                click.echo(f"      … and {ended['trials'] - SHOWN} more (--json names all)")
        if reader["unanswered"]:
            named = ", ".join(f"{count} {status}" for status, count in sorted(reader["unanswered"].items()))
            click.echo(f"    without an answer: {named}")
        for reason, count in sorted(reader["excluded"].items()):
            whole = f"{counted(count['sessions'], 'session')} with " if count["sessions"] else ""
            click.echo(
                f"    excluded, not counted above: {whole}{counted(count['trials'], 'trial')} ({reason})"
            )
    if not summary["readers"]:
        click.echo("  no sessions yet")
    for name in summary["not_run"]:
        click.echo(f"  {name}: planned, not run yet")
    for kind, done in (
        ("declined", "declined to take part"),
        ("undecided", "left the consent form undecided"),
    ):
        if summary[kind]:
            click.echo(f"  {done}: {summary[kind]} (only the number is stored)")
    for run in summary["runs"]:
        names = RunStatus.__dataclass_fields__
        figures = RunStatus(**{name: value for name, value in run.items() if name in names})
        not_valid = describe_unread(figures.response_statuses)
        not_valid = not_valid and f"; {not_valid}"
        if run["alive"]:
            silent = run["silent_s"]
            sleeps = (
                f"; no activity for {short_duration(silent)}, it may be suspended"
                if silent > SILENT_S
                else ""
            )
            click.echo(f"now: {line(figures)}{not_valid}{sleeps}")
            continue
        figures.per_second, figures.seconds_left, figures.engine, figures.waits = 0.0, None, None, None
        when = str(run["ended_at"] or run["seen_at"])[:16].replace("T", " ")
        # the first line states the reason, later ones the remedy
        why = f": {figures.stopped.splitlines()[0]}" if figures.stopped else ""
        next_step = "run the same command to resume" if run["state"] == "killed" else run["state"] + why
        word = "was killed" if run["state"] == "killed" else "ended"
        given_up = f", {figures.given_up} can never be answered" if figures.given_up else ""
        click.echo(
            f"last run of {run['reader']} {word} at {when} UTC: {figures.done} of {figures.planned} trials{given_up} "
            f"({next_step}){not_valid}"
        )
    for batch in summary["batches"]:
        name = batch["batch_id"] or "a batch that does not exist yet"
        unmatched = f"; {batch['waiting']} answers that match no trial are kept" if batch["waiting"] else ""
        seen = (
            ""
            if batch["is_collected"]
            else " (its provider has not been queried yet; wrods run does this)"
            if not batch["seen_at"]
            else f" (as of {str(batch['seen_at'])[:16].replace('T', ' ')} UTC; wrods run collects finished answers)"
        )
        model = batch["reader"] or batch["model"]
        click.echo(f"{name} of {model}: {str(batch['said']).partition(': ')[2]}{seen}{unmatched}")
    money = summary["money"]
    if money["spent_usd"] or money["budget_usd"] is not None or money["may_have_been_spent_usd"]:
        parts = [f"spent {format_usd(money['spent_usd'])}"]
        if money["set_aside_usd"]:
            parts.append(f"set aside for requests in progress {format_usd(money['set_aside_usd'])}")
        if money["may_have_been_spent_usd"]:
            parts.append(
                f"may have been spent on unanswered requests {format_usd(money['may_have_been_spent_usd'])}"
            )
        if money["budget_usd"] is not None:
            parts.append(
                f"budget {format_usd(money['budget_usd'])}, remaining {format_usd(money['left_usd'])}"
            )
        click.echo("; ".join(parts))
        if money["may_have_been_spent_usd"]:
            click.echo(
                "  The amount that may have been spent is the maximum cost of requests that were in progress, or had money set aside, "
                "when a run was killed, cut off or out of time. It counts against the budget, because the provider may bill it; if "
                "the bill shows that it did not, raise `models: budget` by that amount."
            )
        if money["runs_not_in_journal"]:
            click.echo(f"  {describe_missing(money['runs_not_in_journal'])}")
