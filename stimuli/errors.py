"""Errors that users can correct; every package raises them, and the command line prints them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class UserError(Exception):
    """Error in the user's input, with the value, the rule and the remedy; never shown with a traceback.

    Parameters
    ----------
    message : str
        The value and the rule that it breaks, in one sentence.
    mend : str, optional
        The remedy.
    exit_code : int
        2 for wrong use or bad input (default), 1 where the work itself failed.
    """

    def __init__(self, message: str, *, mend: str | None = None, exit_code: int = 2) -> None:
        super().__init__(message if mend is None else f"{message}\n  {mend}")
        self.message = message
        self.mend = mend
        self.exit_code = exit_code


def together(faults: Sequence[UserError], most: int = 20) -> UserError:
    """Return one error for several, each with its remedy; after the first ``most``, only their number."""
    if len(faults) == 1:
        return faults[0]
    more = [f"… and {len(faults) - most} more."] if len(faults) > most else []
    return UserError(
        "\n".join([*map(str, faults[:most]), *more]), exit_code=max(fault.exit_code for fault in faults)
    )


def reason_of(error: Exception) -> str:
    """Return the reason for a failure, for use inside a sentence: without remedy and full stop."""
    return (error.message if isinstance(error, UserError) else str(error)).rstrip(". ")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name closest to a misspelt one, or None if none has a likeness of at least ``cutoff`` (0 to 1)."""
    options = list(known)
    matches = difflib.get_close_matches(name.lower(), [o.lower() for o in options], n=1, cutoff=cutoff)
    return next((o for o in options if o.lower() == matches[0]), None) if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that begins a remedy, followed by a space; empty if no known name is similar."""
    close = nearest(name, known)
    return f"Did you mean {close!r}? " if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for an unknown name, with the nearest valid name."""
    options = sorted(known)
    hint = did_you_mean(name, options)
    return UserError(f"{kind} {name!r} is not known", mend=f"{hint}Known: {', '.join(options)}.")


def error_at(place: str, problem: str, remedy: str, given: str = "", known: Iterable[str] = ()) -> UserError:
    """Return the error for a setting: ``problem`` follows the place; ``given`` may misspell one of the known names."""
    hint = did_you_mean(given, known) if given else ""
    return UserError(f"{place}{problem}", mend=f"{hint}{remedy}")


def missing_column(where: str, column: str, there: Iterable[str]) -> UserError:
    """Return the error for a row that lacks a column, with the nearest existing column."""
    columns = [name for name in there if not name.startswith("[")]  # those in brackets are ours
    hint = did_you_mean(column, columns)
    return UserError(
        f"{where}: column {column!r} is missing", mend=f"{hint}Columns there: {', '.join(columns)}."
    )
