"""The store: one writer, many readers.

One thread of a process writes. Flushing to disk is the slow part of a commit, so operations that arrive together share one; and
SQLite has one writer at a time anyway. An operation is a function of a connection. Operations wait in a queue; the thread opens
a transaction (``BEGIN IMMEDIATE``), runs each inside a savepoint, commits, and only then resolves the futures. Confirmed data
are on disk.

Faults: an operation's own exception undoes its savepoint and is set on its future. If the database itself fails (disk full,
commit refused, connection lost), the whole batch is undone and retried with one operation per transaction, so that one bad row
does not affect others; an operation that fails then gets a :class:`StoreError`. If not even a transaction can be begun, every
waiter of the batch gets the error at once. The thread continues. An operation may therefore run more than once, and must not
store anything outside the database. After the file is found to be damaged, nothing more is written to it.

A damaged SQLite file is detected before anyone reads or writes it, and the error names the backup to restore.
"""

from __future__ import annotations

import queue
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from sqlalchemy import URL, Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from experiment.store.backups import FOLDER
from experiment.store.damage import WITHIN_S, check_file, damaged, unreadable_json
from experiment.store.database import (
    DamagedStore,
    RefusedOperation,
    StoreError,
    UnreadableJson,
    address_of,
    cannot_open,
    is_damage,
    is_sqlite,
    lock_for_change,
    make_engine,
)
from experiment.store.erasure import clean_tombstones, note_due
from experiment.store.statements import PreparedStatement, drop_put_off
from experiment.store.tables import LATEST_REVISION, metadata
from stimuli.errors import UserError

T = TypeVar("T")


LARGEST_BATCH = 256


@dataclass(frozen=True)
class _Waiting(Generic[T]):
    operation: Callable[[Connection], T]
    future: Future[T]
    since: float  # seconds of the monotonic clock


@dataclass(frozen=True)
class _Outcome:
    """The result of an operation, held until the commit."""

    value: Any = None
    error: BaseException | None = None

    def tell(self, future: Future[Any]) -> None:
        if self.error is None:
            future.set_result(self.value)
        else:
            future.set_exception(self.error)


class _DatabaseFailed(Exception):
    """The transaction is lost, not only one operation."""


