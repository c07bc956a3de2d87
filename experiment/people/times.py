"""Checks that the times of a trial agree with each other before they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TOLERANCE_MS = 1.0
SUSPECT = "suspect"


def response_time(body: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return a trial's response time in milliseconds, and why its times are to be doubted, if they are.

    The stamps are the page's raw clock; where they deny the response time that was sent, it is computed from them. A
    trial with doubtful times is still a trial: nothing is refused.
    """
    rt, onset, response = (body.get(name) for name in ("rt", "onset_ts", "response_ts"))
    reasons = []
    if rt is not None and onset is not None and response is not None:
        between = response - onset
        if abs(rt - between) > TOLERANCE_MS:
            reasons.append(f"rt was sent as {rt} ms; from onset to response it is {between:.1f} ms")
            rt = between
    if rt is not None and rt < 0:
        reasons.append(f"rt is negative ({rt:.1f} ms)")
    reading_time = body.get("reading_time")
    if reading_time is not None and reading_time < 0:
        reasons.append(f"reading_time is negative ({reading_time:.1f} ms)")
    return rt, "; ".join(reasons) or None
