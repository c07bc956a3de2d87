"""Durations: read as a study writes them (``500 ms``, ``2 min``), and written for sentences, progress bars and tables."""

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


def duration_in_words(seconds: float) -> str:
    """Return a duration of at least one second for a sentence: 40 seconds, 12 minutes, 1.6 hours."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def rough_duration_in_words(seconds: float) -> str:
    """Return a rough duration for a sentence; anything below a minute is ``less than a minute``."""
    return "less than a minute" if seconds < 60 else duration_in_words(seconds)


def short_duration(seconds: float) -> str:
    """Return a duration for a progress bar or a table: 40 s, 12 min, 1.6 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
