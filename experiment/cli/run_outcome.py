"""Prints what a run of ``wrods run`` came to: a model's trials, tokens, money, and what it left unanswered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiment.models.runs import Outcome

SHOWN_ERRORS = 20


def print_outcome(outcome: Outcome) -> None:
    """Print what one model's run came to."""
    from experiment.models.money import written
    from experiment.models.runs.telling import read_beside, told_never, unread

    named = ", ".join(f"{n} {status}" for status, n in sorted(outcome.unanswered.items()))
    never = f", {outcome.given_up} can never be answered" if outcome.given_up else ""
    before = f", {outcome.stored_before} were stored before" if outcome.stored_before else ""
    click.echo(
        f"{outcome.reader}: {outcome.answered} trials answered{before}, {outcome.left or 'none'} of {outcome.planned} left"
        f"{f' ({named})' if named else ''}{never}; {outcome.blocks}"
    )
    if not_valid := unread(outcome.response_statuses):
        click.echo(
            f"  {not_valid}: wrods export shows them, and wrods score reads them anew without a call",
            err=True,
        )
    if outcome.first_tokens:
        click.echo(f"  {read_beside(outcome.first_tokens, outcome.answered)}", err=True)
    if outcome.unrestored:
        click.echo(
            f"  {outcome.unrestored} texts were not restored (refused, or cut off): the questions after them are about the texts "
            "as shown; the calls say which (purpose unscramble)",
            err=True,
        )
    for told in told_never(outcome):
        click.echo(f"  {told}", err=True)
    tokens = outcome.tokens
    if tokens.get("prompt_tokens"):
        click.echo(
            f"  {tokens['prompt_tokens']} prompt tokens ({tokens['cached_tokens']} of them shared or cached), "
            f"{tokens['completion_tokens']} generated"
        )
    if outcome.batches:
        click.echo(f"  {outcome.handed_over} handed over; the same command collects what is done")
        click.echo("  " + outcome.batches.replace("\n", "\n  "))
    if outcome.cost_usd or outcome.cached:
        kept = f"; {outcome.cached} answers came from the cache" if outcome.cached else ""
        click.echo(f"  cost {written(outcome.cost_usd)}{kept}")
    if outcome.dearest > 1:
        click.echo(
            f"  the server counts up to {outcome.dearest:.3g} times the tokens that a request's length and max_tokens allow; what "
            "it counts is booked. Look at its bill, or at what it adds to prompts.",
            err=True,
        )
    if outcome.lost_usd:
        click.echo(
            f"  up to {written(outcome.lost_usd)} may have been spent by an earlier run that was killed; it counts "
            "against the budget",
            err=True,
        )
    if outcome.unanswered_usd:
        click.echo(
            f"  up to {written(outcome.unanswered_usd)} may have been spent on tries that brought no answer; it counts against "
            "the budget",
            err=True,
        )
    if outcome.other_sessions:
        click.echo(
            f"  {outcome.other_sessions} earlier sessions of {outcome.reader} are not part of this plan (another "
            "revision, setting or wider plan); they stay in the store and in the tables.",
            err=True,
        )
    for kind, count in outcome.error_kinds.items():
        click.echo(f"  {count} × {kind}", err=True)
    for error in outcome.errors[:SHOWN_ERRORS]:
        click.echo(
            f"  no answer: item {error['item_id']} (trial {error['trial_index']}): {error['error']}", err=True
        )
    if outcome.failed:
        more = outcome.failed - SHOWN_ERRORS
        beyond = f"… and {more} more. " if more > 0 else ""
        click.echo(f"  {beyond}The same command asks for these again.", err=True)