class Writer:
    """Runs operations in one thread, with one commit per group."""

    def __init__(self, engine: Engine, *, group_ms: float) -> None:
        self._engine = engine
        self._group_s = group_ms / 1000
        # not a SimpleQueue: its get() with a timeout may wait forever if a loaded machine preempts the call (it waits again for
        # the rest of the timeout, and a negative rest means no timeout; Python 3.11)
        self._queue: queue.Queue[_Waiting[Any] | None] = queue.Queue()
        self._closing = False
        self._gate = threading.Lock()
        self._damage: DamagedStore | None = None
        self._failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="wrods-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Callable[[Connection], T]) -> Future[T]:
        """Queue an operation; its future is done after the commit."""
        waiting = _Waiting(operation, Future[T](), time.monotonic())
        with self._gate:
            if self._closing:
                raise StoreError("the store is closed", mend="Open it again.")
            self._queue.put(waiting)
        return waiting.future

    def close(self) -> None:
        """Write what is queued, then stop the thread."""
        with self._gate:
            if not self._closing:
                self._closing = True
                self._queue.put(None)
        self._thread.join()

    @property
    def trouble(self) -> StoreError | None:
        """Why the database last accepted nothing; None while it works. Damage is permanent."""
        return self._damage or self._failure

    def as_store_error(self, error: BaseException | None) -> StoreError:
        """Return a database failure as an error that users understand; damage is remembered."""
        if self._damage is not None:
            return self._damage.again()
        if isinstance(error, StoreError):
            store_error = error
        elif is_damage(error):
            store_error = damaged(Path(self._engine.url.database or ""), _words(error))
        else:
            words = _words(error)
            if "full" in words:
                mend = "Free some space on the disk that holds the study; nothing that was confirmed is lost."
            elif "locked" in words or "busy" in words:
                mend = "Another program holds the database; close it and try again."
            else:
                mend = "Nothing that was confirmed is lost; try again when the database is back."
            store_error = StoreError(f"the store could not be used: {words}", mend=mend)
        if isinstance(store_error, DamagedStore):
            self._damage = store_error
        return store_error

    def _work(self) -> None:
        more = True
        while more:
            batch, more = self._next_batch()
            if batch:
                self._write(batch)

    def _next_batch(self) -> tuple[list[_Waiting[Any]], bool]:
        batch: list[_Waiting[Any]] = []
        deadline: float | None = None
        while len(batch) < LARGEST_BATCH:
            try:
                # queued operations are taken even after the deadline
                wait = None if deadline is None else max(0.0, deadline - time.monotonic())
                waiting = self._queue.get(timeout=wait) if wait != 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if waiting is None:
                return batch, False
            if waiting.future.set_running_or_notify_cancel():
                batch.append(waiting)
                # operations that waited while the previous group was written wait no longer
                deadline = deadline or waiting.since + self._group_s
        return batch, True

    def _write(self, batch: list[_Waiting[Any]]) -> None:
        if self._damage is not None:
            for waiting in batch:
                waiting.future.set_exception(self._damage.again())
            return
        try:
            outcomes = self._commit(batch)
        except _CannotBegin as failure:
            store_error = self._failed(failure.__cause__)
            for waiting in batch:
                waiting.future.set_exception(store_error)
            return
        except _DatabaseFailed as failure:
            if len(batch) == 1:
                batch[0].future.set_exception(self._failed(failure.__cause__))
                return
            for waiting in batch:
                self._write([waiting])
            return
        self._failure = None
        for waiting, outcome in zip(batch, outcomes, strict=True):
            outcome.tell(waiting.future)

    def _failed(self, error: BaseException | None) -> StoreError:
        store_error = self.as_store_error(error)
        if not isinstance(error, DBAPIError) or isinstance(error, OperationalError | InterfaceError):
            self._failure = store_error
        store_error.__cause__ = error
        return store_error

    def _commit(self, batch: list[_Waiting[Any]]) -> list[_Outcome]:
        try:
            connection = self._engine.connect()
        except Exception as error:
            raise _CannotBegin from error
        try:
            try:
                transaction = connection.begin()
            except Exception as error:
                raise _CannotBegin from error
            try:
                outcomes = [_run(connection, waiting.operation) for waiting in batch]
                transaction.commit()
            except SQLAlchemyError as error:
                raise _DatabaseFailed from error
            finally:
                _undo(connection)
            return outcomes
        finally:
            connection.close()


class _CannotBegin(Exception):
    """No transaction could be opened."""


def _undo(connection: Connection) -> None:
    """End any open transaction; discard a connection that cannot even roll back."""
    if not connection.in_transaction():
        return
    try:
        connection.rollback()
    except SQLAlchemyError:
        connection.invalidate()


def _run(connection: Connection, operation: Callable[[Connection], Any]) -> _Outcome:
    _SAVEPOINT.put_off(connection, {})
    try:
        value = operation(connection)
        _RELEASE.execute(connection, {})
    except RefusedOperation as refusal:
        _to_savepoint(connection)
        with connection.begin_nested():
            refusal.leave_trace(connection)
        return _Outcome(error=refusal)
    except UnreadableJson:
        _to_savepoint(connection)
        return _Outcome(error=unreadable_json(connection.engine.url))
    except Exception as error:
        if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError):
            raise
        _to_savepoint(connection)
        return _Outcome(error=error)
    return _Outcome(value)


def _to_savepoint(connection: Connection) -> None:
    drop_put_off(connection, but=_SAVEPOINT)
    _BACK.execute(connection, {})
    _RELEASE.execute(connection, {})


def _said(words: str) -> PreparedStatement:
    return PreparedStatement(lambda _: text(words))


_SAVEPOINT = _said("SAVEPOINT an_operation")
_BACK = _said("ROLLBACK TO SAVEPOINT an_operation")
_RELEASE = _said("RELEASE SAVEPOINT an_operation")


def _words(error: BaseException | None) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).strip() or type(cause).__name__


MIGRATIONS = Path(__file__).parent / "migrations"


