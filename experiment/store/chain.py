"""A chain of digests per session, which reveals rows changed, removed or inserted afterwards.

Place 0 is the session: its link is a hash of the session's id and design hash. Each row of a human or simulated session that is
stored later (its plan with the kind of reader, trials with their regions, scores, events, flags, ratings) gets a digest over a
random salt and the row, and a link over the previous link, the place, the kind, the row's key and that digest::

    digest_n = SHA-256(salt_n ‖ row_n)
    link_n = SHA-256(link_{n-1} ‖ n ‖ kind_n ‖ key_n ‖ digest_n)

Links are computed from digests alone. A withdrawal erases rows and their salts: the rest reveals nothing about the rows,
because a digest with an unknown 128-bit salt cannot be guessed, and the chain still verifies. The chain has no secret: it
reveals accidents and single edits; to detect that all of it was rewritten, store the last links elsewhere (``wrods freeze
--verify --heads FILE``).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Boolean, Connection, Float, Integer, Table, bindparam, func, or_, select
from sqlalchemy.types import Text, TypeEngine

from experiment.store.database import is_sqlite
from experiment.store.session_activity import stamp
from experiment.store.statements import PreparedStatement, insert_into
from experiment.store.tables import (
    JsonOf,
    audit,
    chain,
    events,
    flags,
    ratings,
    regions,
    scores,
    sessions,
    trials,
)

SESSION, PLAN, TRIAL, SCORE, EVENT, FLAG, RATING = (
    *("session", "plan", "trial", "score", "event", "flag", "rating"),
)
WITHDRAWN = "withdrawn"
"""The action of a withdrawal's audit row."""

TABLES: dict[str, Table] = {TRIAL: trials, SCORE: scores, EVENT: events, FLAG: flags, RATING: ratings}
_OWN_KEY = {SCORE: "score_id", EVENT: "event_id", FLAG: "flag_id", RATING: "rating_id"}
_KINDS_OF_READERS = ("human", "simulated")


@dataclass(frozen=True)
class Broken:
    """The first place at which a session's chain does not hold: the row, and what is wrong with it."""

    place: int
    row: str
    fault: str


@dataclass(frozen=True)
class Verified:
    """Result of verifying one session."""

    session_id: str
    rows: int
    erased: int
    head: str | None
    broken: Broken | None


_GATHERED = "rows to be linked"


def first_link(session_id: str, design_hash: str) -> str:
    """Return the link at place 0: the hash of a session's id and design hash."""
    return _hash("wrods chain 1", session_id, design_hash)


def begin(
    connection: Connection, session_id: str, design_hash: str, plan: Mapping[str, Any], reader_kind: str
) -> None:
    """Start a session's chain with its design hash, and add its plan and kind of reader, unless it has a chain."""
    if _LAST.first(connection, {"session": session_id}) is not None:
        return
    first = _row(
        session_id,
        place=0,
        kind=SESSION,
        row_key="",
        salt=None,
        digest=design_hash,
        link=first_link(session_id, design_hash),
    )
    insert_into(chain).execute(connection, first)
    if not awaits_group(plan):
        link_plan(connection, session_id, plan, reader_kind)


def link_plan(connection: Connection, session_id: str, plan: Mapping[str, Any], reader_kind: str) -> None:
    """Add a session's plan and kind of reader to its chain: when it begins, or when it gets its list."""
    link(connection, session_id, PLAN, "", _begun(plan, reader_kind))


def awaits_group(plan: Mapping[str, Any]) -> bool:
    """Return whether a session has no list yet, because answers decide on its reader's group first."""
    return bool(plan.get("awaits_group"))


def _begun(plan: Any, reader_kind: str) -> dict[str, Any]:
    """Return the chained part of a session's row, so that a simulated reader cannot later be turned into a human one."""
    return {"plan": plan, "reader_kind": reader_kind}


def link(
    connection: Connection, session_id: str, kind: str, row_key: str | int, row: Mapping[str, Any]
) -> None:
    """Add a row to its session's chain, in the transaction that stores the row.

    Sessions without a chain (models, baselines) are not changed.
    """
    gathered = connection.info.get(_GATHERED)
    if gathered is not None:
        gathered.append((session_id, kind, str(row_key), row))
        return
    _link_all(connection, session_id, [(kind, str(row_key), row)], _ask_last(connection, session_id))


