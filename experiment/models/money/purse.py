"""A budget that holds across commands, days and runs at the same time: money is set aside before a request is sent.

A run sets aside some money in the store, pays requests from it at the most that each can cost, and gives the rest back as
replies say what they cost; reply, cost and what was given back are one transaction. What a killed run had set aside stays
counted, since the provider may have billed what no reply tells.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, insert, select, update

from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.store.records import now
from experiment.store.tables import calls, reservations, sessions

BOOKED = "booked"
"""State of a row that holds what was spent and no stored call tells: finding out about a server, answers no trial takes."""

CHUNKS = 50
"""A run sets aside a fiftieth of the budget at a time, or what the next requests need."""


@dataclass(frozen=True)
class Spending:
    """Where a study's money is, in US dollars."""

    spent: float  # what stored calls cost, finding out what servers can give, and answers that no trial takes
    set_aside: float  # held by runs for requests under way, and for batches that are not collected
    # set aside by runs that ended without giving it back, and for requests that servers may bill without having answered
    unknown: float

    @property
    def total(self) -> float:
        """The most that may have been spent by now."""
        return self.spent + self.set_aside + self.unknown


def spending(connection: Connection, study: str, dead: Collection[str] = ()) -> Spending:
    """Return what a study has spent and set aside; what ``dead`` runs, those that were killed, hold is unknown."""
    of_study = select(sessions.c.session_id).where(sessions.c.study == study)
    spent = connection.execute(
        select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(calls.c.session_id.in_(of_study))
    ).scalar_one()
    is_left = and_(reservations.c.state == "open", reservations.c.run_id.in_(dead))
    state = case((is_left, "lost"), else_=reservations.c.state)
    rows = connection.execute(
        select(state, func.coalesce(func.sum(reservations.c.open_usd), 0.0))
        .where(reservations.c.study == study)
        .group_by(state)
    )
    held = {state: float(amount) for state, amount in rows}
    under_way = held.get("open", 0.0) + held.get("batch", 0.0)
    return Spending(float(spent) + held.get(BOOKED, 0.0), under_way, held.get("lost", 0.0))


def book(
    connection: Connection,
    name: str,
    cost: float,
    *,
    study: str,
    run_id: str,
    reader: str,
    adds: bool = False,
) -> None:
    """Put into the books what was spent in US dollars and no stored call tells: under a name, once or added up."""
    total = reservations.c.open_usd + cost if adds else cost
    is_there = (
        connection.execute(
            update(reservations).where(reservations.c.name == name).values(open_usd=total)
        ).rowcount
        > 0
    )
    if cost and not is_there:
        row = {
            "name": name, "study": study, "run_id": run_id, "reader": reader, "open_usd": cost, "state": BOOKED,
            "created_at": now(),
        }  # fmt: skip
        connection.execute(insert(reservations), row)


