"""Leaves no bytes of erased rows in a database's own files: tables, indexes, statistics and the write-ahead log.

SQLite: ``VACUUM`` with ``secure_delete``, then the write-ahead log is emptied. PostgreSQL: ``VACUUM FULL`` rewrites each
table, ``ANALYZE`` replaces the planner's samples of its values, and the write-ahead log is overwritten: its segments are used
in turn, so after a checkpoint as many are begun (``pg_switch_wal``, which fills the rest of one with zeros) as there are. A
table is locked while it is rewritten; while a study is being served, that time is limited, and what takes longer is left for
later.
"""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError

from experiment.store.database import make_engine
from experiment.store.tables import metadata
from stimuli.audit.findings import counted

READERS_S = 6
"""How long others may read from a SQLite database before its log is left as it is."""
LOCK_S = 2
"""How long to wait for a table at a time; those who want to write to it wait too."""
LOCK_TRIES = 5
SERVED_S = 10
"""How long a table may be locked while a study is being served."""
MOST_BYTES = 2 * 2**30
"""So much of a write-ahead log is overwritten at once."""
ROUNDS = 5
"""How often, a second apart, files of a write-ahead log that something keeps are looked for."""
STATISTICS = "pg_statistic"
_TOOK_TOO_LONG = "57014"
_IN_THE_WAY = ("55P03", "40P01")

_IS_SERVED = text(
    # `wrods serve` holds an advisory lock of two numbers; no other part of wrods does
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND database = "
    "(SELECT oid FROM pg_database WHERE datname = current_database()))"
)
_OLDEST = text(
    "SELECT pid, usename, xact_start FROM pg_stat_activity WHERE datname = current_database() AND "
    "backend_xmin IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1"
)
_STALE = text(
    "SELECT format('ALTER TABLE %I ALTER COLUMN %I TYPE text', tablename, attname) FROM pg_stats "
    "JOIN pg_attribute USING (attname) WHERE schemaname = current_schema() AND tablename = ANY(:tables) "
    "AND attrelid = to_regclass(tablename) AND atttypid = 'text'::regtype AND pg_relation_size(attrelid) = 0"
)
_NOT_OWNED = text(
    "SELECT format('the role %I may not rewrite it. A database administrator runs: ALTER DATABASE %I OWNER TO %I;', "
    "current_user, current_database(), current_user)"
)
_MISSING = text(
    "SELECT format('GRANT pg_checkpoint TO %I;', current_user) WHERE NOT (SELECT rolsuper FROM pg_roles WHERE rolname = "
    "current_user) AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pg_checkpoint' AND pg_has_role(oid, 'USAGE')) "
    "UNION ALL SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I;', f, current_user) FROM unnest(ARRAY['pg_switch_wal()', "
    "'pg_ls_waldir()']) AS f WHERE NOT has_function_privilege(f, 'EXECUTE')"
)
_STAYS = text(
    "SELECT format('PostgreSQL''s write-ahead log: the role %I may not overwrite it. It holds the answers until about %s of later "
    "changes have overwritten it (max_wal_size; wal_keep_size is %s).', current_user, current_setting('max_wal_size'), "
    "current_setting('wal_keep_size'))"
)
_SIZES = text(
    # bytes; pg_settings has the second in megabytes
    "SELECT (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') AS segment, "
    "(SELECT setting::bigint * 1048576 FROM pg_settings WHERE name = 'wal_keep_size') AS kept"
)
_FILES = text("SELECT substr(name, 9) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'")
_CURRENT = text("SELECT div(pg_current_wal_insert_lsn() - '0/0', :size)")
_KEEPERS = text(
    "SELECT 'replication slot ' || quote_ident(slot_name) FROM pg_replication_slots WHERE restart_lsn - '0/0' < :start "
    "UNION ALL SELECT 'the archive, which has not taken them yet' WHERE current_setting('archive_mode') <> 'off'"
)
_COPIES = text(
    "SELECT 'the archive of PostgreSQL''s write-ahead log (archive_mode ' || current_setting('archive_mode') || '): files "
    "archived so far hold the answers until they are deleted there' WHERE current_setting('archive_mode') <> 'off' "
    "UNION ALL SELECT 'a standby or subscriber of the database (' || coalesce(nullif(application_name, ''), "
    "'process ' || pid) || '): its own files and write-ahead log' FROM pg_stat_replication "
    "UNION ALL SELECT 'PostgreSQL''s server log (' || name || ' is ' || setting || '): statements are logged with their values' "
    "FROM pg_settings WHERE (name = 'log_statement' AND setting IN ('mod', 'all')) OR (name IN "
    "('log_min_duration_statement', 'log_min_duration_sample') AND setting <> '-1')"
)


class _InTheWay(Exception):
    """Other programs use a table; waiting for the next one too would delay those who answer."""


@dataclass
class Rewritten:
    """The result of rewriting a database."""

    left: list[str] = field(default_factory=list)
    is_due: bool = False

    def postpone(self, what: str) -> None:
        """Note what a repetition may do."""
        self.left.append(what)
        self.is_due = True


def rewrite(address: URL) -> Rewritten:
    """Rewrite a database's files without the bytes of erased rows, while others use it."""
    if address.get_backend_name() == "sqlite":
        return _rewrite_sqlite(Path(address.database or ""))
    done = Rewritten()
    engine = make_engine(address)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            try:
                _rewrite_tables(connection, done)
                if not done.is_due:
                    _overwrite_log(connection, done)
            except _InTheWay as why:
                done.postpone(f"{why}. This table and the following ones were not rewritten")
            done.left += copies_elsewhere(connection)
    finally:
        engine.dispose()
    return done


