"""What can go wrong in the store, each with a class of its own so that callers answer it rightly."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError

from stimuli.errors import UserError

HELD = ("SQLITE_BUSY", "SQLITE_LOCKED")


class StoreError(UserError):
    """The database did not take a write: disk full, locked for too long, or out of reach.

    Nothing of the operation was stored; the same operation may be tried again.
    """

    def __init__(self, message: str, *, mend: str | None = None) -> None:
        super().__init__(message, mend=mend, exit_code=1)


class DamagedStore(StoreError):
    """The database file is damaged: nothing more is read from it or written to it, and a backup has to be restored."""

    def again(self) -> DamagedStore:
        """Return the same error for somebody else who meets it."""
        return DamagedStore(self.message, mend=self.mend)


class Refused(Exception):
    """An operation that stores nothing but leaves a trace.

    The writer undoes the operation, then calls :meth:`leave_trace` in the same transaction, and hands the
    exception to the waiter after the commit.
    """

    def leave_trace(self, connection: Connection) -> None:
        """Write what is to be remembered of the refused operation; by default nothing."""


class SessionGone(Exception):
    """There is no such session, or it was withdrawn."""


def cannot_open(address: URL, error: DBAPIError | sqlite3.Error) -> UserError:
    """Say why a store could not be opened and what to do; an address is named without its password."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    said = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if address.get_backend_name() != "sqlite":
        return _server_fails(address, said)
    file = Path(address.database or "")
    name = getattr(cause, "sqlite_errorname", None) or ""
    if name.startswith(HELD):
        mend = "Another program holds it; close that and try again."
    else:
        mend = "Check that the folder may be written and that the disk is not full."
    return UserError(f"{file} could not be opened: {said}", mend=mend, exit_code=1)


def _server_fails(address: URL, said: str) -> UserError:
    secrets = [
        str(address.password or ""),
        *(str(address.query.get(n, "")) for n in ("password", "sslpassword")),
    ]
    for secret in filter(None, secrets):
        said = said.replace(secret, "***")
    place = f"{address.host or 'this computer'}" + (f":{address.port}" if address.port else "")
    return UserError(
        f"the store's database {address.database or ''!r} at {place} could not be opened: {said}",
        mend="Check that the database server runs and that the address is right (WRODS_STORE, or store in config.toml).",
        exit_code=1,
    )
