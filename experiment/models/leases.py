"""Leases that allow one run of a study's model at a time, so that no trial is sent and paid for twice.

A lease ends with its process. With an SQLite store it is a locked file, which the operating system frees however the process
ends; in PostgreSQL it is an advisory lock with its own connection. If that connection breaks (network down, laptop asleep), the
lock is taken again, unless another run holds it by then.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from experiment.store.database import address_of, make_engine
from stimuli.errors import UserError

LEASE_FILES = "*.db.*.lock"

LOOK_S = 10.0
"""Seconds between checks of a lease in PostgreSQL."""

ATTEMPTS = 20
"""Tries, a tenth of a second apart, for a lock that the server is still freeing from its former connection."""

Lost = Callable[[str], None]


@contextmanager
def leased(
    target: Path | str, study: str, reader: str, *, lost: Lost = lambda why: None, look_s: float = LOOK_S
) -> Iterator[None]:
    """Hold the right to run a model of a study, and release it at the end."""
    address = address_of(target)
    name = hashlib.sha256(f"{study}\0{reader}".encode())
    if address.get_backend_name() == "sqlite":
        store = Path(address.database or "")
        readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", reader)[:60].strip("-.")
        file = store.with_name(f"{store.name}.{readable}-{name.hexdigest()[:8]}.lock")
        holding = file_lock(file, _under_way(reader))
    else:
        key = int.from_bytes(name.digest()[:8], signed=True)
        holding = _advisory_lock(_AdvisoryLock(address, key), reader, lost, look_s)
    with holding:
        yield


@contextmanager
def file_lock(file: Path, taken: UserError) -> Iterator[None]:
    """Hold a locked file, which the operating system frees however the process ends; raise ``taken`` if another process holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(file, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise taken from None
    try:
        yield
    finally:
        lock.release()


_END_HOLDER = text(
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid = :pid AND objsubid = 1 "
    "AND classid::bigint = :high AND objid::bigint = :low"
)


class _AdvisoryLock:
    """A PostgreSQL advisory lock and its connection."""

    def __init__(self, address: URL, key: int) -> None:
        self._engine: Engine = make_engine(address)
        self._connection: Connection | None = None
        self._key = key
        self._high, self._low = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
        self._backend = 0

    def take(self) -> bool:
        """Take the lock on a new connection; return whether it was free."""
        before, self._backend = self._backend, 0
        self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if before:
            # the server may not have noticed yet that our previous connection is gone
            self._connection.execute(_END_HOLDER, {"pid": before, "high": self._high, "low": self._low})
        for attempt in range(ATTEMPTS if before else 1):
            if attempt:
                time.sleep(0.1)
            if self._connection.execute(
                text("SELECT pg_try_advisory_lock(:key)"), {"key": self._key}
            ).scalar():
                self._backend = int(self._connection.scalar(text("SELECT pg_backend_pid()")))
                return True
        return False

    def is_held(self) -> bool:
        """Return whether the lock is still ours; if its connection broke, take it again once the server is back."""
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                return True
        except DBAPIError:
            self._drop()
        backend = self._backend
        try:
            return self.take()
        except DBAPIError:
            self._backend = backend
            return True

    def _drop(self) -> None:
        with suppress(DBAPIError):
            if self._connection is not None:
                self._connection.invalidate()
                self._connection.close()
        self._connection = None
        self._engine.dispose()

    def close(self) -> None:
        """Release the lock by closing its connection."""
        self._drop()


@contextmanager
def _advisory_lock(lock: _AdvisoryLock, reader: str, lost: Lost, look_s: float) -> Iterator[None]:
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(look_s):
            if not lock.is_held():
                lost(f"another run of {reader} began while the database could not be reached")
                return

    keeper = threading.Thread(target=look, name="wrods-lease", daemon=True)
    try:
        if not lock.take():
            raise _under_way(reader)
        keeper.start()
        yield
    finally:
        ended.set()
        if keeper.is_alive():
            keeper.join(timeout=look_s)
        lock.close()


def _under_way(reader: str) -> UserError:
    return UserError(
        f"another run of {reader} is under way in this study",
        mend="Let it end; then the same command asks for what is still missing.",
        exit_code=1,
    )
