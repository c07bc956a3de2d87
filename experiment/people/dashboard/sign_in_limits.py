"""How often somebody may try to sign in, so that guessing is slow and nobody can keep others out.

Failed tries are counted for each address (IPv6: each /64) and for each account in each network (IPv4 /24, IPv6 /48). A few
are free, then each doubles the wait. An address waits from its own last failed try, and its first is looked at whatever
its network did: guessers slow each other down, and nobody else. No count covers an account or the server as a whole, so
that no stranger can lock either. A browser in which the account signed in before has a count of its own: whoever shares a
guesser's address still gets in.

Passwords are compared by few threads at once, since each comparison takes processor and memory on purpose: of two lanes,
one is for known browsers, so that a flood of strangers cannot fill it. Whoever finds a lane's short queue full is asked
to try again.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from experiment.people.connections import caller_of, network_of

T = TypeVar("T")

FREE_TRIES = 5
FREE_TRIES_OF_NETWORK = 10
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 300.0
FORGET_AFTER_S = 3600.0
"""A count begins again after so long without a failed try."""
MOST_COUNTS = 50_000
LANE_QUEUE = 3
"""Tries that may wait for the one that is compared, in each lane: server threads that a flood can hold."""
LANE_WAIT_S = 5.0


class TooManyTries(Exception):
    """A try to sign in that was not looked at."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"wait {wait_s:.0f} s")
        self.wait_s = wait_s


@dataclass
class _Count:
    failed: int = 0
    latest: float = 0.0


@dataclass(frozen=True)
class Caller:
    """Who tries: an address, and what it tries from which network."""

    address: str
    network: str | None = None


def caller(address: str | None, what: str = "") -> Caller:
    """Return who tries something (an account's password, say) from an address."""
    return Caller(caller_of(address or ""), f"{what}\0{network_of(address or '')}")


class FailedTries:
    """Counts failed tries by caller, and says how long the next one has to wait.

    Counts are kept in memory and by keyed digest; they use a clock that never jumps.
    """

    def __init__(self, free: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = free
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._counts: OrderedDict[bytes, _Count] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, caller: Caller) -> None:
        """Count a try as failed until :meth:`forgive` takes it back."""
        moment = self._clock()
        with self._lock:
            counts = self._counts_of(caller)
            for count in counts:
                if moment - count.latest > FORGET_AFTER_S:
                    count.failed = 0
            own, *shared = counts
            wait = _wait(own.failed - self._free)
            if own.failed:
                wait = max(wait, *(_wait(count.failed - FREE_TRIES_OF_NETWORK) for count in shared), 0.0)
            rest = own.latest + wait - moment
            if rest > 0:
                raise TooManyTries(rest)
            for count in counts:
                count.failed += 1
                count.latest = moment

    def forgive(self, caller: Caller) -> None:
        """Take a counted try back: it was right, or was never looked at."""
        with self._lock:
            for count in self._counts_of(caller):
                count.failed = max(0, count.failed - 1)

    def _counts_of(self, caller: Caller) -> list[_Count]:
        network = [] if caller.network is None else [f"network\0{caller.network}"]
        return [self._count(name) for name in (f"address\0{caller.address}", *network)]

    def _count(self, caller: str) -> _Count:
        key = hmac.digest(self._salt, caller.encode("utf-8", errors="replace"), "sha256")[:16]
        count = self._counts.setdefault(key, _Count())
        self._counts.move_to_end(key)
        while len(self._counts) > MOST_COUNTS:
            self._counts.popitem(last=False)
        return count


def _wait(over: int) -> float:
    return 0.0 if over < 0 else min(FIRST_WAIT_S * 2.0 ** min(over, 30), LONGEST_WAIT_S)


class Lane:
    """Lets one password be compared at a time, and few wait."""

    def __init__(self, queue: int = LANE_QUEUE, wait_s: float = LANE_WAIT_S) -> None:
        self._places = threading.Semaphore(1 + queue)
        self._turn = threading.Semaphore(1)
        self._wait_s = wait_s

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn."""
        if not self._places.acquire(blocking=False):
            raise TooManyTries(self._wait_s)
        try:
            if not self._turn.acquire(timeout=self._wait_s):
                raise TooManyTries(self._wait_s)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()


class SignInLimits:
    """All limits on signing in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._by_address = FailedTries(FREE_TRIES, clock)
        self._by_browser = FailedTries(FREE_TRIES, clock)
        self._codes = FailedTries(FREE_TRIES_OF_NETWORK, clock)
        self._strangers = Lane()
        self._known = Lane()

    def password(
        self, name: str, address: str | None, browser: str | None, compare: Callable[[], T | None]
    ) -> T | None:
        """Compare a password if its turn has come, and return what the comparison gives."""
        lane = self._strangers if browser is None else self._known

        def in_turn() -> T | None:
            with lane.turn():
                return compare()

        return self._counted([self._count_of(name, address, browser)], in_turn)

    def code(
        self, name: str, address: str | None, browser: str | None, compare: Callable[[], T | None]
    ) -> T | None:
        """Compare a code of the second factor, which only those who know the password are asked for.

        A code has six digits, so that its tries are counted for the account as a whole as well. Only somebody who has the
        password can use them up, and a browser known from before has a count of its own.
        """
        counts = [self._count_of(f"code\0{name}", address, browser)]
        return self._counted(
            counts if browser is not None else [*counts, (self._codes, Caller(name))], compare
        )

    def recovery_code(self, name: str, address: str | None, compare: Callable[[], T | None]) -> T | None:
        """Compare a recovery code, which is too long to be guessed: tries at codes elsewhere do not delay it."""
        by = Caller(f"recovery\0{name}\0{caller(address).address}")
        return self._counted([(self._by_address, by)], compare)

    def _count_of(self, what: str, address: str | None, browser: str | None) -> tuple[FailedTries, Caller]:
        if browser is not None:
            return self._by_browser, Caller(browser)
        return self._by_address, caller(address, what)

    def _counted(self, counts: list[tuple[FailedTries, Caller]], compare: Callable[[], T | None]) -> T | None:
        """Count a try as failed while it is compared, so that many at once are no more than many one by one."""
        begun: list[tuple[FailedTries, Caller]] = []
        is_wrong = False
        try:
            for tries, by in counts:
                tries.begin(by)
                begun.append((tries, by))
            found = compare()
            is_wrong = found is None
            return found
        finally:
            if not is_wrong:
                for tries, by in begun:
                    tries.forgive(by)
