"""How long something takes, as people say it."""

from __future__ import annotations


def duration_in_words(seconds: float) -> str:
    """Say a number of seconds, one at least, in the unit that fits: 40 seconds, 12 minutes, 1.6 hours."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
