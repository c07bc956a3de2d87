"""Batches: collect what came back, hand over what is missing at the lower price, and leave.

What is handed over is paid whether anybody collects it or not, so the most that it can cost is set aside in the store until all
of it was collected. New batches are handed over once all earlier ones were collected, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, update

from experiment.models.engine import UNFINISHED, Request
from experiment.models.money import Price, spending
from experiment.models.planning import ModelSession
from experiment.models.runs.recording import Recording
from experiment.models.settings import ModelSettings
from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.store.records import now
from experiment.store.tables import reservations
from stimuli.errors import UserError

BATCH = "batch"
"""State of money that is set aside for batches under way."""


def batch_price(price: Price) -> Price:
    """Return the price of a model's tokens in a batch."""
    share = price.batch
    return replace(
        price,
        input=price.input * share,
        cached_input=price.cached_input * share,
        output=price.output * share,
        batch=1.0,
    )


def collect_and_hand_over(
    settings: ModelSettings,
    pairs: Iterable[tuple[ModelSession, Request]],
    store: Store,
    recording: Recording,
    price: Price,
    *,
    study: str,
    run_id: str,
    reader: str,
    budget: float | None,
    limit: float | None,
    most_trials: int | None,
    dialect: Any = None,
) -> tuple[int, str]:
    """Store what batches brought, and hand over what is missing as far as money allows.

    Parameters
    ----------
    dialect : Dialect, optional
        The form of requests, as a probe set it right.

    Returns
    -------
    int, str
        How many requests were handed over now, and what became of all batches, in words.

    Raises
    ------
    UserError
        The model is not behind OpenAI's Batch API, or the money does not suffice for one request.
    """
    if settings.kind != "openai":
        raise UserError(
            f"{settings.use} has no batches",
            mend="Leave out --batch; it is for models behind OpenAI's Batch API.",
        )
    from experiment.models.api import batch

    cheap = batch_price(price)
    missing = {request.work_key: (session, request) for session, request in pairs}
    for reply in batch.collect(settings, [request for _, request in missing.values()], dialect=dialect):
        session, request = missing[reply.work_key]
        known = cheap.of(reply)
        cost = 0.0 if reply.status in UNFINISHED else cheap.most(request) if known is None else known
        recording.keep(session, request, reply, back=0.0, cost=cost)
        if reply.status not in UNFINISHED:
            missing.pop(reply.work_key)
    recording.settle(0)
    state = batch.state(settings)
    if state.open:
        return 0, str(state)
    store.write(lambda connection: _close(connection, study, reader)).result()
    wanted = [request for _, request in missing.values()][:most_trials]
    chosen = _affordable(
        store, wanted, cheap, study=study, run_id=run_id, reader=reader, budget=budget, limit=limit
    )
    if chosen:
        state = batch.submit(settings, chosen, dialect=dialect)
    return len(chosen), str(state)


def _close(connection: Connection, study: str, reader: str) -> None:
    """Give back what was set aside for batches that were all collected."""
    theirs = (
        (reservations.c.study == study) & (reservations.c.reader == reader) & (reservations.c.state == BATCH)
    )
    connection.execute(update(reservations).where(theirs).values(state="closed", open_usd=0.0))


def _affordable(
    store: Store, wanted: list[Request], price: Price, *, study: str, run_id: str, reader: str, budget: float | None,
    limit: float | None,
) -> list[Request]:  # fmt: skip
    """Set aside the most that requests can cost, for as many of them as the money suffices."""

    def take(connection: Connection) -> int:
        lock_for_change(connection)
        bounds: list[float] = [] if limit is None else [limit]
        if budget is not None:
            bounds.append(budget - spending(connection, study).total)
        left = min(bounds, default=float("inf"))
        total, count = 0.0, 0
        for request in wanted:
            most = price.most(request)
            if total + most > left:
                break
            total, count = total + most, count + 1
        row: dict[str, Any] = {
            "name": f"{BATCH}-{run_id}", "study": study, "run_id": run_id, "reader": reader, "open_usd": total,
            "state": BATCH, "created_at": now(),
        }  # fmt: skip
        if count and total:
            connection.execute(insert(reservations), row)
        return count

    count = store.write(take).result()
    if wanted and not count:
        raise UserError(
            "the money that is left does not suffice for one request of a batch",
            mend="Raise models: budget in the study, or --max-cost.",
            exit_code=1,
        )
    return wanted[:count]
