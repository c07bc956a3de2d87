"""Takes a session out of a database for good, and leaves a tombstone.

Erased are the session with its plan, trials, regions, scores, ratings, calls, flags and events, who its participant was
(ids, invitation, submission), the salts of its chain, and every session that a model read in the participant's words
(teacher-forced, yoked to it) with its calls. The chain's digests stay: without their salts they say nothing.

Erased rows leave bytes in files. The same transaction stores that the files must be cleaned (:func:`note_due`), so that a
process that is killed before it cleans them loses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, inspect, or_, select, update

from experiment.store.assignment import INVITED, PILOT_PREFIX, PREFIXES, TYPED, numbers_taken, typed_numbers
from experiment.store.attendance import stamp
from experiment.store.chain import WITHDRAWN, withdrawn_sessions
from experiment.store.tables import (
    audit,
    calls,
    chain,
    events,
    flags,
    invitations,
    people,
    ratings,
    regions,
    scores,
    sessions,
    submissions,
    trials,
)

T = TypeVar("T")
TEACHER_FORCED = "teacher_forced"
_CHILDREN_FIRST = (ratings, scores, regions, trials, flags, events, people)
_ASSIGNED = (*PREFIXES.values(), PILOT_PREFIX)
_LARGEST_IN = 500
_TOLD = tuple(sessions.c[name] for name in ("session_id", "study", "version", "reader", "reader_kind"))
"""What a tombstone is made from."""


SERVER = "server"
"""Who acts where nobody asked for it."""
UNINVITED = "invitation withdrawn"
"""The action of the audit row that is left of a personal link: the link's digest, which names nobody."""
DUE = "cleaning due"
"""The action of audit rows which say that files may still hold bytes of erased rows."""


@dataclass
class Erased:
    """What was taken out of a database."""

    sessions: list[str] = field(default_factory=list)
    invitations: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    work_keys: set[str] = field(default_factory=set)


def withdrawn(connection: Connection) -> list[str]:
    """Return what was withdrawn from a database: ids of sessions and digests of personal links, of all its studies."""
    links = connection.scalars(
        select(audit.c.detail).where(audit.c.action == UNINVITED).order_by(audit.c.audit_id)
    )
    return list(dict.fromkeys([*withdrawn_sessions(connection), *(link["token_hash"] for link in links)]))


def derived_sessions(connection: Connection, session_ids: Sequence[str]) -> list[str]:
    """Return the sessions in which a model read a participant's own answers as its context."""
    found: list[str] = []
    for part in _parts(session_ids):
        query = select(sessions.c.session_id).where(
            sessions.c.yoked_to.in_(part), sessions.c.context == TEACHER_FORCED
        )
        found += connection.scalars(query)
    return found


def erase_sessions(connection: Connection, session_ids: Sequence[str], *, actor: str) -> Erased:
    """Erase sessions, and personal links, in the transaction of a connection; those that are not there are passed over."""
    there = set(inspect(connection).get_table_names())
    found = Erased(sessions=[*dict.fromkeys((*session_ids, *derived_sessions(connection, session_ids)))])
    for part in _parts(found.sessions):
        # a backup may lack columns that came later
        rows = connection.execute(select(*_TOLD).where(sessions.c.session_id.in_(part))).mappings().all()
        tombstones = [_tombstone(connection, dict(row), actor, there) for row in rows]
        keys = connection.scalars(
            select(trials.c.work_key).where(trials.c.session_id.in_(part), trials.c.work_key.is_not(None))
        )
        found.work_keys.update(str(key) for key in keys)
        _erase_calls(connection, part, found)
        _erase_names(connection, part, there, found, actor)
        for table in _CHILDREN_FIRST:
            if table.name in there:
                _delete(connection, table, table.c.session_id.in_(part), found)
        if "chain" in there:
            connection.execute(
                update(chain).where(chain.c.session_id.in_(part), chain.c.salt.is_not(None)).values(salt=None)
            )
        connection.execute(
            update(audit).where(audit.c.session_id.in_(part), audit.c.action != WITHDRAWN).values(detail={})
        )
        _delete(connection, sessions, sessions.c.session_id.in_(part), found)
        if tombstones:
            connection.execute(audit.insert(), tombstones)
        for study in {str(row["study"]) for row in rows}:
            note_due(connection, study, found.work_keys)
    return found


def clean_tombstones(connection: Connection) -> set[str]:
    """Take out of tombstones of earlier versions the numbers that were typed; return the studies that had any."""
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
    """Store that a study's files must be cleaned of erased rows, and of what models made from them."""
    row = {"at": stamp(datetime.now(UTC)), "actor": SERVER, "action": DUE, "study": study}
    connection.execute(audit.insert().values(**row, detail={"work_keys": sorted(work_keys)}))


