"""Columns of a table that nothing reads: a misspelt one is refused, others are named."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rapidfuzz.distance import OSA

from stimuli.errors import UserError

MOST_NAMED = 6


def misspelt(column: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from a column by capitals, blanks or a slip of the keyboard; None without one.

    A slip is one letter changed, left out, added or exchanged with its neighbour, two in names of six letters or
    more.
    """
    plain = _plain(column)
    for name in known:
        most = 2 if len(name) >= 6 else 1 if len(name) >= 4 else 0
        if OSA.distance(plain, _plain(name)) <= most:
            return name
    return None


def _plain(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def unread_columns(place: str, columns: Collection[str], known: Collection[str]) -> list[str]:
    """Return what to say of the columns of a table that nothing reads; empty where all are read."""
    unread = [column for column in columns if column and column not in known]
    absent = [name for name in known if name not in columns]
    for column in unread:
        meant = misspelt(column, absent)
        if meant is not None:
            raise UserError(
                f"{place}: column {column!r} is not read; did you mean {meant!r}?",
                mend=f"Call it {meant!r}, or give it a name that is less like it.",
            )
    if not unread:
        return []
    more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
    return [f"columns that are not read: {', '.join(unread[:MOST_NAMED])}{more}"]
