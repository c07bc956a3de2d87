"""One server per study: a second ``wrods serve`` is refused with the details of the first.

With an SQLite store the claim is a locked file, which the operating system frees however the process ends; two servers on one
file would each have a separate memory of which tab holds which session. With PostgreSQL several servers may share a study, on
one or more computers, if all have the same signing key, so that they accept each other's signatures. There the claim is an
advisory lock per study and key, shared by servers with the same key, and it has its own connection.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from experiment.models.leases import file_lock
from experiment.store.database import SQL, lock_for_change, make_engine
from stimuli.errors import UserError
from stimuli.files import replace_file

RENEW_S = 10.0
ENDING_S = 2.0  # how long PostgreSQL may still show the connection of a server that has ended
Announce = Callable[[str], None]


@contextmanager
def serving(address: URL, study: str, secret: bytes) -> Iterator[Announce]:
    """Hold the right to serve a study until the block or the process ends."""
    if address.get_backend_name() == "sqlite":
        with _locked_file(Path(address.database or ""), study) as announce:
            yield announce
    else:
        with _shared_lock(address, study, secret):
            yield lambda where: None


@contextmanager
def _locked_file(store: Path, study: str) -> Iterator[Announce]:
    about = store.with_name(f"{store.name}.serving-{study}.json")
    since = f"{datetime.now(UTC):%d %B %Y, %H:%M} UTC"
    mine = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    with file_lock(about.with_suffix(".lock"), _served(study, _read(about))):
        try:
            replace_file(about, json.dumps(mine), is_private=True)
            yield lambda where: replace_file(about, json.dumps(mine | {"at": where}), is_private=True)
        finally:
            about.unlink(missing_ok=True)


def _read(about: Path) -> dict[str, Any]:
    """Return the details of the server that holds the lock; empty while it is starting."""
    try:
        details = json.loads(about.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return details if isinstance(details, dict) else {}


def _served(study: str, by: dict[str, Any]) -> UserError:
    who = f"process {by['pid']} on {by['host']} since {by['since']}" if "pid" in by else "another process"
    where = f" at {by['at']}" if "at" in by else ""
    return UserError(
        f"{study} is already being served by {who}{where}",
        mend="Use that server, or stop it first (Ctrl-C in its window).",
        exit_code=1,
    )


@contextmanager
def _shared_lock(address: URL, study: str, secret: bytes) -> Iterator[None]:
    claim = _SharedClaim(address, study, secret)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            claim.renew()

    keeper = threading.Thread(target=renew, name="wrods-serving", daemon=True)
    try:
        claim.take()
        keeper.start()
        yield
    finally:
        ended.set()
        if keeper.is_alive():
            keeper.join(timeout=RENEW_S)
        claim.close()


class _SharedClaim:
    """A shared advisory lock and its connection."""

    def __init__(self, address: URL, study: str, secret: bytes) -> None:
        name = f"wrods serve on {socket.gethostname()[:24]}, process {os.getpid()}"
        self._engine: Engine = make_engine(
            address.update_query_dict({"application_name": name}), read_only=False
        )
        self._connection: Connection | None = None
        self._study = study
        self._keys = {
            "study": _number(b"serving\0" + study.encode()),
            "key": _number(b"signing key\0" + secret),
        }

    def take(self) -> None:
        """Take the lock, unless a server with another key has the study; wait briefly for one that has just ended."""
        patience = time.monotonic() + ENDING_S
        while time.monotonic() < patience:
            try:
                return self._try()
            except UserError:
                time.sleep(0.1)
        self._try()

    def _try(self) -> None:
        connection = self._engine.connect()
        try:
            with connection.begin():
                lock_for_change(connection)  # of two that start at once, the second sees the first
                other = connection.execute(SQL["other_servers"], self._keys).first()
                if other is not None:
                    raise UserError(
                        f"{self._study} is already being served from this database with another signing key: by "
                        f"{other.application_name}, since {other.backend_start.astimezone(UTC):%d %B %Y, %H:%M} UTC",
                        mend="Give all servers of a study the same signing key (WRODS_SECRET, or secret under [serve] in "
                        "config.toml), or stop the other one.",
                        exit_code=1,
                    )
                taken = text("SELECT pg_advisory_lock_shared(CAST(:study AS integer), CAST(:key AS integer))")
                connection.execute(taken, self._keys)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def renew(self) -> None:
        """Take the lock again if its connection broke; other servers continue meanwhile."""
        try:
            if self._connection is not None:
                with self._connection.begin():
                    self._connection.execute(text("SELECT 1"))
                return
        except DBAPIError:
            self.close()
        try:
            self.take()
        except (DBAPIError, UserError):
            return

    def close(self) -> None:
        """Release the lock: it ends with its connection."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
        self._connection = None
        self._engine.dispose()


def _number(of: bytes) -> int:
    """Return a 31-bit number for a lock's key, which is the same signed and unsigned."""
    return int.from_bytes(hashlib.sha256(of).digest()[:4]) & 0x7FFFFFFF
