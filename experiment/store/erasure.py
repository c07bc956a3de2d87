"""Permanent erasure of sessions from a database, which leaves a tombstone.

Erasure removes the session with its plan, trials, regions, scores, ratings, calls, flags and events, its participant's identity
(ids, invitation, submission), the salts of its chain, and every session in which a model read the participant's words
(teacher-forced, yoked to it) with its calls. The chain's digests stay: without their salts they reveal nothing.

Erased rows leave bytes in files. The same transaction records that the files must be cleaned (:func:`note_due`), so that
nothing is lost if the process is killed before it cleans them.

Cleaning removes all bytes of erased rows from a database's own files: tables, indexes, statistics and the write-ahead log.
SQLite: ``VACUUM`` with ``secure_delete``, then the write-ahead log is emptied. PostgreSQL: ``VACUUM FULL`` rewrites each table,
``ANALYZE`` replaces the planner's samples of its values, and the write-ahead log is overwritten: its segments are used in turn,
so after a checkpoint as many are started (``pg_switch_wal``, which fills the rest of one with zeros) as there are. A table is
locked while it is rewritten; while a study is being served, that time is limited, and longer work is postponed.

Sessions without consent are erased and counted: nothing else of such a person is stored. Databases of earlier versions still
have sessions in the state ``declined``.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    delete,
    func,
    inspect,
    or_,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from experiment.store.assignment import INVITED, PILOT_PREFIX, PREFIXES, TYPED, numbers_taken, typed_numbers
from experiment.store.chain import WITHDRAWN, withdrawn_sessions
from experiment.store.database import SQL, make_engine
from experiment.store.records import TEACHER_FORCED
from experiment.store.session_activity import stamp
from experiment.store.statements import insert_new
from experiment.store.tables import (
    audit,
    calls,
    chain,
    events,
    flags,
    invitations,
    metadata,
    people,
    ratings,
    regions,
    scores,
    sessions,
    submissions,
    tallies,
    trials,
)
from stimuli.audit.findings import counted

T = TypeVar("T")
_CHILDREN_FIRST = (ratings, scores, regions, trials, flags, events, people)
_ASSIGNED = (*PREFIXES.values(), PILOT_PREFIX)
_LARGEST_IN = 500
_TOLD = tuple(sessions.c[name] for name in ("session_id", "study", "version", "reader", "reader_kind"))
"""The columns for a tombstone."""


SERVER = "server"
"""The actor of automatic actions."""
UNINVITED = "invitation withdrawn"
"""The action of a personal link's audit row: it has the link's digest, which identifies nobody."""
DUE = "cleaning due"
"""The action of audit rows which record that files may still contain bytes of erased rows."""


@dataclass
class Erased:
    """Result of an erasure."""

    sessions: list[str] = field(default_factory=list)
    invitations: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    work_keys: set[str] = field(default_factory=set)


def withdrawn(connection: Connection) -> list[str]:
    """Return what was withdrawn from a database: ids of sessions and digests of personal links, of all its studies."""
    withdrawn_links = select(audit.c.detail).where(audit.c.action == UNINVITED)
    links = connection.scalars(withdrawn_links.order_by(audit.c.audit_id))
    digests = (link["token_hash"] for link in links if link and "token_hash" in link)
    return list(dict.fromkeys([*withdrawn_sessions(connection), *digests]))


def derived_sessions(connection: Connection, session_ids: Sequence[str]) -> list[str]:
    """Return the sessions in which a model read a participant's own answers as its context."""
    derived: list[str] = []
    for part in _parts(session_ids):
        yoked = select(sessions.c.session_id).where(sessions.c.yoked_to.in_(part))
        derived += connection.scalars(yoked.filter_by(context=TEACHER_FORCED))
    return derived


