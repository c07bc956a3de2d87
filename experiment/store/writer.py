"""The one thread of a process that writes.

Why: flushing to disk is the slow part of a commit, so operations that arrive together share one; and SQLite
has one writer at a time anyway. An operation is a function of a connection. Operations wait in a queue; the
thread opens a transaction (``BEGIN IMMEDIATE``), runs each inside a savepoint, commits, and only then
answers the futures. What was answered is on disk.

Faults: an operation's own exception undoes its savepoint and goes to its future. When the database itself
fails (disk full, commit refused, connection lost) the whole batch is undone and tried again one operation a
transaction, so that one bad row cannot take others with it; what fails then reaches its waiter as a
:class:`StoreError`. When not even a transaction can be begun, every waiter of the batch is told at once.
The thread itself goes on. An operation may therefore run more than once, and must not keep anything outside
the database. Once the file is found to be damaged, nothing more is written to it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from experiment.store.damage import damaged, is_damage
from experiment.store.errors import DamagedStore, Refused, StoreError
from experiment.store.statements import Prepared, drop_put_off

T = TypeVar("T")
LARGEST_BATCH = 256


@dataclass(frozen=True)
class _Waiting(Generic[T]):
    operation: Callable[[Connection], T]
    future: Future[T]
    since: float  # seconds of the monotonic clock


@dataclass(frozen=True)
class _Outcome:
    """What an operation came to, kept until the commit makes it true."""

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
    """Run operations in one thread, a group of them a commit."""

    def __init__(self, engine: Engine, *, group_ms: float) -> None:
        self._engine = engine
        self._group_s = group_ms / 1000
        # not a SimpleQueue: its get() with a time limit may wait for ever where a loaded machine takes the processor away in
        # mid-call (it begins to wait again with what is left of the limit, and a negative rest means no limit; Python 3.11)
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
        """Why the database took nothing when it was last asked; None while it works. Damage stays."""
        return self._damage or self._failure

    def as_store_error(self, error: BaseException | None) -> StoreError:
        """Return a failure of the database as an error that users understand; damage is remembered."""
        if self._damage is not None:
            return self._damage.again()
        if isinstance(error, StoreError):
            told = error
        elif is_damage(error):
            told = damaged(Path(self._engine.url.database or ""), _words(error))
        else:
            told = _as_store_error(error)
        if isinstance(told, DamagedStore):
            self._damage = told
        return told

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
                # what is queued already is taken even when the time is over
                wait = None if deadline is None else max(0.0, deadline - time.monotonic())
                waiting = self._queue.get(timeout=wait) if wait != 0 else self._queue.get_nowait()
            except queue.Empty:
                break
            if waiting is None:
                return batch, False
            if waiting.future.set_running_or_notify_cancel():
                batch.append(waiting)
                # what waited while the group before was written waits no longer
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
            told = self._failed(failure.__cause__)
            for waiting in batch:
                waiting.future.set_exception(told)
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
        told = self.as_store_error(error)
        if not isinstance(error, DBAPIError) or isinstance(error, OperationalError | InterfaceError):
            self._failure = told
        told.__cause__ = error
        return told

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
    """Leave no transaction open; a connection that cannot even roll back is thrown away."""
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
    except Refused as refusal:
        _to_savepoint(connection)
        with connection.begin_nested():
            refusal.leave_trace(connection)
        return _Outcome(error=refusal)
    except DBAPIError as error:
        if not isinstance(error, IntegrityError):
            raise
        _to_savepoint(connection)
        return _Outcome(error=error)
    except Exception as error:
        _to_savepoint(connection)
        return _Outcome(error=error)
    return _Outcome(value)


def _to_savepoint(connection: Connection) -> None:
    drop_put_off(connection, but=_SAVEPOINT)
    _BACK.execute(connection, {})
    _RELEASE.execute(connection, {})


def _said(words: str) -> Prepared:
    return Prepared(lambda _: text(words))


_SAVEPOINT = _said("SAVEPOINT an_operation")
_BACK = _said("ROLLBACK TO SAVEPOINT an_operation")
_RELEASE = _said("RELEASE SAVEPOINT an_operation")


def _words(error: BaseException | None) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).strip() or type(cause).__name__


def _as_store_error(error: BaseException | None) -> StoreError:
    text = _words(error)
    if "full" in text:
        mend = "Free some space on the disk that holds the study; nothing that was confirmed is lost."
    elif "locked" in text or "busy" in text:
        mend = "Another program holds the database; close it and try again."
    else:
        mend = "Nothing that was confirmed is lost; try again when the database is back."
    return StoreError(f"the store could not be used: {text}", mend=mend)
