"""How long something takes, as people say it: seconds, from a minute and a half on minutes, from an hour and a half on hours."""

from __future__ import annotations


def duration_in_words(seconds: float) -> str:
    """Say a duration inside a sentence, one second at least: 40 seconds, 12 minutes, 1.6 hours."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def rough_duration_in_words(seconds: float) -> str:
    """Say a duration of which little is known: what is below a minute is said to be no more than that."""
    return "less than a minute" if seconds < 60 else duration_in_words(seconds)


def short_duration(seconds: float) -> str:
    """Say a duration beside a bar or in a table: 40 s, 12 min, 1.6 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
