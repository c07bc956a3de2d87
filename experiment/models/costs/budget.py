"""A budget that holds across commands, days and concurrent runs: money is reserved before a request is sent.

A run reserves some money in the store, charges each request the most that it can cost, and reuses the difference once the reply
reports its cost; reply and cost are stored in one transaction. The reservation of a killed run still counts, because the
provider may have billed requests whose replies are missing.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, case, func, insert, select, update

from experiment.models.api.responses import Usage
from experiment.models.costs.prices import Price
from experiment.models.engine import Reply, Request
from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.store.records import now
from experiment.store.tables import calls, reservations, sessions

BOOKED = "booked"
"""State of a row for money spent outside the stored calls: probes, and answers that no trial takes."""

CHUNKS = 50
"""A run reserves a fiftieth of the budget at a time, or what the next requests need."""

LOOK_S = 0.01
"""Seconds between checks of a request that waits for money to be returned."""

ASK_S = 1.0
"""Longest interval between its queries to the store, where other commands return money."""


@dataclass(frozen=True)
class Spending:
    """A study's spending, in US dollars."""

    spent: float  # stored calls, probes of servers, and answers that no trial takes
    set_aside: float  # reserved by runs for requests in flight, and for batches that are not collected
    unknown: float  # not returned by runs that ended, and requests that may be billed without an answer

    @property
    def total(self) -> float:
        """The most that may have been spent so far."""
        return self.spent + self.set_aside + self.unknown


def spending(connection: Connection, study: str, dead: Collection[str] = ()) -> Spending:
    """Return what a study has spent and reserved; what killed (``dead``) runs had reserved is unknown."""
    of_study = select(sessions.c.session_id).where(sessions.c.study == study)
    spent = connection.scalar(
        select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(calls.c.session_id.in_(of_study))
    )
    is_left = and_(reservations.c.state == "open", reservations.c.run_id.in_(dead))
    state = case((is_left, "lost"), else_=reservations.c.state)
    rows = connection.execute(
        select(state, func.coalesce(func.sum(reservations.c.open_usd), 0.0))
        .where(reservations.c.study == study)
        .group_by(state)
    )
    reserved = {state: float(amount) for state, amount in rows}
    under_way = reserved.get("open", 0.0) + reserved.get("batch", 0.0)
    return Spending(float(spent or 0.0) + reserved.get(BOOKED, 0.0), under_way, reserved.get("lost", 0.0))


@dataclass(frozen=True)
class Payer:
    """One model (``reader``) in one run of a study, for which money is spent."""

    study: str
    run_id: str
    reader: str

    def set_aside(self, connection: Connection, name: str, usd: float, state: str) -> None:
        """Insert a reservation."""
        row = {
            "name": name, "study": self.study, "run_id": self.run_id, "reader": self.reader, "open_usd": usd,
            "state": state, "created_at": now(),
        }  # fmt: skip
        connection.execute(insert(reservations), row)

    def book(self, connection: Connection, name: str, cost: float, *, adds: bool = False) -> None:
        """Record US dollars spent outside the stored calls under a name, once or added to its total."""
        total = reservations.c.open_usd + cost if adds else cost
        booked = update(reservations).where(reservations.c.name == name).values(open_usd=total)
        if connection.execute(booked).rowcount == 0 and cost:
            self.set_aside(connection, name, cost, BOOKED)


def close_abandoned(store: Store, study: str, reader: str) -> float:
    """Mark the reservations that earlier runs of a model left as lost; return the sum in US dollars.

    Only the run that holds the model's lease may call this: then no other run of the model is active.
    """
    return store.write(
        lambda connection: _end_reservations(connection, study, "open", "lost", reader=reader)
    ).result()


def release(connection: Connection, study: str) -> float:
    """Count the reservations of ended runs as not billed; return the sum in US dollars."""
    return _end_reservations(connection, study, "lost", "closed", open_usd=0.0)


def _end_reservations(
    connection: Connection, study: str, state: str, after: str, *, reader: str | None = None, **values: float
) -> float:
    rows = and_(reservations.c.study == study, reservations.c.state == state)
    if reader is not None:
        rows = and_(rows, reservations.c.reader == reader)
    amount = connection.scalar(select(func.coalesce(func.sum(reservations.c.open_usd), 0.0)).where(rows))
    connection.execute(update(reservations).where(rows).values(state=after, **values))
    return float(amount or 0.0)


