"""Durations in a study: ``500 ms``, ``10 s``, ``2 min``."""

from __future__ import annotations

import re

HOUR = 3_600_000
MILLISECONDS = {
    "ms": 1,
    "s": 1000,
    "min": 60_000,
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), 24 * HOUR),
}
DURATION = re.compile(r"([0-9.]+) ?(ms|s|min|h(?:ours?)?|d(?:ays?)?)")


def milliseconds(text: str) -> int:
    """Return the milliseconds of a duration, such as 10000 for ``10 s``."""
    match = DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no duration")
    return round(float(match[1]) * MILLISECONDS[match[2]])
