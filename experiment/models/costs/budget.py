"""A budget that holds across commands, days and runs at the same time: money is set aside before a request is sent.

A run sets some money aside in the store, pays requests from it at the most that each can cost, and keeps the rest for the next
ones as replies say what they cost; reply and cost are one transaction. What a killed run had set aside stays counted, since
the provider may have billed what no reply tells.
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
"""State of a row that holds what was spent and no stored call tells: finding out about a server, answers no trial takes."""

CHUNKS = 50
"""A run sets aside a fiftieth of the budget at a time, or what the next requests need."""

LOOK_S = 0.01
"""How often a request that waits for money looks whether a reply has given some back."""

ASK_S = 1.0
"""How often it asks the store at the latest, where other commands give money back."""


@dataclass(frozen=True)
class Spending:
    """Where a study's money is, in US dollars."""

    spent: float  # stored calls, finding out what servers can give, and answers that no trial takes
    set_aside: float  # held by runs for requests under way, and for batches that are not collected
    unknown: float  # of runs that ended without giving it back, and of requests that may be billed without an answer

    @property
    def total(self) -> float:
        """The most that may have been spent by now."""
        return self.spent + self.set_aside + self.unknown


def spending(connection: Connection, study: str, dead: Collection[str] = ()) -> Spending:
    """Return what a study has spent and set aside; what ``dead`` runs, those that were killed, hold is unknown."""
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
    held = {state: float(amount) for state, amount in rows}
    under_way = held.get("open", 0.0) + held.get("batch", 0.0)
    return Spending(float(spent or 0.0) + held.get(BOOKED, 0.0), under_way, held.get("lost", 0.0))


@dataclass(frozen=True)
class Payer:
    """What money is spent for: one model (``reader``) in one run of a study."""

    study: str
    run_id: str
    reader: str

    def set_aside(self, connection: Connection, name: str, usd: float, state: str) -> None:
        """Write a new row of the table of reservations."""
        row = {
            "name": name, "study": self.study, "run_id": self.run_id, "reader": self.reader, "open_usd": usd,
            "state": state, "created_at": now(),
        }  # fmt: skip
        connection.execute(insert(reservations), row)

    def book(self, connection: Connection, name: str, cost: float, *, adds: bool = False) -> None:
        """Record what was spent in US dollars and no stored call tells: under a name, once or added up."""
        total = reservations.c.open_usd + cost if adds else cost
        booked = update(reservations).where(reservations.c.name == name).values(open_usd=total)
        if connection.execute(booked).rowcount == 0 and cost:
            self.set_aside(connection, name, cost, BOOKED)


def close_abandoned(store: Store, study: str, reader: str) -> float:
    """Mark what earlier runs of a model left set aside as lost; return how much that is in US dollars.

    Only the run that holds the model's lease may call it: then no other run of the model is alive.
    """
    return store.write(
        lambda connection: _end_reservations(connection, study, "open", "lost", reader=reader)
    ).result()


