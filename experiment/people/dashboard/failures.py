"""Failed tries to sign in: kept in the audit of each study served, so that an owner sees them.

Neither the password nor an unknown name is kept (people type the one into the field of the other), nor the address that
it came from. However many there are, a few lines a minute stand for them: each says how many it counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from experiment.people.access import Throttle
from experiment.store.attendance import stamp
from experiment.store.tables import audit

FAILED = "sign-in failed"
NOBODY = "nobody signed in"
LINES_PER_MINUTE = 10
SHOWN_FOR = timedelta(days=7)


@dataclass(frozen=True)
class Failures:
    """Failed sign-ins of the last week."""

    tries: int
    latest: str | None


class FailedSignIns:
    """Counts failed tries and says which of them get a line in the audit."""

    def __init__(self, lines: Throttle | None = None) -> None:
        self._lines = lines or Throttle(LINES_PER_MINUTE, 60)
        self._lock = threading.Lock()
        self._untold = 0

    def told(self, known_name: str | None, why: str) -> dict[str, Any] | None:
        """Count a try and return the detail of its line, or None where the next line counts it."""
        with self._lock:
            self._untold += 1
            if self._lines.wait(None):
                return None
            tries, self._untold = self._untold, 0
        return {"account": known_name or "unknown name", "why": why, "tries": tries}


def failures(connection: Connection, study: str, clock: Callable[[], datetime] | None = None) -> Failures:
    """Return the failed sign-ins of the last week from a study's audit."""
    since = stamp((clock() if clock else datetime.now(UTC)) - SHOWN_FOR)
    query = select(audit.c.at, audit.c.detail).where(
        audit.c.study == study, audit.c.action == FAILED, audit.c.at >= since
    )
    rows = connection.execute(query.order_by(audit.c.audit_id)).all()
    return Failures(sum(_tries(row.detail) for row in rows), rows[-1].at if rows else None)


def most(found: Iterable[Failures]) -> Failures:
    """Return the failures to show beside several studies, whose audits all hold the same tries."""
    return max(found, key=lambda one: one.tries, default=Failures(0, None))


def _tries(detail: Any) -> int:
    return int((detail or {}).get("tries", 1))