@contextmanager
def gathering(connection: Connection, session_id: str | None = None) -> Iterator[None]:
    """Collect rows linked inside the context and add them to their chains together at its end; ``session_id`` if all are of one."""
    last = None if session_id is None else _ask_last(connection, session_id)
    gathered: list[tuple[str, str, str, Mapping[str, Any]]] = []
    connection.info[_GATHERED] = gathered
    try:
        yield
    finally:
        del connection.info[_GATHERED]
    of_session: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for session_id, kind, row_key, row in gathered:
        of_session.setdefault(session_id, []).append((kind, row_key, row))
    for session_id, rows in of_session.items():
        _link_all(connection, session_id, rows, last or _ask_last(connection, session_id))


def _ask_last(connection: Connection, session_id: str) -> Callable[[], Sequence[Any] | None]:
    """Query the end of a session's chain; nobody else can extend it until this transaction ends."""
    if not is_sqlite(connection):
        # two processes must not extend one chain from the same link
        _LOCK.put_off(connection, {"session": session_id})
    return _LAST.ask(connection, {"session": session_id})


def _link_all(
    connection: Connection,
    session_id: str,
    rows: Sequence[tuple[str, str, Mapping[str, Any]]],
    fetch_last: Callable[[], Sequence[Any] | None],
) -> None:
    last = fetch_last()
    if last is None:
        return
    place, made = last
    links = []
    for kind, row_key, row in rows:
        place += 1
        salt = secrets.token_hex(16)
        digest = _digest(salt, kind, row)
        made = _link(made, place, kind, row_key, digest)
        links.append(
            _row(session_id, place=place, kind=kind, row_key=row_key, salt=salt, digest=digest, link=made)
        )
    insert_into(chain).put_off(connection, *links)


def has_chain(reader_kind: str) -> bool:
    """Return whether sessions of a kind of reader have a chain."""
    return reader_kind in _KINDS_OF_READERS


def trial_key(trial_index: int, attempt: int) -> str:
    """Return the key of a trial within its session."""
    return f"{trial_index}.{attempt}"


def verify(connection: Connection, session_id: str) -> Verified:
    """Verify a session's chain against its rows, from the first link to the last."""
    links = connection.execute(
        select(chain).where(chain.c.session_id == session_id).order_by(chain.c.place)
    ).all()
    if not links:
        missing = Broken(0, "the session", "it has no chain")
        return Verified(session_id, 0, 0, None, missing)
    erased = sum(row.salt is None for row in links[1:])
    broken = _first_broken(connection, session_id, links)
    return Verified(session_id, len(links) - 1, erased, str(links[-1].link), broken)


def chained_sessions(connection: Connection, study: str) -> list[str]:
    """Return the sessions of a study that have, had, or should have a chain, oldest first, including withdrawn ones."""
    begun = select(chain.c.session_id).where(chain.c.place == 0)
    there = connection.scalars(
        select(sessions.c.session_id)
        .where(
            sessions.c.study == study,
            or_(sessions.c.reader_kind.in_(_KINDS_OF_READERS), sessions.c.session_id.in_(begun)),
        )
        .order_by(sessions.c.created_at, sessions.c.session_id)
    ).all()
    return [*there, *withdrawn_sessions(connection, study)]


def withdrawn_sessions(connection: Connection, study: str | None = None) -> list[str]:
    """Return the withdrawn sessions, in the order of their tombstones."""
    query = select(audit.c.session_id).where(audit.c.action == WITHDRAWN, audit.c.session_id.is_not(None))
    query = query if study is None else query.where(audit.c.study == study)
    return list(dict.fromkeys(connection.scalars(query.order_by(audit.c.audit_id))))