def release(connection: Connection, study: str) -> float:
    """Count as not billed what runs that ended left set aside; return how much that was in US dollars."""
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
    """What all models of one command may use together: dollars, or tokens."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.used = 0.0
        self._under_way = 0.0
        self._lock = threading.Lock()

    @property
    def left(self) -> float:
        """What is not used."""
        return self.most - self.used

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

    def settle(self, most: float, used: float) -> None:
        """Note what a request that :meth:`take` allowed did use."""
        with self._lock:
            self._under_way -= most
            self.used += used


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """What a model may spend; None sets no limit. Those of the command are shared by all of its models."""

    budget: float | None = None  # US dollars that the study may cost in all
    cost: CommandLimit | None = None
    tokens: CommandLimit | None = None


class Budget:
    """The money and tokens of one model in one run.

    Of each amount that was taken, :meth:`settle` or :meth:`lose` says what became of it.
    """

    def __init__(self, store: Store, payer: Payer, limits: SpendingLimits | None = None) -> None:
        self.payer, self.limits = payer, limits or SpendingLimits()
        self.why: str | None = None
        self.lost = 0.0  # US dollars that requests without an answer may have cost
        self.returned = 0  # how often something came back
        self._store = store
        self._name = f"{payer.run_id}-{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        self._filling = threading.Lock()
        self._held = 0.0  # set aside in the store, and for no request
        self._under_way = 0.0
        self._chunk = 0.0
        self._begun = False

    def take(self, usd: float, tokens: int = 0) -> bool:
        """Set aside what a request can cost and use at most; say whether there is that much.

        It returns after the money is set aside in the store, so that no other run can spend it.
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
            # replies are not held up meanwhile, and another request may have taken what came
            while not self._take_held(usd):
                if not self._fill(usd):
                    self.why = "the study's budget is reached"
                    self._settle_limits(usd, tokens, 0.0, 0)
                    return False
        return True

    def has(self, usd: float) -> bool:
        """Return whether :meth:`take` would answer without asking the store."""
        return self.limits.budget is None or usd <= 0 or self._held >= usd

    def settle(self, usd: float, tokens: int, *, cost: float = 0.0, used: int = 0) -> None:
        """Note what a request that :meth:`take` paid for did cost and use; nothing where it was not sent."""
        with self._lock:
            self._under_way -= usd
            self._held += usd - cost
            self.returned += 1
        self._settle_limits(usd, tokens, cost, used)

    def lose(self, usd: float, tokens: int) -> None:
        """Know that nobody will ever say what a request did cost: it stays counted as the most it can have cost."""
        with self._lock:
            self._under_way -= usd
            self.lost += usd
            self.returned += 1
        self._settle_limits(usd, tokens, usd, tokens)

    def spent(self, connection: Connection, cost: float) -> None:
        """Know in the store, in the transaction that stores a cost, that this much is set aside no more.

        So is what is held beyond the next requests, so that other models can have it.
        """
        with self._lock:
            if not self._begun:
                return
            surplus = max(0.0, self._held - self._chunk)
            self._held -= surplus
        self._give_back(connection, cost + surplus)

    def book(self, cost: float) -> None:
        """Note in the store what a call did cost that belongs to no trial."""

        def write(connection: Connection) -> None:
            self.payer.book(connection, f"{self._name}-{BOOKED}", cost, adds=True)
            self.spent(connection, cost)

        if cost > 0:
            self._store.write(write).result()

    def rest(self) -> None:
        """Give back in the store what is held for no request, so that other models can have it."""
        with self._lock:
            surplus, self._held = self._held, 0.0
        if surplus > 0 and self._begun:
            self._store.write(lambda connection: self._give_back(connection, surplus)).result()

    def close(self) -> None:
        """Give back what is left; requests that were never settled stay counted."""
        if not self._begun:
            return
        unsettled = self._under_way + self.lost
        state = "lost" if unsettled > 1e-12 else "closed"
        mine = update(reservations).where(reservations.c.name == self._name)
        values: dict[str, Any] = {"open_usd": max(0.0, unsettled), "state": state}
        self._store.write(lambda connection: connection.execute(mine.values(values)).rowcount).result()

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
        mine = update(reservations).where(reservations.c.name == self._name)
        connection.execute(mine.values(open_usd=reservations.c.open_usd - usd))

    def _fill(self, usd: float) -> bool:
        """Set more aside in the store; say whether the budget has that much."""
        budget = self.limits.budget
        assert budget is not None
        wanted = usd - self._held
        if wanted <= 0:
            return True
        self._chunk = max(usd, min(budget / CHUNKS, 20 * usd))

        def fill(connection: Connection) -> float:
            lock_for_change(connection)
            left = budget - spending(connection, self.payer.study).total
            # near the end half of what is left, so that the store is asked seldom and others find some
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
    """Pays the calls that find out what a server can give, one after the other, from the money of a run's trials."""

    def __init__(self, price: Price, budget: Budget) -> None:
        self.price, self.budget = price, budget
        self.cost_usd = 0.0
        self.why: str | None = None
        self._most = 0.0
        self._tokens = 0

    def take(self, read: int, written: int) -> bool:
        """Set aside what a call can cost that reads and writes so many tokens at most; ``why`` says why there is no money."""
        self._most, self._tokens = self.price.most_of(read, written), read + written
        is_paid = self.budget.take(self._most, self._tokens)
        self.why = None if is_paid else self.budget.why
        return is_paid

    def settle(self, usage: Usage | None) -> None:
        """Note what the call did cost; the most it can have cost where its server did not count, or brought no answer (None)."""
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
    """What was set aside for one try: US dollars, and tokens; ``told`` is the most by its length and ``max_tokens``."""

    usd: float
    tokens: int
    told: float = 0.0


