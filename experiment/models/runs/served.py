"""Watches which model a server of one's own says it is, so that answers of two models never become one reader."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, select

from experiment.models.api.retrying import RunStopped
from experiment.store.queries import excluded_sessions
from experiment.store.tables import calls, sessions


class Served:
    """Holds what a server reports to what it reported before, in the stored answers and in this run."""

    def __init__(self, reader: str, address: str, stored: Callable[[], list[str]]) -> None:
        self._reader = reader
        self._address = address
        self._stored: Callable[[], list[str]] | None = stored
        self._names: set[str] = set()

    def require(self, name: str | None) -> None:
        """Take a name that the server reports; None where it reports none."""
        if name is None or name in self._names:
            return
        if self._stored is not None:
            self._names.update(self._stored())
            self._stored = None
        if not self._names:
            self._names.add(name)
        elif name not in self._names:
            raise RunStopped(
                f"{self._reader} is not what it was: its server at {self._address} reports {name}, and the stored answers are "
                f"of {', '.join(sorted(self._names))}",
                mend="Serve that model again; or give this one another name in the study; or go on in the same sessions with "
                "--if-changed keep_both: the table of calls says which model answered.",
            )


def names_stored(connection: Connection, study: str, reader: str) -> list[str]:
    """Return which models answered a reader's calls by their own account, judges and sessions set aside left out."""
    query = (
        select(calls.c.resolved_model)
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .where(sessions.c.study == study, sessions.c.reader == reader)
        .where(sessions.c.session_id.not_in(excluded_sessions()))
        .where(calls.c.resolved_model.is_not(None), calls.c.purpose != "judge")
        .distinct()
    )
    return list(connection.scalars(query))
