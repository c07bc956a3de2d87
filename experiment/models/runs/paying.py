"""What the requests of one model may cost and use: set aside before each is sent, given back as replies say what they took."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from experiment.models.engine import Reply, Request
from experiment.models.money import Allowance, Price, Purse
from experiment.models.runs.limits import Stop

LOOK_S = 0.01
"""How often a request that waits for money looks whether a reply has given some back."""

ASK_S = 1.0
"""How often it asks the store at the latest, where other commands give money back."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of what was set aside for a request."""

    cost: float | None  # US dollars; None where it may have cost something and nobody knows
    back: float  # what the store no longer has to hold for it, its cost included


@dataclass(frozen=True, slots=True)
class _Taken:
    """What was set aside for one try: US dollars, and tokens; ``told`` is the most by its length and ``max_tokens``."""

    most: float
    count: int
    told: float = 0.0


class Books(Protocol):
    """Where replies are written (:class:`experiment.models.runs.recording.Recording`)."""

    @property
    def is_writing(self) -> bool: ...  # noqa: D102
    def patiently(self, attempt: Callable[[], bool]) -> bool: ...  # noqa: D102


class Paying:
    """The money and the tokens of one model's requests."""

    def __init__(
        self, price: Price, purse: Purse, tokens: Allowance | None, recording: Books, stop: Stop
    ) -> None:
        self.price, self.purse, self.tokens = price, purse, tokens
        self.full: str | None = None
        self.dearest = 1.0
        self._recording, self._stop = recording, stop
        self._taken: dict[str, _Taken] = {}
        self._lost_tries: Counter[str] = Counter()
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def is_needed(self) -> bool:
        """Whether requests cost anything, or are bound by a number of tokens."""
        return not self.price.is_free or self.tokens is not None

    def take(self, request: Request) -> bool:
        """Set aside what one try of a request can cost and use at most."""
        told = self.price.most(request)
        most = told * self.dearest
        if not self._recording.patiently(lambda: self.purse.take(most)):
            return False
        count = 0 if self.tokens is None else sum(self.price.most_tokens(request))
        if self.tokens is not None and not self.tokens.take(count):
            self.purse.untake(most)
            return False
        self._taken[request.work_key] = _Taken(most, count, told)
        return True

    def untake(self, request: Request) -> None:
        """Take back what was set aside last for a request, which is not sent."""
        taken = self._taken.pop(request.work_key, None)
        if taken is not None:
            self.purse.untake(taken.most)
            if self.tokens is not None:
                self.tokens.give_back(taken.count, 0)

    def refuse(self) -> None:
        """Send nothing more."""
        self.full = self.purse.why or "the tokens of this command (--max-tokens) are used"

    async def allow(self, request: Request) -> bool:
        """Wait until there is money for a request: what is under way gives back what it did not cost.

        One request at a time asks the store, the others stand behind it. Where an earlier try of the request is still to be
        settled, the server may bill it without ever saying so: what was set aside for it stays counted.
        """
        earlier = self._taken.pop(request.work_key, None)
        if earlier is not None:
            self._lose(earlier)
            self._lost_tries[request.work_key] += 1
        if self._can_take(request) and self.take(request):
            return True
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = (loop, asyncio.Lock())
        async with self._turn[1]:
            returned, asked = -1, 0.0
            while not self._stop.is_asked and self.full is None:
                # what comes back after this moment is seen by the next look
                is_awaited, now = self._is_awaited, self.purse.returned
                is_local = self._can_take(request)
                if is_local or now != returned or time.monotonic() - asked > ASK_S:
                    if self.take(request) if is_local else await self._take_aside(request):
                        return True
                    if not is_awaited:
                        self.refuse()
                        return False
                    returned, asked = now, time.monotonic()
                await asyncio.sleep(LOOK_S)
        return False

    def _can_take(self, request: Request) -> bool:
        """Say whether :meth:`take` would answer without asking the store."""
        return self.purse.has(self.price.most(request) * self.dearest)

    async def _take_aside(self, request: Request) -> bool:
        """Take in a thread of its own; where nobody waits for the answer any more, it is taken back."""
        is_gone = threading.Event()

        def take() -> bool:
            taken = self.take(request)
            if taken and is_gone.is_set():
                self.untake(request)
            return taken

        future = asyncio.get_running_loop().run_in_executor(None, take)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            is_gone.set()
            if future.done() and not future.cancelled() and future.result():
                self.untake(request)
            raise

    @property
    def _is_awaited(self) -> bool:
        """Whether anything under way may still give something back."""
        shared = (self.purse.limit, self.tokens)
        return (
            bool(self._taken)
            or self._recording.is_writing
            or any(one is not None and one.is_awaited for one in shared)
        )

    def settle(self, reply: Reply) -> Settled:
        """Give back what a reply did not cost; call :meth:`forget` once its write is under way.

        What was set aside for tries that the server may bill, and never said what for, stays counted.
        """
        taken = self._taken.get(reply.work_key, _Taken(0.0, 0))
        before = self._lost_tries[reply.work_key]
        if reply.status == "timeout" or reply.unsettled_tries > before:
            self._lose(taken)
            return Settled(0.0 if self.price.is_free else None, 0.0)
        cost = self._cost(reply, taken.most)
        if taken.told > 0:
            self.dearest = max(self.dearest, cost / taken.told)
        if self.tokens is not None:
            self.tokens.give_back(taken.count, self._used(reply, taken.count))
        back = self.purse.give_back(taken.most, cost)
        is_unknown = before and reply.status == "error" and not self.price.is_free
        return Settled(None if is_unknown else cost, back)

    def forget(self, reply: Reply) -> None:
        """Know that what was set aside for a request is settled."""
        self._taken.pop(reply.work_key, None)
        self._lost_tries.pop(reply.work_key, None)

    def end(self) -> None:
        """Know that nothing is under way: what was set aside for requests that never came back stays counted."""
        for taken in list(self._taken.values()):
            self._lose(taken)
        self._taken.clear()
        self._lost_tries.clear()

    def _lose(self, taken: _Taken) -> None:
        self.purse.lose(taken.most)
        if self.tokens is not None:
            self.tokens.give_back(taken.count, taken.count)

    def _cost(self, reply: Reply, most: float) -> float:
        """Return what a reply cost; the most it can have cost where the server did not count."""
        if self.price.is_free or reply.from_cache or reply.status == "error":
            return 0.0
        known = reply.cost_usd if reply.cost_usd is not None else self.price.of(reply)
        return most if known is None else known

    def _used(self, reply: Reply, count: int) -> int:
        if reply.from_cache:
            return 0
        if reply.prompt_tokens is not None and reply.completion_tokens is not None:
            return reply.prompt_tokens + reply.completion_tokens
        return 0 if reply.status == "error" else count