class CommandLimit:
    """A limit in dollars or tokens that all models of one command share."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.used = 0.0
        self._under_way = 0.0
        self._lock = threading.Lock()

    @property
    def left(self) -> float:
        """The amount that is not used."""
        return self.most - self.used

    @property
    def is_awaited(self) -> bool:
        """Whether requests in flight may still return something."""
        return self._under_way > 1e-12

    def take(self, most: float) -> bool:
        """Reserve the most that a request can use; return whether that much was available."""
        with self._lock:
            if self.used + self._under_way + most > self.most:
                return False
            self._under_way += most
            return True

    def settle(self, most: float, used: float) -> None:
        """Record the use of a request that :meth:`take` allowed."""
        with self._lock:
            self._under_way -= most
            self.used += used


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """A model's spending limits; None is no limit. A command's limits are shared by all of its models."""

    budget: float | None = None  # total budget of the study in US dollars
    cost: CommandLimit | None = None
    tokens: CommandLimit | None = None


class Budget:
    """The money and tokens of one model in one run.

    Each amount that was taken ends with :meth:`settle` or :meth:`lose`.
    """

    def __init__(self, store: Store, payer: Payer, limits: SpendingLimits | None = None) -> None:
        self.payer, self.limits = payer, limits or SpendingLimits()
        self.why: str | None = None
        self.lost = 0.0  # US dollars that requests without an answer may have cost
        self.returned = 0  # number of amounts returned
        self._store = store
        self._name = f"{payer.run_id}-{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        self._filling = threading.Lock()
        self._held = 0.0  # reserved in the store but for no request
        self._under_way = 0.0
        self._chunk = 0.0
        self._begun = False

    def take(self, usd: float, tokens: int = 0) -> bool:
        """Reserve the most that a request can cost and use; return whether that much was available.

        The money is reserved in the store before this returns, so that no other run can spend it.
        """
        limits = self.limits
        if limits.cost is not None and not limits.cost.take(usd):
            self.why = "the limit of this command (--max-cost) is reached"
            return False
        if limits.tokens is not None and not limits.tokens.take(tokens):
            self.why = "the tokens of this command (--max-tokens) are used"
            if limits.cost is not None:
                limits.cost.settle(usd, 0.0)
            return False
        if self._take_held(usd):
            return True
        with self._filling:
            # replies are not blocked meanwhile, and another request may have taken what was returned
            while not self._take_held(usd):
                if not self._fill(usd):
                    self.why = "the study's budget is reached"
                    self._settle_limits(usd, tokens, 0.0, 0)
                    return False
        return True

    def has(self, usd: float) -> bool:
        """Return whether :meth:`take` would succeed without a query to the store."""
        return self.limits.budget is None or usd <= 0 or self._held >= usd

    def settle(self, usd: float, tokens: int, *, cost: float = 0.0, used: int = 0) -> None:
        """Record the cost and use of a request that :meth:`take` paid for; zero if it was not sent."""
        with self._lock:
            self._under_way -= usd
            self._held += usd - cost
            self.returned += 1
        self._settle_limits(usd, tokens, cost, used)

    def lose(self, usd: float, tokens: int) -> None:
        """Count a request as the most that it can have cost, because its cost will never be known."""
        with self._lock:
            self._under_way -= usd
            self.lost += usd
            self.returned += 1
        self._settle_limits(usd, tokens, usd, tokens)

    def spent(self, connection: Connection, cost: float) -> None:
        """Reduce the reservation by a cost, in the transaction that stores the cost.

        What is held beyond the next requests is returned too, so that other models can use it.
        """
        with self._lock:
            if not self._begun:
                return
            surplus = max(0.0, self._held - self._chunk)
            self._held -= surplus
        self._give_back(connection, cost + surplus)

    def book(self, cost: float) -> None:
        """Store the cost of a call that belongs to no trial."""

        def write(connection: Connection) -> None:
            self.payer.book(connection, f"{self._name}-{BOOKED}", cost, adds=True)
            self.spent(connection, cost)

        if cost > 0:
            self._store.write(write).result()

    def rest(self) -> None:
        """Give back to the store what is held for no request, so that other models can use it."""
        with self._lock:
            surplus, self._held = self._held, 0.0
        if surplus > 0 and self._begun:
            self._store.write(lambda connection: self._give_back(connection, surplus)).result()

    def close(self) -> None:
        """Give back the remaining reservation; requests that were never settled still count."""
        if not self._begun:
            return
        unsettled = self._under_way + self.lost
        state = "lost" if unsettled > 1e-12 else "closed"
        reservation = update(reservations).where(reservations.c.name == self._name)
        values: dict[str, Any] = {"open_usd": max(0.0, unsettled), "state": state}
        self._store.write(lambda connection: connection.execute(reservation.values(values)).rowcount).result()

    def _settle_limits(self, usd: float, tokens: int, cost: float, used: int) -> None:
        if self.limits.cost is not None:
            self.limits.cost.settle(usd, cost)
        if self.limits.tokens is not None:
            self.limits.tokens.settle(tokens, used)

    def _take_held(self, usd: float) -> bool:
        with self._lock:
            if self.limits.budget is None or usd <= 0 or self._held >= usd:
                self._held -= usd
                self._under_way += usd
                return True
            return False

    def _give_back(self, connection: Connection, usd: float) -> None:
        reservation = update(reservations).where(reservations.c.name == self._name)
        connection.execute(reservation.values(open_usd=reservations.c.open_usd - usd))

    def _fill(self, usd: float) -> bool:
        """Reserve more in the store; return whether the budget had enough."""
        budget = self.limits.budget
        assert budget is not None
        wanted = usd - self._held
        if wanted <= 0:
            return True
        self._chunk = max(usd, min(budget / CHUNKS, 20 * usd))

        def fill(connection: Connection) -> float:
            lock_for_change(connection)
            left = budget - spending(connection, self.payer.study).total
            # near the end reserve half of the rest: few queries to the store, and something left for other models
            amount = max(wanted, min(self._chunk, left / 2)) if wanted <= left else 0.0
            if not self._begun:
                self.payer.set_aside(connection, self._name, amount, "open")
            else:
                self._give_back(connection, -amount)
            return amount

        amount = self._store.write(fill).result()
        with self._lock:
            self._begun = True
            self._held += amount
        return amount > 0


class ProbeBilling:
    """Pays the calls of a probe, one after another, from the budget of the run."""

    def __init__(self, price: Price, budget: Budget) -> None:
        self.price, self.budget = price, budget
        self.cost_usd = 0.0
        self.why: str | None = None
        self._most = 0.0
        self._tokens = 0

    def take(self, read: int, written: int) -> bool:
        """Reserve the most that a call with these token counts can cost; otherwise set ``why`` to the reason."""
        self._most, self._tokens = self.price.most_of(read, written), read + written
        is_paid = self.budget.take(self._most, self._tokens)
        self.why = None if is_paid else self.budget.why
        return is_paid

    def settle(self, usage: Usage | None) -> None:
        """Record the cost of the call; the most that it can have cost if its server counted no tokens or did not answer (None)."""
        if usage is None:
            self.budget.lose(self._most, self._tokens)
            return
        cost, used = self._most, self._tokens
        if usage.prompt is not None and usage.completion is not None:
            cost, used = self.price.of_usage(usage), usage.prompt + usage.completion
        self.cost_usd += cost
        self.budget.settle(self._most, self._tokens, cost=cost, used=used)
        self.budget.book(cost)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Reserved US dollars and tokens of one try; ``told`` is the most by its length and ``max_tokens``."""

    usd: float
    tokens: int
    told: float = 0.0


