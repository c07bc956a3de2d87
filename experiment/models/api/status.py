"""What is going on at a server, for the progress bar."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """What the progress bar says."""

    in_flight: int = 0  # requests under way, and places at the server now
    limit: int = 0
    queued: int = 0  # requests ready to go, and those that wait for their next try
    waiting: int = 0
    # when the next of these goes, in seconds since the epoch; None where nothing waits
    waiting_until: float | None = None
    why: str | None = None  # why it waits
    last_error: str | None = None  # the last failure of all
    retries: int = 0  # tries after the first, all tries, and requests that came to an end
    sent: int = 0
    answered: int = 0

    def __str__(self) -> str:
        text = f"{self.in_flight} of {self.limit} at once"
        if self.waiting_until is not None:
            at = time.strftime("%H:%M:%S", time.localtime(self.waiting_until))
            text += f", {self.waiting} waiting until {at}: {self.why}"
        return text + (f", {self.retries} tried again" if self.retries else "")