def _first_broken(connection: Connection, session_id: str, links: Any) -> Broken | None:
    query = select(sessions.c.design_hash, sessions.c.plan, sessions.c.reader_kind)
    session = connection.execute(query.filter_by(session_id=session_id)).first()
    tombstone = select(audit.c.audit_id).filter_by(session_id=session_id, action=WITHDRAWN)
    is_withdrawn = session is None and connection.scalar(tombstone.limit(1)) is not None
    if session is None and not is_withdrawn:
        return Broken(0, "the session", "it is gone, and no withdrawal says why")
    before = ""
    for place, link_row in enumerate(links):
        name = _name(link_row.kind, link_row.row_key)
        if link_row.place != place:
            return Broken(place, f"link {place}", "it is missing from the chain")
        if place == 0:
            expected = first_link(session_id, link_row.digest)
            if session is not None and session.design_hash != link_row.digest:
                return Broken(0, name, "its design hash differs from that at its start")
        else:
            expected = _link(before, place, link_row.kind, link_row.row_key, link_row.digest)
        if link_row.link != expected:
            return Broken(place, name, "its link does not follow from the one before")
        before = link_row.link
    stored: dict[tuple[str, str], Mapping[str, Any]] = {}
    if session is not None and not awaits_group(session.plan or {}):
        stored[PLAN, ""] = _begun(session.plan, session.reader_kind)
    stored |= dict(_rows_of(connection, session_id))
    for link_row in links[1:]:
        row = stored.pop((link_row.kind, link_row.row_key), None)
        name = _name(link_row.kind, link_row.row_key)
        if link_row.salt is None:
            if not is_withdrawn or row is not None:
                return Broken(link_row.place, name, "its salt is gone, and no withdrawal says why")
        elif row is None:
            return Broken(link_row.place, name, "it is missing")
        elif _digest(link_row.salt, link_row.kind, row) != link_row.digest:
            return Broken(link_row.place, name, "it was changed after it was stored")
    if stored:
        kind, key = next(iter(stored))
        return Broken(len(links), _name(kind, key), "it was added outside the chain")
    return None


def _rows_of(connection: Connection, session_id: str) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    parts: dict[str, list[Mapping[str, Any]]] = {}
    query = select(regions).where(regions.c.session_id == session_id).order_by(regions.c.region)
    for region in connection.execute(query).mappings():
        parts.setdefault(trial_key(region["trial_index"], region["attempt"]), []).append(dict(region))
    for kind, table in TABLES.items():
        query = select(table).where(table.c.session_id == session_id)
        for row in connection.execute(query.order_by(*table.primary_key.columns)).mappings():
            if kind == TRIAL:
                key = trial_key(row["trial_index"], row["attempt"])
                yield (kind, key), {**row, "regions": parts.get(key, [])}
            else:
                yield (kind, str(row[_OWN_KEY[kind]])), dict(row)


def _name(kind: str, key: str) -> str:
    if kind == TRIAL:
        index, _, attempt = key.partition(".")
        return f"trial {index} (attempt {attempt})"
    if kind == PLAN:
        return "the plan with the kind of reader"
    return "the session" if kind == SESSION else f"{kind} {key}"


_LOCK = PreparedStatement(
    lambda _: select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("session", type_=Text), 0)))
)
_LAST = PreparedStatement(
    lambda _: (
        select(chain.c.place, chain.c.link)
        .where(chain.c.session_id == bindparam("session"))
        .order_by(chain.c.place.desc())
        .limit(1)
    )
)


def _row(session_id: str, **link: str | int | None) -> dict[str, Any]:
    return {"session_id": session_id, **link, "created_at": stamp(datetime.now(UTC))}


def _link(before: str, place: int, kind: str, row_key: str, digest: str) -> str:
    return _hash(before, str(place), kind, row_key, digest)


def _digest(salt: str, kind: str, row: Mapping[str, Any]) -> str:
    if kind == PLAN:
        return _hash(salt, _canonical(_as_json(row)))
    contents = _as_stored(TABLES[kind], row, leave_out=_OWN_KEY.get(kind))
    if kind == TRIAL:
        parts = sorted(row.get("regions") or (), key=lambda region: int(region["region"]))
        place = ("session_id", "trial_index", "attempt")
        contents["regions"] = [
            {name: value for name, value in _as_stored(regions, part).items() if name not in place}
            for part in parts
        ]
    return _hash(salt, _canonical(contents))


def _as_stored(table: Table, row: Mapping[str, Any], leave_out: str | None = None) -> dict[str, Any]:
    """Return a row's values in the form in which the database returns them; a null in a later column is left out."""
    return {
        name: None if (value := row.get(name)) is None else stored(value)
        for name, stored, is_added in _forms(table)
        if name != leave_out and not (is_added and row.get(name) is None)
    }


@cache
def _forms(table: Table) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    return tuple((column.key, _form(column.type), bool(column.info.get("added"))) for column in table.c)


def _form(kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    if isinstance(kind, JsonOf):
        return _as_json
    # Booleans are not integers here, and floats are not either
    return next(
        (form for of, form in ((Boolean, bool), (Float, float), (Integer, int)) if isinstance(kind, of)), str
    )


def _as_json(value: object) -> Any:
    """Return a value as JSON returns it, without tuples and with only texts as keys."""
    return json.loads(json.dumps(value))


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _hash(*parts: str) -> str:
    # lengths distinguish "ab"+"c" from "a"+"bc"
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
