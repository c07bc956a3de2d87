"""Formats durations: seconds below 90 seconds, minutes below 90 minutes, hours from there on."""

from __future__ import annotations


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