class Payments:
    """Pays the requests of one model."""

    def __init__(
        self,
        price: Price,
        budget: Budget,
        is_stopped: Callable[[], bool] = lambda: False,
        patiently: Callable[[Callable[[], bool]], bool] = lambda attempt: attempt(),
    ) -> None:
        self.price, self.budget = price, budget
        self.full: str | None = None
        # how many times the most that a request can cost, by its length and max_tokens, a reply did cost: a server that adds to
        # prompts or counts otherwise. So much is set aside for the requests after it.
        self.dearest = 1.0
        self._is_stopped, self._patiently = is_stopped, patiently
        self._taken: dict[str, _Taken] = {}
        self._lost_tries: Counter[str] = Counter()
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._asking = ThreadPoolExecutor(1, "wrods-budget")

    @property
    def is_needed(self) -> bool:
        """Whether requests cost anything, or are bound by a number of tokens."""
        return not self.price.is_free or self.budget.limits.tokens is not None

    def take(self, request: Request) -> bool:
        """Set aside what one try of a request can cost and use at most."""
        told = self.price.most(request)
        usd = told * self.dearest
        tokens = 0 if self.budget.limits.tokens is None else sum(self.price.most_tokens(request))
        if not self._patiently(lambda: self.budget.take(usd, tokens)):
            return False
        self._taken[request.work_key] = _Taken(usd, tokens, told)
        return True

    def untake(self, request: Request) -> None:
        """Take back what was set aside last for a request, which is not sent."""
        taken = self._taken.pop(request.work_key, None)
        if taken is not None:
            self.budget.settle(taken.usd, taken.tokens)

    def refuse(self) -> None:
        """Send nothing more."""
        self.full = self.budget.why

    async def allow(self, request: Request) -> bool:
        """Wait until there is money for a request: what is under way gives back what it did not cost.

        One request at a time asks the store, the others stand behind it. Where an earlier try of the request is still to be
        settled, the server may bill it without ever saying so: what was set aside for it stays counted.
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
            returned, asked = -1, 0.0
            while not self._is_stopped() and self.full is None:
                # what comes back after this moment is seen by the next look
                is_awaited, now = self._is_awaited, self.budget.returned
                is_held = self._is_held(request)
                if is_held or now != returned or time.monotonic() - asked > ASK_S:
                    if self.take(request) if is_held else await self._take_aside(request):
                        return True
                    if not is_awaited:
                        self.refuse()
                        return False
                    returned, asked = now, time.monotonic()
                await asyncio.sleep(LOOK_S)
        return False

    def _is_held(self, request: Request) -> bool:
        return self.budget.has(self.price.most(request) * self.dearest)

    async def _take_aside(self, request: Request) -> bool:
        """Take in a thread of its own; where nobody waits for the answer any more, it is taken back."""
        future = self._asking.submit(self.take, request)
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: self.untake(request))
            raise

    @property
    def _is_awaited(self) -> bool:
        """Whether anything under way may still give something back."""
        shared = (self.budget.limits.cost, self.budget.limits.tokens)
        return bool(self._taken) or any(one is not None and one.is_awaited for one in shared)

    def settle(self, reply: Reply) -> float | None:
        """Return what a reply cost in US dollars, None where nobody knows; what it did not cost is there for the next.

        What was set aside for tries that the server may bill, and never said what for, stays counted. Call :meth:`forget` once
        the write of the reply is under way.
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
        """Know that what was set aside for a request is settled."""
        self._taken.pop(reply.work_key, None)
        self._lost_tries.pop(reply.work_key, None)

    def end(self) -> None:
        """Know that nothing is under way: what was set aside for requests that never came back stays counted."""
        for taken in list(self._taken.values()):
            self.budget.lose(taken.usd, taken.tokens)
        self._taken.clear()
        self._lost_tries.clear()

    def _cost(self, reply: Reply, most: float) -> float:
        """Return what a reply cost; the most it can have cost where the server did not count."""
        if self.price.is_free or reply.from_cache or reply.status == "error":
            return 0.0
        known = reply.cost_usd if reply.cost_usd is not None else self.price.of(reply)
        return most if known is None else known

    def _used(self, reply: Reply, most: int) -> int:
        if reply.from_cache:
            return 0
        if reply.prompt_tokens is not None and reply.completion_tokens is not None:
            return reply.prompt_tokens + reply.completion_tokens
        return 0 if reply.status == "error" else most