def copies_elsewhere(connection: Connection) -> list[str]:
    """Return which copies a PostgreSQL server has made of what it stores, a sentence each."""
    return list(connection.scalars(_COPIES))


def empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log of a SQLite file; return False where others read from it all the time."""
    connection.execute(f"PRAGMA busy_timeout = {READERS_S * 1000}")
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _rewrite_sqlite(file: Path) -> Rewritten:
    done = Rewritten()
    try:
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as plain:
            plain.execute("PRAGMA secure_delete = ON")
            plain.execute("VACUUM")
            if not empty_log(plain):
                done.postpone(f"{file}-wal: other programs are reading the database")
    except sqlite3.OperationalError as error:
        done.postpone(f"{file}: it could not be rewritten ({error})")
    return done


def _rewrite_tables(connection: Connection, done: Rewritten) -> None:
    limit = SERVED_S if connection.scalar(_IS_SERVED) else 0
    connection.exec_driver_sql(f"SET lock_timeout = '{LOCK_S}s'")
    connection.exec_driver_sql(f"SET statement_timeout = '{limit}s'")
    names = [table.name for table in metadata.sorted_tables]
    for name in names:
        # a plain VACUUM leaves the bytes of dead rows in the table's file
        if _repeat(connection, f"VACUUM (FULL, VERBOSE) {name}", f"table {name}", done):
            _repeat(connection, f"ANALYZE {name}", f"statistics of table {name}", done)
    connection.exec_driver_sql("SET statement_timeout = 0")
    # ANALYZE leaves the samples of a table that is empty now; a change of type, even to the same, drops them
    for statement in list(connection.scalars(_STALE, {"tables": names})):
        _repeat(connection, statement, "statistics of an empty table", done)
    _repeat(connection, f"VACUUM (FULL, VERBOSE) {STATISTICS}", f"table {STATISTICS}", done)


def _repeat(connection: Connection, statement: str, what: str, done: Rewritten) -> bool:
    """Give a statement until nobody is in its way; return whether it did its work."""
    dead: list[int] = []  # rows that VACUUM FULL copied because an open transaction still sees them

    def listen(notice: Any) -> None:
        if found := re.search(r"\d+", notice.message_detail or ""):
            dead.append(int(found[0]))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(listen)
    fault = ""
    try:
        for again in range(LOCK_TRIES):
            dead.clear()
            time.sleep(min(again, 1))
            try:
                connection.exec_driver_sql(statement)
            except DBAPIError as error:
                state = getattr(error.orig, "sqlstate", None)
                if state in _IN_THE_WAY:
                    fault = "other programs are using it"
                    continue
                fault = str(error.orig).partition("\n")[0]
                if state == _TOOK_TOO_LONG:
                    fault = (
                        f"rewriting it takes more than {SERVED_S} s, during which no answer can be stored; repeat this "
                        "while no study is being served"
                    )
                done.postpone(f"{what}: {fault}")
                return False
            if dead == [0] or not statement.startswith("VACUUM"):
                return True
            if not dead:
                done.left.append(f"{what}: {connection.scalar(_NOT_OWNED)}")
                return False
            fault = f"an earlier transaction still sees the erased rows ({_oldest(connection)})"
    finally:
        driver.remove_notice_handler(listen)
    raise _InTheWay(f"{what}: {fault}")


def _oldest(connection: Connection) -> str:
    row = connection.execute(_OLDEST).first()
    if row is None:
        return "another role's, a prepared one, or a replication slot's"
    return f"process {row.pid} of {row.usename}, since {row.xact_start:%d %B %Y, %H:%M %Z}"


def _overwrite_log(connection: Connection, done: Rewritten) -> None:
    """Use every file of the write-ahead log once more, and report what is kept of what was written before."""
    if missing := list(connection.scalars(_MISSING)):
        stays = connection.scalar(_STAYS)
        done.left.append(f"{stays} A database administrator runs: {' '.join(missing)}")
        return
    size, keep = connection.execute(_SIZES).one()
    left = MOST_BYTES // size
    start, before = None, None
    for again in range(ROUNDS):
        time.sleep(min(again, 1))
        new = _begin_file(connection, size)
        connection.exec_driver_sql("CHECKPOINT")
        start = start or new
        # what a checkpoint lets go of gets a later name and waits, with its bytes, to be used again
        files = _files(connection, size)
        kept = [file for file in files if file < start]
        last = max(*files, start + keep // size)
        while kept != before and new <= last and left:
            new, left = _begin_file(connection, size), left - 1
        connection.exec_driver_sql("CHECKPOINT")
        if kept != before and new <= last:
            done.postpone(
                f"PostgreSQL's write-ahead log is large: {MOST_BYTES >> 30} GB of it were overwritten, and about "
                f"{counted(last - new + 1, 'file')} were not"
            )
            return
        if not kept:
            return
        before = kept
    keepers = ", ".join(connection.scalars(_KEEPERS, {"start": start * size})) or "the server"
    done.left.append(
        f"PostgreSQL's write-ahead log: {counted(len(kept), 'file')} from before the erasure, which may hold the answers, kept "
        f"by {keepers}"
    )


def _begin_file(connection: Connection, size: int) -> int:
    """Begin the next file of the write-ahead log, fill the rest of the present one with zeros, and return its number."""
    # without a record between them, a second switch does nothing
    connection.exec_driver_sql("SELECT pg_logical_emit_message(false, 'wrods', '')")
    connection.exec_driver_sql("SELECT pg_switch_wal()")
    return int(connection.scalar(_CURRENT, {"size": size}))


def _files(connection: Connection, size: int) -> list[int]:
    in_a_log = 2**32 // size
    return sorted(int(name[:8], 16) * in_a_log + int(name[8:], 16) for name in connection.scalars(_FILES))
