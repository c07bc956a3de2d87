"""Gives back to a budget what was set aside for requests that were never answered, where their user knows that nobody billed them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection

from experiment.models.leases import leased
from experiment.models.money.purse import close_abandoned, release
from experiment.models.runs.live import runs_of
from experiment.store import Store, records
from stimuli.errors import UserError


def dead_runs(connection: Connection, study: str) -> dict[str, str]:
    """Return the readers of the runs that ended without saying so, as those that were killed, by run."""
    found = runs_of(connection, study, latest=False)
    return {
        str(row["run_id"]): str(row["reader"])
        for row in found
        if row["ended_at"] is None and not row["alive"]
    }


def count_as_not_billed(store: Store, study: str, target: Path | str, *, actor: str) -> float:
    """Give back what requests without an answer may have cost, and note who said that they were not billed.

    What a run that goes on has set aside stays as it is.
    """
    with store.read() as connection:
        readers = set(dead_runs(connection, study).values())
    for reader in sorted(readers):
        # where another run of the model is under way, that run has done it
        with suppress(UserError), leased(target, study, reader):
            close_abandoned(store, study, reader)

    def give_back(connection: Connection) -> float:
        amount = release(connection, study)
        if amount:
            detail = {"usd": amount}
            records.add_audit(connection, actor, "counted as not billed", study=study, detail=detail)
        return amount

    return store.write(give_back).result()
