"""Threads that answer requests, shared fairly: callers take turns, and none has all threads at once."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
THREADS = 32
THREADS_A_CALLER = 24
WAITING_A_CALLER = 1_000

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", str]


class TooManyWaiting(Exception):
    """A caller has more requests waiting than the queue holds."""


class Workers:
    """The threads that work for one event loop.

    All but :meth:`_work` runs in the loop's thread, so that nothing here needs a lock.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._taken: queue.Queue[_Job | None] = queue.Queue()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._busy: dict[str, int] = {}
        self._free = THREADS
        self._threads = [
            threading.Thread(target=self._work, name=f"wrods-worker-{number}", daemon=True)
            for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """Run a piece of work for a caller in one of the threads."""
        future: asyncio.Future[T] = self._loop.create_future()
        waiting = self._waiting.get(caller)
        if waiting is None:
            waiting = self._waiting[caller] = deque()
        elif len(waiting) >= WAITING_A_CALLER:
            raise TooManyWaiting
        waiting.append((work, future, caller))
        self._give_out()
        return await future

    def close(self) -> None:
        """End the threads, each after what it is at; nobody waits for those that take long."""
        for _ in self._threads:
            self._taken.put(None)

    def _give_out(self) -> None:
        passed = 0
        while self._free and passed < len(self._waiting):
            caller, waiting = next(iter(self._waiting.items()))
            self._waiting.move_to_end(caller)
            if self._busy.get(caller, 0) >= THREADS_A_CALLER:
                passed += 1
                continue
            passed = 0
            job = waiting.popleft()
            if not waiting:
                del self._waiting[caller]
            self._free -= 1
            self._busy[caller] = self._busy.get(caller, 0) + 1
            self._taken.put(job)

    def _work(self) -> None:
        while (job := self._taken.get()) is not None:
            work, future, caller = job
            try:
                told: tuple[Any, BaseException | None] = work(), None
            except BaseException as error:  # whatever it is, it belongs to whoever waits
                told = None, error
            try:
                self._loop.call_soon_threadsafe(self._done, future, caller, *told)
            except RuntimeError:  # the loop has ended, and nobody waits any more
                return
            del job, work, future, told

    def _done(
        self, future: asyncio.Future[Any], caller: str, value: Any, error: BaseException | None
    ) -> None:
        self._free += 1
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
        self._give_out()
