"""The call journal of a study: each request to a model that is sent, and its raw reply, in one SQLite file of the study's folder.

The intent to send a request, with the most that it can cost, is on disk before the request is sent; its raw reply is on disk
before it is parsed. A killed run therefore loses only the calls that were in flight: the next run takes the replies that no
trial has from here. Spending is the sum of what servers counted, and of the most that calls can have cost whose cost is unknown.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, func, insert, select, update

from experiment.models.costs import FREE, Price, Usage
from experiment.models.engine import Reply, Request
from experiment.models.leases import leased
from experiment.store.database import BUSY_TIMEOUT_S, use_wal
from experiment.store.erasure import empty_log
from experiment.store.records import now
from experiment.store.tables import calls, reservations, sessions
from stimuli.audit.findings import counted
from stimuli.errors import UserError
from stimuli.files import overwrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from experiment.store import Store
    from experiment.study import Study

FILE = "call-journal.db"
FORM = 1
EARLIER_CACHE = "answers-cache.db"
"""File of parsed replies in studies of earlier versions; it is not read any more."""

MOST_STORED = 1 << 20
"""Bytes of a compressed reply that are stored: a longer one is of no use to an analysis, and is not taken again."""

COMPRESSED = 4096
"""Length from which a reply is compressed."""

PATIENCE_S = 600.0
"""Seconds that calls wait for a journal that accepts no writes (a full disk) before the run ends."""

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, study TEXT NOT NULL, reader TEXT NOT NULL,
    counted_usd REAL NOT NULL DEFAULT 0, bound_usd REAL NOT NULL DEFAULT 0, open_usd REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS calls (
    call INTEGER PRIMARY KEY, run INTEGER NOT NULL, work_key TEXT NOT NULL, request BLOB, state TEXT NOT NULL,
    most_usd REAL NOT NULL, cost_usd REAL, sent_at REAL NOT NULL, answered_at REAL, took_ms REAL, first_ms REAL
);
CREATE INDEX IF NOT EXISTS calls_request ON calls (request) WHERE request IS NOT NULL;
CREATE TABLE IF NOT EXISTS replies (call INTEGER PRIMARY KEY, body BLOB NOT NULL);
"""

SENT, BATCH, ANSWERED, UNREAD, REFUSED, LOST = "sent", "batch", "answered", "unread", "refused", "lost"
"""States of a call: in flight; in a batch; answered; with a reply that gives no answer; refused (or not sent), which costs
nothing; without a reply.
"""

LOOK_S = 0.05
"""Seconds between tries of a call that waits for money that calls in flight may return."""

NOTHING = Usage(prompt=0, completion=0)
"""The use of a call that a server does not bill."""

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], T]


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The reply to an earlier call."""

    number: int
    body: str
    times: tuple[
        float | None, float | None
    ]  # milliseconds until the whole reply and until its first token, if it was timed


@dataclass(frozen=True)
class Spending:
    """A study's spending, in US dollars; the true amount is between ``spent`` and ``total``."""

    spent: float  # by the token counts of servers
    set_aside: float  # the most that calls in flight and batches that are not collected can cost
    unknown: float  # the most that calls can have cost whose cost no server reported

    @property
    def total(self) -> float:
        """The most that may have been spent so far."""
        return self.spent + self.set_aside + self.unknown


def request_digest(*parts: object, body: bytes) -> bytes:
    """Return the digest by which the same request is found again."""
    digest = hashlib.sha256(body)
    digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    return digest.digest()[:16]


def _unusable(file: Path, why: object) -> UserError:
    return UserError(
        f"{file} cannot be used: {why}",
        mend="It records what calls to models cost, so nothing is sent without it. Restore it from a backup; or move it away: "
        "the next run begins a new one, which knows nothing of calls whose answers are not in the tables.",
        exit_code=1,
    )


