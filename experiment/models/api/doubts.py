"""Tells a server that fails with everything from one that fails at some prompts.

Why → a prompt at which a server always fails (500) is set aside with its error and the run goes on; a server that is down is
waited for, and only then ends the run. From the requests that fail alone the two look the same. So where a request is to be given
up and nothing was answered since it was first sent, the server is asked a tiny question: if it answers that, the request is at
fault; if it does not, nothing more is sent until it does, and what failed meanwhile is sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from experiment.models.api.asking import Asking, Refused, Till, Unanswered
from experiment.models.api.probe import questions
from experiment.models.api.retrying import FIRST_TRIES, FIRST_WAIT_S, Retry, RunStopped
from experiment.models.api.surfaces import Speaker
from experiment.models.api.transport import Transport
from experiment.models.api.underway import Underway
from experiment.models.engine import Message, Request

DOWN_S = 600.0
"""How long a server may fail with everything before the run ends."""

LONGEST_WAIT_S = 15.0

MOST_ROUNDS = 3
"""Rounds of tries of one request that met a server which was down, as one that brings the server down would forever."""

Doubtful = tuple[Underway, Retry]
Ask = Callable[[], Awaitable[str | None]]


class Doubts:
    """Requests of which it is not known yet whether they or their server are at fault."""

    def __init__(
        self,
        ask: Ask,
        settle: Callable[[list[Doubtful], bool], None],
        is_over: Callable[[], bool],
        *,
        pace: float,
    ) -> None:
        self._ask, self._settle, self._is_over, self._pace = ask, settle, is_over, pace
        self._held: list[Doubtful] = []
        self.down = ""
        self.due = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, one: Underway, verdict: Retry) -> bool:
        """Hold a request; say whether it is the first, for which the server is to be asked."""
        self._held.append((one, verdict))
        return len(self._held) == 1

    def clear(self) -> None:
        """Hold nothing more."""
        self._held.clear()

    async def find_out(self) -> None:
        """Ask until the server answers."""
        loop = asyncio.get_running_loop()
        began, count = time.monotonic(), 0
        while not self._is_over():
            why = await self._ask()
            if why is None:
                held, self._held = self._held, []
                self.down = ""
                self._settle(held, count > 0)
                return
            self.down = why
            count += 1
            if time.monotonic() - began > DOWN_S or (self._pace == 0 and count > 100 * FIRST_TRIES):
                raise RunStopped(
                    f"the server fails with every request, also with a plain question of a few words: {why}",
                    mend="Look after the server, then give the same command again: it goes on where it stopped.",
                )
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(count, 20)) * self._pace
            self.due = loop.time() + wait
            await asyncio.sleep(wait)


def plain_question(
    transport: Transport, speaker: Speaker, *, key: str | None, timeout: float, till: Till | None
) -> Ask:
    """Return what asks a model the tiny question in the run's own form, paid from a till.

    Where there is no money for it, the server counts as one that answers.
    """
    text = questions()["structure"]["user"]
    wishes = replace(speaker.wishes, label_only=False, whole_labels=False, thinking_tokens=0)
    plain = replace(speaker, wishes=wishes)
    request = Request("health", (Message("user", text),), None, 16, 0.0, 0)

    async def ask() -> str | None:
        asking = Asking(transport, plain, key=key, timeout=timeout, pace=0.0, till=till)
        asking.has_answered = True
        try:
            await asking.ask(request, learns=False, tries=1)
        except Refused:
            return None
        except Unanswered as fault:
            return str(fault)
        except RunStopped:
            if till is None or till.why is None:
                raise
        return None

    return ask
