"""The store as its users see it: one writer, many readers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from experiment.store.damage import WITHIN_S, check_file, damaged, is_damage
from experiment.store.database import address_of, make_engine
from experiment.store.errors import DamagedStore, StoreError, cannot_open
from experiment.store.upgrade import upgrade
from experiment.store.writer import Writer

T = TypeVar("T")

SERVE_GROUP_MS = 5.0
RUN_GROUP_MS = 250.0


class Store:
    """A study's database: writes go through one thread, reads stand beside it.

    Use :func:`open_store` to make one; it closes itself as a context manager.
    """

    def __init__(self, writing: Engine, reading: Engine, *, group_ms: float, is_checked: bool = True) -> None:
        self._writing = writing
        self._reading = reading
        self._writer = Writer(writing, group_ms=group_ms)
        self._is_checked = is_checked
        self._unread: StoreError | None = None

    @property
    def path(self) -> Path | None:
        """The SQLite file, or None for another database."""
        return Path(self._writing.url.database or "") if self._writing.dialect.name == "sqlite" else None

    @property
    def address(self) -> URL:
        """Where the database is."""
        return self._writing.url

    def write(self, operation: Callable[[Connection], T]) -> Future[T]:
        """Queue an operation for the writer."""
        return self._writer.submit(operation)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a read-only connection that sees one moment of the database."""
        if isinstance(self.trouble, DamagedStore):
            raise self.trouble.again()
        try:
            with self._reading.connect() as connection, connection.begin():
                yield connection
        except DBAPIError as error:
            if not (is_damage(error) or isinstance(error, OperationalError | InterfaceError)):
                raise
            raise self._read_failed(error) from error
        self._unread = None

    def _read_failed(self, error: DBAPIError) -> StoreError:
        self._unread = self._writer.as_store_error(error)
        return self._unread

    @property
    def trouble(self) -> StoreError | None:
        """Why the database could not be used when it was last tried; None while it works. Damage stays until a restart."""
        return self._writer.trouble or self._unread

    @property
    def is_checked(self) -> bool:
        """Return whether the whole file was read for damage: opening a large one does not wait for the end of it."""
        return self._is_checked

    def check(self) -> None:
        """Read the whole file for damage, however long it takes; what is found is the store's :attr:`trouble`."""
        if self.path is not None:
            try:
                check_file(self.path, within_s=None)
            except DamagedStore as error:
                self._writer.as_store_error(error)
        self._is_checked = True

    def close(self) -> None:
        """Write what is queued and let go of the database; may be called twice."""
        self._writer.close()
        self._reading.dispose()
        self._writing.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(target: Path | str, *, group_ms: float = SERVE_GROUP_MS) -> Store:
    """Open a study's store, making or upgrading its tables first.

    Parameters
    ----------
    target : Path or str
        The study folder (its ``study.db``), a database file, or a ``postgresql://`` address.
    group_ms : float
        How long a write waits for others to share a commit, milliseconds: short where people wait,
        longer for runs.

    Raises
    ------
    UserError
        The folder is missing, synced or on a network; the database is newer than this program or
        another's; the file is damaged or no database (the error names the newest sound backup); the
        PostgreSQL driver is missing or its server does not answer.
    """
    address = address_of(target)
    file = Path(address.database or "") if address.get_backend_name() == "sqlite" else None
    is_checked = file is None or check_file(file, within_s=WITHIN_S)
    writing = make_engine(address)
    try:
        upgrade(writing)
        reading = make_engine(address, read_only=True)
        return Store(writing, reading, group_ms=group_ms, is_checked=is_checked)
    except (DBAPIError, sqlite3.Error) as error:
        writing.dispose()
        if file is not None and is_damage(error):
            raise damaged(file, str(getattr(error, "orig", error))) from error
        raise cannot_open(address, error) from error
    except BaseException:
        writing.dispose()
        raise
