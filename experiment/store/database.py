"""Opens the database: addresses, engines, and the settings that make a commit durable.

SQLite is refused in unsafe folders. Locks on a network share are unreliable, and a sync program that copies a database while it
is written leaves copies without their write-ahead log; both lose data silently.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, TextClause, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from experiment.store.statements import send_put_off
from stimuli.errors import UserError

HELD = ("SQLITE_BUSY", "SQLITE_LOCKED")
DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")


class StoreError(UserError):
    """The database accepted no write: disk full, locked for too long, or unavailable.

    Nothing of the operation was stored; the same operation may be retried.
    """

    def __init__(self, message: str, *, mend: str | None = None) -> None:
        super().__init__(message, mend=mend, exit_code=1)


class DamagedStore(StoreError):
    """The database file is damaged: it is not read or written any more, and a backup must be restored."""

    def again(self) -> DamagedStore:
        """Return a copy of the error for another caller."""
        return DamagedStore(self.message, mend=self.mend)


class UnreadableJson(StoreError):
    """A JSON column holds text that is not JSON, or another kind of value than wrods writes there."""

    def __init__(self) -> None:
        super().__init__(
            "the database holds JSON that wrods did not write",
            mend="Restore a backup: wrods restore STUDY FILE",
        )


class RefusedOperation(Exception):
    """An operation that stores nothing but a trace of its refusal.

    The writer undoes the operation, then calls :meth:`leave_trace` in the same transaction, and passes the exception to the
    waiter after the commit.
    """

    def leave_trace(self, connection: Connection) -> None:
        """Store a record of the refused operation; by default nothing."""


class SessionGone(Exception):
    """The session does not exist, or was withdrawn."""


def cannot_open(address: URL, error: DBAPIError | sqlite3.Error) -> UserError:
    """Return the error for a store that could not be opened, with the remedy; the address has no password."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    message = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if address.get_backend_name() != "sqlite":
        return _server_fails(address, message)
    file = Path(address.database or "")
    if _is_held(cause):
        mend = "Another program holds it; close that and try again."
    else:
        mend = "Check that the folder may be written and that the disk is not full."
    return UserError(f"{file} could not be opened: {message}", mend=mend, exit_code=1)


def _server_fails(address: URL, message: str) -> UserError:
    secrets = [
        str(address.password or ""),
        *(str(address.query.get(n, "")) for n in ("password", "sslpassword")),
    ]
    for secret in filter(None, secrets):
        message = message.replace(secret, "***")
    place = f"{address.host or 'this computer'}" + (f":{address.port}" if address.port else "")
    return UserError(
        f"the store's database {address.database or ''!r} at {place} could not be opened: {message}",
        mend="Check that the database server runs and that the address is right (WRODS_STORE, or store in config.toml).",
        exit_code=1,
    )


BUSY_TIMEOUT_S = 30
CONNECT_TIMEOUT_S = 10
SQLITE_FILE = "study.db"
_LOCK_OF_WRODS = 0x77726F6473  # "wrods": one PostgreSQL advisory lock for upgrades and list assignment


def _statements() -> dict[str, TextClause]:
    """Return the statements in ``postgresql.sql`` by name."""
    file = resources.files(__package__).joinpath("postgresql.sql").read_text("utf-8")
    return {
        name: text(body) for name, body in re.findall(r"(?s)-- name: (\w+)\n(.*?)(?=\n-- name:|\Z)", file)
    }


SQL = _statements()


def address_of(target: Path | str) -> URL:
    """Return the database address of a study folder, a database file or a URL."""
    if isinstance(target, str) and "://" in target:
        try:
            address = make_url(target)
        except ArgumentError as error:
            raise UserError(
                "the store's address cannot be read", mend="Write postgresql://user@host/database."
            ) from error
        kind = address.get_backend_name()
        if kind in ("postgres", "postgresql"):
            return address.set(drivername="postgresql+psycopg")
        if kind != "sqlite" or not address.database:
            raise UserError(
                f"a store cannot be kept in {kind!r}", mend="Give a study folder or a postgresql:// address."
            )
        target = address.database
    path = Path(target).expanduser()
    if path.is_dir():
        path = path / SQLITE_FILE
    elif path.suffix not in (".db", ".sqlite") or not path.parent.is_dir():
        raise UserError(f"there is no study folder {path}", mend="Give the folder that holds study.yaml.")
    if path.is_symlink() and not path.exists():
        raise UserError(
            f"{path} is a link to {path.readlink()}, which is not there",
            mend="Attach the disk, or remove the link.",
            exit_code=1,
        )
    return URL.create("sqlite", database=str(path.resolve()))


def is_sqlite(connection: Connection | Engine) -> bool:
    """Return whether a connection or engine uses SQLite."""
    return connection.dialect.name == "sqlite"