class Payments:
    """Payments for the requests of one model."""

    def __init__(
        self,
        price: Price,
        budget: Budget,
        is_stopped: Callable[[], bool] = lambda: False,
        patiently: Callable[[Callable[[], bool]], bool] = lambda attempt: attempt(),
    ) -> None:
        self.price, self.budget = price, budget
        self.full: str | None = None
        # Largest ratio of a reply's cost to the most that its length and max_tokens allow: some servers add to prompts or count
        # differently. Later reservations are multiplied by it.
        self.dearest = 1.0
        self._is_stopped, self._patiently = is_stopped, patiently
        self._taken: dict[str, _Taken] = {}
        self._lost_tries: Counter[str] = Counter()
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._asking = ThreadPoolExecutor(1, "wrods-budget")

    @property
    def is_needed(self) -> bool:
        """Whether requests cost anything, or tokens are limited."""
        return not self.price.is_free or self.budget.limits.tokens is not None

    def take(self, request: Request) -> bool:
        """Reserve the most that one try of a request can cost and use."""
        by_length = self.price.most(request)
        usd = by_length * self.dearest
        tokens = 0 if self.budget.limits.tokens is None else sum(self.price.most_tokens(request))
        if not self._patiently(lambda: self.budget.take(usd, tokens)):
            return False
        self._taken[request.work_key] = _Taken(usd, tokens, by_length)
        return True

    def untake(self, request: Request) -> None:
        """Give back the last reservation for a request that is not sent."""
        taken = self._taken.pop(request.work_key, None)
        if taken is not None:
            self.budget.settle(taken.usd, taken.tokens)

    def refuse(self) -> None:
        """Stop sending, for the budget's reason."""
        self.full = self.budget.why

    async def allow(self, request: Request) -> bool:
        """Wait until there is money for a request, which requests in flight may return.

        One request at a time queries the store; the others wait for it. If an earlier try of the request is not settled, the
        server may bill it without reporting it, so its reservation still counts.
        """
        earlier = self._taken.pop(request.work_key, None)
        if earlier is not None:
            self.budget.lose(earlier.usd, earlier.tokens)
            self._lost_tries[request.work_key] += 1
        if self._is_held(request) and self.take(request):
            return True
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = (loop, asyncio.Lock())
        async with self._turn[1]:
            returned, asked_at = -1, 0.0
            while not self._is_stopped() and self.full is None:
                # money returned after this moment is found by the next check
                is_awaited, now = self._is_awaited, self.budget.returned
                is_held = self._is_held(request)
                if is_held or now != returned or time.monotonic() - asked_at > ASK_S:
                    if self.take(request) if is_held else await self._take_aside(request):
                        return True
                    if not is_awaited:
                        self.refuse()
                        return False
                    returned, asked_at = now, time.monotonic()
                await asyncio.sleep(LOOK_S)
        return False

    def _is_held(self, request: Request) -> bool:
        return self.budget.has(self.price.most(request) * self.dearest)

    async def _take_aside(self, request: Request) -> bool:
        """Reserve in a separate thread; return the money if the caller was cancelled."""
        future = self._asking.submit(self.take, request)
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: self.untake(request))
            raise

    @property
    def _is_awaited(self) -> bool:
        """Whether requests in flight may still return something."""
        shared = (self.budget.limits.cost, self.budget.limits.tokens)
        return bool(self._taken) or any(limit is not None and limit.is_awaited for limit in shared)

    def settle(self, reply: Reply) -> float | None:
        """Return the cost of a reply in US dollars, or None if it is unknown; the rest of its reservation becomes available.

        Reservations for tries that the server may bill without reporting them still count. Call :meth:`forget` once the reply
        is being written.
        """
        taken = self._taken.get(reply.work_key, _Taken(0.0, 0))
        before = self._lost_tries[reply.work_key]
        if reply.status == "timeout" or reply.unsettled_tries > before:
            self.budget.lose(taken.usd, taken.tokens)
            return 0.0 if self.price.is_free else None
        cost = self._cost(reply, taken.usd)
        if taken.told > 0:
            self.dearest = max(self.dearest, cost / taken.told)
        self.budget.settle(taken.usd, taken.tokens, cost=cost, used=self._used(reply, taken.tokens))
        return None if before and reply.status == "error" and not self.price.is_free else cost

    def forget(self, reply: Reply) -> None:
        """Drop a settled request."""
        self._taken.pop(reply.work_key, None)
        self._lost_tries.pop(reply.work_key, None)

    def end(self) -> None:
        """Count the reservations of requests that never returned as spent; nothing is in flight."""
        for taken in list(self._taken.values()):
            self.budget.lose(taken.usd, taken.tokens)
        self._taken.clear()
        self._lost_tries.clear()

    def _cost(self, reply: Reply, most: float) -> float:
        """Return the cost of a reply; the most that it can have cost if the server counted no tokens."""
        if self.price.is_free or reply.from_cache or reply.status == "error":
            return 0.0
        cost = reply.cost_usd if reply.cost_usd is not None else self.price.of(reply)
        return most if cost is None else cost

    def _used(self, reply: Reply, most: int) -> int:
        if reply.from_cache:
            return 0
        if reply.prompt_tokens is not None and reply.completion_tokens is not None:
            return reply.prompt_tokens + reply.completion_tokens
        return 0 if reply.status == "error" else most