def revision_of(connection: Connection) -> str | None:
    """Return the migration revision of a database, or None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def upgrade(engine: Engine, *, scripts: Path = MIGRATIONS, latest: str = LATEST_REVISION) -> Path | None:
    """Run the missing migrations of a database, all or none."""
    # only read, so that a store opens while another process holds the lock of writers
    with engine.connect().execution_options(only_reads=True) as connection, connection.begin():
        current = revision_of(connection)
        _refuse_strange(connection, current)
    if current == latest:
        return None
    backup = _back_up(Path(engine.url.database or ""), current) if current and is_sqlite(engine) else None
    with engine.connect() as connection, connection.begin():
        lock_for_change(connection)
        # another process may have upgraded while this one waited for the lock
        if revision_of(connection) != latest:
            _run_migrations(connection, scripts, latest)
    return backup


def _refuse_strange(connection: Connection, current: str | None) -> None:
    if current is not None or not is_sqlite(connection):
        return
    ours = set(metadata.tables)
    strange = sorted(set(inspect(connection).get_table_names()) - ours)
    if strange:
        raise UserError(
            f"{connection.engine.url.database} belongs to something else: it has a table {strange[0]!r}",
            mend="Move that file away; wrods then makes its own.",
        )


def _run_migrations(connection: Connection, scripts: Path, latest: str) -> None:
    # imported here, so that an up-to-date store opens without Alembic
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    # Alembic loads the scripts outside the package, where its modules need not be importable
    config.attributes.update(connection=connection, clean_tombstones=clean_tombstones, note_due=note_due)
    try:
        command.upgrade(config, latest)
    except CommandError as error:
        if "Can't locate revision" not in str(error):
            raise
        raise UserError(
            "this store was written by a newer version of wrods",
            mend="Update wrods (pip install --upgrade wrods); the store was left as it is.",
        ) from error


def _back_up(database: Path, revision: str) -> Path:
    folder = database.parent / FOLDER
    folder.mkdir(exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = folder / f"{database.stem}-{re.sub(r'[^0-9A-Za-z]', '', revision)}-{moment}.db"
    copy.touch(mode=0o600, exist_ok=False)
    source = sqlite3.connect(database)
    destination = sqlite3.connect(copy)
    try:
        source.backup(destination)
    finally:
        destination.close()
        source.close()
    return copy


SERVE_GROUP_MS = 5.0
RUN_GROUP_MS = 250.0


class Store:
    """A study's database: writes go through one thread, reads are independent.

    Use :func:`open_store` to make one; it is a context manager.
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
        """The address of the database."""
        return self._writing.url

    def write(self, operation: Callable[[Connection], T]) -> Future[T]:
        """Queue an operation for the writer."""
        return self._writer.submit(operation)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a read-only connection with a consistent snapshot of the database."""
        if isinstance(self.trouble, DamagedStore):
            raise self.trouble.again()
        try:
            with self._reading.connect() as connection, connection.begin():
                yield connection
        except UnreadableJson as error:
            raise unreadable_json(connection.engine.url) from error
        except DBAPIError as error:
            if not (is_damage(error) or isinstance(error, OperationalError | InterfaceError)):
                raise
            self._unread = self._writer.as_store_error(error)
            raise self._unread from error
        self._unread = None

    @property
    def trouble(self) -> StoreError | None:
        """Why the database last could not be used; None while it works. Damage stays until a restart."""
        return self._writer.trouble or self._unread

    @property
    def is_checked(self) -> bool:
        """Whether the whole file was checked for damage: opening a large one does not wait for it."""
        return self._is_checked

    def check(self) -> None:
        """Check the whole file for damage without a time limit; the result is the store's :attr:`trouble`."""
        if self.path is not None:
            try:
                check_file(self.path, within_s=None)
            except DamagedStore as error:
                self._writer.as_store_error(error)
        self._is_checked = True

    def close(self) -> None:
        """Write what is queued and close the database; may be called twice."""
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
    """Open a study's store, creating or upgrading its tables first.

    Parameters
    ----------
    target : Path or str
        The study folder (its ``study.db``), a database file, or a ``postgresql://`` address.
    group_ms : float
        How long a write waits for others to share a commit, in milliseconds: short while participants wait, longer for runs.

    Raises
    ------
    UserError
        The folder is missing, synced or on a network; the database is newer than this program or belongs to another; the
        file is damaged or not a database (the error names the newest intact backup); the PostgreSQL driver is missing or its
        server does not answer.
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