def erase_sessions(connection: Connection, session_ids: Sequence[str], *, actor: str) -> Erased:
    """Erase sessions and personal links in a connection's transaction, skipping missing ones; return what was erased."""
    there = set(inspect(connection).get_table_names())
    erased = Erased(sessions=[*dict.fromkeys((*session_ids, *derived_sessions(connection, session_ids)))])
    for part in _parts(erased.sessions):
        # a backup may lack newer columns
        rows = connection.execute(select(*_TOLD).where(sessions.c.session_id.in_(part))).mappings().all()
        tombstones = [_tombstone(connection, dict(row), actor, there) for row in rows]
        keys = connection.scalars(select(trials.c.work_key).where(trials.c.session_id.in_(part)))
        erased.work_keys.update(str(key) for key in keys if key is not None)
        _erase_calls(connection, part, erased)
        _erase_names(connection, part, there, erased, actor)
        for table in _CHILDREN_FIRST:
            if table.name in there:
                _delete(connection, table, table.c.session_id.in_(part), erased)
        if "chain" in there:
            connection.execute(update(chain).where(chain.c.session_id.in_(part)).values(salt=None))
        noted = update(audit).where(audit.c.session_id.in_(part), audit.c.action != WITHDRAWN)
        connection.execute(noted.values(detail={}))
        _delete(connection, sessions, sessions.c.session_id.in_(part), erased)
        if tombstones:
            connection.execute(audit.insert(), tombstones)
        for study in {str(row["study"]) for row in rows}:
            note_due(connection, study, erased.work_keys)
    return erased


def clean_tombstones(connection: Connection) -> set[str]:
    """Remove typed numbers from tombstones of earlier versions; return the studies that had any."""
    stones = connection.execute(
        select(audit.c.audit_id, audit.c.study, audit.c.detail).where(audit.c.action == WITHDRAWN)
    ).all()
    cleaned = set()
    for number, study, detail in stones:
        given = (detail or {}).get("numbers", {})
        assigned = {prefix: given[prefix] for prefix in given if prefix in _ASSIGNED}
        if assigned != given:
            changed = update(audit).where(audit.c.audit_id == number)
            connection.execute(changed.values(detail=detail | {"numbers": assigned}))
            cleaned.add(str(study))
    return cleaned


def note_due(connection: Connection, study: str, work_keys: Iterable[str] = ()) -> None:
    """Record that a study's files must be cleaned of erased rows, and of model calls made from them."""
    row = {"at": stamp(datetime.now(UTC)), "actor": SERVER, "action": DUE, "study": study}
    connection.execute(audit.insert().values(**row, detail={"work_keys": sorted(work_keys)}))


def what_is_due(connection: Connection, study: str) -> dict[int, list[str]]:
    """Return the work keys of each row stored by :func:`note_due`, by its number; empty if nothing is due."""
    rows = connection.execute(
        select(audit.c.audit_id, audit.c.detail).where(audit.c.action == DUE, audit.c.study == study)
    )
    return {number: (detail or {}).get("work_keys", []) for number, detail in rows}


def note_cleaned(connection: Connection, numbers: Iterable[int]) -> None:
    """Remove rows of :func:`note_due` after cleaning."""
    for part in _parts(list(numbers)):
        connection.execute(delete(audit).where(audit.c.audit_id.in_(part)))


def _erase_calls(connection: Connection, part: Sequence[str], erased: Erased) -> None:
    """Erase the calls of sessions, and cached ones without a session that answered the same requests."""
    asked = select(calls.c.request_key).where(calls.c.session_id.in_(part)).distinct()
    keys = list(connection.scalars(asked))
    _delete(connection, calls, calls.c.session_id.in_(part), erased)
    for column, values in ((calls.c.request_key, keys), (calls.c.work_key, sorted(erased.work_keys))):
        for some in _parts(values):
            _delete(connection, calls, and_(calls.c.session_id.is_(None), column.in_(some)), erased)


def _erase_names(
    connection: Connection, part: Sequence[str], there: set[str], erased: Erased, actor: str
) -> None:
    """Erase what identifies the participants: their invitations, and their lines in a platform's lists."""
    ids = connection.execute(
        select(people.c.study, people.c.source, people.c.external_id).where(people.c.session_id.in_(part))
    ).all()
    if "submissions" in there:
        for study, source, external_id in ids:
            same = (submissions.c.study == study, submissions.c.source == source)
            _delete(connection, submissions, and_(*same, submissions.c.external_id == external_id), erased)
    if "invitations" in there:
        invited = [
            and_(invitations.c.study == study, invitations.c.participant == name)
            for study, source, name in sorted(ids)
            if source == INVITED
        ]
        theirs = or_(invitations.c.session_id.in_(part), invitations.c.token_hash.in_(part), *invited)
        links = erase_invitations(connection, theirs, actor=actor)
        if links:
            erased.rows[invitations.name] += len(links)
            erased.invitations += links