def what_is_due(connection: Connection, study: str) -> dict[int, list[str]]:
    """Return the work keys of each row stored by :func:`note_due`, by its number; empty if nothing is due."""
    rows = connection.execute(
        select(audit.c.audit_id, audit.c.detail).where(audit.c.action == DUE, audit.c.study == study)
    )
    return {number: detail["work_keys"] for number, detail in rows}


def note_cleaned(connection: Connection, numbers: Iterable[int]) -> None:
    """Remove rows of :func:`note_due`: the files were cleaned."""
    for part in _parts(list(numbers)):
        connection.execute(delete(audit).where(audit.c.audit_id.in_(part)))


def _erase_calls(connection: Connection, part: Sequence[str], found: Erased) -> None:
    """Erase the calls of sessions, and cached ones of no session that answered the same requests."""
    keys = list(
        connection.scalars(select(calls.c.request_key).where(calls.c.session_id.in_(part)).distinct())
    )
    _delete(connection, calls, calls.c.session_id.in_(part), found)
    for some in _parts(keys):
        _delete(connection, calls, and_(calls.c.session_id.is_(None), calls.c.request_key.in_(some)), found)
    for some in _parts(sorted(found.work_keys)):
        _delete(connection, calls, and_(calls.c.session_id.is_(None), calls.c.work_key.in_(some)), found)


def _erase_names(
    connection: Connection, part: Sequence[str], there: set[str], found: Erased, actor: str
) -> None:
    """Erase what names the participants: their invitations, and their lines in a platform's lists."""
    ids = connection.execute(
        select(people.c.study, people.c.source, people.c.external_id).where(people.c.session_id.in_(part))
    ).all()
    if "submissions" in there:
        for study, source, external_id in ids:
            same = (submissions.c.study == study, submissions.c.source == source)
            _delete(connection, submissions, and_(*same, submissions.c.external_id == external_id), found)
    if "invitations" in there:
        named = {(study, external_id) for study, source, external_id in ids if source == INVITED}
        invited = [
            and_(invitations.c.study == study, invitations.c.participant == name)
            for study, name in sorted(named)
        ]
        theirs = or_(invitations.c.session_id.in_(part), invitations.c.token_hash.in_(part), *invited)
        links = erase_invitations(connection, theirs, actor=actor)
        if links:
            found.rows[invitations.name] += len(links)
            found.invitations += links


def erase_invitations(connection: Connection, which: ColumnElement[bool], *, actor: str) -> list[str]:
    """Erase personal links with the names in them, and leave their digests: a backup that holds one is found by it."""
    found = connection.execute(select(invitations.c.token_hash, invitations.c.study).where(which)).all()
    if found:
        connection.execute(delete(invitations).where(which))
        moment = stamp(datetime.now(UTC))
        rows = [
            {
                "at": moment,
                "actor": actor,
                "action": UNINVITED,
                "study": one.study,
                "detail": {"token_hash": one.token_hash},
            }
            for one in found
        ]
        connection.execute(audit.insert(), rows)
        for study in {one.study for one in found}:
            note_due(connection, study)
    return [one.token_hash for one in found]


def _tombstone(connection: Connection, row: dict[str, Any], actor: str, there: set[str]) -> dict[str, Any]:
    prefix = str(row["reader"]).rstrip("0123456789")
    given: dict[str, int] = {}
    if prefix in _ASSIGNED and row["reader_kind"] in PREFIXES:
        # the highest number assigned so far, which is nobody's name, keeps a number from being given twice
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


def _delete(connection: Connection, table: Table, where: ColumnElement[bool], found: Erased) -> None:
    number = connection.execute(delete(table).where(where)).rowcount
    if number > 0:
        found.rows[table.name] += number


def _parts(values: Sequence[T]) -> list[Sequence[T]]:
    return [values[start : start + _LARGEST_IN] for start in range(0, len(values), _LARGEST_IN)]


NUMBERED = "link-"
"""How links are called that are for nobody in particular."""
FORGOTTEN = ""
"""What stands for an invited name that was forgotten: the link goes on being good for its session."""


def forget_names(connection: Connection, study: str, before: str) -> int:
    """Erase of a study what names people and was stored before a moment; answers stay.

    These are ids of recruitment platforms, what was kept of the network, lines of a platform's lists, and the names of those
    invited by personal links. A number typed in a laboratory stays: it is the participant's number, in every table.
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
            # links for nobody in particular are counted on from their names
            invitations.c.participant.not_like(f"{NUMBERED}%"),
        )
        gone += connection.execute(update(invitations).where(*named).values(participant=FORGOTTEN)).rowcount
    return gone
