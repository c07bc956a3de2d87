"""Limit on the number of requests in flight at a server, which grows while requests succeed and shrinks after a 429.

A fixed number is too low all night or too high in the first minute, and many retries at once prolong a rate limit. The limiter
uses additive increase and multiplicative decrease, as in TCP.

- A round is as many answers as the limit. While the limit is used, each successful round increases it twofold until the first
  429; after that, each adds a tenth, at least one.
- A burst of 429s shrinks the limit once: later ones to requests sent before the cut carry no new information. The limit
  does not grow until the cooldown ends, which lasts as long as the server asked to wait.
- A waiting request does not count as in flight. If every response is a 429, nothing is sent until the wait is over.
- All models of a run that use the same address and key share one limiter, across threads.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

START = 20
CONCURRENCY = 100
"""Most requests at once, unless the study sets another number."""
COOLDOWN_S = 5.0
CUT = 0.8
SATURATED = 0.8
"""Share of the limit that must be in use for an answer to raise it."""


class Limiter:
    """The limit on requests in flight at one server; thread-safe."""

    def __init__(
        self, *, start: int = START, cap: int = CONCURRENCY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.cap = max(1, cap)
        self.limit = max(1, min(start, cap))
        self.in_flight = 0
        self.cuts = 0
        self.most = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._good = 0
        self._is_slow_start = True
        self._cut_at = float("-inf")
        self._calm_from = float("-inf")
        self._held_until = float("-inf")
        self._only_limits = 0
        self._listeners: set[Callable[[], None]] = set()

    def take(self) -> bool:
        """Count a request as in flight if the limit allows it and no pause is in force."""
        with self._lock:
            if self.in_flight >= self.limit or self._clock() < self._held_until:
                return False
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            return True

    def leave(self) -> None:
        """Count a request as finished, and notify other models that wait."""
        with self._lock:
            self.in_flight -= 1
            listeners = tuple(self._listeners) if len(self._listeners) > 1 else ()
        for listener in listeners:
            listener()

    def succeeded(self) -> None:
        """Record an answer, before :meth:`leave` is called for it."""
        with self._lock:
            self._only_limits = 0
            if self.limit >= self.cap or self._clock() < self._calm_from:
                return
            if self.in_flight < SATURATED * self.limit:
                return
            self._good += 1
            if self._good < self.limit:
                return
            self._good = 0
            more = self.limit if self._is_slow_start else max(1, self.limit // 10)
            self.limit = min(self.cap, self.limit + more)

    def limited(self, sent_at: float, after: float | None) -> None:
        """Record a 429 to a request sent at ``sent_at`` (by the same clock); ``after`` is the wait that the server asks for."""
        with self._lock:
            now = self._clock()
            self._good = 0
            self._only_limits += 1
            wait = COOLDOWN_S if after is None else max(COOLDOWN_S, after)
            if self._only_limits > max(3, self.limit) and after:
                self._held_until = max(self._held_until, now + after)
            if sent_at <= self._cut_at or now < self._calm_from:
                self._calm_from = max(self._calm_from, now + (after or 0.0))
                return
            self._is_slow_start = False
            self.cuts += 1
            self._cut_at = now
            self._calm_from = now + wait
            self.limit = max(1, min(int(self.limit * CUT), self.limit - 1))

    def held_for(self) -> float:
        """Return the seconds until requests may be sent again."""
        return max(0.0, self._held_until - self._clock())

    def listen(self, listener: Callable[[], None]) -> None:
        """Register a function to call whenever a request may be sent."""
        with self._lock:
            self._listeners.add(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Unregister a function."""
        with self._lock:
            self._listeners.discard(listener)


_shared: dict[tuple[str, str], Limiter] = {}
_shared_lock = threading.Lock()


def limiter_of(base_url: str, key: str | None, *, start: int, cap: int) -> Limiter:
    """Return the limiter that all models of this run share at one address with one key."""
    name = (base_url.rstrip("/"), hashlib.sha256((key or "").encode()).hexdigest())
    with _shared_lock:
        limiter = _shared.get(name)
        if limiter is None:
            limiter = _shared[name] = Limiter(start=start, cap=cap)
        limiter.cap = max(limiter.cap, cap)
        return limiter