def erase_invitations(connection: Connection, which: ColumnElement[bool], *, actor: str) -> list[str]:
    """Erase personal links with their names; return the digests, which stay so that backups with a link can be found."""
    links = connection.execute(select(invitations.c.token_hash, invitations.c.study).where(which)).all()
    if links:
        connection.execute(delete(invitations).where(which))
        noted = {"at": stamp(datetime.now(UTC)), "actor": actor, "action": UNINVITED}
        details = ({"study": row.study, "detail": {"token_hash": row.token_hash}} for row in links)
        connection.execute(audit.insert(), [noted | detail for detail in details])
        for study in {row.study for row in links}:
            note_due(connection, study)
    return [row.token_hash for row in links]


def _tombstone(connection: Connection, row: dict[str, Any], actor: str, there: set[str]) -> dict[str, Any]:
    prefix = str(row["reader"]).rstrip("0123456789")
    given: dict[str, int] = {}
    if prefix in _ASSIGNED and row["reader_kind"] in PREFIXES:
        # the highest number assigned so far, which identifies nobody, prevents reuse
        typed = typed_numbers(connection, row["study"]) if people.name in there else ()
        if numbers := numbers_taken(connection, row["study"], prefix, but=typed):
            given[prefix] = max(numbers)
    return {
        "at": stamp(datetime.now(UTC)),
        "actor": actor,
        "action": WITHDRAWN,
        "study": row["study"],
        "session_id": row["session_id"],
        "detail": {"reader_kind": row["reader_kind"], "version": row["version"], "numbers": given},
    }


def _delete(connection: Connection, table: Table, where: ColumnElement[bool], erased: Erased) -> None:
    number = connection.execute(delete(table).where(where)).rowcount
    if number > 0:
        erased.rows[table.name] += number


def _parts(values: Sequence[T]) -> list[Sequence[T]]:
    return [values[start : start + _LARGEST_IN] for start in range(0, len(values), _LARGEST_IN)]


NUMBERED = "link-"
"""Prefix of the names of links without a named participant."""
FORGOTTEN = ""
"""Replaces an invited name that was deleted; the link remains valid for its session."""


def forget_names(connection: Connection, study: str, before: str) -> int:
    """Erase a study's identifying data stored before a given time; return the number of rows. Answers stay.

    These are ids of recruitment platforms, stored network data, lines of a platform's lists, and the names of people invited by
    personal links. A number typed in a laboratory stays: it is the participant's number, in every table.
    """
    there = set(inspect(connection).get_table_names())
    gone = 0
    for table, old in (
        (people, and_(people.c.created_at < before, people.c.source != TYPED)),
        (submissions, submissions.c.imported_at < before),
    ):
        if table.name in there:
            gone += connection.execute(delete(table).where(table.c.study == study, old)).rowcount
    if invitations.name in there:
        named = (
            invitations.c.study == study,
            invitations.c.created_at < before,
            invitations.c.participant != FORGOTTEN,
            # links without a named participant are numbered by their names
            invitations.c.participant.not_like(f"{NUMBERED}%"),
        )
        gone += connection.execute(update(invitations).where(*named).values(participant=FORGOTTEN)).rowcount
    return gone


DECLINED, UNDECIDED = "declined", "undecided"
"""Kinds of counts: declined on the consent screen; neither agreed nor declined."""
_KEPT = (audit, invitations)
"""Tables whose rows do not belong to the session alone: only identifying data are removed."""


def has_agreed(connection: Connection, session_id: str) -> bool:
    """Return whether a session's reader consented, or answered a trial of a study without consent."""
    answered = select(trials.c.session_id).where(trials.c.session_id == session_id).limit(1)
    if connection.scalar(answered) is not None:
        return True
    consents = select(events.c.detail).filter_by(session_id=session_id, kind="consent")
    return any((detail or {}).get("agreed") is True for detail in connection.scalars(consents))