def to_json(value: object) -> str:
    """Return JSON with letters unescaped, so that people can read the database."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_json(stored: str) -> object:
    """Read a JSON column. PostgreSQL keeps such columns valid; in a SQLite file anything may have been written."""
    try:
        return json.loads(stored)
    except (ValueError, TypeError) as error:
        raise UnreadableJson from error


def make_engine(address: URL, *, read_only: bool = False) -> Engine:
    """Return an engine whose commits are on disk when they return.

    SQLite runs in WAL mode with ``synchronous=FULL``; a writing transaction takes its lock at the start (``BEGIN IMMEDIATE``),
    so that it can wait for it and never fails midway.
    """
    if address.get_backend_name() == "sqlite":
        return _sqlite_engine(address, read_only)
    try:
        engine = create_engine(
            address,
            json_serializer=to_json,
            connect_args={} if "connect_timeout" in address.query else {"connect_timeout": CONNECT_TIMEOUT_S},
            pool_pre_ping=True,
            pool_size=16,
        )
    except ModuleNotFoundError as error:
        raise UserError(
            "the store is a PostgreSQL database, and its driver is not installed",
            mend="Install the extra: pip install 'wrods[postgres]'.",
        ) from error
    if not read_only:
        send_put_off(engine)
    else:

        @event.listens_for(engine, "begin")
        def _read_only(connection: Connection) -> None:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    return engine


def _sqlite_engine(address: URL, read_only: bool) -> Engine:
    path = Path(address.database or "")
    check_place(path)
    if not path.exists():
        # participants' answers: readable by their owner only; the -wal and -shm files inherit this
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    engine = create_engine(
        address,
        json_serializer=to_json,
        json_deserializer=from_json,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False, "isolation_level": None},
        pool_size=16,
        max_overflow=64,
    )

    @event.listens_for(engine, "connect")
    def _settings(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
        use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # erased data are overwritten, so that a withdrawal leaves nothing in the file
        connection.execute("PRAGMA secure_delete = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        only_reads = read_only or connection.get_execution_options().get("only_reads", False)
        connection.exec_driver_sql("BEGIN" if only_reads else "BEGIN IMMEDIATE")

    return engine


def use_wal(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log; wait while another program makes the same file, where SQLite's own timeout does not apply."""
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_held(error) or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _is_held(error: BaseException | None) -> bool:
    return (getattr(error, "sqlite_errorname", None) or "").startswith(HELD)


def is_damage(error: BaseException | None) -> bool:
    """Return whether a database error reports a damaged file."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (getattr(cause, "sqlite_errorname", None) or "").startswith(DAMAGED)


def lock_for_change(connection: Connection) -> None:
    """Allow only one process at a time to decide something.

    SQLite's writing transaction does so already; PostgreSQL needs a separate lock.
    """
    if not is_sqlite(connection):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_OF_WRODS})")


def prove_writable(connection: Connection) -> None:
    """Write something that changes nothing, so that the commit proves that the database accepts writes."""
    if is_sqlite(connection):
        version = connection.exec_driver_sql("PRAGMA user_version").scalar()
        connection.exec_driver_sql(f"PRAGMA user_version = {int(version or 0)}")
    else:
        connection.exec_driver_sql("SELECT pg_current_xact_id()")


MOUNTS = Path("/proc/mounts")


@cache
def _known() -> Mapping[str, Mapping[str, str]]:
    text = resources.files(__package__).joinpath("synced_folders.json").read_text("utf-8")
    known: Mapping[str, Mapping[str, str]] = json.loads(text)
    return known


def file_system(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system of an absolute folder."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount_point = fields[1]
        # /proc/mounts writes blanks, tabs, newlines and backslashes as octal numbers
        for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            mount_point = mount_point.replace(code, character)
        point = Path(mount_point)
        if (folder == point or point in folder.parents) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), fields[2])
    return None if best is None else best[1]


def synced_by(folder: Path) -> str | None:
    """Return the sync service whose folder contains this path, judged by folder names."""
    known = _known()
    for part in folder.parts:
        name = part.casefold()
        if name in known["folders"]:
            return known["folders"][name]
        for prefix, service in known["folder_prefixes"].items():
            if name.startswith(prefix):
                return service
    return None


def check_place(database: Path, *, mounts: Path = MOUNTS) -> None:
    """Raise an error for a place where SQLite loses data."""
    folder = database.expanduser().resolve().parent
    service = synced_by(folder)
    if service is None and mounts.exists():
        kind = file_system(folder, mounts.read_text("utf-8", errors="replace"))
        network = _known()["file_systems"].get(kind or "")
        service = None if network is None else f"a network file system ({network})"
    if service is not None:
        raise UserError(
            f"{folder} is kept by {service}; a study's database can be damaged there",
            mend="Move the study to a folder on this computer's own disk, or give a PostgreSQL address "
            "(store in config.toml, or WRODS_STORE).",
        )
