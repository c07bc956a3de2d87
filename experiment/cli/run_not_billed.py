"""``wrods run --not-billed``: the budget gets back what was set aside for requests that were never answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiment.study import Study


def give_back(study: Study) -> None:
    """Count as not billed what requests without an answer may have cost, and print how much that was."""
    from experiment.cli.study_store import opened_study, this_user
    from experiment.configuration import read_config, store_address
    from experiment.models.money import spending, written
    from experiment.models.runs import budget_of
    from experiment.models.runs.not_billed import count_as_not_billed

    target = store_address(read_config()) or study.folder
    with opened_study(study.folder) as opened:
        amount = count_as_not_billed(opened.store, study.id, target, actor=this_user())
        with opened.store.read() as connection:
            spent = spending(connection, study.id)
    if not amount:
        click.echo("Nothing is set aside for requests that were never answered.")
    else:
        click.echo(
            f"{written(amount)} were set aside for requests that were never answered, and count as not billed now."
        )
    if (budget := budget_of(study)) is not None:
        click.echo(f"Budget {written(budget)}, left {written(max(0.0, budget - spent.total))}.")