def forget_and_count(connection: Connection, session_id: str, kind: str) -> None:
    """Erase all rows of a session, and count one person of a kind; pilots are not counted."""
    row = forget(connection, session_id)
    if row.reader_kind == "human" and not row.is_pilot:
        insert_new(tallies).first(
            connection, {"study": row.study, "version": row.version, "kind": kind, "number": 0}
        )
        mine = update(tallies).filter_by(study=row.study, version=row.version, kind=kind)
        connection.execute(mine.values(number=tallies.c.number + 1))


def forget(connection: Connection, session_id: str) -> Row[str, int, str, bool]:
    """Erase all rows of a session; return its study, version, kind of reader, and whether it was a pilot."""
    query = select(sessions.c.study, sessions.c.version, sessions.c.reader_kind, sessions.c.is_pilot)
    row = connection.execute(query.filter_by(session_id=session_id)).one()
    connection.execute(update(invitations).filter_by(session_id=session_id).values(session_id=None))
    connection.execute(update(audit).filter_by(session_id=session_id).values(session_id=None, detail={}))
    for table in reversed(metadata.sorted_tables):
        if "session_id" in table.c and table not in _KEPT:
            connection.execute(delete(table).where(table.c.session_id == session_id))
    note_due(connection, row.study)
    return row


def number_of(connection: Connection, study: str, kind: str = DECLINED) -> int:
    """Return the number of people who declined to take part in a study, or never decided, over all versions."""
    tallied = select(func.sum(tallies.c.number)).select_from(tallies).filter_by(study=study, kind=kind)
    number = int(connection.scalar(tallied) or 0)
    if kind == DECLINED:  # which earlier versions stored as sessions
        stored = select(func.count()).select_from(sessions)
        theirs = stored.filter_by(study=study, state=DECLINED, reader_kind="human", is_pilot=False)
        number += int(connection.scalar(theirs) or 0)
    return number


def undecided(connection: Connection, study: str, before: str | None = None) -> list[str]:
    """Return the sessions whose reader has neither agreed nor declined so far, however they ended."""
    answered = select(trials.c.session_id).where(trials.c.session_id == sessions.c.session_id)
    of_session = events.c.session_id == sessions.c.session_id
    decided = select(events.c.session_id).where(of_session, events.c.kind == "consent")
    left = select(sessions.c.session_id, sessions.c.plan).filter_by(study=study, reader_kind="human")
    left = left.where(sessions.c.state.not_in(("finished", DECLINED)), ~answered.exists(), ~decided.exists())
    left = left if before is None else left.where(sessions.c.last_seen_at < before)
    return [row.session_id for row in connection.execute(left).all() if asks_for_consent(row.plan)]


def forget_undecided(connection: Connection, study: str, before: str) -> list[str]:
    """Erase the undecided sessions (:func:`undecided`) that were inactive since a given time; return their ids."""
    gone = undecided(connection, study, before)
    for session_id in gone:
        forget_and_count(connection, session_id, UNDECIDED)
    return gone


def asks_for_consent(plan: object) -> bool:
    """Return whether a session's plan has a consent screen."""
    screens = plan.get("screens", ()) if isinstance(plan, dict) else ()
    return any(screen.get("kind") == "consent" for screen in screens)


READERS_S = 6
"""Seconds that others may read from an SQLite database before its log is left unchanged."""
LOCK_S = 2
"""Seconds to wait for a table at a time; other writers to it wait too."""
LOCK_TRIES = 5
SERVED_S = 10
"""Seconds that a table may be locked while a study is being served."""
MOST_BYTES = 2 * 2**30
"""Most bytes of a write-ahead log that are overwritten at once."""
ROUNDS = 5
"""Checks, a second apart, for files of a write-ahead log that something retains."""
STATISTICS = "pg_statistic"
_TOOK_TOO_LONG = "57014"
_IN_THE_WAY = ("55P03", "40P01")


class _InTheWay(Exception):
    """Other programs use a table; waiting for further ones would delay participants."""


@dataclass
class Rewritten:
    """The result of rewriting a database."""

    left: list[str] = field(default_factory=list)
    is_due: bool = False

    def postpone(self, what: str) -> None:
        """Record something that a repetition may complete."""
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
    """Return which copies a PostgreSQL server has made of its data, one sentence each."""
    return list(connection.scalars(SQL["copies_elsewhere"]))


def empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log of an SQLite file; return False if others read from it all the time."""
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
    limit = SERVED_S if connection.scalar(SQL["is_served"]) else 0
    connection.exec_driver_sql(f"SET lock_timeout = '{LOCK_S}s'")
    connection.exec_driver_sql(f"SET statement_timeout = '{limit}s'")
    names = [table.name for table in metadata.sorted_tables]
    for name in names:
        # a plain VACUUM leaves the bytes of dead rows in the table's file
        if _repeat(connection, f"VACUUM (FULL, VERBOSE) {name}", f"table {name}", done):
            _repeat(connection, f"ANALYZE {name}", f"statistics of table {name}", done)
    connection.exec_driver_sql("SET statement_timeout = 0")
    # ANALYZE leaves the samples of a table that is now empty; a change of type, even to the same, drops them
    for statement in list(connection.scalars(SQL["stale_statistics"], {"tables": names})):
        _repeat(connection, statement, "statistics of an empty table", done)
    _repeat(connection, f"VACUUM (FULL, VERBOSE) {STATISTICS}", f"table {STATISTICS}", done)


def _repeat(connection: Connection, statement: str, what: str, done: Rewritten) -> bool:
    """Repeat a statement until no other program blocks it; return whether it succeeded."""
    dead: list[int] = []  # rows that VACUUM FULL copied because an open transaction still sees them

    def listen(notice: Any) -> None:
        if match := re.search(r"\d+", notice.message_detail or ""):
            dead.append(int(match[0]))

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
                done.left.append(f"{what}: {connection.scalar(SQL['not_owned'])}")
                return False
            fault = f"an earlier transaction still sees the erased rows ({_oldest(connection)})"
    finally:
        driver.remove_notice_handler(listen)
    raise _InTheWay(f"{what}: {fault}")


def _oldest(connection: Connection) -> str:
    row = connection.execute(SQL["oldest_transaction"]).first()
    if row is None:
        return "another role's, a prepared one, or a replication slot's"
    return f"process {row.pid} of {row.usename}, since {row.xact_start:%d %B %Y, %H:%M %Z}"


def _overwrite_log(connection: Connection, done: Rewritten) -> None:
    """Overwrite every file of the write-ahead log, and report what older files are retained."""
    if missing := list(connection.scalars(SQL["missing_rights"])):
        stays = connection.scalar(SQL["log_stays"])
        done.left.append(f"{stays} A database administrator runs: {' '.join(missing)}")
        return
    size, keep = connection.execute(SQL["log_sizes"]).one()
    left = MOST_BYTES // size
    start, before = None, None
    for again in range(ROUNDS):
        time.sleep(min(again, 1))
        new = _begin_file(connection, size)
        connection.exec_driver_sql("CHECKPOINT")
        start = start or new
        # files that a checkpoint frees get a later name and wait, with their bytes, for reuse
        in_a_log = 2**32 // size
        files = sorted(
            int(name[:8], 16) * in_a_log + int(name[8:], 16) for name in connection.scalars(SQL["log_files"])
        )
        retained = [file for file in files if file < start]
        last = max(*files, start + keep // size)
        while retained != before and new <= last and left:
            new, left = _begin_file(connection, size), left - 1
        connection.exec_driver_sql("CHECKPOINT")
        if retained != before and new <= last:
            done.postpone(
                f"PostgreSQL's write-ahead log is large: {MOST_BYTES >> 30} GB of it were overwritten, and about "
                f"{counted(last - new + 1, 'file')} were not"
            )
            return
        if not retained:
            return
        before = retained
    keepers = ", ".join(connection.scalars(SQL["log_keepers"], {"start": start * size})) or "the server"
    done.left.append(
        f"PostgreSQL's write-ahead log: {counted(len(retained), 'file')} from before the erasure, which may hold the answers, kept "
        f"by {keepers}"
    )


def _begin_file(connection: Connection, size: int) -> int:
    """Start the next file of the write-ahead log, fill the rest of the current one with zeros, and return its number."""
    # without a record between them, a second switch does nothing
    connection.exec_driver_sql("SELECT pg_logical_emit_message(false, 'wrods', '')")
    connection.exec_driver_sql("SELECT pg_switch_wal()")
    return int(connection.scalar(SQL["current_log_file"], {"size": size}))