def _open(file: Path) -> sqlite3.Connection:
    """Open a journal, which may be new; raise UserError for a file that is none."""
    try:
        connection = sqlite3.connect(
            file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
    except sqlite3.OperationalError as error:
        raise _unusable(file, error) from error
    try:
        (form,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if tables and "calls" not in tables:
            raise _unusable(file, "it is another database")
        if form > FORM:
            raise _unusable(file, f"a later version of wrods wrote it (form {form}; this one reads {FORM})")
        use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        if not form:
            connection.executescript(f"{_TABLES}PRAGMA user_version = {FORM};")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _unusable(file, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _existing(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the journal of a study's folder; None if it has none."""
    file = folder / FILE
    if not file.exists():
        yield None
        return
    with closing(_open(file)) as connection:
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise _unusable(file, error) from error


class Journal:
    """The journal of a study's folder: changes are committed in groups by a separate thread."""

    def __init__(self, folder: Path) -> None:
        self.waits_for: str | None = None  # why the file accepts no writes
        self._file = folder / FILE
        self._connection = _open(self._file)
        self._reading = sqlite3.connect(
            self._file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self._reads = threading.Lock()
        self._changes: queue.Queue[_Change | None] = queue.Queue()
        self._closes = threading.Event()
        self._thread = threading.Thread(target=self._work, name="wrods-journal", daemon=True)
        self._thread.start()

    def write(self, change: Change[T]) -> T:
        """Commit a change and return its result once it is on disk."""
        future: Future[T] = Future()
        self._changes.put(_Change(change, future, None))
        return future.result()

    async def record(self, change: Change[T]) -> T:
        """Do the same while other tasks of the event loop go on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._changes.put(_Change(change, future, loop))
        return await future

    def find(self, request: bytes) -> StoredReply | None:
        """Return the reply to an earlier request that was the same; None if there is none."""
        query = (
            "SELECT call, body, took_ms, first_ms FROM calls JOIN replies USING (call) WHERE request = ? AND state = ? "
            "ORDER BY call DESC LIMIT 1"
        )
        try:
            with self._reads:
                row = self._reading.execute(query, (request, ANSWERED)).fetchone()
        except sqlite3.DatabaseError as error:
            raise _unusable(self._file, error) from error
        if row is None:
            return None
        number, body, *times = row
        text = zlib.decompress(body).decode("utf-8", "surrogatepass") if isinstance(body, bytes) else body
        return StoredReply(number, text, (times[0], times[1]))

    def close(self) -> None:
        """Commit everything and close the file."""
        self._closes.set()
        self._changes.put(None)
        self._thread.join()
        self._reading.close()
        self._connection.close()

    def _work(self) -> None:
        ends = False
        while not ends:
            group = [self._changes.get()]
            with suppress(queue.Empty):
                while True:
                    group.append(self._changes.get_nowait())
            ends = None in group
            changes = [change for change in group if change is not None]
            if changes:
                self._commit(changes)

    def _commit(self, changes: list[_Change]) -> None:
        began, wait = time.monotonic(), 0.1
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for change in changes:
                    change.run(self._connection)
                self._connection.execute("COMMIT")
                break
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self.waits_for = f"{self._file} accepts no writes: {error}"
                # a full disk may have room again; a damaged or write-protected file does not mend itself
                may_pass = isinstance(
                    error, sqlite3.OperationalError
                ) and not error.sqlite_errorname.startswith("SQLITE_READONLY")
                if not may_pass or time.monotonic() - began > PATIENCE_S or self._closes.wait(wait):
                    fault = _unusable(self._file, error)
                    for change in changes:
                        change.result, change.fault = None, fault
                    break
                wait = min(15.0, 2 * wait)
        self.waits_for = None
        by_loop: dict[Any, list[_Change]] = {}
        for change in changes:
            by_loop.setdefault(change.loop, []).append(change)
        for loop, its_changes in by_loop.items():
            if loop is None:
                _tell(its_changes)
            else:
                with suppress(RuntimeError):  # the loop has ended, and nobody waits
                    loop.call_soon_threadsafe(_tell, its_changes)


@dataclass(slots=True)
class _Change:
    change: Callable[[sqlite3.Connection], Any]
    future: Any
    loop: asyncio.AbstractEventLoop | None
    result: Any = None
    fault: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        """Apply the change; an error that is not the database's concerns this change alone."""
        self.fault = None
        try:
            self.result = self.change(connection)
        except sqlite3.Error:
            raise
        except Exception as error:
            self.fault = error


def _tell(changes: Iterable[_Change]) -> None:
    for change in changes:
        if change.future.cancelled():
            continue
        if change.fault is not None:
            change.future.set_exception(change.fault)
        else:
            change.future.set_result(change.result)


# changes of one call and its run


def begin_run(connection: sqlite3.Connection, study: str, run_id: str, reader: str) -> tuple[int, float]:
    """Add a run, and count the open calls of this reader's earlier runs as lost; return its number and their most in US dollars.

    Requests in batches stay open until these are fetched.

    No other run of the reader may be active: the caller holds its lease.
    """
    run = run_number(connection, study, run_id, reader)
    earlier = (
        "SELECT run FROM runs WHERE study = ? AND reader = ? AND run != ? AND open_usd > 0 "
        "AND run_id NOT LIKE 'batch-%'"
    )
    rows = connection.execute(earlier, (study, reader, run)).fetchall()
    return run, sum(close_run(connection, its_run) for (its_run,) in rows)


def run_number(connection: sqlite3.Connection, study: str, run_id: str, reader: str) -> int:
    """Return the number of a run, which is added if it is new."""
    connection.execute(
        "INSERT OR IGNORE INTO runs (run_id, study, reader) VALUES (?, ?, ?)", (run_id, study, reader)
    )
    return int(connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()[0])


def intend(
    connection: sqlite3.Connection,
    run: int,
    work_key: str,
    most_usd: float,
    request: bytes | None = None,
    *,
    state: str = SENT,
) -> int:
    """Record that a request is about to be sent; return the number of the call."""
    cursor = connection.execute(
        "INSERT INTO calls (run, work_key, request, state, most_usd, sent_at) VALUES (?, ?, ?, ?, ?, ?)",
        (run, work_key, request, state, most_usd, time.time()),
    )
    if most_usd:
        connection.execute("UPDATE runs SET open_usd = open_usd + ? WHERE run = ?", (most_usd, run))
    return int(cursor.lastrowid or 0)


def settle(
    connection: sqlite3.Connection,
    run: int,
    call: int,
    state: str,
    most_usd: float,
    cost_usd: float | None = None,
) -> None:
    """Record how an open call ended, and its cost; the most that it can have cost counts if that is unknown."""
    connection.execute(
        "UPDATE calls SET state = ?, cost_usd = ?, answered_at = ? WHERE call = ?",
        (state, cost_usd, time.time(), call),
    )
    if most_usd or cost_usd:
        connection.execute(
            "UPDATE runs SET open_usd = MAX(0, ROUND(open_usd - ?, 12)), counted_usd = counted_usd + ?, bound_usd = bound_usd + ? "
            "WHERE run = ?",
            (most_usd, cost_usd or 0.0, most_usd if cost_usd is None else 0.0, run),
        )


def begin_batch(
    connection: sqlite3.Connection, study: str, reader: str, token: str, most: Mapping[str, float]
) -> None:
    """Record the requests of a batch, with the most that each (by work key) can cost."""
    run = run_number(connection, study, f"batch-{token}", reader)
    for work_key, usd in most.items():
        intend(connection, run, work_key, usd, state=BATCH)


def settle_batch(
    connection: sqlite3.Connection,
    study: str,
    reader: str,
    token: str,
    costs: Mapping[str, float | None] | None,
    most_usd: float,
) -> None:
    """Record what the answers of a batch cost by work key; None if its provider lost it.

    A batch that an earlier version submitted has no calls here: they are added, with ``most_usd`` for all of them.
    """
    run = run_number(connection, study, f"batch-{token}", reader)
    query = "SELECT call, work_key, most_usd, state FROM calls WHERE run = ?"
    rows = connection.execute(query, (run,)).fetchall()
    if not rows and most_usd:
        share = most_usd / max(1, len(costs or ()))
        keys = ("",) if costs is None else tuple(costs)
        rows = [(intend(connection, run, key, share, state=BATCH), key, share, BATCH) for key in keys]
    for call, work_key, most, state in rows:
        if state == BATCH:
            how = LOST if costs is None else ANSWERED if work_key in costs else REFUSED
            settle(connection, run, call, how, most, None if costs is None else costs.get(work_key, 0.0))


def close_run(connection: sqlite3.Connection, run: int) -> float:
    """Count the calls of a run that are still in flight as lost; return their most in US dollars."""
    query = (
        "SELECT call, most_usd FROM calls JOIN runs USING (run) WHERE run = ? AND open_usd > 0 AND state = ?"
    )
    rows = connection.execute(query, (run, SENT)).fetchall()
    for call, most in rows:
        settle(connection, run, call, LOST, most)
    connection.execute("UPDATE runs SET open_usd = 0 WHERE run = ?", (run,))
    return float(sum(most for _, most in rows))


def total_of(connection: sqlite3.Connection, study: str) -> float:
    """Return the most that the journal's calls for a study may have cost, in US dollars."""
    query = "SELECT TOTAL(counted_usd + bound_usd + open_usd) FROM runs WHERE study = ?"
    return float(connection.execute(query, (study,)).fetchone()[0])


def spending(connection: Connection, study: Study, dead: Collection[str] = ()) -> Spending:
    """Return what a study has spent; calls that killed (``dead``) runs had in flight may have been spent."""
    spent = set_aside = unknown = 0.0
    with _existing(study.folder) as journal:
        query = "SELECT run_id, counted_usd, bound_usd, open_usd FROM runs WHERE study = ?"
        rows = [] if journal is None else journal.execute(query, (study.id,)).fetchall()
    for run_id, by_tokens, bound, still_open in rows:
        spent += by_tokens
        unknown += bound + (still_open if run_id in dead else 0.0)
        set_aside += 0.0 if run_id in dead else still_open
    of_study = select(sessions.c.session_id).where(sessions.c.study == study.id)
    is_elsewhere = calls.c.run_id.is_(None) | calls.c.run_id.not_in([run_id for run_id, *_ in rows])
    cost = select(func.coalesce(func.sum(calls.c.cost_usd), 0.0)).where(
        calls.c.session_id.in_(of_study), is_elsewhere
    )
    spent += float(connection.scalar(cost) or 0.0)
    # money that earlier versions set aside and booked, and the training of models
    query_reserved = select(reservations.c.run_id, reservations.c.state, reservations.c.open_usd)
    for run_id, state, amount in connection.execute(query_reserved.where(reservations.c.study == study.id)):
        if state == "booked":
            spent += amount
        elif state == "lost" or (state == "open" and run_id in dead):
            unknown += amount
        elif state in ("open", "batch"):
            set_aside += amount
    return Spending(spent, set_aside, unknown)


def killed_commands(connection: Connection, study: Study) -> set[str]:
    """Return the runs with requests in flight whose reader no command holds: judges and probes that were killed, among others."""
    query = "SELECT run_id, reader FROM runs WHERE study = ? AND open_usd > 0 AND run_id NOT LIKE 'batch-%'"
    with _existing(study.folder) as journal:
        rows = [] if journal is None else journal.execute(query, (study.id,)).fetchall()
    address = connection.engine.url.render_as_string(hide_password=False)
    killed = set()
    for run_id, reader in rows:
        with suppress(UserError), leased(address, study.id, reader):
            killed.add(run_id)
    return killed


def runs_not_in_journal(connection: Connection, study: Study) -> list[str]:
    """Return the runs whose stored calls cost something, and of which the journal knows nothing."""
    of_study = select(sessions.c.session_id).where(sessions.c.study == study.id)
    query = select(calls.c.run_id).where(calls.c.session_id.in_(of_study), calls.c.cost_usd > 0)
    # earlier versions recorded spending in the database
    earlier = select(reservations.c.run_id).where(reservations.c.study == study.id)
    known = set(connection.scalars(earlier))
    with _existing(study.folder) as journal:
        if journal is not None:
            known |= {run_id for (run_id,) in journal.execute("SELECT run_id FROM runs")}
    return [run_id for run_id in connection.scalars(query.distinct()) if run_id and run_id not in known]


def warn_of_missing_runs(connection: Connection, study: Study, say: Callable[[str], None]) -> None:
    """Report if the journal lacks runs that cost something, with the remedy."""
    if run_ids := runs_not_in_journal(connection, study):
        say(describe_missing(run_ids))


def describe_missing(run_ids: Sequence[str]) -> str:
    """Return a warning that the journal lacks runs, with the remedy."""
    return (
        f"{FILE} lacks {counted(len(run_ids), 'run')} whose answers are stored ({', '.join(run_ids[:3])}"
        f"{', …' if len(run_ids) > 3 else ''}): their answers count as spent, but not their requests without an answer. Copy "
        f"{FILE} here from where they ran, together with {FILE}-wal if there is one, while no run is in progress; if it is "
        "lost, lower `models: budget` by what the provider's bill shows in addition."
    )


def book(connection: Connection, study: str, reader: str, name: str, usd: float) -> None:
    """Record in the store what something other than calls cost, such as a training, instead of an earlier amount."""
    booked = update(reservations).where(reservations.c.name == name).values(open_usd=usd)
    if connection.execute(booked).rowcount == 0 and usd:
        row = {
            "name": name,
            "study": study,
            "run_id": name[:24],
            "reader": reader,
            "open_usd": usd,
            "state": "booked",
        }
        connection.execute(insert(reservations), row | {"created_at": now()})


def forget(folder: Path, work_keys: Collection[str]) -> int:
    """Erase the replies to trials, and to calls made before or about them, for a withdrawal; return how many.

    The costs of the calls stay. The file of replies that earlier versions kept goes as a whole, since nothing reads it.
    """
    for file in folder.glob(f"{EARLIER_CACHE}*"):
        overwrite(file)
    with _existing(folder) as journal:
        if journal is None or not work_keys:
            return 0
        journal.execute("BEGIN IMMEDIATE")
        rows = journal.execute("SELECT call, work_key FROM calls").fetchall()
        theirs = [(call,) for call, key in rows if key.partition(":")[0] in work_keys]
        journal.executemany("UPDATE calls SET request = NULL, work_key = '' WHERE call = ?", theirs)
        count = journal.executemany("DELETE FROM replies WHERE call = ?", theirs).rowcount
        journal.execute("COMMIT")
        if not empty_log(journal):
            raise UserError(
                f"{folder / FILE}-wal may still hold erased answers: other programs are reading the file",
                mend="Repeat this when no run is in progress.",
            )
    return max(0, count)


# the calls of one model, within its limits


@dataclass(frozen=True)
class JournaledRun:
    """One run of one model in a study's journal."""

    journal: Journal
    number: int
    lost_usd: float = 0.0  # the most that calls in flight of earlier runs that were killed may have cost

    @classmethod
    def begin(cls, journal: Journal, study: str, run_id: str, reader: str) -> JournaledRun:
        """Add a run to the journal; the caller holds the reader's lease."""
        return cls(journal, *journal.write(lambda connection: begin_run(connection, study, run_id, reader)))


class CommandLimit:
    """A limit in US dollars that all models of one command share."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.used = 0.0
        self._under_way = 0.0
        self._lock = threading.Lock()

    @property
    def is_awaited(self) -> bool:
        """Whether requests in flight may still return something."""
        return self._under_way > 1e-12

    def take(self, most: float) -> bool:
        """Reserve the most that a request can use; return whether that much was available."""
        with self._lock:
            if self.used + self._under_way + most > self.most:
                return False
            self._under_way += most
            return True

    def settle(self, most: float, used: float) -> None:
        """Record the use of a request that :meth:`take` allowed."""
        with self._lock:
            self._under_way -= most
            self.used += used


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """A model's spending limits; None is no limit. A command's limits are shared by all of its models."""

    budget: float | None = None  # US dollars for the calls in the study's journal, of all commands
    cost: CommandLimit | None = None

    def without_spent_elsewhere(
        self, connection: Connection, study: Study, journal: Journal
    ) -> SpendingLimits:
        """Return the limits with a budget that is smaller by what the study has spent outside its journal."""
        if self.budget is None:
            return self
        in_journal = journal.write(lambda change: total_of(change, study.id))
        return replace(self, budget=self.budget - max(0.0, spending(connection, study).total - in_journal))


@dataclass(slots=True)
class Call:
    """A call in flight."""

    number: int
    most_usd: float
    by_length: float  # the most by its length and output limit, whatever the server counts


class ModelCalls:
    """The calls of one model in one run: each within the limits, and in the journal.

    Without a journal, calls are only held within the limits of the command.
    """

    def __init__(
        self,
        price: Price = FREE,
        limits: SpendingLimits | None = None,
        run: JournaledRun | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.price, self.limits, self.run = price, limits or SpendingLimits(), run
        self.full: str | None = None  # why no further call may be sent
        # largest ratio of a call's cost to the most that its length and output limit allow: some servers add to prompts or count
        # differently; later calls are expected to cost so much more
        self.dearest = 1.0
        self.unanswered_usd = 0.0  # the most that calls without an answer may have cost
        self._number = 0 if run is None else run.number
        self._is_stopped = is_stopped
        self._why = ""
        self._numbers = itertools.count(1)
        self._open: dict[int, Call] = {}
        self._of_requests: dict[str, Call] = {}
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    @property
    def waits_for(self) -> str | None:
        """Why the journal accepts no writes."""
        return None if self.run is None else self.run.journal.waits_for

    def find(self, request: bytes) -> StoredReply | None:
        """Return the stored reply to the same request."""
        return None if self.run is None else self.run.journal.find(request)

    async def begin(
        self, work_key: str, tokens: tuple[int, int], request: bytes | None = None
    ) -> Call | None:
        """Record a call before it is sent, with the most tokens that it can read and write; None if a limit forbids it.

        While calls in flight may cost less than their most, it waits for them, one call at a time.
        """
        call = await self._begin(work_key, tokens, request)
        if call is not None:
            return call
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = (loop, asyncio.Lock())
        async with self._turn[1]:
            while self.full is None and not self._is_stopped():
                limit = self.limits.cost
                is_awaited = bool(self._open) or (limit is not None and limit.is_awaited)
                call = await self._begin(work_key, tokens, request)
                if call is not None:
                    return call
                if not is_awaited:
                    self.full = self._why
                await asyncio.sleep(LOOK_S)
        return None

    async def answered(
        self,
        call: Call,
        body: str,
        usage: Usage,
        *,
        is_readable: bool = True,
        times: tuple[float | None, float | None] = (None, None),
    ) -> float:
        """Record a reply before its answer is read; return its cost in US dollars, or the most if the server counted no tokens."""
        cost, kept = self._close(call, usage), _compressed(body)
        if cost is None and not is_readable:
            self.unanswered_usd += call.most_usd
        state = ANSWERED if is_readable and kept is not None else UNREAD

        def change(connection: sqlite3.Connection) -> None:
            settle(connection, self._number, call.number, state, call.most_usd, cost)
            if times[0] is not None:
                connection.execute(
                    "UPDATE calls SET took_ms = ?, first_ms = ? WHERE call = ?", (*times, call.number)
                )
            if kept is not None:
                connection.execute("INSERT INTO replies VALUES (?, ?)", (call.number, kept))

        await self._record(change)
        return call.most_usd if cost is None else cost

    async def ended(self, call: Call, state: str) -> None:
        """Record that a call was refused, which costs nothing, or lost: then the most that it can have cost counts."""
        cost = self._close(call, None if state == LOST else NOTHING)
        await self._record(
            lambda connection: settle(connection, self._number, call.number, state, call.most_usd, cost)
        )

    async def discard(self, number: int) -> None:
        """Take no answer from a reply again."""
        await self._record(
            lambda connection: connection.execute(
                "UPDATE calls SET state = ? WHERE call = ?", (UNREAD, number)
            )
        )

    def discard_trial(self, work_key: str) -> None:
        """Take no answer from the replies to a request of this run again."""
        if self.run is not None:
            change = "UPDATE calls SET state = ? WHERE work_key = ? AND state = ?"
            self.run.journal.write(
                lambda connection: connection.execute(change, (UNREAD, work_key, ANSWERED))
            )

    # requests to engines that keep no journal by themselves

    def take(self, request: Request) -> bool:
        """Record a request before it is given to an engine; return whether the limits allow it."""
        call = self._reserve(self.price.most_tokens(request))
        if call is None:
            self.full = self._why
            return False
        number = next(self._numbers)
        if self.run is not None and not self.price.is_free:
            number = self.run.journal.write(self._intent(call, request.work_key, None))
        if not self._accept(call, number):
            self.full = self._why
            return False
        self._of_requests[request.work_key] = call
        return True

    def settle(self, reply: Reply) -> float | None:
        """Record the reply to a request that :meth:`take` allowed; return its cost in US dollars, None if unknown."""
        call = self._of_requests.pop(reply.work_key, None)
        if call is None:
            return reply.cost_usd
        usage = Usage(reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
        is_lost = reply.status == "timeout"
        cost = self._close(call, None if is_lost else NOTHING if reply.status == "error" else usage)
        if self.run is not None and not self.price.is_free:
            state = LOST if is_lost else ANSWERED
            self.run.journal.write(
                lambda connection: settle(connection, self._number, call.number, state, call.most_usd, cost)
            )
        return cost if cost is not None or is_lost else call.most_usd

    def end(self) -> None:
        """Count calls that never returned as spent, since nothing is in flight any more."""
        for call in list(self._open.values()):
            self._close(call, None)
        self._of_requests.clear()
        if self.run is not None:
            self.run.journal.write(lambda connection: close_run(connection, self._number))

    # the parts of both

    def _reserve(self, tokens: tuple[int, int]) -> Call | None:
        """Reserve the most that a call can cost within the limit of the command."""
        by_length = self.price.most_of(*tokens)
        call = Call(0, by_length * self.dearest, by_length)
        limit = self.limits.cost
        if limit is not None and not limit.take(call.most_usd):
            self._why = "the limit of this command (--max-cost) is reached"
            return None
        return call

    def _intent(self, call: Call, work_key: str, request: bytes | None) -> Change[int]:
        """Return the change that records a call, if the study's budget has room; it returns the call's number, or 0."""

        def change(connection: sqlite3.Connection) -> int:
            budget = self.limits.budget
            if budget is not None and call.most_usd:
                whose = "SELECT study FROM runs WHERE run = ?"
                (study,) = connection.execute(whose, (self._number,)).fetchone()
                if total_of(connection, study) + call.most_usd > budget:
                    return 0
            return intend(connection, self._number, work_key, call.most_usd, request)

        return change

    def _accept(self, call: Call, number: int) -> bool:
        if not number:
            self._why = "the study's budget is reached"
            self._release(call, 0.0)
            return False
        call.number = number
        self._open[number] = call
        return True

    async def _begin(self, work_key: str, tokens: tuple[int, int], request: bytes | None) -> Call | None:
        call = self._reserve(tokens)
        if call is None:
            return None
        number = next(self._numbers)
        if self.run is not None:
            try:
                number = await self.run.journal.record(self._intent(call, work_key, request))
            except BaseException:
                self._release(call, 0.0)
                raise
        return call if self._accept(call, number) else None

    def _close(self, call: Call, usage: Usage | None) -> float | None:
        """Return the cost of a call (None if the server counted no tokens, or no answer came), and free what it had reserved."""
        self._open.pop(call.number, None)
        cost: float | None = 0.0 if self.price.is_free else None
        if usage is None:
            self.unanswered_usd += call.most_usd
        elif usage.prompt is not None and usage.completion is not None:
            cost = self.price.of_usage(usage)
            if call.by_length > 0:
                self.dearest = max(self.dearest, cost / call.by_length)
        self._release(call, call.most_usd if cost is None else cost)
        return cost

    def _release(self, call: Call, cost: float) -> None:
        if self.limits.cost is not None:
            self.limits.cost.settle(call.most_usd, cost)

    async def _record(self, change: Change[Any]) -> None:
        if self.run is not None:
            await self.run.journal.record(change)


@contextmanager
def calls_of(
    study: Study,
    store: Store,
    price: Price,
    *,
    run_id: str,
    reader: str,
    budget: float | None,
    say: Callable[[str], None],
) -> Iterator[ModelCalls]:
    """Open the journal for the calls of one model outside a run, such as a judge or a probe, one command at a time."""
    address = store.address.render_as_string(hide_password=False)
    with leased(address, study.id, reader), closing(Journal(study.folder)) as journal:
        with store.read() as connection:
            limits = SpendingLimits(budget).without_spent_elsewhere(connection, study, journal)
            warn_of_missing_runs(connection, study, say)
        model_calls = ModelCalls(price, limits, JournaledRun.begin(journal, study.id, run_id, reader))
        try:
            yield model_calls
        finally:
            model_calls.end()


def _compressed(body: str) -> str | bytes | None:
    """Return a reply as it is stored, None if it is too long for it."""
    kept = body if len(body) < COMPRESSED else zlib.compress(body.encode("utf-8", "surrogatepass"), 1)
    return kept if len(kept) <= MOST_STORED else None