class Allowance:
    """What all models of one command may use together: dollars, or tokens."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.used = 0.0
        self._under_way = 0.0
        self._lock = threading.Lock()

    @property
    def left(self) -> float:
        """What is neither used nor set aside."""
        return max(0.0, self.most - self.used - self._under_way)

    @property
    def is_awaited(self) -> bool:
        """Whether requests under way may still give something back."""
        return self._under_way > 1e-12

    def take(self, most: float) -> bool:
        """Set aside what a request can use at most; say whether there is that much."""
        with self._lock:
            if self.used + self._under_way + most > self.most:
                return False
            self._under_way += most
            return True

    def give_back(self, most: float, used: float) -> None:
        """Note what a request that :meth:`take` allowed did use."""
        with self._lock:
            self._under_way -= most
            self.used += used


class Purse:
    """The money of one run of one model."""

    def __init__(
        self,
        store: Store,
        study: str,
        run_id: str,
        reader: str,
        *,
        budget: float | None = None,
        limit: Allowance | float | None = None,
    ) -> None:
        self.study, self.run_id, self.reader = study, run_id, reader
        self.budget = budget
        self.limit = Allowance(limit) if isinstance(limit, int | float) else limit
        self.spent = 0.0
        self.why: str | None = None
        self._store = store
        self._name = f"{run_id}-{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        self._held = 0.0
        self._under_way = 0.0
        self._begun = False
        self._filling = threading.Lock()
        self._keeps = 0.0
        self._lost = 0.0
        self.returned = 0

    def take(self, most: float) -> bool:
        """Set aside what a request can cost at most; say whether there is that much.

        It returns after the money is set aside in the store, so that no other run can spend it.
        """
        if most <= 0:
            return True
        if self.limit is not None and not self.limit.take(most):
            self.why = "the limit of this command (--max-cost) is reached"
            return False
        if self._take_held(most):
            return True
        with self._filling:
            # replies are not held up meanwhile, and another request may have taken what came
            while not self._take_held(most):
                if not self._fill(most):
                    if self.limit is not None:
                        self.limit.give_back(most, 0.0)
                    self.why = "the study's budget is reached"
                    return False
        return True

    def _take_held(self, most: float) -> bool:
        with self._lock:
            if self.budget is not None:
                if self._held < most:
                    return False
                self._held -= most
            self._under_way += most
            return True

    def has(self, most: float) -> bool:
        """Say whether :meth:`take` would answer without asking the store."""
        return self.budget is None or self._held >= most

    def give_back(self, most: float, cost: float) -> float:
        """Note what a request that :meth:`take` paid for did cost.

        Some of what it did not cost is kept for the next request: until the reply is stored, the store goes on holding all of it.
        """
        if most <= 0:
            return 0.0
        with self._lock:
            self._under_way -= most
            self.spent += cost
            kept = 0.0
            if self.budget is not None:
                kept = max(0.0, min(most - cost, self._keeps - self._held))
                self._held += kept
            self.returned += 1
        if self.limit is not None:
            self.limit.give_back(most, cost)
        return most - kept

    def spend(self, most: float, cost: float) -> None:
        """Note in the store what a call did cost that belongs to no trial."""
        back = self.give_back(most, cost)
        if cost <= 0 and back <= 0:
            return
        name = f"{self._name}-{BOOKED}"

        def write(connection: Connection) -> None:
            book(connection, name, cost, study=self.study, run_id=self.run_id, reader=self.reader, adds=True)
            self.settled(connection, back)

        self._store.write(write).result()

    def lose(self, most: float) -> None:
        """Know that nobody will ever say what a request did cost: it stays counted as the most it can have cost."""
        if most <= 0:
            return
        with self._lock:
            self._under_way -= most
            self._lost += most
            self.returned += 1
        if self.limit is not None:
            self.limit.give_back(most, most)

    @property
    def lost(self) -> float:
        """US dollars that requests without an answer may have cost."""
        return self._lost

    def rest(self) -> None:
        """Give back in the store what is held for no request, so that other models can have it."""
        with self._lock:
            left, self._held = self._held, 0.0
        if left > 0 and self._begun:
            self._store.write(lambda connection: self.settled(connection, left)).result()

    def untake(self, most: float) -> None:
        """Take back a :meth:`take` whose request is not sent."""
        if most <= 0:
            return
        with self._lock:
            self._under_way -= most
            self._held += most if self.budget is not None else 0.0
            self.returned += 1
            if self.limit is not None:
                self.limit.give_back(most, 0.0)

    def settled(self, connection: Connection, most: float) -> None:
        """Give back in the store what was set aside for a request, in the transaction that stores its cost."""
        if self._begun and most > 0:
            connection.execute(
                update(reservations)
                .where(reservations.c.name == self._name)
                .values(open_usd=reservations.c.open_usd - most)
            )

    def close(self) -> None:
        """Give back what is left; requests that were never settled stay counted."""
        with self._lock:
            if not self._begun:
                return
            left, self._held = self._held, 0.0
            name, unsettled = self._name, self._under_way + self._lost

        def end(connection: Connection) -> None:
            open_usd = reservations.c.open_usd - left
            state = "lost" if unsettled > 1e-12 else "closed"
            connection.execute(
                update(reservations).where(reservations.c.name == name).values(open_usd=open_usd, state=state)
            )

        self._store.write(end).result()

    def _fill(self, most: float) -> bool:
        """Set more aside in the store; say whether the budget has that much."""
        assert self.budget is not None
        with self._lock:
            wanted = most - self._held
        if wanted <= 0:
            return True
        budget = self.budget
        self._keeps = max(most, min(budget / CHUNKS, 20 * most))
        chunk = max(wanted, self._keeps)
        begins, name = not self._begun, self._name
        row = {
            "name": name, "study": self.study, "run_id": self.run_id, "reader": self.reader,
            "open_usd": 0.0, "state": "open", "created_at": now(),
        }  # fmt: skip

        def fill(connection: Connection) -> float:
            lock_for_change(connection)
            left = budget - spending(connection, self.study).total
            # near the end half of what is left, so that the store is asked seldom and others find some
            amount = max(wanted, min(chunk, left / 2)) if wanted <= left else 0.0
            if begins:
                connection.execute(insert(reservations), row)
            connection.execute(
                update(reservations)
                .where(reservations.c.name == name)
                .values(open_usd=reservations.c.open_usd + amount)
            )
            return amount

        amount = self._store.write(fill).result()
        with self._lock:
            self._begun = True
            self._held += amount
        return amount > 0


def close_abandoned(store: Store, study: str, reader: str) -> float:
    """Mark what earlier runs of a model left set aside as lost; return how much that is in US dollars.

    Only the run that holds the model's lease may call it: then no other run of the model is alive.
    """

    def mark(connection: Connection) -> float:
        theirs = (
            (reservations.c.study == study)
            & (reservations.c.reader == reader)
            & (reservations.c.state == "open")
        )
        amount = connection.execute(
            select(func.coalesce(func.sum(reservations.c.open_usd), 0.0)).where(theirs)
        ).scalar_one()
        connection.execute(update(reservations).where(theirs).values(state="lost"))
        return float(amount)

    return store.write(mark).result()


def release(connection: Connection, study: str) -> float:
    """Count as not billed what runs that ended left set aside; return how much that was in US dollars."""
    theirs = (reservations.c.study == study) & (reservations.c.state == "lost")
    amount = connection.execute(
        select(func.coalesce(func.sum(reservations.c.open_usd), 0.0)).where(theirs)
    ).scalar_one()
    connection.execute(update(reservations).where(theirs).values(state="closed", open_usd=0.0))
    return float(amount)
